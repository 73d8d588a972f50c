//! The other operations that change files, stopped anywhere: a revert, a restore, single hunks, the
//! settling of conflicts, and the undo of an operation that is not the newest.

use std::sync::Arc;

use takeback_core::rewind::{
    Choice, ChosenChanges, ConflictPolicy, FileHunks, Incoming, IncomingChange, Receipt,
    RewindRequest, RewindScope, Target, open_conflicts,
};
use takeback_store::{Digest, Entry, PackedBlob, PointId, RewindKind};
use takeback_testkit::{Sandbox, path};

use crate::rewind::{Work, at_every_point};
use crate::scene::{Scene, play};
use crate::{Abilities, PointTree};

/// Plays the scene, then whatever has to be there before the operation.
fn scene(first: impl FnOnce(&mut Sandbox, &[PointTree]), operation: Work) -> Scene {
    let mut sandbox = Sandbox::new();
    let listed = play(&mut sandbox);
    first(&mut sandbox, &listed);
    Scene::of(sandbox, listed, operation)
}

/// Takes back the newest operation, whatever it was.
fn take_back(sandbox: &mut Sandbox, _: &[PointTree]) -> Receipt {
    let newest = sandbox.workspace.store.rewinds().unwrap().pop().unwrap().id;
    let receipt = sandbox.rewind(&RewindRequest::new(Target::Operation(newest))).unwrap();
    assert!(receipt.success, "{receipt:?}");
    receipt
}

fn point(sandbox: &Sandbox, id: PointId) -> takeback_store::Point {
    let points = sandbox.workspace.store.points().unwrap();
    points.into_iter().find(|point| point.id == id).unwrap()
}

fn revert_turn(sandbox: &mut Sandbox, listed: &[PointTree], conflicts: ConflictPolicy) -> Receipt {
    let turn = point(sandbox, listed[1].point);
    let chosen = ChosenChanges::of_turn(&*sandbox.workspace.store, &turn).unwrap();
    let request = RewindRequest { conflicts, ..RewindRequest::new(Target::Changes(chosen)) };
    let receipt = sandbox.rewind(&request).unwrap();
    assert_eq!(
        receipt.merged_files.len(),
        1 + usize::from(is_marked(conflicts)) * 2,
        "{receipt:?}"
    );
    assert!(receipt.deleted_files.contains(&path("made/new/file.txt")), "{receipt:?}");
    receipt
}

fn is_marked(conflicts: ConflictPolicy) -> bool {
    conflicts == ConflictPolicy::Markers
}

fn revert(sandbox: &mut Sandbox, listed: &[PointTree]) -> Receipt {
    revert_turn(sandbox, listed, ConflictPolicy::Keep)
}

fn revert_with_markers(sandbox: &mut Sandbox, listed: &[PointTree]) -> Receipt {
    revert_turn(sandbox, listed, ConflictPolicy::Markers)
}

fn revert_range(sandbox: &mut Sandbox, listed: &[PointTree]) -> Receipt {
    let from = point(sandbox, listed[1].point);
    let scope = Some(RewindScope::AllAgents);
    let chosen = ChosenChanges::of_range(&*sandbox.workspace.store, &from, None, scope).unwrap();
    let receipt = sandbox.rewind(&RewindRequest::new(Target::Changes(chosen))).unwrap();
    assert!(receipt.restored_files.contains(&path("edit.txt")), "{receipt:?}");
    receipt
}

fn restore(sandbox: &mut Sandbox, listed: &[PointTree]) -> Receipt {
    let paths = ["tree", "*.txt", "to-*", "made", "run.sh", "link*"];
    let request = RewindRequest {
        paths: paths.map(str::to_owned).to_vec(),
        ..RewindRequest::new(Target::Restore(listed[1].point))
    };
    let receipt = sandbox.rewind(&request).unwrap();
    assert!(receipt.success && receipt.restored_files.contains(&path("mine.txt")), "{receipt:?}");
    receipt
}

