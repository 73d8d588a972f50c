//! A failed step is retried from the last success, as often as allowed.

use std::cell::RefCell;

use serde_json::json;
use takeback_agents::{RunError, Step, StepAgent, StepError};
use takeback_store::state::{ListScope, Status};
use takeback_testkit::Sandbox;

use crate::{
    Places, agent, attempts, describe, execution, five_steps, head, initial, nothing, records,
    undisturbed,
};

fn success(step: u32, attempt: u32) -> (u32, u32, Status, Option<String>) {
    (step, attempt, Status::Success, None)
}

fn failure(step: u32, attempt: u32) -> (u32, u32, Status, Option<String>) {
    (step, attempt, Status::Failed, Some("no luck".to_owned()))
}

#[test]
fn two_failures_leave_two_failed_attempts_and_nothing_else() {
    let (values, tree) = undisturbed();
    let mut sandbox = Sandbox::new();
    sandbox.write("mine.txt", "mine\n");
    let places = Places::of(&sandbox);
    let happenings = RefCell::new(Vec::new());
    let mut agent = agent(five_steps(&places, 2, nothing));
    agent.on_event = Box::new(|event| happenings.borrow_mut().push(describe(event)));
    let found = agent.run(&mut sandbox.workspace, &initial()).unwrap();
    drop(agent);

    assert_eq!(found, values);
    assert_eq!(sandbox.tree(), tree);
    assert_eq!(
        attempts(&sandbox.workspace),
        [
            success(0, 1),
            success(1, 1),
            success(2, 1),
            failure(3, 1),
            failure(3, 2),
            success(3, 3),
            success(4, 1),
            success(5, 1),
        ]
    );
    let branch = records(&sandbox.workspace, ListScope::Branch(None));
    assert!(branch.iter().all(|record| record.status == Status::Success && record.is_newest));
    assert_eq!(
        happenings.take(),
        [
            "ckpt-exec-1-0 success",
            "ckpt-exec-1-1 success",
            "ckpt-exec-1-2 success",
            "ckpt-exec-1-3 failed",
            "taken back, kept []",
            "ckpt-exec-1-3 failed",
            "taken back, kept []",
            "ckpt-exec-1-3 success",
            "ckpt-exec-1-4 success",
            "ckpt-exec-1-5 success",
        ]
    );
    assert_eq!(places.count("begin 3"), 3);
    assert_eq!(places.noted().len(), 5 + 2 + 2 + 5, "every other step ran once");
}

#[test]
fn a_failed_checkpoint_has_the_state_and_files_of_the_failure() {
    let mut sandbox = Sandbox::new();
    let places = Places::of(&sandbox);
    agent(five_steps(&places, 1, nothing)).run(&mut sandbox.workspace, &initial()).unwrap();
    let id = "ckpt-exec-1-3.a1".parse().unwrap();
    let failed = sandbox.workspace.states.load(&id).unwrap().unwrap();
    assert_eq!(failed.values.state, json!({ "done": [1, 2] }));
    assert_eq!(failed.values.variables, json!({ "begun": [1, 2, 3] }));
    let points = sandbox.workspace.store.points().unwrap();
    let point = points.iter().find(|point| Some(point.id) == failed.record.point).unwrap();
    assert_eq!(point.description, "step 3");
    let successes = [2, 3].map(|step| {
        let id = format!("ckpt-exec-1-{step}").parse().unwrap();
        sandbox.workspace.states.find(&id).unwrap().unwrap().point
    });
    assert!(!successes.contains(&failed.record.point), "its files are its own");
}

#[test]
fn a_step_that_always_fails_ends_the_run_with_its_failure() {
    let mut sandbox = Sandbox::new();
    let places = Places::of(&sandbox);
    let error = agent(five_steps(&places, usize::MAX, nothing))
        .run(&mut sandbox.workspace, &initial())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "ckpt-exec-1-3.a4 (step 3) failed after 3 retries, the limit: no luck"
    );
    let RunError::RetriesExhausted { checkpoint, .. } = error else { panic!("{error:?}") };
    assert_eq!(places.count("begin 3"), 4, "once, and three retries");
    let head = head(&sandbox.workspace);
    assert_eq!((head.key, head.status), (checkpoint, Status::Failed));
    assert_eq!(sandbox.read("all.txt"), "step 1\nstep 2\n", "the files of the last success");
    assert!(!sandbox.exists("half-3.txt"));

    // Another process gets no more retries, unless its author allows them.
    sandbox.reopen();
    let error = agent(five_steps(&places, usize::MAX, nothing))
        .run(&mut sandbox.workspace, &initial())
        .unwrap_err();
    assert!(matches!(error, RunError::RetriesExhausted { retries: 3, .. }), "{error:?}");
    assert_eq!(places.count("begin 3"), 4);
    let mut patient = agent(five_steps(&places, 4, nothing));
    patient.most_retries = 4;
    let found = patient.run(&mut sandbox.workspace, &initial()).unwrap();
    drop(patient);
    let (values, _) = undisturbed();
    assert_eq!(found, values);
    assert_eq!(places.count("begin 3"), 5);
    assert_eq!(places.count("begin 1"), 1);
}

