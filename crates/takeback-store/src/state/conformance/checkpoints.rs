//! Saving, loading and listing; attempts and parents.

use serde_json::{Value, json};

use super::samples::{
    all, attempt, branch, execution, head, id, key, listed, new, page, places, save, state, steps,
    text_of,
};
use super::{Pair, good};
use crate::id::{PointId, Timestamp};
use crate::state::{
    BranchName, Category, Checkpoint, CheckpointId, ExecutionId, Executions, ExpectedHead,
    ListQuery, ListScope, NewCheckpoint, NewEffect, Page, Record, StateError, States, Status,
    StepIndex, Values,
};

pub(super) fn new_states_are_empty([store, _]: Pair<'_>) {
    assert_eq!(good(store.executions()), Executions::default());
    assert_eq!(good(store.points()), [].into());
    for category in Category::ALL {
        assert_eq!(good(store.documents(category)), []);
    }
    good(store.collect());
}

// The seed's own three tests.

pub(super) fn a_checkpoint_is_made_and_loaded([store, other]: Pair<'_>) {
    let execution = execution("exec-123");
    let values = Values {
        state: json!({ "agent_state": "thinking" }),
        context: json!({ "messages": [] }),
        variables: json!({ "var1": "value1" }),
        ..Values::default()
    };
    let made = NewCheckpoint { step_name: "test_step", values: &values, ..new(&execution, 1) };
    let saved = good(store.save(&made));
    assert!(saved.is_new);
    assert_eq!(saved.record.id().to_string(), "ckpt-exec-123-1");
    for store in [store, other] {
        let loaded = good(store.load(&saved.record.id())).expect("it was saved");
        assert_eq!(loaded.record.key, key(&execution, 1, 1));
        assert_eq!(loaded.record.step_name, "test_step");
        assert_eq!(loaded.values, values);
    }
}

pub(super) fn checkpoints_are_listed([store, other]: Pair<'_>) {
    let execution = execution("exec-1");
    for (step, step_name) in [(1, "step1"), (2, "step2")] {
        good(store.save(&NewCheckpoint { step_name, ..new(&execution, step) }));
    }
    for store in [store, other] {
        let listed = listed(store, &execution);
        assert_eq!(places(&listed), [(1, 1), (2, 1)]);
        assert_eq!(listed[1].step_name, "step2");
    }
}

pub(super) fn the_last_success_is_found([store, other]: Pair<'_>) {
    let execution = execution("exec-1");
    for (step, status) in [(1, Status::Success), (2, Status::Success), (3, Status::Failed)] {
        good(store.save(&NewCheckpoint { status, ..new(&execution, step) }));
    }
    for store in [store, other] {
        let last = good(store.last_successful(&execution, None, None)).expect("two succeeded");
        assert_eq!(last, listed(store, &execution)[1]);
    }
}

pub(super) fn the_last_success_may_have_to_be_before_a_step([store, other]: Pair<'_>) {
    use Status::{Failed, Pending, Success};
    let execution = execution("e");
    for (step, status) in
        [(10, Success), (2, Success), (1, Failed), (11, Pending), (9, Success), (9, Failed)]
    {
        good(store.save(&NewCheckpoint { status, ..new(&execution, step) }));
    }
    let main = BranchName::main();
    for store in [store, other] {
        for (before, expected) in [
            (None, Some(10)),
            (Some(u32::MAX), Some(10)),
            (Some(11), Some(10)),
            // Step 9 succeeded once, and failed when it was tried again.
            (Some(10), Some(2)),
            (Some(2), None),
            (Some(0), None),
        ] {
            for branch in [None, Some(&main)] {
                let last = store.last_successful(&execution, branch, before.map(StepIndex));
                let last = good(last).map(|record| record.key.step.0);
                assert_eq!(last, expected, "before {before:?}");
            }
        }
    }
}

