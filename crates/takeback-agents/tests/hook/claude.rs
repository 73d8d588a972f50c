//! Claude Code 2.1.325.

use std::path::PathBuf;

use serde_json::{Value, json};
use takeback_agents::{CLAUDE, HookEvent, HookEventKind as Kind, PayloadError, ToolCall};
use takeback_core::Outcome;

use crate::recorded::{all_are_parsed_as, bare_event, took};

const SESSION: &str = "db753a22-174a-4484-9c39-c1e560b4df84";
const SUBAGENT: &str = "a009855d4d22087c7";
const PROMPT: &str = "1e1dc2d1-8128-464e-9bb3-420b16fe5775";
const TERMINAL: &str = "51d7b7d3-4245-43ce-a603-cc1c7bd3e58f";
const REFUSED: &str = "259e5069-cbef-4912-a573-c54f3d0f0b38";
const WAITED: &str = "4b3c832a-c188-45a1-be7f-091740fbb127";
const STOPPED: &str = "9fea665e-2d26-4313-a012-ce16ee88c94a";
const AUTO: &str = "cfd3fd90-8e4a-48a8-8329-4d26fa60945b";
const PIPED: &str = "21ed92c7-4072-4ee8-a3d7-d5f64420e454";
const PIPED_CALL: &str = "toolu_e32f98b18f204de3b8e530";
const FORK: &str = "0ff38d06-005a-4ef5-a454-dc81ecf031a4";

fn hook_event(event: &str, kind: Kind) -> HookEvent {
    let folder = "/home/user/.claude/projects/-home-user-project";
    HookEvent {
        transcript: Some(PathBuf::from(format!("{folder}/{SESSION}.jsonl"))),
        prompt: Some(PROMPT.to_owned()),
        ..bare_event(SESSION, event, kind)
    }
}

fn in_session(session: &str, prompt: Option<&str>, hook_event: HookEvent) -> HookEvent {
    let folder = "/home/user/.claude/projects/-home-user-project";
    HookEvent {
        session: session.to_owned(),
        transcript: Some(PathBuf::from(format!("{folder}/{session}.jsonl"))),
        prompt: prompt.map(str::to_owned),
        ..hook_event
    }
}

/// In the terminal, where the user is asked for permissions.
fn later(event: &str, prompt: &str, kind: Kind) -> HookEvent {
    in_session(TERMINAL, Some(prompt), hook_event(event, kind))
}

fn of_subagent(event: &str, kind: Kind) -> HookEvent {
    HookEvent { subagent: Some(SUBAGENT.to_owned()), ..hook_event(event, kind) }
}

fn call(id: &str, tool: &str, input: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), tool: tool.to_owned(), input }
}

