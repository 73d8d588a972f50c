//! What opencode sends its plugins, as `plugin.js` passes it on: what the plugin's hook received, with the
//! hook's name, the folders, and the session that a subagent belongs to.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use takeback_core::Outcome;

use super::NAME;
use crate::hook::{CallEnd, HookEvent, HookEventKind, PayloadError, ToolCall};
use crate::kind::HookSpec;

/// What the plugin listens to.
pub(super) const HOOKS: &[HookSpec] = &[
    HookSpec::new("event"),
    HookSpec::new("chat.message"),
    HookSpec::new("tool.execute.before"),
    HookSpec::new("tool.execute.after"),
    HookSpec::new("dispose"),
];

#[derive(Debug, Deserialize)]
struct HookPayload {
    hook: String,
    directory: Option<PathBuf>,
    parent: Option<String>,
    #[serde(rename = "sessionID")]
    session: Option<String>,
    #[serde(default)]
    input: WireInput,
    #[serde(default)]
    output: WireOutput,
    event: Option<WireEvent>,
    #[serde(rename = "ranMs")]
    ran_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct WireInput {
    #[serde(rename = "sessionID")]
    session: Option<String>,
    tool: Option<String>,
    #[serde(rename = "callID")]
    call: Option<String>,
    #[serde(default)]
    args: Value,
}

impl WireInput {
    fn call(&self, args: &Value) -> Result<ToolCall, PayloadError> {
        call(self.tool.as_deref(), self.call.as_deref(), args)
    }
}

#[derive(Debug, Default, Deserialize)]
struct WireOutput {
    #[serde(default)]
    args: Value,
    message: Option<WireMessage>,
    #[serde(default)]
    parts: Vec<WirePart>,
}

#[derive(Debug, Deserialize)]
struct WireMessage {
    id: String,
    model: Option<WireModel>,
}

#[derive(Debug, Deserialize)]
struct WireModel {
    #[serde(rename = "providerID")]
    provider: String,
    #[serde(rename = "modelID")]
    model: String,
}

#[derive(Debug, Deserialize)]
struct WireEvent {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    properties: WireProperties,
}

#[derive(Debug, Default, Deserialize)]
struct WireProperties {
    #[serde(rename = "sessionID")]
    session: Option<String>,
    part: Option<WirePart>,
}

/// A part of a message.
#[derive(Debug, Deserialize)]
struct WirePart {
    text: Option<String>,
    /// Whether opencode added it to the user's text.
    #[serde(default)]
    synthetic: bool,
    tool: Option<String>,
    #[serde(rename = "callID")]
    call: Option<String>,
    #[serde(default)]
    state: WireState,
}

#[derive(Debug, Default, Deserialize)]
struct WireState {
    status: Option<String>,
    #[serde(default)]
    input: Value,
    error: Option<String>,
}

pub(super) fn decode(payload: &[u8], _event: Option<&str>) -> Result<HookEvent, PayloadError> {
    let payload: HookPayload = serde_json::from_slice(payload)
        .map_err(|source| PayloadError::Malformed { agent: NAME, source })?;
    let missing = |field| PayloadError::MissingField { agent: NAME, field };
    let is_subagent = payload.parent.is_some();
    let took = payload.ran_ms.map(Duration::from_millis);
    let end = |outcome: Outcome| CallEnd { took, ..outcome.into() };
    let kind = match (payload.hook.as_str(), &payload.event) {
        ("event", Some(event)) => event_kind(event, is_subagent, end(Outcome::Failed))?,
        ("event", None) => return Err(missing("event")),
        ("chat.message", _) if is_subagent => HookEventKind::Irrelevant,
        ("chat.message", _) => prompt(&payload.output.parts),
        ("tool.execute.before", _) => {
            HookEventKind::BeforeTool(payload.input.call(&payload.output.args)?)
        }
        ("tool.execute.after", _) => {
            HookEventKind::AfterTool(payload.input.call(&payload.input.args)?, end(Outcome::Done))
        }
        ("dispose", _) => HookEventKind::SessionEnd,
        _ => HookEventKind::Irrelevant,
    };
    let (event, of_event) = match payload.event {
        Some(event) => (event.kind, event.properties.session),
        None => (payload.hook, None),
    };
    let session = of_event.or(payload.input.session).or(payload.session);
    let session = session.ok_or_else(|| missing("sessionID"))?;
    let (session, subagent) = match payload.parent {
        Some(parent) => (parent, Some(session)),
        None => (session, None),
    };
    let (prompt, model) = match payload.output.message {
        Some(WireMessage { id, model }) => (Some(id), model),
        None => (None, None),
    };
    let model = model.map(|WireModel { provider, model }| format!("{provider}/{model}"));
    Ok(HookEvent {
        event,
        session,
        subagent,
        cwd: payload.directory,
        transcript: None,
        prompt,
        timestamp: None,
        model,
        is_fork: false,
        forked_from: None,
        kind,
    })
}

/// `failed`: how a call that failed has ended.
fn event_kind(
    event: &WireEvent,
    is_subagent: bool,
    failed: CallEnd,
) -> Result<HookEventKind, PayloadError> {
    Ok(match event.kind.as_str() {
        "session.created" if is_subagent => HookEventKind::SubagentStart,
        "session.created" => HookEventKind::SessionStart,
        "session.idle" if is_subagent => HookEventKind::SubagentStop,
        "session.idle" => HookEventKind::TurnEnd,
        "session.deleted" if is_subagent => HookEventKind::SubagentStop,
        "session.deleted" => HookEventKind::SessionEnd,
        "message.part.updated" => failure(event.properties.part.as_ref(), failed)?,
        _ => HookEventKind::Irrelevant,
    })
}

/// The model's answer for a call that a person did not allow.
const REFUSED: &str = "The user rejected permission to use this specific tool call";

/// Only the message with the call says that it failed.
fn failure(part: Option<&WirePart>, end: CallEnd) -> Result<HookEventKind, PayloadError> {
    let Some(part) = part.filter(|part| part.state.status.as_deref() == Some("error")) else {
        return Ok(HookEventKind::Irrelevant);
    };
    let call = call(part.tool.as_deref(), part.call.as_deref(), &part.state.input)?;
    let is_refused = part.state.error.as_deref().is_some_and(|it| it.starts_with(REFUSED));
    Ok(match is_refused {
        true => HookEventKind::ToolRejected(call),
        false => HookEventKind::AfterTool(call, end),
    })
}

fn call(tool: Option<&str>, id: Option<&str>, input: &Value) -> Result<ToolCall, PayloadError> {
    let missing = |field| PayloadError::MissingField { agent: NAME, field };
    let tool = tool.ok_or_else(|| missing("tool"))?.to_owned();
    let id = id.ok_or_else(|| missing("callID"))?.to_owned();
    Ok(ToolCall { id, tool, input: input.clone() })
}

fn prompt(parts: &[WirePart]) -> HookEventKind {
    let typed: Vec<&WirePart> = parts.iter().filter(|part| !part.synthetic).collect();
    if typed.is_empty() {
        return HookEventKind::Irrelevant;
    }
    let texts: Vec<&str> = typed.iter().filter_map(|part| part.text.as_deref()).collect();
    HookEventKind::Prompt { text: texts.join("\n") }
}
