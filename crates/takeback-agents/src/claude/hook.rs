//! What Claude Code gives its hooks.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use takeback_core::Outcome;

pub use super::ends::message_of;
use super::recorder::{QUIET, goes_on};
use crate::hook::{Ending, HearError, Heard, News, ToolCall, Wanted, millis};

/// Every tool is told of: what is new may write too.
pub const WANTED: &[Wanted] = &[
    wanted("SessionStart", None),
    wanted("UserPromptSubmit", None),
    wanted("PreToolUse", Some("*")),
    wanted("PostToolUse", Some("*")),
    wanted("PostToolUseFailure", Some("*")),
    // In auto mode, which is the default, a refusal sends nothing else. No person is asked then.
    wanted("PermissionDenied", Some("*")),
    wanted("SubagentStart", None),
    wanted("SubagentStop", None),
    wanted("Stop", None),
    wanted("StopFailure", None),
    wanted("SessionEnd", None),
];

const fn wanted(event: &'static str, matcher: Option<&'static str>) -> Wanted {
    Wanted { event, matcher, timeout_seconds: 30 }
}

#[derive(Debug, Deserialize)]
struct WireGiven {
    hook_event_name: String,
    session_id: String,
    transcript_path: Option<PathBuf>,
    cwd: Option<PathBuf>,
    prompt_id: Option<String>,
    agent_id: Option<String>,
    prompt: Option<String>,
    tool_name: Option<String>,
    #[serde(default)]
    tool_input: Value,
    tool_use_id: Option<String>,
    #[serde(default)]
    tool_response: Value,
    /// Without the time for permission prompts and hooks.
    duration_ms: Option<f64>,
    is_interrupt: Option<bool>,
    /// Of a session's start: how it came about.
    source: Option<String>,
    /// Claude Code gives none.
    timestamp: Option<Value>,
}

impl WireGiven {
    /// In folders that it trusts, Copilot CLI runs the hooks of `.claude/settings.json`, too. What it
    /// gives them looks alike; the conversation lies elsewhere, if it says where.
    fn is_of_copilot(&self) -> bool {
        let is_elsewhere = |path: &PathBuf| path.ends_with("events.jsonl");
        self.timestamp.is_some() && self.transcript_path.as_ref().is_none_or(is_elsewhere)
    }
}

pub fn hear(given: &[u8]) -> Result<Heard, HearError> {
    let agent = super::NAME;
    let given: WireGiven = serde_json::from_slice(given)
        .map_err(|source| HearError::NotUnderstood { agent, source })?;
    if given.is_of_copilot() {
        return Err(HearError::Another { agent, by: "Copilot CLI" });
    }
    let lacks = |field| HearError::Lacks { agent, field };
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
    let quiet = given.tool_name.as_deref().is_some_and(|tool| QUIET.contains(&tool));
    let news = match given.hook_event_name.as_str() {
        "SessionStart" => News::SessionStart,
        "UserPromptSubmit" => {
            let text = given.prompt.clone().ok_or_else(|| lacks("prompt"))?;
            of_its_own(&text).unwrap_or(News::Prompt { text })
        }
        "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "PermissionDenied" if quiet => {
            News::Nothing
        }
        "PreToolUse" => News::Before(call()?),
        "PostToolUse" => {
            let call = call()?;
            let goes_on = goes_on(&call.tool, &given.tool_response);
            let outcome = if goes_on { Outcome::Background } else { Outcome::Done };
            News::After(call, ending(outcome))
        }
        "PostToolUseFailure" => News::After(call()?, ending(Outcome::Failed)),
        "PermissionDenied" => News::Rejected(call()?),
        "SubagentStart" => News::SubagentStart,
        "SubagentStop" => News::SubagentStop,
        "Stop" | "StopFailure" => News::TurnEnd,
        "SessionEnd" => News::SessionEnd,
        _ => News::Nothing,
    };
    let is_fork = news == News::SessionStart && given.source.as_deref() == Some("fork");
    Ok(Heard {
        event: given.hook_event_name,
        session: given.session_id,
        subagent: given.agent_id,
        cwd: given.cwd,
        transcript: given.transcript_path,
        prompt: given.prompt_id,
        timestamp: None,
        is_fork,
        forked_from: None,
        news,
    })
}

/// Something in the background has ended, and the program says so to itself, in the middle of a turn or
/// after it. Nobody has asked for anything.
fn of_its_own(prompt: &str) -> Option<News> {
    if prompt.starts_with("Background agent \"") && prompt.ends_with("\" was stopped by the user.")
    {
        return Some(News::Nothing);
    }
    let notification = prompt.strip_prefix("<task-notification>")?;
    let between = |tag: &str| {
        let (_, after) = notification.split_once(&format!("<{tag}>"))?;
        Some(after.split_once(&format!("</{tag}>"))?.0)
    };
    Some(match (between("tool-use-id"), between("status")) {
        (Some(call), Some("completed" | "failed" | "killed")) => {
            News::Ended { call: call.to_owned() }
        }
        _ => News::Nothing,
    })
}