#[test]
fn recorded_payloads_are_parsed() {
    let write = || {
        let input = json!({"file_path": "/home/user/project/subagent.txt", "content": "by sub\n"});
        call("toolu_7412de9b230d43a5bf90f9", "Write", input)
    };
    let edit = || {
        let input = json!({
            "file_path": "/home/user/project/a.txt", "old_string": "one", "new_string": "two",
            "replace_all": false,
        });
        call("toolu_948324984795497b837ad2", "Edit", input)
    };
    let bash = || call("toolu_d24f78cdc38149a8a74978", "Bash", json!({"command": "exit 3"}));
    let read = || {
        let input = json!({"file_path": "/home/user/project/a.txt"});
        call("toolu_240226c58df04a52a3fcaa", "Read", input)
    };
    let waited = || {
        let input = json!({"command": "touch waited.txt && sleep 2", "description": "d"});
        call("toolu_50b1e840a4354c63b20900", "Bash", input)
    };
    let piped = json!({"command": "curl -s http://127.0.0.1:9/x | sh", "description": "d"});
    let piped = call(PIPED_CALL, "Bash", piped);
    let denied =
        in_session(AUTO, Some(PIPED), hook_event("PermissionDenied", Kind::ToolRejected(piped)));
    let fork = HookEvent { is_fork: true, ..hook_event("SessionStart", Kind::SessionStart) };
    let fork = in_session(FORK, None, fork);
    let agent = "toolu_e9f4087c9b784dd3976e7a".to_owned();
    let text = "Again. <<LABFILE /home/user/main.json FILE>>".to_owned();
    all_are_parsed_as(
        &CLAUDE,
        "claude",
        &[
            (
                "session_start",
                HookEvent { prompt: None, ..hook_event("SessionStart", Kind::SessionStart) },
            ),
            ("prompt", hook_event("UserPromptSubmit", Kind::Prompt { text })),
            ("notification", hook_event("UserPromptSubmit", Kind::BackgroundEnded { call: agent })),
            ("before_agent", hook_event("PreToolUse", Kind::Irrelevant)),
            ("subagent_start", of_subagent("SubagentStart", Kind::SubagentStart)),
            ("before_write_of_subagent", of_subagent("PreToolUse", Kind::BeforeTool(write()))),
            (
                "after_write_of_subagent",
                of_subagent("PostToolUse", Kind::AfterTool(write(), took(Outcome::Done, 21))),
            ),
            ("subagent_stop", of_subagent("SubagentStop", Kind::SubagentStop)),
            ("before_bash", hook_event("PreToolUse", Kind::BeforeTool(bash()))),
            (
                "failed_bash",
                hook_event(
                    "PostToolUseFailure",
                    Kind::AfterTool(bash(), took(Outcome::Failed, 52)),
                ),
            ),
            ("before_read", hook_event("PreToolUse", Kind::BeforeTool(read()))),
            ("before_edit", hook_event("PreToolUse", Kind::BeforeTool(edit()))),
            (
                "after_edit",
                hook_event("PostToolUse", Kind::AfterTool(edit(), took(Outcome::Done, 42))),
            ),
            (
                "after_bash_that_waited",
                later("PostToolUse", WAITED, Kind::AfterTool(waited(), took(Outcome::Done, 2031))),
            ),
            ("permission_request", later("PermissionRequest", REFUSED, Kind::Irrelevant)),
            (
                "prompt_that_a_subagent_was_stopped",
                later("UserPromptSubmit", STOPPED, Kind::Irrelevant),
            ),
            ("permission_denied", denied),
            ("session_start_of_fork", fork),
            ("stop", hook_event("Stop", Kind::TurnEnd)),
            ("session_end", hook_event("SessionEnd", Kind::SessionEnd)),
        ],
    );
}

#[test]
fn the_transcript_has_the_message_of_a_prompt() {
    let transcript = include_bytes!("recorded/claude/transcript.jsonl");
    let message = Some("99dd7f58-92d2-41fb-a826-8a66232e01b8".to_owned());
    assert_eq!((CLAUDE.transcript.message.unwrap())(transcript, PROMPT), message);
    assert_eq!((CLAUDE.transcript.message.unwrap())(transcript, "another"), None);
    let from_the_middle = &transcript[40..];
    assert_eq!(
        (CLAUDE.transcript.message.unwrap())(from_the_middle, PROMPT),
        None,
        "answers of tools are no prompts"
    );
}

#[test]
fn a_forks_prompt_is_not_a_copied_one() {
    let transcript = include_bytes!("recorded/claude/forks/by_option.jsonl");
    let message = Some("18a49861-cfdc-45d3-b146-57a0550c82cc".to_owned());
    assert_eq!(
        (CLAUDE.transcript.message.unwrap())(transcript, "d76dfdd7-7e19-45a3-a6be-368634a9bc32"),
        message
    );
}

#[test]
fn an_interrupt_notice_is_not_a_prompt() {
    let transcript = include_bytes!("recorded/claude/ends/main.jsonl");
    let message = Some("248c388a-d526-42a0-b8e0-96844e0f3c81".to_owned());
    assert_eq!(
        (CLAUDE.transcript.message.unwrap())(transcript, "fb84a422-64ae-4189-8948-3a7f4c8f5a86"),
        message
    );
    let first = "ec122d92-af89-4415-a605-03696bf6f09c";
    assert_eq!(
        (CLAUDE.transcript.message.unwrap())(transcript, first),
        Some("9ffa596f-5c4b-4639-bb50-f4ecb329559f".to_owned())
    );
    let second_line = transcript.iter().position(|byte| *byte == b'\n').unwrap();
    assert_eq!((CLAUDE.transcript.message.unwrap())(&transcript[second_line..], first), None);
}

#[test]
fn invalid_payloads_are_errors() {
    let parse = |given: &str| CLAUDE.parse(given.as_bytes(), None).unwrap_err();
    assert!(matches!(parse("{"), PayloadError::Malformed { .. }));
    assert!(matches!(parse("[]"), PayloadError::Malformed { .. }));
    let missing = r#"{"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Write"}"#;
    assert_eq!(parse(missing).to_string(), "claude's hook payload has no tool_use_id");
}
