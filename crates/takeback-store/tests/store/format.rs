//! `fixtures/format1` is a store in the current format. Stores in other formats are refused and
//! left alone.

use std::path::{Path, PathBuf};

use serde_json::json;
use takeback_store::state::{
    Attempt, BranchName, Category, CheckpointKey, DocumentKey, ExecutionId, NewCheckpoint,
    NewEffect, StepIndex, Values,
};
use takeback_store::{
    SessionId, SqliteStates, SqliteStore, States as _, StoreError, Timestamp, Upkeep as _,
};

use crate::sample;

const FORMAT: i64 = 1;
/// The `application_id` of stores that builds before the first release wrote.
const PRE_RELEASE_ID: i64 = 0x546b_426b;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format1")
}

fn with_database<T>(dir: &Path, ask: impl FnOnce(&rusqlite::Connection) -> T) -> T {
    ask(&rusqlite::Connection::open(dir.join("timeline.db")).unwrap())
}

/// The shape of a format: its tables, and the settings made at creation.
fn shape(dir: &Path) -> Vec<String> {
    with_database(dir, |db| {
        let mut shape: Vec<String> = db
            .prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        for setting in
            ["user_version", "application_id", "auto_vacuum", "journal_mode", "page_size"]
        {
            let query = format!("SELECT CAST({setting} AS TEXT) FROM pragma_{setting}");
            let value: String = db.query_row(&query, [], |row| row.get(0)).unwrap();
            shape.push(format!("{setting} = {value}"));
        }
        shape
    })
}

#[test]
fn a_sample_of_the_format_is_read() {
    let new = tempfile::tempdir().unwrap();
    let mut expected = SqliteStore::create(new.path()).unwrap();
    sample::commit(&mut expected, 1).unwrap();
    sample::commit(&mut expected, 2).unwrap();
    let dir = tempfile::tempdir().unwrap();
    sample::copy(&fixture(), dir.path());
    let mut store = SqliteStore::open(dir.path()).unwrap();
    assert_eq!(sample::dump(&store).unwrap(), sample::dump(&expected).unwrap());
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    sample::commit(&mut store, 3).unwrap();
}

/// A released format must not change: stores on disk would be left behind.
#[test]
fn the_format_is_the_one_of_the_sample() {
    let dir = tempfile::tempdir().unwrap();
    drop(SqliteStore::create(dir.path()).unwrap());
    let copy = tempfile::tempdir().unwrap();
    sample::copy(&fixture(), copy.path());
    assert_eq!(shape(dir.path()), shape(copy.path()));
    for setting in ["user_version = 1", "application_id = 1416315475", "auto_vacuum = 2"] {
        assert!(shape(dir.path()).contains(&setting.to_owned()), "{setting}");
    }
    assert!(shape(dir.path()).contains(&"journal_mode = wal".to_owned()));
}

#[test]
fn a_store_of_a_pre_release_build_is_refused_and_left_alone() {
    for format in [1, 7] {
        let dir = tempfile::tempdir().unwrap();
        drop(SqliteStore::create(dir.path()).unwrap());
        with_database(dir.path(), |db| {
            db.pragma_update(None, "application_id", PRE_RELEASE_ID).unwrap();
            db.pragma_update(None, "user_version", format).unwrap();
        });
        let before = files(dir.path());
        for opened in [SqliteStore::open(dir.path()).err(), SqliteStore::create(dir.path()).err()] {
            let error = opened.expect("it is refused");
            assert!(matches!(error, StoreError::PreRelease { .. }), "{error}");
        }
        let error = takeback_store::summarize(dir.path()).unwrap_err().to_string();
        assert!(error.ends_with("was written by a pre-release build of Takeback"), "{error}");
        assert!(SqliteStates::at(dir.path()).executions().is_err());
        assert!(files(dir.path()) == before, "something was written");
    }
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    sample::commit(&mut SqliteStore::create(dir.path()).unwrap(), 1).unwrap();
    with_database(dir.path(), |db| db.pragma_update(None, "user_version", FORMAT + 1)).unwrap();
    for opened in [SqliteStore::open(dir.path()), SqliteStore::create(dir.path())] {
        let Err(StoreError::Newer { found, known, .. }) = opened else {
            panic!("not newer: {opened:?}");
        };
        assert_eq!((found, known), (FORMAT + 1, FORMAT));
    }
    with_database(dir.path(), |db| db.pragma_update(None, "user_version", FORMAT)).unwrap();
    assert_eq!(SqliteStore::open(dir.path()).unwrap().check().unwrap(), Vec::<String>::new());
}

