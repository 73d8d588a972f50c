//! Whole executions: deletion, retries, effects.

use serde_json::json;

use super::samples::{
    all, execution, head, id, key, listed, new, places, save, state, steps, text_of,
};
use super::{Pair, good};
use crate::id::{PointId, Timestamp};
use crate::state::{
    BranchName, Category, DocumentKey, Effect, Execution, ExpectedHead, IntentOutcome,
    NewCheckpoint, NewEffect, StateError, States, Status, StepIndex,
};

pub(super) fn one_checkpoint_is_deleted([store, other]: Pair<'_>) {
    let execution = execution("e");
    steps(store, &execution, 4);
    save(store, &execution, 2, "second, again");
    save(store, &execution, 5, "5");
    // In the middle: what follows stays, and stays in its order.
    assert!(good(store.delete(&key(&execution, 3, 1))));
    assert!(!good(other.delete(&key(&execution, 3, 1))));
    assert!(!good(other.delete(&key(&execution, 2, 9))));
    for store in [store, other] {
        assert_eq!(text_of(store, "ckpt-e-3"), None);
        assert_eq!(places(&listed(store, &execution)), [(1, 1), (2, 2), (4, 1), (5, 1)]);
        assert_eq!(head(store, &execution), Some((5, 1)));
    }
    let gone = id("ckpt-e-3");
    let refused = store
        .save(&NewCheckpoint { expect: ExpectedHead::Newest(Some(&gone)), ..new(&execution, 6) });
    assert!(matches!(refused, Err(StateError::MissingParent { .. })), "{refused:?}");
    // The newest attempt: the one before it is the newest.
    assert!(good(other.delete(&key(&execution, 2, 2))));
    for store in [store, other] {
        assert_eq!(text_of(store, "ckpt-e-2").as_deref(), Some("2"));
        assert_eq!(places(&all(store, &execution)), [(1, 1), (2, 1), (4, 1), (5, 1)]);
    }
    // The head: the next save follows what is left.
    assert!(good(other.delete(&key(&execution, 5, 1))));
    let parent = save(store, &execution, 6, "6").parent.expect("it follows something");
    assert_eq!(parent.0, StepIndex(4));
    assert_eq!(head(other, &execution), Some((6, 1)));
    assert_eq!(places(&listed(other, &execution)), [(1, 1), (2, 1), (4, 1), (6, 1)]);
}

pub(super) fn an_execution_is_deleted_with_everything([store, other]: Pair<'_>) {
    let (here, there) = (execution("e"), execution("f"));
    for execution in [&here, &there] {
        steps(store, execution, 3);
        save(store, execution, 2, "second, again");
        assert_eq!(good(store.count_retry(execution, StepIndex(9), 3)), 1);
        good(store.declare_effect(&effect(execution, "mail")));
    }
    let to = crate::state::MoveTo::Checkpoint(&key(&here, 1, 1));
    good(store.move_head(&crate::state::HeadMove { execution: &here, branch: None, to, by: None }));
    assert!(good(other.delete_execution(&here)));
    assert!(!good(store.delete_execution(&here)));
    for store in [store, other] {
        assert_eq!(all(store, &here), []);
        assert_eq!(good(store.head(&here, None)), None);
        assert_eq!(good(store.effects(&here)), []);
        assert_eq!(good(store.find(&id("ckpt-e-1"))), None);
        assert_eq!(good(store.find(&id("ckpt-e-3.a1"))), None);
        let left: Vec<_> =
            good(store.executions()).executions.into_iter().map(|execution| execution.id).collect();
        assert_eq!(left, std::slice::from_ref(&there));
        assert_eq!(all(store, &there).len(), 4);
        assert_eq!(good(store.effects(&there)).len(), 1);
    }
    // A new execution with that name starts from the beginning.
    assert_eq!(save(store, &here, 2, "anew").key, key(&here, 2, 1));
    assert_eq!(good(other.count_retry(&here, StepIndex(9), 3)), 1);
    assert_eq!(good(other.count_retry(&there, StepIndex(9), 3)), 2);
}

pub(super) fn the_executions_of_a_session_are_deleted([store, other]: Pair<'_>) {
    let [mine, passed_on, theirs, unowned] = ["a", "b", "c", "d"].map(execution);
    let (me, them) = ("me".into(), "them".into());
    for (execution, step, session) in [
        (&mine, 1, Some(&me)),
        (&passed_on, 1, Some(&me)),
        (&theirs, 1, Some(&them)),
        (&unowned, 1, None),
        (&passed_on, 2, Some(&them)),
    ] {
        good(store.save(&NewCheckpoint { session, ..new(execution, step) }));
    }
    let sessions: Vec<_> = good(other.executions())
        .executions
        .into_iter()
        .map(|execution| (execution.id, execution.session))
        .collect();
    for (execution, session) in [(&mine, Some(&me)), (&passed_on, Some(&them)), (&unowned, None)] {
        assert!(sessions.contains(&(execution.clone(), session.cloned())), "{sessions:?}");
    }
    assert_eq!(good(other.delete_of_session(&me)), 1);
    assert_eq!(good(store.delete_of_session(&me)), 0);
    let left = |store: &dyn States| -> Vec<usize> {
        [&mine, &passed_on, &theirs, &unowned].map(|execution| all(store, execution).len()).into()
    };
    assert_eq!(left(store), [0, 2, 1, 1]);
    assert_eq!(good(store.delete_of_session(&them)), 2);
    assert_eq!(left(other), [0, 0, 0, 1]);
}

