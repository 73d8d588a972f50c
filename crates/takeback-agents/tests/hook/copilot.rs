//! Copilot CLI 1.0.102.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use takeback_agents::{
    CLAUDE, COPILOT, HookEvent, HookEventKind as Kind, PayloadError, ToolCall, call_targets,
    default_tools,
};
use takeback_core::{CallTargets, Outcome};

use crate::recorded::{all_are_parsed_as, bare_event, names_of, payload, sent_at};

const SESSION: &str = "5b1f3c52-5d0e-4a43-9b1c-0d6a4f0a6f11";
const SUBAGENT: &str = "476ae9f1-7efc-4d47-9256-8b8006910d8c";
const PROJECT: &str = "/home/user/project";

fn hook_event(event: &str, kind: Kind) -> HookEvent {
    bare_event(SESSION, event, kind)
}

fn of_subagent(event: &str, kind: Kind) -> HookEvent {
    HookEvent { subagent: Some(SUBAGENT.to_owned()), ..hook_event(event, kind) }
}

/// As an event that names the transcript.
fn with_transcript(hook_event: HookEvent) -> HookEvent {
    let transcript =
        format!("/home/user/.copilot/session-state/{}/events.jsonl", hook_event.session);
    HookEvent { transcript: Some(PathBuf::from(transcript)), ..hook_event }
}

fn in_session(session: &str, hook_event: HookEvent) -> HookEvent {
    HookEvent { session: session.to_owned(), ..hook_event }
}

fn prompt(text: &str) -> Kind {
    Kind::Prompt { text: text.to_owned() }
}

fn call(id: &str, tool: &str, input: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), tool: tool.to_owned(), input }
}

fn create() -> ToolCall {
    let input = json!({"path": "/home/user/project/notes.md", "file_text": "one\n"});
    call("7d72c2d8a979d656", "create", input)
}

