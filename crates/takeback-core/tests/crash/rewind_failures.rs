//! Rewinds that cannot begin, and recoveries whose journal or folders are damaged.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use takeback_core::rewind::{Receipt, RecoveryReport, RewindError, RewindRequest, Target, recover};
use takeback_store::disk::{self, CrashPoint};
use takeback_store::{PointId, RewindState, StoredPlan, Write};
use takeback_testkit::Sandbox;

use crate::scene::Scene;
use crate::{
    Abilities, PointTree, after_a_crash, assert_intact, assert_nothing_left_behind, assert_same,
    at_every_stop, go_exactly_to, left_in_stages, stopped,
};

/// An agent has edited one file in the workspace and two outside.
fn with_edits_outside() -> (Sandbox, PointId, RewindRequest) {
    let mut sandbox = Sandbox::new();
    sandbox.write("in.txt", "one\n");
    sandbox.write("../outside/replaced.txt", "one\n");
    let point = sandbox.prompt("s", "do it");
    sandbox.agent_writes("s", "in.txt", "two\n");
    sandbox.agent_writes("s", "../outside/replaced.txt", "two\n");
    sandbox.agent_writes("s", "../outside/made.txt", "made\n");
    sandbox.turn_end("s");
    let mut request = RewindRequest::new(Target::Point(point));
    request.outside = true;
    (sandbox, point, request)
}

