//! Takeback's state store, as an agent uses it.

use std::path::Path;
use std::time::Instant;

use takeback_bench::Result;
use takeback_bench::measure::millis;
use takeback_store::state::{
    BranchName, CheckpointKey, ExecutionId, Expect, HeadMove, MoveTo, NewCheckpoint, StateStore,
    Status, StepIndex, Values,
};
use takeback_store::{SqliteStates, Timestamp};

/// The store that is measured.
pub(crate) fn open(folder: &Path) -> Result<Box<dyn StateStore>> {
    Ok(Box::new(SqliteStates::create(folder)?))
}

/// One agent and where it stands.
pub(crate) struct Agent<'a> {
    store: &'a dyn StateStore,
    execution: ExecutionId,
    steps: u32,
}

impl<'a> Agent<'a> {
    pub(crate) fn new(store: &'a dyn StateStore, name: &str) -> Result<Self> {
        Ok(Self { store, execution: ExecutionId::new(name)?, steps: 0 })
    }

    /// Saves one more step; how many milliseconds that took.
    pub(crate) fn put(&mut self, values: &Values) -> Result<f64> {
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
            expect: Expect::Anything,
            point: None,
            session: None,
        };
        let began = Instant::now();
        let saved = self.store.save(&new)?;
        let took = millis(began.elapsed());
        if saved.is_new { Ok(took) } else { Err("a step was there already".into()) }
    }

    /// The values at the head of the current branch.
    pub(crate) fn latest(&self) -> Result<Values> {
        let head = self.store.head(&self.execution, None)?.ok_or("there is no execution")?;
        let record = head.record.ok_or("there is no step")?;
        let checkpoint = self.store.load(&record.id())?.ok_or("the head is not there")?;
        Ok(checkpoint.values)
    }

    /// The key of an earlier step.
    pub(crate) fn key(&self, step: u32) -> Result<CheckpointKey> {
        let execution = self.execution.clone();
        let id =
            takeback_store::state::CheckpointId { execution, step: StepIndex(step), attempt: None };
        Ok(self.store.find(&id)?.ok_or_else(|| format!("{id} is not there"))?.key)
    }

    /// How many milliseconds a fork took.
    pub(crate) fn fork(&self, from: &CheckpointKey, name: &str) -> Result<f64> {
        let name = BranchName::new(name)?;
        let began = Instant::now();
        self.store.fork(from, &name)?;
        Ok(millis(began.elapsed()))
    }

    pub(crate) fn switch(&self, branch: &str) -> Result<()> {
        Ok(self.store.switch(&self.execution, &BranchName::new(branch)?)?)
    }

    /// Rolls back, and then undoes that; how many milliseconds each took.
    pub(crate) fn roll_back(&self, to: &CheckpointKey) -> Result<(f64, f64)> {
        let go = |to: MoveTo<'_>| -> Result<_> {
            let step = HeadMove { execution: &self.execution, branch: None, to, by: None };
            let began = Instant::now();
            let moved = self.store.move_head(&step)?;
            Ok((moved, millis(began.elapsed())))
        };
        let (moved, back_ms) = go(MoveTo::Checkpoint(to))?;
        let head = self.store.head(&self.execution, None)?.and_then(|head| head.record);
        if head.map(|record| record.key).as_ref() != Some(to) {
            return Err(format!("the head is not at {to} after the rollback").into());
        }
        let (_, undo_ms) = go(MoveTo::Line(moved.from))?;
        Ok((back_ms, undo_ms))
    }
}
