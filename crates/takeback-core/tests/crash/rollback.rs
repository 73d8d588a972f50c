//! A saved step, a rollback of state and files, and its undo, stopped anywhere: afterwards both are as
//! before, or both are changed.

use std::cell::Cell;

use serde_json::{Value, json};
use takeback_core::execution::{RollbackFiles, rollback_to, save_step};
use takeback_store::SessionId;
use takeback_store::Timestamp;
use takeback_store::disk::{self, CrashPoint};
use takeback_store::state::{
    Attempt, CheckpointKey, ExecutionId, NewCheckpoint, StepIndex, Values,
};
use takeback_testkit::{Sandbox, SandboxImage};

use crate::{Abilities, Tree, after_a_crash, assert_nothing_left_behind, at_every_stop};

fn execution() -> ExecutionId {
    ExecutionId::new("e").unwrap()
}

fn save(sandbox: &mut Sandbox, step: u32) {
    let execution = execution();
    // Long enough for nodes of its own.
    let state = json!({ "at": step, "text": "x".repeat(5000) });
    let values = Values { state, ..Values::default() };
    let (step, time) = (StepIndex(step), Timestamp(i64::from(step)));
    let session = Some(&SessionId::from("s"));
    let new = NewCheckpoint {
        session,
        ..NewCheckpoint::success(&execution, step, "a step", time, &values)
    };
    save_step(&mut sandbox.workspace, &new).unwrap();
}

fn three_steps() -> SandboxImage {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "0\n");
    sandbox.write("gone.txt", "still here\n");
    sandbox.prompt("s", "go");
    for step in 1..=3_u32 {
        sandbox.agent_runs("s", "work", |sandbox| {
            sandbox.write("a.txt", format!("{step}\n"));
            sandbox.write(&format!("{step}/made.txt"), "made\n");
            if step == 2 {
                sandbox.remove("gone.txt");
            }
        });
        save(&mut sandbox, step);
    }
    sandbox.turn_end("s");
    sandbox.freeze()
}

fn roll_back(sandbox: &mut Sandbox) {
    let key = CheckpointKey { execution: execution(), step: StepIndex(1), attempt: Attempt::FIRST };
    rollback_to(&mut sandbox.workspace, &key, RollbackFiles::All).unwrap();
}

fn undo(sandbox: &mut Sandbox) {
    sandbox.undo();
}

/// The files and the current state.
fn both(sandbox: &Sandbox) -> (Tree, Value) {
    let states = sandbox.another_process().states;
    assert_eq!(states.check().unwrap(), Vec::<String>::new());
    let head = states.head(&execution(), None).unwrap().unwrap().record.unwrap();
    let state = states.load(&head.key.id()).unwrap().unwrap().values.state;
    (sandbox.tree(), state["at"].clone())
}

fn at_every_point(begun: &SandboxImage, work: fn(&mut Sandbox)) {
    let mut sandbox = begun.thaw();
    let before = both(&sandbox);
    work(&mut sandbox);
    let after = both(&sandbox);
    assert!(before.0 != after.0 && before.1 != after.1);
    let mut ended = Vec::new();
    at_every_stop(|stop| {
        let mut sandbox = begun.thaw();
        stop.run(|| work(&mut sandbox));
        after_a_crash(&mut sandbox, Abilities::All);
        assert_nothing_left_behind(&sandbox);
        let found = both(&sandbox);
        assert!(found == before || found == after, "{stop:?}: {found:?}");
        ended.push(found == after);
    });
    // From the promise on it is done, before it nothing is.
    assert!(ended.is_sorted() && !ended[0] && ended[ended.len() - 2], "{ended:?}");
}

#[test]
fn a_rollback_moves_state_and_files_together() {
    at_every_point(&three_steps(), roll_back);
}

#[test]
fn an_undone_rollback_moves_state_and_files_together() {
    let mut sandbox = three_steps().thaw();
    roll_back(&mut sandbox);
    at_every_point(&sandbox.freeze(), undo);
}

