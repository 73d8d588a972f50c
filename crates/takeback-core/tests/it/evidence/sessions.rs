//! Background tasks, subagents and several sessions at a time.

use super::*;

#[test]
fn with_a_dev_server_named_edits_are_taken_back_and_unclear_ones_stay() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "1\n2\n3\n4\n5\n");
    let point = sandbox.prompt("s", "go");
    let server = sandbox.before_shell("s", "npm run dev");
    sandbox.after_as("s", &server, Outcome::Background);
    sandbox.agent_writes("s", "a.txt", "one\n2\n3\n4\n5\n");
    sandbox.write("a.txt", "one\n2\n3\n4\nwhose?\n");
    sandbox.turn_end("s");
    assert_eq!(
        report(&sandbox.rewind_to(point)),
        [
            "not all",
            "merged a.txt",
            "ambiguous a.txt: it is not certain who wrote it; --ambiguous take takes it back"
        ]
    );
    assert_eq!(sandbox.read("a.txt"), "1\n2\n3\n4\nwhose?\n");
}

#[test]
fn an_idle_background_task_is_not_blamed_for_a_users_files() {
    let (mut sandbox, _) = dated();
    let point = sandbox.prompt("s", "go");
    let server = sandbox.before_shell("s", "npm run dev");
    sandbox.after_as("s", &server, Outcome::Background);
    sandbox.milliseconds_pass(2_000);
    sandbox.write("cache.bin", "warm\n");
    sandbox.turn_end("s");
    assert_eq!(authors(&sandbox, "cache.bin"), [format!("s {server} Bash open window")]);
    sandbox.milliseconds_pass(3_600_000);
    sandbox.write("mine.txt", "mine\n");
    sandbox.write("cache.bin", "hot\n");
    sandbox.prompt("s", "go on");
    assert_eq!(authors(&sandbox, "mine.txt"), ["human"]);
    assert_eq!(
        authors(&sandbox, "cache.bin").last().unwrap(),
        &format!("s {server} Bash open window"),
        "it has changed that before"
    );
    assert_eq!(
        report(&sandbox.rewind_to(point)),
        [
            "not all",
            "kept mine.txt: changed by you",
            "ambiguous cache.bin: it is not certain who wrote it; --ambiguous take takes it back"
        ]
    );
}

#[test]
fn the_work_of_a_background_subagent_after_the_turn_belongs_to_the_parents_prompt() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "before\n");
    let point = sandbox.prompt("s", "go");
    sandbox.tell(&AgentEvent::SessionStart {
        session: "s/agent".into(),
        agent: None,
        parent: Some("s".into()),
        owner: None,
        model: None,
    });
    sandbox.turn_end("s");
    sandbox.agent_writes("s/agent", "a.txt", "after\n");
    sandbox.session_end("s/agent");
    assert_eq!(sandbox.workspace.store.points().unwrap().len(), 1, "the prompt's");
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "restored a.txt"]);
}

#[test]
fn an_agent_that_continues_by_itself_makes_no_point() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "before\n");
    let point = sandbox.prompt("s", "go");
    sandbox.turn_end("s");
    // A background task has ended, and the agent continues.
    sandbox.agent_writes("s", "a.txt", "after\n");
    sandbox.turn_end("s");
    assert_eq!(sandbox.workspace.store.points().unwrap().len(), 1, "the prompt's");
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "restored a.txt"]);
}

// --- reopened rewinds ---------------------------------------------------------------------------

fn only(session: &str) -> RewindScope {
    RewindScope::Sessions([SessionId::from(session)].into())
}

#[test]
fn reopening_a_rewind_restores_only_the_chosen_sessions_work() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("f", "X0\n");
    let base = sandbox.prompt("S0", "begin");
    sandbox.agent_writes("S0", "f", "X1\n");
    let m0 = sandbox.prompt("S0", "next");
    sandbox.prompt("S5", "go");
    sandbox.agent_writes("S5", "f", "X2\n");
    sandbox.turn_end("S5");
    sandbox.turn_end("S0");
    let exact = RewindRequest { exactness: Exactness::Exact, ..take(base) };
    assert!(sandbox.rewind(&exact).unwrap().success);
    assert_eq!(sandbox.read("f"), "X0\n");
    assert!(sandbox.rewind_to(m0).success);
    assert_eq!(sandbox.read("f"), "X1\n", "the person had taken X2 back");
    assert!(sandbox.undo().success);
    assert_eq!(sandbox.read("f"), "X0\n");
}

