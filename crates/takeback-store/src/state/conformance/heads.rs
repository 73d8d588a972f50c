//! Moving heads, and branches.

use serde_json::json;

use super::samples::{
    all, attempt, branch, execution, head, id, key, listed, new, page, places, save, state, steps,
    text_of,
};
use super::{Pair, good};
use crate::id::RewindId;
use crate::state::{
    BranchName, ExecutionId, ExpectedHead, Head, HeadMove, LineId, ListScope, MoveOutcome, MoveTo,
    NewCheckpoint, Record, StateError, States, StepIndex,
};

#[track_caller]
fn back(store: &dyn States, execution: &ExecutionId, step: u32, number: u32) -> MoveOutcome {
    let key = key(execution, step, number);
    good(store.move_head(&HeadMove {
        execution,
        branch: None,
        to: MoveTo::Checkpoint(&key),
        by: None,
    }))
}

#[track_caller]
fn line(store: &dyn States, execution: &ExecutionId) -> LineId {
    good(store.head(execution, None)).expect("it is known").line
}

pub(super) fn a_moved_head_keeps_the_old_line([store, other]: Pair<'_>) {
    let execution = execution("e");
    steps(store, &execution, 12);
    let from = line(store, &execution);
    let moved = back(store, &execution, 2, 1);
    assert_eq!((&moved.branch, moved.from), (&BranchName::main(), from));
    assert_ne!(moved.from, moved.to);
    for store in [store, other] {
        assert_eq!(places(&listed(store, &execution)), [(1, 1), (2, 1)]);
        assert_eq!(head(store, &execution), Some((2, 1)));
        let head = good(store.head(&execution, None)).expect("it is known");
        assert_eq!((&head.branch, head.line), (&BranchName::main(), moved.to));
        let last = good(store.last_successful(&execution, None, None));
        assert_eq!(last.map(|record| record.key), Some(key(&execution, 2, 1)));
        // A checkpoint on the old line still exists, but its short id does not refer to it.
        for step in 3..=12 {
            assert_eq!(text_of(store, &format!("ckpt-e-{step}")), None);
            assert_eq!(text_of(store, &format!("ckpt-e-{step}.a1")), Some(step.to_string()));
        }
        let every = all(store, &execution);
        assert_eq!(every.len(), 12);
        for record in every {
            assert_eq!(record.is_newest, record.key.step.0 <= 2);
            let named =
                format!("ckpt-e-{}{}", record.key.step, if record.is_newest { "" } else { ".a1" });
            assert_eq!(record.id(), id(&named));
        }
    }
}

pub(super) fn attempt_numbers_continue_after_a_move([store, other]: Pair<'_>) {
    let execution = execution("e");
    steps(store, &execution, 4);
    save(store, &execution, 3, "third, again");
    back(other, &execution, 2, 1);
    let three = save(store, &execution, 3, "third, elsewhere");
    assert_eq!(three.key, key(&execution, 3, 3));
    assert_eq!(three.parent, Some((StepIndex(2), attempt(1))));
    // The content of an attempt on the old line is saved again on this one.
    let four = save(other, &execution, 4, "4");
    assert_eq!(four.key, key(&execution, 4, 2));
    for store in [store, other] {
        assert_eq!(places(&listed(store, &execution)), [(1, 1), (2, 1), (3, 3), (4, 2)]);
        let every = [(1, 1), (2, 1), (3, 1), (3, 2), (3, 3), (4, 1), (4, 2)];
        assert_eq!(places(&all(store, &execution)), every);
        assert_eq!(text_of(store, "ckpt-e-3").as_deref(), Some("third, elsewhere"));
        assert_eq!(text_of(store, "ckpt-e-3.a1").as_deref(), Some("3"));
        assert_eq!(head(store, &execution), Some((4, 2)));
    }
    // A parent on the old line exists but is not the head.
    let left = id("ckpt-e-4.a1");
    let refused = store
        .save(&NewCheckpoint { expect: ExpectedHead::Newest(Some(&left)), ..new(&execution, 5) });
    assert!(matches!(refused, Err(StateError::Conflict { .. })), "{refused:?}");
}

