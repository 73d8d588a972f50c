//! Qwen Code 0.24.4.

use std::path::PathBuf;

use serde_json::{Value, json};
use takeback_agents::{
    CallEnd, HookEvent, HookEventKind as Kind, QWEN, ToolCall, call_targets, default_tools,
};
use takeback_core::{CallTargets, Outcome};

use crate::recorded::{all_are_parsed_as, bare_event, sent_at, took};

const SESSION: &str = "5b1f3c52-5d0e-4a43-9b1c-0d6a4f0a6f33";
const PROJECT: &str = "/home/user/project";
const MOVES: &str = "mv notes.md kept.md && mkdir -p sub && echo side > sub/shell.txt";

/// An event without a prompt.
fn hook_event(session: &str, event: &str, kind: Kind) -> HookEvent {
    let chats = "/home/user/.qwen/projects/-home-user-project/chats";
    HookEvent {
        transcript: Some(PathBuf::from(format!("{chats}/{session}.jsonl"))),
        ..bare_event(session, event, kind)
    }
}

fn for_first(event: &str, kind: Kind) -> HookEvent {
    HookEvent { prompt: Some(format!("{SESSION}########0")), ..hook_event(SESSION, event, kind) }
}

fn for_second(event: &str, kind: Kind) -> HookEvent {
    HookEvent { prompt: Some(format!("{SESSION}########2")), ..hook_event(SESSION, event, kind) }
}

fn of_subagent(event: &str, kind: Kind) -> HookEvent {
    HookEvent { subagent: Some("general-purpose-call_42".to_owned()), ..for_second(event, kind) }
}

fn prompt(text: &str) -> Kind {
    Kind::Prompt { text: text.to_owned() }
}

fn call(id: &str, tool: &str, input: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), tool: tool.to_owned(), input }
}

fn write(id: &str, file: &str, content: &str) -> ToolCall {
    let path = format!("{PROJECT}/{file}");
    call(id, "write_file", json!({"file_path": path, "content": content}))
}

fn edit(id: &str, file: &str, old: &str, new: &str) -> ToolCall {
    let path = format!("{PROJECT}/{file}");
    call(id, "edit", json!({"file_path": path, "old_string": old, "new_string": new}))
}

fn shell(id: &str, command: &str, description: &str, is_background: bool) -> ToolCall {
    let input = json!({
        "command": command, "description": description, "is_background": is_background,
    });
    call(id, "run_shell_command", input)
}

