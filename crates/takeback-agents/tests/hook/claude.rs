//! Claude Code 2.1.325.

use std::path::PathBuf;

use serde_json::{Value, json};
use takeback_agents::claude::hook::message_of;
use takeback_agents::hook::{HearError, Heard, News, Plugged, ToolCall, hear};
use takeback_core::Outcome;

use crate::recorded::{all_are_heard_as, took};

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

fn heard(event: &str, news: News) -> Heard {
    let folder = "/home/user/.claude/projects/-home-user-project";
    Heard {
        event: event.to_owned(),
        session: SESSION.to_owned(),
        subagent: None,
        cwd: Some(PathBuf::from("/home/user/project")),
        transcript: Some(PathBuf::from(format!("{folder}/{SESSION}.jsonl"))),
        prompt: Some(PROMPT.to_owned()),
        timestamp: None,
        is_fork: false,
        forked_from: None,
        news,
    }
}

fn in_session(session: &str, prompt: Option<&str>, heard: Heard) -> Heard {
    let folder = "/home/user/.claude/projects/-home-user-project";
    Heard {
        session: session.to_owned(),
        transcript: Some(PathBuf::from(format!("{folder}/{session}.jsonl"))),
        prompt: prompt.map(str::to_owned),
        ..heard
    }
}

/// In the terminal, where a person is asked for permissions.
fn later(event: &str, prompt: &str, news: News) -> Heard {
    in_session(TERMINAL, Some(prompt), heard(event, news))
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
    let waited = || {
        let input = json!({"command": "touch waited.txt && sleep 2", "description": "d"});
        call("toolu_50b1e840a4354c63b20900", "Bash", input)
    };
    let piped = json!({"command": "curl -s http://127.0.0.1:9/x | sh", "description": "d"});
    let piped = call(PIPED_CALL, "Bash", piped);
    let denied = in_session(AUTO, Some(PIPED), heard("PermissionDenied", News::Rejected(piped)));
    let fork = Heard { is_fork: true, ..heard("SessionStart", News::SessionStart) };
    let fork = in_session(FORK, None, fork);
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
                of_subagent("PostToolUse", News::After(write(), took(Outcome::Done, 21))),
            ),
            ("subagent_stop", of_subagent("SubagentStop", News::SubagentStop)),
            ("before_bash", heard("PreToolUse", News::Before(bash()))),
            (
                "failed_bash",
                heard("PostToolUseFailure", News::After(bash(), took(Outcome::Failed, 52))),
            ),
            ("before_read", heard("PreToolUse", News::Before(read()))),
            ("before_edit", heard("PreToolUse", News::Before(edit()))),
            ("after_edit", heard("PostToolUse", News::After(edit(), took(Outcome::Done, 42)))),
            (
                "after_bash_that_waited",
                later("PostToolUse", WAITED, News::After(waited(), took(Outcome::Done, 2031))),
            ),
            ("permission_request", later("PermissionRequest", REFUSED, News::Nothing)),
            (
                "prompt_that_a_subagent_was_stopped",
                later("UserPromptSubmit", STOPPED, News::Nothing),
            ),
            ("permission_denied", denied),
            ("session_start_of_fork", fork),
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
fn a_prompt_of_a_fork_is_not_one_that_it_copied() {
    let transcript = include_bytes!("recorded/claude/forks/by_option.jsonl");
    let message = Some("18a49861-cfdc-45d3-b146-57a0550c82cc".to_owned());
    assert_eq!(message_of(transcript, "d76dfdd7-7e19-45a3-a6be-368634a9bc32"), message);
}

#[test]
fn that_a_turn_was_interrupted_is_no_prompt() {
    let transcript = include_bytes!("recorded/claude/ends/main.jsonl");
    let message = Some("248c388a-d526-42a0-b8e0-96844e0f3c81".to_owned());
    assert_eq!(message_of(transcript, "fb84a422-64ae-4189-8948-3a7f4c8f5a86"), message);
    let first = "ec122d92-af89-4415-a605-03696bf6f09c";
    assert_eq!(
        message_of(transcript, first),
        Some("9ffa596f-5c4b-4639-bb50-f4ecb329559f".to_owned())
    );
    let second_line = transcript.iter().position(|byte| *byte == b'\n').unwrap();
    assert_eq!(message_of(&transcript[second_line..], first), None);
}

#[test]
fn what_is_no_event_is_said_to_be_none() {
    let hear = |given: &str| hear(Plugged::Claude, given.as_bytes(), None).unwrap_err();
    assert!(matches!(hear("{"), HearError::NotUnderstood { .. }));
    assert!(matches!(hear("[]"), HearError::NotUnderstood { .. }));
    let lacks = r#"{"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Write"}"#;
    assert_eq!(hear(lacks).to_string(), "claude gave its hook no tool_use_id");
}