pub(super) fn the_way_back_is_exact([store, other]: Pair<'_>) {
    let execution = execution("e");
    steps(store, &execution, 5);
    save(store, &execution, 3, "third, again");
    save(store, &execution, 2, "second, again");
    let listing = |store: &dyn States| -> (Vec<Record>, Vec<Record>, Option<Head>) {
        (listed(store, &execution), all(store, &execution), good(store.head(&execution, None)))
    };
    let before = listing(store);
    assert_eq!(places(&before.0), [(1, 1), (2, 2), (3, 2), (4, 1), (5, 1)]);
    let moved = back(store, &execution, 3, 1);
    let moved_back = listing(other);
    // Attempt 2 of both steps was saved later, on the old line.
    assert_eq!(places(&moved_back.0), [(1, 1), (2, 1), (3, 1)]);
    let return_to =
        |line| HeadMove { execution: &execution, branch: None, to: MoveTo::Line(line), by: None };
    let returned = good(other.move_head(&return_to(moved.from)));
    assert_eq!(
        returned,
        MoveOutcome { branch: BranchName::main(), from: moved.to, to: moved.from }
    );
    assert_eq!(listing(store), before);
    // Forward again and continue there, which does not affect the first line.
    good(store.move_head(&return_to(moved.to)));
    assert_eq!(listing(other), moved_back);
    assert_eq!(save(store, &execution, 4, "fourth, elsewhere").key, key(&execution, 4, 2));
    good(other.move_head(&return_to(moved.from)));
    assert_eq!(listing(store).0, before.0);
    assert_eq!(listing(other).2, before.2);
    assert_eq!(all(store, &execution).len(), before.1.len() + 1);
    // Attempt numbers on the first line continue over both lines.
    assert_eq!(save(other, &execution, 4, "fourth, here").key, key(&execution, 4, 3));
}

pub(super) fn the_same_move_again_does_nothing([store, other]: Pair<'_>) {
    let execution = execution("e");
    steps(store, &execution, 5);
    let (two, four) = (key(&execution, 2, 1), key(&execution, 4, 1));
    let by = |by, to| HeadMove { execution: &execution, branch: None, to, by: Some(RewindId(by)) };
    let moved = good(store.move_head(&by(7, MoveTo::Checkpoint(&two))));
    save(store, &execution, 3, "elsewhere");
    assert_eq!(good(other.move_head(&by(7, MoveTo::Checkpoint(&two)))), moved);
    assert_eq!(head(store, &execution), Some((3, 2)));
    // A move with another id is another move, and does not change the outcome of the first.
    let second = good(other.move_head(&by(u64::MAX, MoveTo::Checkpoint(&four))));
    assert_eq!(second.from, moved.to);
    assert_ne!(second.to, moved.to);
    let third = good(store.move_head(&by(0, MoveTo::Line(moved.from))));
    assert_eq!((third.from, third.to), (second.to, moved.from));
    for store in [store, other] {
        assert_eq!(good(store.move_head(&by(7, MoveTo::Checkpoint(&two)))), moved);
        assert_eq!(good(store.move_head(&by(0, MoveTo::Line(moved.from)))), third);
        assert_eq!(head(store, &execution), Some((5, 1)));
    }
    // Without an id every move is a new one.
    assert_ne!(back(store, &execution, 2, 1).to, back(store, &execution, 2, 1).to);
}

