//! An agent's state that goes back together with the files: where it stands, and where it is to stand.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use takeback_store::state::{
    Attempt, BranchName, CheckpointKey, ExecutionId, HeadMove, LineId, MoveTo, StepIndex,
};
use takeback_store::{RewindId, RewindRecord, StateError, StateStore};

use super::plan::Plan;
use super::receipt::StateReceipt;

/// A head that is to be moved. Part of a promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateMove {
    pub execution: ExecutionId,
    pub branch: BranchName,
    /// The line that the branch is on: to take this back is to return to it.
    pub from: LineId,
    pub to: StateGoal,
    pub terms: Terms,
    pub files: Files,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StateGoal {
    Checkpoint {
        step: StepIndex,
        attempt: Attempt,
    },
    Line(LineId),
    /// The agent has gone on since: what it saved is not left behind.
    Stay,
}

/// What is to happen if some file cannot go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Terms {
    /// Then nothing at all is done.
    AllOrNothing,
    /// The state goes back, with as many files as can.
    Partly,
}

/// Whether files go back too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Files {
    Too,
    Stay,
}

/// The state of an execution is to go back to a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollback {
    pub to: CheckpointKey,
    pub terms: Terms,
    pub files: Files,
}

impl StateMove {
    /// Where the current branch stands now, and where it is to.
    pub(super) fn back_to(
        states: &dyn StateStore,
        rollback: &Rollback,
    ) -> Result<Self, StateError> {
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
        states: &dyn StateStore,
        rewind: &RewindRecord,
    ) -> Result<Option<Self>, StateError> {
        let plan: Option<Plan> = serde_json::from_str(&rewind.plan).ok();
        let Some(done) = plan.and_then(|plan| plan.state).filter(|_| was_moved(rewind)) else {
            return Ok(None);
        };
        // Its execution may have been deleted since, and another have its name: then there is nothing
        // to take back.
        if !states.has_line(&done.execution, done.from)? {
            return Ok(None);
        }
        let head = match states.head(&done.execution, Some(&done.branch)) {
            Ok(Some(head)) => head,
            Ok(None) | Err(StateError::NoBranch { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let stands = head.record.map(|record| record.key.to_string());
        let to = match stands == left_at(rewind) {
            true => StateGoal::Line(done.from),
            false => StateGoal::Stay,
        };
        Ok(Some(Self { from: head.line, to, terms: Terms::Partly, ..done }))
    }

    /// Returns to where it was made, whether it was done or not.
    pub(super) fn reversed(&self) -> Self {
        Self { to: StateGoal::Line(self.from), terms: Terms::Partly, ..self.clone() }
    }

    /// Moves the head, once for each rewind, and answers where it stands.
    pub(super) fn carry_out(
        &self,
        states: &dyn StateStore,
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

    /// As long as nothing is moved.
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

fn told(rewind: &RewindRecord) -> Value {
    let receipt = rewind.receipt.as_deref();
    let receipt = receipt.and_then(|json| serde_json::from_str::<Value>(json).ok());
    receipt.map_or(Value::Null, |mut receipt| receipt["state"].take())
}

/// Whether a rewind moved a head.
fn was_moved(rewind: &RewindRecord) -> bool {
    told(rewind)["moved"] == true
}

/// The checkpoint at which a rewind left the branch that it moved.
fn left_at(rewind: &RewindRecord) -> Option<String> {
    told(rewind)["checkpoint"].as_str().map(ToOwned::to_owned)
}