#[test]
fn what_another_session_did_before_the_point_stays_taken_back() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("f", "1\n2\n3\n4\n5\n");
    let base = sandbox.prompt("S5", "begin");
    sandbox.agent_writes("S5", "f", "five\n2\n3\n4\n5\n");
    sandbox.prompt("S0", "go");
    sandbox.agent_writes("S0", "f", "five\n2\n3\n4\nzero\n");
    let m0 = sandbox.prompt("S0", "next");
    sandbox.turn_end("S5");
    sandbox.turn_end("S0");
    let exact = RewindRequest { exactness: Exactness::Exact, ..take(base) };
    assert!(sandbox.rewind(&exact).unwrap().success);
    assert!(sandbox.rewind_to(m0).success);
    assert_eq!(sandbox.read("f"), "1\n2\n3\n4\nzero\n");
}

#[test]
fn a_named_path_wins_over_an_open_shell_of_another_session() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("f", "here\n");
    let point = sandbox.prompt("S0", "go");
    sandbox.before_shell("S0", "sleep 100");
    sandbox.prompt("S5", "delete f");
    let delete = sandbox.before_edit("S5", &["f"]);
    sandbox.remove("f");
    sandbox.after("S5", &delete);
    assert_eq!(authors(&sandbox, "f"), [format!("S5 {delete} Edit named")]);
    let request = RewindRequest { scope: Some(only("S0")), ..take(point) };
    sandbox.rewind(&request).unwrap();
    assert!(!sandbox.exists("f"), "S5 deleted it");
}

// --- the user's choice of an author -------------------------------------------------------------

#[test]
fn the_users_choice_of_an_author_is_remembered() {
    let mut sandbox = Sandbox::in_memory();
    let point = sandbox.prompt("s", "go");
    sandbox.before_shell("s", "make");
    sandbox.write("made.txt", "made\n");
    sandbox.write("notes.txt", "notes\n");
    sandbox.prompt("s", "go on");
    sandbox.agent_writes("s", "named.txt", "named\n");
    sandbox.turn_end("s");
    sandbox.write("written.txt", "by a program of the agent's\n");
    let request = RewindRequest {
        take: vec!["made.txt".to_owned(), "written.txt".to_owned()],
        mine: vec!["notes.txt".to_owned(), "named.txt".to_owned()],
        ..take(point)
    };
    let shown = takeback_core::rewind::preview(&mut sandbox.workspace, &request).unwrap();
    assert_eq!(shown.receipt().deleted_files.len(), 2);
    assert_eq!(authors(&sandbox, "written.txt"), ["human"], "a preview changes nothing");
    assert_eq!(
        report(&sandbox.rewind(&request).unwrap()),
        [
            "success",
            "deleted made.txt",
            "deleted written.txt",
            "kept named.txt: changed by you",
            "kept notes.txt: changed by you"
        ]
    );
    assert_eq!(authors(&sandbox, "named.txt"), ["human"]);
    assert_eq!(authors(&sandbox, "notes.txt"), ["human"]);
    assert_eq!(authors(&sandbox, "made.txt")[0], "s call-1 Bash named");
    assert!(sandbox.undo().success);
    assert_eq!(
        report(&sandbox.rewind_to(point))[1..3],
        ["deleted made.txt", "deleted written.txt"],
        "it need not be said again"
    );
}

#[test]
fn the_users_choice_is_remembered_by_an_empty_rewind() {
    let mut sandbox = Sandbox::in_memory();
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", "a\n");
    sandbox.turn_end("s");
    let request = RewindRequest { mine: vec!["a.txt".to_owned()], ..take(point) };
    assert_eq!(
        report(&sandbox.rewind(&request).unwrap()),
        ["success", "kept a.txt: changed by you"]
    );
    assert_eq!(report(&sandbox.rewind_to(point)), ["success", "kept a.txt: changed by you"]);
    let request = RewindRequest { mine: vec!["other.txt".to_owned()], ..take(point) };
    let refused = sandbox.rewind(&request).unwrap_err().to_string();
    assert_eq!(refused, "\"other.txt\" has not changed since that point");
}
