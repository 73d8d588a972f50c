//! The author of a change: every row of the table in the docs, and the ways in which calls end.

use std::process::Command;

use serde_json::json;
use takeback_core::middleware::{Middleware, ToolCall};
use takeback_core::{AgentEvent, CallReport, CallTargets, Outcome, Tools};
use takeback_store::{
    Author, CallId, CallState, Entry, Evidence, PointKind, Process, SessionId, TurnId,
};
use takeback_testkit::{Sandbox, path};

use crate::text::{assert_consistent, authors, history, log};

fn a_file() -> Sandbox {
    let sandbox = Sandbox::in_memory();
    sandbox.write("a.txt", "before\n");
    sandbox
}

fn started_by(sandbox: &mut Sandbox, session: &str, owner: Process) {
    sandbox.tell(&AgentEvent::SessionStart {
        session: SessionId::from(session),
        agent: None,
        parent: None,
        owner: Some(owner),
        model: None,
    });
}

fn open_turn(sandbox: &Sandbox, session: &str) -> Option<TurnId> {
    sandbox.workspace.store.session(&SessionId::from(session)).unwrap().and_then(|s| s.open_turn)
}

fn state_of(sandbox: &Sandbox, session: &str, call: &str) -> Option<CallState> {
    let (session, call) = (SessionId::from(session), CallId::from(call));
    sandbox.workspace.store.call(&session, &call).unwrap().map(|call| call.state)
}

// --- the table, row by row ----------------------------------------------------------------------

#[test]
fn a_call_is_open_that_names_the_path() {
    let mut sandbox = a_file();
    sandbox.prompt("s", "go");
    let turn = open_turn(&sandbox, "s").expect("the prompt opened a turn");
    sandbox.agent_writes("s", "a.txt", "after\n");
    let change = history(&sandbox, "a.txt").pop().expect("the edit is in the log");
    let agent = Author::Agent {
        session: SessionId::from("s"),
        turn,
        call: CallId::from("call-1"),
        tool: "Edit".to_owned(),
    };
    assert_eq!((change.author, change.evidence), (agent, Evidence::Named));
}

#[test]
fn a_shell_call_is_open() {
    let mut sandbox = a_file();
    sandbox.prompt("s", "go");
    sandbox.agent_runs("s", "sed -i", |sandbox| sandbox.write("a.txt", "after\n"));
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Bash window"]);
}

#[test]
fn several_sessions_have_calls_open_that_could_have_written_it() {
    for (one, other) in [("shell", "shell"), ("edit", "shell"), ("shell", "edit"), ("edit", "edit")]
    {
        let mut sandbox = a_file();
        let mut calls = Vec::new();
        for (session, kind) in [("one", one), ("other", other)] {
            sandbox.prompt(session, "go");
            let call = match kind {
                "edit" => sandbox.before_edit(session, &["a.txt"]),
                _ => sandbox.before_shell(session, "make"),
            };
            calls.push((session, call));
        }
        sandbox.write("a.txt", "after\n");
        for (session, call) in &calls {
            sandbox.after(session, call);
        }
        // A call that names the path decides against one that may write anything.
        let author = match (one, other) {
            ("edit", "shell") => "one call-1 Edit named",
            ("shell", "edit") => "other call-2 Edit named",
            _ => "ambiguous one+other",
        };
        assert_eq!(authors(&sandbox, "a.txt"), [author], "{one} and {other}");
    }
}

#[test]
fn a_call_that_names_other_paths_did_not_write_this_one() {
    let mut sandbox = a_file();
    sandbox.prompt("s", "go");
    let edit = sandbox.before_edit("s", &["other.txt"]);
    sandbox.write("a.txt", "mine\n");
    sandbox.after("s", &edit);
    sandbox.turn_end("s");
    assert_eq!(authors(&sandbox, "a.txt"), ["human"]);

    sandbox.prompt("t", "go");
    let edit = sandbox.before_edit("s", &["other.txt"]);
    let shell = sandbox.before_shell("t", "make");
    sandbox.write("a.txt", "made\n");
    sandbox.after("t", &shell);
    sandbox.after("s", &edit);
    assert_eq!(authors(&sandbox, "a.txt"), ["human", "t call-3 Bash window"]);
}

