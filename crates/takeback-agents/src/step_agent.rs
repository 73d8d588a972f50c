//! The reference agent: a list of steps that can be killed at any moment and started again.
//!
//! In: steps, a workspace, the id of an execution. Out: the values after the last step, or the
//! error that ended the run. Each step is a tool call of the execution's own session, so its
//! changes have an author, and ends with a checkpoint: state and files.
//!
//! **When a step fails**, a failed checkpoint saves its state, an ordinary rewind takes its changes
//! back to the last success, and the step runs again from the state of that success. A rollback
//! would do both at once, but would also move the head away from the failed attempt, which should
//! stay visible. Doing it in two steps loses nothing: files first, and a retry is counted and
//! started only if all of them were restored, so a step never sees the remains of an earlier
//! attempt. Changes of the user stay and are reported; where that is impossible, nothing is
//! restored and the run ends.
//!
//! **When the process dies**, the next run continues after the last success, and first takes back
//! what was done since, in the same way. An interrupted step leaves files that may be the step's or
//! the user's: [`StepAgent::uncertain_files`] decides what happens to them.

mod effects;
mod step;

use takeback_core::execution::{
    ExecutionError, MOST_RETRIES, ResumeState, resume_last, retry_from_step, save_step,
};
use takeback_core::process;
use takeback_core::rewind::{
    AmbiguousPolicy, Files, Receipt, RewindError, RewindRequest, Target, preview, recover, rewind,
};
use takeback_core::{AgentEvent, Outcome, Workspace, record};
use takeback_store::state::{
    Attempt, CheckpointKey, Effect, ExecutionId, ExpectedHead, NewCheckpoint, Record, SaveOutcome,
    Status, StepIndex, Values,
};
use takeback_store::{CallId, NotCapturedReason, SessionId, StateError, WorkPath};

pub use self::effects::{EffectDecision, Effects};
pub use self::step::{Step, StepError};

/// An agent, and its policies for uncertain cases.
pub struct StepAgent<'a> {
    /// The run continues from the head of this execution.
    pub execution: ExecutionId,
    /// Numbered from 1. Step 0 is the start, before any of them.
    pub steps: Vec<Step<'a>>,
    /// How often a failed step is retried, counted across restarts.
    pub most_retries: u32,
    /// Decides about an effect that may or may not have happened.
    pub on_ambiguous: Box<dyn FnMut(&Effect) -> EffectDecision + 'a>,
    /// What happens to files that an interrupted step may have written, or the user since. `Take`:
    /// they are restored too, and `undo` brings them back. `Leave`: if there are any, the run ends
    /// with [`RunError::WouldLoseWork`] before it changes anything.
    pub uncertain_files: AmbiguousPolicy,
    /// Whether a resumed run first restores the files of its state. `Stay`: it starts with the
    /// current files, as after a rollback of the state alone.
    pub files_at_start: Files,
    /// Receives events in order.
    pub on_event: Box<dyn FnMut(&RunEvent<'_>) + 'a>,
}

