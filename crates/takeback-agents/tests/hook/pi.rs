//! pi 0.87.1, through the extension.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use takeback_agents::{
    CallEnd, HookEvent, HookEventKind as Kind, HookProgram, PI, SessionInfo, ToolCall, add_hooks,
    call_targets, default_tools, read_session,
};
use takeback_core::{CallTargets, Outcome};

use crate::recorded::{all_are_parsed_as, bare_event, payload, took};

const PROJECT: &str = "/home/user/project";

/// Sessions by their id and when they began, as their files are named.
type Session = (&'static str, &'static str);
const SESSION: Session = ("01a1efe8-05f0-7205-ac79-ee2ef6bd3190", "2026-11-18T18-25-22-928Z");
const OF_OPTION: Session = ("01a1efe8-0f3d-72a9-9b14-b6379b49a5c2", "2026-11-18T18-25-25-310Z");
const ASKED: Session = ("01a1efe8-1511-754b-a649-b7ad4f0be126", "2026-11-18T18-25-26-802Z");
const NAMING: Session = ("01a1eff1-df9f-751a-b01c-9c862cf21f8a", "2026-11-18T18-36-08-481Z");
const CLONED: Session = ("01a1efe8-96d9-71ec-84d1-5d137b6f5c71", "2026-11-18T18-26-00-026Z");
const CLONE: Session = ("01a1efe8-b8eb-71ec-84d1-5d157b83c2dd", "2026-11-18T18-26-08-747Z");
const NEW: Session = ("01a1efe8-c724-71ec-84d1-5d16e4ee50b2", "2026-11-18T18-26-12-389Z");

fn in_session((id, began): Session, event: &str, kind: Kind) -> HookEvent {
    let sessions = "/home/user/.pi/agent/sessions/--home-user-project--";
    HookEvent {
        transcript: Some(PathBuf::from(format!("{sessions}/{began}_{id}.jsonl"))),
        ..bare_event(id, event, kind)
    }
}

fn copy_of((id, _): Session, hook_event: HookEvent) -> HookEvent {
    HookEvent { forked_from: Some(id.to_owned()), ..hook_event }
}

fn prompt(text: &str) -> Kind {
    Kind::Prompt { text: text.to_owned() }
}

fn call(id: &str, tool: &str, input: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), tool: tool.to_owned(), input }
}

fn edit(id: &str, file: &str, old: &str, new: &str) -> ToolCall {
    let edits = json!([{"oldText": old, "newText": new}]);
    call(id, "edit", json!({"path": file, "edits": edits}))
}

fn bash(id: &str, command: &str) -> ToolCall {
    call(id, "bash", json!({ "command": command }))
}

