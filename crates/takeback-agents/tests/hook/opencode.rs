//! opencode 1.18.33, through the plugin.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use takeback_agents::{
    HookEvent, HookEventKind as Kind, HookProgram, HookSource, OPENCODE, ToolCall, add_hooks,
    call_targets, default_tools, to_agent_event,
};
use takeback_core::{AgentEvent, CallReport, CallTargets, Outcome};
use takeback_store::{CallId, SessionId};
use takeback_testkit::Sandbox;

use crate::recorded::{all_are_parsed_as, bare_event};

const SESSION: &str = "ses_e1eb57241ffehJO6HfNZbeh2xv";
const SUBAGENT: &str = "ses_e1eb4fc5cffeNcyOCHIi1Oerjo";
const PROJECT: &str = "/home/user/project";

fn hook_event(event: &str, kind: Kind) -> HookEvent {
    bare_event(SESSION, event, kind)
}

fn of_subagent(event: &str, kind: Kind) -> HookEvent {
    HookEvent { subagent: Some(SUBAGENT.to_owned()), ..hook_event(event, kind) }
}

fn message(id: &str, hook_event: HookEvent) -> HookEvent {
    HookEvent { prompt: Some(id.to_owned()), ..hook_event }
}

/// `opencode run` puts its prompt in quotes.
fn prompt(text: &str) -> HookEvent {
    hook_event("chat.message", Kind::Prompt { text: format!("\"{text}\"") })
}

fn call(id: &str, tool: &str, input: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), tool: tool.to_owned(), input }
}

fn write(id: &str, file: &str, content: &str) -> ToolCall {
    let path = format!("{PROJECT}/{file}");
    call(id, "write", json!({"filePath": path, "content": content}))
}

fn edit(id: &str, file: &str, old: &str, new: &str) -> ToolCall {
    let path = format!("{PROJECT}/{file}");
    call(id, "edit", json!({"filePath": path, "oldString": old, "newString": new}))
}

fn bash(id: &str, command: &str, description: &str) -> ToolCall {
    call(id, "bash", json!({"command": command, "description": description}))
}

/// In its terminal, where the user is asked for permissions.
fn refused() -> HookEvent {
    let input = json!({"command": "touch denied-bash.txt", "description": "d"});
    let call = call("call_82aa4009a811", "bash", input);
    let session = "ses_e1bd242a5ffeLUVvA7IjFxddI9".to_owned();
    HookEvent { session, ..hook_event("message.part.updated", Kind::ToolRejected(call)) }
}

/// The call ends, and has done nothing.
#[test]
fn a_refusal_is_the_end_of_the_call() {
    let source = HookSource::new(&OPENCODE, None);
    let event = to_agent_event(&default_tools(), source, &refused());
    let session = SessionId("ses_e1bd242a5ffeLUVvA7IjFxddI9".to_owned());
    let (call, outcome) = (CallId("call_82aa4009a811".to_owned()), Outcome::Rejected);
    assert_eq!(
        event,
        Some(AgentEvent::AfterTool { session, call, outcome, report: CallReport::default() })
    );
}

#[test]
fn a_call_that_had_to_be_allowed_says_how_long_it_ran() {
    let given = br#"{"hook": "tool.execute.after", "directory": "/p", "ranMs": 1200,
        "input": {"tool": "bash", "sessionID": "s", "callID": "c", "args": {"command": "make"}}}"#;
    let hook_event = OPENCODE.parse(given, None).unwrap();
    let Kind::AfterTool(_, ending) = hook_event.kind else { panic!("{hook_event:?}") };
    assert_eq!(ending.took, Some(Duration::from_millis(1200)));
}