#[test]
fn a_turn_is_open_and_no_call() {
    let mut sandbox = a_file();
    sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "b.txt", "b\n");
    sandbox.write("a.txt", "mine\n");
    sandbox.turn_end("s");
    assert_eq!(authors(&sandbox, "a.txt"), ["human"]);
}

#[test]
fn a_call_was_cut_off_by_a_prompt() {
    let mut sandbox = a_file();
    sandbox.write("b.txt", "before\n");
    sandbox.prompt("s", "go");
    let call = sandbox.before_edit("s", &["a.txt"]);
    sandbox.write("a.txt", "after\n");
    sandbox.write("b.txt", "mine\n");
    sandbox.prompt("s", "no, stop");
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Edit open window"]);
    assert_eq!(authors(&sandbox, "b.txt"), ["human"], "the call did not name it");
    assert_eq!(state_of(&sandbox, "s", &call), Some(CallState::CutOff));

    sandbox.before_shell("s", "make");
    sandbox.write("b.txt", "made\n");
    sandbox.prompt("s", "stop again");
    assert_eq!(authors(&sandbox, "b.txt"), ["human", "s call-2 Bash open window"]);
}

#[test]
fn a_call_was_cut_off_by_a_new_start_of_its_session() {
    let mut sandbox = a_file();
    sandbox.prompt("s", "go");
    sandbox.before_shell("s", "make");
    sandbox.start("another");
    sandbox.write("a.txt", "after\n");
    sandbox.start("s");
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Bash open window"]);
    sandbox.write("a.txt", "mine\n");
    sandbox.turn_end("s");
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Bash open window", "human"]);
}

#[test]
fn the_agent_died_in_a_call() {
    let mut sandbox = a_file();
    let mut agent = Command::new("sleep").arg("60").spawn().expect("sleep starts");
    started_by(&mut sandbox, "s", process_of(agent.id()));
    sandbox.prompt("s", "go");
    sandbox.before_shell("s", "make");
    agent.kill().expect("it can be killed");
    agent.wait().expect("it ends");
    sandbox.write("a.txt", "who knows\n");
    sandbox.prompt("another", "what happened?");
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Bash open window"]);
    sandbox.write("a.txt", "mine\n");
    sandbox.turn_end("another");
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Bash open window", "human"]);
    let session =
        sandbox.workspace.store.session(&SessionId::from("s")).unwrap().expect("it is known");
    assert!(session.ended_at.is_some() && session.open_turn.is_none(), "{session:?}");
}

#[test]
fn the_agent_lives_and_its_call_is_open() {
    let mut sandbox = a_file();
    started_by(&mut sandbox, "s", process_of(std::process::id()));
    sandbox.prompt("s", "go");
    sandbox.before_shell("s", "make");
    sandbox.write("a.txt", "made\n");
    sandbox.prompt("another", "go");
    assert_eq!(
        authors(&sandbox, "a.txt"),
        ["s call-1 Bash open window"],
        "its end is not known yet"
    );
    sandbox.after("s", "call-1");
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Bash window"], "an end learned later counts");
}

#[test]
fn a_background_task_is_known_to_run() {
    let mut sandbox = a_file();
    sandbox.prompt("s", "go");
    let call = sandbox.before_shell("s", "npm run watch &");
    sandbox.write("a.txt", "by the call\n");
    sandbox.after_as("s", &call, Outcome::Background);
    sandbox.write("a.txt", "by the task or by me\n");
    sandbox.prompt("s", "next");
    sandbox.write("a.txt", "and again\n");
    sandbox.turn_end("s");
    sandbox.session_end("s");
    sandbox.write("a.txt", "mine\n");
    sandbox.prompt("t", "go");
    assert_eq!(
        authors(&sandbox, "a.txt"),
        ["s call-1 Bash window", "s call-1 Bash open window", "s call-1 Bash open window", "human"]
    );
}

