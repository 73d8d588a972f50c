//! What Claude Code gives its hooks.

use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;
use takeback_core::Outcome;

use super::recorder::{QUIET, goes_on};
use crate::hook::{HearError, Heard, News, ToolCall, Wanted};

/// Every tool is told of: what is new may write too.
pub const WANTED: &[Wanted] = &[
    wanted("SessionStart", None),
    wanted("UserPromptSubmit", None),
    wanted("PreToolUse", Some("*")),
    wanted("PostToolUse", Some("*")),
    wanted("PostToolUseFailure", Some("*")),
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
}

pub fn hear(given: &[u8]) -> Result<Heard, HearError> {
    let agent = super::NAME;
    let given: WireGiven = serde_json::from_slice(given)
        .map_err(|source| HearError::NotUnderstood { agent, source })?;
    let lacks = |field| HearError::Lacks { agent, field };
    let call = || -> Result<ToolCall, HearError> {
        Ok(ToolCall {
            id: given.tool_use_id.clone().ok_or_else(|| lacks("tool_use_id"))?,
            tool: given.tool_name.clone().ok_or_else(|| lacks("tool_name"))?,
            input: given.tool_input.clone(),
        })
    };
    let quiet = given.tool_name.as_deref().is_some_and(|tool| QUIET.contains(&tool));
    let news = match given.hook_event_name.as_str() {
        "SessionStart" => News::SessionStart,
        "UserPromptSubmit" => {
            let text = given.prompt.clone().ok_or_else(|| lacks("prompt"))?;
            News::Prompt { text, id: given.prompt_id.clone() }
        }
        "PreToolUse" | "PostToolUse" | "PostToolUseFailure" if quiet => News::Nothing,
        "PreToolUse" => News::Before(call()?),
        "PostToolUse" => {
            let call = call()?;
            let goes_on = goes_on(&call.tool, &given.tool_response);
            News::After(call, if goes_on { Outcome::Background } else { Outcome::Done })
        }
        "PostToolUseFailure" => News::After(call()?, Outcome::Failed),
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
        news,
    })
}
