//! What pi tells its extensions, as `extension.js` passes it on: the event, the folder and the session.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use takeback_core::Outcome;

use super::{NAME, TOOLS};
use crate::hook::{CallEnd, HookEvent, HookEventKind, PayloadError, ToolCall};
use crate::kind::HookSpec;

/// What the extension listens to.
pub(super) const HOOKS: &[HookSpec] = &[
    HookSpec::new("session_start"),
    HookSpec::new("message_start"),
    HookSpec::new("tool_call"),
    HookSpec::new("ui_prompt_end"),
    HookSpec::new("tool_result"),
    HookSpec::new("tool_execution_end"),
    HookSpec::new("agent_settled"),
    HookSpec::new("session_shutdown"),
];

#[derive(Debug, Deserialize)]
struct HookPayload {
    event: WireEvent,
    cwd: Option<PathBuf>,
    session: WireSession,
}

#[derive(Debug, Deserialize)]
struct WireSession {
    id: String,
    /// It has none if it is not kept.
    file: Option<PathBuf>,
    /// The file of the session that it was made from.
    parent: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireEvent {
    #[serde(rename = "type")]
    kind: String,
    /// Why a session began or ended.
    reason: Option<String>,
    message: Option<WireMessage>,
    tool_name: Option<String>,
    tool_call_id: Option<String>,
    #[serde(default)]
    input: Value,
    #[serde(default)]
    is_error: bool,
    /// A person stopped the turn.
    #[serde(default)]
    is_aborted: bool,
    /// Since a dialog was answered that was shown before the call ended.
    ran_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct WireMessage {
    content: WireContent,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum WireContent {
    Text(String),
    Parts(Vec<WirePart>),
}

#[derive(Debug, Deserialize)]
struct WirePart {
    text: Option<String>,
}

pub(super) fn decode(payload: &[u8], _event: Option<&str>) -> Result<HookEvent, PayloadError> {
    let payload: HookPayload = serde_json::from_slice(payload)
        .map_err(|source| PayloadError::Malformed { agent: NAME, source })?;
    let HookPayload { event, cwd, session } = payload;
    let kind = kind(&event)?;
    // A new session may name the one before it, and has copied nothing.
    let is_copy = kind == HookEventKind::SessionStart && event.reason.as_deref() != Some("new");
    let parent = session.parent.filter(|_| is_copy);
    Ok(HookEvent {
        event: event.kind,
        session: session.id,
        subagent: None,
        cwd,
        transcript: session.file,
        prompt: None,
        timestamp: None,
        model: None,
        is_fork: false,
        forked_from: parent.as_deref().and_then(session_of),
        kind,
    })
}

fn kind(event: &WireEvent) -> Result<HookEventKind, PayloadError> {
    // The session goes on in the same process.
    let is_reload = event.reason.as_deref() == Some("reload");
    Ok(match event.kind.as_str() {
        "session_start" | "session_shutdown" if is_reload => HookEventKind::Irrelevant,
        "session_start" => HookEventKind::SessionStart,
        "message_start" => HookEventKind::Prompt { text: prompt(event)? },
        "tool_call" => HookEventKind::BeforeTool(call(event)?),
        "tool_result" => HookEventKind::AfterTool(call(event)?, end(event)),
        // The extension passes it on only of a call that had no result: it never ran.
        "tool_execution_end" => HookEventKind::ToolRejected(call(event)?),
        "agent_settled" => HookEventKind::TurnEnd,
        "session_shutdown" => HookEventKind::SessionEnd,
        _ => HookEventKind::Irrelevant,
    })
}

fn prompt(event: &WireEvent) -> Result<String, PayloadError> {
    let missing = PayloadError::MissingField { agent: NAME, field: "message" };
    Ok(match &event.message.as_ref().ok_or(missing)?.content {
        WireContent::Text(text) => text.clone(),
        WireContent::Parts(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part.text.as_deref()).collect();
            texts.join("\n")
        }
    })
}

fn call(event: &WireEvent) -> Result<ToolCall, PayloadError> {
    let missing = |field| PayloadError::MissingField { agent: NAME, field };
    Ok(ToolCall {
        id: event.tool_call_id.clone().ok_or_else(|| missing("toolCallId"))?,
        tool: event.tool_name.clone().ok_or_else(|| missing("toolName"))?,
        input: without_odd_path(event.input.clone()),
    })
}

/// pi does not take every path as it is written: it drops an `@` in front, knows `~` and URLs, and has
/// plain spaces for all others. Which file such a call writes is not known, so it may be any.
fn without_odd_path(mut input: Value) -> Value {
    let is_odd = input["path"].as_str().is_some_and(|path| {
        path.starts_with(['@', '~'])
            || path.starts_with("file:")
            || path.chars().any(|c| c.is_whitespace() && !c.is_ascii())
    });
    if is_odd && let Some(fields) = input.as_object_mut() {
        fields.remove("path");
    }
    input
}

fn end(event: &WireEvent) -> CallEnd {
    // pi's own tools ask nothing while they run, so another extension asked before. A tool of an extension
    // may have written before it asked.
    let tool = event.tool_name.as_deref().unwrap_or_default();
    let asks_nothing = TOOLS.edit.contains(&tool) || TOOLS.shell.contains(&tool);
    let ran_ms = event.ran_ms.filter(|_| asks_nothing);
    CallEnd {
        outcome: if event.is_error { Outcome::Failed } else { Outcome::Done },
        took: ran_ms.map(Duration::from_millis),
        interrupted: event.is_aborted,
    }
}

/// The session of a file: `<when>_<id>.jsonl`.
fn session_of(file: &Path) -> Option<String> {
    let (_when, id) = file.file_stem()?.to_str()?.split_once('_')?;
    Some(id.to_owned())
}
