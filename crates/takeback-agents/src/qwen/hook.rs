//! What Qwen Code gives its hooks.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use takeback_core::Outcome;

use crate::hook::{Ending, HearError, Heard, News, ToolCall, Wanted, millis, moment};

const NAME: &str = "qwen";

/// Every tool is told of: what is new may write too.
pub const WANTED: &[Wanted] = &[
    wanted("SessionStart"),
    wanted("UserPromptSubmit"),
    wanted("PreToolUse"),
    wanted("PostToolUse"),
    wanted("PostToolUseFailure"),
    wanted("SubagentStart"),
    wanted("SubagentStop"),
    wanted("Stop"),
    wanted("StopFailure"),
    wanted("SessionEnd"),
];

const fn wanted(event: &'static str) -> Wanted {
    Wanted { event, matcher: None, timeout_seconds: 30 }
}

/// Tools that only read, only talk, or start what tells of itself.
const QUIET: &[&str] = &[
    "agent",
    "ask_user_question",
    "cron_create",
    "cron_delete",
    "cron_list",
    "display_image",
    "enter_plan_mode",
    "exit_plan_mode",
    "get_goal",
    "glob",
    "grep_search",
    "list_agents",
    "list_directory",
    "loop_wakeup",
    "propose_goal",
    "read_file",
    "read_mcp_resource",
    "report_findings",
    "send_message",
    "skill",
    "task_create",
    "task_list",
    "task_stop",
    "task_update",
    "todo_write",
    "tool_search",
    "update_goal",
    "web_fetch",
    "web_search",
    "zoom_image",
];

#[derive(Debug, Deserialize)]
struct WireGiven {
    hook_event_name: String,
    session_id: String,
    transcript_path: Option<PathBuf>,
    timestamp: Option<Value>,
    cwd: Option<PathBuf>,
    agent_id: Option<String>,
    prompt_id: Option<String>,
    /// Empty when what goes to the model is the result of a tool.
    prompt: Option<String>,
    /// What a person typed, before it was filled in.
    submitted_prompt: Option<String>,
    tool_name: Option<String>,
    #[serde(default)]
    tool_input: Value,
    tool_use_id: Option<String>,
    duration_ms: Option<f64>,
    is_interrupt: Option<bool>,
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
    let ending = |outcome| Ending {
        outcome,
        took: given.duration_ms.and_then(millis),
        interrupted: given.is_interrupt.unwrap_or_default(),
    };
    let is_quiet = given.tool_name.as_deref().is_some_and(|tool| QUIET.contains(&tool));
    let news = match given.hook_event_name.as_str() {
        "SessionStart" => News::SessionStart,
        "UserPromptSubmit" => {
            let text = given.submitted_prompt.clone().or_else(|| given.prompt.clone());
            let text = text.ok_or_else(|| lacks("prompt"))?;
            if text.is_empty() { News::Nothing } else { News::Prompt { text } }
        }
        "PreToolUse" | "PostToolUse" | "PostToolUseFailure" if is_quiet => News::Nothing,
        "PreToolUse" => News::Before(call()?),
        "PostToolUse" => {
            let call = call()?;
            let goes_on = call.tool == "monitor" || call.input["is_background"] == true;
            let outcome = if goes_on { Outcome::Background } else { Outcome::Done };
            News::After(call, ending(outcome))
        }
        "PostToolUseFailure" => News::After(call()?, ending(Outcome::Failed)),
        "SubagentStart" => News::SubagentStart,
        "SubagentStop" => News::SubagentStop,
        "Stop" | "StopFailure" => News::TurnEnd,
        "SessionEnd" => News::SessionEnd,
        _ => News::Nothing,
    };
    Ok(Heard {
        event: given.hook_event_name,
        session: given.session_id,
        subagent: given.agent_id,
        cwd: given.cwd,
        transcript: given.transcript_path,
        prompt: given.prompt_id,
        timestamp: given.timestamp.as_ref().and_then(moment),
        is_fork: false,
        forked_from: None,
        news,
    })
}
