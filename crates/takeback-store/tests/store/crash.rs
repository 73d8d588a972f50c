//! A process that ends at any moment leaves a store that opens, with every commit complete or
//! absent.

use takeback_store::disk::{CrashPoint, stopped};
use takeback_store::{Head, Log as _, SqliteStore, Upkeep as _};

use crate::sample;

/// The dumps of a store after each number of samples.
fn stages(number: u64) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let mut store = SqliteStore::create(dir.path()).unwrap();
    let mut stages = vec![sample::dump(&store).unwrap()];
    for number in 1..=number {
        sample::commit(&mut store, number).unwrap();
        stages.push(sample::dump(&store).unwrap());
    }
    stages
}

#[test]
fn an_interrupted_commit_is_done_or_not_done() {
    let stages = stages(3);
    let mut outcomes = Vec::new();
    for n in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::create(dir.path()).unwrap();
        sample::commit(&mut store, 1).unwrap();
        // A handle that outlives the crash, and one that does not.
        let mut survivor = SqliteStore::open(dir.path()).unwrap();
        let reached = stopped(n, || {
            sample::commit(&mut store, 2).unwrap();
        });
        drop(store);

        let reopened = SqliteStore::open(dir.path()).unwrap();
        let dump = sample::dump(&reopened).unwrap();
        let done = stages.iter().position(|stage| *stage == dump).expect("it is one of the stages");
        assert!((1..=2).contains(&done), "point {n}: stage {done}");
        outcomes.push(done);
        assert_eq!(reopened.check().unwrap(), Vec::<String>::new(), "point {n}");
        assert_eq!(sample::dump(&survivor).unwrap(), dump);
        for next in done..3 {
            sample::commit(&mut survivor, next as u64 + 1).unwrap();
        }
        assert_eq!(sample::dump(&survivor).unwrap(), stages[3], "point {n}");
        assert_eq!(reopened.check().unwrap(), Vec::<String>::new(), "point {n}");
        if reached.is_none() {
            break;
        }
    }
    assert!(outcomes.is_sorted() && outcomes.starts_with(&[1, 1]), "{outcomes:?}");
    assert!(outcomes.len() > 3 && outcomes.ends_with(&[1, 2, 2, 2]), "{outcomes:?}");
}

/// Contents before the records that refer to them; the name of a new segment before its contents.
#[test]
fn a_commit_reaches_the_disk_in_this_order() {
    use CrashPoint::{Append, Commit, Committed, MakeStoreFile, Overwrite, Sync};
    let steps = |prepare: fn(&mut SqliteStore)| -> Vec<CrashPoint> {
        let step = |n| {
            let dir = tempfile::tempdir().unwrap();
            let mut store = SqliteStore::create(dir.path()).unwrap();
            prepare(&mut store);
            stopped(n, || {
                sample::commit(&mut store, 2).unwrap();
            })
        };
        (1..).map_while(step).collect()
    };
    let first = steps(|_| {});
    assert_eq!(first, [MakeStoreFile, Sync, Append, Sync, Commit, Committed, Overwrite]);
    let second = steps(|store| {
        sample::commit(store, 1).unwrap();
    });
    assert_eq!(second, [Append, Sync, Commit, Committed, Overwrite]);
    let nothing_new = steps(|store| {
        sample::commit(store, 2).unwrap();
    });
    assert_eq!(nothing_new, [Commit, Committed, Overwrite]);
}

#[test]
fn the_same_handle_works_after_a_stop() {
    let stages = stages(2);
    for n in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::create(dir.path()).unwrap();
        let reached = stopped(n, || {
            sample::commit(&mut store, 1).unwrap();
        });
        if store.head().unwrap() == Head::default() {
            sample::commit(&mut store, 1).unwrap();
        }
        sample::commit(&mut store, 2).unwrap();
        assert_eq!(sample::dump(&store).unwrap(), stages[2], "point {n}");
        drop(store);
        let reopened = SqliteStore::open(dir.path()).unwrap();
        assert_eq!(sample::dump(&reopened).unwrap(), stages[2], "point {n}");
        assert_eq!(reopened.check().unwrap(), Vec::<String>::new(), "point {n}");
        if reached.is_none() {
            break;
        }
    }
}

#[test]
fn an_interrupted_creation_can_be_repeated() {
    let stages = stages(1);
    for n in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("above/store");
        let reached = stopped(n, || {
            let mut store = SqliteStore::create(&dir).unwrap();
            sample::commit(&mut store, 1).unwrap();
        });
        let mut store = SqliteStore::create(&dir).unwrap();
        if store.head().unwrap() == Head::default() {
            sample::commit(&mut store, 1).unwrap();
        }
        assert_eq!(sample::dump(&store).unwrap(), stages[1], "point {n}");
        if reached.is_none() {
            assert!(n > 8, "only {n} points passed");
            break;
        }
    }
}
