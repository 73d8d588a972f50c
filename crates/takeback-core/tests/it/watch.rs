//! Snapshots on a watcher's word: what they cost, what would be lost if it were believed blindly, and
//! that nothing is.

use std::sync::Arc;
use std::time::Duration;

use takeback_core::watch::{EVERY, Standing, Trust, Watched, Why};
use takeback_core::worktree::scan::ScanStats;
use takeback_core::{Recorded, checkpoint, look_around};
use takeback_store::Vouched;
use takeback_testkit::Sandbox;

const CHECKED: Trust = Trust::WithScans { every: EVERY };

/// A tree of a few folders, watched from now on.
fn watched(trust: Trust) -> Sandbox {
    let mut sandbox = Sandbox::new();
    for path in ["a/f", "a/b/f", "a/b/c/f", "d/f", "f"] {
        sandbox.write(path, "old");
    }
    look_around(&mut sandbox.workspace).unwrap();
    watch(&mut sandbox, trust);
    sandbox
}

fn watch(sandbox: &mut Sandbox, trust: Trust) {
    sandbox.workspace.watched = Some(Arc::new(Watched::new(trust)));
}

/// A point made by hand, and on whose word.
fn point(sandbox: &mut Sandbox) -> (Recorded, Vouched) {
    let recorded = checkpoint(&mut sandbox.workspace, None).unwrap();
    let points = sandbox.workspace.store.points().unwrap();
    let made = points.iter().find(|point| Some(point.id) == recorded.point).unwrap();
    (recorded, made.vouched)
}

fn standing(sandbox: &Sandbox) -> Standing {
    sandbox.workspace.watched.as_ref().unwrap().standing()
}

#[test]
fn a_snapshot_of_a_tree_in_which_nothing_happened_looks_at_nothing() {
    let mut sandbox = watched(CHECKED);
    assert_eq!(standing(&sandbox), Standing::Scanning(Why::Start));
    let (first, vouched) = point(&mut sandbox);
    assert_eq!((first.stats.files, vouched), (5, Vouched::Scan));
    assert_eq!(standing(&sandbox), Standing::Watching { folders: 5 });
    let (second, vouched) = point(&mut sandbox);
    assert_eq!((second.stats, vouched), (ScanStats::default(), Vouched::Watch));
    assert_eq!(second.seq, first.seq);
}

#[test]
fn the_whole_tree_is_looked_at_when_it_is_due() {
    let mut sandbox = watched(Trust::WithScans { every: Duration::from_secs(3600) });
    let vouched = [0, 0, 59, 0, 2, 0].map(|minutes| {
        sandbox.days_pass(f64::from(minutes) / 24.0 / 60.0);
        point(&mut sandbox).1
    });
    use Vouched::{Scan, Watch};
    assert_eq!(vouched, [Scan, Watch, Watch, Watch, Scan, Watch]);
    // A clock that was set back says nothing of how long ago it was.
    sandbox.days_pass(-1.0);
    assert_eq!(point(&mut sandbox).1, Scan);
}
