//! Gemini CLI 0.61.0.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use takeback_agents::{
    GEMINI, HookEvent, HookEventKind as Kind, ToolCall, call_targets, default_tools,
};
use takeback_core::{CallTargets, Outcome};

use crate::recorded::{all_are_parsed_as, bare_event, payload, sent_at};

const SESSION: &str = "f56d3ddc-949a-4978-b256-e640bf391ee0";
const PROJECT: &str = "/home/user/project";

fn hook_event(event: &str, kind: Kind) -> HookEvent {
    let transcript = "/home/user/.gemini/tmp/project/chats/session-2026-11-15T22-13-f56d3ddc.jsonl";
    HookEvent { transcript: Some(PathBuf::from(transcript)), ..bare_event(SESSION, event, kind) }
}

fn call(id: &str, tool: &str, input: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), tool: tool.to_owned(), input }
}

fn shell(id: &str, command: &str) -> ToolCall {
    call(id, "run_shell_command", json!({ "command": command }))
}

fn write(id: &str, path: &str, content: &str) -> ToolCall {
    let path = format!("{PROJECT}/{path}");
    call(id, "write_file", json!({"file_path": path, "content": content}))
}

fn replace(id: &str, path: &str, old: &str, new: &str) -> ToolCall {
    let input = json!({
        "file_path": path, "old_string": old, "new_string": new, "instruction": "change it",
    });
    call(id, "replace", input)
}

fn prompt(recording: &str) -> Kind {
    let given: Value = serde_json::from_slice(&payload("gemini", recording)).unwrap();
    Kind::Prompt { text: given["prompt"].as_str().unwrap().to_owned() }
}

#[test]
fn recorded_payloads_are_parsed() {
    let before = |call: ToolCall| hook_event("BeforeTool", Kind::BeforeTool(call));
    let after = |call: ToolCall, outcome: Outcome| {
        hook_event("AfterTool", Kind::AfterTool(call, outcome.into()))
    };
    let added = || write("c9d44d9b86e96adb", "new/added.txt", "one\n");
    let helped = || write("9c0d546cb2933ebe", "sub.txt", "sub\n");
    let changed = || replace("29b1d1ef95876da9", "kept.txt", "old", "new");
    let misses = || replace("58095e808aa2a668", "/home/user/project/kept.txt", "absent", "x");
    let prints = || shell("ec0da889aadad26b", "printf shell > shell.txt");
    let fails = || shell("bb5ababc7aa35931", "echo no; exit 3");
    let stays = || {
        let input = json!({"command": "sleep 1; echo late > late.txt", "is_background": true});
        call("d3f5219861267a60", "run_shell_command", input)
    };
    let nothing = |event: &str| hook_event(event, Kind::Irrelevant);
    all_are_parsed_as(
        &GEMINI,
        "gemini",
        &[
            ("SessionStart-startup", hook_event("SessionStart", Kind::SessionStart)),
            ("BeforeAgent-first", hook_event("BeforeAgent", prompt("BeforeAgent-first"))),
            ("PreCompress", nothing("PreCompress")),
            ("BeforeTool-write_file", before(added())),
            ("AfterTool-write_file", after(added(), Outcome::Done)),
            ("BeforeTool-replace", before(changed())),
            ("AfterTool-replace", after(changed(), Outcome::Done)),
            ("BeforeTool-run_shell_command", before(prints())),
            ("AfterTool-run_shell_command", after(prints(), Outcome::Done)),
            ("BeforeTool-run_shell_command-exit-3", before(fails())),
            ("AfterTool-run_shell_command-exit-3", after(fails(), Outcome::Done)),
            ("BeforeTool-replace-without-match", before(misses())),
            ("AfterTool-replace-without-match", after(misses(), Outcome::Failed)),
            ("BeforeTool-run_shell_command-background", before(stays())),
            ("AfterTool-run_shell_command-background", after(stays(), Outcome::Background)),
            ("BeforeTool-read_file", nothing("BeforeTool")),
            ("AfterAgent", hook_event("AfterAgent", Kind::TurnEnd)),
            ("SessionEnd", hook_event("SessionEnd", Kind::SessionEnd)),
            ("SessionStart-resume", hook_event("SessionStart", Kind::SessionStart)),
            ("BeforeAgent-second", hook_event("BeforeAgent", prompt("BeforeAgent-second"))),
            ("BeforeTool-invoke_agent", nothing("BeforeTool")),
            ("BeforeTool-subagent-write_file", before(helped())),
            ("AfterTool-subagent-write_file", after(helped(), Outcome::Done)),
            ("BeforeTool-subagent-complete_task", nothing("BeforeTool")),
            ("AfterTool-invoke_agent", nothing("AfterTool")),
        ],
    );
}

#[test]
fn edits_name_their_file_relative_to_the_working_folder() {
    let touched = |call: ToolCall| {
        call_targets(&default_tools(), &call.tool, &call.input, Some(Path::new(PROJECT)))
    };
    let file = |path: &str| CallTargets::Paths(vec![Path::new(PROJECT).join(path)]);
    assert_eq!(touched(write("", "new/added.txt", "one\n")), file("new/added.txt"));
    assert_eq!(touched(replace("", "kept.txt", "old", "new")), file("kept.txt"));
}

#[test]
fn every_payload_has_its_time() {
    let at = sent_at(&GEMINI, "gemini", "AfterTool-run_shell_command");
    assert_eq!(at, Some(1_794_780_820_141));
}
