//! An agent's state and its files are saved together and rolled back together.

use std::cell::Cell;

use serde_json::{Value, json};
use takeback_core::execution::{
    ExecutionError, MOST_RETRIES, RollbackFiles, history, keep_last_messages, preview_rollback,
    resume, resume_last, retry_from_step, rollback_to, save_step,
};
use takeback_core::retention::{Clock, Occasion, Policy, clean_up, delete_session};
use takeback_core::rewind::{Receipt, RewindError, RewindRequest, Target};
use takeback_store::disk::{self, CrashPoint};
use takeback_store::state::{
    Attempt, CheckpointId, CheckpointKey, ExecutionId, ExpectedHead, ListQuery, ListScope,
    NewCheckpoint, NewEffect, SaveOutcome, Status, StepIndex, Values,
};
use takeback_store::{PointKind, SessionId, StateError, Timestamp};
use takeback_testkit::Sandbox;

use crate::text::report;

fn execution() -> ExecutionId {
    ExecutionId::new("e").unwrap()
}

fn key(step: u32, attempt: u32) -> CheckpointKey {
    let attempt = Attempt::new(attempt).unwrap();
    CheckpointKey { execution: execution(), step: StepIndex(step), attempt }
}

/// A successful step of no session.
fn checkpoint<'a>(execution: &'a ExecutionId, step: u32, values: &'a Values) -> NewCheckpoint<'a> {
    NewCheckpoint::success(execution, StepIndex(step), "a step", Timestamp(i64::from(step)), values)
}

fn save(sandbox: &mut Sandbox, step: u32, state: Value, status: Status) -> SaveOutcome {
    let (execution, session) = (execution(), SessionId::from("s"));
    let values = Values { state, ..Values::default() };
    let new =
        NewCheckpoint { status, session: Some(&session), ..checkpoint(&execution, step, &values) };
    save_step(&mut sandbox.workspace, &new).unwrap().0
}

/// The newest state of the current branch, and the steps that lead to it.
fn current(sandbox: &Sandbox) -> (Value, Vec<u32>) {
    let states = &sandbox.workspace.states;
    let head = states.head(&execution(), None).unwrap().unwrap().record.unwrap();
    let state = states.load(&head.key.id()).unwrap().unwrap().values.state;
    let execution = execution();
    let query = ListQuery {
        execution: &execution,
        scope: ListScope::Branch(None),
        after: None,
        limit: None,
    };
    let records = states.list(&query).unwrap().records;
    (state, records.iter().map(|record| record.key.step.0).collect())
}

/// Three steps of session `s`, each of which writes its number into `a.txt` and a file of its own.
fn three_steps() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "0\n");
    sandbox.prompt("s", "go");
    for step in 1..=3_u32 {
        sandbox.agent_runs("s", "work", |sandbox| {
            sandbox.write("a.txt", format!("{step}\n"));
            sandbox.write(&format!("{step}.txt"), "made\n");
        });
        save(&mut sandbox, step, json!({ "at": step }), Status::Success);
    }
    sandbox
}

fn roll_back(sandbox: &mut Sandbox, step: u32, files: RollbackFiles) -> Receipt {
    rollback_to(&mut sandbox.workspace, &key(step, 1), files).unwrap()
}

fn moved(receipt: &Receipt) -> Option<(bool, Option<&str>)> {
    receipt.state.as_ref().map(|state| (state.moved, state.checkpoint.as_deref()))
}

#[test]
fn state_and_files_are_rolled_back_and_restored_together() {
    let mut sandbox = three_steps();
    let at_three = sandbox.tree();
    let receipt = roll_back(&mut sandbox, 1, RollbackFiles::All);
    assert_eq!(
        report(&receipt),
        ["success", "restored a.txt", "deleted 2.txt", "deleted 3.txt"],
        "{receipt:?}"
    );
    assert_eq!(moved(&receipt), Some((true, Some("ckpt-e-1.a1"))));
    assert_eq!((sandbox.read("a.txt").as_str(), sandbox.exists("2.txt")), ("1\n", false));
    assert_eq!(current(&sandbox), (json!({ "at": 1 }), vec![1]));

    let undone = sandbox.undo();
    assert_eq!(moved(&undone), Some((true, Some("ckpt-e-3.a1"))));
    assert_eq!(sandbox.tree(), at_three);
    assert_eq!(current(&sandbox), (json!({ "at": 3 }), vec![1, 2, 3]));

    let redone = sandbox.redo();
    assert_eq!(moved(&redone), Some((true, Some("ckpt-e-1.a1"))));
    assert_eq!(sandbox.read("a.txt"), "1\n");
    assert_eq!(current(&sandbox), (json!({ "at": 1 }), vec![1]));
}

