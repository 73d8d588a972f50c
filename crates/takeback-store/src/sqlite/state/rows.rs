//! The SQL of agents' states: rows in, rows out.

mod lines;
mod nodes;

use rusqlite::{Connection, OptionalExtension as _, Row, params};

pub(super) use self::lines::{
    Lineage, branch, branch_named, branches, has_line, head_move, head_of, insert_branch,
    insert_head_move, insert_line, rename_branch, set_current, set_head, set_line,
};
pub(super) use self::nodes::{deleted, each_body, each_step, keep_nodes, sweep, sweeps, vacuum};
use super::tree::TreeError;
use crate::blob::Digest;
use crate::id::{PointId, SessionId, Timestamp};
use crate::state::{
    Attempt, BranchName, CheckpointKey, ExecutionId, Record, StateError, Status, StepIndex,
};

/// An error of the database, or of what is in it.
#[derive(Debug)]
pub(super) enum RowError {
    Sqlite(rusqlite::Error),
    State(StateError),
    Tree(TreeError),
    /// A sweep may have deleted nodes that a cached value refers to: save again without the cache.
    Swept,
}

impl From<rusqlite::Error> for RowError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StateError> for RowError {
    fn from(error: StateError) -> Self {
        Self::State(error)
    }
}

impl From<TreeError> for RowError {
    fn from(broken: TreeError) -> Self {
        Self::Tree(broken)
    }
}

pub(super) type Result<T> = std::result::Result<T, RowError>;

#[derive(Debug, Clone, Copy)]
pub(super) struct ExecutionRow {
    pub(super) id: i64,
    /// The current branch.
    pub(super) branch: i64,
    pub(super) session: Option<i64>,
}

#[derive(Debug, Clone)]
pub(super) struct BranchRow {
    pub(super) id: i64,
    pub(super) name: BranchName,
    pub(super) line: i64,
}

/// The row of a step, without its values.
#[derive(Debug, Clone)]
pub(super) struct StepRow {
    pub(super) id: i64,
    pub(super) line: i64,
    pub(super) parent: Option<i64>,
    pub(super) step: StepIndex,
    pub(super) attempt: Attempt,
    pub(super) name: String,
    pub(super) status: Status,
    pub(super) error: Option<String>,
    pub(super) time: Timestamp,
    pub(super) point: Option<PointId>,
    pub(super) digest: Digest,
}

const STEP: &str = "id, line, parent, step, attempt, name, status, error, time, point, digest";

const STATUSES: [(i64, Status); 3] =
    [(0, Status::Success), (1, Status::Failed), (2, Status::Pending)];

fn damaged(what: String, why: &str) -> RowError {
    RowError::State(StateError::Damaged { what, why: why.to_owned() })
}

pub(super) fn execution(db: &Connection, id: &ExecutionId) -> Result<Option<ExecutionRow>> {
    let mut select =
        db.prepare_cached("SELECT id, coalesce(branch, 0), session FROM execution WHERE name = ?")?;
    let row = select.query_row([id.as_str().as_bytes()], |row| {
        Ok(ExecutionRow { id: row.get(0)?, branch: row.get(1)?, session: row.get(2)? })
    });
    Ok(row.optional()?)
}

pub(super) fn insert_execution(db: &Connection, id: &ExecutionId) -> Result<i64> {
    let mut insert = db.prepare_cached("INSERT INTO execution (name) VALUES (?)")?;
    Ok(insert.insert([id.as_str().as_bytes()])?)
}

pub(super) fn delete_execution(db: &Connection, execution: i64) -> Result<()> {
    db.prepare_cached("DELETE FROM execution WHERE id = ?")?.execute([execution])?;
    Ok(())
}

pub(super) fn delete_of_session(db: &Connection, session: &SessionId) -> Result<usize> {
    let mut delete = db.prepare_cached(
        "DELETE FROM execution WHERE session = (SELECT id FROM session WHERE name = ?)",
    )?;
    Ok(delete.execute([&session.0])?)
}

pub(super) fn set_session(
    db: &Connection,
    execution: &ExecutionRow,
    name: &SessionId,
) -> Result<()> {
    let mut select = db.prepare_cached("SELECT id FROM session WHERE name = ?")?;
    let known: Option<i64> = select.query_row([&name.0], |row| row.get(0)).optional()?;
    let session = match known {
        Some(known) => known,
        None => db.prepare_cached("INSERT INTO session (name) VALUES (?)")?.insert([&name.0])?,
    };
    if execution.session != Some(session) {
        let mut update = db.prepare_cached("UPDATE execution SET session = ? WHERE id = ?")?;
        update.execute([session, execution.id])?;
    }
    Ok(())
}

