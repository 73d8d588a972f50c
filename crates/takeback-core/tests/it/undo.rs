//! Every rewind can be undone, to any depth, whatever happened since.

use std::fs;

use takeback_core::rewind::Exactness;
use takeback_core::rewind::{Receipt, RewindError, RewindRequest, Target};
use takeback_store::{PointId, PointKind};
use takeback_testkit::Sandbox;

use crate::text::{assert_consistent, report};

/// Three prompts, each of which makes `a.txt` say its number and a file of that name; with their
/// points. Before the first, `a.txt` says 0.
fn three_turns() -> (Sandbox, [PointId; 3]) {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "0\n");
    let points = [1, 2, 3].map(|number| {
        let point = sandbox.prompt("s", &format!("turn {number}"));
        sandbox.agent_writes("s", "a.txt", format!("{number}\n"));
        sandbox.agent_writes("s", &format!("made-{number}"), "made\n");
        sandbox.turn_end("s");
        point
    });
    (sandbox, points)
}

fn state(sandbox: &Sandbox) -> String {
    let made: String = [1, 2, 3]
        .iter()
        .filter(|n| sandbox.exists(&format!("made-{n}")))
        .map(ToString::to_string)
        .collect();
    format!("{} [{made}]", sandbox.read("a.txt").trim_end())
}

#[test]
fn undo_and_redo_go_any_number_of_levels() {
    let (mut sandbox, points) = three_turns();
    let mut states = vec![state(&sandbox)];
    for point in points.iter().rev() {
        sandbox.rewind_to(*point);
        states.push(state(&sandbox));
    }
    assert_eq!(states, ["3 [123]", "2 [12]", "1 [1]", "0 []"]);
    for expected in states.iter().rev().skip(1) {
        let receipt = sandbox.undo();
        assert!(receipt.success, "{receipt:?}");
        assert_eq!(state(&sandbox), *expected);
        sandbox.reopen();
    }
    let nothing = sandbox.rewind(&RewindRequest::new(Target::Undo));
    assert!(matches!(nothing, Err(RewindError::NothingToUndo)), "{nothing:?}");
    for expected in states.iter().skip(1) {
        assert!(sandbox.redo().success);
        assert_eq!(state(&sandbox), *expected);
        sandbox.reopen();
    }
    let nothing = sandbox.rewind(&RewindRequest::new(Target::Redo));
    assert!(matches!(nothing, Err(RewindError::NothingToRedo)), "{nothing:?}");
    sandbox.undo();
    sandbox.undo();
    sandbox.redo();
    assert_eq!(state(&sandbox), "1 [1]");
    assert_consistent(&sandbox);
}

#[test]
fn an_undo_restores_the_tree_exactly() {
    let (mut sandbox, points) = three_turns();
    sandbox.write("a.txt", "mine\n");
    sandbox.write("mine.txt", "mine\n");
    sandbox.set_mode("made-2", 0o755);
    let before = sandbox.tree();
    sandbox.rewind_to(points[0]);
    assert_ne!(sandbox.tree(), before);
    assert!(sandbox.undo().success);
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn an_undo_works_after_new_prompts_and_keeps_what_came_since() {
    let (mut sandbox, points) = three_turns();
    sandbox.rewind_to(points[1]);
    assert_eq!(state(&sandbox), "1 [1]");
    sandbox.write("mine.txt", "mine\n");
    sandbox.prompt("s", "something else");
    sandbox.agent_writes("s", "new.txt", "new\n");
    sandbox.turn_end("s");
    sandbox.prompt("t", "another session");
    sandbox.agent_writes("t", "other.txt", "other\n");
    sandbox.turn_end("t");
    sandbox.reopen();
    let receipt = sandbox.undo();
    assert_eq!(
        report(&receipt),
        ["success", "restored a.txt", "restored made-2", "restored made-3"]
    );
    assert_eq!(state(&sandbox), "3 [123]");
    for name in ["mine.txt", "new.txt", "other.txt"] {
        assert!(sandbox.exists(name), "{name}");
    }
}

#[test]
fn an_undo_merges_with_later_work_or_leaves_it() {
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n8\n{last}\n");
    let mut sandbox = Sandbox::new();
    sandbox.write("beside.txt", lines("1", "9"));
    sandbox.write("over.txt", lines("1", "9"));
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "beside.txt", lines("one", "9"));
    sandbox.agent_writes("s", "over.txt", lines("one", "9"));
    sandbox.turn_end("s");
    sandbox.rewind_to(point);
    sandbox.write("beside.txt", lines("1", "mine"));
    sandbox.write("over.txt", lines("mine", "9"));
    assert_eq!(
        report(&sandbox.undo()),
        ["not all", "merged beside.txt", "conflict over.txt: both changed the same lines"]
    );
    assert_eq!(sandbox.read("beside.txt"), lines("one", "mine"));
    assert_eq!(sandbox.read("over.txt"), lines("mine", "9"));
}