#[test]
fn an_undo_leaves_the_state_of_an_agent_that_continued() {
    let mut sandbox = three_steps();
    roll_back(&mut sandbox, 1, RollbackFiles::All);
    sandbox.agent_writes("s", "other.txt", "another way\n");
    save(&mut sandbox, 2, json!({ "at": "another 2" }), Status::Success);
    sandbox.reopen();
    let undone = sandbox.undo();
    assert_eq!((moved(&undone), undone.success), (Some((false, None)), true));
    assert_eq!(sandbox.read("2.txt"), "made\n");
    assert_eq!(current(&sandbox), (json!({ "at": "another 2" }), vec![1, 2]));
    let redone = sandbox.redo();
    assert_eq!(moved(&redone), None);
    assert_eq!(current(&sandbox), (json!({ "at": "another 2" }), vec![1, 2]));
    // The state it left is still there.
    let left = sandbox.workspace.states.load(&key(3, 1).id()).unwrap().unwrap();
    assert_eq!(left.values.state, json!({ "at": 3 }));
    // A rollback of the state alone can no longer be undone.
    let mut sandbox = three_steps();
    roll_back(&mut sandbox, 1, RollbackFiles::Stay);
    save(&mut sandbox, 2, json!({ "at": "another 2" }), Status::Success);
    let refused = sandbox.rewind(&RewindRequest::new(Target::Undo));
    assert!(matches!(refused, Err(RewindError::NothingToUndo)), "{refused:?}");
}

