//! Several threads and processes on one store; processes that die.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use takeback_store::{
    Blobs as _, Digest, Entry, Log as _, PackedBlob, Seq, SqliteStore, StoreError, Upkeep as _,
    Write, disk,
};

use crate::sample;

/// Commits one change of its own path with its own contents, retrying as often as others commit
/// first. Returns the number of the change.
fn record(
    store: &mut dyn takeback_store::Store,
    writer: u64,
    number: u64,
) -> Result<Seq, StoreError> {
    let contents = format!("{writer} wrote {number}").into_bytes();
    let entry = |digest, size| Entry::File { digest, size, mode: 0o600 };
    let after = entry(Digest::of(&contents), contents.len() as u64);
    store.put(PackedBlob::new(contents))?;
    loop {
        let head = store.head()?;
        let path = format!("{writer}/{number}");
        let change = crate::sample::change(head.seq.next(), &path, after.clone());
        match store.commit(head, &[Write::Change(change)]) {
            Err(StoreError::Moved) => {}
            done => return Ok(done?.seq),
        }
    }
}

/// Everything that the writers recorded is there, in an unbroken log.
#[track_caller]
fn assert_recorded(dir: &Path, writers: u64, each: u64) {
    let store = SqliteStore::open(dir).unwrap();
    let changes = store.changes_after(Seq(0)).unwrap();
    assert_eq!(changes.len() as u64, writers * each);
    assert!(changes.iter().zip(1..).all(|(change, seq)| change.seq == Seq(seq)), "no gap");
    assert_eq!(store.head().unwrap().seq.0, writers * each);
    assert_eq!(store.latest().unwrap().len() as u64, writers * each, "nothing twice");
    for change in changes {
        let path = change.path.display();
        let (writer, number) = path.split_once('/').unwrap();
        let contents = store.contents(&change.after.digest().unwrap()).unwrap();
        assert_eq!(contents, format!("{writer} wrote {number}").into_bytes());
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

#[test]
fn threads_that_record_at_once_all_get_their_turn() {
    let dir = tempfile::tempdir().unwrap();
    drop(SqliteStore::create(dir.path()).unwrap());
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let dir = dir.path();
            scope.spawn(move || {
                let mut store = SqliteStore::open(dir).unwrap();
                for number in 0..200 {
                    record(&mut store, writer, number).unwrap();
                }
            });
        }
    });
    assert_recorded(dir.path(), 4, 200);
}

#[test]
fn processes_that_record_at_once_all_get_their_turn() {
    let dir = tempfile::tempdir().unwrap();
    let children = [0, 1, 2].map(|writer| child(dir.path(), Task::Record { writer, number: 60 }));
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_recorded(dir.path(), 3, 60);
}

#[test]
fn a_process_that_dies_in_a_commit_leaves_all_of_it_or_nothing() {
    let expected: Vec<_> = {
        let dir = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::create(dir.path()).unwrap();
        let mut stage = |number| {
            sample::commit(&mut store, number).unwrap();
            sample::dump(&store).unwrap()
        };
        vec![stage(1), stage(2)]
    };
    for n in 1.. {
        let dir = tempfile::tempdir().unwrap();
        let mut store = SqliteStore::create(dir.path()).unwrap();
        sample::commit(&mut store, 1).unwrap();
        // Half of the time no other handle is open when it happens.
        let survivor = (n % 2 == 0).then_some(store);
        let status = child(dir.path(), Task::StopAt { n }).wait().unwrap();
        let reopened = SqliteStore::open(dir.path()).unwrap();
        let dump = sample::dump(&reopened).unwrap();
        assert!(expected.contains(&dump), "point {n}");
        assert_eq!(reopened.check().unwrap(), Vec::<String>::new(), "point {n}");
        if let Some(survivor) = survivor {
            assert_eq!(sample::dump(&survivor).unwrap(), dump);
        }
        if status.success() {
            assert!(n > 4, "only {n} points passed");
            assert_eq!(dump, expected[1]);
            break;
        }
    }
}

#[test]
fn commits_reported_by_a_killed_process_survive() {
    let dir = tempfile::tempdir().unwrap();
    drop(SqliteStore::create(dir.path()).unwrap());
    for writer in 0..8 {
        let mut child = child(dir.path(), Task::Record { writer, number: u64::MAX });
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut reported = 0;
        let mut read = |enough: u64| {
            for line in lines.by_ref() {
                let line = line.unwrap();
                let Some(seq) = line.split("recorded ").nth(1) else { continue };
                reported = seq.parse().unwrap();
                if reported >= enough {
                    break;
                }
            }
            reported
        };
        let already = SqliteStore::open(dir.path()).unwrap().head().unwrap().seq.0;
        read(already + 20);
        std::thread::sleep(Duration::from_micros(writer * 700));
        child.kill().unwrap();
        child.wait().unwrap();
        let reported = read(u64::MAX);

        let store = SqliteStore::open(dir.path()).unwrap();
        assert!(store.head().unwrap().seq.0 >= reported);
        let changes = store.changes_after(Seq(0)).unwrap();
        assert_eq!(changes.len() as u64, store.head().unwrap().seq.0);
        assert_eq!(store.check().unwrap(), Vec::<String>::new());
    }
}

// --- the child process ------------------------------------------------------------

#[derive(Debug, Clone, Copy)]
enum Task {
    /// Records this many changes and prints each number.
    Record { writer: u64, number: u64 },
    /// Commits the second sample, and dies at the n-th crash point.
    StopAt { n: u64 },
}

fn child(dir: &Path, task: Task) -> Child {
    let (what, numbers) = match task {
        Task::Record { writer, number } => ("record", format!("{writer} {number}")),
        Task::StopAt { n } => ("stop", n.to_string()),
    };
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::child_process", "--ignored", "--nocapture"])
        .env("TAKEBACK_TEST_TASK", format!("{what} {numbers}"))
        .env("TAKEBACK_TEST_STORE", dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "run by the other tests, in a process of its own"]
fn child_process() {
    let Some(dir) = std::env::var_os("TAKEBACK_TEST_STORE") else { return };
    let mut store = SqliteStore::create(Path::new(&dir)).unwrap();
    let task = std::env::var("TAKEBACK_TEST_TASK").unwrap();
    let words: Vec<_> = task.split(' ').collect();
    match words[..] {
        ["record", writer, number] => {
            for number in 0..number.parse().unwrap() {
                let seq = record(&mut store, writer.parse().unwrap(), number).unwrap();
                println!("recorded {seq}");
            }
        }
        ["stop", n] => {
            // No unwinding, no closing: as if killed.
            std::panic::set_hook(Box::new(|_| std::process::abort()));
            disk::stop_at(Some(n.parse().unwrap()));
            sample::commit(&mut store, 2).unwrap();
            disk::stop_at(None);
        }
        _ => panic!("no such task: {task}"),
    }
}
