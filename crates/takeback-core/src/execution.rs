//! Executions of an agent: save a step with its files, resume after a crash, retry a step, roll back to a
//! checkpoint with state and files.
//!
//! States are kept by a [`States`]; the files of a step are a point of the workspace's log.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;
use takeback_store::state::conversation::keep_last;
use takeback_store::state::{
    BranchName, Checkpoint, CheckpointId, CheckpointKey, Effect, ExecutionId, HeadMove, ListQuery,
    ListScope, MoveTo, NewCheckpoint, SaveOutcome, Status, StepIndex, Values,
};
use takeback_store::{Point, PointId, PointKind, SessionId, StateError, States, StoreError, Write};

use crate::event::AgentEvent;
use crate::record::{RecordError, RecordOutcome, record};
use crate::rewind::target::continued_by;
use crate::rewind::{
    AmbiguousPolicy, Exactness, Files, Preview, Receipt, RewindError, RewindRequest, RewindScope,
    Rollback, Target, Terms, preview, rewind,
};
use crate::workspace::Workspace;

/// How often a step is retried by default.
pub const MOST_RETRIES: u32 = 3;

/// Why a step could not be saved or resumed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ExecutionError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Rewind(Box<RewindError>),
    #[error("{id} was saved without its files")]
    NoFiles { id: CheckpointId },
    #[error("the files of {id} are no longer kept")]
    FilesGone { id: CheckpointId },
}

impl From<RewindError> for ExecutionError {
    fn from(error: RewindError) -> Self {
        Self::Rewind(Box::new(error))
    }
}

/// Looks at the files, makes a point if they changed, and saves the checkpoint with it. The point in `new` is
/// ignored.
///
/// If the workspace is locked for too long, the checkpoint is saved without files.
pub fn save_step(
    workspace: &mut Workspace,
    new: &NewCheckpoint<'_>,
) -> Result<(SaveOutcome, RecordOutcome), ExecutionError> {
    let own = SessionId(new.execution.to_string());
    let session = new.session.unwrap_or(&own);
    let event = AgentEvent::Step { session: session.clone(), name: new.step_name.to_owned() };
    let recorded = record(workspace, &event)?;
    let point = match recorded.point {
        Some(point) => Some(unchanged_point(workspace, new, point)?),
        None => None,
    };
    let saved =
        workspace.states.save(&NewCheckpoint { point, session: Some(session), ..new.clone() });
    match saved {
        Ok(saved) => Ok((saved, recorded)),
        Err(error) => {
            drop_unused(workspace, recorded.point)?;
            Err(error.into())
        }
    }
}

/// Drops a point that was made for a checkpoint which was then refused.
fn drop_unused(workspace: &mut Workspace, point: Option<PointId>) -> Result<(), ExecutionError> {
    let Some(point) = point else { return Ok(()) };
    if workspace.states.points()?.contains(&point) {
        return Ok(());
    }
    loop {
        let store = &mut workspace.store;
        let head = store.head().map_err(StateError::from)?;
        let points = store.points().map_err(StateError::from)?;
        let is_own = |known: &Point| known.id == point && known.kind == PointKind::Step;
        let is_plain = |known: &Point| !known.pinned && known.label.is_none();
        if !points.iter().any(|known| is_own(known) && is_plain(known)) {
            return Ok(());
        }
        match store.commit(head, &[Write::DropPoint(point)]) {
            Err(StoreError::Moved) => {}
            done => return Ok(done.map(drop).map_err(StateError::from)?),
        }
    }
}

/// The point that the step already has, if nothing changed since: saving the step again then gives the same
/// checkpoint.
fn unchanged_point(
    workspace: &Workspace,
    new: &NewCheckpoint<'_>,
    point: PointId,
) -> Result<PointId, ExecutionError> {
    let id =
        CheckpointId { execution: new.execution.clone(), step: new.step, attempt: new.attempt };
    let Some(known) = workspace.states.find(&id)?.and_then(|record| record.point) else {
        return Ok(point);
    };
    let points = workspace.store.points().map_err(StateError::from)?;
    let seq_of = |id: PointId| points.iter().find(|point| point.id == id).map(|point| point.seq);
    let is_same = seq_of(known).is_some() && seq_of(known) == seq_of(point);
    Ok(if is_same { known } else { point })
}