pub(super) fn executions_are_listed_the_last_saved_first([store, other]: Pair<'_>) {
    let names = ["b", "a", "c"];
    let mut time = 1_700_000_000_000;
    let mut save_at = |store: &dyn States, name: &str, step, text: &str| {
        time += 1000;
        let values = state(json!({ "is": text }));
        let execution = execution(name);
        let time = Timestamp(time);
        let made = NewCheckpoint { values: &values, time, ..new(&execution, step) };
        assert!(good(store.save(&made)).is_new);
    };
    for name in names {
        save_at(store, name, 1, "one");
    }
    save_at(other, "a", 2, "two");
    save_at(other, "a", 1, "one again");
    let listed = |store: &dyn States| good(store.executions()).executions;
    for store in [store, other] {
        let executions = listed(store);
        let ids: Vec<_> = executions.iter().map(|execution| execution.id.as_str()).collect();
        assert_eq!(ids, ["a", "c", "b"]);
        let a = Execution {
            id: execution("a"),
            branches: vec![BranchName::main()],
            session: None,
            checkpoints: 3,
            head: good(store.find(&id("ckpt-a-1"))),
        };
        assert_eq!(executions[0], a);
        assert_eq!(executions[1].checkpoints, 1);
    }
    save_at(store, "b", 5, "five");
    assert_eq!(listed(other)[0].id, execution("b"));
    assert_eq!(listed(other)[0].head, good(other.find(&id("ckpt-b-5"))));
}

