//! A run is stopped at every crash point, and started again.

use takeback_core::execution::{RollbackFiles, rollback_to};
use takeback_store::disk::stopped;
use takeback_testkit::Sandbox;

use crate::{Places, agent, execution, five_steps, initial, nothing, undisturbed};

#[test]
fn a_run_resumes_after_every_crash_point_without_repeating_steps() {
    let (values, tree) = undisturbed();
    let sandbox = Sandbox::new();
    sandbox.write("mine.txt", "mine\n");
    let frozen = sandbox.freeze();
    let mut stops = 0;
    for n in 1.. {
        let mut sandbox = frozen.thaw();
        let places = Places::of(&sandbox);
        let reached = stopped(n, || {
            agent(five_steps(&places, 1, nothing))
                .run(&mut sandbox.workspace, &initial())
                .expect("it runs");
        });
        sandbox.reopen();
        let last = sandbox.workspace.states.last_successful(&execution(), None, None).unwrap();
        let finished = last.map_or(0, |record| record.key.step.0);
        let noted = places.noted().len();
        let found = agent(five_steps(&places, 1, nothing))
            .run(&mut sandbox.workspace, &initial())
            .unwrap_or_else(|error| panic!("stopped at {n}, {reached:?}: {error:?}"));
        assert_eq!(found, values);
        assert_eq!(sandbox.tree(), tree, "stopped at {n}, {reached:?}");
        let since = &places.noted()[noted..];
        for step in 1..=finished {
            assert!(!since.contains(&format!("begin {step}")), "stopped at {n}: {since:?}");
        }
        assert_eq!(places.count("fail 3"), 1, "stopped at {n}");
        assert_eq!(sandbox.workspace.states.check().unwrap(), Vec::<String>::new());
        match reached {
            Some(_) => stops += 1,
            None => break,
        }
    }
    assert!(stops > 50, "only {stops} crash points passed");
}

/// A promised rollback is completed before the run asks where to continue.
#[test]
fn an_interrupted_rollback_is_completed_before_a_run() {
    let (values, tree) = undisturbed();
    let mut sandbox = Sandbox::new();
    sandbox.write("mine.txt", "mine\n");
    let places = Places::of(&sandbox);
    agent(five_steps(&places, 0, nothing)).run(&mut sandbox.workspace, &initial()).unwrap();
    let second = sandbox.workspace.states.find(&"ckpt-exec-1-2".parse().unwrap()).unwrap().unwrap();
    let frozen = sandbox.freeze();
    let mut gone_back = Vec::new();
    for n in 1.. {
        let mut sandbox = frozen.thaw();
        let places = Places::of(&sandbox);
        let reached = stopped(n, || {
            rollback_to(&mut sandbox.workspace, &second.key, RollbackFiles::All).expect("it runs");
        });
        sandbox.reopen();
        let found = agent(five_steps(&places, 0, nothing))
            .run(&mut sandbox.workspace, &initial())
            .unwrap_or_else(|error| panic!("stopped at {n}, {reached:?}: {error:?}"));
        assert_eq!(found, values);
        assert_eq!(sandbox.tree(), tree, "stopped at {n}, {reached:?}");
        gone_back.push(places.count("begin 3") == 2);
        if reached.is_none() {
            break;
        }
    }
    assert!(gone_back.starts_with(&[false]) && gone_back.ends_with(&[true]), "{gone_back:?}");
    assert!(gone_back.is_sorted(), "from the promise on, always: {gone_back:?}");
}
