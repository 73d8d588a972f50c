//! What the tables hold, read back as values.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::encoding::{self, kinds, signed, unsigned};
use super::pack::{HEADER, Location};
use crate::blob::{Digest, Encoding};
use crate::chain::Sum;
use crate::change::{Author, Change, Correction};
use crate::entry::{Entry, Lack};
use crate::id::{CallId, PointId, RewindId, Seq, SessionId, Timestamp, TurnId};
use crate::path::WorkPath;
use crate::rewind::{RewindKind, RewindRecord};
use crate::session::{Call, CallKind, Process, Session, Turn};
use crate::store::{Head, Usage};

/// Why a row could not be read or written.
#[derive(Debug)]
pub(super) enum RowError {
    Sqlite(rusqlite::Error),
    /// The row is there, but what stands in it is not what Takeback writes.
    Damaged {
        what: String,
        why: &'static str,
    },
}

impl From<rusqlite::Error> for RowError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

pub(super) type Rows<T> = Result<Vec<T>, RowError>;

// --- head ------------------------------------------------------------------------------------

pub(super) fn head(db: &Connection) -> Result<Head, RowError> {
    let mut select = db.prepare_cached("SELECT revision, seq FROM meta")?;
    Ok(select.query_row([], |row| {
        Ok(Head { revision: unsigned(row.get(0)?), seq: Seq(unsigned(row.get(1)?)) })
    })?)
}

pub(super) fn last_scan(db: &Connection) -> Result<Option<Timestamp>, RowError> {
    let mut select = db.prepare_cached("SELECT last_scan FROM meta")?;
    Ok(select.query_row([], |row| row.get::<_, Option<i64>>(0))?.map(Timestamp))
}

pub(super) fn last_cleanup(db: &Connection) -> Result<Option<Timestamp>, RowError> {
    let mut select = db.prepare_cached("SELECT last_cleanup FROM meta")?;
    Ok(select.query_row([], |row| row.get::<_, Option<i64>>(0))?.map(Timestamp))
}

// --- changes ---------------------------------------------------------------------------------

/// Outer joins: a change whose path is gone from its table must be noticed, not skipped.
macro_rules! select_changes {
    ($rest:literal) => {
        concat!(
            "SELECT c.seq, p.bytes, c.before, c.after, c.kind, s.name, a.turn, a.call, a.tool,
                 c.rewind, c.evidence, c.time, c.cancels,
                 CASE c.kind WHEN 2 THEN (
                     SELECT json_group_array(n.name ORDER BY u.position)
                     FROM suspect u JOIN session n ON n.id = u.session WHERE u.change = c.seq
                 ) END, c.changed_at, c.correction,
                 CASE c.correction WHEN 1 THEN (
                     SELECT name FROM session WHERE id = c.corrected_for
                 ) END, c.sum
             FROM change c
             LEFT JOIN path p ON p.id = c.path
             LEFT JOIN author a ON a.id = c.author
             LEFT JOIN session s ON s.id = a.session ",
            $rest
        )
    };
}

pub(super) fn changes_after(db: &Connection, after: Seq) -> Rows<Change> {
    let sql = select_changes!("WHERE c.seq > ?1 ORDER BY c.seq");
    db.prepare_cached(sql)?.query_and_then([signed(after.0)], change)?.collect()
}

/// The last change that is there, wherever the log is said to end.
pub(super) fn last_change(db: &Connection) -> Result<Option<Seq>, RowError> {
    let mut select = db.prepare_cached("SELECT max(seq) FROM change")?;
    let seq: Option<i64> = select.query_row([], |row| row.get(0))?;
    Ok(seq.map(|seq| Seq(unsigned(seq))))
}

pub(super) const CHANGES: &str = select_changes!("ORDER BY c.seq");

