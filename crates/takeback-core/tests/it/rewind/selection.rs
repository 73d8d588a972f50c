//! Exact rewinds, and those limited to paths or sessions.

use super::*;

#[test]
fn an_exact_rewind_restores_everything_by_any_author() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "one\n");
    sandbox.write("b.txt", "one\n");
    sandbox.write("c.txt", "one\n");
    fs::create_dir(sandbox.at("empty")).unwrap();
    let before = sandbox.tree();
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", "two\n");
    sandbox.write("a.txt", "mine\n");
    sandbox.turn_end("s");
    sandbox.write("b.txt", "mine, and no scan has seen it\n");
    sandbox.remove("c.txt");
    sandbox.remove("empty");
    sandbox.write("new/mine.txt", "mine\n");
    let after = sandbox.tree();
    let exact = RewindRequest { exactness: Exactness::Exact, ..request(point) };
    let receipt = sandbox.rewind(&exact).unwrap();
    assert_eq!(
        report(&receipt),
        [
            "success",
            "restored a.txt",
            "restored b.txt",
            "restored c.txt",
            "restored empty",
            "deleted new",
            "deleted new/mine.txt"
        ]
    );
    assert_eq!(sandbox.tree(), before);
    sandbox.undo();
    assert_eq!(sandbox.tree(), after, "and all of it can be had back");
}

#[test]
fn an_exact_rewind_leaves_paths_that_were_not_covered() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write(".takebackignore", "out/\n");
    sandbox.write("out/a.txt", "a\n");
    let point = sandbox.prompt("s", "go");
    sandbox.write(".takebackignore", "");
    sandbox.turn_end("s");
    let exact = RewindRequest { exactness: Exactness::Exact, ..request(point) };
    let receipt = sandbox.rewind(&exact).unwrap();
    let reason = "it was not covered before, so what was there is not known";
    assert_eq!(
        report(&receipt),
        [
            "not all".to_owned(),
            "restored .takebackignore".to_owned(),
            format!("not captured out: {reason}"),
            format!("not captured out/a.txt: {reason}")
        ]
    );
    assert_eq!(sandbox.read("out/a.txt"), "a\n");
}

// --- which paths, and whose ---------------------------------------------------------------------

#[test]
fn only_the_requested_paths_are_taken_back() {
    let all = ["a.txt", "lib/b.txt", "lib/c.rs", "lib/deep/d.rs", "src/e.rs"];
    for (patterns, taken) in [
        (vec!["a.txt"], vec!["a.txt"]),
        (vec!["./a.txt", "src"], vec!["a.txt", "src/e.rs"]),
        (vec!["lib"], vec!["lib/b.txt", "lib/c.rs", "lib/deep/d.rs"]),
        (vec!["lib/"], vec!["lib/b.txt", "lib/c.rs", "lib/deep/d.rs"]),
        (vec!["**/*.rs"], vec!["lib/c.rs", "lib/deep/d.rs", "src/e.rs"]),
        (vec!["lib/*.rs"], vec!["lib/c.rs"]),
        (vec!["*.rs"], vec![]),
        (vec!["li"], vec![]),
    ] {
        let mut sandbox = Sandbox::in_memory();
        for name in all {
            sandbox.write(name, "one\n");
        }
        let point = sandbox.prompt("s", "go");
        for name in all {
            sandbox.agent_writes("s", name, "two\n");
        }
        sandbox.turn_end("s");
        let paths = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        let receipt = sandbox.rewind(&RewindRequest { paths, ..request(point) }).unwrap();
        assert_eq!(
            receipt.restored_files,
            taken.iter().map(|taken| path(taken)).collect::<Vec<_>>()
        );
        for name in all {
            let expected = if taken.contains(&name) { "one\n" } else { "two\n" };
            assert_eq!(sandbox.read(name), expected, "{name} with {patterns:?}");
        }
    }
    let (mut sandbox, point) = begun("one\n");
    let bad = RewindRequest { paths: vec!["a[".to_owned()], ..request(point) };
    assert!(matches!(sandbox.rewind(&bad), Err(RewindError::Pattern { .. })));
}

/// Three sessions at work: `s`, `child` that continues it, and `other`.
fn three_sessions() -> (Sandbox, PointId) {
    let mut sandbox = Sandbox::in_memory();
    for name in ["s", "child", "grandchild", "other"] {
        sandbox.write(name, "one\n");
    }
    let point = sandbox.prompt("s", "go");
    for (session, parent) in [("child", "s"), ("grandchild", "child")] {
        sandbox.tell(&AgentEvent::SessionStart {
            session: SessionId::from(session),
            agent: None,
            parent: Some(SessionId::from(parent)),
            owner: None,
            model: None,
        });
    }
    for session in ["s", "child", "grandchild", "other"] {
        sandbox.agent_writes(session, session, "two\n");
        sandbox.turn_end(session);
    }
    (sandbox, point)
}

#[test]
fn a_point_takes_back_its_session_and_those_that_continue_it() {
    let (mut sandbox, point) = three_sessions();
    assert_eq!(
        report(&sandbox.rewind_to(point)),
        [
            "success",
            "restored child",
            "restored grandchild",
            "restored s",
            "kept other: changed by session other"
        ]
    );
}

#[test]
fn the_sessions_to_take_back_can_be_chosen() {
    let sessions = |names: &[&str]| {
        RewindScope::Sessions(names.iter().map(|name| SessionId::from(*name)).collect())
    };
    for (whose, taken) in [
        (RewindScope::AllAgents, &["child", "grandchild", "other", "s"][..]),
        (sessions(&["other"]), &["other"]),
        (sessions(&["other", "child"]), &["child", "other"]),
        (sessions(&["unknown"]), &[]),
    ] {
        let (mut sandbox, point) = three_sessions();
        let receipt = sandbox
            .rewind(&RewindRequest { scope: Some(whose.clone()), ..request(point) })
            .unwrap();
        let taken: Vec<_> = taken.iter().map(|taken| path(taken)).collect();
        assert_eq!(receipt.restored_files, taken, "{whose:?}");
        assert!(receipt.success);
    }
}

#[test]
fn a_manual_point_takes_back_all_agents() {
    let mut sandbox = Sandbox::in_memory();
    for name in ["a", "b", "mine"] {
        sandbox.write(name, "one\n");
    }
    let point = checkpoint(&mut sandbox.workspace, Some("good")).unwrap().point.unwrap();
    for session in ["a", "b"] {
        sandbox.prompt(session, "go");
        sandbox.agent_writes(session, session, "two\n");
    }
    sandbox.write("mine", "mine\n");
    for session in ["a", "b"] {
        sandbox.turn_end(session);
    }
    assert_eq!(
        report(&sandbox.rewind_to(point)),
        ["success", "restored a", "restored b", "kept mine: changed by you"]
    );
}

#[test]
fn a_later_point_leaves_earlier_changes() {
    let (mut sandbox, _) = begun("one\n");
    sandbox.agent_writes("s", "a.txt", "two\n");
    sandbox.agent_writes("s", "b.txt", "b\n");
    let second = sandbox.prompt("s", "more");
    sandbox.agent_writes("s", "a.txt", "three\n");
    sandbox.turn_end("s");
    assert_eq!(report(&sandbox.rewind_to(second)), ["success", "restored a.txt"]);
    assert_eq!(sandbox.read("a.txt"), "two\n");
    assert_eq!(sandbox.read("b.txt"), "b\n");
}
