//! Any damage to the files of a store is noticed and described, and never causes a panic.

use std::path::{Path, PathBuf};

use takeback_store::{Blobs as _, Log as _, SqliteStore, StoreError, Upkeep as _};

use crate::sample;

fn store() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    sample::commit(&mut store, 1).unwrap();
    sample::commit(&mut store, 2).unwrap();
    let dump = sample::dump(&store).unwrap();
    (dir, dump)
}

fn segment(dir: &Path) -> PathBuf {
    dir.join("packs/00000001.pack")
}

/// Everything read from the store is unchanged or an error, and if something is missing, a check
/// reports it. Returns what the check found.
#[track_caller]
fn assert_noticed(dir: &Path, dump: &str, what: &str) -> Vec<String> {
    let store = match SqliteStore::open(dir) {
        Ok(store) => store,
        Err(
            error @ (StoreError::DamagedDatabase { .. }
            | StoreError::DamagedRecord { .. }
            | StoreError::Foreign { .. }
            | StoreError::Newer { .. }
            | StoreError::Database { .. }),
        ) => return vec![error.to_string()],
        Err(error) => panic!("{what}: {error:?}"),
    };
    let found = store.check().unwrap_or_else(|error| panic!("{what}: {error:?}"));
    match sample::dump(&store) {
        Ok(now) => assert!(now == dump || !found.is_empty(), "{what}: changed, unnoticed"),
        Err(error) => assert!(!found.is_empty(), "{what}: {error:?}, but a check finds nothing"),
    }
    found
}

#[test]
fn a_flipped_bit_in_a_segment_is_found() {
    let (dir, dump) = store();
    let whole = std::fs::read(segment(dir.path())).unwrap();
    for at in (0..whole.len()).step_by(whole.len() / 100) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        std::fs::write(segment(dir.path()), bytes).unwrap();
        let found = assert_noticed(dir.path(), &dump, &format!("byte {at}"));
        // A part of large files: the part and both files are reported.
        assert!(matches!(found.len(), 1..=3), "byte {at}: {found:?}");
        let is_expected =
            |line: &String| line.contains("damaged") || line.contains("lack their part");
        assert!(found.iter().all(is_expected), "byte {at}: {found:?}");
    }
}

#[test]
fn contents_are_readable_if_only_their_header_is_damaged() {
    let (dir, dump) = store();
    let mut bytes = std::fs::read(segment(dir.path())).unwrap();
    bytes[20] ^= 1;
    std::fs::write(segment(dir.path()), bytes).unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    assert_eq!(sample::dump(&store).unwrap(), dump);
    let found = store.check().unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("src/main.rs (change 1) are whole, but"), "{found:?}");
}

#[test]
fn a_truncated_or_missing_segment_is_found() {
    let (dir, dump) = store();
    let whole = std::fs::read(segment(dir.path())).unwrap();
    for length in [whole.len() - 1, whole.len() / 2, 60, 10, 0] {
        std::fs::write(segment(dir.path()), &whole[..length]).unwrap();
        let found = assert_noticed(dir.path(), &dump, &format!("{length} bytes"));
        assert!(
            found.iter().any(|line| line.contains("missing from segment 00000001")),
            "{found:?}"
        );
    }
    std::fs::remove_file(segment(dir.path())).unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let found = store.check().unwrap();
    assert!(found.iter().any(|line| line.contains("of src/main.rs (change 1)")), "{found:?}");
    assert!(matches!(sample::dump(&store), Err(StoreError::DamagedBlob { .. })));
    // New changes are stored as usual.
    drop(store);
    let mut store = SqliteStore::open(dir.path()).unwrap();
    sample::commit(&mut store, 3).unwrap();
    let newest = store.changes_after(takeback_store::Seq(10)).unwrap();
    store.contents(&newest[0].after.digest().unwrap()).unwrap();
}

#[test]
fn a_flipped_bit_in_the_database_is_never_a_panic() {
    let (dir, dump) = store();
    let database = dir.path().join("timeline.db");
    let whole = std::fs::read(&database).unwrap();
    for step in 0..200 {
        let at = step * whole.len() / 200 + step % 97;
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (step % 8);
        std::fs::write(&database, bytes).unwrap();
        // The database has no checksums: a flipped bit in a time or a text is another time or text.
        let Ok(store) = SqliteStore::open(dir.path()) else { continue };
        store.check().unwrap();
        sample::dump(&store).map(drop).unwrap_or_default();
    }
    std::fs::write(&database, &whole).unwrap();
    assert_eq!(assert_noticed(dir.path(), &dump, "whole again"), Vec::<String>::new());
}