#[test]
fn recorded_payloads_are_parsed() {
    let pre = |call: ToolCall| for_first("PreToolUse", Kind::BeforeTool(call));
    let post = |call: ToolCall, millis| {
        for_first("PostToolUse", Kind::AfterTool(call, took(Outcome::Done, millis)))
    };
    let failed = |call, millis| {
        for_first("PostToolUseFailure", Kind::AfterTool(call, took(Outcome::Failed, millis)))
    };
    let notes = || write("toolu_1794780588972_g3uzky5v2", "notes.md", "one\n");
    let edited = || edit("toolu_1794780589170_568qu1m8z", "notes.md", "one", "two");
    let unmatched = || edit("toolu_1794780590658_kepm0v6jh", "kept.md", "not there", "y");
    let moved = || shell("toolu_1794780589478_3bx0xjtrt", MOVES, "move the notes", false);
    let exit_3 = || {
        let command = "echo half > half.txt; exit 3";
        shell("toolu_1794780591106_l5zo5fsdq", command, "fail", false)
    };
    let started = || {
        let command = "sleep 2; echo late > late.txt";
        shell("toolu_1794780597226_1wyecjts5", command, "go on", true)
    };
    // In its terminal, where the user is asked for permissions. A call starts after that.
    let asked = |event: &str, kind| hook_event("5c5e21f5-869f-4b25-ab4f-48b5bc9ca458", event, kind);
    let in_terminal = |id: &str, command: &str| {
        call(id, "run_shell_command", json!({"command": command, "is_background": false}))
    };
    let waited = in_terminal("toolu_1794828825114_smbjbzcp7", "touch waited.txt && sleep 2");
    let stops = "echo half > half.txt && sleep 30 && echo whole > whole.txt";
    let stopped = in_terminal("toolu_1794828796242_ebsjqbdoi", stops);
    let permission = HookEvent {
        prompt: Some("5c5e21f5-869f-4b25-ab4f-48b5bc9ca458########0".to_owned()),
        ..asked("PermissionRequest", Kind::Irrelevant)
    };
    let interrupted = CallEnd { interrupted: true, ..took(Outcome::Failed, 3261) };
    let by_subagent = || write("toolu_1794780598122_jqzdcklsh", "by-subagent.md", "z\n");
    let first = prompt("Write the notes. <<LABFILE /home/user/one.json FILE>>");
    let second = prompt("Now the second. <<LABFILE /home/user/two.json FILE>>");
    let before_clear = "85e2b4a0-c60d-4be1-8a70-731523d1fb44";
    let cleared = |event: &str, session: &str, kind| HookEvent {
        prompt: Some(format!("{before_clear}########1")),
        ..hook_event(session, event, kind)
    };
    let after_clear = "714d52ef-4dc7-4a43-9a26-8a203c2defc0";
    all_are_parsed_as(
        &QWEN,
        "qwen",
        &[
            ("SessionStart-startup", hook_event(SESSION, "SessionStart", Kind::SessionStart)),
            ("UserPromptSubmit-first", for_first("UserPromptSubmit", first)),
            ("PreToolUse-write_file", pre(notes())),
            ("PostToolUse-write_file", post(notes(), 9)),
            ("UserPromptSubmit-after-tool", for_first("UserPromptSubmit", Kind::Irrelevant)),
            ("PreToolUse-edit", pre(edited())),
            ("PostToolUse-edit", post(edited(), 15)),
            ("PreToolUse-run_shell_command", pre(moved())),
            ("PostToolUse-run_shell_command", post(moved(), 52)),
            ("PreToolUse-read_file", for_first("PreToolUse", Kind::Irrelevant)),
            ("PostToolUse-read_file", for_first("PostToolUse", Kind::Irrelevant)),
            ("PreToolUse-edit-without-match", pre(unmatched())),
            ("PostToolUseFailure-edit-without-match", failed(unmatched(), 4)),
            ("PreToolUse-run_shell_command-exit-3", pre(exit_3())),
            ("PostToolUseFailure-run_shell_command-exit-3", failed(exit_3(), 59)),
            (
                "PostToolUse-run_shell_command-waited",
                asked("PostToolUse", Kind::AfterTool(waited, took(Outcome::Done, 2082))),
            ),
            (
                "PostToolUseFailure-run_shell_command-interrupted",
                asked("PostToolUseFailure", Kind::AfterTool(stopped, interrupted)),
            ),
            ("PermissionRequest-write_file", permission),
            ("Stop-first", for_first("Stop", Kind::TurnEnd)),
            ("SessionStart-resume", hook_event(SESSION, "SessionStart", Kind::SessionStart)),
            ("UserPromptSubmit-second", for_second("UserPromptSubmit", second)),
            (
                "PreToolUse-run_shell_command-background",
                for_second("PreToolUse", Kind::BeforeTool(started())),
            ),
            (
                "PostToolUse-run_shell_command-background",
                for_second(
                    "PostToolUse",
                    Kind::AfterTool(started(), took(Outcome::Background, 36)),
                ),
            ),
            ("PreToolUse-agent", for_second("PreToolUse", Kind::Irrelevant)),
            ("SubagentStart", of_subagent("SubagentStart", Kind::SubagentStart)),
            (
                "PreToolUse-subagent-write_file",
                of_subagent("PreToolUse", Kind::BeforeTool(by_subagent())),
            ),
            (
                "PostToolUse-subagent-write_file",
                of_subagent("PostToolUse", Kind::AfterTool(by_subagent(), took(Outcome::Done, 16))),
            ),
            ("SubagentStop", of_subagent("SubagentStop", Kind::SubagentStop)),
            ("PostToolUse-agent", for_second("PostToolUse", Kind::Irrelevant)),
            ("Notification", hook_event(before_clear, "Notification", Kind::Irrelevant)),
            ("SessionEnd-clear", cleared("SessionEnd", before_clear, Kind::SessionEnd)),
            ("SessionStart-clear", cleared("SessionStart", after_clear, Kind::SessionStart)),
            ("SessionEnd-exit", hook_event(after_clear, "SessionEnd", Kind::SessionEnd)),
        ],
    );
}

#[test]
fn edits_name_their_files_and_a_command_may_write_anything() {
    let of = |call: ToolCall| call_targets(&default_tools(), &call.tool, &call.input, None);
    let notes = || CallTargets::Paths(vec![PathBuf::from("/home/user/project/notes.md")]);
    assert_eq!(of(write("c", "notes.md", "x")), notes());
    assert_eq!(of(edit("c", "notes.md", "x", "y")), notes());
    let command = Some("make".to_owned());
    assert_eq!(
        of(shell("c", "make", "d", false)),
        CallTargets::Anything { command, paths: Vec::new() }
    );
}

#[test]
fn every_payload_has_its_time() {
    let at = sent_at(&QWEN, "qwen", "PostToolUse-run_shell_command");
    assert_eq!(at, Some(1_794_780_589_587));
}