pub(super) fn every_field_reads_back([store, other]: Pair<'_>) {
    let execution = execution("e");
    let values = Values {
        state: json!({ "a": [1, 2.5, null] }),
        context: json!([]),
        variables: json!("text"),
        metadata: json!({ "tags": ["x", "y"], "cost": 0.25 }),
    };
    let mut parent = None;
    for (step, status) in Status::ALL.into_iter().enumerate() {
        for error in [None, Some(""), Some("Traceback:\n\t\"boom\" \u{1f4a5}\0")] {
            for point in [None, Some(PointId(u64::MAX)), Some(PointId(0))] {
                let step = StepIndex(u32::try_from(step).expect("few"));
                let time = Timestamp(-1_234_567_890_123 * i64::from(step.0) + 7);
                let made = NewCheckpoint {
                    step,
                    status,
                    error,
                    point,
                    time,
                    step_name: "nämé \"of\" a step\n",
                    values: &values,
                    ..new(&execution, 0)
                };
                let record = good(store.save(&made)).record;
                let expected = Record {
                    key: record.key.clone(),
                    is_newest: true,
                    branch: BranchName::main(),
                    parent,
                    step_name: made.step_name.to_owned(),
                    time,
                    status,
                    error: error.map(ToOwned::to_owned),
                    point,
                };
                assert_eq!(record, expected);
                for store in [store, other] {
                    let loaded = good(store.load(&record.id()));
                    let values = values.clone();
                    assert_eq!(loaded, Some(Checkpoint { record: expected.clone(), values }));
                    assert_eq!(good(store.find(&record.id())), Some(expected.clone()));
                }
                parent = Some((record.key.step, record.key.attempt));
            }
        }
    }
    assert_eq!(all(other, &execution).len(), 27);
}

pub(super) fn names_with_a_common_prefix_stay_apart([store, other]: Pair<'_>) {
    let names =
        ["exec-1", "exec-10", "exec-1-1", "exec-1-1.a1", "exec", "exec-", "exec-01", "xexec-1"];
    for name in names {
        for step in [0, 1, 10, 11] {
            save(store, &execution(name), step, &format!("{name} at {step}"));
        }
        save(store, &execution(name), 1, &format!("{name} at 1 again"));
    }
    for store in [store, other] {
        for name in names {
            let execution = execution(name);
            let newest = [(0, 1), (1, 2), (10, 1), (11, 1)];
            assert_eq!(places(&listed(store, &execution)), newest);
            assert_eq!(all(store, &execution).len(), 5);
            for (id, text) in [
                (format!("ckpt-{name}-10"), format!("{name} at 10")),
                (format!("ckpt-{name}-1"), format!("{name} at 1 again")),
                (format!("ckpt-{name}-1.a1"), format!("{name} at 1")),
            ] {
                assert_eq!(text_of(store, &id), Some(text), "{id}");
            }
        }
        assert_eq!(good(store.executions()).executions.len(), names.len());
    }
    assert!(good(other.delete_execution(&execution("exec-1"))));
    assert_eq!(listed(store, &execution("exec-1")), []);
    for name in &names[1..] {
        assert_eq!(all(store, &execution(name)).len(), 5, "{name}");
    }
}

pub(super) fn lists_are_in_the_order_of_numbers([store, other]: Pair<'_>) {
    let execution = execution("e");
    for step in [10, 2, 1, u32::MAX, 0, 100, 9] {
        save(store, &execution, step, "once");
    }
    for number in 2..=11 {
        save(store, &execution, 9, &number.to_string());
    }
    for store in [store, other] {
        let newest = [(0, 1), (1, 1), (2, 1), (9, 11), (10, 1), (100, 1), (u32::MAX, 1)];
        assert_eq!(places(&listed(store, &execution)), newest);
        let mut every = newest.to_vec();
        every.extend((1..=10).map(|number| (9, number)));
        every.sort_unstable();
        let listed = all(store, &execution);
        assert_eq!(places(&listed), every);
        for record in listed {
            let place = (record.key.step.0, record.key.attempt.0.get());
            assert_eq!(record.is_newest, newest.contains(&place), "{place:?}");
        }
    }
}