#[test]
fn a_rollback_with_any_conflict_changes_nothing() {
    type Way = (&'static str, fn(&mut Sandbox));
    let ways: [Way; 3] = [
        ("kept mine.txt", |sandbox| sandbox.write("mine.txt", "a human's\n")),
        ("conflict a.txt", |sandbox| sandbox.write("a.txt", "a human's\n")),
        ("conflict 3.txt", |sandbox| sandbox.write("3.txt", "a human's\n")),
    ];
    for (expected, interfere) in ways {
        let mut sandbox = three_steps();
        sandbox.turn_end("s");
        interfere(&mut sandbox);
        let before = (sandbox.tree(), current(&sandbox));
        let preview =
            preview_rollback(&mut sandbox.workspace, &key(1, 1), RollbackFiles::All).unwrap();
        assert!(preview.is_refused(), "{expected}");
        let receipt = roll_back(&mut sandbox, 1, RollbackFiles::All);
        let said = report(&receipt);
        assert!(said.iter().any(|line| line.starts_with(expected)), "{said:?}");
        assert!(!receipt.success && !receipt.changed_something(), "{receipt:?}");
        assert_eq!(moved(&receipt), Some((false, Some("ckpt-e-1.a1"))));
        assert_eq!((sandbox.tree(), current(&sandbox)), before, "{expected}");
        // Nothing was done, so nothing can be undone.
        assert_eq!(sandbox.workspace.store.rewinds().unwrap(), []);
    }
}

#[test]
fn the_flags_limit_a_rollback() {
    let edited = || {
        let mut sandbox = three_steps();
        sandbox.turn_end("s");
        sandbox.write("mine.txt", "a human's\n");
        sandbox.write("3.txt", "a human's\n");
        sandbox
    };
    let mut sandbox = edited();
    let receipt = roll_back(&mut sandbox, 1, RollbackFiles::Partial);
    assert_eq!(moved(&receipt), Some((true, Some("ckpt-e-1.a1"))));
    assert!(!receipt.success);
    assert_eq!(sandbox.read("a.txt"), "1\n");
    assert_eq!((sandbox.read("3.txt"), sandbox.read("mine.txt")), two("a human's\n"));
    assert_eq!(current(&sandbox).1, [1]);

    let mut sandbox = edited();
    let receipt = roll_back(&mut sandbox, 1, RollbackFiles::Exact);
    assert_eq!((receipt.success, moved(&receipt).unwrap().0), (true, true));
    assert_eq!((sandbox.exists("3.txt"), sandbox.exists("mine.txt")), (false, false));
    assert_eq!(current(&sandbox).1, [1]);

    let mut sandbox = edited();
    let before = sandbox.tree();
    let receipt = roll_back(&mut sandbox, 1, RollbackFiles::Stay);
    assert_eq!((receipt.success, moved(&receipt).unwrap().0, receipt.point), (true, true, None));
    assert_eq!(sandbox.tree(), before);
    assert_eq!(current(&sandbox).1, [1]);
    sandbox.undo();
    assert_eq!(sandbox.tree(), before);
    assert_eq!(current(&sandbox).1, [1, 2, 3]);
}

fn two(text: &str) -> (String, String) {
    (text.to_owned(), text.to_owned())
}

#[test]
fn a_save_during_a_rollback_makes_it_change_nothing() {
    for files in [RollbackFiles::All, RollbackFiles::Exact] {
        save_during(files);
    }
}

fn save_during(files: RollbackFiles) {
    let mut sandbox = three_steps();
    sandbox.turn_end("s");
    let before = current(&sandbox);
    // Right before the last file is placed.
    let place = sandbox.at("a.txt");
    let last = Cell::new(false);
    disk::watch(Some(Box::new(move |point| {
        if point == CrashPoint::Exchange && !last.replace(true) {
            std::fs::write(&place, "a human's\n").unwrap();
        }
    })));
    let receipt = roll_back(&mut sandbox, 1, files);
    disk::watch(None);
    assert!(!receipt.success && !receipt.changed_something(), "{receipt:?}");
    assert_eq!(moved(&receipt).map(|(moved, _)| moved), Some(false));
    let conflicts: Vec<_> = receipt.conflicts.iter().map(|note| note.path.display()).collect();
    assert_eq!(conflicts.len(), 1, "{receipt:?}");
    assert_eq!(sandbox.read("a.txt"), "a human's\n");
    assert_eq!(sandbox.read("2.txt") + &sandbox.read("3.txt"), "made\nmade\n");
    assert_eq!(current(&sandbox), before);
}

#[test]
fn a_step_has_a_point_of_its_own_only_if_files_changed() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "0\n");
    let prompt = sandbox.prompt("s", "go");
    let first = save(&mut sandbox, 1, json!(1), Status::Success).record;
    assert_eq!(first.point, Some(prompt));
    sandbox.agent_writes("s", "a.txt", "1\n");
    let second = save(&mut sandbox, 2, json!(2), Status::Success).record;
    assert_ne!(second.point, first.point);
    let third = save(&mut sandbox, 3, json!(3), Status::Success).record;
    assert_eq!(third.point, second.point);
    let points = sandbox.workspace.store.points().unwrap();
    let kinds: Vec<PointKind> = points.iter().map(|point| point.kind).collect();
    assert_eq!(kinds, [PointKind::Prompt, PointKind::Step]);
    assert_eq!(
        sandbox.workspace.states.points().unwrap(),
        points.iter().map(|point| point.id).collect()
    );
    // The same again, with another prompt in between, is still the same.
    sandbox.prompt("s", "go on");
    let again = save(&mut sandbox, 3, json!(3), Status::Success);
    assert!(!again.is_new);
    // With other files it is not.
    sandbox.agent_writes("s", "a.txt", "more\n");
    let again = save(&mut sandbox, 3, json!(3), Status::Success);
    assert_eq!((again.is_new, again.record.key.attempt.0.get()), (true, 2));
}

