//! Points that retention has dropped, and contents that the store has lost.

use takeback_core::retention::{Clock, Occasion, Policy, clean_up, delete_session};
use takeback_core::rewind::{Choice, RewindError, open_conflicts};

use super::*;
use crate::damage::spoil;

fn clean(sandbox: &mut Sandbox, most: usize) {
    let policy = Policy { points_per_session: most, ..Policy::default() };
    clean_up(&mut sandbox.workspace, &policy, Occasion::OnDemand, Clock::Doubted).unwrap();
    assert_eq!(sandbox.workspace.store.check().unwrap(), Vec::<String>::new());
}

fn five_turns() -> (Sandbox, Vec<PointId>) {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "0\n");
    let points = (1..=5).map(|number| {
        let point = sandbox.prompt("s", &format!("turn {number}"));
        sandbox.agent_writes("s", "a.txt", format!("{number}\n"));
        sandbox.agent_writes("s", &format!("{number}.txt"), "made\n");
        sandbox.turn_end("s");
        point
    });
    let points = points.collect();
    (sandbox, points)
}

#[test]
fn a_point_that_was_dropped_meanwhile_is_an_error_and_nothing_happens() {
    let (mut sandbox, points) = five_turns();
    let asked = restore(points[0], &["a.txt"]);
    clean(&mut sandbox, 2);
    let before = sandbox.tree();
    let refused = sandbox.rewind(&asked);
    assert!(matches!(refused, Err(RewindError::NoPoint(id)) if id == points[0]), "{refused:?}");
    assert_eq!(sandbox.tree(), before);
}

/// A request that was made before the clean-up: what it was about is folded into nothing by now.
#[test]
fn a_turn_that_was_dropped_meanwhile_takes_back_nothing_of_other_turns() {
    for most in [1, 2, 3] {
        let (mut sandbox, points) = five_turns();
        let asked = turn(&sandbox, points[0]);
        clean(&mut sandbox, most);
        let receipt = go(&mut sandbox, &asked);
        assert_eq!(sandbox.read("a.txt"), "5\n", "{receipt:?}");
        for number in 2..=5 {
            assert!(sandbox.exists(&format!("{number}.txt")), "{number}: {receipt:?}");
        }
    }
}

#[test]
fn kept_turns_are_taken_back_exactly_after_older_ones_were_dropped() {
    let (mut sandbox, points) = five_turns();
    clean(&mut sandbox, 2);
    let request = turn(&sandbox, points[4]);
    assert_eq!(
        there_and_back(&mut sandbox, &request).0,
        ["success", "restored a.txt", "deleted 5.txt"]
    );
    let request = call(&sandbox, "s", "call-9").unwrap();
    assert_eq!(there_and_back(&mut sandbox, &request).0, ["success", "restored a.txt"]);
    let request = range(&sandbox, points[3], None, None);
    assert_eq!(
        there_and_back(&mut sandbox, &request).0,
        ["success", "restored a.txt", "deleted 4.txt", "deleted 5.txt"]
    );
}

/// An operation and its conflicts survive a clean-up, with all their contents.
#[test]
fn operations_and_open_conflicts_survive_a_clean_up() {
    for conflicts in [ConflictPolicy::Keep, ConflictPolicy::File, ConflictPolicy::Markers] {
        let (mut sandbox, points) = five_turns();
        sandbox.write("b.txt", "1\n2\n3\n4\n5\n");
        let point = sandbox.prompt("s", "last");
        sandbox.agent_writes("s", "b.txt", "one\n2\n3\n4\nfive\n");
        sandbox.turn_end("s");
        sandbox.write("b.txt", "mine\n2\nmine\n4\nfive\n");
        takeback_core::look_around(&mut sandbox.workspace).unwrap();
        let before = sandbox.tree();
        let request = RewindRequest { conflicts, ..turn(&sandbox, point) };
        let other = go(&mut sandbox, &restore(points[4], &["a.txt"])).rewind.unwrap();
        let reverted = go(&mut sandbox, &request);
        assert!(!reverted.success);
        clean(&mut sandbox, 2);
        let open = open_conflicts(&sandbox.workspace).unwrap();
        if let Some(id) = reverted.rewind {
            let store = &mut *sandbox.workspace.store;
            let choices = vec![Some(Choice::Before); open[0].lines.len().max(1)];
            let settled = open[0].settle(store, &choices).unwrap().unwrap();
            let text = store.contents(&settled.entry.digest().unwrap()).unwrap();
            assert_eq!(text, b"1\n2\nmine\n4\n5\n", "{conflicts:?}");
            undo(&mut sandbox, id);
        }
        undo(&mut sandbox, other);
        assert_eq!(sandbox.tree(), before, "{conflicts:?}");
    }
}

#[test]
fn lost_contents_cost_the_file_that_needs_them() {
    let play = || {
        let mut sandbox = Sandbox::new();
        sandbox.write("a.txt", "the first text of a\n");
        sandbox.write("b.txt", "the first text of b\n");
        let point = sandbox.prompt("s", "go");
        sandbox.agent_writes("s", "a.txt", "the second text of a\n");
        sandbox.agent_writes("s", "b.txt", "the second text of b\n");
        sandbox.turn_end("s");
        (sandbox, point)
    };
    let lost = ["not all", "restored b.txt", "not captured a.txt: damaged in the store"];
    type Ask = fn(&Sandbox, PointId) -> RewindRequest;
    let asks: [Ask; 3] = [
        |sandbox, point| turn(sandbox, point),
        |sandbox, point| range(sandbox, point, None, None),
        |_, point| restore(point, &[]),
    ];
    for ask in asks {
        let (mut sandbox, point) = play();
        spoil(&mut sandbox, "the first text of a\n");
        let request = ask(&sandbox, point);
        assert_eq!(there_and_back(&mut sandbox, &request).0, lost);
    }
    // Of an operation: it can be undone but for that file.
    let (mut sandbox, point) = play();
    let request = turn(&sandbox, point);
    let id = go(&mut sandbox, &request).rewind.unwrap();
    spoil(&mut sandbox, "the second text of a\n");
    assert_eq!(report(&undo(&mut sandbox, id)), lost);
    assert_eq!(sandbox.read("a.txt"), "the first text of a\n");
}

#[test]
fn an_operation_whose_session_is_deleted_cannot_be_undone() {
    let (mut sandbox, points) = five_turns();
    let request = turn(&sandbox, points[4]);
    let id = go(&mut sandbox, &request).rewind.unwrap();
    delete_session(&mut sandbox.workspace, &SessionId::from("s")).unwrap();
    let before = sandbox.tree();
    let refused = sandbox.rewind(&RewindRequest::new(Target::Operation(id)));
    assert!(matches!(refused, Err(RewindError::SessionDeleted)), "{refused:?}");
    assert_eq!(sandbox.tree(), before);
}