pub(super) fn lists_come_in_pages([store, other]: Pair<'_>) {
    let execution = execution("e");
    steps(store, &execution, 12);
    save(store, &execution, 5, "again");
    for scope in
        [ListScope::Branch(None), ListScope::Branch(Some(&BranchName::main())), ListScope::All]
    {
        let whole = page(other, &execution, scope).records;
        assert_eq!(whole.len(), if scope == ListScope::All { 13 } else { 12 });
        for limit in [1, 2, 5, 12, 13, 50] {
            let (mut read, mut after) = (Vec::new(), None);
            loop {
                let query = ListQuery { execution: &execution, scope, after, limit: Some(limit) };
                let page = good(other.list(&query));
                assert!(page.records.len() <= limit);
                assert_eq!(page.more, read.len() + page.records.len() < whole.len());
                read.extend(page.records);
                after = read.last().map(|record: &Record| (record.key.step, record.key.attempt));
                if !page.more {
                    break;
                }
            }
            assert_eq!(read, whole, "by {limit}");
        }
        // After a checkpoint that does not exist.
        let after = Some((StepIndex(11), attempt(9)));
        let query = ListQuery { execution: &execution, scope, after, limit: None };
        assert_eq!(places(&good(store.list(&query)).records), [(12, 1)]);
        let nothing = ListQuery { limit: Some(0), after: None, ..query };
        let page = good(store.list(&nothing));
        assert_eq!((page.records.len(), page.more), (0, true));
    }
}

pub(super) fn the_same_content_again_is_the_same_checkpoint([store, other]: Pair<'_>) {
    let execution = execution("e");
    let values = state(json!({ "messages": ["a", { "b": 1.5 }] }));
    let made = NewCheckpoint {
        values: &values,
        error: Some("e"),
        point: Some(PointId(1)),
        ..new(&execution, 1)
    };
    let first = good(store.save(&made));
    assert!(first.is_new);
    for store in [store, other] {
        for time in [made.time, Timestamp(made.time.0 + 1000), Timestamp(0)] {
            let again = good(store.save(&NewCheckpoint { time, ..made.clone() }));
            assert!(!again.is_new);
            assert_eq!(again.record, first.record);
        }
    }
    // Even if other steps were saved since, it is not saved again and the head stays.
    save(other, &execution, 2, "next");
    assert!(!good(store.save(&made)).is_new);
    assert_eq!(head(other, &execution), Some((2, 1)));
    assert_eq!(places(&all(other, &execution)), [(1, 1), (2, 1)]);
}

pub(super) fn other_content_is_another_attempt([store, other]: Pair<'_>) {
    let execution = execution("e");
    let values = state(json!({ "is": "first" }));
    let first = NewCheckpoint { values: &values, ..new(&execution, 1) };
    let second = state(json!({ "is": "second" }));
    let context = Values { context: json!({ "is": "else" }), ..values.clone() };
    let variables = Values { variables: json!([0]), ..values.clone() };
    let metadata = Values { metadata: Value::Null, ..values.clone() };
    let made = [
        first.clone(),
        NewCheckpoint { values: &second, ..first.clone() },
        NewCheckpoint { values: &context, ..first.clone() },
        NewCheckpoint { values: &variables, ..first.clone() },
        NewCheckpoint { values: &metadata, ..first.clone() },
        NewCheckpoint { status: Status::Failed, ..first.clone() },
        NewCheckpoint { status: Status::Failed, error: Some("why"), ..first.clone() },
        NewCheckpoint { step_name: "another name", ..first.clone() },
        // Content that an older attempt had.
        first.clone(),
    ];
    let mut records = Vec::new();
    for (number, made) in (1..).zip(&made) {
        let saved = good([store, other][number as usize % 2].save(made));
        assert!(saved.is_new, "attempt {number}");
        assert_eq!(saved.record.key, key(&execution, 1, number));
        assert_eq!(saved.record.id(), id("ckpt-e-1"));
        records.push(saved.record);
    }
    for store in [store, other] {
        assert_eq!(listed(store, &execution), records[8..]);
        for (record, made) in records.iter().zip(&made) {
            let is_newest = record.key.attempt == attempt(9);
            let record = Record { is_newest, ..record.clone() };
            let loaded = good(store.load(&record.key.id()));
            assert_eq!(loaded, Some(Checkpoint { record, values: made.values.clone() }));
        }
        let newest = good(store.load(&id("ckpt-e-1"))).expect("nine attempts were saved");
        assert_eq!(newest.record, records[8]);
        assert_eq!(good(store.load(&id("ckpt-e-1.a10"))), None);
    }
}

