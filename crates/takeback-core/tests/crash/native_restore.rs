//! A rewind that runs the agent's own restore, stopped anywhere, also in that restore.
//!
//! Until the restore's writes are reverted, they cannot be distinguished from saves. So a path may keep
//! them: then it is listed as a conflict, and its earlier contents are in the store.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use takeback_core::rewind::{NativeRestore, RewindRequest, Target, rewind_with};
use takeback_store::disk::{self, CrashPoint};
use takeback_store::{Author, Entry, Seq};
use takeback_testkit::{Sandbox, Thing, path};

use crate::scene::Scene;
use crate::{
    Abilities, Tree, after_a_crash, assert_intact, assert_nothing_left_behind, assert_same,
    at_every_stop, go_exactly_to, thorough,
};

/// What the restore writes; `None`: it deletes the file. All texts are earlier versions of some file.
const WRITES: &[(&str, Option<&str>)] = &[
    // Correct.
    ("edit.txt", Some("one\n")),
    ("made.txt", None),
    // A wrong version, a person's edits, a file that the plan deletes, one that is in no plan.
    ("sub/deep/edit.txt", Some("one\n")),
    ("merge.txt", Some("first\na\nb\nc\nd\ne\nlast\n")),
    ("conflict.txt", Some("one\n")),
    ("made/new/file.txt", Some("one\n")),
    ("mine.txt", Some("mine\n")),
    ("never/was.txt", Some("one\n")),
    // The folder in place of what becomes a file again.
    ("to-folder/inside.txt", None),
    ("to-link-not-there/x", None),
];

fn restore(root: &Path, upto: usize) {
    for (name, text) in &WRITES[..upto] {
        let at = root.join(name);
        match text {
            Some(text) => {
                fs::create_dir_all(at.parent().unwrap()).unwrap();
                fs::write(at, text).unwrap();
            }
            None if at.exists() => fs::remove_file(at).unwrap(),
            None => {}
        }
    }
}

fn rewind_with_restore(sandbox: &mut Sandbox, scene: &Scene, restore: &mut dyn FnMut()) {
    let paths = WRITES.iter().map(|(name, _)| path(name)).collect();
    let mut run = || {
        restore();
        Ok(())
    };
    let mut native = NativeRestore { paths, run: &mut run };
    let request = RewindRequest::new(Target::Point(scene.listed[1].point));
    rewind_with(&mut sandbox.workspace, &request, None, &mut native).unwrap();
}

/// After a recovery, paths that differ from `scene.after` were written by the restore, are listed, and
/// have their earlier contents in the store. Their number.
#[track_caller]
fn assert_only_named_differ(
    sandbox: &Sandbox,
    scene: &Scene,
    conflicts: &[PathBuf],
    upto: usize,
) -> usize {
    let now = sandbox.tree();
    let wrote: BTreeMap<&Path, Option<&str>> =
        WRITES[..upto].iter().map(|(name, text)| (Path::new(*name), *text)).collect();
    let differs = differing(&now, &scene.after);
    let log = sandbox.workspace.store.changes_after(Seq(0)).unwrap();
    for name in &differs {
        assert!(conflicts.contains(name), "{}: differs and is not named", name.display());
        match (now.get(name), wrote.get(name.as_path())) {
            (Some(Thing::File { bytes, .. }), Some(Some(text))) => {
                assert_eq!(bytes, text.as_bytes(), "{}", name.display());
            }
            (None, Some(None)) => {}
            // A folder above what it wrote.
            (Some(Thing::Folder { .. }), _) => {}
            other => panic!("{}: {other:?}", name.display()),
        }
        if let Some(Thing::File { bytes, .. }) = scene.before.get(name) {
            let of_path = log.iter().filter(|change| change.path == path(name.to_str().unwrap()));
            let mut seen = of_path.filter(|change| !matches!(change.author, Author::Rewind { .. }));
            let Some(Entry::File { digest, .. }) = seen.next_back().map(|change| &change.after)
            else {
                panic!("{} is not in the log", name.display());
            };
            assert_eq!(&sandbox.workspace.store.contents(digest).unwrap(), bytes);
        }
    }
    differs.len()
}

fn differing(one: &Tree, other: &Tree) -> Vec<PathBuf> {
    let mut paths: Vec<&PathBuf> = one.keys().chain(other.keys()).collect();
    paths.sort();
    paths.dedup();
    paths.into_iter().filter(|path| one.get(*path) != other.get(*path)).cloned().collect()
}

fn conflicts_of(recovered: &takeback_core::rewind::RecoveryReport) -> Vec<PathBuf> {
    let conflicts = recovered.finished.iter().flat_map(|receipt| &receipt.conflicts);
    let kept = recovered.finished.iter().flat_map(|receipt| &receipt.kept_files);
    conflicts.chain(kept).map(|note| PathBuf::from(note.path.display())).collect()
}

