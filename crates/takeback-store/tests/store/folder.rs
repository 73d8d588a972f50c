//! The folder of a store: its files, their permissions, and folders that are not stores.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::fs::Mode;
use takeback_store::{
    Head, Log as _, SqliteStore, StoreError, Timestamp, Turn, TurnId, Upkeep as _, Write,
};

use crate::sample;

fn modes(dir: &Path, found: &mut BTreeMap<String, u32>) {
    for file in std::fs::read_dir(dir).unwrap() {
        let file = file.unwrap();
        let metadata = file.metadata().unwrap();
        let name = file.file_name().into_string().unwrap();
        found.insert(name, metadata.permissions().mode() & 0o7777);
        if metadata.is_dir() {
            modes(&file.path(), found);
        }
    }
}

#[test]
fn only_the_owner_may_read_anything() {
    let dir = tempfile::tempdir().unwrap();
    let umask = rustix::process::umask(Mode::empty());
    let mut store = SqliteStore::create(&dir.path().join("above/store")).unwrap();
    sample::commit(&mut store, 1).unwrap();
    let mut found = BTreeMap::new();
    modes(dir.path(), &mut found);
    rustix::process::umask(umask);
    let expected = [
        ("00000001.pack", 0o600),
        ("above", 0o700),
        ("head", 0o600),
        ("packs", 0o700),
        ("store", 0o700),
        ("timeline.db", 0o600),
        ("timeline.db-shm", 0o600),
        ("timeline.db-wal", 0o600),
    ];
    assert_eq!(found, expected.map(|(name, mode)| (name.to_owned(), mode)).into());
}

#[test]
fn a_closed_store_leaves_itself_and_a_log() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    sample::commit(&mut store, 1).unwrap();
    drop(store);
    let mut found = BTreeMap::new();
    modes(dir.path(), &mut found);
    let expected =
        ["00000001.pack", "head", "packs", "timeline.db", "timeline.db-shm", "timeline.db-wal"];
    assert_eq!(found.into_keys().collect::<Vec<_>>(), expected);
}

#[test]
fn replaced_records_leave_no_trace_in_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let turn = Turn {
        id: TurnId(1),
        session: "s".into(),
        message: None,
        prompt: "my password is hunter2".repeat(10),
        opened_at: Timestamp(0),
        closed_at: None,
        model: None,
    };
    let head = store.commit(Head::default(), &[Write::Turn(turn.clone())]).unwrap();
    let forgotten = Turn { prompt: String::new(), ..turn };
    store.commit(head, &[Write::Turn(forgotten)]).unwrap();
    drop(store);
    // Closing this connection checkpoints the log, which Takeback itself avoids.
    let db = rusqlite::Connection::open(dir.path().join("timeline.db")).unwrap();
    db.execute_batch("SELECT * FROM turn").unwrap();
    drop(db);
    assert!(!dir.path().join("timeline.db-wal").exists());
    let file = std::fs::read(dir.path().join("timeline.db")).unwrap();
    assert!(!file.windows(7).any(|bytes| bytes == b"hunter2"));
}

#[test]
fn handles_that_commit_in_turn_share_a_segment() {
    let dir = tempfile::tempdir().unwrap();
    let mut one = SqliteStore::create(dir.path()).unwrap();
    let mut other = SqliteStore::open(dir.path()).unwrap();
    for number in [2, 4, 6] {
        sample::commit(&mut one, number).unwrap();
        sample::commit(&mut other, number + 1).unwrap();
    }
    assert_eq!(std::fs::read_dir(dir.path().join("packs")).unwrap().count(), 1);
}

#[test]
fn creating_an_existing_store_opens_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let head = sample::commit(&mut store, 1).unwrap();
    assert_eq!(SqliteStore::create(dir.path()).unwrap().head().unwrap(), head);
    drop(store);
    assert_eq!(SqliteStore::create(dir.path()).unwrap().head().unwrap(), head);
}

#[test]
fn leftovers_of_a_crashed_creator_do_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..100 {
        let left = format!("timeline.db.{}-{number}.new", std::process::id());
        std::fs::write(dir.path().join(left), "half").unwrap();
    }
    assert_eq!(SqliteStore::create(dir.path()).unwrap().head().unwrap(), Head::default());
}

#[test]
fn many_creators_make_one_store() {
    for _ in 0..8 {
        let dir = tempfile::tempdir().unwrap();
        let dir = &dir.path().join("store");
        std::thread::scope(|scope| {
            for number in 0..4 {
                scope.spawn(move || {
                    let mut store = SqliteStore::create(dir).unwrap();
                    while let Err(error) = sample::commit(&mut store, number) {
                        assert!(matches!(error, StoreError::Moved), "{error:?}");
                    }
                });
            }
        });
        let store = SqliteStore::open(dir).unwrap();
        assert_eq!(store.head().unwrap().revision, 4);
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}

#[test]
fn opening_a_missing_store_fails() {
    let dir = tempfile::tempdir().unwrap();
    for missing in [dir.path().to_owned(), dir.path().join("not/here")] {
        let opened = SqliteStore::open(&missing);
        let Err(StoreError::Missing { path }) = opened else {
            panic!("not missing: {opened:?}");
        };
        assert!(path.starts_with(&missing));
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "looking leaves nothing");
}

#[test]
fn foreign_files_are_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("timeline.db");
    let other_database = {
        let path = dir.path().join("other.db");
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch("CREATE TABLE timeline (id INTEGER)").unwrap();
        drop(db);
        std::fs::read(path).unwrap()
    };
    for bytes in [&b""[..], b"x", &sample::noise(1, 20_000), &other_database] {
        std::fs::write(&database, bytes).unwrap();
        for opened in [SqliteStore::open(dir.path()), SqliteStore::create(dir.path())] {
            assert!(matches!(opened, Err(StoreError::Foreign { .. })), "{opened:?}");
        }
        assert_eq!(std::fs::read(&database).unwrap(), bytes);
    }
}

#[test]
fn a_writer_that_keeps_the_lock_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let db = rusqlite::Connection::open(dir.path().join("timeline.db")).unwrap();
    db.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = sample::commit(&mut store, 1);
    assert!(matches!(refused, Err(StoreError::Busy { .. })), "{refused:?}");
    // Reading still works, and the next try commits what was put.
    assert_eq!(store.head().unwrap(), Head::default());
    db.execute_batch("ROLLBACK").unwrap();
    store.commit(Head::default(), &[]).unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}
