//! What Qwen Code sends its hooks.

use crate::hook::claude_shaped::{HookPayload, Shape};
use crate::hook::{HookEvent, HookEventKind, PayloadError};
use crate::kind::HookSpec;

pub(super) const HOOKS: &[HookSpec] = &[
    HookSpec::new("SessionStart"),
    HookSpec::new("UserPromptSubmit"),
    HookSpec::new("PreToolUse"),
    HookSpec::new("PostToolUse"),
    HookSpec::new("PostToolUseFailure"),
    HookSpec::new("SubagentStart"),
    HookSpec::new("SubagentStop"),
    HookSpec::new("Stop"),
    HookSpec::new("StopFailure"),
    HookSpec::new("SessionEnd"),
];

const SHAPE: Shape = Shape {
    agent: super::NAME,
    // It submits an empty prompt with the result of each tool.
    prompt: |_, text| match text.is_empty() {
        true => HookEventKind::Irrelevant,
        false => HookEventKind::Prompt { text },
    },
    runs_on: |call, _| call.tool == "monitor" || call.input["is_background"] == true,
};

pub(super) fn decode(payload: &[u8], _event: Option<&str>) -> Result<HookEvent, PayloadError> {
    HookPayload::read(&SHAPE, payload)?.into_event(&SHAPE)
}