#[test]
fn recorded_payloads_are_parsed() {
    const BEFORE: &str = "tool.execute.before";
    const AFTER: &str = "tool.execute.after";
    let before = |call| hook_event(BEFORE, Kind::BeforeTool(call));
    let after = |call| hook_event(AFTER, Kind::AfterTool(call, Outcome::Done.into()));
    let notes = || write("call_80", "notes.md", "one\n");
    let edited = || edit("call_82", "notes.md", "one", "two");
    let moves = "mv notes.md kept.md && mkdir -p sub && echo side > sub/shell.txt";
    let moved = || bash("call_84", moves, "move the notes");
    let unmatched = || edit("call_89", "kept.md", "not there", "y");
    let exit_3 = || bash("call_91", "echo half > half.txt; exit 3", "fail");
    let by_subagent = || write("call_98", "by-subagent.md", "z\n");
    let patch = "*** Begin Patch\n*** Add File: patched.md\n+p\n*** Update File: kept.md\n@@\n\
                 -three\n+four\n*** End Patch";
    let patched = || call("call_104", "apply_patch", json!({ "patchText": patch }));
    let patching = |hook_event| HookEvent {
        session: "ses_e1eb44567ffefCziia21xJnkFf".to_owned(),
        ..hook_event
    };
    all_are_parsed_as(
        &OPENCODE,
        "opencode",
        &[
            ("event-session.created", hook_event("session.created", Kind::SessionStart)),
            (
                "chat.message-first",
                message(
                    "msg_1e14a8ed100106p93Prd7e5t0Y",
                    prompt("Write the notes. <<LABFILE /home/user/one.json FILE>>"),
                ),
            ),
            ("tool.execute.before-write", before(notes())),
            ("tool.execute.after-write", after(notes())),
            ("tool.execute.before-edit", before(edited())),
            ("tool.execute.after-edit", after(edited())),
            ("tool.execute.before-bash", before(moved())),
            ("tool.execute.after-bash", after(moved())),
            ("tool.execute.before-read", hook_event(BEFORE, Kind::Irrelevant)),
            ("tool.execute.after-read", hook_event(AFTER, Kind::Irrelevant)),
            ("tool.execute.before-edit-without-match", before(unmatched())),
            (
                "event-message.part.updated",
                hook_event(
                    "message.part.updated",
                    Kind::AfterTool(unmatched(), Outcome::Failed.into()),
                ),
            ),
            ("event-message.part.updated-refused", refused()),
            ("tool.execute.before-bash-exit-3", before(exit_3())),
            ("tool.execute.after-bash-exit-3", after(exit_3())),
            ("event-session.idle", hook_event("session.idle", Kind::TurnEnd)),
            ("dispose", hook_event("dispose", Kind::SessionEnd)),
            (
                "chat.message-second",
                message(
                    "msg_1e14ae26a001Usw86GT9tEzoXR",
                    prompt("Now the second. <<LABFILE /home/user/two.json FILE>>"),
                ),
            ),
            ("tool.execute.before-task", hook_event(BEFORE, Kind::Irrelevant)),
            ("event-session.created-subagent", of_subagent("session.created", Kind::SubagentStart)),
            (
                "chat.message-subagent",
                message(
                    "msg_1e14b03d5001FrIySVWBxFI2bM",
                    of_subagent("chat.message", Kind::Irrelevant),
                ),
            ),
            (
                "tool.execute.before-subagent-write",
                of_subagent(BEFORE, Kind::BeforeTool(by_subagent())),
            ),
            (
                "tool.execute.after-subagent-write",
                of_subagent(AFTER, Kind::AfterTool(by_subagent(), Outcome::Done.into())),
            ),
            ("event-session.idle-subagent", of_subagent("session.idle", Kind::SubagentStop)),
            ("tool.execute.after-task", hook_event(AFTER, Kind::Irrelevant)),
            ("tool.execute.before-apply_patch", patching(before(patched()))),
            ("tool.execute.after-apply_patch", patching(after(patched()))),
        ],
    );
}

#[test]
fn edits_name_their_files_and_a_command_may_write_anything() {
    let of = |call: ToolCall| {
        call_targets(&default_tools(), &call.tool, &call.input, Some(Path::new(PROJECT)))
    };
    let notes = || CallTargets::Paths(vec![PathBuf::from("/home/user/project/notes.md")]);
    assert_eq!(of(write("c", "notes.md", "x")), notes());
    assert_eq!(of(edit("c", "notes.md", "x", "y")), notes());
    let patch = "*** Begin Patch\n*** Add File: notes.md\n+p\n*** End Patch\n";
    assert_eq!(of(call("c", "apply_patch", json!({ "patchText": patch }))), notes());
    let command = Some("make".to_owned());
    assert_eq!(of(bash("c", "make", "d")), CallTargets::Anything { command, paths: Vec::new() });
}

fn plugin_for(program: &str) -> String {
    let program = HookProgram { word: &format!("'{program}'"), runs: &|_| true };
    String::from_utf8(add_hooks(&OPENCODE, None, &program).unwrap().unwrap()).unwrap()
}

#[test]
fn the_plugin_runs_takeback_by_its_path() {
    let plugin = plugin_for("/opt/take \"back\"");
    let line = plugin.lines().find(|line| line.starts_with("const TAKEBACK"));
    assert_eq!(line, Some(r#"const TAKEBACK = "/opt/take \"back\"";"#));
}

/// Runs in node, with the test's own server and `takeback`. Skipped with a message if node is not installed.
#[test]
#[expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]
fn the_plugin_works_with_and_without_a_server() {
    let sandbox = Sandbox::new();
    let stage = sandbox.outside();
    let takeback = stage.join("takeback");
    std::fs::write(stage.join("takeback.js"), plugin_for(takeback.to_str().unwrap())).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hook/plugin.mjs");
    let node = Command::new("node").arg(script).arg(&stage).output();
    let Ok(node) = node else {
        println!("skipped: there is no node");
        return;
    };
    let said = String::from_utf8_lossy(&node.stdout).into_owned();
    assert!(node.status.success(), "{said}{}", String::from_utf8_lossy(&node.stderr));
}