fn names_outside(sandbox: &Sandbox) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(sandbox.outside().join("outside"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn stages_outside_the_workspace_are_always_cleared() {
    for inside in [true, false] {
        at_every_stop(|stop| {
            let (mut sandbox, _, mut request) = with_edits_outside();
            if !inside {
                request.paths = vec!["/**".to_owned()];
            }
            stop.run(|| {
                let receipt = sandbox.rewind(&request).unwrap();
                assert!(receipt.success, "{receipt:?}");
            });
            println!("{stop:?}, {:?}", names_outside(&sandbox));
            let promised = !sandbox.another_process().store.rewinds().unwrap().is_empty();
            after_a_crash(&mut sandbox, Abilities::All);
            assert_nothing_left_behind(&sandbox);
            if promised {
                assert_eq!(names_outside(&sandbox), ["replaced.txt"]);
                assert_eq!(sandbox.read("../outside/replaced.txt"), "one\n");
                let mut undo = RewindRequest::new(Target::Undo);
                undo.outside = true;
                let receipt = sandbox.rewind(&undo).unwrap();
                assert!(receipt.success, "{receipt:?}");
            }
            assert_eq!(names_outside(&sandbox), ["made.txt", "replaced.txt"]);
            assert_eq!(sandbox.read("../outside/replaced.txt"), "two\n");
        });
    }
}

/// The rest is recovered.
#[test]
fn a_deleted_outside_folder_fails_only_its_own_files() {
    let mut n = 1;
    let mut finished: Vec<Receipt> = Vec::new();
    loop {
        let (mut sandbox, _, request) = with_edits_outside();
        let reached = stopped(n, || drop(sandbox.rewind(&request)));
        fs::remove_dir_all(sandbox.outside().join("outside")).unwrap();
        let open =
            sandbox.another_process().store.rewinds().unwrap().iter().any(|r| r.receipt.is_none());
        let recovered = after_a_crash(&mut sandbox, Abilities::All);
        assert_nothing_left_behind(&sandbox);
        if open {
            assert_eq!(sandbox.read("in.txt"), "one\n");
            finished.extend(recovered.finished);
        }
        if reached.is_none() {
            break;
        }
        n += 1;
    }
    assert!(finished.len() > 5);
    for receipt in finished {
        assert_eq!(receipt.errors.len(), 2, "{receipt:?}");
        assert_eq!(receipt.restored_files, [takeback_testkit::path("in.txt")]);
    }
}

/// An unreadable journal is reported as an error. The files in its stage stay, without the mark of an
/// unpromised stage; the safety point stays, and rewinds work again.
#[test]
fn an_unreadable_plan_is_reported_and_its_stage_is_left() {
    let scene = Scene::before_a_rewind();
    let mut finished = 0;
    for n in (1..).step_by(3) {
        let mut sandbox = scene.frozen.thaw();
        let reached = stopped(n, || drop(sandbox.rewind_to(scene.listed[1].point)));
        sandbox.reopen();
        let store = &mut sandbox.workspace.store;
        let Some(mut record) = store.rewinds().unwrap().pop() else { continue };
        if record.state == RewindState::Done {
            break;
        }
        record.plan = StoredPlan::of_text("{\"steps\":[{\"path\":").unwrap();
        let head = store.head().unwrap();
        store.commit(head, &[Write::Rewind(record.clone())]).unwrap();
        let (tree, mut stage) = (sandbox.tree(), left_in_stages(&sandbox));
        stage.retain(|path, _| !path.to_string_lossy().contains("/unpromised-"));

        let recovered = recover(&mut sandbox.workspace).unwrap();
        assert_eq!(recovered.finished.len(), 1);
        assert!(!recovered.finished[0].success);
        assert_eq!(recovered.finished[0].safety_point, Some(record.safety_point));
        assert_eq!(recovered.finished[0].errors.len(), 1);
        assert_same(&sandbox.tree(), &tree);
        assert_eq!(left_in_stages(&sandbox), stage);
        assert_eq!(recover(&mut sandbox.workspace).unwrap(), RecoveryReport::default());
        let safety = PointTree { point: record.safety_point, tree: scene.before.clone() };
        assert_intact(&sandbox, &[safety]);
        let last = scene.listed.last().unwrap();
        go_exactly_to(&mut sandbox, last.point);
        assert_same(&sandbox.tree(), &last.tree);
        assert_intact(&sandbox, &scene.listed);
        finished += 1;
        assert!(reached.is_some());
    }
    assert!(finished > 10, "{finished}");
}

/// As on a full disk: the stage's folder or a staged file cannot be made.
#[test]
fn a_rewind_that_cannot_be_staged_changes_nothing() {
    let scene = Scene::before_a_rewind();
    let mut sandbox = scene.frozen.thaw();
    sandbox.write(".takeback", "a file, not a folder\n");
    let request = RewindRequest::new(Target::Point(scene.listed[1].point));
    assert!(matches!(
        sandbox.rewind(&request),
        Err(RewindError::Stage(_) | RewindError::Stages { .. })
    ));
    fs::remove_file(sandbox.at(".takeback")).unwrap();
    assert_same(&sandbox.tree(), &scene.before);
    assert!(sandbox.workspace.store.rewinds().unwrap().is_empty());

    // The third file that is staged finds its name taken.
    let mut sandbox = scene.frozen.thaw();
    let root = sandbox.root();
    let mut staged = 0;
    disk::watch(Some(Box::new(move |point| {
        staged += u32::from(point == CrashPoint::StageFile);
        if staged == 3 {
            staged += 1;
            let own = root.join(".takeback");
            let stage: PathBuf = fs::read_dir(own).unwrap().next().unwrap().unwrap().path();
            for number in 0..30 {
                drop(fs::write(stage.join(format!("new-{number}")), "in the way\n"));
            }
        }
    })));
    let failed = sandbox.rewind(&request);
    disk::watch(None);
    assert!(matches!(failed, Err(RewindError::Stage(_))), "{failed:?}");
    assert_same(&sandbox.tree(), &scene.before);
    assert_nothing_left_behind(&sandbox);
    assert!(sandbox.workspace.store.rewinds().unwrap().is_empty());
    assert_eq!(sandbox.rewind_to(scene.listed[1].point).errors, []);
    assert_same(&sandbox.tree(), &scene.after);
}

/// If Takeback's own folder is a link, nothing is written to its target.
#[test]
fn a_stage_is_never_made_through_a_link() {
    let scene = Scene::before_a_rewind();
    let mut sandbox = scene.frozen.thaw();
    let elsewhere = sandbox.outside().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, sandbox.at(".takeback")).unwrap();
    let request = RewindRequest::new(Target::Point(scene.listed[1].point));
    assert!(sandbox.rewind(&request).is_err());
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
}
