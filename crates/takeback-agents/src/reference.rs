//! The reference agent: a list of steps that can be killed at any moment and started again.
//!
//! In: steps, a workspace, the id of an execution. Out: the values after the last step, or why it did
//! not come to that. Each step is a tool call of the execution's own session, so what it does to files
//! has an author, and ends with a checkpoint: state and files.
//!
//! **When a step fails**, a failed checkpoint keeps what it had come to, and what it did to files is
//! taken back to the last success with an ordinary rewind; then the step is tried again from the state
//! of that success. A rollback would do both at once, but it would also move the head away from the
//! failed try, which is to stay in sight. Nothing is lost by doing it in two: files first, and only if
//! they all went is a retry counted and begun, so a step never meets the leavings of an earlier try.
//! What the user changed stays and is told; where that cannot be, nothing is taken back and the run
//! ends.
//!
//! **When the process dies**, the next run goes on after the last success, and begins by taking back
//! in the same way what was done since. A step that was cut off in its middle leaves files of which
//! nobody can tell whether the user wrote them meanwhile: [`Agent::uncertain_files`] says what is to
//! become of them.

mod effects;
mod step;

use takeback_core::execution::{
    ExecutionError, MOST_RETRIES, Resumed, resume_last, retry_from_step, save_step,
};
use takeback_core::process;
use takeback_core::rewind::{
    AmbiguousPolicy, Files, Receipt, RewindError, RewindRequest, Target, preview, recover, rewind,
};
use takeback_core::{AgentEvent, Outcome, Workspace, record};
use takeback_store::state::{
    Attempt, CheckpointKey, Effect, ExecutionId, Expect, NewCheckpoint, Record, Saved, Status,
    StepIndex, Values,
};
use takeback_store::{CallId, Lack, SessionId, StateError, WorkPath};

pub use self::effects::{Ambiguous, Effects};
pub use self::step::{Step, StepError};

/// An agent, and what it is to do where nobody can know.
pub struct Agent<'a> {
    /// The run goes on where this execution stands.
    pub execution: ExecutionId,
    /// Numbered from 1. Step 0 is the beginning, before any of them.
    pub steps: Vec<Step<'a>>,
    /// How often a failed step is tried again, counted over restarts.
    pub most_retries: u32,
    /// What is to become of an effect that may have happened or not.
    pub on_ambiguous: Box<dyn FnMut(&Effect) -> Ambiguous + 'a>,
    /// What is to become of files that a step which was cut off may have written, or the user since.
    /// `Take`: they go back too, and `undo` has them. `Leave`: if there are any, the run ends with
    /// [`RunError::InTheWay`] before it does anything.
    pub uncertain_files: AmbiguousPolicy,
    /// Whether a run that goes on begins with the files of the state it goes on from. `Stay`: with what
    /// stands there, as after a rollback of the state alone.
    pub files_at_start: Files,
    /// Hears what happens, in order.
    pub on_happening: Box<dyn FnMut(&Happening<'_>) + 'a>,
}

