//! What Claude Code sends its hooks.

use std::path::Path;

use super::recorder::runs_in_background;
use crate::hook::claude_shaped::{HookPayload, Shape};
use crate::hook::{HookEvent, HookEventKind, PayloadError};
use crate::kind::HookSpec;

pub(super) const HOOKS: &[HookSpec] = &[
    HookSpec::new("SessionStart"),
    HookSpec::new("UserPromptSubmit"),
    tool_hook("PreToolUse"),
    tool_hook("PostToolUse"),
    tool_hook("PostToolUseFailure"),
    // In auto mode, the default, a refusal sends nothing else, and no person is asked.
    tool_hook("PermissionDenied"),
    HookSpec::new("SubagentStart"),
    HookSpec::new("SubagentStop"),
    HookSpec::new("Stop"),
    HookSpec::new("StopFailure"),
    HookSpec::new("SessionEnd"),
];

const fn tool_hook(event: &'static str) -> HookSpec {
    HookSpec { matcher: Some("*"), ..HookSpec::new(event) }
}

const SHAPE: Shape = Shape {
    agent: super::NAME,
    prompt: |_, text| background_end(&text).unwrap_or(HookEventKind::Prompt { text }),
    runs_on: |call, response| runs_in_background(&call.tool, response),
};

pub(super) fn decode(payload: &[u8], _event: Option<&str>) -> Result<HookEvent, PayloadError> {
    let payload = HookPayload::read(&SHAPE, payload)?;
    if is_of_copilot(&payload) {
        return Err(PayloadError::OtherAgent { agent: super::NAME, by: "Copilot CLI" });
    }
    payload.into_event(&SHAPE)
}

/// In folders that it trusts, Copilot CLI runs the hooks of `.claude/settings.json`, too. Its payloads look
/// alike, but have a timestamp and another transcript, if any.
fn is_of_copilot(payload: &HookPayload) -> bool {
    let is_elsewhere = |path: &Path| path.ends_with("events.jsonl");
    payload.timestamp.is_some() && payload.transcript_path.as_deref().is_none_or(is_elsewhere)
}

/// The end of a background task, which Claude Code submits as a prompt, during a turn or after it.
/// No person asked for anything.
fn background_end(prompt: &str) -> Option<HookEventKind> {
    if prompt.starts_with("Background agent \"") && prompt.ends_with("\" was stopped by the user.")
    {
        return Some(HookEventKind::Irrelevant);
    }
    let notification = prompt.strip_prefix("<task-notification>")?;
    let between = |tag: &str| {
        let (_, after) = notification.split_once(&format!("<{tag}>"))?;
        Some(after.split_once(&format!("</{tag}>"))?.0)
    };
    Some(match (between("tool-use-id"), between("status")) {
        (Some(call), Some("completed" | "failed" | "killed")) => {
            HookEventKind::BackgroundEnded { call: call.to_owned() }
        }
        _ => HookEventKind::Irrelevant,
    })
}
