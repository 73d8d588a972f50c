//! Hook payloads in the shape of Claude Code's, which other agents have adopted.
//!
//! Fields that only some of these agents send are optional. [`Shape`] has what they mean differently.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use takeback_core::Outcome;

use super::{CallEnd, HookEvent, HookEventKind, PayloadError, ToolCall, millis, moment};

/// Where agents with such payloads differ.
pub(crate) struct Shape {
    /// The agent, for errors.
    pub(crate) agent: &'static str,
    /// The event for a submitted prompt: agents also submit texts that no person typed.
    pub(crate) prompt: fn(payload: &HookPayload, text: String) -> HookEventKind,
    /// Whether a call has left something running.
    pub(crate) runs_on: fn(call: &ToolCall, response: &Value) -> bool,
}

/// What the agent sends.
#[derive(Debug, Deserialize)]
pub(crate) struct HookPayload {
    hook_event_name: String,
    session_id: String,
    pub(crate) transcript_path: Option<PathBuf>,
    pub(crate) timestamp: Option<Value>,
    cwd: Option<PathBuf>,
    pub(crate) agent_id: Option<String>,
    prompt_id: Option<String>,
    /// In place of `prompt_id`. A subagent's turns are not prompts.
    turn_id: Option<String>,
    prompt: Option<String>,
    /// What a person typed, before it was expanded.
    submitted_prompt: Option<String>,
    tool_name: Option<String>,
    #[serde(default)]
    tool_input: Value,
    tool_use_id: Option<String>,
    #[serde(default)]
    tool_response: Value,
    /// Without the time for permission prompts and hooks.
    duration_ms: Option<f64>,
    is_interrupt: Option<bool>,
    /// How a session began.
    source: Option<String>,
    /// A name; anything else is ignored.
    #[serde(default)]
    model: Value,
}

impl HookPayload {
    pub(crate) fn read(shape: &Shape, payload: &[u8]) -> Result<Self, PayloadError> {
        serde_json::from_slice(payload)
            .map_err(|source| PayloadError::Malformed { agent: shape.agent, source })
    }

    pub(crate) fn into_event(self, shape: &Shape) -> Result<HookEvent, PayloadError> {
        let kind = self.kind(shape)?;
        let turn = self.turn_id.filter(|_| self.agent_id.is_none());
        let is_fork = kind == HookEventKind::SessionStart && self.source.as_deref() == Some("fork");
        Ok(HookEvent {
            event: self.hook_event_name,
            session: self.session_id,
            subagent: self.agent_id,
            cwd: self.cwd,
            transcript: self.transcript_path,
            prompt: self.prompt_id.or(turn),
            timestamp: self.timestamp.as_ref().and_then(moment),
            model: self.model.as_str().filter(|name| !name.is_empty()).map(str::to_owned),
            is_fork,
            forked_from: None,
            kind,
        })
    }

    fn kind(&self, shape: &Shape) -> Result<HookEventKind, PayloadError> {
        let missing = |field| PayloadError::MissingField { agent: shape.agent, field };
        let call = || -> Result<ToolCall, PayloadError> {
            Ok(ToolCall {
                id: self.tool_use_id.clone().ok_or_else(|| missing("tool_use_id"))?,
                tool: self.tool_name.clone().ok_or_else(|| missing("tool_name"))?,
                input: self.tool_input.clone(),
            })
        };
        let end = |outcome| CallEnd {
            outcome,
            took: self.duration_ms.and_then(millis),
            interrupted: self.is_interrupt.unwrap_or_default(),
        };
        Ok(match self.hook_event_name.as_str() {
            "SessionStart" => HookEventKind::SessionStart,
            "UserPromptSubmit" => {
                let text = self.submitted_prompt.as_ref().or(self.prompt.as_ref());
                (shape.prompt)(self, text.ok_or_else(|| missing("prompt"))?.clone())
            }
            "PreToolUse" => HookEventKind::BeforeTool(call()?),
            "PostToolUse" => {
                let call = call()?;
                let runs_on = (shape.runs_on)(&call, &self.tool_response);
                let outcome = if runs_on { Outcome::Background } else { Outcome::Done };
                HookEventKind::AfterTool(call, end(outcome))
            }
            "PostToolUseFailure" => HookEventKind::AfterTool(call()?, end(Outcome::Failed)),
            "PermissionDenied" => HookEventKind::ToolRejected(call()?),
            "SubagentStart" => HookEventKind::SubagentStart,
            "SubagentStop" => HookEventKind::SubagentStop,
            "Stop" | "StopFailure" => HookEventKind::TurnEnd,
            "SessionEnd" => HookEventKind::SessionEnd,
            _ => HookEventKind::Irrelevant,
        })
    }
}
