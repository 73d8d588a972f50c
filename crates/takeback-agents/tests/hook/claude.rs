//! Claude Code 2.1.325.

use std::path::PathBuf;

use serde_json::{Value, json};
use takeback_agents::claude::hook::message_of;
use takeback_agents::hook::{HearError, Heard, News, Plugged, ToolCall, hear};
use takeback_core::Outcome;

use crate::recorded::all_are_heard_as;

const SESSION: &str = "db753a22-174a-4484-9c39-c1e560b4df84";
const SUBAGENT: &str = "a009855d4d22087c7";
const PROMPT: &str = "1e1dc2d1-8128-464e-9bb3-420b16fe5775";

fn heard(event: &str, news: News) -> Heard {
    let folder = "/home/user/.claude/projects/-home-user-project";
    Heard {
        event: event.to_owned(),
        session: SESSION.to_owned(),
        subagent: None,
        cwd: Some(PathBuf::from("/home/user/project")),
        transcript: Some(PathBuf::from(format!("{folder}/{SESSION}.jsonl"))),
        prompt: Some(PROMPT.to_owned()),
        news,
    }
}

fn of_subagent(event: &str, news: News) -> Heard {
    Heard { subagent: Some(SUBAGENT.to_owned()), ..heard(event, news) }
}

fn call(id: &str, tool: &str, input: Value) -> ToolCall {
    ToolCall { id: id.to_owned(), tool: tool.to_owned(), input }
}

#[test]
fn what_the_program_gives_is_understood() {
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
    let agent = "toolu_e9f4087c9b784dd3976e7a".to_owned();
    let text = "Again. <<LABFILE /home/user/main.json FILE>>".to_owned();
    all_are_heard_as(
        Plugged::Claude,
        "claude",
        &[
            ("session_start", Heard { prompt: None, ..heard("SessionStart", News::SessionStart) }),
            ("prompt", heard("UserPromptSubmit", News::Prompt { text })),
            ("notification", heard("UserPromptSubmit", News::Ended { call: agent })),
            ("before_agent", heard("PreToolUse", News::Nothing)),
            ("subagent_start", of_subagent("SubagentStart", News::SubagentStart)),
            ("before_write_of_subagent", of_subagent("PreToolUse", News::Before(write()))),
            (
                "after_write_of_subagent",
                of_subagent("PostToolUse", News::After(write(), Outcome::Done)),
            ),
            ("subagent_stop", of_subagent("SubagentStop", News::SubagentStop)),
            ("before_bash", heard("PreToolUse", News::Before(bash()))),
            ("failed_bash", heard("PostToolUseFailure", News::After(bash(), Outcome::Failed))),
            ("before_read", heard("PreToolUse", News::Before(read()))),
            ("before_edit", heard("PreToolUse", News::Before(edit()))),
            ("after_edit", heard("PostToolUse", News::After(edit(), Outcome::Done))),
            ("stop", heard("Stop", News::TurnEnd)),
            ("session_end", heard("SessionEnd", News::SessionEnd)),
        ],
    );
}

#[test]
fn the_transcript_tells_which_message_a_prompt_became() {
    let transcript = include_bytes!("recorded/claude/transcript.jsonl");
    let message = Some("99dd7f58-92d2-41fb-a826-8a66232e01b8".to_owned());
    assert_eq!(message_of(transcript, PROMPT), message);
    assert_eq!(message_of(transcript, "another"), None);
    let from_the_middle = &transcript[40..];
    assert_eq!(message_of(from_the_middle, PROMPT), None, "answers of tools are no prompts");
}

#[test]
fn what_is_no_event_is_said_to_be_none() {
    let hear = |given: &str| hear(Plugged::Claude, given.as_bytes(), None).unwrap_err();
    assert!(matches!(hear("{"), HearError::NotUnderstood { .. }));
    assert!(matches!(hear("[]"), HearError::NotUnderstood { .. }));
    let lacks = r#"{"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Write"}"#;
    assert_eq!(hear(lacks).to_string(), "claude gave its hook no tool_use_id");
}