/// An execution with its name, its session, and how many steps it has.
type NamedExecution = (ExecutionRow, ExecutionId, Option<SessionId>, u64);

/// Every execution, the last saved to first.
pub(super) fn executions(db: &Connection) -> Result<Vec<NamedExecution>> {
    let mut select = db.prepare_cached(
        "SELECT execution.id, coalesce(branch, 0), execution.session, execution.name, session.name, steps
         FROM execution
         JOIN (SELECT execution, count(*) AS steps, max(id) AS last FROM step GROUP BY execution)
             ON execution = execution.id
         LEFT JOIN session ON session.id = execution.session
         ORDER BY last DESC",
    )?;
    let rows = select.query_and_then([], |row| {
        let execution = ExecutionRow { id: row.get(0)?, branch: row.get(1)?, session: row.get(2)? };
        let name = name(row.get(3)?, "an execution", ExecutionId::new)?;
        let session: Option<String> = row.get(4)?;
        Ok((execution, name, session.map(SessionId), row.get::<_, i64>(5)?.cast_unsigned()))
    })?;
    rows.collect()
}

fn name<T>(
    bytes: Vec<u8>,
    of: &str,
    parse: impl Fn(String) -> std::result::Result<T, crate::state::InvalidKey>,
) -> Result<T> {
    let name = String::from_utf8(bytes).ok().and_then(|name| parse(name).ok());
    name.ok_or_else(|| damaged(format!("the name of {of}"), "it is not a valid name"))
}

fn step_row(row: &Row<'_>) -> Result<StepRow> {
    let id: i64 = row.get(0)?;
    let broken = |why| damaged(format!("the row of checkpoint number {id}"), why);
    let step = u32::try_from(row.get::<_, i64>(3)?).ok().map(StepIndex);
    let attempt = u32::try_from(row.get::<_, i64>(4)?).ok().and_then(Attempt::new);
    let status: i64 = row.get(6)?;
    let status = STATUSES.into_iter().find(|(number, _)| *number == status);
    let digest = <[u8; 32]>::try_from(row.get_ref(10)?.as_blob().unwrap_or_default());
    Ok(StepRow {
        id,
        line: row.get(1)?,
        parent: row.get(2)?,
        step: step.ok_or_else(|| broken("its step"))?,
        attempt: attempt.ok_or_else(|| broken("its attempt"))?,
        name: row.get(5)?,
        status: status.ok_or_else(|| broken("its status"))?.1,
        error: row.get(7)?,
        time: Timestamp(row.get(8)?),
        point: row.get::<_, Option<i64>>(9)?.map(|id| PointId(id.cast_unsigned())),
        digest: Digest(digest.map_err(|_short| broken("its digest"))?),
    })
}

/// All attempts of a step, the newest first.
pub(super) fn attempts(db: &Connection, execution: i64, step: StepIndex) -> Result<Vec<StepRow>> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {STEP} FROM step WHERE execution = ? AND step = ? ORDER BY attempt DESC"
    ))?;
    let rows = select.query_and_then([execution, i64::from(step.0)], step_row)?;
    rows.collect()
}

pub(super) fn step(db: &Connection, id: i64) -> Result<Option<StepRow>> {
    let mut select = db.prepare_cached(&format!("SELECT {STEP} FROM step WHERE id = ?"))?;
    let mut rows = select.query([id])?;
    rows.next()?.map(step_row).transpose()
}

/// Passes the steps of an execution after a position to `take`, by step and attempt, until it
/// returns false.
pub(super) fn each_step_after(
    db: &Connection,
    execution: i64,
    after: Option<(StepIndex, Attempt)>,
    take: &mut dyn FnMut(Result<StepRow>) -> Result<bool>,
) -> Result<()> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {STEP} FROM step WHERE execution = ?1 AND (step, attempt) > (?2, ?3)
         ORDER BY step, attempt"
    ))?;
    let (step, attempt) = match after {
        Some((step, attempt)) => (i64::from(step.0), i64::from(attempt.0.get())),
        None => (-1, 0),
    };
    let mut rows = select.query([execution, step, attempt])?;
    while let Some(row) = rows.next()? {
        if !take(step_row(row))? {
            break;
        }
    }
    Ok(())
}

/// Passes the steps of an execution before a step to `take`, last step and newest attempt first.
pub(super) fn each_step_before(
    db: &Connection,
    execution: i64,
    before: Option<StepIndex>,
    take: &mut dyn FnMut(StepRow) -> Result<bool>,
) -> Result<()> {
    let mut select = db.prepare_cached(&format!(
        "SELECT {STEP} FROM step WHERE execution = ? AND step < ? ORDER BY step DESC, attempt DESC"
    ))?;
    let before = before.map_or(i64::MAX, |step| i64::from(step.0));
    let mut rows = select.query([execution, before])?;
    while let Some(row) = rows.next()? {
        if !take(step_row(row)?)? {
            break;
        }
    }
    Ok(())
}

