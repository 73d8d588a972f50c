//! An agent's state that moves together with the files: from which head to which.

use serde::{Deserialize, Serialize};
use takeback_store::state::{
    Attempt, BranchName, CheckpointKey, ExecutionId, HeadMove, LineId, MoveTo, StepIndex,
};
use takeback_store::{RewindId, RewindKind, RewindRecord, RewindState, StateError, States};

use super::error::RewindError;
use super::journal;
use super::plan::Plan;
use super::receipt::{Receipt, StateReceipt};
use super::request::RewindRequest;
use crate::workspace::Workspace;

/// A head that will be moved. Part of a promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateMove {
    /// The execution.
    pub execution: ExecutionId,
    /// The branch.
    pub branch: BranchName,
    /// The line that the branch is on: taking this back returns to it.
    pub from: LineId,
    /// What it moves to.
    pub to: StateGoal,
    /// When it is moved.
    pub terms: Terms,
    /// Whether the files move with it.
    pub files: Files,
}

/// What a branch moves to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StateGoal {
    /// This checkpoint.
    Checkpoint {
        /// Its step.
        step: StepIndex,
        /// Its attempt.
        attempt: Attempt,
    },
    /// The line that it was on before.
    Line(LineId),
    /// The agent has continued since: what it saved is not abandoned.
    Stay,
}

/// What to do if some file cannot be restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Terms {
    /// Do nothing at all.
    AllOrNothing,
    /// Restore the state, with as many files as possible.
    Partly,
}

/// Whether files are restored too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Files {
    /// The files are restored as well.
    Too,
    /// The files stay as they are.
    Stay,
}

/// A request to return the state of an execution to a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollback {
    /// The checkpoint.
    pub to: CheckpointKey,
    /// When the state is moved.
    pub terms: Terms,
    /// Whether the files move with it.
    pub files: Files,
}

impl StateMove {
    /// From the head of the current branch to the checkpoint.
    pub(super) fn back_to(states: &dyn States, rollback: &Rollback) -> Result<Self, StateError> {
        let CheckpointKey { execution, step, attempt } = &rollback.to;
        if states.find(&rollback.to.id())?.is_none() {
            return Err(StateError::NotFound { id: rollback.to.id() });
        }
        let head = states.head(execution, None)?;
        let head = head.ok_or_else(|| StateError::NoExecution(execution.clone()))?;
        Ok(Self {
            execution: execution.clone(),
            branch: head.branch,
            from: head.line,
            to: StateGoal::Checkpoint { step: *step, attempt: *attempt },
            terms: rollback.terms,
            files: rollback.files,
        })
    }

    /// Whether it moves anything.
    #[must_use]
    pub fn is_move(&self) -> bool {
        self.to != StateGoal::Stay
    }

    /// What takes back the move of a rewind, if it had one and did it.
    pub(super) fn without(
        states: &dyn States,
        rewind: &RewindRecord,
    ) -> Result<Option<Self>, StateError> {
        let Some(moved) = moved_state(rewind) else { return Ok(None) };
        let Some(done) = journal::plan_header_of(rewind).ok().and_then(|plan| plan.state) else {
            return Ok(None);
        };
        // The execution may have been deleted since, and another one have its name.
        if !states.has_line(&done.execution, done.from)? {
            return Ok(None);
        }
        let head = match states.head(&done.execution, Some(&done.branch)) {
            Ok(Some(head)) => head,
            Ok(None) | Err(StateError::NoBranch { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let checkpoint = head.record.map(|record| record.key.to_string());
        let to = match checkpoint == moved.checkpoint {
            true => StateGoal::Line(done.from),
            false => StateGoal::Stay,
        };
        Ok(Some(Self { from: head.line, to, terms: Terms::Partly, ..done }))
    }

    /// Returns to where it was made, whether it was done or not.
    pub(super) fn reversed(&self) -> Self {
        Self { to: StateGoal::Line(self.from), terms: Terms::Partly, ..self.clone() }
    }

    /// Moves the head, once for each rewind, and returns the head.
    pub(super) fn move_head(
        &self,
        states: &dyn States,
        by: RewindId,
    ) -> Result<StateReceipt, StateError> {
        let key;
        let to = match self.to {
            StateGoal::Checkpoint { step, attempt } => {
                key = CheckpointKey { execution: self.execution.clone(), step, attempt };
                MoveTo::Checkpoint(&key)
            }
            StateGoal::Line(line) => MoveTo::Line(line),
            StateGoal::Stay => return Ok(self.receipt()),
        };
        states.move_head(&HeadMove {
            execution: &self.execution,
            branch: Some(&self.branch),
            to,
            by: Some(by),
        })?;
        let head = states.head(&self.execution, Some(&self.branch))?;
        let checkpoint = head.and_then(|head| head.record).map(|record| record.key.to_string());
        Ok(StateReceipt { checkpoint, moved: true, ..self.receipt() })
    }

    /// The receipt while nothing is moved.
    #[must_use]
    pub fn receipt(&self) -> StateReceipt {
        let checkpoint = match self.to {
            StateGoal::Checkpoint { step, attempt } => {
                let execution = self.execution.clone();
                Some(CheckpointKey { execution, step, attempt }.to_string())
            }
            StateGoal::Line(_) | StateGoal::Stay => None,
        };
        StateReceipt {
            execution: self.execution.clone(),
            branch: self.branch.clone(),
            checkpoint,
            moved: false,
            stays: !self.is_move(),
            error: None,
        }
    }
}

/// The move that a rewind did, if it did one.
fn moved_state(rewind: &RewindRecord) -> Option<StateReceipt> {
    journal::receipt_of(rewind)?.state.filter(|state| state.moved)
}

/// The move that belongs to a request.
pub(super) fn select(
    workspace: &Workspace,
    request: &RewindRequest,
    kind: RewindKind,
) -> Result<Option<StateMove>, RewindError> {
    let states = &*workspace.states;
    match kind {
        RewindKind::Rewind { .. } => match &request.rollback {
            Some(rollback) => Ok(Some(StateMove::back_to(states, rollback)?)),
            None => Ok(None),
        },
        // Taking back some paths of a rewind is not taking back the rewind.
        RewindKind::Undo { .. } | RewindKind::Redo { .. } if !request.paths.is_empty() => Ok(None),
        RewindKind::Undo { of } | RewindKind::Redo { of } => match workspace.store.rewind(of)? {
            Some(record) => Ok(StateMove::without(states, &record)?),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Moves the head, unless the files did not all go where they had to, and adds that to the receipt.
pub(super) fn apply(states: &dyn States, plan: &Plan, by: RewindId, receipt: &mut Receipt) {
    let Some(state) = &plan.state else { return };
    if state.terms == Terms::Partly || receipt.is_whole() {
        let moved = state.move_head(states, by).unwrap_or_else(|error| StateReceipt {
            error: Some(error.to_string()),
            ..state.receipt()
        });
        receipt.success &= moved.moved || !state.is_move();
        receipt.state = Some(moved);
    }
}

/// The state of the journal after that. It stays open if the plan had to be done completely or not at all, and the
/// head did not move: then the plan is reverted.
pub(super) fn state_after(plan: &Plan, receipt: &Receipt) -> RewindState {
    let terms = plan.state.as_ref().map(|state| state.terms);
    let is_moved = receipt.state.as_ref().is_some_and(|state| state.moved);
    match terms == Some(Terms::AllOrNothing) && !is_moved {
        true => RewindState::Open,
        false => RewindState::Done,
    }
}
