//! Hook events: what agents report through their hooks, in one form for all of them.
//!
//! An agent that runs hooks starts `takeback hook` before and after what it does and sends it JSON of its
//! own. [`AgentKind::parse`] turns that into a [`HookEvent`]. Only the agent's own `hook.rs` knows that JSON,
//! together with `claude_shaped.rs` for the agents that have adopted Claude Code's. [`to_agent_event`] makes a
//! log event of it, and [`introduce_session`] makes its session known to the log.

pub(crate) mod claude_shaped;
mod events;
mod folder;
mod formatters;
mod hash;
mod moment;
mod paths;
mod session;
mod surrogates;

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};
use takeback_core::{Outcome, Tools};
use takeback_store::{SessionId, Timestamp};

use self::events::subagent_session;
pub use self::events::{HookSource, to_agent_event};
pub use self::formatters::has_other_post_edit_hook;
pub(crate) use self::hash::call_id;
pub(crate) use self::moment::{millis, moment, moment_of};
use self::paths::paths_in;
pub use self::paths::{call_targets, paths_of_patch};
pub use self::session::{ends_nothing, introduce_session};
use self::surrogates::without_lone_surrogates;
use crate::kind::AgentKind;

/// What a hook prints for Takeback's own plugin, which passes it on to the model.
pub(crate) fn plugin_context(_event: &str, text: &str) -> Value {
    json!({ "context": text })
}

/// A parsed hook payload.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEvent {
    /// The agent's name for the event.
    pub event: String,
    /// The agent's id of the conversation.
    pub session: String,
    /// The subagent that it is about.
    pub subagent: Option<String>,
    /// Where the agent works; relative paths begin here.
    pub cwd: Option<PathBuf>,
    /// The agent's transcript of the conversation.
    pub transcript: Option<PathBuf>,
    /// The agent's id of the prompt that caused it.
    pub prompt: Option<String>,
    /// When the agent sent it.
    pub timestamp: Option<Timestamp>,
    /// The model in use, if the payload names it.
    pub model: Option<String>,
    /// The session began as a copy of another one. The transcript may name it: see
    /// [`Transcript::parent`](crate::transcript::Transcript::parent).
    pub is_fork: bool,
    /// The session that this one is a copy of, if the payload names it.
    pub forked_from: Option<String>,
    /// What happened.
    pub kind: HookEventKind,
}

/// What happened, as far as it matters to the log.
#[derive(Debug, Clone, PartialEq)]
pub enum HookEventKind {
    /// A session began or was resumed.
    SessionStart,
    /// The user submitted a prompt.
    Prompt {
        /// What the user typed.
        text: String,
    },
    /// A call is about to run.
    BeforeTool(ToolCall),
    /// A call has ended.
    AfterTool(ToolCall, CallEnd),
    /// A call was refused and never ran.
    ToolRejected(ToolCall),
    /// The agent asks its user for permission to run a call, without its id.
    PermissionAsked(PermissionQuestion),
    /// A background command has ended.
    BackgroundEnded {
        /// The call that started it.
        call: String,
    },
    /// A subagent began.
    SubagentStart,
    /// A subagent ended.
    SubagentStop,
    /// The agent has answered the prompt.
    TurnEnd,
    /// The session ended.
    SessionEnd,
    /// It does not concern files. It still shows that the hook runs.
    Irrelevant,
}

impl HookEvent {
    /// The session, or the subagent's part of it, that it is about.
    #[must_use]
    pub fn acting_session(&self) -> SessionId {
        subagent_session(self).unwrap_or_else(|| SessionId(self.session.clone()))
    }
}

impl HookEventKind {
    fn call(&self) -> Option<&ToolCall> {
        match self {
            Self::BeforeTool(call) | Self::AfterTool(call, _) | Self::ToolRejected(call) => {
                Some(call)
            }
            _ => None,
        }
    }
}

/// How a call ended, as reported by the hook after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallEnd {
    /// Whether it succeeded.
    pub outcome: Outcome,
    /// How long it ran, without the time that it waited for a permission.
    pub took: Option<Duration>,
    /// A person stopped it.
    pub interrupted: bool,
}

impl From<Outcome> for CallEnd {
    /// Only the outcome is known.
    fn from(outcome: Outcome) -> Self {
        Self { outcome, took: None, interrupted: false }
    }
}

