//! What Gemini CLI gives its hooks.
//!
//! It gives calls no id; before and after a call it gives the same input. What a subagent does it tells
//! as if the session did it. `BeforeTool` comes before the person is asked, and a notification when the
//! question is shown.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use takeback_core::Outcome;

use crate::hook::{Ending, HearError, Heard, News, Question, ToolCall, Wanted, call_id, moment};

const NAME: &str = "gemini";

/// Every tool is told of: what is new may write too.
pub const WANTED: &[Wanted] = &[
    wanted("SessionStart"),
    wanted("BeforeAgent"),
    wanted("BeforeTool"),
    wanted("AfterTool"),
    wanted("Notification"),
    wanted("AfterAgent"),
    wanted("SessionEnd"),
];

const fn wanted(event: &'static str) -> Wanted {
    Wanted { event, matcher: None, timeout_seconds: 30 }
}

/// Tools that only read, only talk, or start what tells of itself.
const QUIET: &[&str] = &[
    "activate_skill",
    "ask_user",
    "complete_task",
    "enter_plan_mode",
    "exit_plan_mode",
    "get_internal_docs",
    "glob",
    "google_web_search",
    "grep_search",
    "invoke_agent",
    "list_background_processes",
    "list_directory",
    "list_mcp_resources",
    "read_background_output",
    "read_file",
    "read_many_files",
    "read_mcp_resource",
    "update_topic",
    "web_fetch",
    "write_todos",
];

#[derive(Debug, Deserialize)]
struct WireGiven {
    hook_event_name: String,
    session_id: String,
    transcript_path: Option<PathBuf>,
    timestamp: Option<Value>,
    cwd: Option<PathBuf>,
    prompt: Option<String>,
    tool_name: Option<String>,
    #[serde(default)]
    tool_input: Value,
    #[serde(default)]
    tool_response: Value,
    #[serde(default)]
    notification_type: String,
    #[serde(default)]
    details: WireDetails,
}

/// What a notification is about.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDetails {
    command: Option<String>,
    server_name: Option<String>,
    tool_name: Option<String>,
}

pub fn hear(given: &[u8]) -> Result<Heard, HearError> {
    let given: WireGiven = serde_json::from_slice(given)
        .map_err(|source| HearError::NotUnderstood { agent: NAME, source })?;
    let lacks = |field| HearError::Lacks { agent: NAME, field };
    let call = || -> Result<ToolCall, HearError> {
        let tool = given.tool_name.clone().ok_or_else(|| lacks("tool_name"))?;
        let input = given.tool_input.clone();
        Ok(ToolCall { id: call_id(&tool, &input), tool, input })
    };
    let is_quiet = given.tool_name.as_deref().is_some_and(|tool| QUIET.contains(&tool));
    let news = match given.hook_event_name.as_str() {
        "SessionStart" => News::SessionStart,
        "BeforeAgent" => {
            let text = given.prompt.clone().ok_or_else(|| lacks("prompt"))?;
            News::Prompt { text }
        }
        "BeforeTool" | "AfterTool" if is_quiet => News::Nothing,
        "BeforeTool" => News::Before(call()?),
        "AfterTool" => News::After(call()?, ending(&given.tool_response)),
        "Notification" if given.notification_type == "ToolPermission" => {
            asked(&given.details).map_or(News::Nothing, News::Asks)
        }
        "AfterAgent" => News::TurnEnd,
        "SessionEnd" => News::SessionEnd,
        _ => News::Nothing,
    };
    Ok(Heard {
        event: given.hook_event_name,
        session: given.session_id,
        subagent: None,
        cwd: given.cwd,
        transcript: given.transcript_path,
        prompt: None,
        timestamp: given.timestamp.as_ref().and_then(moment),
        is_fork: false,
        forked_from: None,
        news,
    })
}

/// `None`: an edit, which names what it writes, or a tool that writes nothing.
fn asked(details: &WireDetails) -> Option<Question> {
    match (&details.command, &details.server_name, &details.tool_name) {
        (Some(command), _, _) => Some(Question::Command(command.clone())),
        (None, Some(server), Some(tool)) => Some(Question::Tool(format!("mcp_{server}_{tool}"))),
        _ => None,
    }
}

/// What Gemini CLI shows in place of a command's output; people can send one there, too.
pub(super) const SENT_AWAY: &str = "Command moved to background (PID: ";

/// What it shows of a command that a person stopped.
const STOPPED: &str = "Command cancelled by user.";

fn ending(response: &Value) -> Ending {
    let interrupted = response["returnDisplay"] == STOPPED;
    let outcome = if interrupted { Outcome::Failed } else { outcome(response) };
    Ending { interrupted, ..outcome.into() }
}

fn outcome(response: &Value) -> Outcome {
    let shown = response["returnDisplay"].as_str().unwrap_or_default();
    if shown.starts_with(SENT_AWAY) {
        Outcome::Background
    } else if response["error"].is_object() {
        Outcome::Failed
    } else {
        Outcome::Done
    }
}