/// Hands over every change after `after` as it was recorded, oldest first, each by itself: a damaged one
/// does not hide the others.
pub(super) fn each_change_after(
    db: &Connection,
    after: Seq,
    take: &mut dyn FnMut(Result<Change, RowError>),
) -> Result<(), RowError> {
    let sql = select_changes!("WHERE c.seq > ?1 ORDER BY c.seq");
    let mut select = db.prepare_cached(sql)?;
    select.query_and_then([signed(after.0)], recorded_change)?.for_each(take);
    Ok(())
}

/// As [`change_at`], whatever its checksum says: it is about to get another.
pub(super) fn changed_at(db: &Connection, seq: Seq) -> Result<Option<Change>, RowError> {
    let sql = select_changes!("WHERE c.seq = ?1");
    let mut select = db.prepare_cached(sql)?;
    let mut found = select.query_and_then([signed(seq.0)], |row| decoded_change(row, Err))?;
    found.next().transpose()
}

/// As [`change_at`], if it is as it was recorded.
pub(super) fn intact_change_at(db: &Connection, seq: Seq) -> Result<Option<Change>, RowError> {
    let sql = select_changes!("WHERE c.seq = ?1");
    let mut select = db.prepare_cached(sql)?;
    select.query_and_then([signed(seq.0)], recorded_change)?.next().transpose()
}

pub(super) fn change_at(db: &Connection, seq: Seq) -> Result<Option<Change>, RowError> {
    let sql = select_changes!("WHERE c.seq = ?1");
    db.prepare_cached(sql)?.query_and_then([signed(seq.0)], change)?.next().transpose()
}

pub(super) fn latest_of(db: &Connection, path: &WorkPath) -> Result<Option<Change>, RowError> {
    let sql = select_changes!(
        "WHERE c.seq = (SELECT max(seq) FROM change
             WHERE path = (SELECT id FROM path WHERE bytes = ?1))"
    );
    db.prepare_cached(sql)?.query_and_then([path.as_bytes()], change)?.next().transpose()
}

pub(super) fn changes_of(db: &Connection, path: &WorkPath) -> Rows<Change> {
    let sql =
        select_changes!("WHERE c.path = (SELECT id FROM path WHERE bytes = ?1) ORDER BY c.seq");
    db.prepare_cached(sql)?.query_and_then([path.as_bytes()], change)?.collect()
}

pub(super) fn latest(db: &Connection) -> Rows<(WorkPath, Entry)> {
    let sql = select_changes!(
        "WHERE c.seq IN (SELECT max(seq) FROM change GROUP BY path) ORDER BY p.bytes"
    );
    let mut select = db.prepare_cached(sql)?;
    select
        .query_and_then([], |row| {
            let change = change(row)?;
            Ok((change.path, change.after))
        })?
        .collect()
}

pub(super) fn unreadable(db: &Connection) -> Rows<WorkPath> {
    let unreadable = encoding::entry_bytes(&Entry::NotCaptured { lack: Lack::Unreadable });
    let mut select = db.prepare_cached(
        "SELECT p.bytes FROM change c JOIN path p ON p.id = c.path
         WHERE c.after = ?1 AND c.seq = (SELECT max(seq) FROM change WHERE path = c.path)
         ORDER BY p.bytes",
    )?;
    select.query_and_then([unreadable], |row| path(row, 0, "a path"))?.collect()
}

/// A change. If it is not as it was recorded, nothing is known of what stood there: the caller goes
/// on without it, and says so.
fn change(row: &Row<'_>) -> Result<Change, RowError> {
    let change = decoded_change(row, |_| Ok(Entry::NotCaptured { lack: Lack::Damaged }))?;
    if is_recorded(row, CHANGE_SUM, Sum::of_change(&change))? {
        return Ok(change);
    }
    let lost = || Entry::NotCaptured { lack: Lack::Damaged };
    Ok(Change { before: lost(), after: lost(), ..change })
}

/// A change, if it is as it was recorded.
pub(super) fn recorded_change(row: &Row<'_>) -> Result<Change, RowError> {
    let change = decoded_change(row, Err)?;
    if is_recorded(row, CHANGE_SUM, Sum::of_change(&change))? {
        return Ok(change);
    }
    let what = format!("change {} of {}", change.seq, change.path.display());
    Err(RowError::Damaged { what, why: NOT_AS_RECORDED })
}

