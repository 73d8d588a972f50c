//! Snapshots that rely on a watcher: their cost, what blind trust would lose, and that nothing is lost.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use takeback_core::rewind::Exactness;
use takeback_core::rewind::{RewindRequest, Target};
use takeback_core::watch::{EVERY, ScanCause, TreeWatch, Trust, WatchStatus};
use takeback_core::worktree::ScanStats;
use takeback_core::{RecordOutcome, checkpoint, look_around};
use takeback_store::PointBasis::{Scan, Watch};
use takeback_store::{Entry, PointBasis, WorkPath};
use takeback_testkit::MemoryMap;
use takeback_testkit::Sandbox;

use crate::watcher::overflow;

const CHECKED: Trust = Trust::WithScans { every: EVERY };

/// A tree of a few folders that is known, watched from now on.
fn watched(trust: Trust) -> Sandbox {
    let mut sandbox = Sandbox::new();
    for path in ["a/f", "a/b/f", "a/b/c/f", "d/f", "f"] {
        sandbox.write(path, "old");
    }
    look_around(&mut sandbox.workspace).unwrap();
    watch(&mut sandbox, trust);
    point(&mut sandbox);
    sandbox
}

fn watch(sandbox: &mut Sandbox, trust: Trust) {
    sandbox.workspace.watched = Some(Arc::new(TreeWatch::new(trust)));
}

/// Makes a point; its outcome and its basis.
fn point(sandbox: &mut Sandbox) -> (RecordOutcome, PointBasis) {
    let recorded = checkpoint(&mut sandbox.workspace, None).unwrap();
    let points = sandbox.workspace.store.points().unwrap();
    let made = points.iter().find(|point| Some(point.id) == recorded.point).unwrap();
    (recorded, made.basis)
}

fn status(sandbox: &Sandbox) -> WatchStatus {
    sandbox.workspace.watched.as_ref().unwrap().status()
}

/// How many changes the log lacks: as many as a full scan finds.
fn lost(sandbox: &Sandbox) -> usize {
    look_around(&mut sandbox.another_process()).unwrap().recorded.changes
}

#[test]
fn a_snapshot_of_an_unchanged_tree_looks_at_nothing() {
    let mut sandbox = Sandbox::new();
    for path in ["a/b/f", "d/f"] {
        sandbox.write(path, "old");
    }
    watch(&mut sandbox, CHECKED);
    assert_eq!(status(&sandbox), WatchStatus::Scanning(ScanCause::Start));
    let (first, basis) = point(&mut sandbox);
    assert_eq!((first.changes, basis), (5, Scan));
    // These folders were new, so they were not watched during the scan.
    let (second, basis) = point(&mut sandbox);
    assert_eq!((second.stats.folders, basis), (3, Watch));
    assert_eq!(status(&sandbox), WatchStatus::Watching { folders: 4 });
    let (third, basis) = point(&mut sandbox);
    assert_eq!((third.stats, basis), (ScanStats::default(), Watch));
    assert_eq!(third.seq, first.seq);
}

#[test]
fn the_whole_tree_is_scanned_when_a_scan_is_due() {
    let mut sandbox = watched(Trust::WithScans { every: Duration::from_secs(3600) });
    let basis = [0, 58, 0, 4, 0].map(|minutes| {
        sandbox.days_pass(f64::from(minutes) / 24.0 / 60.0);
        point(&mut sandbox).1
    });
    assert_eq!(basis, [Watch, Watch, Watch, Scan, Watch]);
    // A clock that was set back says nothing of how long ago it was.
    sandbox.days_pass(-1.0);
    assert_eq!(point(&mut sandbox).1, Scan);
}

