//! Two runs of one execution.

use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use serde_json::json;
use takeback_agents::{RunError, Step};
use takeback_store::Timestamp;
use takeback_store::state::{Status, Values};
use takeback_testkit::Sandbox;

use crate::{Places, agent, attempts, five_steps, head, initial, nothing, undisturbed};

/// The second run starts while the first is in the middle of a step, and ends before it.
#[test]
fn the_slower_of_two_runs_fails_with_overtaken() {
    for cut_in in 1..=5 {
        let mut sandbox = Sandbox::new();
        let places = Places::of(&sandbox);
        let other = RefCell::new(sandbox.another_process());
        let second = RefCell::new(None);
        let overtake = |place: &str, step: u32| {
            if (place, step) == ("begin", cut_in) {
                let run =
                    agent(five_steps(&places, 0, nothing)).run(&mut other.borrow_mut(), &initial());
                *second.borrow_mut() = Some(run);
            }
        };
        let first = agent(five_steps(&places, 0, overtake)).run(&mut sandbox.workspace, &initial());
        let error = first.unwrap_err();
        assert_eq!(error.to_string(), "another run of execution exec-1 saved first");
        let RunError::Overtaken { source, .. } = error else { panic!("{error:?}") };
        let parent = cut_in - 1;
        assert_eq!(
            source.unwrap().to_string(),
            format!(
                "ckpt-exec-1-{cut_in} must follow ckpt-exec-1-{parent}.a1, but branch main \
                 is at ckpt-exec-1-5.a1"
            )
        );
        let (values, _) = undisturbed();
        assert_eq!(second.take().unwrap().unwrap(), values);
        let attempts = attempts(&sandbox.workspace);
        assert_eq!(attempts.len(), 6, "nothing of the loser is saved: {attempts:?}");
        let head = head(&sandbox.workspace);
        assert_eq!((head.key.step.0, head.status), (5, Status::Success));
    }
}

/// If both save the same state, the store has it already: the second must not continue as if it were alone.
#[test]
fn a_run_that_saves_the_same_state_is_overtaken_too() {
    let mut sandbox = Sandbox::new();
    let mut other = sandbox.another_process();
    let counting = || {
        ["one", "two"].map(|name| {
            Step::new(name, move |values, _| {
                values.state = json!(name);
                Ok(())
            })
        })
    };
    let mut steps = Vec::from(counting());
    steps[0].run = Box::new(|values, _| {
        agent(Vec::from(counting())).run(&mut other, &initial()).unwrap();
        values.state = json!("one");
        Ok(())
    });
    let error = agent(steps).run(&mut sandbox.workspace, &initial()).unwrap_err();
    assert!(matches!(error, RunError::Overtaken { source: None, .. }), "{error:?}");
    assert_eq!(attempts(&sandbox.workspace).len(), 3);
}

/// The other run, with another initial state, starts at any moment of this one.
#[test]
fn two_runs_that_start_together_share_one_start() {
    let step = || Step::new("only", |_, _| Ok(()));
    let mut lost = 0;
    for moment in 0..8 {
        let mut sandbox = Sandbox::new();
        let other = Mutex::new(Some(sandbox.another_process()));
        let passed = AtomicI64::new(0);
        sandbox.workspace.ambient.now = Box::new(move || {
            let time = passed.fetch_add(1, Ordering::Relaxed);
            if time == moment
                && let Some(mut other) = other.lock().unwrap().take()
            {
                let initial = Values { state: json!("the other's"), ..initial() };
                // It may be too late itself, or this run may have locked the workspace.
                other.limits.rewind_patience = Duration::ZERO;
                drop(agent(vec![step()]).run(&mut other, &initial));
            }
            Timestamp(1_800_000_000_000 + time)
        });
        let ended = agent(vec![step()]).run(&mut sandbox.workspace, &initial());
        lost += u32::from(ended.is_err());
        let steps: Vec<_> = attempts(&sandbox.workspace).iter().map(|row| (row.0, row.1)).collect();
        assert_eq!(steps, [(0, 1), (1, 1)], "at {moment}: {ended:?}");
    }
    assert!(lost > 0, "no other run started in between");
}

#[test]
fn an_overtaken_run_does_not_end_the_other() {
    let mut sandbox = Sandbox::new();
    let other = RefCell::new(Some(sandbox.another_process()));
    let (reached, wait_for_it) = channel();
    let (go, wait_to_go) = channel();
    let wait_to_go = RefCell::new(Some(wait_to_go));
    let won = thread::scope(|scope| {
        let winner = RefCell::new(None);
        let overtaken = Step::new("one", |_, _| {
            let (mut other, reached) = (other.take().unwrap(), reached.clone());
            let wait_to_go = wait_to_go.take().unwrap();
            *winner.borrow_mut() = Some(scope.spawn(move || {
                let two = Step::new("two", move |_, _| {
                    reached.send(())?;
                    Ok(wait_to_go.recv()?)
                });
                let steps = vec![Step::new("one", |_, _| Ok(())), two];
                agent(steps).run(&mut other, &initial()).map(drop)
            }));
            Ok(wait_for_it.recv()?)
        });
        let steps = vec![overtaken, Step::new("two", |_, _| Ok(()))];
        let lost = agent(steps).run(&mut sandbox.workspace, &initial());
        let session = sandbox.workspace.store.sessions().unwrap().remove(0);
        // Before any assertion: if one failed, the other thread would wait forever.
        go.send(()).unwrap();
        let won = winner.take().unwrap().join().unwrap();
        assert!(matches!(lost, Err(RunError::Overtaken { .. })), "{lost:?}");
        assert!(session.ended_at.is_none() && session.open_turn.is_some(), "{session:?}");
        won
    });
    won.unwrap();
}