fn restore_hunks(sandbox: &mut Sandbox, listed: &[PointTree]) -> Receipt {
    let store = &mut sandbox.workspace.store;
    let latest = |name: &str| {
        let known = store.latest_of(&[path(name)]).unwrap().pop().flatten().unwrap();
        known.after
    };
    let change = |name: &str, then: &str| {
        let base = latest(name);
        let now = store.contents(&base.digest().unwrap()).unwrap();
        let text = FileHunks::new(&now, then.as_bytes()).take_back(|at| at == 0);
        assert_ne!(text, now);
        let size = text.len() as u64;
        let entry = Entry::File { digest: Digest::of(&text), size, mode: 0o644 };
        let (cancels, lines) = (Vec::new(), Vec::new());
        (IncomingChange { path: path(name), base, entry, cancels, lines }, text)
    };
    let made = [change("merge.txt", "first\na\nb\nc\nd\ne\nlast\n"), change("mine.txt", "mine\n")];
    let mut changes = Vec::new();
    for (change, text) in made {
        store.put(PackedBlob::new(text)).unwrap();
        changes.push(change);
    }
    let kind = RewindKind::Restore { point: listed[1].point };
    let incoming = Arc::new(Incoming { kind, changes, settles: false });
    let receipt = sandbox.rewind(&RewindRequest::new(Target::Incoming(incoming))).unwrap();
    assert!(receipt.success, "{receipt:?}");
    assert_eq!(sandbox.read("merge.txt"), "first\na\nb\nc\nd\ne\nLAST\n");
    receipt
}

/// One conflict becomes what was before, the other stays as it is.
fn resolve(sandbox: &mut Sandbox, _: &[PointTree]) -> Receipt {
    let open = open_conflicts(&sandbox.workspace).unwrap();
    let names: Vec<String> = open.iter().map(|conflict| conflict.path.display()).collect();
    assert_eq!(names, ["conflict.txt", "edit.txt"]);
    let store = &mut *sandbox.workspace.store;
    let mut changes = Vec::new();
    for (conflict, choice) in open.iter().zip([Choice::Before, Choice::Mine]) {
        changes.extend(conflict.settle(store, &[Some(choice)]).unwrap());
    }
    let kind = RewindKind::Resolve { of: open[0].operation };
    let incoming = Arc::new(Incoming { kind, changes, settles: true });
    let receipt = sandbox.rewind(&RewindRequest::new(Target::Incoming(incoming))).unwrap();
    assert!(receipt.success, "{receipt:?}");
    assert_eq!(sandbox.read("conflict.txt"), "one\n");
    assert!(open_conflicts(&sandbox.workspace).unwrap().is_empty());
    receipt
}

/// The first of two operations.
fn undo_older(sandbox: &mut Sandbox, _: &[PointTree]) -> Receipt {
    let oldest = sandbox.workspace.store.rewinds().unwrap()[0].id;
    let receipt = sandbox.rewind(&RewindRequest::new(Target::Operation(oldest))).unwrap();
    assert!(receipt.changed_something(), "{receipt:?}");
    receipt
}

#[test]
fn a_revert() {
    let scene = scene(|_, _| {}, revert);
    assert!(at_every_point(&scene, Abilities::All, revert, take_back) > 90);
}

#[test]
fn a_revert_with_markers_and_plain_renames() {
    let scene = scene(|_, _| {}, revert_with_markers);
    assert!(at_every_point(&scene, Abilities::PlainRenames, revert_with_markers, take_back) > 90);
}

#[test]
fn a_revert_of_a_range() {
    let scene = scene(|_, _| {}, revert_range);
    assert!(at_every_point(&scene, Abilities::All, revert_range, take_back) > 90);
}

#[test]
fn a_restore() {
    let scene = scene(|_, _| {}, restore);
    assert!(at_every_point(&scene, Abilities::All, restore, take_back) > 90);
}

#[test]
fn a_restore_of_hunks() {
    let scene = scene(|_, _| {}, restore_hunks);
    assert!(at_every_point(&scene, Abilities::NoExchange, restore_hunks, take_back) > 10);
}

#[test]
fn a_settling_of_conflicts() {
    let first = |sandbox: &mut Sandbox, listed: &[PointTree]| {
        revert_turn(sandbox, listed, ConflictPolicy::Keep);
    };
    let scene = scene(first, resolve);
    assert!(at_every_point(&scene, Abilities::All, resolve, take_back) > 10);
}

#[test]
fn an_undo_of_an_older_operation() {
    let first = |sandbox: &mut Sandbox, listed: &[PointTree]| {
        revert_turn(sandbox, listed, ConflictPolicy::Keep);
        let request = RewindRequest {
            paths: vec!["mine.txt".to_owned()],
            ..RewindRequest::new(Target::Restore(listed[1].point))
        };
        assert!(sandbox.rewind(&request).unwrap().success);
    };
    let scene = scene(first, undo_older);
    assert!(at_every_point(&scene, Abilities::All, undo_older, take_back) > 90);
}
