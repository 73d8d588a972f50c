//! Reads records from the tables.

mod blobs;
mod sessions;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

pub(super) use self::blobs::{
    blob, checkpoint, drop_blob, drop_orphans, each_blob, has_blob, has_blobs, move_blob, rewrite,
    usage, vacuum,
};
pub(super) use self::sessions::{
    CALL_SUM, CALLS, SESSION_SUM, SESSIONS, TURN_SUM, TURNS, call, call_named, calls_of_authors,
    calls_since, live_calls, paths_of_call, session, session_named, sessions, turn, turn_of, turns,
};
use super::encoding::{self, kinds, signed, unsigned};
use crate::chain::Sum;
use crate::change::{Author, Change, Correction};
use crate::entry::{Entry, NotCapturedReason};
use crate::id::{CallId, PointId, RewindId, Seq, SessionId, Timestamp, TurnId};
use crate::path::WorkPath;
use crate::rewind::{RewindHeader, RewindKind, RewindRecord, StoredPlan};
use crate::store::Head;

/// Why a row could not be read or written.
#[derive(Debug)]
pub(super) enum RowError {
    Sqlite(rusqlite::Error),
    /// The row exists, but Takeback did not write what is in it.
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

pub(super) fn changes_between(db: &Connection, after: Seq, through: Seq) -> Rows<Change> {
    let sql = select_changes!("WHERE c.seq > ?1 AND c.seq <= ?2 ORDER BY c.seq");
    let ends = [signed(after.0), signed(through.0)];
    db.prepare_cached(sql)?.query_and_then(ends, change)?.collect()
}

pub(super) fn rewind_changes_after(db: &Connection, after: Seq) -> Rows<Change> {
    let sql = select_changes!("WHERE c.rewind IS NOT NULL AND c.seq > ?1 ORDER BY c.seq");
    db.prepare_cached(sql)?.query_and_then([signed(after.0)], change)?.collect()
}

/// Both ends are found by walking the table from the change to the first one of another time.
pub(super) fn changes_beside(db: &Connection, beside: &Change) -> Rows<Change> {
    let sql = select_changes!(
        "WHERE c.seq > coalesce(
             (SELECT seq FROM change WHERE seq < ?1 AND time <> ?2 ORDER BY seq DESC LIMIT 1), -1)
         AND c.seq < coalesce(
             (SELECT seq FROM change WHERE seq > ?1 AND time <> ?2 ORDER BY seq LIMIT 1),
             9223372036854775807)
         ORDER BY c.seq"
    );
    let bounds = [signed(beside.seq.0), beside.time.0];
    db.prepare_cached(sql)?.query_and_then(bounds, change)?.collect()
}

/// The last change in the table, even if it is after the head.
pub(super) fn last_change(db: &Connection) -> Result<Option<Seq>, RowError> {
    let mut select = db.prepare_cached("SELECT max(seq) FROM change")?;
    let seq: Option<i64> = select.query_row([], |row| row.get(0))?;
    Ok(seq.map(|seq| Seq(unsigned(seq))))
}

pub(super) const CHANGES: &str = select_changes!("ORDER BY c.seq");

/// Passes every change after `after` to the callback, oldest first, each with its own result: a
/// damaged one does not hide the others.
pub(super) fn each_change_after(
    db: &Connection,
    after: Seq,
    take: &mut dyn FnMut(Result<Change, RowError>),
) -> Result<(), RowError> {
    let sql = select_changes!("WHERE c.seq > ?1 ORDER BY c.seq");
    let mut select = db.prepare_cached(sql)?;
    select.query_and_then([signed(after.0)], intact_change)?.for_each(take);
    Ok(())
}

/// Like [`change_at`], without verifying the checksum, because it is about to be replaced.
pub(super) fn unverified_change_at(db: &Connection, seq: Seq) -> Result<Option<Change>, RowError> {
    let sql = select_changes!("WHERE c.seq = ?1");
    let mut select = db.prepare_cached(sql)?;
    let mut found = select.query_and_then([signed(seq.0)], |row| decode_change(row, Err))?;
    found.next().transpose()
}

