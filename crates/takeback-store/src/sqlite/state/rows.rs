//! The SQL of agents' states: rows in, rows out.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::blob::Digest;
use crate::id::{PointId, RewindId, SessionId, Timestamp};
use crate::state::tree::{Broken, NewNodes};
use crate::state::{
    Attempt, BranchName, CheckpointKey, ExecutionId, Record, StateError, Status, StepIndex,
};

/// What goes wrong with rows: the database, or what stands in it.
#[derive(Debug)]
pub(super) enum RowError {
    Sqlite(rusqlite::Error),
    State(StateError),
    Broken(Broken),
    /// Nodes that were known by their numbers have been swept since.
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

impl From<Broken> for RowError {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

pub(super) type Result<T> = std::result::Result<T, RowError>;

#[derive(Debug, Clone, Copy)]
pub(super) struct ExecutionRow {
    pub(super) id: i64,
    /// The current one.
    pub(super) branch: i64,
    pub(super) session: Option<i64>,
}

#[derive(Debug, Clone)]
pub(super) struct BranchRow {
    pub(super) id: i64,
    pub(super) name: BranchName,
    pub(super) line: i64,
}

/// A step as it stands in its row, without its values.
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
    name.ok_or_else(|| damaged(format!("the name of {of}"), "it is none"))
}

// --- branches and lines -------------------------------------------------------------------------

pub(super) fn branch_named(
    db: &Connection,
    execution: i64,
    name: &BranchName,
) -> Result<Option<BranchRow>> {
    let mut select =
        db.prepare_cached("SELECT id, line FROM branch WHERE execution = ? AND name = ?")?;
    let row = select.query_row(params![execution, name.as_str().as_bytes()], |row| {
        Ok(BranchRow { id: row.get(0)?, name: name.clone(), line: row.get(1)? })
    });
    Ok(row.optional()?)
}

pub(super) fn branch(db: &Connection, id: i64) -> Result<BranchRow> {
    let mut select = db.prepare_cached("SELECT name, line FROM branch WHERE id = ?")?;
    let row = select.query_row([id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let (bytes, line) = row.ok_or_else(|| damaged(format!("branch {id}"), "it is not there"))?;
    Ok(BranchRow { id, name: name(bytes, "a branch", BranchName::new)?, line })
}

pub(super) fn branches(db: &Connection, execution: i64) -> Result<Vec<BranchRow>> {
    let mut select =
        db.prepare_cached("SELECT id, name, line FROM branch WHERE execution = ? ORDER BY id")?;
    let rows = select.query_and_then([execution], |row| {
        let name = name(row.get(1)?, "a branch", BranchName::new)?;
        Ok(BranchRow { id: row.get(0)?, name, line: row.get(2)? })
    })?;
    rows.collect()
}

pub(super) fn insert_branch(db: &Connection, execution: i64, name: &BranchName) -> Result<i64> {
    let mut insert =
        db.prepare_cached("INSERT INTO branch (execution, name, line) VALUES (?, ?, 0)")?;
    Ok(insert.insert(params![execution, name.as_str().as_bytes()])?)
}

pub(super) fn rename_branch(db: &Connection, branch: i64, name: &BranchName) -> Result<()> {
    let mut update = db.prepare_cached("UPDATE branch SET name = ? WHERE id = ?")?;
    update.execute(params![name.as_str().as_bytes(), branch])?;
    Ok(())
}

pub(super) fn set_current(db: &Connection, execution: i64, branch: i64) -> Result<()> {
    let mut update = db.prepare_cached("UPDATE execution SET branch = ? WHERE id = ?")?;
    update.execute([branch, execution])?;
    Ok(())
}

pub(super) fn set_line(db: &Connection, branch: i64, line: i64) -> Result<()> {
    db.prepare_cached("UPDATE branch SET line = ? WHERE id = ?")?.execute([line, branch])?;
    Ok(())
}

/// A line that begins after a step, or at the beginning.
pub(super) fn insert_line(
    db: &Connection,
    execution: i64,
    branch: i64,
    after: Option<&StepRow>,
) -> Result<i64> {
    let mut insert = db.prepare_cached(
        "INSERT INTO line (execution, branch, parent, forked_at, head) VALUES (?1, ?2, ?3, ?4, ?4)",
    )?;
    let (parent, forked_at) = (after.map(|step| step.line), after.map(|step| step.id));
    Ok(insert.insert(params![execution, branch, parent, forked_at])?)
}

/// The branch that a rewind moved, the line it left, and the one it went to.
pub(super) fn head_move(
    db: &Connection,
    execution: i64,
    id: RewindId,
) -> Result<Option<(i64, i64, i64)>> {
    let mut select = db.prepare_cached(
        "SELECT branch, left_line, line FROM head_move WHERE rewind = ? AND execution = ?",
    )?;
    let row = select.query_row([id.0.cast_signed(), execution], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    });
    Ok(row.optional()?)
}

pub(super) fn insert_head_move(
    db: &Connection,
    execution: i64,
    id: RewindId,
    (branch, from, to): (i64, i64, i64),
) -> Result<()> {
    let mut insert = db.prepare_cached("INSERT INTO head_move VALUES (?, ?, ?, ?, ?)")?;
    insert.execute([id.0.cast_signed(), execution, branch, from, to])?;
    Ok(())
}

pub(super) fn has_line(db: &Connection, execution: i64, line: i64) -> Result<bool> {
    let mut select = db.prepare_cached("SELECT 1 FROM line WHERE id = ? AND execution = ?")?;
    Ok(select.exists([line, execution])?)
}

pub(super) fn head_of(db: &Connection, line: i64) -> Result<Option<i64>> {
    let mut select = db.prepare_cached("SELECT head FROM line WHERE id = ?")?;
    Ok(select.query_row([line], |row| row.get(0)).optional()?.flatten())
}

pub(super) fn set_head(db: &Connection, line: i64, head: i64) -> Result<()> {
    db.prepare_cached("UPDATE line SET head = ? WHERE id = ?")?.execute([head, line])?;
    Ok(())
}

/// The lines that lead to the end of one, each with the last step that counts on it.
#[derive(Debug, Clone, Default)]
pub(super) struct Lineage(Vec<(i64, i64)>);

impl Lineage {
    pub(super) fn of(db: &Connection, line: i64) -> Result<Self> {
        let mut select = db.prepare_cached("SELECT parent, forked_at FROM line WHERE id = ?")?;
        let mut lines = vec![(line, i64::MAX)];
        let mut at = line;
        loop {
            let row = select
                .query_row([at], |row| Ok((row.get::<_, Option<i64>>(0)?, row.get(1)?)))
                .optional()?;
            let Some((Some(parent), Some(until))) = row else { return Ok(Self(lines)) };
            // A parent is older than its child: so this ends.
            if parent >= at {
                return Err(damaged(format!("line {at}"), "it begins on a later one"));
            }
            lines.push((parent, until));
            at = parent;
        }
    }

    pub(super) fn has(&self, step: &StepRow) -> bool {
        // A line may be left and come back to: only the nearest visit counts, and a cut further up
        // the way cuts off all that is behind it.
        let mut most = i64::MAX;
        self.0.iter().any(|(line, until)| {
            most = most.min(*until);
            *line == step.line && step.id <= most
        })
    }
}

// --- steps --------------------------------------------------------------------------------------

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

/// The steps of an execution after a place, by step and attempt; `take` says whether to go on.
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

/// The steps of an execution before one, the last first, of each its newest attempt first.
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

/// The number of an attempt and that of its parent, whatever else stands in its row.
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

/// Takes one step out: what follows it follows what was before it, and no line begins after it.
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

/// The last step that an execution, which has steps, has on whatever line.
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

/// A row as its users see it.
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

// --- nodes --------------------------------------------------------------------------------------

/// Gives every node its number: that of an equal one, or a new one.
pub(super) fn keep_nodes(db: &Connection, new: NewNodes) -> Result<()> {
    let mut select = db.prepare_cached("SELECT id, rest FROM node WHERE start = ?")?;
    let mut insert = db.prepare_cached("INSERT INTO node (start, rest, body) VALUES (?, ?, ?)")?;
    for node in new.nodes {
        let part = node.part.clone();
        let (start, rest) = part.digest.0.split_first_chunk::<8>().expect("a digest has 32 bytes");
        let start = i64::from_le_bytes(*start);
        let mut same = None;
        let mut rows = select.query([start])?;
        while let Some(row) = rows.next()? {
            if row.get_ref(1)?.as_blob().is_ok_and(|other| other == rest) {
                same = Some(row.get(0)?);
                break;
            }
        }
        let number: i64 = match same {
            Some(number) => number,
            None => insert.insert(params![start, rest, node.body.packed()])?,
        };
        part.set_number(number.cast_unsigned());
    }
    Ok(())
}

/// How many steps have ever been deleted. The number of one that was may be that of another since.
pub(super) fn deleted(db: &Connection) -> Result<i64> {
    let mut select = db.prepare_cached("SELECT steps_deleted FROM meta")?;
    Ok(select.query_row([], |row| row.get(0))?)
}

/// How often nodes have been swept.
pub(super) fn sweeps(db: &Connection) -> Result<i64> {
    let mut select = db.prepare_cached("SELECT state_sweeps FROM meta")?;
    Ok(select.query_row([], |row| row.get(0))?)
}

/// The bodies of steps after one, and of all documents.
pub(super) fn each_body(
    db: &Connection,
    after: i64,
    take: &mut dyn FnMut(Vec<u8>) -> Result<()>,
) -> Result<i64> {
    let mut last = after;
    let mut select = db.prepare("SELECT id, body FROM step WHERE id > ? ORDER BY id")?;
    let mut rows = select.query([after])?;
    while let Some(row) = rows.next()? {
        last = row.get(0)?;
        take(row.get(1)?)?;
    }
    let mut select = db.prepare("SELECT body FROM document")?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        take(row.get(0)?)?;
    }
    Ok(last)
}

/// Every step with its execution, to be looked at.
pub(super) fn each_step(
    db: &Connection,
    take: &mut dyn FnMut(Result<(ExecutionId, StepRow)>),
) -> Result<()> {
    let columns = STEP.split(", ").map(|column| format!("step.{column}")).collect::<Vec<_>>();
    let mut select = db.prepare(&format!(
        "SELECT {}, execution.name FROM step JOIN execution ON execution.id = step.execution
         ORDER BY step.id",
        columns.join(", ")
    ))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        take(
            step_row(row)
                .and_then(|step| Ok((name(row.get(11)?, "an execution", ExecutionId::new)?, step))),
        );
    }
    Ok(())
}

pub(super) fn sweep(db: &Connection, is_used: &dyn Fn(u64) -> bool) -> Result<()> {
    let unused: Vec<i64> = {
        let mut select = db.prepare("SELECT id FROM node")?;
        let ids = select.query_map([], |row| row.get::<_, i64>(0))?;
        ids.filter(|id| !matches!(id, Ok(id) if is_used(id.cast_unsigned())))
            .collect::<rusqlite::Result<_>>()?
    };
    let mut delete = db.prepare("DELETE FROM node WHERE id = ?")?;
    for id in unused {
        delete.execute([id])?;
    }
    db.execute("UPDATE meta SET state_sweeps = state_sweeps + 1", [])?;
    Ok(())
}

pub(super) fn vacuum(db: &Connection) -> Result<()> {
    for pragma in ["PRAGMA incremental_vacuum", "PRAGMA wal_checkpoint(TRUNCATE)"] {
        let mut statement = db.prepare(pragma)?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
    }
    Ok(())
}
