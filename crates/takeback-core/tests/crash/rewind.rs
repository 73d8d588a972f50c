//! A rewind, an undo and a redo, stopped anywhere; and their recovery, stopped anywhere.

use std::path::Path;

use takeback_core::rewind::{Receipt, recover};
use takeback_store::RewindState;
use takeback_store::disk::CrashPoint;
use takeback_testkit::{Sandbox, Thing};

use crate::scene::Scene;
use crate::{
    Abilities, PointTree, after_a_crash, assert_intact, assert_nothing_left_behind, assert_same,
    at_every_stop, go_exactly_to, left_in_stages, points_of, stopped, thorough,
};

pub(crate) type Work = fn(&mut Sandbox, &[PointTree]) -> Receipt;

fn rewind(sandbox: &mut Sandbox, listed: &[PointTree]) -> Receipt {
    sandbox.rewind_to(listed[1].point)
}

fn undo(sandbox: &mut Sandbox, _: &[PointTree]) -> Receipt {
    sandbox.undo()
}

fn redo(sandbox: &mut Sandbox, _: &[PointTree]) -> Receipt {
    sandbox.redo()
}

pub(crate) fn all_points(abilities: Abilities) -> Vec<CrashPoint> {
    let scene = Scene::before_a_rewind();
    let mut sandbox = scene.frozen.thaw();
    abilities.limit(&sandbox);
    points_of(|| drop(rewind(&mut sandbox, &scene.listed)))
}

#[test]
fn a_rewind() {
    assert!(at_every_point(&Scene::before_a_rewind(), Abilities::All, rewind, undo) > 90);
}

#[test]
fn a_rewind_without_exchange() {
    assert!(at_every_point(&Scene::before_a_rewind(), Abilities::NoExchange, rewind, undo) > 90);
}

#[test]
fn a_rewind_with_plain_renames() {
    assert!(at_every_point(&Scene::before_a_rewind(), Abilities::PlainRenames, rewind, undo) > 90);
}

#[test]
fn a_rewind_without_openat2() {
    assert!(at_every_point(&Scene::before_a_rewind(), Abilities::NoOpenat2, rewind, undo) > 90);
}

#[test]
fn an_undo() {
    assert!(at_every_point(&Scene::before_an_undo(), Abilities::All, undo, redo) > 90);
}

#[test]
fn an_undo_without_exchange() {
    assert!(at_every_point(&Scene::before_an_undo(), Abilities::NoExchange, undo, redo) > 90);
}

#[test]
fn a_redo() {
    assert!(at_every_point(&Scene::before_a_redo(), Abilities::All, redo, undo) > 90);
}

#[test]
fn a_redo_with_plain_renames() {
    assert!(at_every_point(&Scene::before_a_redo(), Abilities::PlainRenames, redo, undo) > 90);
}

/// Stops `work` at each of its crash points and recovers; `back` takes it back. How many stops there were.
pub(crate) fn at_every_point(scene: &Scene, abilities: Abilities, work: Work, back: Work) -> usize {
    let mut finished = Vec::new();
    at_every_stop(|stop| {
        let mut sandbox = scene.frozen.thaw();
        abilities.limit(&sandbox);
        let rewinds = sandbox.workspace.store.rewinds().unwrap().len();
        stop.run(|| drop(work(&mut sandbox, &scene.listed)));
        assert_nothing_half_done(&sandbox, scene, abilities);

        let promised = sandbox.another_process().store.rewinds().unwrap().len() > rewinds;
        let recovered = after_a_crash(&mut sandbox, abilities);
        finished.push(recovered.finished.len());
        assert_same(&sandbox.tree(), if promised { &scene.after } else { &scene.before });
        assert_nothing_left_behind(&sandbox);
        assert_intact(&sandbox, &scene.listed);
        // The same as without a crash.
        assert!(
            recovered.finished.iter().all(|receipt| *receipt == scene.receipt),
            "{recovered:?}"
        );

        // Work continues from either state.
        if !promised {
            work(&mut sandbox, &scene.listed);
            assert_same(&sandbox.tree(), &scene.after);
        }
        back(&mut sandbox, &scene.listed);
        assert_same(&sandbox.tree(), &scene.before);
        for listed in scene.listed.iter().rev().skip(usize::from(!thorough()) * 2) {
            go_exactly_to(&mut sandbox, listed.point);
            assert_same(&sandbox.tree(), &listed.tree);
        }
        assert_nothing_left_behind(&sandbox);
        assert_intact(&sandbox, &scene.listed);
    });
    assert!(finished.contains(&1), "none of them after the promise");
    assert!(finished.starts_with(&[0]) && finished.ends_with(&[0]), "{finished:?}");
    finished.len()
}