#[test]
fn the_point_of_a_step_is_its_own_sessions() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "0\n");
    let theirs = sandbox.prompt("t", "go");
    let saved = save(&mut sandbox, 1, json!(1), Status::Success).record;
    assert_ne!(saved.point, Some(theirs));
    let points = sandbox.workspace.store.points().unwrap();
    let own = points.iter().find(|point| Some(point.id) == saved.point).unwrap();
    assert_eq!(own.session, Some(SessionId::from("s")));
}

#[test]
fn an_undo_of_some_paths_leaves_the_state() {
    let mut sandbox = three_steps();
    roll_back(&mut sandbox, 1, RollbackFiles::All);
    let mut request = RewindRequest::new(Target::Undo);
    request.paths = vec!["a.txt".to_owned()];
    let receipt = sandbox.rewind(&request).unwrap();
    assert_eq!((report(&receipt).len(), moved(&receipt)), (2, None), "{receipt:?}");
    assert_eq!(sandbox.read("a.txt"), "3\n");
    assert_eq!(current(&sandbox).1, [1]);
}

#[test]
fn a_step_in_the_middle_of_a_call_does_not_end_it() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "0\n");
    sandbox.prompt("s", "go");
    let call = sandbox.before_shell("s", "a long one");
    sandbox.write("a.txt", "1\n");
    save(&mut sandbox, 1, json!(1), Status::Success);
    sandbox.write("a.txt", "2\n");
    save(&mut sandbox, 2, json!(2), Status::Success);
    sandbox.write("b.txt", "after\n");
    sandbox.after("s", &call);
    let receipt = roll_back(&mut sandbox, 1, RollbackFiles::All);
    assert_eq!(report(&receipt)[0], "success", "{receipt:?}");
    assert_eq!((sandbox.read("a.txt").as_str(), sandbox.exists("b.txt")), ("1\n", false));
}

#[test]
fn a_checkpoint_without_its_files_says_so() {
    let mut sandbox = three_steps();
    sandbox.workspace.states.save(&checkpoint(&execution(), 4, &Values::default())).unwrap();
    save(&mut sandbox, 5, json!(5), Status::Success);
    let refused = rollback_to(&mut sandbox.workspace, &key(4, 1), RollbackFiles::All);
    assert!(matches!(refused, Err(ExecutionError::NoFiles { id }) if id == key(4, 1).id()));
    let receipt = roll_back(&mut sandbox, 4, RollbackFiles::Stay);
    assert_eq!(moved(&receipt), Some((true, Some("ckpt-e-4.a1"))));
    let missing = rollback_to(&mut sandbox.workspace, &key(9, 1), RollbackFiles::All);
    let Err(ExecutionError::State(StateError::NotFound { id })) = missing else {
        panic!("{missing:?}");
    };
    assert_eq!(id.to_string(), "ckpt-e-9.a1");
}

#[test]
fn a_retry_starts_from_the_last_success_and_is_counted() {
    let mut sandbox = three_steps();
    save(&mut sandbox, 4, json!({ "at": "boom" }), Status::Failed);
    for count in 1..=MOST_RETRIES {
        sandbox.reopen();
        let states = &*sandbox.workspace.states;
        let resumed = retry_from_step(states, &execution(), StepIndex(4), MOST_RETRIES).unwrap();
        assert_eq!(resumed.checkpoint.values.state, json!({ "at": 3 }), "retry {count}");
        // The failed attempt stays visible.
        assert_eq!(current(&sandbox).1, [1, 2, 3, 4]);
    }
    let states = &*sandbox.workspace.states;
    let exhausted = retry_from_step(states, &execution(), StepIndex(4), MOST_RETRIES);
    assert!(matches!(exhausted, Err(StateError::RetriesExhausted { count: 3, .. })));
    let none = retry_from_step(states, &execution(), StepIndex(1), MOST_RETRIES).unwrap_err();
    assert_eq!(none.to_string(), "No successful checkpoint found before step 1");
    // A success ends the count.
    save(&mut sandbox, 4, json!({ "at": 4 }), Status::Success);
    let states = &*sandbox.workspace.states;
    // Later steps leave the branch, so that they do not seem to follow the retry.
    let resumed = retry_from_step(states, &execution(), StepIndex(2), 1).unwrap();
    assert_eq!(resumed.checkpoint.values.state, json!({ "at": 1 }));
    assert_eq!(current(&sandbox).1, [1]);
    assert!(sandbox.workspace.states.load(&key(4, 2).id()).unwrap().is_some());
}

