//! What Copilot CLI sends its hooks.
//!
//! Its JSON does not name the event, so the command line of each hook does. Under Claude Code's names for
//! events (`PreToolUse`) Copilot CLI sends payloads in Claude Code's shape, with the name; in a folder that
//! it trusts it runs the hooks of `.claude/settings.json`, too.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use takeback_core::Outcome;

use super::NAME;
use crate::hook::{HookEvent, HookEventKind, PayloadError, ToolCall, call_id, moment};
use crate::install::IGNORE_FAILURE;
use crate::kind::HookSpec;

pub(super) const HOOKS: &[HookSpec] = &[
    HookSpec::new("sessionStart"),
    HookSpec::new("userPromptSubmitted"),
    HookSpec::new(BEFORE_TOOL),
    HookSpec::new("postToolUse"),
    HookSpec::new("postToolUseFailure"),
    HookSpec::new("subagentStart"),
    HookSpec::new("subagentStop"),
    HookSpec::new("agentStop"),
    HookSpec::new("sessionEnd"),
];

const BEFORE_TOOL: &str = "preToolUse";

/// Payloads do not name the event, so the command line does. Copilot CLI refuses every tool if its hook
/// before tools cannot be run: also after Takeback was removed or moved.
pub(super) fn command_suffix(event: &str) -> String {
    match event {
        BEFORE_TOOL => format!(" --event {event}{IGNORE_FAILURE}"),
        _ => format!(" --event {event}"),
    }
}

/// The start of a prompt that Copilot CLI submits itself, for instance when a command has ended.
const NOTIFICATION: &str = "<system_notification>";

#[derive(Debug, Deserialize)]
struct HookPayload {
    hook_event_name: Option<String>,
    /// For a subagent, its own.
    #[serde(rename = "sessionId", alias = "session_id")]
    session_id: String,
    #[serde(rename = "agentId", alias = "agent_id")]
    agent_id: Option<String>,
    #[serde(rename = "parentAgentId", alias = "parent_agent_id")]
    parent_agent_id: Option<String>,
    cwd: Option<PathBuf>,
    #[serde(rename = "transcriptPath", alias = "transcript_path")]
    transcript_path: Option<PathBuf>,
    timestamp: Option<Value>,
    prompt: Option<String>,
    #[serde(rename = "toolName", alias = "tool_name")]
    tool_name: Option<String>,
    #[serde(rename = "toolArgs", alias = "tool_input", default)]
    tool_args: Value,
    #[serde(rename = "toolResult", alias = "tool_result")]
    tool_result: Option<WireResult>,
}

#[derive(Debug, Deserialize)]
struct WireResult {
    #[serde(rename = "textResultForLlm", alias = "text_result_for_llm")]
    text: Option<String>,
}

pub(super) fn decode(payload: &[u8], event: Option<&str>) -> Result<HookEvent, PayloadError> {
    let payload: HookPayload = serde_json::from_slice(payload)
        .map_err(|source| PayloadError::Malformed { agent: NAME, source })?;
    let missing = |field| PayloadError::MissingField { agent: NAME, field };
    let event = payload.hook_event_name.clone().or_else(|| event.map(str::to_owned));
    let event = event.ok_or_else(|| missing("event"))?;
    let is_subagent = payload.agent_id.is_some();
    let kind = match event.as_str() {
        "sessionStart" | "SessionStart" => HookEventKind::SessionStart,
        // The next event reports the end of a subagent.
        "agentStop" | "Stop" if is_subagent => HookEventKind::Irrelevant,
        "agentStop" | "Stop" => HookEventKind::TurnEnd,
        "subagentStart" | "SubagentStart" => HookEventKind::SubagentStart,
        "subagentStop" | "SubagentStop" => HookEventKind::SubagentStop,
        "sessionEnd" | "SessionEnd" => HookEventKind::SessionEnd,
        "userPromptSubmitted" | "UserPromptSubmit" => {
            let text = payload.prompt.clone().ok_or_else(|| missing("prompt"))?;
            let is_of_a_person = !is_subagent && !text.starts_with(NOTIFICATION);
            if is_of_a_person { HookEventKind::Prompt { text } } else { HookEventKind::Irrelevant }
        }
        "preToolUse" | "PreToolUse" => {
            HookEventKind::BeforeTool(call(&payload).ok_or_else(|| missing("toolName"))?)
        }
        "postToolUse" | "PostToolUse" => {
            let call = call(&payload).ok_or_else(|| missing("toolName"))?;
            let outcome = if still_runs(&payload) { Outcome::Background } else { Outcome::Done };
            HookEventKind::AfterTool(call, outcome.into())
        }
        "postToolUseFailure" | "PostToolUseFailure" => HookEventKind::AfterTool(
            call(&payload).ok_or_else(|| missing("toolName"))?,
            Outcome::Failed.into(),
        ),
        _ => HookEventKind::Irrelevant,
    };
    Ok(HookEvent {
        event,
        session: payload.parent_agent_id.unwrap_or(payload.session_id),
        subagent: payload.agent_id,
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

fn call(payload: &HookPayload) -> Option<ToolCall> {
    let tool = payload.tool_name.clone()?;
    let input = input_of(&payload.tool_args);
    Some(ToolCall { id: call_id(&tool, &input), tool, input })
}

/// Earlier versions sent the arguments as JSON in a string; a patch is a string of its own.
pub(super) fn input_of(arguments: &Value) -> Value {
    match arguments {
        Value::String(text) => serde_json::from_str(text)
            .ok()
            .filter(Value::is_object)
            .unwrap_or_else(|| arguments.clone()),
        other => other.clone(),
    }
}

/// Whether the command runs on. Only the text for the model shows one that took too long.
fn still_runs(payload: &HookPayload) -> bool {
    let text = payload.tool_result.as_ref().and_then(|result| result.text.as_deref());
    payload.tool_args["mode"] == "async" || text.is_some_and(says_still_running)
}

/// The text for the model about a command that takes too long, or that a new prompt moved to the
/// background.
pub(super) fn says_still_running(text: &str) -> bool {
    let is_of_command = text.starts_with("<command with shellId: ");
    is_of_command
        && (text.contains(" is still running after ") || text.contains(" moved to background by "))
}
