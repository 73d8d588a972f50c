//! Rows of sessions, turns and calls.

use rusqlite::{Connection, Row};

use super::{RowError, Rows, blob_or_null, path};
use crate::id::{CallId, SessionId, Timestamp, TurnId};
use crate::path::WorkPath;
use crate::session::{Call, CallKind, Process, Session, Turn};
use crate::sqlite::encoding::{self, kinds};

macro_rules! select_sessions {
    ($rest:literal) => {
        concat!(
            "SELECT s.name, s.agent, p.name, s.owner_pid, s.owner_started, s.started_at, s.ended_at,
                 s.archived_at, s.open_turn, s.model, s.sum
             FROM session s LEFT JOIN session p ON p.id = s.parent
             WHERE s.started_at IS NOT NULL ",
            $rest
        )
    };
}

pub(in crate::sqlite) fn sessions(db: &Connection) -> Rows<Session> {
    let sql = select_sessions!("ORDER BY s.started_at, s.name");
    db.prepare_cached(sql)?.query_and_then([], session)?.collect()
}

pub(in crate::sqlite) fn session_named(
    db: &Connection,
    id: &SessionId,
) -> Result<Option<Session>, RowError> {
    let sql = select_sessions!("AND s.name = ?1");
    db.prepare_cached(sql)?.query_and_then([&id.0], session)?.next().transpose()
}

pub(in crate::sqlite) const SESSIONS: &str = select_sessions!("");
pub(in crate::sqlite) const SESSION_SUM: usize = 10;

pub(in crate::sqlite) fn session(row: &Row<'_>) -> Result<Session, RowError> {
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
        model: row.get(9)?,
    })
}

macro_rules! select_turns {
    ($rest:literal) => {
        concat!(
            "SELECT t.id, s.name, t.message, t.prompt, t.opened_at, t.closed_at, t.model, t.sum
             FROM turn t LEFT JOIN session s ON s.id = t.session ",
            $rest
        )
    };
}

pub(in crate::sqlite) fn turn_of(db: &Connection, id: TurnId) -> Result<Option<Turn>, RowError> {
    let sql = select_turns!("WHERE t.id = ?1");
    db.prepare_cached(sql)?.query_and_then([id.0.cast_signed()], turn)?.next().transpose()
}

pub(in crate::sqlite) const TURNS: &str = select_turns!("");
pub(in crate::sqlite) const TURN_SUM: usize = 7;

pub(in crate::sqlite) fn turns(db: &Connection) -> Rows<Turn> {
    let sql = select_turns!("ORDER BY t.opened_at, t.id");
    db.prepare_cached(sql)?.query_and_then([], turn)?.collect()
}

pub(in crate::sqlite) fn turn(row: &Row<'_>) -> Result<Turn, RowError> {
    Ok(Turn {
        id: TurnId(row.get::<_, i64>(0)?.cast_unsigned()),
        session: SessionId(row.get(1)?),
        message: row.get(2)?,
        prompt: row.get(3)?,
        opened_at: Timestamp(row.get(4)?),
        closed_at: row.get::<_, Option<i64>>(5)?.map(Timestamp),
        model: row.get(6)?,
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

pub(in crate::sqlite) fn live_calls(db: &Connection) -> Rows<Call> {
    let sql = select_calls!("WHERE c.state <= 3 ORDER BY c.opened_at, s.name, c.id");
    db.prepare_cached(sql)?.query_and_then([], call)?.collect()
}

pub(in crate::sqlite) fn calls_since(db: &Connection, time: Timestamp) -> Rows<Call> {
    let sql = select_calls!(
        "WHERE c.closed_at IS NULL OR c.closed_at >= ?1 ORDER BY c.opened_at, s.name, c.id"
    );
    db.prepare_cached(sql)?.query_and_then([time.0], call)?.collect()
}

pub(in crate::sqlite) fn call_named(
    db: &Connection,
    session: &SessionId,
    id: &CallId,
) -> Result<Option<Call>, RowError> {
    let sql =
        select_calls!("WHERE c.session = (SELECT id FROM session WHERE name = ?1) AND c.id = ?2");
    db.prepare_cached(sql)?.query_and_then([&session.0, &id.0], call)?.next().transpose()
}

pub(in crate::sqlite) const CALLS: &str = select_calls!("");
pub(in crate::sqlite) const CALL_SUM: usize = 12;

pub(in crate::sqlite) fn call(row: &Row<'_>) -> Result<Call, RowError> {
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

/// The calls of the author rows from `first` on, each with the number of its author row.
pub(in crate::sqlite) fn calls_of_authors(db: &Connection, first: i64) -> Rows<(i64, Call)> {
    let sql = "SELECT s.name, c.id, c.turn, c.tool, c.paths, c.command, c.state, c.opened_at,
             c.closed_at, c.named, c.began_at, c.active_at, a.id
         FROM author a JOIN call c ON c.session = a.session AND c.id = a.call
         LEFT JOIN session s ON s.id = c.session WHERE a.id >= ?1";
    db.prepare_cached(sql)?.query_and_then([first], |row| Ok((row.get(12)?, call(row)?)))?.collect()
}

/// The paths of the changes recorded for a call.
pub(in crate::sqlite) fn paths_of_call(
    db: &Connection,
    session: &SessionId,
    id: &CallId,
) -> Rows<WorkPath> {
    let sql = "SELECT DISTINCT p.bytes FROM author a
         JOIN change c ON c.author = a.id JOIN path p ON p.id = c.path
         WHERE a.session = (SELECT id FROM session WHERE name = ?1) AND a.call = ?2
         ORDER BY p.bytes";
    let mut select = db.prepare_cached(sql)?;
    select.query_and_then([&session.0, &id.0], |row| path(row, 0, "a path"))?.collect()
}
