//! What a commit waits for, and what happens to SQLite's log.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use takeback_store::disk::{self, CrashPoint};
use takeback_store::{
    Blobs as _, Durability, Head, Log as _, PackedBlob, PointId, RewindId, RewindKind,
    RewindRecord, RewindState, Seq, SessionId, SqliteStore, StoredPlan, Timestamp, Turn, TurnId,
    Upkeep as _, Write,
};

use crate::sample;

fn turn(number: u64, prompt: &str) -> Write {
    Write::Turn(Turn {
        id: TurnId(number),
        session: "s".into(),
        message: None,
        prompt: prompt.to_owned(),
        opened_at: Timestamp(0),
        closed_at: None,
        model: None,
    })
}

fn rewind() -> Write {
    Write::Rewind(RewindRecord {
        id: RewindId(1),
        kind: RewindKind::Rewind { point: PointId(1) },
        state: RewindState::Open,
        began_at: Seq(0),
        safety_point: PointId(2),
        created_at: Timestamp(0),
        plan: StoredPlan::of_text("{}").expect("it fits in memory"),
        receipt: None,
    })
}

fn log_of(dir: &Path) -> u64 {
    std::fs::metadata(dir.join("timeline.db-wal")).map_or(0, |log| log.len())
}

/// The crash points that a commit with new contents passes.
fn passed(store: &mut SqliteStore, contents: &str, write: Write) -> Vec<CrashPoint> {
    store.put(PackedBlob::new(contents.into())).unwrap();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let sink = Rc::clone(&seen);
    disk::watch(Some(Box::new(move |point| sink.borrow_mut().push(point))));
    let head = store.head().unwrap();
    store.commit(head, &[write]).unwrap();
    disk::watch(None);
    seen.take()
}

#[test]
fn a_commit_obeys_its_durability_and_a_rewind_is_always_durable() {
    use CrashPoint::{Append, Commit, Committed, Overwrite, Sync};
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    passed(&mut store, "the first makes a segment", turn(0, ""));
    let waits = [Append, Sync, Commit, Committed, Overwrite];
    for (durability, plain, promise) in [
        (Durability::Full, waits.as_slice(), waits.as_slice()),
        (Durability::Normal, &waits, &waits),
        // The contents of all earlier commits before its own.
        (
            Durability::Off,
            &[Append, Commit, Committed, Overwrite],
            &[Sync, Append, Sync, Commit, Committed, Overwrite],
        ),
    ] {
        let word = durability.name();
        store.set_durability(durability).unwrap();
        for round in 0..2 {
            let contents = |what: &str| format!("{word} {what} {round}");
            assert_eq!(passed(&mut store, &contents("turn"), turn(1, word)), plain, "{word}");
            assert_eq!(passed(&mut store, &contents("rewind"), rewind()), promise, "{word}");
        }
    }
}

#[test]
fn at_every_level_another_process_finds_what_was_committed() {
    for durability in Durability::ALL {
        let dir = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::create(dir.path()).unwrap();
        store.set_durability(durability).unwrap();
        sample::commit(&mut store, 1).unwrap();
        sample::commit(&mut store, 2).unwrap();
        // Nothing is closed, as if the process had been killed.
        let copy = tempfile::tempdir().unwrap();
        sample::copy(dir.path(), copy.path());
        let found = SqliteStore::open(copy.path()).unwrap();
        assert_eq!(found.check().unwrap(), Vec::<String>::new(), "{}", durability.name());
        assert_eq!(sample::dump(&found).unwrap(), sample::dump(&store).unwrap());
    }
}

/// Commits until the log is so long that the next process checkpoints it.
fn fill_log(store: &mut SqliteStore) -> Head {
    let mut head = store.head().unwrap();
    for number in 0..10 {
        head = store.commit(head, &[turn(number, &"a prompt ".repeat(10_000))]).unwrap();
    }
    head
}

#[test]
fn opening_a_store_checkpoints_a_long_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let head = store.commit(Head::default(), &[turn(0, "short")]).unwrap();
    drop(store);
    let short = log_of(dir.path());
    let mut store = SqliteStore::open(dir.path()).unwrap();
    assert_eq!((store.head().unwrap(), log_of(dir.path())), (head, short));
    let head = fill_log(&mut store);
    drop(store);
    assert!(log_of(dir.path()) > 128 * 4120, "{}", log_of(dir.path()));
    let store = SqliteStore::open(dir.path()).unwrap();
    assert_eq!((store.head().unwrap(), log_of(dir.path())), (head, 0));
}

#[test]
fn a_log_in_use_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let reader = rusqlite::Connection::open(dir.path().join("timeline.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM meta").unwrap();
    let head = fill_log(&mut store);
    drop(store);
    let long = log_of(dir.path());
    let mut store = SqliteStore::open(dir.path()).unwrap();
    assert_eq!((store.head().unwrap(), log_of(dir.path())), (head, long));
    store.commit(head, &[turn(11, "one more")]).unwrap();
    reader.execute_batch("COMMIT").unwrap();
}

#[test]
fn deleted_records_leave_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let head = store.commit(Head::default(), &[turn(1, "my password is hunter2")]).unwrap();
    store.commit(head, &[Write::DropSession(SessionId::from("s"))]).unwrap();
    for file in ["timeline.db", "timeline.db-wal"] {
        let bytes = std::fs::read(dir.path().join(file)).unwrap();
        assert!(!bytes.windows(7).any(|part| part == b"hunter2"), "{file}");
    }
}