#[test]
fn no_turn_is_open() {
    let mut sandbox = a_file();
    sandbox.prompt("s", "go");
    sandbox.turn_end("s");
    sandbox.write("a.txt", "mine\n");
    sandbox.prompt("s", "go on");
    assert_eq!(authors(&sandbox, "a.txt"), ["human"]);
}

// --- calls whose end was not reported -----------------------------------------------------------

#[test]
fn work_of_an_unended_call_is_found_by_the_sessions_next_event() {
    type Event = fn(&mut Sandbox);
    // With what is said of it then, and who wrote what is found later: the call itself if empty.
    let (overtaken, over) = (CallState::Overtaken, CallState::CutOff);
    let events: [(&str, CallState, &str, Event); 5] = [
        ("an edit", overtaken, "", |sandbox| {
            sandbox.before_edit("s", &["b.txt"]);
        }),
        ("a shell", overtaken, "s call-2 Bash open window", |sandbox| {
            sandbox.before_shell("s", "make");
        }),
        ("the end of another call", overtaken, "", |sandbox| {
            sandbox.after("s", "an edit of b.txt");
        }),
        ("the end of the turn", over, "human", |sandbox| sandbox.turn_end("s")),
        ("the end of the session", over, "human", |sandbox| sandbox.session_end("s")),
    ];
    for (event, state, later, send) in events {
        for kind in ["edit", "shell"] {
            let mut sandbox = a_file();
            sandbox.write("b.txt", "before\n");
            sandbox.prompt("s", "go");
            sandbox.tell(&AgentEvent::BeforeTool {
                session: SessionId::from("s"),
                call: CallId::from("an edit of b.txt"),
                tool: "Edit".to_owned(),
                touches: CallTargets::Paths(vec![sandbox.at("b.txt")]),
            });
            let (call, tool) = match kind {
                "edit" => (sandbox.before_edit("s", &["a.txt"]), "Edit named"),
                _ => (sandbox.before_shell("s", "make"), "Bash open window"),
            };
            sandbox.write("a.txt", "after\n");
            send(&mut sandbox);
            let written = format!("s {call} {tool}");
            assert_eq!(authors(&sandbox, "a.txt"), [&*written], "{event} after the {kind}");
            assert_eq!(state_of(&sandbox, "s", &call), Some(state), "{event} after the {kind}");
            sandbox.write("a.txt", "later\n");
            sandbox.prompt("t", "go");
            // A call that names the path decides against one that does not.
            let later = match (later, kind) {
                ("", _) | ("s call-2 Bash open window", "edit") => &*written,
                (later, _) => later,
            };
            assert_eq!(authors(&sandbox, "a.txt"), [&*written, later], "{event} after the {kind}");
        }
    }
}

#[test]
fn paths_named_by_a_call_are_looked_at_when_it_ends() {
    type Event = fn(&mut Sandbox);
    let events: [(&str, &str, Event); 4] = [
        ("a shell", "s call-1 Edit named", |sandbox| drop(sandbox.before_shell("s", "make"))),
        ("the end of the turn", "s call-1 Edit named", |sandbox| sandbox.turn_end("s")),
        ("the end of the session", "s call-1 Edit named", |sandbox| sandbox.session_end("s")),
        ("a prompt", "s call-1 Edit open window", |sandbox| {
            sandbox.prompt("s", "stop");
        }),
    ];
    for (event, author, send) in events {
        let mut sandbox = Sandbox::in_memory();
        sandbox.write(".gitignore", "ignored/\n");
        sandbox.write("ignored/in.txt", "before\n");
        let outside = sandbox.outside().join("outside.txt");
        std::fs::write(&outside, "before\n").unwrap();
        sandbox.prompt("s", "go");
        sandbox.before_edit("s", &["ignored/in.txt", outside.to_str().unwrap()]);
        sandbox.write("ignored/in.txt", "after\n");
        std::fs::write(&outside, "after\n").unwrap();
        send(&mut sandbox);
        let real = std::fs::canonicalize(&outside).unwrap();
        assert_eq!(authors(&sandbox, "ignored/in.txt"), [author], "{event}");
        assert_eq!(authors(&sandbox, real.to_str().unwrap()), [author], "{event}");
    }
}

