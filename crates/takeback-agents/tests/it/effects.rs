//! A step's side effect happens once; if it may or may not have happened, the agent's author decides.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use serde_json::{Value, json};
use takeback_agents::{EffectDecision, RunError, RunEvent, Step, StepAgent, StepError};
use takeback_core::Workspace;
use takeback_store::Timestamp;
use takeback_store::state::{Effect, NewEffect, Status};
use takeback_testkit::Sandbox;

use crate::{attempts, execution, head, initial};

/// The side effects that a test counts.
#[derive(Default)]
struct World {
    sent: Cell<u32>,
    asked: RefCell<Vec<Effect>>,
}

impl World {
    fn send(&self) -> Value {
        self.sent.set(self.sent.get() + 1);
        json!({ "message": self.sent.get() })
    }

    fn mail(&self, outcome: SendOutcome) -> Step<'_> {
        Step::new("mail", move |values, effects| {
            let receipt = effects.once("mail", &json!({ "to": "you" }), || {
                let receipt = self.send();
                match outcome {
                    SendOutcome::TimesOut if self.sent.get() == 1 => Err("no answer in time"),
                    SendOutcome::Unreachable if self.sent.get() == 1 => Err("no route"),
                    _ => Ok(receipt),
                }
            });
            if outcome == SendOutcome::Unreachable && receipt.is_err() {
                assert!(effects.withdraw("mail")?);
            }
            values.state["receipt"] = receipt?;
            Ok(())
        })
    }

    fn agent<'a>(&'a self, steps: Vec<Step<'a>>, policy: EffectDecision) -> StepAgent<'a> {
        let on_ambiguous = Box::new(move |effect: &Effect| {
            self.asked.borrow_mut().push(effect.clone());
            policy
        });
        StepAgent { on_ambiguous, ..StepAgent::new(execution(), steps) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SendOutcome {
    Arrives,
    /// The first time it is sent, but the answer times out.
    TimesOut,
    /// The first time it is certainly not sent.
    Unreachable,
}

fn effect(workspace: &Workspace) -> Effect {
    let mut effects = workspace.states.effects(&execution()).unwrap();
    assert_eq!(effects.len(), 1);
    effects.remove(0)
}

#[test]
fn an_effect_with_a_receipt_is_not_repeated_by_a_retry() {
    let mut sandbox = Sandbox::new();
    let world = World::default();
    let mut mail = world.mail(SendOutcome::Arrives);
    let mut tries = 0;
    let step = Step::new("mail", move |values, effects| {
        (mail.run)(values, effects)?;
        tries += 1;
        if tries < 3 { Err(StepError::failed("something else")) } else { Ok(()) }
    });
    let values = world
        .agent(vec![step], EffectDecision::Stop)
        .run(&mut sandbox.workspace, &initial())
        .unwrap();
    assert_eq!(world.sent.get(), 1);
    assert_eq!(values.state["receipt"], json!({ "message": 1 }), "the receipt is handed back");
    assert_eq!(attempts(&sandbox.workspace).len(), 4);
    let effect = effect(&sandbox.workspace);
    assert_eq!(effect.intent, json!({ "to": "you" }));
    assert_eq!(effect.step.map(|step| step.0), Some(1));
    assert!(world.asked.borrow().is_empty());
}

#[test]
fn repeat_does_the_effect_again() {
    let mut sandbox = Sandbox::new();
    let world = World::default();
    let steps = vec![world.mail(SendOutcome::TimesOut)];
    let values =
        world.agent(steps, EffectDecision::Repeat).run(&mut sandbox.workspace, &initial()).unwrap();
    assert_eq!(world.sent.get(), 2);
    assert_eq!(values.state["receipt"], json!({ "message": 2 }));
    let asked = world.asked.borrow();
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].key.as_str(), &asked[0].receipt), ("mail", &None));
    assert_eq!(effect(&sandbox.workspace).receipt.unwrap().0, json!({ "message": 2 }));
}