#[test]
fn an_exact_undo_restores_everything_over_later_edits() {
    let (mut sandbox, points) = three_turns();
    sandbox.rewind_to(points[0]);
    sandbox.write("a.txt", "mine\n");
    sandbox.write("made-1", "mine\n");
    sandbox.write("mine.txt", "mine\n");
    assert!(exactly(&mut sandbox, Target::Undo).success);
    assert_eq!(state(&sandbox), "3 [123]");
    assert_eq!(sandbox.read("made-1"), "made\n");
    assert_eq!(sandbox.read("mine.txt"), "mine\n", "the rewind had not touched it");
    sandbox.redo();
    assert_eq!(sandbox.read("a.txt"), "mine\n");
}

#[test]
fn a_redo_works_after_new_prompts() {
    let (mut sandbox, points) = three_turns();
    sandbox.rewind_to(points[2]);
    sandbox.undo();
    sandbox.prompt("s", "more");
    sandbox.agent_writes("s", "b.txt", "b\n");
    sandbox.turn_end("s");
    sandbox.redo();
    assert_eq!(state(&sandbox), "2 [12]");
    assert!(sandbox.exists("b.txt"));
}

// --- only what still has an effect --------------------------------------------------------------

/// Each script starts after the three turns. `to N` rewinds to the point before turn N; behind the
/// arrow is the state that follows, or why nothing is done.
#[test]
fn rewinds_undos_and_redos_lead_to_the_expected_state() {
    for script in [
        // A new rewind ends what could be redone.
        "to 3 -> 2 [12], undo -> 3 [123], to 2 -> 1 [1], redo -> nothing to redo, \
         undo -> 3 [123], redo -> 1 [1]",
        // A second rewind to the same point finds nothing to do.
        "to 2 -> 1 [1], to 2 -> nothing to do",
        // After it, an undo must be repeated: it may not be meant for the rewind before.
        "to 2 -> 1 [1], to 2 -> nothing to do, undo -> last rewind did nothing, undo -> 3 [123]",
        // Unless another rewind did something since.
        "to 2 -> 1 [1], to 2 -> nothing to do, to 1 -> 0 [], undo -> 1 [1], undo -> 3 [123]",
        // A rewind to a later point goes forward.
        "to 1 -> 0 [], to 3 -> 2 [12], to 2 -> 1 [1], undo -> 2 [12], undo -> 0 []",
    ] {
        let (mut sandbox, points) = three_turns();
        for step in script.split(", ") {
            let (action, expected) = step.split_once(" -> ").unwrap();
            let before = state(&sandbox);
            let target = match action {
                "undo" => Target::Undo,
                "redo" => Target::Redo,
                to => Target::Point(points[to[3..].parse::<usize>().unwrap() - 1]),
            };
            let answer = match sandbox.rewind(&RewindRequest::new(target)) {
                Ok(receipt) => {
                    assert!(receipt.success, "{script}: {step}: {receipt:?}");
                    let is_empty = !receipt.changed_something();
                    if is_empty { "nothing to do".to_owned() } else { state(&sandbox) }
                }
                Err(RewindError::NothingToRedo) => "nothing to redo".to_owned(),
                Err(RewindError::RewoundNothing) => "last rewind did nothing".to_owned(),
                Err(error) => panic!("{script}: {step}: {error:?}"),
            };
            assert_eq!(answer, expected, "{script}: {step}");
            if answer.contains("nothing") {
                assert_eq!(state(&sandbox), before, "{script}: {step}");
            }
            sandbox.reopen();
        }
    }
}

#[test]
fn several_rewinds_lead_where_one_would() {
    let (mut sandbox, points) = three_turns();
    let orders: [&[usize]; 6] = [&[0], &[2, 1, 0], &[2, 0], &[0, 0], &[1, 0], &[1, 2, 0]];
    for order in orders {
        for at in order {
            sandbox.rewind_to(points[*at]);
        }
        assert_eq!(state(&sandbox), "0 []", "{order:?}");
        for _ in order {
            if let Err(error) = sandbox.rewind(&RewindRequest::new(Target::Undo)) {
                let is_known =
                    matches!(error, RewindError::NothingToUndo | RewindError::RewoundNothing);
                assert!(is_known, "{error:?}");
            }
        }
        assert_eq!(state(&sandbox), "3 [123]", "{order:?}, undone");
    }
}

#[test]
fn work_after_a_rewind_can_be_taken_back_alone() {
    let (mut sandbox, points) = three_turns();
    sandbox.rewind_to(points[1]);
    let point = sandbox.prompt("s", "another way");
    sandbox.agent_writes("s", "a.txt", "other\n");
    sandbox.agent_writes("s", "made-2", "other\n");
    sandbox.turn_end("s");
    sandbox.rewind_to(point);
    assert_eq!(state(&sandbox), "1 [1]");
    sandbox.undo();
    assert_eq!(sandbox.read("a.txt"), "other\n");
    sandbox.rewind_to(points[0]);
    assert_eq!(state(&sandbox), "0 []");
}