/// Like [`change_at`], but fails if the checksum is wrong.
pub(super) fn intact_change_at(db: &Connection, seq: Seq) -> Result<Option<Change>, RowError> {
    let sql = select_changes!("WHERE c.seq = ?1");
    let mut select = db.prepare_cached(sql)?;
    select.query_and_then([signed(seq.0)], intact_change)?.next().transpose()
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

pub(super) fn newest_changes_of(
    db: &Connection,
    path: &WorkPath,
    before: Seq,
    most: usize,
) -> Rows<Change> {
    let sql = select_changes!(
        "WHERE c.path = (SELECT id FROM path WHERE bytes = ?1) AND c.seq < ?2
         ORDER BY c.seq DESC LIMIT ?3"
    );
    let params = (path.as_bytes(), signed(before.0), limit(most));
    let mut select = db.prepare_cached(sql)?;
    let mut found = select.query_and_then(params, change)?.collect::<Rows<Change>>()?;
    found.reverse();
    Ok(found)
}

/// Reads only indexes. Paths sort by their bytes, and `0` is the byte after `/`: everything below a folder
/// is one range.
pub(super) fn positions_below(
    db: &Connection,
    folder: &WorkPath,
    before: Seq,
    most: usize,
) -> Rows<Seq> {
    let mut select = db.prepare_cached(
        "SELECT seq FROM change
         WHERE path IN (SELECT id FROM path WHERE bytes = ?1
             UNION ALL SELECT id FROM path WHERE bytes > ?2 AND bytes < ?3)
             AND seq < ?4
         ORDER BY seq DESC LIMIT ?5",
    )?;
    let [from, to] = [b"/", b"0"].map(|end| [folder.as_bytes(), end].concat());
    let params = (folder.as_bytes(), from, to, signed(before.0), limit(most));
    let seq = |row: &Row<'_>| Ok(Seq(unsigned(row.get(0)?)));
    let mut found = select.query_and_then(params, seq)?.collect::<Rows<Seq>>()?;
    found.reverse();
    Ok(found)
}

fn limit(most: usize) -> i64 {
    i64::try_from(most).unwrap_or(i64::MAX)
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

pub(super) fn unreadable_changes(db: &Connection) -> Rows<Change> {
    // As the index `unreadable_change` has it, which a parameter would not select.
    let sql = select_changes!("WHERE c.before = x'0403' OR c.after = x'0403' ORDER BY c.seq");
    db.prepare_cached(sql)?.query_and_then([], change)?.collect()
}

fn unreadable_entry() -> Vec<u8> {
    encoding::entry_bytes(&Entry::NotCaptured { reason: NotCapturedReason::Unreadable })
}

pub(super) fn unreadable(db: &Connection) -> Rows<WorkPath> {
    let mut select = db.prepare_cached(
        "SELECT p.bytes FROM change c JOIN path p ON p.id = c.path
         WHERE c.after = ?1 AND c.seq = (SELECT max(seq) FROM change WHERE path = c.path)
         ORDER BY p.bytes",
    )?;
    select.query_and_then([unreadable_entry()], |row| path(row, 0, "a path"))?.collect()
}

/// A change. If its checksum is wrong, its entries become [`NotCapturedReason::Damaged`], so that
/// callers can continue and report it.
fn change(row: &Row<'_>) -> Result<Change, RowError> {
    let change =
        decode_change(row, |_| Ok(Entry::NotCaptured { reason: NotCapturedReason::Damaged }))?;
    if has_recorded_sum(row, CHANGE_SUM, Sum::of_change(&change))? {
        return Ok(change);
    }
    let lost = || Entry::NotCaptured { reason: NotCapturedReason::Damaged };
    Ok(Change { before: lost(), after: lost(), ..change })
}

/// A change whose checksum is right; an error otherwise.
pub(super) fn intact_change(row: &Row<'_>) -> Result<Change, RowError> {
    let change = decode_change(row, Err)?;
    if has_recorded_sum(row, CHANGE_SUM, Sum::of_change(&change))? {
        return Ok(change);
    }
    let what = format!("change {} of {}", change.seq, change.path.display());
    Err(RowError::Damaged { what, why: NOT_AS_RECORDED })
}

pub(super) const NOT_AS_RECORDED: &str = "it is not what was recorded";
pub(super) const CHANGE_SUM: usize = 17;

/// Whether a record still matches the checksum that was written with it.
fn has_recorded_sum(row: &Row<'_>, column: usize, sum: Sum) -> Result<bool, RowError> {
    Ok(stored_sum(row, column)? == Some(sum))
}

pub(super) fn stored_sum(row: &Row<'_>, column: usize) -> Result<Option<Sum>, RowError> {
    Ok(blob_or_null(row, column)?.and_then(|bytes| bytes.try_into().ok()).map(Sum))
}

/// Decodes a change without verifying it. `bad` decides what to do about an entry that cannot be
/// decoded.
pub(super) fn decode_change(
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
        // Deleting a session deletes its author rows.
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

pub(super) fn rewind_headers(db: &Connection) -> Rows<RewindHeader> {
    let sql = "SELECT id, kind, target, state, began_at, safety_point, created_at
               FROM rewind ORDER BY began_at, number";
    db.prepare_cached(sql)?.query_and_then([], rewind_header)?.collect()
}

pub(super) fn rewind_with(db: &Connection, id: RewindId) -> Result<Option<RewindRecord>, RowError> {
    let sql = select_rewinds!("WHERE id = ?1");
    db.prepare_cached(sql)?.query_and_then([id.0.cast_signed()], rewind)?.next().transpose()
}

pub(super) fn open_rewinds(db: &Connection) -> Rows<RewindRecord> {
    let sql = select_rewinds!("WHERE state = 0 ORDER BY began_at, number");
    db.prepare_cached(sql)?.query_and_then([], rewind)?.collect()
}

/// A rewind. If its checksum is wrong, the plan cannot be trusted and is returned empty.
fn rewind(row: &Row<'_>) -> Result<RewindRecord, RowError> {
    let rewind = decode_rewind(row)?;
    if has_recorded_sum(row, REWIND_SUM, Sum::of_rewind(&rewind))? {
        return Ok(rewind);
    }
    Ok(RewindRecord { plan: StoredPlan::default(), ..rewind })
}

pub(super) const REWINDS: &str = select_rewinds!("");
pub(super) const REWIND_SUM: usize = 9;

pub(super) fn decode_rewind(row: &Row<'_>) -> Result<RewindRecord, RowError> {
    let RewindHeader { id, kind, state, began_at, safety_point, created_at } = rewind_header(row)?;
    let (plan, receipt) = (StoredPlan::from_bytes(row.get(7)?), row.get(8)?);
    Ok(RewindRecord { id, kind, state, began_at, safety_point, created_at, plan, receipt })
}

fn rewind_header(row: &Row<'_>) -> Result<RewindHeader, RowError> {
    let id = RewindId(row.get::<_, i64>(0)?.cast_unsigned());
    let damaged = |why| RowError::Damaged { what: format!("rewind {id}"), why };
    let target = row.get::<_, i64>(2)?.cast_unsigned();
    let kind = RewindKind::from_numbers(row.get(1)?, target).ok_or_else(|| damaged("its kind"))?;
    Ok(RewindHeader {
        id,
        kind,
        state: kinds::value(&kinds::REWIND_STATES, row.get(3)?)
            .ok_or_else(|| damaged("its state"))?,
        began_at: Seq(unsigned(row.get(4)?)),
        safety_point: PointId(row.get::<_, i64>(5)?.cast_unsigned()),
        created_at: Timestamp(row.get(6)?),
    })
}