#[test]
fn recorded_payloads_are_parsed() {
    let pre = |call: ToolCall| hook_event("preToolUse", Kind::BeforeTool(call));
    let post = |call: ToolCall, outcome: Outcome| {
        hook_event("postToolUse", Kind::AfterTool(call, outcome.into()))
    };
    let edit = |file: &str, old: &str, new: &str| {
        let path = format!("{PROJECT}/{file}");
        json!({"path": path, "old_str": old, "new_str": new})
    };
    let bash =
        |command: &str, description: &str| json!({"command": command, "description": description});
    let edit_notes = || call("f7e1697eefb7dede", "edit", edit("notes.md", "one", "two"));
    let edit_nothing = || call("e5ac820fc802e30e", "edit", edit("kept.md", "not there", "y"));
    let moves = "mv notes.md kept.md && mkdir -p sub && echo side > sub/shell.txt";
    let moved = || call("252f0d1b3bd09330", "bash", bash(moves, "move the notes"));
    let fails = || call("6079dd6188d32fca", "bash", bash("echo half > half.txt; exit 3", "fail"));
    let mut started = bash("sleep 2; echo late > late.txt", "go on");
    started["mode"] = json!("async");
    let started = || call("49b81e37f9873401", "bash", started.clone());
    let mut long = bash("sleep 45; echo long > long.txt", "long");
    long["initial_wait"] = json!(5);
    let long = || call("cbd63457cc64b5dc", "bash", long.clone());
    let patch = "*** Begin Patch\n*** Add File: patched.md\n+p\n*** Update File: kept.md\n@@\n-two\n\
                 +three\n*** End Patch\n";
    let patched = || call("8ab5eff457a4f71e", "apply_patch", json!(patch));
    let written = json!({"path": "/home/user/project/by-subagent.md", "file_text": "z\n"});
    let written = || call("ef41c3d327b3ea22", "create", written.clone());
    let patching = "64681315-c22d-48dd-9a54-31804d51695f";
    let waiting = "c760a795-3a2b-40df-ace0-ee37b2d3d6a8";
    all_are_parsed_as(
        &COPILOT,
        "copilot",
        &[
            ("sessionStart-new", hook_event("sessionStart", Kind::SessionStart)),
            (
                "userPromptSubmitted-first",
                hook_event(
                    "userPromptSubmitted",
                    prompt("Write the notes. <<LABFILE /home/user/one.json FILE>>"),
                ),
            ),
            ("preToolUse-create", pre(create())),
            ("postToolUse-create", post(create(), Outcome::Done)),
            ("preToolUse-edit", pre(edit_notes())),
            ("postToolUse-edit", post(edit_notes(), Outcome::Done)),
            ("preToolUse-bash", pre(moved())),
            ("postToolUse-bash", post(moved(), Outcome::Done)),
            ("preToolUse-view", hook_event("preToolUse", Kind::Irrelevant)),
            ("postToolUse-view", hook_event("postToolUse", Kind::Irrelevant)),
            ("preToolUse-edit-without-match", pre(edit_nothing())),
            (
                "postToolUseFailure-edit-without-match",
                hook_event(
                    "postToolUseFailure",
                    Kind::AfterTool(edit_nothing(), Outcome::Failed.into()),
                ),
            ),
            ("preToolUse-bash-exit-3", pre(fails())),
            ("postToolUse-bash-exit-3", post(fails(), Outcome::Done)),
            ("agentStop-first", with_transcript(hook_event("agentStop", Kind::TurnEnd))),
            ("sessionEnd-first", hook_event("sessionEnd", Kind::SessionEnd)),
            ("sessionStart-resume", hook_event("sessionStart", Kind::SessionStart)),
            (
                "userPromptSubmitted-second",
                hook_event(
                    "userPromptSubmitted",
                    prompt("Now the second. <<LABFILE /home/user/two.json FILE>>"),
                ),
            ),
            ("preToolUse-bash-async", pre(started())),
            ("postToolUse-bash-async", post(started(), Outcome::Background)),
            ("preToolUse-task", hook_event("preToolUse", Kind::Irrelevant)),
            ("subagentStart", with_transcript(of_subagent("subagentStart", Kind::SubagentStart))),
            ("userPromptSubmitted-subagent", of_subagent("userPromptSubmitted", Kind::Irrelevant)),
            ("preToolUse-subagent-create", of_subagent("preToolUse", Kind::BeforeTool(written()))),
            (
                "postToolUse-subagent-create",
                of_subagent("postToolUse", Kind::AfterTool(written(), Outcome::Done.into())),
            ),
            ("agentStop-subagent", with_transcript(of_subagent("agentStop", Kind::Irrelevant))),
            ("subagentStop", with_transcript(of_subagent("subagentStop", Kind::SubagentStop))),
            ("postToolUse-task", hook_event("postToolUse", Kind::Irrelevant)),
            (
                "userPromptSubmitted-notification",
                hook_event("userPromptSubmitted", Kind::Irrelevant),
            ),
            ("notification", hook_event("Notification", Kind::Irrelevant)),
            ("preToolUse-apply_patch", in_session(patching, pre(patched()))),
            ("postToolUse-apply_patch", in_session(patching, post(patched(), Outcome::Done))),
            ("preToolUse-bash-long", in_session(waiting, pre(long()))),
            ("postToolUse-bash-long", in_session(waiting, post(long(), Outcome::Background))),
        ],
    );
}

/// As in a trusted folder whose `.claude/settings.json` has hooks.
#[test]
fn payloads_for_claude_code_hooks_name_their_event() {
    let session = "023fb2ce-7720-4aa5-8b9d-78203b489ce0";
    let subagent = "c02e66d6-5a94-41ed-b26e-269396dbf904";
    let hook_event = |event: &str, kind| in_session(session, hook_event(event, kind));
    let of_subagent = |event: &str, kind| HookEvent {
        subagent: Some(subagent.to_owned()),
        ..hook_event(event, kind)
    };
    let write =
        |file: &str, text: &str| json!({"path": format!("{PROJECT}/{file}"), "file_text": text});
    let write_it = || call("47a414e828cfe753", "Write", write("pascal.md", "one\n"));
    let bash = || {
        let input = json!({"command": "echo pascal > shell.txt", "description": "d"});
        call("68efb1dddded9ef8", "Bash", input)
    };
    let edit = json!({"path": "/home/user/project/pascal.md", "old_str": "zzz", "new_str": "y"});
    let edit = call("c1b0b7a2331c8735", "Edit", edit);
    let by_other = call("a7cb1e33998bf7b7", "Write", write("by-other.md", "z\n"));
    all_are_parsed_as(
        &COPILOT,
        "copilot/as-claude",
        &[
            ("SessionStart", hook_event("SessionStart", Kind::SessionStart)),
            (
                "UserPromptSubmit",
                hook_event(
                    "UserPromptSubmit",
                    prompt("Write it. <<LABFILE /home/user/pascal.json FILE>>"),
                ),
            ),
            ("PreToolUse-Write", hook_event("PreToolUse", Kind::BeforeTool(write_it()))),
            (
                "PostToolUse-Write",
                hook_event("PostToolUse", Kind::AfterTool(write_it(), Outcome::Done.into())),
            ),
            ("PreToolUse-Bash", hook_event("PreToolUse", Kind::BeforeTool(bash()))),
            (
                "PostToolUse-Bash",
                hook_event("PostToolUse", Kind::AfterTool(bash(), Outcome::Done.into())),
            ),
            (
                "PostToolUseFailure-Edit",
                hook_event("PostToolUseFailure", Kind::AfterTool(edit, Outcome::Failed.into())),
            ),
            ("PreToolUse-Agent", hook_event("PreToolUse", Kind::Irrelevant)),
            ("SubagentStart", with_transcript(of_subagent("SubagentStart", Kind::SubagentStart))),
            ("PreToolUse-subagent-Write", of_subagent("PreToolUse", Kind::BeforeTool(by_other))),
            ("Stop-subagent", with_transcript(of_subagent("Stop", Kind::Irrelevant))),
            ("SubagentStop", with_transcript(of_subagent("SubagentStop", Kind::SubagentStop))),
            ("Stop", with_transcript(hook_event("Stop", Kind::TurnEnd))),
            ("SessionEnd", hook_event("SessionEnd", Kind::SessionEnd)),
        ],
    );
}