pub(super) const NOT_AS_RECORDED: &str = "it is not what was recorded";
pub(super) const CHANGE_SUM: usize = 17;

/// Whether a record has the checksum that was written with it.
fn is_recorded(row: &Row<'_>, column: usize, sum: Sum) -> Result<bool, RowError> {
    Ok(stored_sum(row, column)? == Some(sum))
}

pub(super) fn stored_sum(row: &Row<'_>, column: usize) -> Result<Option<Sum>, RowError> {
    Ok(blob_or_null(row, column)?.and_then(|bytes| bytes.try_into().ok()).map(Sum))
}

/// A change as it stands there. `bad` decides on an entry that cannot be read.
pub(super) fn decoded_change(
    row: &Row<'_>,
    bad: impl Fn(RowError) -> Result<Entry, RowError>,
) -> Result<Change, RowError> {
    let seq = Seq(unsigned(row.get(0)?));
    let what = format!("change {seq}");
    let damaged = |why| RowError::Damaged { what: what.clone(), why };
    let cancels = match blob_or_null(row, 12)? {
        Some(bytes) => encoding::seqs(bytes).ok_or_else(|| damaged("its list of changes"))?,
        None => Vec::new(),
    };
    let author = match row.get(4)? {
        // Deleting a session takes its authors with it.
        kinds::AGENT if row.get_ref(5)? == ValueRef::Null => Author::Deleted,
        kinds::AGENT => Author::Agent {
            session: SessionId(row.get(5)?),
            turn: TurnId(row.get::<_, i64>(6)?.cast_unsigned()),
            call: CallId(row.get(7)?),
            tool: row.get(8)?,
        },
        kinds::HUMAN => Author::Human,
        kinds::AMBIGUOUS => {
            let sessions = serde_json::from_str::<Vec<String>>(&row.get::<_, String>(13)?)
                .map_err(|_not_json| damaged("its authors"))?;
            Author::Ambiguous { sessions: sessions.into_iter().map(SessionId).collect() }
        }
        kinds::BY_REWIND => Author::Rewind { id: RewindId(row.get::<_, i64>(9)?.cast_unsigned()) },
        kinds::DELETED => Author::Deleted,
        kinds::IMPORT => Author::Import,
        _ => return Err(damaged("its author is of no known kind")),
    };
    Ok(Change {
        seq,
        path: path(row, 1, &what)?,
        before: entry(row, 2, &what).or_else(&bad)?,
        after: entry(row, 3, &what).or_else(&bad)?,
        author,
        evidence: kinds::value(&kinds::EVIDENCES, row.get(10)?)
            .ok_or_else(|| damaged("its evidence"))?,
        time: Timestamp(row.get(11)?),
        changed_at: row.get::<_, Option<i64>>(14)?.map(Timestamp),
        correction: match (row.get(15)?, row.get::<_, Option<String>>(16)?) {
            (Some(kinds::MINE), _) => Some(Correction::Mine),
            (Some(kinds::AGENTS), Some(name)) => {
                Some(Correction::Agent { session: SessionId(name) })
            }
            // The session has been deleted since.
            (Some(kinds::AGENTS) | None, _) => None,
            (Some(_), _) => return Err(damaged("its correction is of no known kind")),
        },
        cancels,
    })
}

fn path(row: &Row<'_>, column: usize, what: &str) -> Result<WorkPath, RowError> {
    let damaged = |why| RowError::Damaged { what: what.to_owned(), why };
    let bytes = blob_or_null(row, column)?.ok_or_else(|| damaged("its path is missing"))?;
    WorkPath::new(bytes).map_err(|_invalid| damaged("its path is not a plain one"))
}

fn entry(row: &Row<'_>, column: usize, what: &str) -> Result<Entry, RowError> {
    blob_or_null(row, column)?.and_then(encoding::entry).ok_or_else(|| RowError::Damaged {
        what: what.to_owned(),
        why: "its entry is not readable",
    })
}