pub(super) fn an_attempt_can_be_given([store, other]: Pair<'_>) {
    let execution = execution("e");
    let (values, others) = (state(json!("one")), state(json!("two")));
    let made = NewCheckpoint { attempt: Some(attempt(5)), values: &values, ..new(&execution, 1) };
    assert_eq!(good(store.save(&made)).record.key, key(&execution, 1, 5));
    assert!(!good(other.save(&made)).is_new);
    let taken = other.save(&NewCheckpoint { values: &others, ..made.clone() });
    let Err(StateError::Taken { key: taken }) = taken else {
        panic!("{taken:?}");
    };
    assert_eq!(taken, key(&execution, 1, 5));
    let next = NewCheckpoint { attempt: None, values: &others, ..made.clone() };
    assert_eq!(good(other.save(&next)).record.key, key(&execution, 1, 6));
    // The content of an older attempt, saved again with its number.
    let again = good(store.save(&made));
    assert_eq!((again.is_new, again.record.key), (false, key(&execution, 1, 5)));
    assert_eq!(places(&all(store, &execution)), [(1, 5), (1, 6)]);
    assert_eq!(good(store.load(&id("ckpt-e-1.a5"))).expect("it stays").values, values);
}

/// The parts of a conflict: the checkpoint's step, its parent, the branch, and the step of the
/// head.
#[track_caller]
fn conflict(
    refused: Result<crate::state::SaveOutcome, StateError>,
) -> (StepIndex, Option<CheckpointId>, BranchName, Option<StepIndex>) {
    match refused {
        Err(StateError::Conflict { id, parent, branch, head }) => {
            (id.step, parent, branch, head.map(|head| head.step))
        }
        refused => panic!("no conflict: {refused:?}"),
    }
}

pub(super) fn a_parent_must_be_the_head([store, other]: Pair<'_>) {
    let execution = execution("e");
    let main = BranchName::main;
    steps(store, &execution, 2);
    let (one, two) = (id("ckpt-e-1"), id("ckpt-e-2"));
    let three = NewCheckpoint { expect: ExpectedHead::Newest(Some(&one)), ..new(&execution, 3) };
    let refused = conflict(other.save(&three));
    assert_eq!(refused, (StepIndex(3), Some(one.clone()), main(), Some(StepIndex(2))));
    assert_eq!(places(&all(store, &execution)), [(1, 1), (2, 1)]);

    let saved = good(
        other.save(&NewCheckpoint { expect: ExpectedHead::Newest(Some(&two)), ..three.clone() }),
    );
    assert_eq!(saved.record.parent, Some((StepIndex(2), attempt(1))));
    // An id without an attempt means the newest attempt, so an older one is not the head.
    save(store, &execution, 3, "again");
    let old = id("ckpt-e-3.a1");
    let four = NewCheckpoint { expect: ExpectedHead::Newest(Some(&old)), ..new(&execution, 4) };
    assert_eq!(conflict(store.save(&four)).3, Some(StepIndex(3)));
    for parent in ["ckpt-e-3.a2", "ckpt-e-4.a1", "ckpt-e-5"] {
        let parent = id(parent);
        let step = parent.step.0 + 1;
        let saved = good(store.save(&NewCheckpoint {
            expect: ExpectedHead::Newest(Some(&parent)),
            ..new(&execution, step)
        }));
        assert_eq!(saved.record.parent.expect("it has one").0, parent.step);
    }
    // Without an expected parent it follows the head.
    let saved = save(other, &execution, 9, "last");
    assert_eq!(saved.parent, Some((StepIndex(6), attempt(1))));
}

pub(super) fn a_first_step_is_the_only_one([store, other]: Pair<'_>) {
    let execution = execution("e");
    let first = NewCheckpoint { expect: ExpectedHead::Newest(None), ..new(&execution, 1) };
    let saved = good(store.save(&first));
    assert_eq!((saved.is_new, saved.record.parent), (true, None));
    // A save whose answer was lost can be repeated; other content and other steps are refused.
    let again = good(other.save(&first));
    assert_eq!((again.is_new, again.record.key.attempt), (false, attempt(1)));
    let values = state(json!({ "is": "another" }));
    for (step, values) in [(1, &values), (2, first.values)] {
        let refused = other.save(&NewCheckpoint { step: StepIndex(step), values, ..first.clone() });
        let expected = (StepIndex(step), None, BranchName::main(), Some(StepIndex(1)));
        assert_eq!(conflict(refused), expected);
    }
    assert_eq!(places(&all(store, &execution)), [(1, 1)]);

    // An effect or a further attempt does not count as a step.
    let fresh = super::samples::execution("f");
    let intent = json!("mail");
    let time = Timestamp(1);
    let effect = NewEffect { execution: &fresh, key: "mail", step: None, intent: &intent, time };
    good(store.declare_effect(&effect));
    assert!(good(other.save(&NewCheckpoint { execution: &fresh, ..first.clone() })).is_new);

    // After all checkpoints are deleted, a first one can be saved.
    assert!(good(store.delete_execution(&execution)));
    assert!(good(other.save(&NewCheckpoint { values: &values, ..first })).is_new);
}

