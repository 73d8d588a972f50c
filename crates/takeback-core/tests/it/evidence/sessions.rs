//! Background tasks, subagents and several sessions at a time.

use super::*;

#[test]
fn beside_a_dev_server_a_named_edit_goes_and_what_is_unclear_stays() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "1\n2\n3\n4\n5\n");
    let point = sandbox.prompt("s", "go");
    let server = sandbox.before_shell("s", "npm run dev");
    sandbox.after_as("s", &server, Outcome::Background);
    sandbox.agent_writes("s", "a.txt", "one\n2\n3\n4\n5\n");
    sandbox.write("a.txt", "one\n2\n3\n4\nwhose?\n");
    sandbox.turn_end("s");
    assert_eq!(
        said(&sandbox.rewind_to(point)),
        [
            "not all",
            "merged a.txt",
            "ambiguous a.txt: it is not certain who wrote it; --ambiguous take takes it back"
        ]
    );
    assert_eq!(sandbox.read("a.txt"), "1\n2\n3\n4\nwhose?\n");
}

#[test]
fn a_task_in_the_background_that_is_quiet_leaves_a_persons_files_alone() {
    let (mut sandbox, _) = dated();
    let point = sandbox.prompt("s", "go");
    let server = sandbox.before_shell("s", "npm run dev");
    sandbox.after_as("s", &server, Outcome::Background);
    sandbox.milliseconds_pass(2_000);
    sandbox.write("cache.bin", "warm\n");
    sandbox.turn_end("s");
    assert_eq!(who(&sandbox, "cache.bin"), [format!("s {server} Bash open window")]);
    sandbox.milliseconds_pass(3_600_000);
    sandbox.write("mine.txt", "mine\n");
    sandbox.write("cache.bin", "hot\n");
    sandbox.prompt("s", "go on");
    assert_eq!(who(&sandbox, "mine.txt"), ["human"]);
    assert_eq!(
        who(&sandbox, "cache.bin").last().unwrap(),
        &format!("s {server} Bash open window"),
        "it has changed that before"
    );
    assert_eq!(
        said(&sandbox.rewind_to(point)),
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
    });
    sandbox.turn_end("s");
    sandbox.agent_writes("s/agent", "a.txt", "after\n");
    sandbox.session_end("s/agent");
    assert_eq!(sandbox.workspace.store.points().unwrap().len(), 1, "the prompt's");
    assert_eq!(said(&sandbox.rewind_to(point)), ["success", "restored a.txt"]);
}

#[test]
fn an_agent_that_goes_on_by_itself_makes_no_point_without_a_name() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "before\n");
    let point = sandbox.prompt("s", "go");
    sandbox.turn_end("s");
    // Something in the background has ended, and the agent goes on.
    sandbox.agent_writes("s", "a.txt", "after\n");
    sandbox.turn_end("s");
    assert_eq!(sandbox.workspace.store.points().unwrap().len(), 1, "the prompt's");
    assert_eq!(said(&sandbox.rewind_to(point)), ["success", "restored a.txt"]);
}

// --- whose work comes back ----------------------------------------------------------------------

fn only(session: &str) -> RewindScope {
    RewindScope::Sessions([SessionId::from(session)].into())
}

#[test]
fn reopening_a_rewind_reopens_only_what_the_chosen_sessions_did() {
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
fn a_named_path_decides_against_an_open_shell_of_another_session() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.write("f", "here\n");
    let point = sandbox.prompt("S0", "go");
    sandbox.before_shell("S0", "sleep 100");
    sandbox.prompt("S5", "delete f");
    let delete = sandbox.before_edit("S5", &["f"]);
    sandbox.remove("f");
    sandbox.after("S5", &delete);
    assert_eq!(who(&sandbox, "f"), [format!("S5 {delete} Edit named")]);
    let request = RewindRequest { scope: Some(only("S0")), ..take(point) };
    sandbox.rewind(&request).unwrap();
    assert!(!sandbox.exists("f"), "S5 deleted it");
}

// --- what the person says -----------------------------------------------------------------------

#[test]
fn what_the_person_says_of_an_author_decides_and_is_remembered() {
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
    assert_eq!(who(&sandbox, "written.txt"), ["human"], "a preview changes nothing");
    assert_eq!(
        said(&sandbox.rewind(&request).unwrap()),
        [
            "success",
            "deleted made.txt",
            "deleted written.txt",
            "kept named.txt: changed by you",
            "kept notes.txt: changed by you"
        ]
    );
    assert_eq!(who(&sandbox, "named.txt"), ["human"]);
    assert_eq!(who(&sandbox, "notes.txt"), ["human"]);
    assert_eq!(who(&sandbox, "made.txt")[0], "s call-1 Bash named");
    assert!(sandbox.undo().success);
    assert_eq!(
        said(&sandbox.rewind_to(point))[1..3],
        ["deleted made.txt", "deleted written.txt"],
        "it need not be said again"
    );
}

#[test]
fn what_is_said_is_remembered_although_nothing_is_to_be_done() {
    let mut sandbox = Sandbox::in_memory();
    let point = sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "a.txt", "a\n");
    sandbox.turn_end("s");
    let request = RewindRequest { mine: vec!["a.txt".to_owned()], ..take(point) };
    assert_eq!(said(&sandbox.rewind(&request).unwrap()), ["success", "kept a.txt: changed by you"]);
    assert_eq!(said(&sandbox.rewind_to(point)), ["success", "kept a.txt: changed by you"]);
    let request = RewindRequest { mine: vec!["other.txt".to_owned()], ..take(point) };
    let refused = sandbox.rewind(&request).unwrap_err().to_string();
    assert_eq!(refused, "\"other.txt\" has not changed since that point");
}
