//! Lines that the agent and others changed, with each policy.

use super::*;

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

/// Lines 2 and 8 are the agent's; line 2 was changed since.
fn overlapping() -> (Sandbox, PointId) {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", TEN);
    let point = sandbox.prompt("s", "go");
    let agents = TEN.replace("2\n", "two\n").replace("8\n", "eight\n");
    sandbox.agent_writes("s", "a.txt", &agents);
    sandbox.agent_writes("s", "b.txt", "made\n");
    sandbox.turn_end("s");
    sandbox.write("a.txt", agents.replace("two\n", "mine\nmine too\n"));
    (sandbox, point)
}

#[test]
fn each_policy_does_what_it_says() {
    let mine = TEN.replace("2\n", "mine\nmine too\n");
    let stays = mine.replace("8\n", "eight\n");
    let marked = "<<<<<<< now\nmine\nmine too\n=======\n2\n>>>>>>> before\n";
    let deleted = "deleted b.txt";
    for (conflicts, expected, text) in [
        (
            ConflictPolicy::Keep,
            vec![
                "not all",
                deleted,
                "merged a.txt",
                "conflict a.txt: both changed the same lines in 1 place: yours stay",
            ],
            mine,
        ),
        (
            ConflictPolicy::File,
            vec!["not all", deleted, "conflict a.txt: both changed the same lines"],
            stays,
        ),
        (ConflictPolicy::Take, vec!["success", "restored a.txt", deleted], TEN.to_owned()),
        (
            ConflictPolicy::Markers,
            vec!["not all", deleted, "merged a.txt", "conflict a.txt: conflict markers in 1 place"],
            TEN.replace("2\n", marked),
        ),
    ] {
        let (mut sandbox, of) = overlapping();
        let request = RewindRequest { conflicts, ..turn(&sandbox, of) };
        let receipt = go(&mut sandbox, &request);
        assert_eq!(report(&receipt), expected, "{conflicts:?}");
        assert_eq!(sandbox.read("a.txt"), text, "{conflicts:?}");
        let places: Vec<_> = receipt.conflict_lines.iter().flat_map(|of| &of.lines).collect();
        assert_eq!(places.is_empty(), conflicts == ConflictPolicy::Take);
        for place in places {
            assert_eq!(place.line, 2, "{conflicts:?}");
            let count = if conflicts == ConflictPolicy::Markers { 6 } else { 2 };
            assert_eq!(place.count, count, "{conflicts:?}");
            assert_eq!(place.mine.0, b"mine\nmine too\n", "{conflicts:?}");
            assert_eq!(place.before.0, b"2\n", "{conflicts:?}");
        }
    }
}

/// What conflicted was left; once it is out of the way, the same revert takes it back.
#[test]
fn lines_that_stayed_can_still_be_taken_back() {
    let (mut sandbox, of) = overlapping();
    let request = turn(&sandbox, of);
    assert!(!go(&mut sandbox, &request).success);
    sandbox.write("a.txt", TEN.replace("2\n", "two\n"));
    let receipt = go(&mut sandbox, &request);
    assert_eq!(report(&receipt), ["success", "restored a.txt"]);
    assert_eq!(sandbox.read("a.txt"), TEN);
    // And nothing is left of the turn.
    assert_eq!(report(&go(&mut sandbox, &request)), ["success"]);
}

/// Two runs of changes: the conflict is where the lines are in the file that stays, not where they
/// would have been between the two.
#[test]
fn a_file_that_stays_has_its_conflicts_at_its_own_lines() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", TEN);
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", TEN.replace("9\n", "nine\n"));
    sandbox.prompt("t", "go");
    let others = TEN.replace("9\n", "another's\n");
    sandbox.agent_writes("t", "a.txt", &others);
    sandbox.agent_writes("s", "a.txt", format!("above\nabove too\n{others}"));
    ["s", "t"].iter().for_each(|session| sandbox.turn_end(session));
    let now = sandbox.read("a.txt");
    let whole = range(&sandbox, point, None, Some(only("s")));
    let request = RewindRequest { conflicts: ConflictPolicy::File, ..whole };
    let receipt = go(&mut sandbox, &request);
    assert_eq!(report(&receipt), ["not all", "conflict a.txt: both changed the same lines"]);
    let [of] = receipt.conflict_lines.as_slice() else { panic!("{receipt:?}") };
    let [place] = of.lines.as_slice() else { panic!("{receipt:?}") };
    assert_eq!((place.line, place.count, &place.mine.0[..]), (11, 1, &b"another's\n"[..]));
    assert_eq!(sandbox.read("a.txt"), now);
}

fn only(session: &str) -> RewindScope {
    RewindScope::Sessions([SessionId::from(session)].into())
}

#[test]
fn an_undo_of_an_older_operation_keeps_later_edits() {
    let (mut sandbox, of) = overlapping();
    let request = turn(&sandbox, of);
    let first = go(&mut sandbox, &request).rewind.unwrap();
    let reverted = sandbox.read("a.txt");
    sandbox.write("a.txt", reverted.replace("10\n", "ten, mine\n"));
    let later = go(&mut sandbox, &restore(of, &["a.txt"])).rewind.unwrap();
    undo(&mut sandbox, later);
    let undone = undo(&mut sandbox, first);
    assert_eq!(report(&undone), ["success", "restored b.txt", "merged a.txt"]);
    let expected = reverted.replace("8\n", "eight\n").replace("10\n", "ten, mine\n");
    assert_eq!(sandbox.read("a.txt"), expected);
    // It is taken back now; a second undo of it has nothing to do, and says so.
    let again = sandbox.rewind(&RewindRequest::new(Target::Operation(first)));
    assert_eq!(
        again.unwrap_err().to_string(),
        takeback_core::rewind::RewindError::TakenBack(first).to_string()
    );
}

#[test]
fn an_unknown_operation_is_an_error() {
    let (mut sandbox, _) = overlapping();
    let unknown = RewindRequest::new(Target::Operation(RewindId(77)));
    let error = sandbox.rewind(&unknown).unwrap_err();
    assert!(matches!(error, takeback_core::rewind::RewindError::NoOperation(RewindId(77))));
}
