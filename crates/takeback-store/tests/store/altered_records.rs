//! Altered records and lost commits: a check finds them, and so does every use of them. These tests
//! alter the database through SQLite.

use std::path::{Path, PathBuf};

use takeback_store::{
    Entry, Log as _, Loss, NotCapturedReason, PointId, PointQuery, Seq, SqliteStore, StoreError,
    Upkeep as _,
};

use crate::sample;

fn store() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    sample::commit(&mut store, 1).unwrap();
    sample::commit(&mut store, 2).unwrap();
    dir
}

fn alter(dir: &Path, sql: &str) {
    let db = rusqlite::Connection::open(dir.join("timeline.db")).unwrap();
    db.pragma_update(None, "foreign_keys", false).unwrap();
    db.execute_batch(sql).unwrap();
}

/// No field of a record can change unnoticed.
#[test]
fn every_altered_record_is_found() {
    let whole = store();
    const RECORDS: &str = "the log: records are missing";
    for (damage, word) in [
        // The last byte of a file's entry is the end of its mode.
        ("UPDATE change SET after = x'03ed03' WHERE seq = 1", "change 1 of src/main.rs"),
        ("UPDATE change SET time = time + 1 WHERE seq = 2", "change 2 of "),
        ("UPDATE change SET changed_at = 5 WHERE seq = 2", "change 2 of "),
        ("UPDATE change SET evidence = 3 - evidence WHERE seq = 1", "change 1 of "),
        ("UPDATE change SET cancels = NULL WHERE cancels IS NOT NULL", "change 5 of "),
        ("UPDATE session SET sum = NULL", "session "),
        ("UPDATE change SET sum = randomblob(16) WHERE seq = 2", "change 2 of "),
        ("UPDATE path SET bytes = x'6c696e6c' WHERE bytes = x'6c696e6b'", "of linl"),
        ("UPDATE author SET tool = 'Other'", "change 1 of "),
        ("UPDATE suspect SET position = 5 - position", "change "),
        ("DELETE FROM suspect WHERE position = 0", "change "),
        ("UPDATE session SET name = 'other' WHERE name = 'session-1'", "session other"),
        ("UPDATE session SET started_at = 1", "session "),
        ("UPDATE turn SET prompt = prompt || '.'", "a turn of session "),
        ("UPDATE session SET model = 'other'", "session "),
        ("UPDATE turn SET model = NULL", "a turn of session "),
        ("UPDATE call SET tool = 'Other'", "call call-1 of session "),
        ("UPDATE call SET closed_at = 7", "call call-1 of session "),
        ("UPDATE point SET seq = seq - 1", "point 0000000000000001"),
        ("UPDATE point SET label = 'other'", "point 0000000000000001"),
        ("UPDATE point_message SET message = 'other'", "point 0000000000000001"),
        ("UPDATE rewind SET plan = CAST(plan || x'00' AS BLOB)", "rewind 0000000000000001"),
        ("DELETE FROM change WHERE seq = 3; DELETE FROM suspect WHERE change = 3", RECORDS),
        ("DELETE FROM change WHERE seq = (SELECT max(seq) FROM change)", RECORDS),
        ("DELETE FROM point WHERE id = 1", RECORDS),
        ("DELETE FROM rewind", RECORDS),
        ("DELETE FROM call", RECORDS),
        (
            "INSERT INTO change (seq, path, before, after, kind, evidence, time, sum)
             SELECT 4, path, before, after, kind, evidence, time, sum FROM change WHERE seq = 2
             ON CONFLICT DO UPDATE SET path = excluded.path, before = excluded.before, \
             after = excluded.after, sum = excluded.sum",
            "change 4 of ",
        ),
        (
            "INSERT INTO turn SELECT 99, session, NULL, 'x', 1, NULL, NULL, sum FROM turn LIMIT 1",
            "a turn of",
        ),
        ("UPDATE meta SET records = zeroblob(2048)", RECORDS),
        ("UPDATE meta SET records = x'00'", "the set of all records"),
        ("UPDATE link SET body = zeroblob(32) WHERE revision = 1", "commit 1 does not follow"),
        ("UPDATE link SET hash = zeroblob(32) WHERE revision = 1", "commit 1 does not follow"),
        ("DELETE FROM link WHERE revision = 1", "no commit between 0 and 2"),
        ("DELETE FROM link WHERE revision = 2", "the chain ends at commit 1"),
        ("DELETE FROM link", "no link"),
        ("UPDATE meta SET revision = 9", "the chain ends at commit 2"),
        ("UPDATE link SET hash = randomblob(32) WHERE revision = 2", "commit 2 "),
    ] {
        let dir = tempfile::tempdir().unwrap();
        sample::copy(whole.path(), dir.path());
        alter(dir.path(), damage);
        let found = SqliteStore::open(dir.path()).unwrap().check().unwrap();
        assert!(found.iter().any(|line| line.contains(word)), "{damage}: {found:#?}");
    }
    let found = SqliteStore::open(whole.path()).unwrap().check().unwrap();
    assert_eq!(found, Vec::<String>::new());
}