// --- the safety point ---------------------------------------------------------------------------

#[test]
fn every_rewind_has_a_safety_point() {
    let (mut sandbox, points) = three_turns();
    sandbox.write("a.txt", "3\n");
    sandbox.write("mine.txt", "mine\n");
    let before = sandbox.tree();
    for exactness in [Exactness::AgentsOnly, Exactness::Exact] {
        let receipt = sandbox.rewind_to(points[0]);
        let safety = receipt.safety_point.expect("there is one");
        let all = sandbox.workspace.store.points().unwrap();
        let point = all.iter().find(|point| point.id == safety).expect("it is listed");
        assert_eq!((point.kind, &point.session), (PointKind::Safety, &None));
        assert_eq!(point.description, format!("before the rewind to {}", points[0]));
        let back = RewindRequest { exactness, ..RewindRequest::new(Target::Point(safety)) };
        assert!(sandbox.rewind(&back).unwrap().success);
        assert_eq!(sandbox.tree(), before, "{exactness:?}");
    }
}

fn exactly(sandbox: &mut Sandbox, target: Target) -> Receipt {
    let exact = RewindRequest { exactness: Exactness::Exact, ..RewindRequest::new(target) };
    sandbox.rewind(&exact).unwrap()
}

/// Also where the rewind that made the point did not touch what has changed since.
#[test]
fn an_exact_rewind_to_a_safety_point_is_exact() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "0\n");
    let first = sandbox.prompt("s", "make docs");
    sandbox.agent_runs("s", "make docs", |s| s.write("docs/index.md", "# Docs\n"));
    let with_docs = sandbox.prompt("s", "remove docs");
    sandbox.agent_runs("s", "rm -r docs; make", |s| {
        s.remove("docs");
        s.write("a.txt", "4\n");
    });
    sandbox.turn_end("s");
    let before = sandbox.tree();
    let safety = exactly(&mut sandbox, Target::Point(first)).safety_point.expect("there is one");
    assert!(exactly(&mut sandbox, Target::Point(with_docs)).success);
    assert!(sandbox.exists("docs/index.md"));
    sandbox.write("mine.txt", "mine\n");
    let receipt = exactly(&mut sandbox, Target::Point(safety));
    assert!(receipt.is_whole(), "{receipt:?}");
    assert_eq!(sandbox.tree(), before);
}

/// A rewind of an agent's work looks only at what it may touch.
#[test]
fn an_exact_rewind_to_a_safety_point_keeps_unscanned_paths() {
    let (mut sandbox, points) = three_turns();
    sandbox.write("mine.txt", "before\n");
    let safety = sandbox.rewind_to(points[0]).safety_point.expect("there is one");
    let receipt = exactly(&mut sandbox, Target::Point(safety));
    assert!(receipt.success);
    let kept: Vec<_> = receipt.kept_files.iter().map(|note| note.path.display()).collect();
    assert_eq!((kept, sandbox.read("mine.txt").as_str()), (vec!["mine.txt".into()], "before\n"));
    assert!(receipt.kept_files[0].reason.contains("may have changed before this point"));

    let safety = sandbox.rewind_to(points[0]).safety_point.expect("there is one");
    sandbox.prompt("s", "a look at everything");
    sandbox.turn_end("s");
    sandbox.write("mine.txt", "after\n");
    let receipt = exactly(&mut sandbox, Target::Point(safety));
    assert!(receipt.is_whole(), "{receipt:?}");
    assert_eq!(sandbox.read("mine.txt"), "before\n");
}

#[test]
fn an_unrecorded_save_survives_a_rewind() {
    let mut sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", "two\n");
    sandbox.turn_end("s");
    fs::write(sandbox.at("a.txt"), "saved a moment ago\n").unwrap();
    exactly(&mut sandbox, Target::Point(point));
    assert_eq!(sandbox.read("a.txt"), "one\n");
    sandbox.undo();
    assert_eq!(sandbox.read("a.txt"), "saved a moment ago\n");
}

/// Messages rely on it: `undo` and `redo` have no `--ambiguous`.
#[test]
fn nothing_of_an_undo_is_unclear() {
    let (mut sandbox, points) = three_turns();
    sandbox.rewind_to(points[1]);
    sandbox.prompt("s", "go");
    sandbox.before_shell("s", "make");
    sandbox.write("a.txt", "unclear\n");
    sandbox.write("made-3", "unclear\n");
    sandbox.prompt("s", "stop");
    sandbox.turn_end("s");
    let receipt = sandbox.undo();
    assert_eq!(receipt.ambiguous, []);
    assert!(!receipt.conflicts.is_empty(), "what came since stays: {receipt:?}");
    assert_eq!(sandbox.read("a.txt"), "unclear\n");
}