pub(super) fn blob_or_null<'row>(
    row: &'row Row<'_>,
    column: usize,
) -> Result<Option<&'row [u8]>, RowError> {
    let invalid = |_error| {
        let found = rusqlite::types::Type::Blob;
        rusqlite::Error::InvalidColumnType(column, "bytes".to_owned(), found)
    };
    Ok(row.get_ref(column)?.as_blob_or_null().map_err(invalid)?)
}

// --- rewinds ---------------------------------------------------------------------------------

macro_rules! select_rewinds {
    ($rest:literal) => {
        concat!(
            "SELECT id, kind, target, state, began_at, safety_point, created_at, plan, receipt, sum
             FROM rewind ",
            $rest
        )
    };
}

pub(super) fn rewinds(db: &Connection) -> Rows<RewindRecord> {
    let sql = select_rewinds!("ORDER BY began_at, number");
    db.prepare_cached(sql)?.query_and_then([], rewind)?.collect()
}

pub(super) fn rewind_with(db: &Connection, id: RewindId) -> Result<Option<RewindRecord>, RowError> {
    let sql = select_rewinds!("WHERE id = ?1");
    db.prepare_cached(sql)?.query_and_then([id.0.cast_signed()], rewind)?.next().transpose()
}

pub(super) fn open_rewinds(db: &Connection) -> Rows<RewindRecord> {
    let sql = select_rewinds!("WHERE state = 0 ORDER BY began_at, number");
    db.prepare_cached(sql)?.query_and_then([], rewind)?.collect()
}

/// A rewind. If it is not as it was recorded, its plan is not to be relied on: it is empty.
fn rewind(row: &Row<'_>) -> Result<RewindRecord, RowError> {
    let rewind = decoded_rewind(row)?;
    if is_recorded(row, REWIND_SUM, Sum::of_rewind(&rewind))? {
        return Ok(rewind);
    }
    Ok(RewindRecord { plan: String::new(), ..rewind })
}

pub(super) const REWINDS: &str = select_rewinds!("");
pub(super) const REWIND_SUM: usize = 9;

pub(super) fn decoded_rewind(row: &Row<'_>) -> Result<RewindRecord, RowError> {
    let id = RewindId(row.get::<_, i64>(0)?.cast_unsigned());
    let damaged = |why| RowError::Damaged { what: format!("rewind {id}"), why };
    let target = row.get::<_, i64>(2)?.cast_unsigned();
    let kind = match row.get(1)? {
        kinds::REWIND => RewindKind::Rewind { point: PointId(target) },
        kinds::UNDO => RewindKind::Undo { of: RewindId(target) },
        kinds::REDO => RewindKind::Redo { of: RewindId(target) },
        _ => return Err(damaged("its kind")),
    };
    Ok(RewindRecord {
        id,
        kind,
        state: kinds::value(&kinds::REWIND_STATES, row.get(3)?)
            .ok_or_else(|| damaged("its state"))?,
        began_at: Seq(unsigned(row.get(4)?)),
        safety_point: PointId(row.get::<_, i64>(5)?.cast_unsigned()),
        created_at: Timestamp(row.get(6)?),
        plan: row.get(7)?,
        receipt: row.get(8)?,
    })
}

// --- sessions, turns, calls ------------------------------------------------------------------

macro_rules! select_sessions {
    ($rest:literal) => {
        concat!(
            "SELECT s.name, s.agent, p.name, s.owner_pid, s.owner_started, s.started_at, s.ended_at,
                 s.archived_at, s.open_turn, s.sum
             FROM session s LEFT JOIN session p ON p.id = s.parent
             WHERE s.started_at IS NOT NULL ",
            $rest
        )
    };
}

pub(super) fn sessions(db: &Connection) -> Rows<Session> {
    let sql = select_sessions!("ORDER BY s.started_at, s.name");
    db.prepare_cached(sql)?.query_and_then([], session)?.collect()
}