#[test]
fn recorded_payloads_are_parsed() {
    let of = |event: &str, kind| in_session(SESSION, event, kind);
    let before = |call| of("tool_call", Kind::BeforeTool(call));
    let ended = |call, outcome: Outcome| of("tool_result", Kind::AfterTool(call, outcome.into()));
    let notes = || {
        let path = format!("{PROJECT}/notes.md");
        call("call_15", "write", json!({"path": path, "content": "one\n"}))
    };
    let edited = || edit("call_16", "notes.md", "one", "two");
    let moves = "mv notes.md kept.md && mkdir -p sub && echo side > sub/shell.txt";
    let moved = || bash("call_17", moves);
    let unmatched = || edit("call_19", "kept.md", "not there", "y");
    let exit_3 = || bash("call_20", "echo half > half.txt; exit 3");
    // Two calls in one message of the model.
    let write = || call("call_21", "write", json!({"path": "a.md", "content": "a\n"}));
    let shell = || call("call_22", "bash", json!({"command": "echo b > b.md", "timeout": 20}));
    // In its terminal, with an extension that asks a person before each command.
    let asked = |event: &str, kind| in_session(ASKED, event, kind);
    let waited = || bash("call_26", "touch waited.txt && sleep 2");
    let stops = "echo half > stopped.txt && sleep 30 && echo whole > whole.txt";
    let stopped = || bash("call_27", stops);
    let interrupted = CallEnd { interrupted: true, ..took(Outcome::Failed, 3052) };
    // The path is `@at.md`, and the file `at.md`.
    let odd = || call("call_31", "write", json!({"content": "at\n"}));
    let naming = |event: &str, kind| in_session(NAMING, event, kind);
    all_are_parsed_as(
        &PI,
        "pi",
        &[
            ("session_start-startup", of("session_start", Kind::SessionStart)),
            (
                "message_start-first",
                of(
                    "message_start",
                    prompt("Write the notes. <<LABFILE /home/user/one.json FILE>>"),
                ),
            ),
            ("tool_call-write", before(notes())),
            ("tool_result-write", ended(notes(), Outcome::Done)),
            ("tool_call-edit", before(edited())),
            ("tool_result-edit", ended(edited(), Outcome::Done)),
            ("tool_call-bash", before(moved())),
            ("tool_result-bash", ended(moved(), Outcome::Done)),
            ("tool_call-read", of("tool_call", Kind::Irrelevant)),
            ("tool_result-read", of("tool_result", Kind::Irrelevant)),
            ("tool_call-edit-without-match", before(unmatched())),
            ("tool_result-edit-without-match", ended(unmatched(), Outcome::Failed)),
            ("tool_call-bash-exit-3", before(exit_3())),
            ("tool_result-bash-exit-3", ended(exit_3(), Outcome::Failed)),
            ("agent_settled", of("agent_settled", Kind::TurnEnd)),
            ("session_shutdown-quit", of("session_shutdown", Kind::SessionEnd)),
            ("session_start-continue", of("session_start", Kind::SessionStart)),
            (
                "message_start-second",
                of("message_start", prompt("Now the second. <<LABFILE /home/user/two.json FILE>>")),
            ),
            ("tool_call-parallel-write", before(write())),
            ("tool_call-parallel-bash", before(shell())),
            ("tool_result-parallel-bash", ended(shell(), Outcome::Done)),
            ("tool_result-parallel-write", ended(write(), Outcome::Done)),
            (
                "session_start-fork-option",
                copy_of(SESSION, in_session(OF_OPTION, "session_start", Kind::SessionStart)),
            ),
            (
                "tool_call-refused",
                asked("tool_call", Kind::BeforeTool(bash("call_25", "touch denied.txt"))),
            ),
            (
                "tool_execution_end-refused",
                asked(
                    "tool_execution_end",
                    Kind::ToolRejected(call("call_25", "bash", Value::Null)),
                ),
            ),
            ("tool_call-asked", asked("tool_call", Kind::BeforeTool(waited()))),
            (
                "tool_result-asked",
                asked("tool_result", Kind::AfterTool(waited(), took(Outcome::Done, 2028))),
            ),
            ("tool_call-stopped", asked("tool_call", Kind::BeforeTool(stopped()))),
            ("tool_result-stopped", asked("tool_result", Kind::AfterTool(stopped(), interrupted))),
            ("message_start-while-a-call-ran", asked("message_start", prompt("And this, too."))),
            ("tool_call-write-at-sign", naming("tool_call", Kind::BeforeTool(odd()))),
            (
                "tool_result-write-at-sign",
                naming("tool_result", Kind::AfterTool(odd(), Outcome::Done.into())),
            ),
            ("session_shutdown-clone", in_session(CLONED, "session_shutdown", Kind::SessionEnd)),
            (
                "session_start-clone",
                copy_of(CLONED, in_session(CLONE, "session_start", Kind::SessionStart)),
            ),
            ("session_shutdown-new", in_session(CLONE, "session_shutdown", Kind::SessionEnd)),
            ("session_start-new", in_session(NEW, "session_start", Kind::SessionStart)),
            ("session_shutdown-reload", in_session(NEW, "session_shutdown", Kind::Irrelevant)),
            ("session_start-reload", in_session(NEW, "session_start", Kind::Irrelevant)),
        ],
    );
}

#[test]
fn edits_name_their_files_and_a_command_may_write_anything() {
    let of = |call: ToolCall| {
        call_targets(&default_tools(), &call.tool, &call.input, Some(Path::new(PROJECT)))
    };
    let notes = || CallTargets::Paths(vec![PathBuf::from("/home/user/project/notes.md")]);
    assert_eq!(of(call("c", "write", json!({"path": "notes.md", "content": "x"}))), notes());
    assert_eq!(of(edit("c", "notes.md", "x", "y")), notes());
    assert_eq!(of(bash("c", "make")), CallTargets::anything(Some("make".to_owned())));
    let recorded = String::from_utf8(payload("pi", "tool_call-write-at-sign")).unwrap();
    for odd in ["@notes.md", "~/notes.md", "file:///home/user/notes.md", "my\u{a0}notes.md"] {
        let payload = recorded.replace("@at.md", odd);
        let Kind::BeforeTool(call) = PI.parse(payload.as_bytes(), None).unwrap().kind else {
            panic!("{payload}");
        };
        assert_eq!(of(call), CallTargets::anything(None), "{odd}");
    }
}

/// The first lines as the program has written them, cut short.
#[test]
fn a_session_file_names_its_session() {
    let text = "{\"type\":\"session\",\"version\":3,\"id\":\"01a1\",\
        \"timestamp\":\"2026-11-18T18:21:03.449Z\",\"cwd\":\"/home/user/project\"}\n\
        {\"type\":\"model_change\",\"id\":\"75b8\",\"timestamp\":\"2026-11-18T18:20:24.754Z\"}\n";
    let began = "2026-11-18T18:21:03.449Z".to_owned();
    let seen = SessionInfo { id: "01a1".to_owned(), began };
    assert_eq!(read_session(&PI.sessions, text.as_bytes()), Some(seen));
}

#[test]
fn the_extension_calls_takeback_by_the_path_it_is_given() {
    let program = HookProgram { word: "'/opt/take back'", runs: &|_| true };
    let extension = add_hooks(&PI, None, &program).unwrap().unwrap();
    let extension = String::from_utf8(extension).unwrap();
    let line = extension.lines().find(|line| line.starts_with("const TAKEBACK"));
    assert_eq!(line, Some(r#"const TAKEBACK = "/opt/take back";"#));
}