pub(super) fn a_head_can_move_to_an_old_line([store, other]: Pair<'_>) {
    let execution = execution("e");
    steps(store, &execution, 4);
    back(store, &execution, 1, 1);
    save(store, &execution, 2, "elsewhere");
    back(other, &execution, 3, 1);
    for store in [store, other] {
        assert_eq!(places(&listed(store, &execution)), [(1, 1), (2, 1), (3, 1)]);
        assert_eq!(head(store, &execution), Some((3, 1)));
        assert_eq!(text_of(store, "ckpt-e-2").as_deref(), Some("2"));
        assert_eq!(text_of(store, "ckpt-e-2.a2").as_deref(), Some("elsewhere"));
    }
    assert_eq!(save(store, &execution, 4, "again").key, key(&execution, 4, 2));
    assert_eq!(save(store, &execution, 2, "more").key, key(&execution, 2, 3));
    back(store, &execution, 2, 2);
    assert_eq!(places(&listed(other, &execution)), [(1, 1), (2, 2)]);
}

pub(super) fn a_move_to_nowhere_does_nothing([store, other]: Pair<'_>) {
    let (here, unknown) = (execution("e"), execution("nobody"));
    steps(store, &here, 2);
    let before = (all(store, &here), good(store.head(&here, None)));
    for missing in [key(&here, 3, 1), key(&here, 2, 2)] {
        let to = MoveTo::Checkpoint(&missing);
        let by = Some(RewindId(1));
        let refused = other.move_head(&HeadMove { execution: &here, branch: None, to, by });
        let Err(StateError::NotFound { id }) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(id, missing.id());
    }
    let to = MoveTo::Line(LineId(1 << 40));
    let refused = other.move_head(&HeadMove { execution: &here, branch: None, to, by: None });
    let Err(StateError::NoLine { execution, line }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!((execution, line), (here.clone(), LineId(1 << 40)));
    let refused = other.move_head(&HeadMove { execution: &unknown, branch: None, to, by: None });
    assert!(matches!(&refused, Err(StateError::NoExecution(of)) if *of == unknown), "{refused:?}");
    assert_eq!((all(store, &here), good(store.head(&here, None))), before);
    // A line of another execution does not exist here.
    steps(store, &unknown, 1);
    let to = MoveTo::Line(line_made(store, &unknown));
    let refused = other.move_head(&HeadMove { execution: &here, branch: None, to, by: None });
    assert!(matches!(refused, Err(StateError::NoLine { .. })), "{refused:?}");
}

/// A line whose number no other execution here has.
fn line_made(store: &dyn States, execution: &ExecutionId) -> LineId {
    (0..5).map(|_| back(store, execution, 1, 1).to).last().expect("five were made")
}

pub(super) fn a_fork_is_refused_and_changes_nothing([store, other]: Pair<'_>) {
    let execution = execution("e");
    steps(store, &execution, 2);
    let before = (all(store, &execution), good(store.executions()));
    let refused = store.fork(&key(&execution, 1, 1), &branch("side"));
    assert!(matches!(refused, Err(StateError::Unsupported { .. })), "{refused:?}");
    assert_eq!((all(other, &execution), good(other.executions())), before);
}

pub(super) fn a_fork_is_independent([store, other]: Pair<'_>) {
    let execution = execution("e");
    let (main, side) = (BranchName::main(), branch("../side\0"));
    steps(store, &execution, 4);
    good(store.fork(&key(&execution, 2, 1), &side));
    for store in [store, other] {
        let head = good(store.head(&execution, None)).expect("it is known");
        assert_eq!(head.branch, side);
        assert_eq!(head.record.expect("a fork has a head").key, key(&execution, 2, 1));
        assert_eq!(places(&listed(store, &execution)), [(1, 1), (2, 1)]);
        let on_main = page(store, &execution, ListScope::Branch(Some(&main))).records;
        assert_eq!(places(&on_main), [(1, 1), (2, 1), (3, 1), (4, 1)]);
        assert_eq!(on_main.iter().filter(|record| record.is_newest).count(), 2);
    }
    let three = save(other, &execution, 3, "aside");
    assert_eq!((&three.key, &three.branch), (&key(&execution, 3, 2), &side));
    assert_eq!(text_of(store, "ckpt-e-3").as_deref(), Some("aside"));
    let last = |branch: &BranchName| good(store.last_successful(&execution, Some(branch), None));
    assert_eq!(last(&main).map(|record| record.key), Some(key(&execution, 4, 1)));
    assert_eq!(last(&side).map(|record| record.key), Some(key(&execution, 3, 2)));
    assert_eq!(good(store.executions()).executions[0].branches, [side.clone(), main.clone()]);

    let taken = store.fork(&key(&execution, 1, 1), &side);
    let Err(StateError::BranchExists { execution: of, branch }) = taken else {
        panic!("{taken:?}");
    };
    assert_eq!((&of, &branch), (&execution, &side));
    let missing = store.fork(&key(&execution, 9, 1), &super::samples::branch("new"));
    assert!(matches!(missing, Err(StateError::NotFound { .. })), "{missing:?}");

    good(other.switch(&execution, &main));
    for store in [store, other] {
        assert_eq!(head(store, &execution), Some((4, 1)));
        assert_eq!(text_of(store, "ckpt-e-3").as_deref(), Some("3"));
        assert_eq!(text_of(store, "ckpt-e-3.a2").as_deref(), Some("aside"));
        assert_eq!(good(store.executions()).executions[0].branches, [main.clone(), side.clone()]);
    }
}

pub(super) fn a_fork_from_an_old_line([store, other]: Pair<'_>) {
    let execution = execution("e");
    steps(store, &execution, 3);
    let moved = back(store, &execution, 1, 1);
    save(store, &execution, 2, "elsewhere");
    good(store.fork(&key(&execution, 2, 1), &branch("old")));
    assert_eq!(places(&listed(other, &execution)), [(1, 1), (2, 1)]);
    // A move affects the current branch and no other.
    back(other, &execution, 1, 1);
    assert_eq!(places(&listed(store, &execution)), [(1, 1)]);
    good(store.switch(&execution, &BranchName::main()));
    assert_eq!(places(&listed(other, &execution)), [(1, 1), (2, 2)]);
    let to = MoveTo::Line(moved.from);
    good(store.move_head(&HeadMove { execution: &execution, branch: None, to, by: None }));
    assert_eq!(places(&listed(other, &execution)), [(1, 1), (2, 1), (3, 1)]);
}

pub(super) fn a_branch_is_saved_to_without_switching([store, other]: Pair<'_>) {
    let execution = execution("e");
    let side = branch("side");
    steps(store, &execution, 2);
    good(store.fork(&key(&execution, 1, 1), &side));
    good(store.switch(&execution, &BranchName::main()));
    let values = state(json!({ "is": "aside" }));
    let made = NewCheckpoint { branch: Some(&side), values: &values, ..new(&execution, 2) };
    let saved = good(other.save(&made)).record;
    assert_eq!((&saved.key, &saved.branch), (&key(&execution, 2, 2), &side));
    assert!(!saved.is_newest);
    assert!(!good(store.save(&made)).is_new);
    assert_eq!(saved.parent, Some((StepIndex(1), attempt(1))));
    for store in [store, other] {
        assert_eq!(head(store, &execution), Some((2, 1)));
        assert_eq!(text_of(store, "ckpt-e-2").as_deref(), Some("2"));
        let aside = page(store, &execution, ListScope::Branch(Some(&side))).records;
        assert_eq!(places(&aside), [(1, 1), (2, 2)]);
        let head = good(store.head(&execution, Some(&side))).expect("it is known");
        assert_eq!(head.record, Some(saved.clone()));
    }
    let parent = id("ckpt-e-2.a1");
    let three = NewCheckpoint {
        branch: Some(&side),
        expect: ExpectedHead::Newest(Some(&parent)),
        ..new(&execution, 3)
    };
    let refused = store.save(&three);
    let Err(StateError::Conflict { branch, .. }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(branch, side);
    let parent = saved.key.id();
    assert!(
        good(store.save(&NewCheckpoint { expect: ExpectedHead::Newest(Some(&parent)), ..three }))
            .is_new
    );
}
