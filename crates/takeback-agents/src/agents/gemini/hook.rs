//! What Gemini CLI sends its hooks.
//!
//! Calls have no id; the input is the same before and after a call. What a subagent does is sent as if the
//! session did it. `BeforeTool` is sent before the person is asked, a notification when the question is
//! shown.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use takeback_core::Outcome;

use super::NAME;
use crate::hook::{
    CallEnd, HookEvent, HookEventKind, PayloadError, PermissionQuestion, ToolCall, call_id, moment,
};
use crate::kind::HookSpec;

pub(super) const HOOKS: &[HookSpec] = &[
    HookSpec::new("SessionStart"),
    HookSpec::new("BeforeAgent"),
    HookSpec::new("BeforeTool"),
    HookSpec::new("AfterTool"),
    HookSpec::new("Notification"),
    HookSpec::new("AfterAgent"),
    HookSpec::new("SessionEnd"),
];

#[derive(Debug, Deserialize)]
struct HookPayload {
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

pub(super) fn decode(payload: &[u8], _event: Option<&str>) -> Result<HookEvent, PayloadError> {
    let payload: HookPayload = serde_json::from_slice(payload)
        .map_err(|source| PayloadError::Malformed { agent: NAME, source })?;
    let missing = |field| PayloadError::MissingField { agent: NAME, field };
    let call = || -> Result<ToolCall, PayloadError> {
        let tool = payload.tool_name.clone().ok_or_else(|| missing("tool_name"))?;
        let input = payload.tool_input.clone();
        Ok(ToolCall { id: call_id(&tool, &input), tool, input })
    };
    let kind = match payload.hook_event_name.as_str() {
        "SessionStart" => HookEventKind::SessionStart,
        "BeforeAgent" => {
            let text = payload.prompt.clone().ok_or_else(|| missing("prompt"))?;
            HookEventKind::Prompt { text }
        }
        "BeforeTool" => HookEventKind::BeforeTool(call()?),
        "AfterTool" => HookEventKind::AfterTool(call()?, end(&payload.tool_response)),
        "Notification" if payload.notification_type == "ToolPermission" => {
            permission_question(&payload.details)
                .map_or(HookEventKind::Irrelevant, HookEventKind::PermissionAsked)
        }
        "AfterAgent" => HookEventKind::TurnEnd,
        "SessionEnd" => HookEventKind::SessionEnd,
        _ => HookEventKind::Irrelevant,
    };
    Ok(HookEvent {
        event: payload.hook_event_name,
        session: payload.session_id,
        subagent: None,
        cwd: payload.cwd,
        transcript: payload.transcript_path,
        prompt: None,
        timestamp: payload.timestamp.as_ref().and_then(moment),
        model: None,
        is_fork: false,
        forked_from: None,
        kind,
    })
}

/// `None`: an edit, which names its paths, or a tool that writes nothing.
fn permission_question(details: &WireDetails) -> Option<PermissionQuestion> {
    match (&details.command, &details.server_name, &details.tool_name) {
        (Some(command), _, _) => Some(PermissionQuestion::Command(command.clone())),
        (None, Some(server), Some(tool)) => {
            Some(PermissionQuestion::Tool(format!("mcp_{server}_{tool}")))
        }
        _ => None,
    }
}

/// Shown in place of a command's output; users can move commands there, too.
pub(super) const MOVED_TO_BACKGROUND: &str = "Command moved to background (PID: ";

/// Shown for a command that a person stopped.
const STOPPED: &str = "Command cancelled by user.";

fn end(response: &Value) -> CallEnd {
    let interrupted = response["returnDisplay"] == STOPPED;
    let outcome = if interrupted { Outcome::Failed } else { outcome(response) };
    CallEnd { interrupted, ..outcome.into() }
}

fn outcome(response: &Value) -> Outcome {
    let shown = response["returnDisplay"].as_str().unwrap_or_default();
    if shown.starts_with(MOVED_TO_BACKGROUND) {
        Outcome::Background
    } else if response["error"].is_object() {
        Outcome::Failed
    } else {
        Outcome::Done
    }
}
