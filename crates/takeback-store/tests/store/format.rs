//! A store that an earlier version wrote is opened by this one; one of a later version is refused.
//!
//! `fixtures/format<n>` is a store of each format, as the version that introduced it wrote it.

use std::path::{Path, PathBuf};

use takeback_store::{SqliteStore, Store as _, StoreError};

use crate::sample;

const FORMAT: i64 = 3;

fn fixture(format: i64) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/format{format}"))
}

fn with_database<T>(dir: &Path, ask: impl FnOnce(&rusqlite::Connection) -> T) -> T {
    ask(&rusqlite::Connection::open(dir.join("timeline.db")).unwrap())
}

/// What tells one format from another: the tables, and what is set once at creation.
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
fn stores_of_every_format_are_opened() {
    let new = tempfile::tempdir().unwrap();
    let mut expected = SqliteStore::create(new.path()).unwrap();
    sample::commit(&mut expected, 1).unwrap();
    sample::commit(&mut expected, 2).unwrap();
    let expected_told = sample::told(&expected).unwrap();
    drop(expected);
    for format in 1..=FORMAT {
        let dir = tempfile::tempdir().unwrap();
        sample::copy(&fixture(format), dir.path());
        let mut store = SqliteStore::open(dir.path()).unwrap();
        assert_eq!(sample::told(&store).unwrap(), expected_told, "format {format}");
        assert_eq!(store.check().unwrap(), Vec::<String>::new(), "format {format}");
        sample::commit(&mut store, 3).unwrap();
        drop(store);
        assert_eq!(shape(dir.path()), shape(new.path()), "format {format}, brought up to date");
    }
}

/// Tables that changed without a new format would leave the stores of this one behind.
#[test]
fn the_newest_format_is_the_one_of_its_fixture() {
    let dir = tempfile::tempdir().unwrap();
    drop(SqliteStore::create(dir.path()).unwrap());
    let copy = tempfile::tempdir().unwrap();
    sample::copy(&fixture(FORMAT), copy.path());
    assert_eq!(shape(dir.path()), shape(copy.path()));
    assert!(shape(dir.path()).contains(&format!("user_version = {FORMAT}")));
    assert!(shape(dir.path()).contains(&"auto_vacuum = 2".to_owned()));
    assert!(shape(dir.path()).contains(&"journal_mode = wal".to_owned()));
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

/// For whoever makes a new format: `cargo test -p takeback-store write_the_fixture -- --ignored`.
#[test]
#[ignore = "writes the fixture of the newest format"]
fn write_the_fixture() {
    let dir = fixture(FORMAT);
    if dir.exists() {
        std::fs::remove_dir_all(&dir).unwrap();
    }
    let mut store = SqliteStore::create(&dir).unwrap();
    sample::commit(&mut store, 1).unwrap();
    sample::commit(&mut store, 2).unwrap();
}