pub(super) fn session_named(db: &Connection, id: &SessionId) -> Result<Option<Session>, RowError> {
    let sql = select_sessions!("AND s.name = ?1");
    db.prepare_cached(sql)?.query_and_then([&id.0], session)?.next().transpose()
}

pub(super) const SESSIONS: &str = select_sessions!("");
pub(super) const SESSION_SUM: usize = 9;

pub(super) fn session(row: &Row<'_>) -> Result<Session, RowError> {
    let owner = match (row.get::<_, Option<u32>>(3)?, row.get::<_, Option<i64>>(4)?) {
        (Some(pid), Some(started)) => Some(Process { pid, started: started.cast_unsigned() }),
        _ => None,
    };
    Ok(Session {
        id: SessionId(row.get(0)?),
        agent: row.get(1)?,
        parent: row.get::<_, Option<String>>(2)?.map(SessionId),
        owner,
        started_at: Timestamp(row.get(5)?),
        ended_at: row.get::<_, Option<i64>>(6)?.map(Timestamp),
        archived_at: row.get::<_, Option<i64>>(7)?.map(Timestamp),
        open_turn: row.get::<_, Option<i64>>(8)?.map(|id| TurnId(id.cast_unsigned())),
    })
}

macro_rules! select_turns {
    ($rest:literal) => {
        concat!(
            "SELECT t.id, s.name, t.message, t.prompt, t.opened_at, t.closed_at, t.sum
             FROM turn t LEFT JOIN session s ON s.id = t.session ",
            $rest
        )
    };
}

pub(super) fn turn_of(db: &Connection, id: TurnId) -> Result<Option<Turn>, RowError> {
    let sql = select_turns!("WHERE t.id = ?1");
    db.prepare_cached(sql)?.query_and_then([id.0.cast_signed()], turn)?.next().transpose()
}

pub(super) const TURNS: &str = select_turns!("");
pub(super) const TURN_SUM: usize = 6;

pub(super) fn turns(db: &Connection) -> Rows<Turn> {
    let sql = select_turns!("ORDER BY t.opened_at, t.id");
    db.prepare_cached(sql)?.query_and_then([], turn)?.collect()
}

pub(super) fn turn(row: &Row<'_>) -> Result<Turn, RowError> {
    Ok(Turn {
        id: TurnId(row.get::<_, i64>(0)?.cast_unsigned()),
        session: SessionId(row.get(1)?),
        message: row.get(2)?,
        prompt: row.get(3)?,
        opened_at: Timestamp(row.get(4)?),
        closed_at: row.get::<_, Option<i64>>(5)?.map(Timestamp),
    })
}

macro_rules! select_calls {
    ($rest:literal) => {
        concat!(
            "SELECT s.name, c.id, c.turn, c.tool, c.paths, c.command, c.state, c.opened_at,
                 c.closed_at, c.named, c.began_at, c.active_at, c.sum
             FROM call c LEFT JOIN session s ON s.id = c.session ",
            $rest
        )
    };
}

pub(super) fn live_calls(db: &Connection) -> Rows<Call> {
    let sql = select_calls!("WHERE c.state <= 1 ORDER BY c.opened_at, s.name, c.id");
    db.prepare_cached(sql)?.query_and_then([], call)?.collect()
}

pub(super) fn calls_since(db: &Connection, time: Timestamp) -> Rows<Call> {
    let sql = select_calls!(
        "WHERE c.closed_at IS NULL OR c.closed_at >= ?1 ORDER BY c.opened_at, s.name, c.id"
    );
    db.prepare_cached(sql)?.query_and_then([time.0], call)?.collect()
}

pub(super) fn call_named(
    db: &Connection,
    session: &SessionId,
    id: &CallId,
) -> Result<Option<Call>, RowError> {
    let sql =
        select_calls!("WHERE c.session = (SELECT id FROM session WHERE name = ?1) AND c.id = ?2");
    db.prepare_cached(sql)?.query_and_then([&session.0, &id.0], call)?.next().transpose()
}