#[test]
fn a_resumed_execution_lists_ambiguous_and_confirmed_effects() {
    let sandbox = three_steps();
    let (states, execution) = (&*sandbox.workspace.states, execution());
    let intent = json!({ "to": "a@example.org" });
    for (name, step) in [("mail-2", 2), ("mail-3", 3), ("mail-4", 4)] {
        let step = Some(StepIndex(step));
        let time = Timestamp(1);
        let new = NewEffect { execution: &execution, key: name, step, intent: &intent, time };
        states.declare_effect(&new).unwrap();
    }
    for done in ["mail-2", "mail-3"] {
        states.confirm_effect(&execution, done, &json!("sent"), Timestamp(2)).unwrap();
    }
    let names = |effects: &[takeback_store::state::Effect]| {
        effects.iter().map(|effect| effect.key.clone()).collect::<Vec<_>>()
    };
    let last = resume_last(states, &execution, None).unwrap().unwrap();
    assert_eq!(last.checkpoint.values.state, json!({ "at": 3 }));
    assert_eq!((names(&last.ambiguous), names(&last.happened)), (vec!["mail-4".into()], vec![]));
    let second = resume(states, &"ckpt-e-2".parse::<CheckpointId>().unwrap()).unwrap();
    assert_eq!(names(&second.happened), ["mail-3"]);
    let missing = resume(states, &"ckpt-e-7".parse().unwrap()).unwrap_err();
    assert_eq!(missing.to_string(), "Checkpoint ckpt-e-7 not found");
}

#[test]
fn a_shortened_conversation_keeps_calls_with_their_results() {
    let call = json!({ "role": "assistant", "tool_calls": [{ "id": "1" }] });
    let result = json!({ "role": "tool", "tool_call_id": "1" });
    let (ask, answer) = (json!({ "role": "user" }), json!({ "role": "assistant" }));
    let messages = json!([ask, call, result, answer]);
    let whole = Values {
        state: json!({ "messages": messages }),
        context: json!({ "messages": messages, "other": [1, 2, 3] }),
        variables: json!({ "messages": messages }),
        ..Values::default()
    };
    for (most, kept) in [(9, 4), (4, 4), (3, 3), (2, 1), (1, 1), (0, 0)] {
        let mut values = whole.clone();
        keep_last_messages(&mut values, most);
        let newest = Value::from(&messages.as_array().unwrap()[4 - kept..]);
        assert_eq!((&values.state["messages"], &values.context["messages"]), (&newest, &newest));
        assert_eq!(values.context["other"], json!([1, 2, 3]));
        assert_eq!(values.variables, whole.variables);
    }
}

#[test]
fn nothing_can_be_redone_after_another_rollback() {
    let mut sandbox = three_steps();
    roll_back(&mut sandbox, 1, RollbackFiles::Stay);
    sandbox.undo();
    roll_back(&mut sandbox, 2, RollbackFiles::Stay);
    let refused = sandbox.rewind(&RewindRequest::new(Target::Redo));
    assert!(matches!(refused, Err(RewindError::NothingToRedo)), "{refused:?}");
    assert_eq!(current(&sandbox).1, [1, 2]);
}

#[test]
fn a_deleted_executions_rollback_does_not_block_undo() {
    for anew in [false, true] {
        let mut sandbox = Sandbox::new();
        sandbox.write("a.txt", "0\n");
        let point = sandbox.prompt("s", "go");
        sandbox.agent_writes("s", "a.txt", "the agent's\n");
        for step in 1..=2 {
            save(&mut sandbox, step, json!({ "at": step }), Status::Success);
        }
        sandbox.rewind_to(point);
        roll_back(&mut sandbox, 1, RollbackFiles::Stay);
        sandbox.workspace.states.delete_execution(&execution()).unwrap();
        if anew {
            save(&mut sandbox, 1, json!({ "at": "anew" }), Status::Success);
        }
        let undone = sandbox.undo();
        assert_eq!(
            (report(&undone), undone.state),
            (vec!["success".into(), "restored a.txt".into()], None)
        );
        assert_eq!(sandbox.read("a.txt"), "the agent's\n");
    }
}