/// What an agent resumes from.
#[derive(Debug, Clone, PartialEq)]
pub struct ResumeState {
    /// The last checkpoint that counts.
    pub checkpoint: Checkpoint,
    /// Effects that were intended and never confirmed: they may or may not have happened. The agent
    /// decides what to do about them.
    pub ambiguous: Vec<Effect>,
    /// Effects of steps after the checkpoint: they have happened, and resuming does not undo them.
    pub happened: Vec<Effect>,
}

/// The state, context and variables of a checkpoint, for the agent to resume from.
pub fn resume(states: &dyn States, id: &CheckpointId) -> Result<ResumeState, StateError> {
    let checkpoint = states.load(id)?.ok_or_else(|| StateError::NotFound { id: id.clone() })?;
    let step = checkpoint.record.key.step;
    let (received, ambiguous): (Vec<Effect>, Vec<Effect>) =
        states.effects(&id.execution)?.into_iter().partition(|effect| effect.receipt.is_some());
    let later = |effect: &Effect| effect.step.is_some_and(|of| of > step);
    let happened = received.into_iter().filter(later).collect();
    Ok(ResumeState { checkpoint, ambiguous, happened })
}

/// Shortens every conversation, a list `messages` in the state or the context, to the newest `most` messages:
/// fewer where a tool call would be separated from its result.
pub fn keep_last_messages(values: &mut Values, most: usize) {
    for value in [&mut values.state, &mut values.context] {
        if let Some(Value::Array(messages)) = value.get_mut("messages") {
            messages.drain(..keep_last(messages, most));
        }
    }
}

/// [`resume`] from the last success on a branch, which becomes the current one if it is named. `None`:
/// nothing has succeeded yet, so the agent starts from the beginning.
pub fn resume_last(
    states: &dyn States,
    execution: &ExecutionId,
    branch: Option<&BranchName>,
) -> Result<Option<ResumeState>, StateError> {
    if let Some(branch) = branch {
        states.switch(execution, branch)?;
    }
    match states.last_successful(execution, None, None)? {
        Some(record) => resume(states, &record.key.id()).map(Some),
        None => Ok(None),
    }
}

/// Resumes from the last success before a step, to retry the step: at most `most` times, counted across
/// restarts. Successes from that step on are abandoned, not deleted.
pub fn retry_from_step(
    states: &dyn States,
    execution: &ExecutionId,
    step: StepIndex,
    most: u32,
) -> Result<ResumeState, StateError> {
    let last = states.last_successful(execution, None, Some(step))?;
    let last = last.ok_or(StateError::NoSuccessBefore { step })?;
    states.count_retry(execution, step, most)?;
    let query = ListQuery { execution, scope: ListScope::Branch(None), after: None, limit: None };
    let after = step.0.checked_sub(1).map(StepIndex);
    let later = states.list(&ListQuery {
        after: after.map(|step| (step, takeback_store::state::Attempt::LAST)),
        ..query
    })?;
    // A failed attempt of the step itself stays visible; anything later would look as if it followed the
    // retry.
    let is_left = |record: &takeback_store::state::Record| {
        record.key.step > step || record.status == Status::Success
    };
    if later.records.iter().any(is_left) {
        let to = MoveTo::Checkpoint(&last.key);
        states.move_head(&HeadMove { execution, branch: None, to, by: None })?;
    }
    resume(states, &last.key.id())
}

/// Executions for a menu, each with its text, the most recently saved first.
pub fn history(states: &dyn States) -> Result<Vec<(ExecutionId, String)>, StateError> {
    let executions = states.executions()?.executions.into_iter();
    let shown = executions.filter_map(|execution| {
        let step = execution.head?.step_name;
        let text = format!("Restore {}\n  Step: {step}", execution.id);
        Some((execution.id, text))
    });
    Ok(shown.collect())
}