/// Everything at once between two points, each operation in folders of its own.
#[test]
fn every_change_is_found_by_looking_at_its_folders() {
    type Operation = fn(&Sandbox);
    let operations: [(Operation, usize); 16] = [
        (|sandbox| sandbox.write("f", "new"), 1),
        (|sandbox| sandbox.write("a/b/new", ""), 1),
        (|sandbox| sandbox.write("new/deep/er/file", "new"), 4),
        (|sandbox| sandbox.write("new/deep/er/file", "newer"), 1),
        (|sandbox| sandbox.remove("a/b/c"), 2),
        (|sandbox| sandbox.set_mode("a/b", 0o700), 1),
        (|sandbox| sandbox.set_mode("a/b/f", 0o600), 1),
        (|sandbox| fs::rename(sandbox.at("new"), sandbox.at("a/new")).unwrap(), 8),
        (|sandbox| sandbox.write("a/new/deep/other", "x"), 1),
        (|sandbox| symlink("nowhere", sandbox.at("d/link")).unwrap(), 1),
        // A folder in the place of another, of a file and of a link, and the other way round.
        (
            |sandbox| {
                sandbox.remove("d");
                sandbox.write("d/other", "x");
            },
            3,
        ),
        (
            |sandbox| {
                sandbox.remove("d/other");
                sandbox.write("d/other/below", "x");
            },
            2,
        ),
        (
            |sandbox| {
                sandbox.remove("d");
                sandbox.write("d", "x");
            },
            3,
        ),
        // What an ignore file says by now of what was passed over.
        (
            |sandbox| {
                sandbox.write("a/.takebackignore", "out/\n");
                sandbox.write("a/out/file", "x");
            },
            1,
        ),
        (|sandbox| sandbox.write("a/out/file", "not looked at"), 0),
        (|sandbox| sandbox.write("a/.takebackignore", ""), 3),
    ];
    let mut sandbox = watched(CHECKED);
    for (number, (operation, changes)) in operations.into_iter().enumerate() {
        operation(&sandbox);
        let (recorded, basis) = point(&mut sandbox);
        assert_eq!((recorded.changes, basis), (changes, Watch), "operation {number}");
        assert_eq!(lost(&sandbox), 0, "operation {number}");
    }
}

#[test]
fn a_hard_linked_file_is_looked_at_under_all_its_names() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a/f", "old");
    sandbox.write("b/c/f", "x");
    fs::hard_link(sandbox.at("a/f"), sandbox.at("b/c/g")).unwrap();
    look_around(&mut sandbox.workspace).unwrap();
    watch(&mut sandbox, CHECKED);
    point(&mut sandbox);
    sandbox.write("a/f", "new");
    let (recorded, basis) = point(&mut sandbox);
    assert_eq!((recorded.changes, basis), (2, Watch));
    // They are still known to be one.
    sandbox.write("b/c/f", "y");
    point(&mut sandbox);
    sandbox.write("b/c/g", "newer");
    let (recorded, basis) = point(&mut sandbox);
    assert_eq!((recorded.changes, basis), (2, Watch));
    assert_eq!(lost(&sandbox), 0);
    // After a hard link, the kernel reports only the new name.
    fs::hard_link(sandbox.at("b/c/f"), sandbox.at("a/new")).unwrap();
    sandbox.write("a/new", "by its new name");
    let (recorded, basis) = point(&mut sandbox);
    assert_eq!((recorded.changes, basis), (2, Scan));
}

/// The outcome of one change under a policy: the changes of a second point, its basis, and how many
/// changes it lacks.
fn outcome(
    trust: Trust,
    lay: impl FnOnce(&mut Sandbox),
    does: impl FnOnce(&mut Sandbox),
) -> (usize, PointBasis, usize) {
    let mut sandbox = watched(trust);
    lay(&mut sandbox);
    point(&mut sandbox);
    does(&mut sandbox);
    let (recorded, basis) = point(&mut sandbox);
    (recorded.changes, basis, lost(&sandbox))
}