#[test]
fn a_truncated_database_is_found() {
    let (dir, dump) = store();
    let database = dir.path().join("timeline.db");
    let whole = std::fs::read(&database).unwrap();
    for length in (0..whole.len()).step_by(4096).chain([1, 99, 1000, whole.len() - 1]) {
        std::fs::write(&database, &whole[..length]).unwrap();
        let found = assert_noticed(dir.path(), &dump, &format!("{length} bytes"));
        assert!(!found.is_empty(), "{length} bytes");
    }
}

#[test]
fn rows_that_contradict_one_another_are_found() {
    let (whole, _) = store();
    for (damage, word) in [
        ("UPDATE point SET seq = 99 WHERE id = 1", "point 0000000000000001 is after"),
        ("UPDATE meta SET seq = 9", "change 10 is after"),
        ("DELETE FROM meta", "damaged"),
        ("DELETE FROM path WHERE bytes = x'6c696e6b'", "a change refers to a path"),
        ("DELETE FROM session WHERE name = 'parser'", "refers to a session that does not exist"),
        ("DELETE FROM blob WHERE encoding = 1", "src/main.rs (change 1) are not in the store"),
        ("DELETE FROM blob WHERE size < 4194304 AND size > 100000", "lack their part"),
        ("UPDATE blob SET encoding = 7 WHERE encoding = 0", "its encoding"),
        ("UPDATE blob SET encoding = 0 WHERE encoding = 1", "damaged in segment"),
        ("UPDATE blob SET offset = offset + 1 WHERE encoding = 0", "damaged in segment"),
        ("UPDATE blob SET segment = 7", "missing from segment 00000007"),
        ("UPDATE blob SET length = 4294967295", "missing from segment 00000001"),
        ("UPDATE blob SET length = -1", "checking it"),
        ("UPDATE blob SET size = 9223372036854775807", "another size in the log"),
        (
            "UPDATE blob SET size = 1 WHERE encoding = 2; UPDATE change SET after = x'00'",
            "damaged in",
        ),
        ("UPDATE change SET before = x'09' WHERE seq = 3", "change 3 in the store is damaged"),
        ("UPDATE change SET kind = 9 WHERE seq = 3", "change 3 in the store is damaged"),
        ("UPDATE change SET evidence = 9 WHERE seq = 3", "change 3 in the store is damaged"),
        ("UPDATE change SET cancels = x'80' WHERE seq = 5", "change 5 in the store is damaged"),
        ("UPDATE path SET bytes = x'2e2e'  WHERE bytes = x'6f7574'", "change 4 in the store"),
        ("UPDATE call SET state = 9", "call call-1 in the store is damaged"),
        ("UPDATE call SET paths = x'ff'", "call call-1 in the store is damaged"),
        ("UPDATE point SET kind = 9", "point 0000000000000001 in the store is damaged"),
        ("UPDATE rewind SET kind = 9", "rewind 0000000000000001 in the store is damaged"),
        ("UPDATE rewind SET state = 9", "rewind 0000000000000001 in the store is damaged"),
        ("DROP INDEX change_of_path; DROP TABLE rewind", "no such table"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        sample::copy(whole.path(), dir.path());
        let db = rusqlite::Connection::open(dir.path().join("timeline.db")).unwrap();
        db.pragma_update(None, "foreign_keys", false).unwrap();
        db.execute_batch(damage).unwrap();
        drop(db);
        let found = SqliteStore::open(dir.path()).unwrap().check().unwrap();
        assert!(found.iter().any(|line| line.contains(word)), "{damage}: {found:#?}");
    }
}

#[test]
fn a_change_that_lost_its_path_is_not_left_out() {
    let (dir, _) = store();
    let db = rusqlite::Connection::open(dir.path().join("timeline.db")).unwrap();
    db.pragma_update(None, "foreign_keys", false).unwrap();
    db.execute_batch("DELETE FROM path WHERE bytes = x'6c696e6b'").unwrap();
    let store = SqliteStore::open(dir.path()).unwrap();
    let read = store.changes_after(takeback_store::Seq(0));
    let Err(StoreError::DamagedRecord { what, .. }) = read else {
        panic!("not damaged: {read:?}");
    };
    assert_eq!(what, "change 2");
}