/// Every path is as before or as after, or it is absent and its file is in the stage, or it is a folder
/// in between.
#[track_caller]
fn assert_nothing_half_done(sandbox: &Sandbox, scene: &Scene, abilities: Abilities) {
    let now = sandbox.tree();
    let stages: Vec<Thing> = left_in_stages(sandbox).into_values().collect();
    for path in scene.before.keys().chain(scene.after.keys()) {
        let (found, before, after) = (now.get(path), scene.before.get(path), scene.after.get(path));
        let is_file =
            |thing: Option<&Thing>| matches!(thing, Some(Thing::File { .. } | Thing::Link(_)));
        let between = match found {
            None => {
                let in_stage = before.is_some_and(|before| stages.contains(before));
                let replaced = is_file(before) && is_file(after);
                !is_file(before) || (in_stage && !(replaced && abilities == Abilities::All))
            }
            Some(Thing::Folder { .. }) => is_folder(before) || is_folder(after),
            Some(_) => false,
        };
        assert!(
            found == before || found == after || between,
            "{}: {found:?} is neither {before:?} nor {after:?}",
            path.display()
        );
    }
    for path in now.keys() {
        assert!(
            scene.before.contains_key(path) || scene.after.contains_key(path),
            "{}",
            path.display()
        );
    }
}

fn is_folder(thing: Option<&Thing>) -> bool {
    matches!(thing, Some(Thing::Folder { .. }))
}

/// The recovery is itself stopped anywhere, and the next one finishes what both left.
#[test]
fn a_recovery() {
    for abilities in [Abilities::All, Abilities::NoExchange, Abilities::PlainRenames] {
        let scene = Scene::before_a_rewind();
        let points = {
            let mut sandbox = scene.frozen.thaw();
            abilities.limit(&sandbox);
            points_of(|| drop(rewind(&mut sandbox, &scene.listed))).len() as u64
        };
        // Each first stop has a sample of second stops; together they cover all.
        let step = if thorough() { 1 } else { 7 };
        for first in (1..=points).filter(|first| first % step == 3 % step) {
            let second_step = if thorough() { 1 } else { 11 };
            for second in (1 + first / step % second_step..).step_by(second_step as usize) {
                let mut sandbox = scene.frozen.thaw();
                abilities.limit(&sandbox);
                let one = stopped(first, || drop(rewind(&mut sandbox, &scene.listed)));
                let promised = {
                    let store = sandbox.another_process().store;
                    store.rewinds().unwrap().iter().any(|record| record.state == RewindState::Open)
                };
                if !promised {
                    break;
                }
                sandbox.reopen();
                abilities.limit(&sandbox);
                let two = stopped(second, || {
                    recover(&mut sandbox.workspace).unwrap();
                });
                println!("{abilities:?}: stopped at {first}: {one:?}, then at {second}: {two:?}");
                assert_nothing_half_done(&sandbox, &scene, abilities);
                let recovered = after_a_crash(&mut sandbox, abilities);
                assert!(
                    recovered.finished.iter().all(|receipt| *receipt == scene.receipt),
                    "{recovered:?}"
                );
                assert_same(&sandbox.tree(), &scene.after);
                assert_nothing_left_behind(&sandbox);
                assert_intact(&sandbox, &scene.listed);
                undo(&mut sandbox, &scene.listed);
                assert_same(&sandbox.tree(), &scene.before);
                if two.is_none() {
                    break;
                }
            }
        }
    }
}

#[test]
fn the_users_settings_in_takebacks_folder_stay() {
    let scene = Scene::before_a_rewind();
    for n in (1..).step_by(if thorough() { 1 } else { 5 }) {
        let mut sandbox = scene.frozen.thaw();
        sandbox.write(".takeback/config.toml", "# mine\n");
        let reached = stopped(n, || drop(rewind(&mut sandbox, &scene.listed)));
        after_a_crash(&mut sandbox, Abilities::All);
        let left = left_in_stages(&sandbox);
        assert_eq!(
            left.keys().map(|path| path.as_path()).collect::<Vec<_>>(),
            [Path::new("config.toml")]
        );
        if reached.is_none() {
            break;
        }
    }
}