#[test]
fn changes_lost_to_an_overflow_are_found() {
    let after_overflow = |sandbox: &mut Sandbox| {
        overflow(&sandbox.at("a/f"), &sandbox.at("f"));
        sandbox.write("d/f", "unheard of");
    };
    assert_eq!(outcome(Trust::Blindly, |_| {}, after_overflow), (0, Watch, 3));
    assert_eq!(outcome(CHECKED, |_| {}, after_overflow), (3, Scan, 0));
}

#[test]
fn after_an_overflow_the_tree_is_watched_anew() {
    let mut sandbox = watched(CHECKED);
    overflow(&sandbox.at("a/f"), &sandbox.at("f"));
    // The replacement of the folder is not reported.
    fs::rename(sandbox.at("d"), sandbox.outside().join("away")).unwrap();
    sandbox.write("d/f", "another");
    assert_eq!(point(&mut sandbox).1, Scan);
    sandbox.write("d/f", "another yet");
    let (recorded, basis) = point(&mut sandbox);
    assert_eq!((recorded.changes, basis, lost(&sandbox)), (1, Watch, 0));
}

#[test]
fn changes_while_the_watcher_was_off_are_found() {
    let restarted = |trust: Trust| {
        move |sandbox: &mut Sandbox| {
            sandbox.workspace.watched = None;
            sandbox.write("d/f", "unheard of");
            watch(sandbox, trust);
        }
    };
    assert_eq!(outcome(Trust::Blindly, |_| {}, restarted(Trust::Blindly)), (0, Watch, 1));
    assert_eq!(outcome(CHECKED, |_| {}, restarted(CHECKED)), (1, Scan, 0));
}

/// Writes into a new folder just after it was looked at, and just before it is watched: in that moment
/// the point gets its id.
fn write_before_it_is_watched(sandbox: &mut Sandbox) {
    let file = sandbox.at("new/deep/late");
    let ids = AtomicU64::new(1 << 32);
    sandbox.workspace.ambient.random = Box::new(move || {
        if !file.exists() {
            fs::write(&file, "late").unwrap();
        }
        ids.fetch_add(1, Ordering::Relaxed)
    });
}

#[test]
fn changes_in_a_new_folder_before_it_was_watched_are_found() {
    let lay = |sandbox: &mut Sandbox| {
        let outside = sandbox.outside().join("new");
        fs::create_dir_all(outside.join("deep")).unwrap();
        fs::rename(outside, sandbox.at("new")).unwrap();
        write_before_it_is_watched(sandbox);
    };
    assert_eq!(outcome(Trust::Blindly, lay, |_| {}), (0, Watch, 1));
    assert_eq!(outcome(CHECKED, lay, |_| {}), (1, Watch, 0));
}

#[test]
fn stores_through_a_map_are_found_by_the_next_scan() {
    let outcomes = |trust: Trust, hours: f64| {
        let mut map = None;
        let mut sandbox = watched(trust);
        sandbox.write("d/f", "mapped");
        point(&mut sandbox);
        map.insert(MemoryMap::open(&sandbox.at("d/f"))).store(b"stored");
        sandbox.days_pass(hours / 24.0);
        let (recorded, basis) = point(&mut sandbox);
        let before = (recorded.changes, basis);
        drop(map);
        (before, point(&mut sandbox).0.changes)
    };
    assert_eq!(outcomes(Trust::Blindly, 1.0), ((0, Watch), 1));
    // Until then it is not seen: the point's basis says so.
    assert_eq!(outcomes(CHECKED, 0.0), ((0, Watch), 1));
    assert_eq!(outcomes(CHECKED, 1.0), ((1, Scan), 0));
}