#[test]
fn a_step_that_is_refused_leaves_no_point() {
    let mut sandbox = three_steps();
    let before = sandbox.workspace.store.points().unwrap();
    sandbox.agent_writes("s", "a.txt", "4\n");
    let (execution, missing) = (execution(), "ckpt-e-9".parse().unwrap());
    let (values, session) = (Values::default(), SessionId::from("s"));
    let expect = ExpectedHead::Newest(Some(&missing));
    let new =
        NewCheckpoint { expect, session: Some(&session), ..checkpoint(&execution, 4, &values) };
    let refused = save_step(&mut sandbox.workspace, &new).unwrap_err();
    assert!(matches!(refused, ExecutionError::State(StateError::MissingParent { .. })));
    assert_eq!(sandbox.workspace.store.points().unwrap(), before);
}

#[test]
fn the_history_shows_each_executions_step() {
    let sandbox = three_steps();
    let shown = history(&*sandbox.workspace.states).unwrap();
    assert_eq!(shown, [(execution(), "Restore e\n  Step: a step".to_owned())]);
}

#[test]
fn a_deleted_session_takes_its_states_with_it() {
    let mut sandbox = three_steps();
    sandbox.session_end("s");
    delete_session(&mut sandbox.workspace, &SessionId::from("s")).unwrap();
    assert_eq!(sandbox.workspace.states.executions().unwrap().executions, []);
    assert_eq!(sandbox.workspace.states.check().unwrap(), Vec::<String>::new());
}

#[test]
fn clean_ups_of_other_runs_keep_an_executions_state_and_points() {
    let mut sandbox = Sandbox::new();
    let (execution, run) = (execution(), SessionId::of_run(1));
    sandbox.start(&run.0);
    sandbox.prompt(&run.0, "agent");
    for step in 1..=3 {
        sandbox.agent_writes(&run.0, "a.txt", format!("{step}\n"));
        let values = Values { state: json!(step), ..Values::default() };
        let new = NewCheckpoint { session: Some(&run), ..checkpoint(&execution, step, &values) };
        save_step(&mut sandbox.workspace, &new).unwrap();
    }
    sandbox.session_end(&run.0);
    for number in 2..=9 {
        let other = SessionId::of_run(number).0;
        sandbox.start(&other);
        sandbox.prompt(&other, "true");
        sandbox.session_end(&other);
    }
    let policy = Policy { points_per_session: 4, ..Policy::default() };
    clean_up(&mut sandbox.workspace, &policy, Occasion::OnDemand, Clock::Doubted).unwrap();
    let executions = sandbox.workspace.states.executions().unwrap().executions;
    assert_eq!(executions.len(), 1);
    roll_back(&mut sandbox, 1, RollbackFiles::All);
    assert_eq!((current(&sandbox).0, sandbox.read("a.txt")), (json!(1), "1\n".to_owned()));
}

/// With lost contents neither state nor files are rolled back, unless a partial rollback is requested.
#[test]
fn missing_contents_refuse_a_rollback() {
    let mut sandbox = three_steps();
    let before = sandbox.tree();
    crate::damage::spoil(&mut sandbox, "1\n");
    let receipt = roll_back(&mut sandbox, 1, RollbackFiles::All);
    assert_eq!(report(&receipt), ["not all", "not captured a.txt: damaged in the store"]);
    assert_eq!((sandbox.tree(), current(&sandbox).0), (before.clone(), json!({ "at": 3 })));
    let receipt = roll_back(&mut sandbox, 1, RollbackFiles::Partial);
    let expected =
        ["not all", "deleted 2.txt", "deleted 3.txt", "not captured a.txt: damaged in the store"];
    assert_eq!(report(&receipt), expected);
    assert_eq!(current(&sandbox).0, json!({ "at": 1 }));
    sandbox.undo();
    assert_eq!((sandbox.tree(), current(&sandbox).0), (before, json!({ "at": 3 })));
}
