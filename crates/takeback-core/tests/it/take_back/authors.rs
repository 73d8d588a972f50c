//! Whose changes a turn, a call and a range are: subagents, other sessions in between, open calls,
//! imports, chosen paths.

use takeback_core::AgentEvent;
use takeback_core::exchange::{
    BundleFile, BundleLimits, IgnoredPaths, ImportMode, Selection, import,
};
use takeback_core::rewind::AmbiguousPolicy;

use super::*;
use crate::exchange::exported;

#[test]
fn a_turn_has_the_changes_of_its_subagents() {
    let mut sandbox = Sandbox::in_memory();
    for name in ["a", "b", "c"] {
        sandbox.write(name, "one\n");
    }
    let first = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a", "two\n");
    sandbox.tell(&AgentEvent::SessionStart {
        session: SessionId::from("s/explore"),
        agent: None,
        parent: Some(SessionId::from("s")),
        owner: None,
        model: None,
    });
    sandbox.agent_writes("s/explore", "b", "two\n");
    sandbox.turn_end("s/explore");
    sandbox.turn_end("s");
    let second = sandbox.prompt("s", "go on");
    sandbox.agent_writes("s/explore", "c", "two\n");
    sandbox.turn_end("s");
    for (of, expected) in [
        (first, vec!["success", "restored a", "restored b"]),
        (second, vec!["success", "restored c"]),
    ] {
        let request = turn(&sandbox, of);
        assert_eq!(there_and_back(&mut sandbox, &request).0, expected);
    }
    let both = range(&sandbox, first, None, None);
    let expected = ["success", "restored a", "restored b", "restored c"];
    assert_eq!(there_and_back(&mut sandbox, &both).0, expected);
    // The subagent's call alone.
    let request = call(&sandbox, "s/explore", "call-2").unwrap();
    assert_eq!(there_and_back(&mut sandbox, &request).0, ["success", "restored b"]);
}

#[test]
fn another_sessions_changes_stay() {
    let text = |lines: [&str; 3]| lines.map(|line| format!("{line}\n\n\n")).concat();
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a", text(["1", "2", "3"]));
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a", text(["s", "2", "3"]));
    sandbox.prompt("t", "go");
    sandbox.agent_writes("t", "a", text(["s", "t", "3"]));
    sandbox.agent_writes("t", "b", "the other's\n");
    sandbox.agent_writes("s", "a", text(["s", "t", "s"]));
    ["s", "t"].iter().for_each(|session| sandbox.turn_end(session));
    let request = turn(&sandbox, point);
    let receipt = go(&mut sandbox, &request);
    assert_eq!(report(&receipt), ["success", "merged a"]);
    assert_eq!(sandbox.read("a"), text(["1", "t", "3"]));
    assert!(sandbox.exists("b"));
    undo(&mut sandbox, receipt.rewind.unwrap());
    // A range of all agents has the other's too.
    let all = range(&sandbox, point, None, Some(RewindScope::AllAgents));
    assert_eq!(there_and_back(&mut sandbox, &all).0, ["success", "restored a", "deleted b"]);
}

#[test]
fn one_call_of_a_turn_is_taken_back_and_its_neighbours_stay() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a", "1\n2\n3\n");
    sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a", "one\n2\n3\n");
    sandbox.agent_writes("s", "a", "one\n2\nthree\n");
    sandbox.agent_writes("s", "b", "made\n");
    sandbox.before_shell("s", "true");
    sandbox.after("s", "call-4");
    sandbox.turn_end("s");
    for (id, reported, a, b) in [
        ("call-1", "merged a", "1\n2\nthree\n", true),
        ("call-2", "restored a", "one\n2\n3\n", true),
        ("call-3", "deleted b", "one\n2\nthree\n", false),
    ] {
        let request = call(&sandbox, "s", id).unwrap();
        let receipt = go(&mut sandbox, &request);
        assert_eq!(report(&receipt), ["success", reported], "{id}");
        assert_eq!((sandbox.read("a").as_str(), sandbox.exists("b")), (a, b), "{id}");
        undo(&mut sandbox, receipt.rewind.unwrap());
    }
    assert!(call(&sandbox, "s", "call-4").is_none(), "it changed nothing");
}

#[test]
fn a_range_ends_before_its_second_point() {
    let mut sandbox = Sandbox::in_memory();
    let points: Vec<PointId> = (0..4)
        .map(|number| {
            let point = sandbox.prompt("s", &format!("turn {number}"));
            sandbox.agent_writes("s", &format!("{number}"), "made\n");
            sandbox.turn_end("s");
            point
        })
        .collect();
    for (from, to, expected) in [
        (0, Some(2), vec!["success", "deleted 0", "deleted 1"]),
        (1, Some(1), vec!["success"]),
        (2, None, vec!["success", "deleted 2", "deleted 3"]),
    ] {
        let request = range(&sandbox, points[from], to.map(|to| points[to]), None);
        assert_eq!(there_and_back(&mut sandbox, &request).0, expected, "{from} to {to:?}");
    }
}

