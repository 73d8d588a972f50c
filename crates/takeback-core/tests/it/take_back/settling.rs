//! Conflicts settled: mine, before, other text, some of the places, or the file as a whole.

use std::sync::Arc;

use takeback_core::rewind::{Choice, Incoming, OpenConflict, open_conflicts};
use takeback_store::RewindKind;

use super::*;

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

/// Lines 2, 5 and 9 are the agent's; 2 and 9 were changed since, 5 was not.
fn two_places(conflicts: ConflictPolicy) -> (Sandbox, PointId) {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", TEN);
    let point = sandbox.prompt("s", "go");
    let agents = TEN.replace("2\n", "two\n").replace("5\n", "five\n").replace("9\n", "nine\n");
    sandbox.agent_writes("s", "a.txt", &agents);
    sandbox.turn_end("s");
    sandbox.write("a.txt", agents.replace("two\n", "mine\n").replace("nine\n", "mine, too\n"));
    let request = RewindRequest { conflicts, ..turn(&sandbox, point) };
    assert!(!go(&mut sandbox, &request).success);
    (sandbox, point)
}

fn open(sandbox: &Sandbox) -> Vec<OpenConflict> {
    open_conflicts(&sandbox.workspace).unwrap()
}

fn settle(sandbox: &mut Sandbox, choices: &[Option<Choice>]) -> Receipt {
    let [conflict] = open(sandbox).try_into().expect("there is one");
    let change = conflict.settle(&mut *sandbox.workspace.store, choices).unwrap().unwrap();
    let kind = RewindKind::Resolve { of: conflict.operation };
    let incoming = Incoming { kind, changes: vec![change], settles: true };
    go(sandbox, &RewindRequest::new(Target::Incoming(Arc::new(incoming))))
}

#[test]
fn each_place_becomes_what_was_chosen_whatever_the_policy() {
    let text = |lines: &str| Some(Choice::Text(lines.as_bytes().to_vec()));
    for conflicts in [ConflictPolicy::Keep, ConflictPolicy::Markers] {
        for (choices, [two, nine], left) in [
            ([Some(Choice::Mine), Some(Choice::Mine)], ["mine\n", "mine, too\n"], 0),
            ([Some(Choice::Before), Some(Choice::Before)], ["2\n", "9\n"], 0),
            ([text("x\ny\n"), text("")], ["x\ny\n", ""], 0),
            ([Some(Choice::Before), None], ["2\n", "mine, too\n"], 1),
            ([None, text("x\ny\n")], ["mine\n", "x\ny\n"], 1),
        ] {
            let (mut sandbox, _) = two_places(conflicts);
            let before = sandbox.tree();
            let settled = settle(&mut sandbox, &choices);
            assert_eq!(settled.success, left == 0, "{settled:?}");
            let expected = TEN.replace("2\n", two).replace("9\n", nine);
            if left == 0 || conflicts == ConflictPolicy::Keep {
                assert_eq!(sandbox.read("a.txt"), expected, "{conflicts:?} {choices:?}");
            }
            let places = open(&sandbox).iter().map(|conflict| conflict.lines.len()).sum::<usize>();
            assert_eq!(places, left, "{conflicts:?} {choices:?}");
            if left == 1 {
                // The place that is left has moved, and can still be settled.
                settle(&mut sandbox, &[Some(Choice::Before)]);
                let settled = sandbox.read("a.txt");
                let expected = match &choices[0] {
                    None => TEN.replace("9\n", nine),
                    Some(_) => TEN.to_owned(),
                };
                assert_eq!(settled, expected, "{conflicts:?} {choices:?}");
                sandbox.undo();
            }
            assert!(sandbox.undo().success);
            assert_eq!(sandbox.tree(), before, "{conflicts:?} {choices:?}");
            assert_eq!(open(&sandbox)[0].lines.len(), 2, "both are open again");
        }
    }
}

#[test]
fn settled_as_it_is_an_undo_opens_it_again_and_changes_nothing() {
    let (mut sandbox, of) = two_places(ConflictPolicy::Keep);
    let before = sandbox.tree();
    let settled = settle(&mut sandbox, &[Some(Choice::Mine), Some(Choice::Mine)]);
    assert_eq!(report(&settled), ["success", "kept a.txt: settled: it stays as it is"]);
    assert_eq!(open(&sandbox), []);
    let undone = sandbox.undo();
    assert_eq!(
        report(&undone),
        ["success", "kept a.txt: its conflict is open again: it stays as it is"]
    );
    assert_eq!((sandbox.tree(), open(&sandbox).len()), (before.clone(), 1));
    assert_eq!(report(&sandbox.redo())[1], "kept a.txt: settled: it stays as it is");
    assert_eq!((sandbox.tree(), open(&sandbox).len()), (before, 0));
    // What was settled as mine is mine: the turn has nothing left in it.
    let request = turn(&sandbox, of);
    assert_eq!(report(&go(&mut sandbox, &request)), ["success"]);
}