pub(super) const CALLS: &str = select_calls!("");
pub(super) const CALL_SUM: usize = 12;

pub(super) fn call(row: &Row<'_>) -> Result<Call, RowError> {
    let id = CallId(row.get(1)?);
    let damaged = |why| RowError::Damaged { what: format!("call {id}"), why };
    let paths = |bytes| encoding::paths(bytes).ok_or_else(|| damaged("its paths"));
    let kind = match blob_or_null(row, 4)? {
        Some(bytes) => CallKind::Edit { paths: paths(bytes)? },
        None => CallKind::Shell {
            command: row.get(5)?,
            paths: blob_or_null(row, 9)?.map_or_else(|| Ok(Vec::new()), paths)?,
        },
    };
    Ok(Call {
        session: SessionId(row.get(0)?),
        turn: TurnId(row.get::<_, i64>(2)?.cast_unsigned()),
        tool: row.get(3)?,
        kind,
        state: kinds::value(&kinds::CALL_STATES, row.get(6)?)
            .ok_or_else(|| damaged("its state"))?,
        opened_at: Timestamp(row.get(7)?),
        began_at: row.get::<_, Option<i64>>(10)?.map(Timestamp),
        closed_at: row.get::<_, Option<i64>>(8)?.map(Timestamp),
        active_at: row.get::<_, Option<i64>>(11)?.map(Timestamp),
        id,
    })
}

/// The calls that the authors from `first` on name, with their author's number.
pub(super) fn calls_of_authors(db: &Connection, first: i64) -> Rows<(i64, Call)> {
    let sql = "SELECT s.name, c.id, c.turn, c.tool, c.paths, c.command, c.state, c.opened_at,
             c.closed_at, c.named, c.began_at, c.active_at, a.id
         FROM author a JOIN call c ON c.session = a.session AND c.id = a.call
         LEFT JOIN session s ON s.id = c.session WHERE a.id >= ?1";
    db.prepare_cached(sql)?.query_and_then([first], |row| Ok((row.get(12)?, call(row)?)))?.collect()
}

/// The paths that changes of a call have in the log.
pub(super) fn paths_of_call(db: &Connection, session: &SessionId, id: &CallId) -> Rows<WorkPath> {
    let sql = "SELECT DISTINCT p.bytes FROM author a
         JOIN change c ON c.author = a.id JOIN path p ON p.id = c.path
         WHERE a.session = (SELECT id FROM session WHERE name = ?1) AND a.call = ?2
         ORDER BY p.bytes";
    let mut select = db.prepare_cached(sql)?;
    select.query_and_then([&session.0, &id.0], |row| path(row, 0, "a path"))?.collect()
}

// --- blobs -----------------------------------------------------------------------------------

pub(super) fn has_blobs(db: &Connection) -> Result<bool, RowError> {
    Ok(db.prepare_cached("SELECT 1 FROM blob LIMIT 1")?.exists([])?)
}

pub(super) fn has_blob(db: &Connection, digest: &Digest) -> Result<bool, RowError> {
    Ok(db.prepare_cached("SELECT 1 FROM blob WHERE digest = ?1")?.exists([&digest.0[..]])?)
}

pub(super) fn blob(db: &Connection, digest: &Digest) -> Result<Option<Location>, RowError> {
    let mut select = db.prepare_cached(
        "SELECT segment, offset, length, size, encoding FROM blob WHERE digest = ?1",
    )?;
    select.query_and_then([&digest.0[..]], |row| location(row, 0, digest))?.next().transpose()
}

pub(super) fn forget_blob(db: &Connection, digest: &Digest) -> Result<(), RowError> {
    db.prepare_cached("DELETE FROM blob WHERE digest = ?1")?.execute([&digest.0[..]])?;
    Ok(())
}