/// Every file of a store but SQLite's shared memory.
fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false if path.to_string_lossy().ends_with("-shm") => {}
            false => files.push((path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    files.sort();
    files
}

/// With a SQLite log that is long enough to be checkpointed on opening, with a short one, and with
/// none.
#[test]
fn not_a_byte_of_a_newer_format_is_changed() {
    for rows in [0, 1, 3000] {
        let dir = tempfile::tempdir().unwrap();
        sample::commit(&mut SqliteStore::create(dir.path()).unwrap(), 1).unwrap();
        let db = rusqlite::Connection::open(dir.path().join("timeline.db")).unwrap();
        db.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        db.pragma_update(None, "user_version", FORMAT + 1).unwrap();
        db.execute_batch("CREATE TABLE later (text TEXT)").unwrap();
        for row in 0..rows {
            db.execute("INSERT INTO later VALUES (?1)", [format!("{row:4000}")]).unwrap();
        }
        let kept = tempfile::tempdir().unwrap();
        if rows > 0 {
            // The state after a process that does not checkpoint its log.
            sample::copy(dir.path(), kept.path());
        } else {
            drop(db);
            sample::copy(dir.path(), kept.path());
        }
        let dir = kept.path();
        let log = std::fs::metadata(dir.join("timeline.db-wal")).map_or(0, |log| log.len());
        assert_eq!((log > 0, log > 1 << 20), (rows > 0, rows > 1), "{rows} rows: {log} bytes");
        let before = files(dir);
        for opened in [SqliteStore::open(dir).err(), SqliteStore::create(dir).err()] {
            assert!(matches!(opened, Some(StoreError::Newer { .. })), "{rows} rows: {opened:?}");
        }
        assert!(matches!(takeback_store::summarize(dir), Err(StoreError::Newer { .. })));
        assert!(SqliteStates::at(dir).executions().is_err());
        assert!(files(dir) == before, "{rows} rows: something was written");
    }
}

/// A conversation that grows, with short, long and very long texts.
fn conversation(messages: u32) -> Values {
    let message = |n: u32| {
        let text: String = (0..n * n * 900).map(|at| format!("{} ", (at + n) % 977)).collect();
        json!({ "role": "user", "content": text })
    };
    let messages: serde_json::Value = (0..messages).map(message).collect();
    Values {
        state: json!({ "phase": "processing", "numbers": [0, -7, 0.5, u64::MAX, null, true] }),
        context: json!({ "messages": messages }),
        ..Values::default()
    }
}

const STEPS: u32 = 6;

fn save_states(dir: &Path) {
    let states = SqliteStates::at(dir);
    let execution = ExecutionId::new("exec-1").unwrap();
    for step in 1..=STEPS {
        let values = conversation(step);
        let new = NewCheckpoint {
            session: Some(&SessionId::from("agent")),
            ..NewCheckpoint::success(
                &execution,
                StepIndex(step),
                "think",
                Timestamp(1_700_000_000_000 + i64::from(step)),
                &values,
            )
        };
        states.save(&new).unwrap();
    }
    let third =
        CheckpointKey { execution: execution.clone(), step: StepIndex(3), attempt: Attempt::FIRST };
    states.fork(&third, &BranchName::new("other").unwrap()).unwrap();
    states.count_retry(&execution, StepIndex(4), 3).unwrap();
    let (key, intent, time) = ("mail", json!({ "to": "a@example.org" }), Timestamp(2));
    let step = Some(StepIndex(4));
    let effect = NewEffect { execution: &execution, key, step, intent: &intent, time };
    states.declare_effect(&effect).unwrap();
    let key = DocumentKey::new("conv").unwrap();
    states.put_document(Category::Conversation, &key, &conversation(2).context).unwrap();
}

#[test]
fn states_of_the_sample_are_read() {
    let dir = tempfile::tempdir().unwrap();
    sample::copy(&fixture(), dir.path());
    let states = SqliteStates::at(dir.path());
    let execution = ExecutionId::new("exec-1").unwrap();
    for step in 1..=STEPS {
        let id = format!("ckpt-exec-1-{step}.a1").parse().unwrap();
        let found = states.load(&id).unwrap().expect("it was saved");
        assert_eq!(found.values, conversation(step));
    }
    let head = states.head(&execution, None).unwrap().unwrap();
    assert_eq!((head.branch.as_str(), head.record.unwrap().key.step.0), ("other", 3));
    assert_eq!(states.count_retry(&execution, StepIndex(4), 3).unwrap(), 2);
    assert_eq!(states.effects(&execution).unwrap()[0].intent["to"], "a@example.org");
    let key = DocumentKey::new("conv").unwrap();
    let document = states.document(Category::Conversation, &key).unwrap();
    assert_eq!(document, Some(conversation(2).context));
    assert_eq!(states.check().unwrap(), Vec::<String>::new());
}

/// `cargo test -p takeback-store write_the_sample -- --ignored`
#[test]
#[ignore = "rewrites the sample of the format"]
fn write_the_sample() {
    let dir = fixture();
    if dir.exists() {
        std::fs::remove_dir_all(&dir).unwrap();
    }
    let mut store = SqliteStore::create(&dir).unwrap();
    sample::commit(&mut store, 1).unwrap();
    sample::commit(&mut store, 2).unwrap();
    save_states(&dir);
    drop(store);
    // Closing a connection with SQLite's defaults empties the log into the database.
    with_database(&dir, |db| db.execute_batch("SELECT * FROM meta")).unwrap();
}