/// Which files a rollback restores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RollbackFiles {
    /// All that changed since, or nothing at all is done.
    All,
    /// As many as possible; other authors' changes stay.
    Partial,
    /// All, regardless of author.
    Exact,
    /// They stay as they are.
    Stay,
}

/// The rewind that a rollback requests.
pub fn rollback_request(
    workspace: &Workspace,
    to: &CheckpointKey,
    files: RollbackFiles,
) -> Result<RewindRequest, ExecutionError> {
    let id = to.id();
    let record = workspace.states.find(&id)?.ok_or(StateError::NotFound { id: id.clone() })?;
    let target = match (files, record.point) {
        (RollbackFiles::Stay, point) => Target::State(point),
        (_, None) => return Err(ExecutionError::NoFiles { id }),
        (_, Some(point)) => {
            let points = workspace.store.points().map_err(StateError::from)?;
            if !points.iter().any(|known| known.id == point) {
                return Err(ExecutionError::FilesGone { id });
            }
            Target::Point(point)
        }
    };
    let mut request = RewindRequest::new(target);
    if files != RollbackFiles::Stay {
        // After a crash it is unclear what the dead session wrote. If no other session can have written
        // it, this execution did.
        request.ambiguous = AmbiguousPolicy::TakeOwn;
        request.scope = Some(RewindScope::Sessions(sessions_of(workspace, &to.execution)?));
    }
    if files == RollbackFiles::Exact {
        request.exactness = Exactness::Exact;
    }
    request.rollback = Some(Rollback {
        to: to.clone(),
        terms: match files {
            RollbackFiles::All | RollbackFiles::Exact => Terms::AllOrNothing,
            RollbackFiles::Partial | RollbackFiles::Stay => Terms::Partly,
        },
        files: match files {
            RollbackFiles::Stay => Files::Stay,
            RollbackFiles::All | RollbackFiles::Partial | RollbackFiles::Exact => Files::Too,
        },
    });
    Ok(request)
}

/// The sessions that an execution was saved in, as far as known, and those that continue them: an execution
/// that resumes after a crash is in another session.
fn sessions_of(
    workspace: &Workspace,
    execution: &ExecutionId,
) -> Result<BTreeSet<SessionId>, ExecutionError> {
    let query = ListQuery { execution, scope: ListScope::All, after: None, limit: None };
    let records = workspace.states.list(&query)?.records;
    let carried: HashSet<PointId> = records.iter().filter_map(|record| record.point).collect();
    let points = workspace.store.points().map_err(StateError::from)?;
    let mut own: BTreeSet<SessionId> = points
        .into_iter()
        .filter(|point| carried.contains(&point.id))
        .filter_map(|point| point.session)
        .collect();
    let executions = workspace.states.executions()?.executions;
    let last = executions.into_iter().find(|one| one.id == *execution);
    own.extend(last.and_then(|one| one.session));
    let sessions = workspace.store.sessions().map_err(StateError::from)?;
    Ok(own.iter().flat_map(|session| continued_by(&sessions, session)).collect())
}

/// What [`rollback_to`] would do.
pub fn preview_rollback(
    workspace: &mut Workspace,
    to: &CheckpointKey,
    files: RollbackFiles,
) -> Result<Preview, ExecutionError> {
    let request = rollback_request(workspace, to, files)?;
    Ok(preview(workspace, &request)?)
}

/// Restores the agent's state and the workspace to a checkpoint: both, or nothing at all. `undo` takes it
/// back.
pub fn rollback_to(
    workspace: &mut Workspace,
    to: &CheckpointKey,
    files: RollbackFiles,
) -> Result<Receipt, ExecutionError> {
    let request = rollback_request(workspace, to, files)?;
    Ok(rewind(workspace, &request, None)?)
}