pub(super) fn one_of_many_concurrent_writers_saves_the_first_step([store, other]: Pair<'_>) {
    const ROUNDS: u32 = 10;
    for round in 0..ROUNDS {
        let execution = execution(&format!("e{round}"));
        let begin = |store: &dyn States, who: u32| {
            let values = state(json!({ "by": who }));
            let expect = ExpectedHead::Newest(None);
            store.save(&NewCheckpoint { expect, values: &values, ..new(&execution, 1) })
        };
        let outcomes = std::thread::scope(|scope| {
            let begun: Vec<_> = (0..8)
                .map(|who| {
                    let (begin, store) = (&begin, if who % 2 == 0 { store } else { other });
                    scope.spawn(move || begin(store, who))
                })
                .collect();
            begun.into_iter().map(|one| one.join().expect("it ends")).collect::<Vec<_>>()
        });
        let (made, refused): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
        assert_eq!((made.len(), refused.len()), (1, 7), "{refused:?}");
        for refused in refused {
            assert_eq!(conflict(refused).1, None);
        }
        assert_eq!(places(&all(store, &execution)), [(1, 1)]);
    }
}

pub(super) fn a_missing_parent_is_an_error([store, other]: Pair<'_>) {
    let here = execution("e");
    let refuse = |store: &dyn States, execution: &ExecutionId, parent: &str| {
        let parent = id(parent);
        let refused = store.save(&NewCheckpoint {
            expect: ExpectedHead::Newest(Some(&parent)),
            ..new(execution, 2)
        });
        let Err(StateError::MissingParent { id, parent: named }) = refused else {
            panic!("{parent}: {refused:?}");
        };
        assert_eq!((id.step, named), (StepIndex(2), parent));
    };
    refuse(store, &here, "ckpt-e-1");
    assert_eq!(good(other.executions()), Executions::default());
    save(store, &here, 1, "one");
    save(store, &execution("f"), 1, "another's");
    refuse(other, &here, "ckpt-e-3");
    refuse(other, &here, "ckpt-e-1.a2");
    refuse(other, &here, "ckpt-nobody-1");
    assert_eq!(places(&all(store, &here)), [(1, 1)]);
}

pub(super) fn a_save_whose_answer_was_lost_can_be_repeated([store, other]: Pair<'_>) {
    let execution = execution("e");
    steps(store, &execution, 1);
    let (one, values) = (id("ckpt-e-1"), state(json!("two")));
    let two = NewCheckpoint {
        expect: ExpectedHead::Newest(Some(&one)),
        values: &values,
        ..new(&execution, 2)
    };
    let saved = good(store.save(&two));
    for store in [store, other] {
        let again = good(store.save(&two));
        assert_eq!((again.is_new, &again.record), (false, &saved.record));
    }
    // A further attempt with the same content is a new one if it names its parent.
    let further =
        NewCheckpoint { expect: ExpectedHead::Newest(Some(&saved.record.key.id())), ..two.clone() };
    let tried = good(other.save(&further));
    assert_eq!((tried.is_new, tried.record.key.attempt), (true, attempt(2)));
    assert_eq!(tried.record.parent, Some((StepIndex(2), attempt(1))));
    // Also the very first checkpoint, which has no parent.
    let first = save(store, &super::samples::execution("f"), 1, "one");
    let values = state(json!({ "is": "one" }));
    let again =
        good(other.save(&NewCheckpoint { values: &values, ..new(&first.key.execution, 1) }));
    assert_eq!((again.is_new, again.record), (false, first));
}