#[test]
fn a_stopped_rewind_loses_nothing_to_the_native_restore() {
    let scene = Scene::before_a_rewind();
    for abilities in [Abilities::All, Abilities::NoExchange, Abilities::PlainRenames] {
        let (mut strayed, mut whole) = (0, 0);
        at_every_stop(|stop| {
            let mut sandbox = scene.frozen.thaw();
            abilities.limit(&sandbox);
            let root = sandbox.root();
            let rewinds = sandbox.workspace.store.rewinds().unwrap().len();
            let mut ran = false;
            stop.run(|| {
                rewind_with_restore(&mut sandbox, &scene, &mut || {
                    ran = true;
                    restore(&root, WRITES.len());
                });
            });
            println!("{abilities:?}: {stop:?}");
            let promised = sandbox.another_process().store.rewinds().unwrap().len() > rewinds;
            assert!(promised || !ran, "it runs only after the promise");
            let recovered = after_a_crash(&mut sandbox, abilities);
            assert_nothing_left_behind(&sandbox);
            assert_intact(&sandbox, &scene.listed);
            if ran {
                let conflicts = conflicts_of(&recovered);
                let differ = assert_only_named_differ(&sandbox, &scene, &conflicts, WRITES.len());
                if differ == 0 {
                    whole += 1;
                } else {
                    strayed += 1;
                }
                if stop.reached.is_none() {
                    assert_eq!(differ, 0);
                }
            } else {
                let tree = if promised { &scene.after } else { &scene.before };
                assert_same(&sandbox.tree(), tree);
            }
            for listed in scene.listed.iter().rev().skip(usize::from(!thorough()) * 2) {
                go_exactly_to(&mut sandbox, listed.point);
                assert_same(&sandbox.tree(), &listed.tree);
            }
        });
        // Some stops were before everything was reverted, others after.
        assert!(strayed > 10 && whole > 40, "{abilities:?}: {strayed} strayed, {whole} whole");
    }
}

/// Killed inside of the restore itself, between any two of its writes.
#[test]
fn a_stopped_native_restore_loses_nothing() {
    let scene = Scene::before_a_rewind();
    for upto in 0..=WRITES.len() {
        let mut sandbox = scene.frozen.thaw();
        let root = sandbox.root();
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            rewind_with_restore(&mut sandbox, &scene, &mut || {
                restore(&root, upto);
                std::panic::resume_unwind(Box::new("killed"));
            });
        }));
        assert!(ended.is_err());
        let recovered = after_a_crash(&mut sandbox, Abilities::All);
        let conflicts = conflicts_of(&recovered);
        let differ = assert_only_named_differ(&sandbox, &scene, &conflicts, upto);
        assert!(upto > 2 || differ == 0, "{upto}");
        assert_nothing_left_behind(&sandbox);
        assert_intact(&sandbox, &scene.listed);
        for listed in scene.listed.iter().rev() {
            go_exactly_to(&mut sandbox, listed.point);
            assert_same(&sandbox.tree(), &listed.tree);
        }
    }
}

/// A user saves while the restore's writes are reverted.
#[test]
fn a_save_while_the_native_restore_is_reverted_is_kept() {
    let scene = Scene::before_a_rewind();
    for name in ["mine.txt", "sub/deep/edit.txt"] {
        for abilities in [Abilities::All, Abilities::NoExchange] {
            let mut sandbox = scene.frozen.thaw();
            abilities.limit(&sandbox);
            let (root, at) = (sandbox.root(), sandbox.at(name));
            let paths = vec![path(name)];
            let mut run = || {
                restore(&root, WRITES.len());
                let at = at.clone();
                disk::watch(Some(Box::new(move |point| {
                    let moves = matches!(point, CrashPoint::Exchange | CrashPoint::TakeAway);
                    if moves && at.is_file() {
                        fs::write(&at, "saved meanwhile\n").unwrap();
                    }
                })));
                Ok(())
            };
            let mut native = NativeRestore { paths, run: &mut run };
            let request = RewindRequest::new(Target::Point(scene.listed[1].point));
            let done = rewind_with(&mut sandbox.workspace, &request, None, &mut native);
            disk::watch(None);
            let (receipt, _) = done.unwrap();
            assert_eq!(sandbox.read(name), "saved meanwhile\n", "{abilities:?}");
            let named = receipt.conflicts.iter().any(|note| note.path == path(name));
            assert!(named, "{abilities:?}: {receipt:?}");
        }
    }
}

#[test]
fn a_save_after_the_crash_is_kept() {
    let scene = Scene::before_a_rewind();
    for name in ["edit.txt", "mine.txt", "sub/deep/edit.txt"] {
        let mut sandbox = scene.frozen.thaw();
        let root = sandbox.root();
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            rewind_with_restore(&mut sandbox, &scene, &mut || {
                restore(&root, WRITES.len());
                std::panic::resume_unwind(Box::new("killed"));
            });
        }));
        assert!(ended.is_err());
        sandbox.write(name, "saved later\n");
        let recovered = after_a_crash(&mut sandbox, Abilities::All);
        assert_eq!(sandbox.read(name), "saved later\n");
        assert!(conflicts_of(&recovered).contains(&PathBuf::from(name)), "{name}");
    }
}