/// The rest of the log is readable; the entries of the damaged record are marked as damaged.
#[test]
fn a_damaged_record_does_not_affect_the_rest() {
    let dir = store();
    let before = SqliteStore::open(dir.path()).unwrap().changes_after(Seq(0)).unwrap();
    let Entry::File { digest, size, mode } = before[0].after else { panic!("{:?}", before[0]) };
    let flipped = Entry::File { digest, size, mode: mode ^ 0o100 };
    // The mode is the end of the entry, in two bytes of seven bits each.
    alter(
        dir.path(),
        "UPDATE change SET after = CAST(substr(after, 1, length(after) - 2) || x'e403' AS BLOB)
         WHERE seq = 1",
    );
    let mut store = SqliteStore::open(dir.path()).unwrap();
    let now = store.changes_after(Seq(0)).unwrap();
    assert_ne!(now[0].after, flipped);
    assert_eq!(now[0].after, Entry::NotCaptured { reason: NotCapturedReason::Damaged });
    assert_eq!(now[0].path, before[0].path);
    assert_eq!(now[1..], before[1..]);
    // New commits work and do not hide the damage.
    sample::commit(&mut store, 3).unwrap();
    let found = store.check().unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        matches!(store.unreferenced(), Err(StoreError::DamagedRecord { .. })),
        "nothing is dropped"
    );
}

#[test]
fn a_moved_point_and_a_changed_plan_are_not_used() {
    let dir = store();
    alter(
        dir.path(),
        "UPDATE point SET seq = 1; UPDATE rewind SET plan = CAST(plan || x'00' AS BLOB)",
    );
    let store = SqliteStore::open(dir.path()).unwrap();
    assert!(!store.points().unwrap().is_empty(), "they are listed");
    let asked = store.find_points(PointQuery::Id(PointId(1)));
    assert!(matches!(asked, Err(StoreError::DamagedRecord { .. })), "{asked:?}");
    assert!(store.rewinds().unwrap().iter().all(|rewind| rewind.plan.is_empty()));
}

/// Only a limited number of links is kept, and they still form one chain.
#[test]
fn old_links_are_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    store.set_durability(takeback_store::Durability::Off).unwrap();
    let mut head = store.head().unwrap();
    for _ in 0..1200 {
        head = store.commit(head, &[]).unwrap();
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let db = rusqlite::Connection::open(dir.path().join("timeline.db")).unwrap();
    let links: i64 = db.query_row("SELECT count(*) FROM link", [], |row| row.get(0)).unwrap();
    assert!((1024..1100).contains(&links), "{links}");
}

// --- the end of the log --------------------------------------------------------------------------

fn wal(dir: &Path) -> PathBuf {
    dir.join("timeline.db-wal")
}

