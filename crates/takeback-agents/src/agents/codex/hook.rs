//! What Codex sends its hooks.
//!
//! A shell command is `Bash`, whichever tool the model called. Its end is sent when the process ends, under
//! the id of the call that started it. No end is sent for a patch within a command, for a call that could
//! not be made, and for a command that outlives the turn. A program that the model writes to call tools
//! sends nothing itself; the calls that it makes do.

use crate::hook::claude_shaped::{HookPayload, Shape};
use crate::hook::{HookEvent, HookEventKind, PayloadError};
use crate::kind::HookSpec;

pub(super) const HOOKS: &[HookSpec] = &[
    HookSpec::new("SessionStart"),
    HookSpec::new("UserPromptSubmit"),
    HookSpec::new("PreToolUse"),
    HookSpec::new("PostToolUse"),
    HookSpec::new("SubagentStart"),
    HookSpec::new("SubagentStop"),
    HookSpec::new("Stop"),
    // Codex allows no more, and warns at each start about a longer timeout.
    HookSpec { timeout_seconds: 3, ..HookSpec::new("SessionEnd") },
];

const SHAPE: Shape = Shape {
    agent: super::NAME,
    // A prompt of another agent, not of a person.
    prompt: |payload, text| match payload.agent_id {
        Some(_) => HookEventKind::Irrelevant,
        None => HookEventKind::Prompt { text },
    },
    runs_on: |_, _| false,
};

pub(super) fn decode(payload: &[u8], _event: Option<&str>) -> Result<HookEvent, PayloadError> {
    HookPayload::read(&SHAPE, payload)?.into_event(&SHAPE)
}
