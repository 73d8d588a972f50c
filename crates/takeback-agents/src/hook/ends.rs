//! What an agent's transcript says and its hooks do not: how calls ended, and which session a session was
//! copied from.
//!
//! After Esc or a refusal most agents run no hook. They write the transcript nevertheless. Each agent's
//! `ends.rs` is the only place that knows how.

use std::path::{Path, PathBuf};
use std::time::Duration;

use takeback_store::Timestamp;

use super::Plugged;
use crate::{claude, codex, copilot, gemini};

/// How a call ended, as the agent's transcript says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptEnd {
    /// The same as [`ToolCall::id`](super::ToolCall::id).
    pub call: String,
    pub how: EndKind,
    pub at: Option<Timestamp>,
    /// How long it ran, without the time that it waited for a permission.
    pub took: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndKind {
    /// It ran to its end, well or with an error.
    Finished,
    /// It was refused and never ran.
    Rejected,
    /// It was stopped: it ran until the end's time.
    Interrupted,
    /// The agent gave it up at the end's time. It was refused, killed, or it still runs:
    /// only its processes tell.
    Abandoned,
}

/// The ends of `calls` that a transcript tells, by the newest record of each. `transcript`: its text, or
/// only its end. A call that may still run, or that the transcript does not know, is left out.
///
/// Gemini CLI and Copilot CLI name calls by what they do, so an end before a call began is that of an
/// earlier call that did the same.
#[must_use]
pub fn ends_in(agent: Plugged, transcript: &[u8], calls: &[&str]) -> Vec<TranscriptEnd> {
    match agent {
        Plugged::Claude => claude::ends::ends_in(transcript, calls),
        Plugged::Codex => codex::ends::ends_in(transcript, calls),
        Plugged::Gemini => gemini::ends::ends_in(transcript, calls),
        Plugged::Copilot => copilot::ends::ends_in(transcript, calls),
        // Qwen Code begins a call after the permission, and its hooks tell every end. opencode keeps its
        // conversations in a database.
        Plugged::Qwen | Plugged::Opencode => Vec::new(),
    }
}

/// When a person allowed a call, if the transcript says so and the hooks do not say how long it ran.
#[must_use]
pub fn allowed_in(agent: Plugged, transcript: &[u8], call: &str) -> Option<Timestamp> {
    match agent {
        Plugged::Copilot => copilot::ends::allowed_in(transcript, call),
        Plugged::Codex => codex::ends::began_in(transcript, call),
        _ => None,
    }
}

/// The transcript of a session, for agents whose hooks do not name it. `home`: the agent's folder, from
/// [`home_of`](crate::install::home_of).
#[must_use]
pub fn transcript_of(agent: Plugged, home: &Path, session: &str) -> Option<PathBuf> {
    match agent {
        Plugged::Copilot => copilot::ends::transcript_of(home, session),
        _ => None,
    }
}

/// The transcript that a subagent has of its own, from the session's; `None`: it has none, or its hooks
/// name it.
#[must_use]
pub fn transcript_of_part(agent: Plugged, transcript: &Path, part: &str) -> Option<PathBuf> {
    match agent {
        Plugged::Claude => claude::ends::transcript_of_subagent(transcript, part),
        _ => None,
    }
}

/// The session that `session` was copied from, if its transcript names it.
#[must_use]
pub fn parent_in(agent: Plugged, transcript: &[u8], session: &str) -> Option<String> {
    match agent {
        Plugged::Claude => claude::ends::parent_in(transcript, session),
        _ => None,
    }
}

/// The messages that prompts became, oldest first. A copy of a session has the messages of the first one
/// under their names: the session that the newest known one was made for is the copy's parent.
#[must_use]
pub fn prompts_in(agent: Plugged, transcript: &[u8]) -> Vec<String> {
    match agent {
        Plugged::Claude => claude::ends::prompts_in(transcript),
        _ => Vec::new(),
    }
}
