//! A stage is cleared only by the store that made it, and only if it has no files of the user.

use std::cell::Cell;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::rc::Rc;

use takeback_core::retention::{Clock, Occasion, Policy, clean_up};
use takeback_core::rewind::needs_recovery;
use takeback_core::rewind::{RecoveryReport, recover};
use takeback_core::worktree::ScopeOptions;
use takeback_core::{Ambient, Limits, Workspace, WorkspaceOptions};
use takeback_store::disk::{self, CrashPoint};
use takeback_store::{MemoryStore, RewindId, SqliteStates, SqliteStore, Store, Timestamp};
use takeback_testkit::{Sandbox, SandboxImage};

use crate::scene::Scene;
use crate::{
    Abilities, after_a_crash, assert_intact, assert_nothing_left_behind, assert_same,
    at_every_stop, left_in_stages, points_of, stopped, thorough,
};

/// The sandbox's folder as a workspace of this store.
fn with_store(sandbox: &Sandbox, store_dir: &Path, store: Box<dyn Store>) -> Workspace {
    Workspace::open(WorkspaceOptions {
        root: sandbox.root(),
        store_dir: store_dir.to_owned(),
        store,
        states: std::sync::Arc::new(SqliteStates::at(store_dir)),
        home: None,
        scope: ScopeOptions::default(),
        limits: Limits::default(),
        ambient: Ambient {
            now: Box::new(|| Timestamp(1_700_000_000_000)),
            file_time: Box::new(|_| None),
            random: Box::new(|| 0xee),
            watch: None,
        },
    })
    .unwrap()
}

/// A Takeback with another home runs a recovery at the same time.
#[test]
fn another_stores_stage_is_left_alone() {
    let scene = Scene::before_a_rewind();
    let (mut left_marked, mut left_promised) = (0, 0);
    at_every_stop(|stop| {
        let mut sandbox = scene.frozen.thaw();
        stop.run(|| drop(sandbox.rewind_to(scene.listed[1].point)));
        let (tree, stages) = (sandbox.tree(), left_in_stages(&sandbox));
        // An empty stage belongs to no store.
        let is_full = stages.len() > 1;

        let elsewhere = sandbox.outside().join("elsewhere");
        let mut other = with_store(&sandbox, &elsewhere, Box::new(MemoryStore::new()));
        let promised = sandbox.another_process().store.rewinds().unwrap().len() == 1;
        let is_empty_stage = stages.len() == 1;
        assert_eq!(needs_recovery(&other).unwrap(), is_empty_stage, "{stop:?}");
        let recovered = recover(&mut other).unwrap();
        let expected = RecoveryReport {
            left: if is_full { vec![stage_in(&stages)] } else { Vec::new() },
            cleared: if is_empty_stage { vec![stage_in(&stages)] } else { Vec::new() },
            ..RecoveryReport::default()
        };
        assert_eq!(recovered, expected, "{stop:?}");
        assert_same(&sandbox.tree(), &tree);
        if is_full {
            assert_eq!(left_in_stages(&sandbox), stages);
            let is_marked =
                stages.keys().any(|path| path.to_string_lossy().contains("/unpromised-"));
            left_marked += u32::from(is_marked);
            left_promised += u32::from(promised && !is_marked);
        } else {
            assert_nothing_left_behind(&sandbox);
        }

        let recovered = after_a_crash(&mut sandbox, Abilities::All);
        assert_eq!(recovered.left, [], "its own store knows it");
        assert_same(&sandbox.tree(), if promised { &scene.after } else { &scene.before });
        assert_nothing_left_behind(&sandbox);
        assert_intact(&sandbox, &scene.listed);
    });
    assert!(left_marked > 20 && left_promised > 20, "{left_marked}, {left_promised}");
}

fn stage_in(stages: &crate::Tree) -> RewindId {
    let name = stages.keys().next().unwrap().to_str().unwrap();
    name.strip_prefix("stage-").unwrap().parse().unwrap()
}

/// The clearing of an unpromised stage is itself stopped anywhere; the rest of the stage still has its
/// mark.
#[test]
fn a_stopped_clearing_of_a_stage_is_finished() {
    let scene = Scene::before_a_rewind();
    let mut sandbox = scene.frozen.thaw();
    let points = points_of(|| drop(sandbox.rewind_to(scene.listed[1].point)));
    let mut seconds = 0;
    let begin = points.iter().position(|point| *point == CrashPoint::MakeFolder).unwrap() as u64;
    for first in (begin + 1..).step_by(if thorough() { 1 } else { 5 }) {
        for second in 1.. {
            let mut sandbox = scene.frozen.thaw();
            let one = stopped(first, || drop(sandbox.rewind_to(scene.listed[1].point)));
            if !sandbox.another_process().store.rewinds().unwrap().is_empty() {
                assert!(seconds > 20, "only {seconds}");
                return;
            }
            sandbox.reopen();
            let two = stopped(second, || drop(recover(&mut sandbox.workspace)));
            println!("stopped at {first}: {one:?}, then at {second}: {two:?}");
            let is_staged = !left_in_stages(&sandbox).is_empty();
            assert_eq!(needs_recovery(&sandbox.another_process()).unwrap(), is_staged);
            let recovered = after_a_crash(&mut sandbox, Abilities::All);
            let cleared = usize::from(is_staged);
            assert_eq!((recovered.cleared.len(), recovered.left), (cleared, Vec::new()));
            assert_same(&sandbox.tree(), &scene.before);
            assert_nothing_left_behind(&sandbox);
            seconds += 1;
            if two.is_none() {
                break;
            }
        }
    }
}