#[test]
fn a_rewind_does_not_rely_on_the_watcher() {
    let mut sandbox = watched(CHECKED);
    sandbox.start("s");
    let before = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a/f", "by the agent");
    let mut map = MemoryMap::open(&sandbox.at("d/f"));
    map.store(b"NEW");
    let mut request = RewindRequest::new(Target::Point(before));
    request.exactness = Exactness::Exact;
    sandbox.rewind(&request).unwrap();
    assert_eq!((sandbox.read("a/f"), sandbox.read("d/f")), ("old".into(), "old".into()));
    sandbox.undo();
    assert_eq!(sandbox.read("d/f"), "NEW", "it was kept before it went");
    let (recorded, basis) = point(&mut sandbox);
    assert_eq!((recorded.changes, basis, lost(&sandbox)), (0, Watch, 0));
}

#[test]
fn a_look_that_was_not_committed_is_made_again() {
    let mut sandbox = watched(CHECKED);
    checkpoint(&mut sandbox.workspace, Some("taken")).unwrap();
    sandbox.write("d/f", "new");
    assert!(checkpoint(&mut sandbox.workspace, Some("taken")).is_err());
    let (recorded, basis) = point(&mut sandbox);
    assert_eq!((recorded.changes, basis, lost(&sandbox)), (1, Watch, 0));
}

/// Two looks at once: the later one gets the reports since the first, and fails.
#[test]
fn changes_reported_to_a_failed_look_are_found() {
    let mut sandbox = watched(CHECKED);
    checkpoint(&mut sandbox.workspace, Some("taken")).unwrap();
    let mut other = sandbox.another_process();
    other.watched.clone_from(&sandbox.workspace.watched);
    let (file, other, ids) = (sandbox.at("d/f"), Mutex::new(Some(other)), AtomicU64::new(1 << 32));
    sandbox.workspace.ambient.random = Box::new(move || {
        if let Some(mut other) = other.lock().unwrap().take() {
            fs::write(&file, "new").unwrap();
            assert!(checkpoint(&mut other, Some("taken")).is_err());
        }
        ids.fetch_add(1, Ordering::Relaxed)
    });
    assert_eq!(point(&mut sandbox).0.changes, 0);
    let (recorded, basis) = point(&mut sandbox);
    assert_eq!((recorded.changes, basis, lost(&sandbox)), (1, Watch, 0));
}

#[test]
fn changes_recorded_by_others_are_known() {
    let mut sandbox = watched(CHECKED);
    let mut other = sandbox.another_process();
    sandbox.write("d/f", "new");
    sandbox.write("e/new", "new");
    assert_eq!(look_around(&mut other).unwrap().recorded.changes, 3);
    sandbox.write("a/f", "new");
    let (recorded, basis) = point(&mut sandbox);
    assert_eq!((recorded.changes, basis, lost(&sandbox)), (1, Watch, 0));
}

#[test]
fn two_handles_share_a_watcher() {
    let mut sandbox = watched(CHECKED);
    let mut other = sandbox.another_process();
    other.watched.clone_from(&sandbox.workspace.watched);
    sandbox.write("d/f", "new");
    assert_eq!(checkpoint(&mut other, None).unwrap().changes, 1);
    sandbox.write("a/f", "new");
    let (recorded, basis) = point(&mut sandbox);
    assert_eq!((recorded.changes, basis, lost(&sandbox)), (1, Watch, 0));
}

#[test]
fn rewinds_and_undos_are_watched() {
    let mut sandbox = watched(CHECKED);
    sandbox.start("s");
    let before = sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "make", |sandbox| {
        sandbox.remove("a/b");
        sandbox.write("made/by/it", "x");
        sandbox.write("d/f", "new");
    });
    let after = sandbox.tree();
    sandbox.rewind_to(before);
    assert_eq!(lost(&sandbox), 0);
    sandbox.undo();
    assert_eq!(sandbox.tree(), after);
    let (recorded, _) = point(&mut sandbox);
    assert_eq!((recorded.changes, lost(&sandbox)), (0, 0));
    let path = WorkPath::new("d/f").unwrap();
    let latest = sandbox.workspace.store.latest_of(&[path]).unwrap().remove(0).unwrap();
    assert!(matches!(latest.after, Entry::File { size: 3, .. }));
}