#[test]
fn work_of_a_call_ended_by_the_next_is_stored() {
    let mut sandbox = a_file();
    sandbox.workspace.limits.edit_capture_max = 10;
    sandbox.prompt("s", "go");
    sandbox.before_edit("s", &["a.txt"]);
    sandbox.write("a.txt", "larger than what is copied before an edit\n");
    sandbox.before_edit("s", &["b.txt"]);
    let changes = history(&sandbox, "a.txt");
    assert!(changes.iter().all(|change| change.after.is_restorable()), "{changes:?}");
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Edit named"]);
}

#[test]
fn an_overtaken_call_can_still_end() {
    for kind in ["edit", "shell"] {
        let mut sandbox = a_file();
        sandbox.prompt("s", "go");
        let (early, tool) = match kind {
            "edit" => (sandbox.before_edit("s", &["a.txt"]), "Edit named"),
            _ => (sandbox.before_shell("s", "make"), "Bash window"),
        };
        sandbox.before_edit("s", &["b.txt"]);
        sandbox.write("a.txt", "late\n");
        sandbox.after("s", &early);
        assert_eq!(authors(&sandbox, "a.txt"), [format!("s {early} {tool}")]);
        assert_eq!(state_of(&sandbox, "s", &early), Some(CallState::Done));
    }
}

#[test]
fn a_call_that_names_the_path_is_its_author() {
    let mut sandbox = a_file();
    sandbox.prompt("s", "go");
    let shell = sandbox.before_shell("s", "make");
    let edit = sandbox.before_edit("s", &["a.txt"]);
    sandbox.write("a.txt", "edited\n");
    sandbox.write("made.txt", "made\n");
    sandbox.after("s", &shell);
    sandbox.after("s", &edit);
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-2 Edit named"]);
    assert_eq!(authors(&sandbox, "made.txt"), ["s call-1 Bash window"]);
}

/// A session for a subagent of `s`.
fn subagent(sandbox: &mut Sandbox, session: &str) {
    sandbox.tell(&AgentEvent::SessionStart {
        session: SessionId::from(session),
        agent: None,
        parent: Some(SessionId::from("s")),
        owner: None,
        model: None,
    });
}

#[test]
fn concurrent_subagents_work_is_certain_and_part_of_the_prompt() {
    let mut sandbox = a_file();
    let point = sandbox.prompt("s", "go");
    subagent(&mut sandbox, "s/one");
    subagent(&mut sandbox, "s/two");
    let one = sandbox.before_shell("s/one", "make");
    let two = sandbox.before_edit("s/two", &["a.txt"]);
    sandbox.write("a.txt", "after\n");
    sandbox.write("b.txt", "made\n");
    sandbox.after("s/two", &two);
    sandbox.write("c.txt", "later\n");
    sandbox.after("s/one", &one);
    assert_eq!(authors(&sandbox, "a.txt"), ["s/two call-2 Edit named"]);
    assert_eq!(authors(&sandbox, "b.txt"), ["s/one call-1 Bash window"]);
    assert_eq!(authors(&sandbox, "c.txt"), ["s/one call-1 Bash window"]);
    assert_eq!(sandbox.workspace.store.points().unwrap().len(), 1, "the prompt's");
    sandbox.turn_end("s");
    assert!(sandbox.rewind_to(point).is_whole());
    assert_eq!(sandbox.read("a.txt"), "before\n");
    assert!(!sandbox.exists("b.txt") && !sandbox.exists("c.txt"));
}