/// State and files still change together.
#[test]
fn an_edit_before_the_recovery_of_a_rollback_is_kept() {
    edit_before_the_recovery(&three_steps());
}

#[test]
fn an_edit_of_the_only_file_before_the_recovery_is_kept() {
    let mut sandbox = Sandbox::new();
    sandbox.prompt("s", "go");
    for step in 1..=3_u32 {
        sandbox.agent_writes("s", "a.txt", format!("{step}\n"));
        save(&mut sandbox, step);
    }
    sandbox.turn_end("s");
    edit_before_the_recovery(&sandbox.freeze());
}

fn edit_before_the_recovery(begun: &SandboxImage) {
    let before = both(&begun.thaw());
    let mut after = begun.thaw();
    roll_back(&mut after);
    let after = both(&after);
    at_every_stop(|stop| {
        let mut sandbox = begun.thaw();
        stop.run(|| roll_back(&mut sandbox));
        let was_done = sandbox
            .another_process()
            .store
            .rewinds()
            .unwrap()
            .iter()
            .any(|rewind| rewind.state == takeback_store::RewindState::Done);
        sandbox.write("a.txt", "a human's\n");
        after_a_crash(&mut sandbox, Abilities::All);
        assert_eq!(sandbox.read("a.txt"), "a human's\n");
        let (mut tree, state) = both(&sandbox);
        let (whole, at) = if was_done { &after } else { &before };
        let edited = std::path::Path::new("a.txt");
        tree.insert(edited.to_owned(), whole[edited].clone());
        assert_eq!((&tree, &state), (whole, at), "{stop:?}");
    });
}

/// A user saves while it runs, so nothing must change, and then it is stopped too.
#[test]
fn an_edit_during_a_rollback_makes_it_change_nothing() {
    let begun = three_steps();
    let before = both(&begun.thaw());
    let mut is_edited = false;
    at_every_stop(|stop| {
        let mut sandbox = begun.thaw();
        let place = sandbox.at("a.txt");
        stop.run(|| {
            let seen = Cell::new(false);
            disk::watch(Some(Box::new(move |point| {
                if point == CrashPoint::TakeAway && !seen.replace(true) {
                    std::fs::write(&place, "a human's\n").unwrap();
                }
            })));
            roll_back(&mut sandbox);
        });
        is_edited = sandbox.read("a.txt") == "a human's\n";
        after_a_crash(&mut sandbox, Abilities::All);
        let (mut tree, state) = both(&sandbox);
        if is_edited {
            assert_eq!(sandbox.read("a.txt"), "a human's\n", "{stop:?}");
            let edited = std::path::Path::new("a.txt");
            tree.insert(edited.to_owned(), before.0[edited].clone());
            assert_eq!((&tree, &state), (&before.0, &before.1), "{stop:?}");
        }
    });
    assert!(is_edited, "the run without a stop comes to the edit");
}

#[test]
fn a_stopped_save_of_a_step_can_be_repeated() {
    let begun = {
        let mut sandbox = three_steps().thaw();
        sandbox.agent_writes("s", "a.txt", "4\n");
        sandbox.freeze()
    };
    at_every_stop(|stop| {
        let mut sandbox = begun.thaw();
        stop.run(|| save(&mut sandbox, 4));
        after_a_crash(&mut sandbox, Abilities::All);
        let (_, state) = both(&sandbox);
        assert!(state == 3 || (state == 4), "{stop:?}: {state}");
        // To save it again makes it whole, and is no second attempt.
        save(&mut sandbox, 4);
        let states = &sandbox.workspace.states;
        let record = states.find(&"ckpt-e-4".parse().unwrap()).unwrap().unwrap();
        assert_eq!(record.key.attempt, Attempt::FIRST, "{stop:?}");
        roll_back(&mut sandbox);
        assert_eq!(both(&sandbox).1, 1);
    });
}
