//! Stands where Takeback's SQLite backend will: whole states as JSON, one row each. Not to be measured.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension as _, params};
use serde_json::Value;
use takeback_store::state::{
    Attempt, BranchName, Category, Checkpoint, CheckpointId, CheckpointKey, DocumentKey, Effect,
    ExecutionId, Executions, Head, HeadMove, LineId, ListQuery, MoveTo, Moved, NewCheckpoint,
    NewEffect, Page, Record, Saved, StateError, StateStore, Status, StepIndex, Values,
};
use takeback_store::{PointId, SessionId, Timestamp};

pub(crate) struct StandIn(Mutex<Connection>);

type Result<T> = std::result::Result<T, StateError>;

fn missing<T>() -> Result<T> {
    Err(StateError::Unsupported { what: "this", store: "a stand-in" })
}

impl StandIn {
    pub(crate) fn open(folder: &Path) -> rusqlite::Result<Self> {
        let connection = Connection::open(folder.join("stand-in.db"))?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL;
             PRAGMA synchronous = FULL;
             CREATE TABLE IF NOT EXISTS step (execution TEXT, step INTEGER, value TEXT, PRIMARY KEY (execution, step));
             CREATE TABLE IF NOT EXISTS head (execution TEXT PRIMARY KEY, step INTEGER);",
        )?;
        Ok(Self(Mutex::new(connection)))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_head(&self, execution: &ExecutionId, step: StepIndex) -> Result<()> {
        self.lock()
            .prepare_cached("INSERT OR REPLACE INTO head VALUES (?1, ?2)")
            .and_then(|mut statement| statement.execute(params![execution.as_str(), step.0]))
            .map_err(failed)?;
        Ok(())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` wants it")]
fn failed(error: rusqlite::Error) -> StateError {
    StateError::NotCommitted { why: error.to_string() }
}

fn record(execution: &ExecutionId, step: StepIndex) -> Record {
    Record {
        key: CheckpointKey { execution: execution.clone(), step, attempt: Attempt::FIRST },
        is_newest: true,
        branch: BranchName::main(),
        parent: None,
        step_name: String::new(),
        time: Timestamp(0),
        status: Status::Success,
        error: None,
        point: None,
    }
}

impl StateStore for StandIn {
    fn save(&self, new: &NewCheckpoint<'_>) -> Result<Saved> {
        let mut connection = self.lock();
        let value = new.values.state.to_string();
        let transaction = connection.transaction().map_err(failed)?;
        transaction
            .prepare_cached("INSERT INTO step VALUES (?1, ?2, ?3)")
            .and_then(|mut it| it.execute(params![new.execution.as_str(), new.step.0, value]))
            .map_err(failed)?;
        transaction
            .prepare_cached("INSERT OR REPLACE INTO head VALUES (?1, ?2)")
            .and_then(|mut it| it.execute(params![new.execution.as_str(), new.step.0]))
            .map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok(Saved { record: record(new.execution, new.step), is_new: true })
    }

    fn find(&self, id: &CheckpointId) -> Result<Option<Record>> {
        Ok(Some(record(&id.execution, id.step)))
    }

    fn load(&self, id: &CheckpointId) -> Result<Option<Checkpoint>> {
        let text: Option<String> = self
            .lock()
            .query_row(
                "SELECT value FROM step WHERE execution = ?1 AND step = ?2",
                params![id.execution.as_str(), id.step.0],
                |row| row.get(0),
            )
            .optional()
            .map_err(failed)?;
        let Some(text) = text else { return Ok(None) };
        let state = serde_json::from_str(&text).map_err(|error| StateError::Damaged {
            what: id.to_string(),
            why: error.to_string(),
        })?;
        let values = Values { state, ..Values::default() };
        Ok(Some(Checkpoint { record: record(&id.execution, id.step), values }))
    }

    fn head(&self, execution: &ExecutionId, _: Option<&BranchName>) -> Result<Option<Head>> {
        let step: Option<u32> = self
            .lock()
            .query_row(
                "SELECT step FROM head WHERE execution = ?1",
                params![execution.as_str()],
                |row| row.get(0),
            )
            .optional()
            .map_err(failed)?;
        Ok(step.map(|step| Head {
            branch: BranchName::main(),
            line: LineId(u64::from(step)),
            record: Some(record(execution, StepIndex(step))),
        }))
    }

    fn fork(&self, from: &CheckpointKey, _: &BranchName, _: Timestamp) -> Result<()> {
        self.set_head(&from.execution, from.step)
    }

    fn switch(&self, _: &ExecutionId, _: &BranchName) -> Result<()> {
        Ok(())
    }

    fn move_head(&self, step: &HeadMove<'_>) -> Result<Moved> {
        let head = self.head(step.execution, None)?;
        let from = head.map_or(LineId(0), |head| head.line);
        let to = match step.to {
            MoveTo::Checkpoint(key) => key.step,
            MoveTo::Line(line) => StepIndex(u32::try_from(line.0).unwrap_or(u32::MAX)),
        };
        self.set_head(step.execution, to)?;
        Ok(Moved { branch: BranchName::main(), from, to: LineId(u64::from(to.0)) })
    }

    fn list(&self, _: &ListQuery<'_>) -> Result<Page> {
        missing()
    }
    fn last_successful(
        &self,
        _: &ExecutionId,
        _: Option<&BranchName>,
        _: Option<StepIndex>,
    ) -> Result<Option<Record>> {
        missing()
    }
    fn executions(&self) -> Result<Executions> {
        missing()
    }
    fn delete(&self, _: &CheckpointKey) -> Result<bool> {
        missing()
    }
    fn delete_execution(&self, _: &ExecutionId) -> Result<bool> {
        missing()
    }
    fn delete_of_session(&self, _: &SessionId) -> Result<usize> {
        missing()
    }
    fn count_retry(&self, _: &ExecutionId, _: StepIndex, _: u32) -> Result<u32> {
        missing()
    }
    fn intend(&self, _: &NewEffect<'_>) -> Result<Effect> {
        missing()
    }
    fn receive(&self, _: &ExecutionId, _: &str, _: &Value, _: Timestamp) -> Result<()> {
        missing()
    }
    fn withdraw(&self, _: &ExecutionId, _: &str) -> Result<bool> {
        missing()
    }
    fn effects(&self, _: &ExecutionId) -> Result<Vec<Effect>> {
        missing()
    }
    fn points(&self) -> Result<HashSet<PointId>> {
        missing()
    }
    fn put_document(&self, _: Category, _: &DocumentKey, _: &Value) -> Result<()> {
        missing()
    }
    fn document(&self, _: Category, _: &DocumentKey) -> Result<Option<Value>> {
        missing()
    }
    fn documents(&self, _: Category) -> Result<Vec<DocumentKey>> {
        missing()
    }
    fn delete_document(&self, _: Category, _: &DocumentKey) -> Result<bool> {
        missing()
    }
    fn collect(&self) -> Result<()> {
        missing()
    }
    fn check(&self) -> Result<Vec<String>> {
        missing()
    }
}