#[test]
fn a_session_that_continues_another_is_not_a_part_of_it() {
    let mut sandbox = a_file();
    sandbox.prompt("s", "go");
    subagent(&mut sandbox, "sequel");
    let one = sandbox.before_shell("s", "make");
    let two = sandbox.before_shell("sequel", "make");
    sandbox.write("a.txt", "after\n");
    sandbox.after("s", &one);
    sandbox.after("sequel", &two);
    assert_eq!(authors(&sandbox, "a.txt"), ["ambiguous s+sequel"]);
    assert_eq!(sandbox.workspace.store.points().unwrap().len(), 2, "it has one of its own");
}

#[test]
fn changes_before_the_end_of_an_unknown_call_are_ambiguous() {
    let mut sandbox = a_file();
    sandbox.prompt("s", "go");
    sandbox.write("a.txt", "who knows\n");
    sandbox.after("s", "unheard of");
    sandbox.write("a.txt", "mine\n");
    sandbox.turn_end("s");
    assert_eq!(authors(&sandbox, "a.txt"), ["ambiguous s", "human"]);
}

#[test]
fn a_failed_call_may_have_written_all_the_same() {
    let mut sandbox = a_file();
    sandbox.prompt("s", "go");
    let call = sandbox.before_edit("s", &["a.txt"]);
    sandbox.write("a.txt", "half\n");
    sandbox.after_as("s", &call, Outcome::Failed);
    assert_eq!(authors(&sandbox, "a.txt"), ["s call-1 Edit named"]);
    assert_eq!(state_of(&sandbox, "s", &call), Some(CallState::Failed));
}

// --- people in between --------------------------------------------------------------------------

#[test]
fn what_a_person_changed_before_an_edit_is_recorded_first() {
    let mut sandbox = a_file();
    sandbox.prompt("s", "go");
    sandbox.write("a.txt", "mine\n");
    sandbox.agent_writes("s", "a.txt", "after\n");
    assert_eq!(authors(&sandbox, "a.txt"), ["human", "s call-1 Edit named"]);
    assert_consistent(&sandbox);
    let before_the_edit = history(&sandbox, "a.txt")[2].before.digest().expect("a file");
    assert_eq!(sandbox.workspace.store.contents(&before_the_edit).unwrap(), b"mine\n");
}

#[test]
fn what_a_person_changed_before_a_command_is_recorded_first() {
    let mut sandbox = a_file();
    sandbox.prompt("s", "go");
    sandbox.write("a.txt", "mine\n");
    sandbox.agent_runs("s", "make", |sandbox| sandbox.write("a.txt", "made\n"));
    assert_eq!(authors(&sandbox, "a.txt"), ["human", "s call-1 Bash window"]);
}

#[test]
fn folders_made_by_an_edit_are_the_edits() {
    let mut sandbox = Sandbox::in_memory();
    sandbox.prompt("s", "go");
    sandbox.agent_writes("s", "new/deep/a.txt", "made\n");
    for made in ["new", "new/deep", "new/deep/a.txt"] {
        assert_eq!(authors(&sandbox, made), ["s call-1 Edit named"], "{made}");
    }
}

// --- unannounced sessions and turns -------------------------------------------------------------

#[test]
fn any_event_opens_its_session() {
    let session = || SessionId::from("s");
    let events = [
        AgentEvent::SessionStart {
            session: session(),
            agent: None,
            parent: None,
            owner: None,
            model: None,
        },
        AgentEvent::Prompt {
            session: session(),
            message: None,
            text: "go".to_owned(),
            model: None,
        },
        AgentEvent::BeforeTool {
            session: session(),
            call: CallId::from("c"),
            tool: "Bash".to_owned(),
            touches: CallTargets::anything(None),
        },
        AgentEvent::AfterTool {
            session: session(),
            call: CallId::from("c"),
            outcome: Outcome::Done,
            report: CallReport::default(),
        },
        AgentEvent::TurnEnd { session: session(), model: None },
        AgentEvent::SessionEnd { session: session(), model: None },
    ];
    for event in events {
        let mut sandbox = a_file();
        sandbox.tell(&event);
        let sessions: Vec<SessionId> = sandbox
            .workspace
            .store
            .sessions()
            .unwrap()
            .into_iter()
            .map(|session| session.id)
            .collect();
        assert_eq!(sessions, [session()], "{event:?}");
    }
}