#[test]
fn what_an_open_call_may_have_written_is_unclear() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a", "one\n");
    sandbox.write("gone", "gone\n");
    let point = sandbox.prompt("s", "go");
    sandbox.before_shell("s", "make");
    sandbox.write("a", "two\n");
    sandbox.write("made", "made\n");
    sandbox.remove("gone");
    sandbox.prompt("s", "stop");
    sandbox.turn_end("s");
    let unclear = "it is not certain who wrote it; --ambiguous take takes it back";
    for request in [turn(&sandbox, point), call(&sandbox, "s", "call-1").unwrap()] {
        let (reported, _) = there_and_back(&mut sandbox, &request);
        assert_eq!(
            reported,
            [
                "not all".to_owned(),
                "restored gone".to_owned(),
                format!("ambiguous a: {unclear}"),
                format!("ambiguous made: {unclear}"),
            ]
        );
        let taken = RewindRequest { ambiguous: AmbiguousPolicy::Take, ..request };
        assert_eq!(
            there_and_back(&mut sandbox, &taken).0,
            ["success", "restored a", "restored gone", "deleted made"]
        );
    }
    // A restore asks for the bytes, not for their author.
    assert_eq!(there_and_back(&mut sandbox, &restore(point, &["a"])).0, ["success", "restored a"]);
}

#[test]
fn only_the_requested_paths_are_taken_back() {
    let all = ["a.txt", "lib/b.txt", "lib/c.rs", "lib/deep/d.rs"];
    for (patterns, taken) in [
        (&["a.txt"][..], &["a.txt"][..]),
        (&["lib"], &["lib/b.txt", "lib/c.rs", "lib/deep/d.rs"]),
        (&["**/*.rs"], &["lib/c.rs", "lib/deep/d.rs"]),
        (&["nowhere"], &[]),
    ] {
        let mut sandbox = Sandbox::in_memory();
        all.iter().for_each(|name| sandbox.write(name, "one\n"));
        let point = sandbox.prompt("s", "go");
        all.iter().for_each(|name| sandbox.agent_writes("s", name, "two\n"));
        sandbox.turn_end("s");
        let paths: Vec<String> = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        let expected: Vec<String> = ["success".to_owned()]
            .into_iter()
            .chain(taken.iter().map(|name| format!("restored {name}")))
            .collect();
        let reverted = RewindRequest { paths, ..turn(&sandbox, point) };
        assert_eq!(there_and_back(&mut sandbox, &reverted).0, expected, "{patterns:?}");
        assert_eq!(there_and_back(&mut sandbox, &restore(point, patterns)).0, expected);
    }
}

#[test]
fn deleted_folders_come_back_by_name_or_glob() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("src/deep/a.rs", "a\n");
    sandbox.write("src/b.rs", "b\n");
    sandbox.write("src/c.txt", "c\n");
    let point = sandbox.prompt("s", "go");
    sandbox.turn_end("s");
    sandbox.remove("src");
    for (paths, expected) in [
        (&["src"][..], &["src", "src/b.rs", "src/c.txt", "src/deep", "src/deep/a.rs"][..]),
        (&["src/c.txt"], &["src/c.txt"]),
        (&["**/*.rs"], &["src/b.rs", "src/deep/a.rs"]),
    ] {
        let before = sandbox.tree();
        let receipt = go(&mut sandbox, &restore(point, paths));
        assert!(receipt.success, "{receipt:?}");
        for name in expected {
            assert!(sandbox.exists(name), "{name} with {paths:?}");
        }
        undo(&mut sandbox, receipt.rewind.unwrap());
        assert_eq!(sandbox.tree(), before, "{paths:?}");
    }
}

/// An imported session did nothing here, so a range of all agents does not have it. Its own turn is taken
/// back only where this workspace has what it made.
#[test]
fn an_imported_session_is_taken_back_only_by_its_name() {
    let mut there = Sandbox::new();
    there.write("a.txt", "one\n");
    there.prompt("s", "go");
    there.agent_writes("s", "a.txt", "two\n");
    there.turn_end("s");
    let (file, _) = exported(&mut there, Selection::Everything, IgnoredPaths::LeaveOut);

    let mut here = Sandbox::new();
    here.write("a.txt", "two\n");
    let own = here.prompt("s", "mine");
    here.agent_writes("s", "b.txt", "made here\n");
    here.turn_end("s");
    let bundle = BundleFile::read(file, &BundleLimits::default()).unwrap();
    import(&mut here.workspace, &bundle, ImportMode::ForReal).unwrap();
    let points = here.workspace.store.points().unwrap();
    let imported = points.iter().find(|point| point.description == "go").unwrap().id;
    let request = turn(&here, imported);
    assert_eq!(there_and_back(&mut here, &request).0, ["success", "restored a.txt"]);
    let request = turn(&here, own);
    assert_eq!(there_and_back(&mut here, &request).0, ["success", "deleted b.txt"]);
    let all = range(&here, own, None, Some(RewindScope::AllAgents));
    assert_eq!(there_and_back(&mut here, &all).0, ["success", "deleted b.txt"]);
}
