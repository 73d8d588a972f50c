//! A process that is stopped at any crash point leaves a store that opens, points that are intact,
//! and a tree that the next command brings to before or after.
//!
//! `disk::stop_at` simulates the crash; `disk::watch` a user who saves a file at that moment.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "shown only when a test fails")]

mod abilities;
mod exchange;
mod fork;
mod clean_up;
mod native_restore;
mod human;
mod hard_links;
mod read_only_folders;
mod purge;
mod record;
mod rollback;
mod rewind;
mod scene;
mod stages;
mod take_back;
mod rewind_failures;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use takeback_core::rewind::Exactness;
use takeback_core::rewind::{RecoveryReport, RewindRequest, Target, recover};
use takeback_store::disk::{self, CrashPoint, stopped};
use takeback_store::{Entry, PointId, Seq, Store, WorkPath};
use takeback_testkit::{Sandbox, Thing};

use self::abilities::Abilities;

type Tree = BTreeMap<PathBuf, Thing>;

/// Whether to run every combination instead of a sample.
fn thorough() -> bool {
    std::env::var_os("TAKEBACK_TEST_RUNS").is_some()
}

/// One run of a test: stopped at the `n`-th crash point, or not at all if `reached` is `None`.
#[derive(Debug)]
struct Stop {
    n: u64,
    reached: Option<CrashPoint>,
}

impl Stop {
    fn run(&mut self, work: impl FnOnce()) {
        self.reached = stopped(self.n, work);
        println!("{self:?}");
    }
}

/// Plays once for each crash point that `Stop::run` passes, and once without a stop; the number.
fn at_every_stop(mut play: impl FnMut(&mut Stop)) -> u64 {
    for n in 1.. {
        let mut stop = Stop { n, reached: None };
        play(&mut stop);
        if stop.reached.is_none() {
            return n;
        }
    }
    unreachable!("crash points are finite")
}

/// The crash points that `work` passes, in order.
fn points_of(work: impl FnOnce()) -> Vec<CrashPoint> {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&seen);
    disk::watch(Some(Box::new(move |point| noted.borrow_mut().push(point))));
    work();
    disk::watch(None);
    seen.take()
}

/// A listed point, and the tree at that time.
#[derive(Debug, Clone)]
struct PointTree {
    point: PointId,
    tree: Tree,
}

fn after_a_crash(sandbox: &mut Sandbox, abilities: Abilities) -> RecoveryReport {
    sandbox.reopen();
    abilities.limit(sandbox);
    let recovered = recover(&mut sandbox.workspace).expect("it recovers");
    let again = recover(&mut sandbox.workspace).expect("it recovers again");
    assert_eq!(again, RecoveryReport::default(), "the second recovery finds nothing to do");
    recovered
}

/// The store is complete, and every listed point still has its tree.
#[track_caller]
fn assert_intact(sandbox: &Sandbox, listed: &[PointTree]) {
    let store = &*sandbox.workspace.store;
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
    let points = store.points().unwrap();
    for PointTree { point, tree } in listed {
        let point = points.iter().find(|known| known.id == *point).expect("the point is listed");
        assert_same(&tree_at(store, point.seq), tree);
    }
}

#[track_caller]
fn assert_nothing_left_behind(sandbox: &Sandbox) {
    assert!(!sandbox.exists(".takeback"), "{:?}", left_in_stages(sandbox));
}

fn left_in_stages(sandbox: &Sandbox) -> Tree {
    let own = sandbox.at(".takeback");
    if own.exists() { takeback_testkit::tree(&own) } else { Tree::new() }
}

/// The tree as it was when the log had grown to `seq`, from the log alone.
fn tree_at(store: &dyn Store, seq: Seq) -> Tree {
    let mut entries: BTreeMap<WorkPath, Entry> = store.latest().unwrap().into_iter().collect();
    for change in store.changes_after(seq).unwrap().into_iter().rev() {
        entries.insert(change.path, change.before);
    }
    let things = entries.into_iter().filter_map(|(path, entry)| {
        let thing = match entry {
            Entry::Absent => return None,
            Entry::File { digest, mode, .. } => {
                Thing::File { bytes: store.contents(&digest).expect("its bytes are kept"), mode }
            }
            Entry::Symlink { target } => Thing::Link(OsStr::from_bytes(&target).into()),
            Entry::Dir { mode } => Thing::Folder { mode },
            other => panic!("{path:?} is {other:?}"),
        };
        Some((PathBuf::from(OsStr::from_bytes(path.as_bytes())), thing))
    });
    things.collect()
}

/// Compares trees and prints only the differences.
#[track_caller]
fn assert_same(found: &Tree, expected: &Tree) {
    let paths: BTreeSet<&PathBuf> = found.keys().chain(expected.keys()).collect();
    let differing: Vec<_> = paths
        .into_iter()
        .map(|path| (path, found.get(path), expected.get(path)))
        .filter(|(_, found, expected)| found != expected)
        .collect();
    assert!(differing.is_empty(), "(path, found, expected): {differing:#?}");
}

fn go_exactly_to(sandbox: &mut Sandbox, point: PointId) {
    let mut request = RewindRequest::new(Target::Point(point));
    request.exactness = Exactness::Exact;
    let receipt = sandbox.rewind(&request).expect("the rewind runs");
    assert!(receipt.success, "{receipt:?}");
}

/// Every crash point is passed by a test that stops at each of its points, so none can be
/// added and forgotten. `docs/design/journal.md` and `store-format.md` describe each of them.
#[test]
fn every_crash_point_is_tested_and_documented() {
    let mut passed: BTreeSet<CrashPoint> = BTreeSet::new();
    passed.extend(record::all_points());
    for abilities in Abilities::EACH {
        passed.extend(rewind::all_points(abilities));
    }
    passed.extend(fork::all_points());
    // Only a clean-up that finds damage shortens a segment, of bytes that nothing names.
    passed.insert(CrashPoint::Empty);
    let all: BTreeSet<CrashPoint> = CrashPoint::ALL.iter().copied().collect();
    assert_eq!(passed, all);

    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/design/journal.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    for point in CrashPoint::ALL {
        let row = format!("| {} `{point:?}` |", *point as u8);
        assert!(docs.contains(&row), "journal.md has no row {row:?}");
    }
}