/// A store in which everything after the first commit is only in SQLite's log.
fn with_wal() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    for number in 1..=3 {
        sample::commit(&mut store, number).unwrap();
    }
    assert_eq!(store.losses().unwrap(), []);
    dir
}

#[test]
fn a_cut_or_damaged_log_is_found_and_stays_reported() {
    let whole = with_wal();
    let length = std::fs::metadata(wal(whole.path())).unwrap().len();
    let head = SqliteStore::open(whole.path()).unwrap().head().unwrap();
    let mut lost = 0;
    let cuts = (0..=20).map(|part| (length * part / 20, None));
    let flips = (1..20).map(|part| (length, Some(length * part / 20)));
    for (cut, flip) in cuts.chain(flips) {
        let what = format!("cut at {cut}, flipped at {flip:?} of {length}");
        let dir = tempfile::tempdir().unwrap();
        sample::copy(whole.path(), dir.path());
        let mut bytes = std::fs::read(wal(dir.path())).unwrap();
        bytes.truncate(usize::try_from(cut).unwrap());
        if let Some(at) = flip {
            bytes[usize::try_from(at).unwrap()] ^= 0x20;
        }
        std::fs::write(wal(dir.path()), bytes).unwrap();
        // Without its shared memory SQLite rebuilds the index of the log, as after a crash.
        drop(std::fs::remove_file(dir.path().join("timeline.db-shm")));
        let mut store = SqliteStore::open(dir.path()).unwrap();
        let now = store.head().unwrap();
        let found = store.check().unwrap();
        if now == head {
            assert_eq!(found, Vec::<String>::new(), "{what}");
            continue;
        }
        lost += 1;
        let loss = Loss { kept: now, lost: head };
        assert_eq!(store.losses().unwrap(), [loss], "{what}");
        assert!(found.iter().any(|line| line.contains("are lost")), "{what}: {found:?}");
        std::fs::write(dir.path().join("index"), "knows more than the log").unwrap();
        sample::commit(&mut store, 4).unwrap();
        drop(store);
        let store = SqliteStore::open(dir.path()).unwrap();
        assert_eq!(store.losses().unwrap(), [loss], "{what}, and gone on");
        let found = store.check().unwrap();
        assert_eq!(found.len(), 1, "{what}: {found:?}");
        assert!(found[0].contains("are lost"), "{what}: {found:?}");
        assert!(!dir.path().join("index").exists(), "{what}: it names changes that are no more");
    }
    assert!(lost > 10, "{lost}");
}

/// SQLite would apply the log to a new database.
#[test]
fn a_lost_database_is_never_created_again_next_to_its_remains() {
    let whole = with_wal();
    for kept in ["timeline.db-wal", "head", "packs"] {
        let dir = tempfile::tempdir().unwrap();
        sample::copy(whole.path(), dir.path());
        for name in ["timeline.db", "timeline.db-wal", "timeline.db-shm", "head"] {
            if name != kept {
                drop(std::fs::remove_file(dir.path().join(name)));
            }
        }
        if kept != "packs" {
            std::fs::remove_dir_all(dir.path().join("packs")).unwrap();
        }
        for opened in [SqliteStore::open(dir.path()), SqliteStore::create(dir.path())] {
            let Err(StoreError::LostDatabase { left, .. }) = opened else {
                panic!("{kept}: {opened:?}");
            };
            assert!(left.starts_with(dir.path().join(kept)), "{kept}: {left:?}");
        }
        assert!(SqliteStore::exists(dir.path()).unwrap(), "{kept}");
        assert!(!dir.path().join("timeline.db").exists());
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("packs")).unwrap();
    std::fs::write(dir.path().join("packs/00000001.pack"), "").unwrap();
    assert!(!SqliteStore::exists(dir.path()).unwrap(), "it was never complete");
    SqliteStore::create(dir.path()).unwrap();
}