/// Something worth telling about a run.
#[derive(Debug)]
pub enum Happening<'a> {
    /// The execution was there already, and it goes on from here.
    Resumed(&'a Resumed),
    /// A checkpoint was saved, of a success or of a failure.
    Saved(&'a Record),
    /// Files went back to the last success. What others had changed stays, and is named.
    TakenBack(&'a Receipt),
    /// A step wrote what could not be kept: no going back brings it.
    NotCaptured(&'a [(WorkPath, Lack)]),
}

/// Why a run ended before its last step.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Its failed checkpoint is the head, and the files are those of the last success.
    #[error("{checkpoint} ({name}) failed after {retries} retries, which is the most: {error}")]
    GaveUp { checkpoint: CheckpointKey, name: String, retries: u32, error: String },
    /// What the step did to files stays: it cannot be told from the other run's.
    #[error("another run of execution {execution} was faster")]
    Overtaken { execution: ExecutionId, source: Option<Box<StateError>> },
    #[error("execution {execution} is being run by process {pid}")]
    Running { execution: ExecutionId, pid: u32 },
    #[error("step {step} of execution {execution} was {was:?}, and is not among these steps")]
    OtherSteps { execution: ExecutionId, step: StepIndex, was: String },
    /// The receipt names the paths, and why. Nothing was taken back, but for what it lists: then
    /// somebody saved a file while it went on.
    #[error("what was done since {success} cannot be taken back without losing work of others")]
    InTheWay { success: CheckpointKey, receipt: Box<Receipt> },
    #[error("nobody knows whether the effect {:?} happened", effect.key)]
    AmbiguousEffect { effect: Box<Effect> },
    #[error(transparent)]
    Execution(Box<ExecutionError>),
}

/// Where a run stands.
struct Standing {
    success: Record,
    /// Of the success.
    values: Values,
    /// What the next checkpoint has to follow: the success, or a failure after it.
    head: CheckpointKey,
}

impl<'a> Agent<'a> {
    /// One that ends its run wherever nobody can know.
    #[must_use]
    pub fn new(execution: ExecutionId, steps: Vec<Step<'a>>) -> Self {
        Self {
            execution,
            steps,
            most_retries: MOST_RETRIES,
            on_ambiguous: Box::new(|_| Ambiguous::Stop),
            uncertain_files: AmbiguousPolicy::Leave,
            files_at_start: Files::Too,
            on_happening: Box::new(|_| {}),
        }
    }

    /// Runs the steps that have not succeeded yet; the values after the last one.
    ///
    /// `initial` is what a new execution begins with. Every step that is told as saved is durable, and
    /// no later run repeats it.
    pub fn run(&mut self, workspace: &mut Workspace, initial: &Values) -> Result<Values, RunError> {
        let session = SessionId(self.execution.to_string());
        self.check_alone(workspace, &session)?;
        recover(workspace)?;
        // Before the success is looked for: if another run saves in between, this one is to lose.
        let head = workspace.states.head(&self.execution, None)?.and_then(|head| head.record);
        let resumed = resume_last(&*workspace.states, &self.execution, None)?;
        if let Some(Resumed { checkpoint, .. }) = &resumed {
            self.check_steps(&checkpoint.record)?;
            if number(&checkpoint.record) == self.steps.len() {
                return Ok(checkpoint.values.clone());
            }
        }

        let (agent, owner) = (Some("reference".to_owned()), process::current());
        let start =
            AgentEvent::SessionStart { session: session.clone(), agent, parent: None, owner };
        record(workspace, &start)?;
        let text = format!("execution {}", self.execution);
        record(workspace, &AgentEvent::Prompt { session: session.clone(), message: None, text })?;
        let ended = match resumed {
            Some(resumed) => self.go_on(workspace, resumed, head),
            None => self.begin(workspace, initial),
        }
        .and_then(|standing| self.run_from(workspace, &session, standing));
        // The session of a run that was overtaken is the other run's.
        if !matches!(ended, Err(RunError::Overtaken { .. })) {
            let told = record(workspace, &AgentEvent::SessionEnd { session });
            return ended.and_then(|values| Ok(told.map(|_| values)?));
        }
        ended
    }

    /// The beginning is a checkpoint too: the first step can fail like any other.
    fn begin(&mut self, workspace: &mut Workspace, initial: &Values) -> Result<Standing, RunError> {
        let start = NewCheckpoint {
            execution: &self.execution,
            branch: None,
            step: StepIndex(0),
            // Two runs that begin together begin with the same, or one of them does not begin.
            attempt: Some(Attempt::FIRST),
            step_name: "start",
            time: (workspace.ambient.now)(),
            status: Status::Success,
            error: None,
            values: initial,
            expect: Expect::Anything,
            point: None,
            session: None,
        };
        let (saved, _) = save_step(workspace, &start)?;
        (self.on_happening)(&Happening::Saved(&saved.record));
        let head = saved.record.key.clone();
        Ok(Standing { success: saved.record, values: initial.clone(), head })
    }

    fn go_on(
        &mut self,
        workspace: &mut Workspace,
        resumed: Resumed,
        head: Option<Record>,
    ) -> Result<Standing, RunError> {
        (self.on_happening)(&Happening::Resumed(&resumed));
        let success = resumed.checkpoint.record;
        if self.files_at_start == Files::Too {
            self.take_back(workspace, &success)?;
        }
        match head {
            Some(failed) if failed.status == Status::Failed => self.try_again(workspace, failed),
            head => {
                let head = head.map_or_else(|| success.key.clone(), |head| head.key);
                Ok(Standing { success, values: resumed.checkpoint.values, head })
            }
        }
    }

    fn run_from(
        &mut self,
        workspace: &mut Workspace,
        session: &SessionId,
        mut at: Standing,
    ) -> Result<Values, RunError> {
        while number(&at.success) < self.steps.len() {
            at = self.run_step(workspace, session, &at)?;
        }
        Ok(at.values)
    }

    /// The step after the last success, once: a success, or a failure from which it can be tried again.
    fn run_step(
        &mut self,
        workspace: &mut Workspace,
        session: &SessionId,
        at: &Standing,
    ) -> Result<Standing, RunError> {
        let index = StepIndex(at.success.key.step.0 + 1);
        let step = &mut self.steps[number(&at.success)];
        let call = CallId(format!("step-{index}-{:x}", (workspace.ambient.random)()));
        let before = AgentEvent::BeforeTool {
            session: session.clone(),
            call: call.clone(),
            tool: step.name.clone(),
            touches: step.touches.clone(),
        };
        record(workspace, &before)?;

        let mut values = at.values.clone();
        let mut effects = Effects {
            states: &*workspace.states,
            ambient: &workspace.ambient,
            execution: &self.execution,
            step: index,
            on_ambiguous: &mut self.on_ambiguous,
        };
        let ran = (step.run)(&mut values, &mut effects);

        let outcome = if ran.is_ok() { Outcome::Done } else { Outcome::Failed };
        let session = session.clone();
        let seen = record(
            workspace,
            &AgentEvent::AfterTool {
                session,
                call,
                outcome,
                report: takeback_core::CallReport::default(),
            },
        )?;
        if !seen.not_captured.is_empty() {
            (self.on_happening)(&Happening::NotCaptured(&seen.not_captured));
        }
        let error = match ran {
            Ok(()) => None,
            Err(StepError::Failed(error)) => Some(error.to_string()),
            Err(StepError::Ambiguous(effect)) => {
                self.take_back(workspace, &at.success)?;
                return Err(RunError::AmbiguousEffect { effect });
            }
            Err(StepError::Ledger(error)) => {
                self.take_back(workspace, &at.success)?;
                return Err((*error).into());
            }
        };
        let new = NewCheckpoint {
            execution: &self.execution,
            branch: None,
            step: index,
            attempt: None,
            step_name: &step.name,
            time: (workspace.ambient.now)(),
            status: if error.is_none() { Status::Success } else { Status::Failed },
            error: error.as_deref(),
            values: &values,
            expect: Expect::Newest(Some(&at.head.id())),
            point: None,
            session: None,
        };
        let overtaken =
            |source| Err(RunError::Overtaken { execution: self.execution.clone(), source });
        let saved = match save_step(workspace, &new) {
            Ok((Saved { record, is_new: true }, _)) => record,
            // The other run came to the very same.
            Ok(_) => return overtaken(None),
            Err(ExecutionError::State(source @ StateError::Conflict { .. })) => {
                return overtaken(Some(Box::new(source)));
            }
            Err(error) => return Err(error.into()),
        };
        (self.on_happening)(&Happening::Saved(&saved));
        if error.is_some() {
            self.take_back(workspace, &at.success)?;
            return self.try_again(workspace, saved);
        }
        Ok(Standing { head: saved.key.clone(), success: saved, values })
    }

    /// Counts a retry of a step whose files have gone back, and stands where it begins.
    fn try_again(&self, workspace: &Workspace, failed: Record) -> Result<Standing, RunError> {
        let step = failed.key.step;
        match retry_from_step(&*workspace.states, &self.execution, step, self.most_retries) {
            Ok(Resumed { checkpoint, .. }) => Ok(Standing {
                success: checkpoint.record,
                values: checkpoint.values,
                head: failed.key,
            }),
            Err(StateError::RetriesExhausted { count, .. }) => Err(RunError::GaveUp {
                checkpoint: failed.key,
                name: failed.step_name,
                retries: count,
                error: failed.error.unwrap_or_default(),
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes back what the execution's session did to files since a success: all of it, or nothing.
    fn take_back(&mut self, workspace: &mut Workspace, success: &Record) -> Result<(), RunError> {
        let id = success.key.id();
        let point = success.point.ok_or(ExecutionError::NoFiles { id })?;
        let mut request = RewindRequest::new(Target::Point(point));
        request.ambiguous = self.uncertain_files;
        let in_the_way = |receipt| RunError::InTheWay {
            success: success.key.clone(),
            receipt: Box::new(receipt),
        };
        let receipt = loop {
            let shown = preview(workspace, &request)?;
            if shown.plan.leaves_something() {
                return Err(in_the_way(shown.receipt().refused()));
            }
            match rewind(workspace, &request, Some(&shown)) {
                // Somebody saved a file between the look and the lock.
                Err(RewindError::Changed(_)) => {}
                done => break done?,
            }
        };
        if !receipt.success {
            return Err(in_the_way(receipt));
        }
        if receipt.changed_something() {
            (self.on_happening)(&Happening::TakenBack(&receipt));
        }
        Ok(())
    }

    /// A second run would take back what the first is about to do. Two that begin in the same moment
    /// pass here; then the first to save wins.
    fn check_alone(&self, workspace: &Workspace, session: &SessionId) -> Result<(), RunError> {
        let sessions = workspace.store.sessions().map_err(StateError::from)?;
        let ours = sessions.into_iter().find(|known| known.id == *session);
        match ours.filter(|known| known.ended_at.is_none()).and_then(|known| known.owner) {
            Some(owner) if Some(owner) != process::current() && process::is_alive(owner) => {
                Err(RunError::Running { execution: self.execution.clone(), pid: owner.pid })
            }
            _ => Ok(()),
        }
    }

    /// An agent whose steps have changed since must not go on as if they had not.
    fn check_steps(&self, success: &Record) -> Result<(), RunError> {
        let known = match number(success).checked_sub(1) {
            Some(before) => self.steps.get(before).map(|step| step.name.as_str()),
            None => Some("start"),
        };
        if known == Some(success.step_name.as_str()) {
            return Ok(());
        }
        let (execution, was) = (self.execution.clone(), success.step_name.clone());
        Err(RunError::OtherSteps { execution, step: success.key.step, was })
    }
}

/// How many steps have succeeded with this one.
fn number(success: &Record) -> usize {
    success.key.step.0 as usize
}

impl<E: Into<ExecutionError>> From<E> for RunError {
    fn from(error: E) -> Self {
        Self::Execution(Box::new(error.into()))
    }
}