/// A store that is reached by another path is the same one.
#[test]
fn a_store_knows_its_stages_through_a_link() {
    let scene = Scene::before_a_rewind();
    let mut sandbox = scene.frozen.thaw();
    let points = points_of(|| drop(sandbox.rewind_to(scene.listed[1].point)));
    let staged = points.iter().position(|point| *point == CrashPoint::StageLink).unwrap() as u64;
    let mut sandbox = scene.frozen.thaw();
    stopped(staged + 1, || drop(sandbox.rewind_to(scene.listed[1].point))).unwrap();
    let link = sandbox.outside().join("link");
    symlink(&sandbox.workspace.store_dir, &link).unwrap();
    let store = Box::new(SqliteStore::open(&link).unwrap());
    let id = stage_in(&left_in_stages(&sandbox));
    let recovered = recover(&mut with_store(&sandbox, &link, store)).unwrap();
    assert_eq!(recovered, RecoveryReport { cleared: vec![id], ..RecoveryReport::default() });
    assert_nothing_left_behind(&sandbox);
}

/// A store that got another folder (`relocate`) between the promise and the recovery.
#[test]
fn a_moved_store_finishes_its_rewind() {
    let scene = Scene::before_a_rewind();
    let mut sandbox = scene.frozen.thaw();
    let points = points_of(|| drop(sandbox.rewind_to(scene.listed[1].point)));
    let promised = points
        .iter()
        .skip_while(|point| **point != CrashPoint::StageFile)
        .position(|point| *point == CrashPoint::Committed)
        .unwrap();
    let begin = points.iter().position(|point| *point == CrashPoint::StageFile).unwrap();
    let mut sandbox = scene.frozen.thaw();
    let reached = stopped((begin + promised + 1) as u64, || {
        drop(sandbox.rewind_to(scene.listed[1].point));
    });
    assert_eq!(reached, Some(CrashPoint::Committed));
    let moved = sandbox.outside().join("moved");
    fs::rename(&sandbox.workspace.store_dir, &moved).unwrap();
    let store = Box::new(SqliteStore::open(&moved).unwrap());
    let recovered = recover(&mut with_store(&sandbox, &moved, store)).unwrap();
    assert_eq!(
        recovered,
        RecoveryReport { finished: vec![scene.receipt], ..RecoveryReport::default() }
    );
    assert_same(&sandbox.tree(), &scene.after);
    assert_nothing_left_behind(&sandbox);
}

const KEPT: &str = "agent\nsaved\n";

/// A program that had a file open wrote to it right before the receipt, so its version is kept in the
/// stage. Many points later the rewind's record is dropped.
fn with_a_save_in_the_stage() -> (SandboxImage, RewindId) {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "a\n");
    sandbox.prompt("s", "first");
    let point = sandbox.prompt("s", "second");
    sandbox.agent_writes("s", "a.txt", "agent\n");
    sandbox.turn_end("s");
    let mut opened = OpenOptions::new().append(true).open(sandbox.at("a.txt")).unwrap();
    let mut is_applied = false;
    let last = Rc::new(Cell::new(None));
    let noted = Rc::clone(&last);
    disk::watch(Some(Box::new(move |point| {
        noted.set(Some(point));
        is_applied |= point == CrashPoint::Exchange;
        if is_applied && point == CrashPoint::Commit {
            opened.write_all(b"saved\n").unwrap();
        }
    })));
    let receipt = sandbox.rewind_to(point);
    disk::watch(None);
    assert_eq!(last.get(), Some(CrashPoint::SyncStaged), "no power cut brings the mark back");
    let id = receipt.rewind.unwrap();
    let kept = format!("a version saved while the rewind ran is kept as {}", place_of(id));
    assert_eq!(receipt.errors.into_iter().map(|p| p.error).collect::<Vec<_>>(), [kept]);
    assert_eq!(sandbox.read(&place_of(id)), KEPT);
    for _ in 0..4 {
        sandbox.prompt("s", "more");
    }
    (sandbox.freeze(), id)
}

fn place_of(id: RewindId) -> String {
    format!(".takeback/stage-{id}/new-0")
}

#[test]
fn a_save_kept_in_a_stage_outlives_the_rewinds_record() {
    let (frozen, id) = with_a_save_in_the_stage();
    let policy = Policy { points_per_session: 1, ..Policy::default() };
    let clean = |sandbox: &mut Sandbox| {
        clean_up(&mut sandbox.workspace, &policy, Occasion::OnDemand, Clock::Doubted).unwrap();
    };
    let mut dropped = Vec::new();
    at_every_stop(|stop| {
        let mut sandbox = frozen.thaw();
        stop.run(|| clean(&mut sandbox));
        sandbox.reopen();
        let is_dropped = sandbox.workspace.store.rewinds().unwrap().is_empty();
        let left = if is_dropped { vec![id] } else { Vec::new() };
        for _ in 0..2 {
            let recovered = recover(&mut sandbox.workspace).unwrap();
            assert_eq!(
                recovered,
                RecoveryReport { left: left.clone(), ..RecoveryReport::default() }
            );
            assert_eq!(sandbox.read(&place_of(id)), KEPT, "{stop:?}");
        }
        clean(&mut sandbox);
        assert_eq!(recover(&mut sandbox.workspace).unwrap().left, [id]);
        assert!(!needs_recovery(&sandbox.workspace).unwrap());
        assert_eq!(sandbox.read(&place_of(id)), KEPT);

        // Once the user has removed it, the rest is cleared.
        fs::remove_file(sandbox.at(&place_of(id))).unwrap();
        assert_eq!(recover(&mut sandbox.workspace).unwrap().cleared, [id]);
        assert_nothing_left_behind(&sandbox);
        dropped.push(is_dropped);
    });
    assert!(dropped.starts_with(&[false]) && dropped.ends_with(&[true]), "{dropped:?}");
}