#[test]
fn skip_counts_the_effect_as_done() {
    let mut sandbox = Sandbox::new();
    let world = World::default();
    let mut mail = world.mail(SendOutcome::TimesOut);
    let mut tries = 0;
    let step = Step::new("mail", move |values, effects| {
        (mail.run)(values, effects)?;
        tries += 1;
        if tries < 2 { Err(StepError::failed("something else")) } else { Ok(()) }
    });
    let values = world
        .agent(vec![step], EffectDecision::Skip)
        .run(&mut sandbox.workspace, &initial())
        .unwrap();
    assert_eq!(world.sent.get(), 1);
    assert_eq!(values.state["receipt"], Value::Null);
    assert_eq!(world.asked.borrow().len(), 1, "it is asked once");
    assert_eq!(effect(&sandbox.workspace).receipt.unwrap().0, Value::Null);
}

#[test]
fn stop_ends_the_run_and_the_next_run_is_asked() {
    let mut sandbox = Sandbox::new();
    let world = World::default();
    let root = sandbox.root();
    let steps = |outcome| {
        let root = &root;
        let mut mail = world.mail(outcome);
        let mail = Step::new("mail", move |values, effects| {
            std::fs::write(root.join("draft.txt"), "dear you\n")?;
            (mail.run)(values, effects)
        });
        vec![Step::new("before", |_, _| Ok(())), mail]
    };
    let error = world
        .agent(steps(SendOutcome::TimesOut), EffectDecision::Stop)
        .run(&mut sandbox.workspace, &initial())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot tell whether the effect \"mail\" happened: check, then decide in on_ambiguous"
    );
    let RunError::AmbiguousEffect { effect } = error else { panic!("{error:?}") };
    assert_eq!(effect.intent, json!({ "to": "you" }));
    assert_eq!(world.sent.get(), 1);
    assert!(!sandbox.exists("draft.txt"), "the files are those of the last success");
    let head = head(&sandbox.workspace);
    assert_eq!((head.error.as_deref(), head.status), (Some("no answer in time"), Status::Failed));

    sandbox.reopen();
    let heard = RefCell::new(Vec::new());
    let mut agent = world.agent(steps(SendOutcome::Arrives), EffectDecision::Repeat);
    agent.on_event = Box::new(|event| {
        if let RunEvent::Resumed(resumed) = event {
            heard.borrow_mut().extend(resumed.ambiguous.clone());
        }
    });
    agent.run(&mut sandbox.workspace, &initial()).unwrap();
    drop(agent);
    assert_eq!(heard.take(), [*effect]);
    assert_eq!(world.sent.get(), 2);
}

#[test]
fn a_withdrawn_effect_is_not_ambiguous() {
    let mut sandbox = Sandbox::new();
    let world = World::default();
    let steps = vec![world.mail(SendOutcome::Unreachable)];
    let values =
        world.agent(steps, EffectDecision::Stop).run(&mut sandbox.workspace, &initial()).unwrap();
    assert_eq!(values.state["receipt"], json!({ "message": 2 }));
    assert!(world.asked.borrow().is_empty());
}

/// The other run records the effect after this one has checked, and before it records it.
#[test]
fn an_effect_recorded_by_another_run_is_ambiguous() {
    let mut sandbox = Sandbox::new();
    let world = World::default();
    let states = Arc::clone(&sandbox.workspace.states);
    let about_to_note = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&about_to_note);
    let clock = AtomicI64::new(1_700_000_000_000);
    sandbox.workspace.ambient.now = Box::new(move || {
        let now = || Timestamp(clock.fetch_add(1, Ordering::Relaxed));
        if flag.swap(false, Ordering::Relaxed) {
            let (execution, intent) = (execution(), json!("the other's"));
            let (step, time) = (None, now());
            let new = NewEffect { execution: &execution, key: "mail", step, intent: &intent, time };
            states.declare_effect(&new).unwrap();
        }
        now()
    });
    let mut mail = world.mail(SendOutcome::Arrives);
    let step = Step::new("mail", move |values, effects| {
        about_to_note.store(true, Ordering::Relaxed);
        (mail.run)(values, effects)
    });
    let error = world
        .agent(vec![step], EffectDecision::Stop)
        .run(&mut sandbox.workspace, &initial())
        .unwrap_err();
    let RunError::AmbiguousEffect { effect } = error else { panic!("{error:?}") };
    assert_eq!(effect.intent, json!("the other's"));
    assert_eq!(world.sent.get(), 0);
}