#[test]
fn a_call_without_a_turn_opens_one_with_a_point() {
    let mut sandbox = a_file();
    sandbox.agent_writes("s", "a.txt", "after\n");
    let turn = open_turn(&sandbox, "s").expect("a turn is open");
    assert_eq!(
        sandbox.workspace.store.turn(turn).unwrap().map(|turn| turn.prompt),
        Some(String::new())
    );
    let points = sandbox.workspace.store.points().unwrap();
    let kinds: Vec<PointKind> = points.iter().map(|point| point.kind).collect();
    assert_eq!(kinds, [PointKind::Prompt]);
    sandbox.agent_writes("s", "a.txt", "more\n");
    assert_eq!(open_turn(&sandbox, "s"), Some(turn), "the second call belongs to the same turn");
    sandbox.turn_end("s");
    sandbox.agent_writes("s", "a.txt", "yet more\n");
    assert_ne!(open_turn(&sandbox, "s"), Some(turn));
    sandbox.rewind_to(points[0].id);
    assert_eq!(sandbox.read("a.txt"), "before\n");
}

// --- which tools write what ---------------------------------------------------------------------

#[test]
fn read_only_tools_record_nothing() {
    let mut sandbox = a_file();
    sandbox.prompt("s", "go");
    let head = sandbox.workspace.store.head().unwrap();
    sandbox.write("a.txt", "mine\n");
    sandbox.tell(&AgentEvent::BeforeTool {
        session: SessionId::from("s"),
        call: CallId::from("c"),
        tool: "Read".to_owned(),
        touches: CallTargets::Nothing,
    });
    assert_eq!(sandbox.workspace.store.head().unwrap(), head);
    assert_eq!(sandbox.workspace.store.live_calls().unwrap(), []);
}

#[test]
fn a_save_during_a_read_only_call_is_the_users() {
    let mut sandbox = a_file();
    sandbox.prompt("s", "go");
    let head = sandbox.workspace.store.head().unwrap();
    let file = sandbox.at("a.txt");
    let input = json!({ "file_path": file });
    let mut middleware = Middleware {
        workspace: &mut sandbox.workspace,
        session: SessionId::from("s"),
        tools: Tools::new(&["write_file"], &[], &["Read"]),
        on_unrecorded: Box::new(|unrecorded| panic!("{unrecorded:?}")),
    };
    middleware.around(ToolCall { id: "c", tool: "Read", input: &input }, |_| {
        std::fs::write(&file, "mine\n").unwrap();
    });
    drop(middleware);
    assert_eq!(sandbox.workspace.store.head().unwrap(), head, "reading records nothing");
    sandbox.turn_end("s");
    assert_eq!(authors(&sandbox, "a.txt"), ["human"]);
}

// --- first sight --------------------------------------------------------------------------------

#[test]
fn files_in_the_first_scan_have_no_earlier_state() {
    let mut sandbox = a_file();
    sandbox.write("lib/b.txt", "b\n");
    sandbox.prompt("s", "go");
    let seen: Vec<_> = log(&sandbox).into_iter().map(|c| (c.path, c.before, c.author)).collect();
    let first = |name: &str| (path(name), Entry::Unknown, Author::Human);
    assert_eq!(seen, [first("a.txt"), first("lib"), first("lib/b.txt")]);
}

/// A process as sessions name their owners.
fn process_of(pid: u32) -> Process {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let after_name = stat.rsplit_once(')').expect("its name is in parentheses").1;
    let started =
        after_name.split_ascii_whitespace().nth(19).expect("its start").parse().expect("a number");
    Process { pid, started }
}