pub(super) fn move_blob(
    db: &Connection,
    digest: &Digest,
    from: &Location,
    to: &Location,
) -> Result<(), RowError> {
    let mut update = db.prepare_cached(
        "UPDATE blob SET segment = ?4, offset = ?5, length = ?6, encoding = ?7
         WHERE digest = ?1 AND segment = ?2 AND offset = ?3",
    )?;
    update.execute(rusqlite::params![
        &digest.0[..],
        from.segment,
        signed(from.offset),
        to.segment,
        signed(to.offset),
        to.length,
        to.encoding as u8,
    ])?;
    Ok(())
}

/// Paths and authors that no change names any more.
pub(super) fn drop_orphans(db: &Connection) -> Result<(), RowError> {
    for delete in [
        "DELETE FROM path WHERE id NOT IN (SELECT path FROM change)",
        "DELETE FROM author WHERE id NOT IN (SELECT author FROM change WHERE author IS NOT NULL)",
    ] {
        db.prepare_cached(delete)?.execute([])?;
    }
    Ok(())
}

/// Gives free pages back to the system, some at a time: pages from the end take the places of free
/// ones, and nobody waits long for it, nor does the journal become as large as the database.
pub(super) fn vacuum(db: &Connection) -> Result<(), RowError> {
    let free = || db.pragma_query_value(None, "freelist_count", |row| row.get::<_, i64>(0));
    let mut left = free()?;
    while left > 0 {
        all_steps(db, "PRAGMA incremental_vacuum(512)")?;
        checkpoint(db)?;
        let now = free()?;
        if now >= left {
            break;
        }
        left = now;
    }
    all_steps(db, "PRAGMA wal_checkpoint(TRUNCATE)")
}

/// Writes what is in the journal into the database, as far as nobody needs it there.
pub(super) fn checkpoint(db: &Connection) -> Result<(), RowError> {
    all_steps(db, "PRAGMA wal_checkpoint(PASSIVE)")
}

/// Writes the whole database anew: nothing is in its file but what it holds.
pub(super) fn rewrite(db: &Connection) -> Result<(), RowError> {
    db.execute_batch("VACUUM")?;
    all_steps(db, "PRAGMA wal_checkpoint(TRUNCATE)")
}

/// Each step of such a statement does some of it.
fn all_steps(db: &Connection, pragma: &str) -> Result<(), RowError> {
    let mut statement = db.prepare(pragma)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

pub(super) fn usage(db: &Connection) -> Result<Usage, RowError> {
    let mut select = db.prepare_cached(
        "SELECT count(*), coalesce(sum(length + ?1), 0), coalesce(sum(size) FILTER (WHERE encoding <> 2), 0),
             (SELECT count(*) FROM change)
         FROM blob",
    )?;
    Ok(select.query_row([signed(HEADER as u64)], |row| {
        Ok(Usage {
            blobs: unsigned(row.get(0)?),
            kept: unsigned(row.get(1)?),
            contents: unsigned(row.get(2)?),
            changes: unsigned(row.get(3)?),
            ..Usage::default()
        })
    })?)
}

/// Hands over every blob with its place, in the order in which they lie there.
pub(super) fn each_blob(
    db: &Connection,
    take: &mut dyn FnMut(Result<(Digest, Location), RowError>),
) -> Result<(), RowError> {
    let mut select = db.prepare(
        "SELECT digest, segment, offset, length, size, encoding FROM blob ORDER BY segment, offset",
    )?;
    let blobs = select.query_and_then([], |row| {
        let digest = Digest(row.get(0)?);
        Ok((digest, location(row, 1, &digest)?))
    })?;
    blobs.for_each(take);
    Ok(())
}

fn location(row: &Row<'_>, first: usize, digest: &Digest) -> Result<Location, RowError> {
    let encoding = row.get(first + 4).ok().and_then(Encoding::from_byte);
    Ok(Location {
        segment: row.get(first)?,
        offset: unsigned(row.get(first + 1)?),
        length: row.get(first + 2)?,
        size: unsigned(row.get(first + 3)?),
        encoding: encoding.ok_or_else(|| RowError::Damaged {
            what: format!("the place of the contents {digest}"),
            why: "its encoding",
        })?,
    })
}
