//! What Codex gives its hooks.
//!
//! A command of the shell is `Bash`, whatever tool the model called, and tells its end when the process
//! ends, under the id of the call that started it. Of a patch within a command, of a call that could not
//! be made, and of a command that outlives the turn, no end is told. A program that the model writes to
//! call tools is not told of itself; the calls it makes are.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use takeback_core::Outcome;

use crate::hook::{HearError, Heard, News, ToolCall, Wanted};

const NAME: &str = "codex";

/// Every tool is told of: what is new may write too.
pub const WANTED: &[Wanted] = &[
    wanted("SessionStart"),
    wanted("UserPromptSubmit"),
    wanted("PreToolUse"),
    wanted("PostToolUse"),
    wanted("SubagentStart"),
    wanted("SubagentStop"),
    wanted("Stop"),
    // Codex gives it no longer, and says so at each start where more is asked for.
    Wanted { event: "SessionEnd", matcher: None, timeout_seconds: 3 },
];

const fn wanted(event: &'static str) -> Wanted {
    Wanted { event, matcher: None, timeout_seconds: 30 }
}

/// Tools that only read, only talk, or start what tells of itself.
const QUIET: &[&str] = &[
    "close_agent",
    "create_goal",
    "curr_time",
    "followup_task",
    "get_goal",
    "interrupt_agent",
    "list_agents",
    "list_mcp_resource_templates",
    "list_mcp_resources",
    "read_mcp_resource",
    "request_user_input",
    "request_user_input_async",
    "resume_agent",
    "send_input",
    "send_message",
    "sleep",
    "spawn_agent",
    "update_goal",
    "update_plan",
    "view_image",
    "wait_agent",
];

/// What stands before the names of some tools, with nothing between.
const NAMESPACES: &[&str] = &["clock", "collaboration", "multi_agent_v1"];

#[derive(Debug, Deserialize)]
struct WireGiven {
    hook_event_name: String,
    session_id: String,
    turn_id: Option<String>,
    agent_id: Option<String>,
    transcript_path: Option<PathBuf>,
    cwd: Option<PathBuf>,
    prompt: Option<String>,
    tool_name: Option<String>,
    #[serde(default)]
    tool_input: Value,
    tool_use_id: Option<String>,
}

pub fn hear(given: &[u8]) -> Result<Heard, HearError> {
    let given: WireGiven = serde_json::from_slice(given)
        .map_err(|source| HearError::NotUnderstood { agent: NAME, source })?;
    let lacks = |field| HearError::Lacks { agent: NAME, field };
    let call = || -> Result<ToolCall, HearError> {
        Ok(ToolCall {
            id: given.tool_use_id.clone().ok_or_else(|| lacks("tool_use_id"))?,
            tool: given.tool_name.clone().ok_or_else(|| lacks("tool_name"))?,
            input: given.tool_input.clone(),
        })
    };
    let news = match given.hook_event_name.as_str() {
        "SessionStart" => News::SessionStart,
        // What one agent asks of another is nobody's prompt.
        "UserPromptSubmit" if given.agent_id.is_some() => News::Nothing,
        "UserPromptSubmit" => {
            let text = given.prompt.clone().ok_or_else(|| lacks("prompt"))?;
            News::Prompt { text }
        }
        "PreToolUse" | "PostToolUse" if given.tool_name.as_deref().is_some_and(is_quiet) => {
            News::Nothing
        }
        "PreToolUse" => News::Before(call()?),
        // Whether it failed is not told.
        "PostToolUse" => News::After(call()?, Outcome::Done.into()),
        "SubagentStart" => News::SubagentStart,
        "SubagentStop" => News::SubagentStop,
        "Stop" => News::TurnEnd,
        "SessionEnd" => News::SessionEnd,
        _ => News::Nothing,
    };
    // A subagent has turns of its own, which nobody asked for.
    let prompt = given.turn_id.filter(|_| given.agent_id.is_none());
    Ok(Heard {
        event: given.hook_event_name,
        session: given.session_id,
        subagent: given.agent_id,
        cwd: given.cwd,
        transcript: given.transcript_path,
        prompt,
        timestamp: None,
        is_fork: false,
        forked_from: None,
        news,
    })
}

fn is_quiet(tool: &str) -> bool {
    let inside = NAMESPACES.iter().find_map(|namespace| tool.strip_prefix(namespace));
    QUIET.contains(&inside.unwrap_or(tool))
}
