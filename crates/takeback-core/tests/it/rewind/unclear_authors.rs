//! Changes that are unclear, and contents that were not captured.

use super::*;

/// `a.txt` changed, `gone.txt` deleted and `made.txt` made while it is not certain by whom.
fn uncertain() -> (Sandbox, PointId) {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "one\n");
    sandbox.write("gone.txt", "gone\n");
    let point = sandbox.prompt("s", "go");
    sandbox.before_shell("s", "make");
    sandbox.write("a.txt", "two\n");
    sandbox.remove("gone.txt");
    sandbox.write("made.txt", "made\n");
    sandbox.prompt("s", "stop");
    sandbox.turn_end("s");
    (sandbox, point)
}

#[test]
fn of_unclear_changes_only_missing_files_are_restored() {
    let (mut sandbox, point) = uncertain();
    let reason = "it is not certain who wrote it; --ambiguous take takes it back";
    assert_eq!(
        report(&sandbox.rewind_to(point)),
        [
            "not all".to_owned(),
            "restored gone.txt".to_owned(),
            format!("ambiguous a.txt: {reason}"),
            format!("ambiguous made.txt: {reason}")
        ]
    );
    assert_eq!(sandbox.read("a.txt"), "two\n");
    assert_eq!(sandbox.read("gone.txt"), "gone\n");
    assert_eq!(sandbox.read("made.txt"), "made\n");
}

#[test]
fn unclear_changes_are_taken_back_on_request() {
    let (mut sandbox, point) = uncertain();
    let take = RewindRequest { ambiguous: AmbiguousPolicy::Take, ..request(point) };
    let receipt = sandbox.rewind(&take).unwrap();
    assert_eq!(
        report(&receipt),
        ["success", "restored a.txt", "restored gone.txt", "deleted made.txt"]
    );
    assert_eq!(sandbox.read("a.txt"), "one\n");
}

/// Of what two sessions may have written, the one alone takes back nothing; both together all.
#[test]
fn unclear_changes_of_only_the_chosen_sessions_are_taken_back() {
    for (chosen, text) in [(&["s"][..], "both\n"), (&["s", "t"], "one\n")] {
        let mut sandbox = Sandbox::in_memory();
        sandbox.write("a.txt", "one\n");
        let point = sandbox.prompt("s", "go");
        sandbox.prompt("t", "go");
        let calls =
            [("s", sandbox.before_shell("s", "make")), ("t", sandbox.before_shell("t", "make"))];
        sandbox.write("a.txt", "both\n");
        for (session, call) in calls {
            sandbox.after(session, &call);
            sandbox.turn_end(session);
        }
        let whose = RewindScope::Sessions(chosen.iter().copied().map(SessionId::from).collect());
        let own = RewindRequest {
            ambiguous: AmbiguousPolicy::TakeOwn,
            scope: Some(whose),
            ..request(point)
        };
        let receipt = sandbox.rewind(&own).unwrap();
        assert_eq!(receipt.ambiguous.len(), 2 - chosen.len(), "{receipt:?}");
        assert_eq!(sandbox.read("a.txt"), text, "{chosen:?}");
    }
}

#[test]
fn uncaptured_contents_are_listed_and_left() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.workspace.limits.edit_capture_max = 4;
    let point = sandbox.prompt("s", "go");
    sandbox.write("large.txt", "changed since the scan\n");
    sandbox.write("a.txt", "a");
    sandbox.agent_writes("s", "large.txt", "after\n");
    sandbox.agent_writes("s", "a.txt", "b");
    sandbox.turn_end("s");
    assert_eq!(
        report(&sandbox.rewind_to(point)),
        [
            "not all",
            "restored a.txt",
            "not captured large.txt: too large to be copied, or over the budget"
        ]
    );
    assert_eq!(sandbox.read("large.txt"), "after\n");
}

#[test]
fn contents_that_cannot_be_saved_are_overwritten_only_on_request() {
    let (mut sandbox, point) = begun("one\n");
    sandbox.agent_writes("s", "a.txt", "two\n");
    sandbox.turn_end("s");
    sandbox.remove("a.txt");
    let made = std::process::Command::new("mkfifo").arg(sandbox.at("a.txt")).status().unwrap();
    assert!(made.success());
    assert_eq!(
        report(&sandbox.rewind_to(point)),
        ["not all", "conflict a.txt: it was changed since"]
    );
    let exact = RewindRequest { exactness: Exactness::Exact, ..request(point) };
    let receipt = sandbox.rewind(&exact).unwrap();
    let reason = "its current contents could not be saved (not a regular file); --discard PATH discards them";
    assert_eq!(report(&receipt), ["not all", &format!("not captured a.txt: {reason}")]);
    let other = BTreeSet::from([path("other.txt")]);
    let receipt = sandbox.rewind(&RewindRequest { discard: other, ..exact.clone() }).unwrap();
    assert!(!receipt.changed_something(), "another path was given up");
    let discard = BTreeSet::from([path("a.txt")]);
    let receipt = sandbox.rewind(&RewindRequest { discard, ..exact }).unwrap();
    assert_eq!(report(&receipt), ["success", "restored a.txt"]);
    assert_eq!(sandbox.read("a.txt"), "one\n");
}