/// Copilot CLI has its own hooks: its actions must not be recorded twice, nor as Claude Code's.
#[test]
fn copilot_payloads_for_claude_code_hooks_are_refused() {
    for name in names_of("copilot/as-claude") {
        let hook_event = CLAUDE.parse(&payload("copilot/as-claude", &name), None);
        // In this one Copilot CLI spells the keys as in its own payloads.
        let is_its_own = name == "SubagentStart";
        match hook_event.unwrap_err() {
            PayloadError::OtherAgent { agent: "claude", by: "Copilot CLI" } if !is_its_own => {}
            PayloadError::Malformed { agent: "claude", .. } if is_its_own => {}
            error => panic!("{name}: {error}"),
        }
    }
}

#[test]
fn arguments_may_be_json_in_a_string() {
    let recorded = include_bytes!("recorded/copilot/preToolUse-create.json");
    let mut given: Value = serde_json::from_slice(recorded).unwrap();
    given["toolArgs"] = json!(given["toolArgs"].to_string());
    let given = given.to_string();
    let before = hook_event("preToolUse", Kind::BeforeTool(create()));
    let hook_event = COPILOT.parse(given.as_bytes(), Some("preToolUse")).unwrap();
    assert_eq!(HookEvent { timestamp: None, ..hook_event }, before);
}

#[test]
fn without_an_event_name_parsing_fails() {
    let given = include_bytes!("recorded/copilot/preToolUse-create.json");
    let error = COPILOT.parse(given, None).unwrap_err();
    assert!(
        matches!(error, PayloadError::MissingField { agent: "copilot", field: "event" }),
        "{error}"
    );
}

#[test]
fn edits_name_their_files_and_a_command_may_write_anything() {
    let of = |tool: &str, input: Value| {
        call_targets(&default_tools(), tool, &input, Some(Path::new("/home/user/project")))
    };
    let notes = || CallTargets::Paths(vec![PathBuf::from("/home/user/project/notes.md")]);
    let create = create();
    assert_eq!(of(&create.tool, create.input), notes());
    let edit = json!({"path": "/home/user/project/notes.md", "old_str": "a", "new_str": "b"});
    assert_eq!(of("edit", edit), notes());
    let patch = "*** Begin Patch\n*** Add File: notes.md\n+p\n*** End Patch\n";
    assert_eq!(of("apply_patch", json!(patch)), notes());
    let bash = of("bash", json!({"command": "make", "description": "d"}));
    assert_eq!(bash, CallTargets::Anything { command: Some("make".to_owned()), paths: Vec::new() });
}

#[test]
fn every_payload_has_its_time() {
    let at = sent_at(&COPILOT, "copilot", "postToolUse-bash");
    assert_eq!(at, Some(1_794_780_190_152));
    let as_claude = sent_at(&COPILOT, "copilot/as-claude", "PostToolUse-Bash");
    assert_eq!(as_claude, Some(1_794_780_346_973));
}
