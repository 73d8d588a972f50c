//! What is deleted with a session, and what stays.

use takeback_store::{Author, Log as _, SqliteStore, TurnId, Upkeep as _, Write};

use crate::sample;

#[test]
fn dropping_a_session_drops_its_records_and_keeps_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    for number in 1..=2 {
        sample::commit(&mut store, number).unwrap();
    }
    let mut changes = store.changes_after(takeback_store::Seq(0)).unwrap();
    let points = store.points().unwrap();
    let sessions = store.sessions().unwrap();

    let head = store.head().unwrap();
    let head = store.commit(head, &[Write::DropSession("session-1".into())]).unwrap();
    let db = rusqlite::Connection::open(dir.path().join("timeline.db")).unwrap();

    // Changes stay, without an author: going back to a point of another session may need them.
    for change in &mut changes {
        match &mut change.author {
            Author::Agent { session, .. } if session.0 == "session-1" => {
                change.author = Author::Deleted;
            }
            Author::Ambiguous { sessions } => sessions.retain(|id| id.0 != "session-1"),
            _ => {}
        }
    }
    assert_eq!(store.changes_after(takeback_store::Seq(0)).unwrap(), changes);
    assert_eq!(store.points().unwrap(), points[1..]);
    assert_eq!(store.sessions().unwrap(), sessions[1..]);
    assert_eq!(store.turn(TurnId(1)).unwrap(), None);
    assert_eq!(store.call(&"session-1".into(), &"call-1".into()).unwrap(), None);
    assert!(store.call(&"parser".into(), &"call-1".into()).unwrap().is_some());
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let rows = |table| {
        let count = format!("SELECT count(*) FROM {table}");
        db.query_row(&count, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert_eq!(["author", "turn", "call", "point", "point_message"].map(rows), [1, 1, 3, 1, 2]);

    // Children of a deleted session have no parent.
    store.commit(head, &[Write::DropSession("parser".into())]).unwrap();
    assert_eq!(store.session(&"session-2".into()).unwrap().unwrap().parent, None);
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}