#[test]
fn the_first_step_can_fail_too() {
    let mut sandbox = Sandbox::new();
    let root = sandbox.root();
    let mut tries = 0;
    let step = Step::new("only", |values, _| {
        tries += 1;
        std::fs::write(root.join(format!("try-{tries}")), "")?;
        values.state = json!(tries);
        if tries < 3 { Err(StepError::failed("not yet")) } else { Ok(()) }
    });
    let values = StepAgent::new(execution(), vec![step]).run(&mut sandbox.workspace, &initial());
    assert_eq!(values.unwrap().state, json!(3));
    assert_eq!(sandbox.tree().into_keys().collect::<Vec<_>>(), [std::path::Path::new("try-3")]);
}

#[test]
fn a_run_ends_its_session() {
    for failures in [0, usize::MAX] {
        let mut sandbox = Sandbox::new();
        let places = Places::of(&sandbox);
        let ended =
            agent(five_steps(&places, failures, nothing)).run(&mut sandbox.workspace, &initial());
        assert_eq!(ended.is_ok(), failures == 0);
        let sessions = sandbox.workspace.store.sessions().unwrap();
        let [session] = sessions.as_slice() else { panic!("{sessions:?}") };
        assert_eq!((session.id.0.as_str(), session.open_turn), ("exec-1", None));
        assert!(session.ended_at.is_some());
    }
}

#[test]
fn attempts_with_the_same_result_are_all_saved() {
    let mut sandbox = Sandbox::new();
    let step = Step::new("only", |_, _| Err(StepError::failed("no luck")));
    let error = StepAgent::new(execution(), vec![step]).run(&mut sandbox.workspace, &initial());
    assert!(matches!(error, Err(RunError::RetriesExhausted { retries: 3, .. })), "{error:?}");
    let failures: Vec<_> = (1..=4).map(|attempt| failure(1, attempt)).collect();
    assert_eq!(attempts(&sandbox.workspace)[1..], failures);
}

#[test]
fn a_finished_execution_returns_its_values_and_does_nothing() {
    let mut sandbox = Sandbox::new();
    let places = Places::of(&sandbox);
    let first =
        agent(five_steps(&places, 0, nothing)).run(&mut sandbox.workspace, &initial()).unwrap();
    sandbox.write("all.txt", "mine\n");
    sandbox.reopen();
    let before = sandbox.workspace.store.head().unwrap();
    let again =
        agent(five_steps(&places, 0, nothing)).run(&mut sandbox.workspace, &initial()).unwrap();
    assert_eq!(again, first);
    assert_eq!(sandbox.workspace.store.head().unwrap(), before);
    assert_eq!(sandbox.read("all.txt"), "mine\n");
    assert_eq!(places.noted().len(), 10);
}

#[test]
fn an_execution_resumes_only_with_the_steps_it_began_with() {
    let mut sandbox = Sandbox::new();
    let places = Places::of(&sandbox);
    agent(five_steps(&places, usize::MAX, nothing))
        .run(&mut sandbox.workspace, &initial())
        .unwrap_err();
    let mut others = five_steps(&places, 0, nothing);
    others.swap(1, 2);
    let error = agent(others).run(&mut sandbox.workspace, &initial()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "step 2 of execution exec-1 was \"step 2\", and is not among these steps"
    );
    let fewer = five_steps(&places, 0, nothing).into_iter().take(1).collect();
    let error = agent(fewer).run(&mut sandbox.workspace, &initial()).unwrap_err();
    assert!(matches!(error, RunError::StepsChanged { .. }), "{error:?}");
}
