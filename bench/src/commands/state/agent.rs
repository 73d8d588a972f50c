//! An agent that saves its state in Takeback's store.

use std::path::Path;

use takeback_store::state::{
    BranchName, CheckpointKey, ExecutionId, ExpectedHead, HeadMove, MoveTo, NewCheckpoint, States,
    Status, StepIndex, Values,
};
use takeback_store::{SqliteStates, Timestamp};

use crate::Result;
use crate::measure::timed;

pub(super) fn open(folder: &Path) -> Result<Box<dyn States>> {
    Ok(Box::new(SqliteStates::create(folder)?))
}

/// Closes the store without its write-ahead log, which otherwise stays, up to 4 MB, and is reused.
pub(super) fn close(store: Box<dyn States>) -> Result<()> {
    store.collect()?;
    drop(store);
    Ok(())
}

/// One execution and its number of steps.
pub(super) struct Agent<'a> {
    store: &'a dyn States,
    execution: ExecutionId,
    steps: u32,
}

impl<'a> Agent<'a> {
    pub(super) fn new(store: &'a dyn States, name: &str) -> Result<Self> {
        Ok(Self { store, execution: ExecutionId::new(name)?, steps: 0 })
    }

    /// Saves one more step; the milliseconds that took.
    pub(super) fn put(&mut self, values: &Values) -> Result<f64> {
        self.steps += 1;
        let new = NewCheckpoint {
            execution: &self.execution,
            branch: None,
            step: StepIndex(self.steps),
            attempt: None,
            step_name: "think",
            time: Timestamp(1_700_000_000_000 + i64::from(self.steps)),
            status: Status::Success,
            error: None,
            values,
            expect: ExpectedHead::Anything,
            point: None,
            session: None,
        };
        let (saved, ms) = timed(|| Ok(self.store.save(&new)?))?;
        if saved.is_new { Ok(ms) } else { Err("the step exists already".into()) }
    }

    /// The values at the head of the current branch.
    pub(super) fn latest(&self) -> Result<Values> {
        let head = self.store.head(&self.execution, None)?.ok_or("there is no execution")?;
        let record = head.record.ok_or("there is no step")?;
        let checkpoint = self.store.load(&record.id())?.ok_or("the head does not exist")?;
        Ok(checkpoint.values)
    }

    /// The key of an earlier step.
    pub(super) fn key(&self, step: u32) -> Result<CheckpointKey> {
        let execution = self.execution.clone();
        let id =
            takeback_store::state::CheckpointId { execution, step: StepIndex(step), attempt: None };
        Ok(self.store.find(&id)?.ok_or_else(|| format!("{id} does not exist"))?.key)
    }

    /// The milliseconds a fork took.
    pub(super) fn fork(&self, from: &CheckpointKey, name: &str) -> Result<f64> {
        let name = BranchName::new(name)?;
        Ok(timed(|| Ok(self.store.fork(from, &name)?))?.1)
    }

    pub(super) fn switch(&self, branch: &str) -> Result<()> {
        Ok(self.store.switch(&self.execution, &BranchName::new(branch)?)?)
    }

    /// Rolls back, and then undoes that; the milliseconds each took.
    pub(super) fn roll_back(&self, to: &CheckpointKey) -> Result<(f64, f64)> {
        let move_head = |to: MoveTo<'_>| -> Result<_> {
            let step = HeadMove { execution: &self.execution, branch: None, to, by: None };
            timed(|| Ok(self.store.move_head(&step)?))
        };
        let (moved, back_ms) = move_head(MoveTo::Checkpoint(to))?;
        let head = self.store.head(&self.execution, None)?.and_then(|head| head.record);
        if head.map(|record| record.key).as_ref() != Some(to) {
            return Err(format!("the head is not at {to} after the rollback").into());
        }
        let (_, undo_ms) = move_head(MoveTo::Line(moved.from))?;
        Ok((back_ms, undo_ms))
    }
}