pub(super) fn insert_step(
    db: &Connection,
    execution: i64,
    row: &StepRow,
    body: &[u8],
) -> Result<i64> {
    let mut insert = db.prepare_cached(
        "INSERT INTO step (execution, line, parent, step, attempt, name, status, error, time, point, digest, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
    )?;
    let status = STATUSES.iter().find(|(_, status)| *status == row.status);
    Ok(insert.insert(params![
        execution,
        row.line,
        row.parent,
        row.step.0,
        row.attempt.0.get(),
        row.name,
        status.expect("every status has its number").0,
        row.error,
        row.time.0,
        row.point.map(|id| id.0.cast_signed()),
        row.digest.0,
        body,
    ])?)
}

pub(super) fn body_of(db: &Connection, step: i64) -> Result<Vec<u8>> {
    let mut select = db.prepare_cached("SELECT body FROM step WHERE id = ?")?;
    Ok(select.query_row([step], |row| row.get(0))?)
}

/// The row numbers of an attempt and of its parent. Works even if the rest of the row is damaged.
pub(super) fn place_of(
    db: &Connection,
    execution: i64,
    step: StepIndex,
    attempt: Attempt,
) -> Result<Option<(i64, Option<i64>)>> {
    let mut select = db.prepare_cached(
        "SELECT id, parent FROM step WHERE execution = ? AND step = ? AND attempt = ?",
    )?;
    let key = params![execution, step.0, attempt.0.get()];
    Ok(select.query_row(key, |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

/// Deletes one step. Its children get its parent, and lines that began after it begin after its
/// parent.
pub(super) fn delete_step(
    db: &Connection,
    execution: i64,
    (id, parent): (i64, Option<i64>),
) -> Result<()> {
    let follow = [
        "UPDATE step SET parent = ?3 WHERE execution = ?1 AND parent = ?2",
        "UPDATE line SET head = ?3 WHERE execution = ?1 AND head = ?2",
    ];
    for statement in follow {
        db.prepare_cached(statement)?.execute(params![execution, id, parent])?;
    }
    let gone = [
        "UPDATE line SET forked_at = ?2 - 1 WHERE execution = ?1 AND forked_at = ?2",
        "DELETE FROM step WHERE execution = ?1 AND id = ?2",
    ];
    for statement in gone {
        db.prepare_cached(statement)?.execute([execution, id])?;
    }
    Ok(())
}

/// The highest step of an execution on any line. The execution must have steps.
pub(super) fn last_step(db: &Connection, execution: i64) -> Result<StepIndex> {
    let mut select = db.prepare_cached("SELECT max(step) FROM step WHERE execution = ?")?;
    Ok(StepIndex(select.query_row([execution], |row| row.get(0))?))
}

pub(super) fn has_steps(db: &Connection, execution: i64) -> Result<bool> {
    Ok(db.prepare_cached("SELECT 1 FROM step WHERE execution = ?")?.exists([execution])?)
}

pub(super) fn points(db: &Connection) -> Result<Vec<PointId>> {
    let mut select =
        db.prepare_cached("SELECT DISTINCT point FROM step WHERE point IS NOT NULL")?;
    let points = select.query_map([], |row| Ok(PointId(row.get::<_, i64>(0)?.cast_unsigned())))?;
    Ok(points.collect::<rusqlite::Result<_>>()?)
}

/// The public record of a row.
pub(super) fn record(
    db: &Connection,
    execution: &ExecutionId,
    row: StepRow,
    is_newest: bool,
) -> Result<Record> {
    let mut select = db.prepare_cached(
        "SELECT branch.name FROM line JOIN branch ON branch.id = line.branch WHERE line.id = ?",
    )?;
    let branch = select.query_row([row.line], |row| row.get::<_, Vec<u8>>(0)).optional()?;
    let branch = branch.ok_or_else(|| damaged(format!("line {}", row.line), "it has no branch"))?;
    let parent = match row.parent {
        Some(parent) => {
            let mut select = db.prepare_cached("SELECT step, attempt FROM step WHERE id = ?")?;
            let parent = select
                .query_row([parent], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?)))
                .optional()?;
            parent.and_then(|(step, attempt)| Some((StepIndex(step), Attempt::new(attempt)?)))
        }
        None => None,
    };
    Ok(Record {
        key: CheckpointKey { execution: execution.clone(), step: row.step, attempt: row.attempt },
        is_newest,
        branch: name(branch, "a branch", BranchName::new)?,
        parent,
        step_name: row.name,
        time: row.time,
        status: row.status,
        error: row.error,
        point: row.point,
    })
}