#[test]
fn a_file_that_stayed_as_a_whole_is_settled_as_a_whole() {
    for (choice, text) in [
        (Choice::Before, TEN.to_owned()),
        (
            Choice::Mine,
            TEN.replace("2\n", "mine\n").replace("5\n", "five\n").replace("9\n", "mine, too\n"),
        ),
    ] {
        let mut sandbox = Sandbox::in_memory();
        sandbox.write("a.txt", TEN);
        let point = sandbox.prompt("s", "go");
        let agents = TEN.replace("2\n", "two\n").replace("5\n", "five\n").replace("9\n", "nine\n");
        sandbox.agent_writes("s", "a.txt", &agents);
        sandbox.agent_writes("s", "b.txt", "made\n");
        sandbox.turn_end("s");
        let mine = agents.replace("two\n", "mine\n").replace("nine\n", "mine, too\n");
        sandbox.write("a.txt", &mine);
        let policy = RewindRequest { conflicts: ConflictPolicy::File, ..turn(&sandbox, point) };
        let receipt = go(&mut sandbox, &policy);
        assert_eq!(receipt.conflict_lines[0].lines.len(), 2, "the lines are listed all the same");
        assert_eq!(sandbox.read("a.txt"), mine);
        assert_eq!(open(&sandbox)[0].lines, []);
        let before = sandbox.tree();
        assert!(settle(&mut sandbox, &[Some(choice)]).success);
        assert_eq!(sandbox.read("a.txt"), text);
        assert!(sandbox.undo().success);
        assert_eq!(sandbox.tree(), before);
    }
}

/// A file without lines to compare: binary, deleted since, something else since.
#[test]
fn a_conflict_about_a_whole_file_is_settled() {
    type Play = fn(&Sandbox);
    let cases: [(&str, Play, Play); 3] = [
        ("binary", |s| s.write("a", b"\0two"), |s| s.write("a", b"\0mine")),
        ("deleted since", |s| s.write("a", "two\n"), |s| s.remove("a")),
        (
            "a folder since",
            |s| s.write("a", "two\n"),
            |s| {
                s.remove("a");
                fs::create_dir(s.at("a")).unwrap();
            },
        ),
    ];
    for (name, agents, mine) in cases {
        for choice in [Choice::Mine, Choice::Before] {
            let mut sandbox = Sandbox::in_memory();
            sandbox.write("a", "one\n");
            let point = sandbox.prompt("s", "go");
            let at_point = sandbox.tree();
            sandbox.agent_runs("s", "./run", |sandbox| {
                agents(sandbox);
                sandbox.write("b.txt", "made\n");
            });
            sandbox.turn_end("s");
            mine(&sandbox);
            let request = turn(&sandbox, point);
            assert!(!go(&mut sandbox, &request).success, "{name}");
            let before = sandbox.tree();
            assert!(settle(&mut sandbox, &[Some(choice.clone())]).success, "{name}");
            let expected = if choice == Choice::Mine { &before } else { &at_point };
            assert_eq!(sandbox.tree(), *expected, "{name}");
            assert_eq!(open(&sandbox), [], "{name}");
            assert!(sandbox.undo().success, "{name}");
            assert_eq!((sandbox.tree(), open(&sandbox).len()), (before, 1), "{name}");
        }
    }
}

/// A save after the revert: what is settled is merged with it, or is a conflict of its own.
#[test]
fn a_file_that_was_saved_since_is_merged() {
    let (mut sandbox, _) = two_places(ConflictPolicy::Keep);
    let left = sandbox.read("a.txt");
    sandbox.write("a.txt", left.replace("7\n", "seven, mine\n"));
    let settled = settle(&mut sandbox, &[Some(Choice::Before), Some(Choice::Before)]);
    assert_eq!(report(&settled), ["success", "merged a.txt"]);
    assert_eq!(sandbox.read("a.txt"), TEN.replace("7\n", "seven, mine\n"));

    let (mut sandbox, _) = two_places(ConflictPolicy::Keep);
    let left = sandbox.read("a.txt");
    let saved = left.replace("mine\n", "mine again\n");
    sandbox.write("a.txt", &saved);
    let settled = settle(&mut sandbox, &[Some(Choice::Before), Some(Choice::Mine)]);
    assert!(!settled.success, "{settled:?}");
    assert_eq!(sandbox.read("a.txt"), saved, "what was saved stays");
}

#[test]
fn a_newer_operation_without_conflicts_closes_those_of_the_older_one() {
    let (mut sandbox, _) = two_places(ConflictPolicy::Keep);
    assert_eq!(open(&sandbox).len(), 1);
    sandbox.write("other.txt", "one\n");
    let point = sandbox.prompt("s", "again");
    sandbox.agent_writes("s", "other.txt", "two\n");
    sandbox.turn_end("s");
    let request = turn(&sandbox, point);
    assert!(go(&mut sandbox, &request).success);
    assert_eq!(open(&sandbox), []);
    sandbox.undo();
    assert_eq!(open(&sandbox).len(), 1, "after its undo they are those of the last operation");
}