/// An event of a run.
#[derive(Debug)]
pub enum RunEvent<'a> {
    /// The execution existed, and continues from here.
    Resumed(&'a ResumeState),
    /// A checkpoint of a success or a failure was saved.
    Saved(&'a Record),
    /// Files were restored to the last success. Others' changes stay, and are listed.
    TakenBack(&'a Receipt),
    /// A step wrote files whose contents could not be saved; no rewind restores them.
    NotCaptured(&'a [(WorkPath, NotCapturedReason)]),
}

/// Why a run ended before its last step.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The failed checkpoint is the head, and the files are those of the last success.
    #[error("{checkpoint} ({name}) failed after {retries} retries, the limit: {error}")]
    RetriesExhausted {
        /// The failed checkpoint.
        checkpoint: CheckpointKey,
        /// The step's name.
        name: String,
        /// How often it was retried.
        retries: u32,
        /// The step's last error.
        error: String,
    },
    /// The step's changes stay: they cannot be distinguished from the other run's.
    #[error("another run of execution {execution} saved first")]
    Overtaken {
        /// The execution.
        execution: ExecutionId,
        /// The conflict; `None` if both runs saved the same state.
        source: Option<Box<StateError>>,
    },
    /// Nothing was done.
    #[error("process {pid} is already running execution {execution}")]
    Running {
        /// The execution.
        execution: ExecutionId,
        /// The process.
        pid: u32,
    },
    /// An execution only continues with the steps it began with.
    #[error("step {step} of execution {execution} was {was:?}, and is not among these steps")]
    StepsChanged {
        /// The execution.
        execution: ExecutionId,
        /// The last successful step.
        step: StepIndex,
        /// Its name in the execution.
        was: String,
    },
    /// The receipt lists the paths and reasons. Nothing was restored, except what it lists: then
    /// another program saved a file during the rewind.
    #[error("cannot take back the changes since {success} without losing the work of others")]
    WouldLoseWork {
        /// The last success.
        success: CheckpointKey,
        /// What could not be restored, and why.
        receipt: Box<Receipt>,
    },
    /// [`StepAgent::on_ambiguous`] answered [`EffectDecision::Stop`].
    #[error("cannot tell whether the effect {:?} happened: check, then decide in on_ambiguous", effect.key)]
    AmbiguousEffect {
        /// The effect.
        effect: Box<Effect>,
    },
    /// The state or the log could not be read or written.
    #[error(transparent)]
    Execution(Box<ExecutionError>),
}

/// The position of a run.
struct RunPosition {
    success: Record,
    /// The state of the success.
    values: Values,
    /// The parent of the next checkpoint: the success, or a failure after it.
    head: CheckpointKey,
}

impl<'a> StepAgent<'a> {
    /// An agent that ends its run in every uncertain case.
    #[must_use]
    pub fn new(execution: ExecutionId, steps: Vec<Step<'a>>) -> Self {
        Self {
            execution,
            steps,
            most_retries: MOST_RETRIES,
            on_ambiguous: Box::new(|_| EffectDecision::Stop),
            uncertain_files: AmbiguousPolicy::Leave,
            files_at_start: Files::Too,
            on_event: Box::new(|_| {}),
        }
    }

    /// Runs the steps that have not succeeded yet; the values after the last one.
    ///
    /// `initial` is the state of a new execution. Every step reported as saved is durable and never
    /// repeated.
    pub fn run(&mut self, workspace: &mut Workspace, initial: &Values) -> Result<Values, RunError> {
        let session = SessionId(self.execution.to_string());
        self.check_alone(workspace, &session)?;
        recover(workspace)?;
        // Read before the success: if another run saves in between, this one must lose.
        let head = workspace.states.head(&self.execution, None)?.and_then(|head| head.record);
        let resumed = resume_last(&*workspace.states, &self.execution, None)?;
        if let Some(ResumeState { checkpoint, .. }) = &resumed {
            self.check_steps(&checkpoint.record)?;
            if number(&checkpoint.record) == self.steps.len() {
                return Ok(checkpoint.values.clone());
            }
        }

        let (agent, owner) = (Some("reference".to_owned()), process::current());
        let start = AgentEvent::SessionStart {
            session: session.clone(),
            agent,
            parent: None,
            owner,
            model: None,
        };
        record(workspace, &start)?;
        let text = format!("execution {}", self.execution);
        record(
            workspace,
            &AgentEvent::Prompt { session: session.clone(), message: None, text, model: None },
        )?;
        let ended = match resumed {
            Some(resumed) => self.resume(workspace, resumed, head),
            None => self.begin(workspace, initial),
        }
        .and_then(|position| self.run_from(workspace, &session, position));
        // The session of an overtaken run belongs to the other run.
        if !matches!(ended, Err(RunError::Overtaken { .. })) {
            let recorded = record(workspace, &AgentEvent::SessionEnd { session, model: None });
            return ended.and_then(|values| Ok(recorded.map(|_| values)?));
        }
        ended
    }

    /// The start is a checkpoint too, so that the first step can fail like any other.
    fn begin(
        &mut self,
        workspace: &mut Workspace,
        initial: &Values,
    ) -> Result<RunPosition, RunError> {
        let start = NewCheckpoint {
            // Of two runs that start together, both save the same or one of them fails.
            attempt: Some(Attempt::FIRST),
            ..NewCheckpoint::success(
                &self.execution,
                StepIndex(0),
                "start",
                (workspace.ambient.now)(),
                initial,
            )
        };
        let (saved, _) = save_step(workspace, &start)?;
        (self.on_event)(&RunEvent::Saved(&saved.record));
        let head = saved.record.key.clone();
        Ok(RunPosition { success: saved.record, values: initial.clone(), head })
    }

    fn resume(
        &mut self,
        workspace: &mut Workspace,
        resumed: ResumeState,
        head: Option<Record>,
    ) -> Result<RunPosition, RunError> {
        (self.on_event)(&RunEvent::Resumed(&resumed));
        let success = resumed.checkpoint.record;
        if self.files_at_start == Files::Too {
            self.take_back(workspace, &success)?;
        }
        match head {
            Some(failed) if failed.status == Status::Failed => self.retry(workspace, failed),
            head => {
                let head = head.map_or_else(|| success.key.clone(), |head| head.key);
                Ok(RunPosition { success, values: resumed.checkpoint.values, head })
            }
        }
    }

    fn run_from(
        &mut self,
        workspace: &mut Workspace,
        session: &SessionId,
        mut at: RunPosition,
    ) -> Result<Values, RunError> {
        while number(&at.success) < self.steps.len() {
            at = self.run_step(workspace, session, &at)?;
        }
        Ok(at.values)
    }

    /// Runs the step after the last success once: a success, or a failure that can be retried.
    fn run_step(
        &mut self,
        workspace: &mut Workspace,
        session: &SessionId,
        at: &RunPosition,
    ) -> Result<RunPosition, RunError> {
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
            (self.on_event)(&RunEvent::NotCaptured(&seen.not_captured));
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
            status: if error.is_none() { Status::Success } else { Status::Failed },
            error: error.as_deref(),
            expect: ExpectedHead::Newest(Some(&at.head.id())),
            ..NewCheckpoint::success(
                &self.execution,
                index,
                &step.name,
                (workspace.ambient.now)(),
                &values,
            )
        };
        let overtaken =
            |source| Err(RunError::Overtaken { execution: self.execution.clone(), source });
        let saved = match save_step(workspace, &new) {
            Ok((SaveOutcome { record, is_new: true }, _)) => record,
            // The other run saved the same state.
            Ok(_) => return overtaken(None),
            Err(ExecutionError::State(source @ StateError::Conflict { .. })) => {
                return overtaken(Some(Box::new(source)));
            }
            Err(error) => return Err(error.into()),
        };
        (self.on_event)(&RunEvent::Saved(&saved));
        if error.is_some() {
            self.take_back(workspace, &at.success)?;
            return self.retry(workspace, saved);
        }
        Ok(RunPosition { head: saved.key.clone(), success: saved, values })
    }

    /// Counts a retry of a step whose files were restored; the position it starts from.
    fn retry(&self, workspace: &Workspace, failed: Record) -> Result<RunPosition, RunError> {
        let step = failed.key.step;
        match retry_from_step(&*workspace.states, &self.execution, step, self.most_retries) {
            Ok(ResumeState { checkpoint, .. }) => Ok(RunPosition {
                success: checkpoint.record,
                values: checkpoint.values,
                head: failed.key,
            }),
            Err(StateError::RetriesExhausted { count, .. }) => Err(RunError::RetriesExhausted {
                checkpoint: failed.key,
                name: failed.step_name,
                retries: count,
                error: failed.error.unwrap_or_default(),
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes back what the execution's session did to files since a success: all or nothing.
    fn take_back(&mut self, workspace: &mut Workspace, success: &Record) -> Result<(), RunError> {
        let id = success.key.id();
        let point = success.point.ok_or(ExecutionError::NoFiles { id })?;
        let mut request = RewindRequest::new(Target::Point(point));
        request.ambiguous = self.uncertain_files;
        let in_the_way = |receipt| RunError::WouldLoseWork {
            success: success.key.clone(),
            receipt: Box::new(receipt),
        };
        let receipt = loop {
            let shown = preview(workspace, &request)?;
            if shown.plan.leaves_something() {
                return Err(in_the_way(shown.receipt().refused()));
            }
            match rewind(workspace, &request, Some(&shown)) {
                // A file was saved between the look and the lock.
                Err(RewindError::Changed(_)) => {}
                done => break done?,
            }
        };
        if !receipt.success {
            return Err(in_the_way(receipt));
        }
        if receipt.changed_something() {
            (self.on_event)(&RunEvent::TakenBack(&receipt));
        }
        Ok(())
    }

    /// A second run would take back what the first is about to do. Two runs that start at the same
    /// moment both pass this check; then the first to save wins.
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

    /// An agent whose steps have changed must not continue an old execution.
    fn check_steps(&self, success: &Record) -> Result<(), RunError> {
        let known = match number(success).checked_sub(1) {
            Some(before) => self.steps.get(before).map(|step| step.name.as_str()),
            None => Some("start"),
        };
        if known == Some(success.step_name.as_str()) {
            return Ok(());
        }
        let (execution, was) = (self.execution.clone(), success.step_name.clone());
        Err(RunError::StepsChanged { execution, step: success.key.step, was })
    }
}

/// The number of successful steps, including this one.
fn number(success: &Record) -> usize {
    success.key.step.0 as usize
}

impl<E: Into<ExecutionError>> From<E> for RunError {
    fn from(error: E) -> Self {
        Self::Execution(Box::new(error.into()))
    }
}
