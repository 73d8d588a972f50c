//! A summary of a store for status lines that show it all the time: counts and the newest point.
//!
//! Writes nothing and waits for no other process.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, Row};

use super::DATABASE;
use super::encoding::kinds;
use super::schema::{self, error_at};
use crate::id::{PointId, SessionId, Timestamp};
use crate::point::PointKind;
use crate::rewind::RewindState;
use crate::session::Process;
use crate::store::StoreError;

/// Counts and the newest point of a store, all of the same commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreSummary {
    /// The number of points, without safety points.
    pub points: u64,
    /// The newest of these points.
    pub last: Option<LastPoint>,
    /// Sessions with an open turn, by name.
    pub active_sessions: Vec<ActiveSession>,
    /// Whether a rewind is open: it is running or was interrupted.
    pub open_rewind: bool,
}

/// The newest point, for a status line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastPoint {
    /// Its id.
    pub id: PointId,
    /// The beginning of its description.
    pub description: String,
    /// Its label.
    pub label: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A session with an open turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActiveSession {
    /// Its id.
    pub session: SessionId,
    /// The program, as it calls itself.
    pub agent: Option<String>,
    /// The process whose death ends it, if known.
    pub owner: Option<Process>,
}

/// Summarizes the store in the folder `dir`. Fails with [`StoreError::Missing`] if there is none,
/// and with [`StoreError::Busy`] instead of waiting.
pub fn summarize(dir: &Path) -> Result<StoreSummary, StoreError> {
    let path = dir.join(DATABASE);
    if !path.exists() {
        return Err(StoreError::Missing { path });
    }
    let failed = |error| error_at(&path, "looking at it", error);
    let db = schema::connect_to_read(&path).map_err(failed)?;
    schema::check_identity(&db, &path)?;
    look(&db).map_err(failed)
}

fn look(db: &Connection) -> rusqlite::Result<StoreSummary> {
    // One transaction, so that all counts are of the same commit.
    let moment = db.unchecked_transaction()?;
    let safety = kinds::number(&kinds::POINTS, &PointKind::Safety);
    let points =
        moment.query_row("SELECT count(*) FROM point WHERE kind <> ?1", [safety], |row| {
            row.get::<_, i64>(0)
        })?;
    let last = moment
        .query_row(
            "SELECT id, substr(description, 1, 200), label, created_at FROM point
             WHERE kind <> ?1 ORDER BY created_at DESC, number DESC LIMIT 1",
            [safety],
            last_point,
        )
        .optional()?;
    let mut select = moment.prepare(
        "SELECT name, agent, owner_pid, owner_started FROM session
         WHERE open_turn IS NOT NULL AND ended_at IS NULL ORDER BY name",
    )?;
    let active_sessions =
        select.query_map([], active_sessions)?.collect::<rusqlite::Result<_>>()?;
    let open = kinds::number(&kinds::REWIND_STATES, &RewindState::Open);
    let open_rewind = moment.query_row(
        "SELECT EXISTS (SELECT 1 FROM rewind WHERE state = ?1)",
        [open],
        |row| row.get(0),
    )?;
    Ok(StoreSummary { points: points.cast_unsigned(), last, active_sessions, open_rewind })
}

fn last_point(row: &Row<'_>) -> rusqlite::Result<LastPoint> {
    Ok(LastPoint {
        id: PointId(row.get::<_, i64>(0)?.cast_unsigned()),
        description: row.get(1)?,
        label: row.get(2)?,
        created_at: Timestamp(row.get(3)?),
    })
}

fn active_sessions(row: &Row<'_>) -> rusqlite::Result<ActiveSession> {
    let (pid, started): (Option<u32>, Option<i64>) = (row.get(2)?, row.get(3)?);
    let owner =
        pid.zip(started).map(|(pid, started)| Process { pid, started: started.cast_unsigned() });
    Ok(ActiveSession { session: SessionId(row.get(0)?), agent: row.get(1)?, owner })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::{Point, PointBasis};
    use crate::session::Session;
    use crate::store::{Log as _, Write};
    use crate::{Seq, SqliteStore, TurnId};

    fn point(id: u64, kind: PointKind, at: i64) -> Write {
        Write::Point(Point {
            id: PointId(id),
            seq: Seq(0),
            session: None,
            kind,
            description: format!("point {id} {}", "x".repeat(300)),
            label: (id == 1).then(|| "one".to_owned()),
            pinned: false,
            created_at: Timestamp(at),
            message_ids: Vec::new(),
            git: None,
            basis: PointBasis::Scan,
        })
    }

    fn session(name: &str, open: bool, ended: bool) -> Write {
        Write::Session(Session {
            id: SessionId::from(name),
            agent: Some("claude".to_owned()),
            parent: None,
            owner: Some(Process { pid: 7, started: 8 }),
            started_at: Timestamp(1),
            ended_at: ended.then_some(Timestamp(2)),
            archived_at: None,
            open_turn: open.then_some(TurnId(u64::MAX)),
            model: None,
        })
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).expect("a folder");
        let name = |entry: std::fs::DirEntry| entry.file_name().into_string().expect("text");
        let mut names: Vec<String> = entries.map(|entry| name(entry.expect("a name"))).collect();
        names.sort();
        names
    }

    #[test]
    fn a_summary_sees_commits_and_leaves_no_files() {
        let folder = tempfile::tempdir().expect("a folder");
        // A name with characters that have a meaning in a URI.
        let dir = &folder.path().join("a b%41?c#d");
        let missing = summarize(dir);
        assert!(matches!(missing, Err(StoreError::Missing { .. })), "{missing:?}");
        let mut store = SqliteStore::create(dir).expect("a store");
        let writes = [
            point(1, PointKind::Prompt, 50),
            point(2, PointKind::Manual, 40),
            point(3, PointKind::Safety, 60),
            session("at work", true, false),
            session("ended", true, true),
            session("idle", false, false),
        ];
        let head = store.head().expect("it reads");
        store.commit(head, &writes).expect("it commits");
        let expected = StoreSummary {
            points: 2,
            last: Some(LastPoint {
                id: PointId(1),
                description: format!("point 1 {}", "x".repeat(192)),
                label: Some("one".to_owned()),
                created_at: Timestamp(50),
            }),
            active_sessions: vec![ActiveSession {
                session: SessionId::from("at work"),
                agent: Some("claude".to_owned()),
                owner: Some(Process { pid: 7, started: 8 }),
            }],
            open_rewind: false,
        };
        let log = "timeline.db-wal".to_owned();
        assert!(names(dir).contains(&log));
        assert_eq!(summarize(dir).expect("it is seen"), expected);
        // A closed store leaves its log behind; a summary does not create one that was emptied and
        // removed.
        drop(store);
        let before = names(dir);
        assert!(before.contains(&log), "{before:?}");
        assert_eq!(summarize(dir).expect("it is seen"), expected);
        assert_eq!(names(dir), before);
        let db = Connection::open(dir.join(DATABASE)).expect("it opens");
        db.execute_batch("SELECT * FROM meta").expect("it reads");
        drop(db);
        let before = names(dir);
        assert!(!before.contains(&log), "{before:?}");
        assert_eq!(summarize(dir).expect("it is seen"), expected);
        assert_eq!(names(dir), before);
    }

    #[test]
    fn a_summary_does_not_wait_for_a_writer() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = SqliteStore::create(folder.path()).expect("a store");
        store.db.execute_batch("BEGIN EXCLUSIVE").expect("it is ours");
        assert_eq!(summarize(folder.path()).expect("it is seen").points, 0);
    }
}
