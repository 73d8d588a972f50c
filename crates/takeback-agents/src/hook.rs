//! What agents tell through their hooks, in the same words whatever the agent.
//!
//! An agent that is used as it is runs a command of Takeback's before and after what it does, and gives
//! it JSON of its own. [`hear`] turns that into [`Heard`]; each agent's `hook.rs` holds the one place
//! that knows its JSON. [`event_of`] makes an event of it, [`tell()`] puts that into the log.

mod ends;
mod folder;
mod formatters;
mod hash;
mod lines;
mod moment;
mod paths;
mod surrogates;
mod tell;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use takeback_core::Outcome;
use takeback_store::Timestamp;

pub use self::ends::{
    EndKind, TranscriptEnd, allowed_in, ends_in, parent_in, prompts_in, transcript_of,
    transcript_of_part,
};
pub use self::formatters::has_other_post_edit_hook;
pub(crate) use self::hash::call_id;
pub(crate) use self::lines::lines_with;
pub(crate) use self::moment::{millis, moment, moment_of};
pub use self::paths::{paths_of_patch, touches};
use self::surrogates::without_lone_surrogates;
pub use self::tell::{Teller, event_of, tell, tell_by};
use crate::{claude, codex, copilot, gemini, opencode, qwen};

/// An agent that Takeback plugs into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Plugged {
    Claude,
    Codex,
    Gemini,
    Qwen,
    Opencode,
    Copilot,
}

impl Plugged {
    pub const ALL: [Self; 6] =
        [Self::Claude, Self::Codex, Self::Gemini, Self::Qwen, Self::Opencode, Self::Copilot];

    /// As it stands on a command line and in the log.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::Opencode => "opencode",
            Self::Copilot => "copilot",
        }
    }

    /// What people call it.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Qwen => "Qwen Code",
            Self::Opencode => "opencode",
            Self::Copilot => "Copilot CLI",
        }
    }

    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|agent| agent.name() == name)
    }
}

/// What a hook was told.
#[derive(Debug, Clone, PartialEq)]
pub struct Heard {
    /// What happened, as the agent calls it.
    pub event: String,
    /// The conversation, as the agent names it.
    pub session: String,
    /// The subagent that did it, if it was one.
    pub subagent: Option<String>,
    /// Where the agent works; paths that are not absolute begin here.
    pub cwd: Option<PathBuf>,
    /// Where the agent writes the conversation down.
    pub transcript: Option<PathBuf>,
    /// The prompt that it is done for, by the name that the agent gives it.
    pub prompt: Option<String>,
    /// When the agent sent it, if it says so.
    pub timestamp: Option<Timestamp>,
    /// Whether the session began as a copy of another one. Agents that say so need not say of which:
    /// [`parent_in`] and [`prompts_in`] look into the transcript.
    pub is_fork: bool,
    /// The session that this one began as a copy of, if the payload names it.
    pub forked_from: Option<String>,
    pub news: News,
}

#[derive(Debug, Clone, PartialEq)]
pub enum News {
    SessionStart,
    Prompt {
        text: String,
    },
    Before(ToolCall),
    After(ToolCall, Ending),
    /// It was refused and never ran.
    Rejected(ToolCall),
    /// The agent asks the person whether a call may run, and has not said which.
    Asks(Question),
    /// What a call had started in the background is over.
    Ended {
        call: String,
    },
    SubagentStart,
    SubagentStop,
    TurnEnd,
    SessionEnd,
    /// Nothing that concerns files. It shows that the hook works.
    Nothing,
}

/// How a call ended, as the hook after it tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ending {
    pub outcome: Outcome,
    /// How long it ran. The time that it waited for a permission does not count.
    pub took: Option<Duration>,
    /// Whether a person stopped it.
    pub interrupted: bool,
}

impl From<Outcome> for Ending {
    /// Nothing but the outcome is known.
    fn from(outcome: Outcome) -> Self {
        Self { outcome, took: None, interrupted: false }
    }
}

/// A tool call as the agent tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The same before and after the call. Agents that give none get a [`call_id`] of tool and input.
    pub id: String,
    pub tool: String,
    pub input: Value,
}

/// What an agent asks permission for, of agents that do not say how long a call ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// A command, by its text.
    Command(String),
    /// Another tool, by its name.
    Tool(String),
}

impl Question {
    /// The question that is asked about a call, if any is.
    #[must_use]
    pub fn about(call: &ToolCall) -> Self {
        match call.input["command"].as_str() {
            Some(command) => Self::Command(command.to_owned()),
            None => Self::Tool(call.tool.clone()),
        }
    }
}

/// A hook that Takeback wants an agent to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// As the agent calls it.
    pub event: &'static str,
    /// For which tools, in the agent's own notation; `None`: the event has no tools, or all are meant.
    pub matcher: Option<&'static str>,
    /// After how long the agent may give up on it.
    pub timeout_seconds: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum HearError {
    #[error("what {agent}'s hook was given is no JSON that it is known to give")]
    NotUnderstood { agent: &'static str, source: serde_json::Error },
    #[error("{agent} gave its hook no {field}")]
    Lacks { agent: &'static str, field: &'static str },
    #[error("it was {by} that ran this hook of {agent}'s; it has hooks of its own")]
    Another { agent: &'static str, by: &'static str },
}

/// What an agent's hook was given on its standard input. `event`: what the command line says happened,
/// for agents whose JSON does not.
pub fn hear(agent: Plugged, given: &[u8], event: Option<&str>) -> Result<Heard, HearError> {
    let heard = understood(agent, given, event);
    match (&heard, without_lone_surrogates(given)) {
        (Err(HearError::NotUnderstood { .. }), Some(mended)) => understood(agent, &mended, event),
        _ => heard,
    }
}

fn understood(agent: Plugged, given: &[u8], event: Option<&str>) -> Result<Heard, HearError> {
    match agent {
        Plugged::Claude => claude::hook::hear(given),
        Plugged::Codex => codex::hook::hear(given),
        Plugged::Gemini => gemini::hook::hear(given),
        Plugged::Qwen => qwen::hook::hear(given),
        Plugged::Opencode => opencode::hook::hear(given),
        Plugged::Copilot => copilot::hook::hear(given, event),
    }
}

/// The hooks that are wanted of an agent.
#[must_use]
pub const fn wanted(agent: Plugged) -> &'static [Wanted] {
    match agent {
        Plugged::Claude => claude::hook::WANTED,
        Plugged::Codex => codex::hook::WANTED,
        Plugged::Gemini => gemini::hook::WANTED,
        Plugged::Qwen => qwen::hook::WANTED,
        Plugged::Opencode => opencode::hook::WANTED,
        Plugged::Copilot => copilot::hook::WANTED,
    }
}

/// What a hook prints so that the agent shows `text` to its user; `None`: it is not known to show
/// anything.
#[must_use]
pub fn message_to(agent: Plugged, text: &str) -> Option<String> {
    match agent {
        Plugged::Claude | Plugged::Gemini => {
            Some(serde_json::json!({ "systemMessage": text }).to_string())
        }
        Plugged::Codex | Plugged::Qwen | Plugged::Opencode | Plugged::Copilot => None,
    }
}