pub(super) fn one_of_two_writers_wins([store, other]: Pair<'_>) {
    const ROUNDS: u32 = 20;
    let execution = execution("e");
    steps(store, &execution, 1);
    for round in 1..=ROUNDS {
        let parent = id(&format!("ckpt-e-{round}"));
        let save = |store: &dyn States, text: &str| {
            let values = state(json!({ "is": text }));
            let expect = ExpectedHead::Newest(Some(&parent));
            store.save(&NewCheckpoint { expect, values: &values, ..new(&execution, round + 1) })
        };
        let outcomes = std::thread::scope(|scope| {
            [(store, "ours"), (other, "theirs")]
                .map(|(store, text)| scope.spawn(move || save(store, text)))
                .map(|writer| writer.join().expect("it does not panic"))
        });
        let [won, lost] = match outcomes {
            [Ok(won), lost @ Err(_)] | [lost @ Err(_), Ok(won)] => [Ok(won), lost],
            outcomes => panic!("round {round}: {outcomes:?}"),
        };
        let won = won.expect("sorted above");
        assert!(won.is_new);
        assert_eq!(won.record.key, key(&execution, round + 1, 1));
        assert_eq!(conflict(lost).1, Some(parent));
    }
    let every: Vec<_> = (1..=ROUNDS + 1).map(|step| (step, 1)).collect();
    assert_eq!(places(&all(store, &execution)), every);
}

pub(super) fn many_writers_lose_nothing([store, other]: Pair<'_>) {
    const WRITERS: u32 = 4;
    const SAVES: u32 = 15;
    let (together, apart) = (execution("together"), execution("apart"));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let store = [store, other][writer as usize % 2];
            let [together, apart] = [&together, &apart];
            scope.spawn(move || {
                for number in 0..SAVES {
                    // All on one step, where each save is a new attempt; and each on steps of its
                    // own.
                    save(store, together, 7, &format!("{writer} {number}"));
                    save(store, apart, writer * SAVES + number, "it");
                }
            });
        }
    });
    let every: Vec<_> = (1..=WRITERS * SAVES).map(|number| (7, number)).collect();
    assert_eq!(places(&all(store, &together)), every);
    assert_eq!(places(&listed(other, &together)), every[every.len() - 1..]);
    let every: Vec<_> = (0..WRITERS * SAVES).map(|step| (step, 1)).collect();
    assert_eq!(places(&listed(other, &apart)), every);
    // Each follows the one before, whichever thread wrote it.
    let parents: std::collections::HashSet<_> =
        all(store, &apart).iter().map(|record| record.parent).collect();
    assert_eq!(parents.len(), every.len());
}

pub(super) fn unknown_names_are_not_empty_answers([store, other]: Pair<'_>) {
    let unknown = execution("nobody");
    let side = branch("side");
    save(store, &execution("nobody-1"), 1, "another's");
    for scope in [ListScope::Branch(None), ListScope::All] {
        assert_eq!(page(other, &unknown, scope), Page::default());
    }
    assert_eq!(good(other.find(&id("ckpt-nobody-1"))), None);
    assert_eq!(good(other.load(&id("ckpt-nobody-1.a1"))), None);
    assert_eq!(good(other.last_successful(&unknown, None, None)), None);
    assert_eq!(good(other.head(&unknown, None)), None);
    assert_eq!(good(other.effects(&unknown)), []);
    assert!(!good(other.delete(&key(&unknown, 1, 1))));
    assert!(!good(other.delete_execution(&unknown)));
    assert_eq!(good(other.delete_of_session(&"nobody".into())), 0);
    let refused = other.switch(&unknown, &side);
    assert!(matches!(&refused, Err(StateError::NoExecution(of)) if *of == unknown), "{refused:?}");

    let known = execution("nobody-1");
    let query = ListQuery {
        execution: &known,
        scope: ListScope::Branch(Some(&side)),
        after: None,
        limit: None,
    };
    for refused in [
        store.list(&query).map(drop),
        store.last_successful(&known, Some(&side), None).map(drop),
        store.head(&known, Some(&side)).map(drop),
        store.switch(&known, &side),
        store.save(&NewCheckpoint { branch: Some(&side), ..new(&known, 2) }).map(drop),
    ] {
        let Err(StateError::NoBranch { execution, branch }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!((execution, branch), (known.clone(), side.clone()));
    }
    good(other.switch(&known, &BranchName::main()));
    assert_eq!(text_of(store, "ckpt-nobody-1-1").as_deref(), Some("another's"));
}