/// A tool call as the agent reports it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The same before and after the call. A call without an id gets one made of its tool and input.
    pub id: String,
    /// The agent's name of the tool.
    pub tool: String,
    /// The tool's arguments.
    pub input: Value,
}

/// What an agent asks permission for. Only known for agents that do not report how long a call ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PermissionQuestion {
    /// A command, by its text.
    Command(String),
    /// Another tool, by its name.
    Tool(String),
}

impl PermissionQuestion {
    /// The question that an agent would ask about a call.
    #[must_use]
    pub fn about(call: &ToolCall) -> Self {
        match call.input["command"].as_str() {
            Some(command) => Self::Command(command.to_owned()),
            None => Self::Tool(call.tool.clone()),
        }
    }
}

/// Why a payload cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// It is not the agent's JSON.
    #[error("cannot parse {agent}'s hook payload")]
    Malformed {
        /// The agent whose hook it was.
        agent: &'static str,
        /// What is wrong with the JSON.
        source: serde_json::Error,
    },
    /// A field that the event needs is not there.
    #[error("{agent}'s hook payload has no {field}")]
    MissingField {
        /// The agent whose hook it was.
        agent: &'static str,
        /// The field's name.
        field: &'static str,
    },
    /// Another agent ran this agent's hook.
    #[error("{by} ran {agent}'s hook; it has hooks of its own")]
    OtherAgent {
        /// The agent whose hook it was.
        agent: &'static str,
        /// The agent that ran it.
        by: &'static str,
    },
}

/// What a hook prints so that Claude Code, and agents modelled on it, show `text` to the user.
pub(crate) fn system_message(text: &str) -> Value {
    json!({ "systemMessage": text })
}

/// What a hook prints so that the model of Claude Code, and of agents modelled on it, reads `text`.
pub(crate) fn additional_context(event: &str, text: &str) -> Value {
    json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } })
}

impl AgentKind {
    /// What a hook prints for the agent: `message` for its user and `context` for its model, as far as it
    /// reads them. `None`: nothing.
    #[must_use]
    pub fn hook_output(
        &self,
        event: &str,
        message: Option<&str>,
        context: Option<&str>,
    ) -> Option<String> {
        let message = self.message.zip(message).map(|(print, text)| print(text));
        let context = self.context.zip(context).map(|(by, text)| (by.print)(event, text));
        let mut output = Map::new();
        for part in message.into_iter().chain(context) {
            if let Value::Object(fields) = part {
                output.extend(fields);
            }
        }
        (!output.is_empty()).then(|| Value::Object(output).to_string())
    }

    /// The files that a call names which has ended well and only reads. Decodes the payload: for those who
    /// need to know, because [`AgentKind::parse`] calls such an event irrelevant.
    #[must_use]
    pub fn files_read(&self, tools: &Tools, payload: &[u8], event: Option<&str>) -> Vec<PathBuf> {
        let Ok(HookEvent { kind: HookEventKind::AfterTool(call, end), .. }) =
            (self.decode)(payload, event)
        else {
            return Vec::new();
        };
        let reads =
            self.tools.read_only.contains(&&*call.tool) || tools.read_only.contains(&call.tool);
        if reads && end.outcome == Outcome::Done { paths_in(&call.input) } else { Vec::new() }
    }

    /// Parses what the agent sent its hook on standard input. `event`: what the command line says
    /// happened, for agents whose JSON does not.
    ///
    /// The agent's entry in the table names the function that decodes its JSON: `decode` in its own `hook.rs`.
    /// For Claude Code, Codex and Qwen Code that is `claude_shaped.rs` with a few differences.
    pub fn parse(&self, payload: &[u8], event: Option<&str>) -> Result<HookEvent, PayloadError> {
        let mut parsed = (self.decode)(payload, event);
        if let Err(PayloadError::Malformed { .. }) = parsed
            && let Some(mended) = without_lone_surrogates(payload)
        {
            parsed = (self.decode)(&mended, event);
        }
        let mut parsed = parsed?;
        if parsed.kind.call().is_some_and(|call| self.tools.writes_nothing(&call.tool)) {
            parsed.kind = HookEventKind::Irrelevant;
        }
        Ok(parsed)
    }
}