pub(super) fn retries_are_counted([store, other]: Pair<'_>) {
    let (here, there) = (execution("e"), execution("f"));
    steps(store, &here, 2);
    steps(store, &there, 2);
    let step = StepIndex(3);
    for (store, count) in [(store, 1), (other, 2), (store, 3)] {
        assert_eq!(good(store.count_retry(&here, step, 3)), count);
        // A failure of the step does not change the count.
        let error = format!("failed the {count}. time");
        let status = Status::Failed;
        good(store.save(&NewCheckpoint { status, error: Some(&error), ..new(&here, 3) }));
    }
    for store in [store, other] {
        let refused = store.count_retry(&here, step, 3);
        let Err(StateError::RetriesExhausted { execution, step: of, count }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((&execution, of, count), (&here, step, 3));
    }
    // Counts are per step and execution, and a caller may allow more.
    assert_eq!(good(other.count_retry(&here, StepIndex(2), 3)), 1);
    assert_eq!(good(other.count_retry(&there, step, 3)), 1);
    assert_eq!(good(other.count_retry(&here, step, 5)), 4);
    assert!(matches!(
        store.count_retry(&there, StepIndex(7), 0),
        Err(StateError::RetriesExhausted { count: 0, .. })
    ));
}

pub(super) fn a_success_ends_the_count([store, other]: Pair<'_>) {
    let execution = execution("e");
    steps(store, &execution, 1);
    for count in 1..=3 {
        assert_eq!(good(store.count_retry(&execution, StepIndex(2), 3)), count);
    }
    assert_eq!(good(store.count_retry(&execution, StepIndex(3), 3)), 1);
    save(other, &execution, 2, "done");
    assert_eq!(good(store.count_retry(&execution, StepIndex(2), 3)), 1);
    assert_eq!(good(store.count_retry(&execution, StepIndex(3), 3)), 2);
}

fn effect<'a>(execution: &'a crate::state::ExecutionId, key: &'a str) -> NewEffect<'a> {
    static INTENT: std::sync::LazyLock<serde_json::Value> =
        std::sync::LazyLock::new(|| json!({ "to": "a@example.org", "cost": 0.1 }));
    let step = Some(StepIndex(3));
    NewEffect { execution, key, step, intent: &INTENT, time: Timestamp(1_700_000_000_123) }
}

pub(super) fn effects_are_declared_and_confirmed([store, other]: Pair<'_>) {
    // Before anything was saved: the first step may have effects.
    let execution = execution("e");
    let first = effect(&execution, "mail");
    let expected = Effect {
        key: "mail".to_owned(),
        step: first.step,
        intent: first.intent.clone(),
        intended_at: first.time,
        receipt: None,
    };
    let is = |effect: &Effect, is_new| IntentOutcome { effect: effect.clone(), is_new };
    assert_eq!(good(store.declare_effect(&first)), is(&expected, true));
    let (intent, time) = (json!("something else"), Timestamp(5));
    let again = NewEffect { intent: &intent, time, step: None, ..first.clone() };
    assert_eq!(good(other.declare_effect(&again)), is(&expected, false));
    let second = NewEffect { key: "\0 ../pay", ..again };
    let paid = good(other.declare_effect(&second)).effect;
    assert_eq!((paid.step, &paid.intent, paid.intended_at), (None, &intent, time));
    good(other.declare_effect(&NewEffect { key: "a third", ..first.clone() }));

    let receipt = json!({ "id": 7, "ok": true, "took": 0.3 });
    good(store.confirm_effect(&execution, "\0 ../pay", &receipt, Timestamp(9)));
    let paid = Effect { receipt: Some((receipt, Timestamp(9))), ..paid };
    good(other.confirm_effect(&execution, "\0 ../pay", &json!("another"), Timestamp(10)));
    assert_eq!(good(other.declare_effect(&second)), is(&paid, false));
    for store in [store, other] {
        let effects = good(store.effects(&execution));
        assert_eq!(
            effects.iter().map(|effect| &*effect.key).collect::<Vec<_>>(),
            ["mail", "\0 ../pay", "a third"]
        );
        assert_eq!(effects[..2], [expected.clone(), paid.clone()]);
    }
    // An effect with a receipt has happened and cannot be withdrawn.
    assert!(!good(store.withdraw_effect(&execution, "\0 ../pay")));
    assert!(good(other.withdraw_effect(&execution, "mail")));
    assert!(!good(store.withdraw_effect(&execution, "mail")));
    for key in ["mail", "never"] {
        let refused = other.confirm_effect(&execution, key, &json!(1), Timestamp(1));
        let Err(StateError::NoIntent { execution: of, key: named }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((&of, &*named), (&execution, key));
    }
    // Declared again: with the new intent, after the others.
    let again = good(store.declare_effect(&NewEffect { key: "mail", ..second.clone() }));
    assert!(again.is_new);
    let again = again.effect;
    assert_eq!((&again.intent, again.receipt.as_ref()), (&intent, None));
    let effects = good(other.effects(&execution));
    assert_eq!(
        effects.iter().map(|effect| &*effect.key).collect::<Vec<_>>(),
        ["\0 ../pay", "a third", "mail"]
    );
    // Saving and deleting checkpoints does not affect effects.
    steps(store, &execution, 2);
    good(store.delete(&key(&execution, 2, 1)));
    assert_eq!(good(other.effects(&execution)), effects);
}

pub(super) fn one_of_many_concurrent_declarations_is_new([store, other]: Pair<'_>) {
    let execution = execution("e");
    for round in 0..20 {
        let key = format!("mail {round}");
        let first = std::thread::scope(|scope| {
            let tries: Vec<_> = [store, other, store, other]
                .into_iter()
                .map(|place| {
                    let (execution, key) = (&execution, &key);
                    scope.spawn(move || good(place.declare_effect(&effect(execution, key))).is_new)
                })
                .collect();
            tries.into_iter().filter_map(|one| one.join().ok()).filter(|is_new| *is_new).count()
        });
        assert_eq!(first, 1, "{key}");
    }
}

pub(super) fn effects_belong_to_their_execution([store, other]: Pair<'_>) {
    let (here, there) = (execution("e"), execution("e2"));
    good(store.declare_effect(&effect(&here, "mail")));
    assert_eq!(good(other.effects(&there)), []);
    assert!(!good(other.withdraw_effect(&there, "mail")));
    let refused = other.confirm_effect(&there, "mail", &json!(1), Timestamp(1));
    assert!(matches!(refused, Err(StateError::NoIntent { .. })), "{refused:?}");
    good(other.declare_effect(&effect(&there, "mail")));
    good(other.confirm_effect(&there, "mail", &json!(1), Timestamp(1)));
    assert_eq!(good(store.effects(&here))[0].receipt, None);
}

pub(super) fn live_data_survives_a_collection([store, other]: Pair<'_>) {
    let (here, gone) = (execution("e"), execution("gone"));
    let messages = |count: usize| state(json!({ "messages": vec!["m".repeat(3000); count] }));
    for step in 1..=20 {
        for execution in [&here, &gone] {
            let values = messages(step as usize);
            let point = Some(PointId(u64::from(step)));
            good(store.save(&NewCheckpoint { values: &values, point, ..new(execution, step) }));
        }
    }
    let large = DocumentKey::new("large").expect("a plain key");
    good(store.put_document(Category::Session, &large, &messages(9).state));
    assert!(good(store.delete_execution(&gone)));
    for step in 1..=10 {
        assert!(good(other.delete(&key(&here, 2 * step, 1))));
    }
    good(store.collect());
    good(other.collect());
    for store in [store, other] {
        let odd: Vec<_> = (1..=10).map(|n| (2 * n - 1, 1)).collect();
        assert_eq!(places(&listed(store, &here)), odd);
        for (step, _) in odd {
            let loaded = good(store.load(&key(&here, step, 1).id())).expect("it stays");
            assert_eq!(loaded.values, messages(step as usize));
        }
        assert_eq!(good(store.document(Category::Session, &large)), Some(messages(9).state));
        assert_eq!(all(store, &gone), []);
    }
    let values = messages(30);
    assert!(good(other.save(&NewCheckpoint { values: &values, ..new(&here, 30) })).is_new);
    assert_eq!(good(store.load(&id("ckpt-e-30"))).expect("it was saved").values, values);
}
