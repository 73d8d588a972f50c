//! Who works in a workspace: sessions, their turns, their tool calls.

use serde::{Deserialize, Serialize};

use crate::id::{CallId, SessionId, Timestamp, TurnId};
use crate::path::WorkPath;

/// One conversation with an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub id: SessionId,
    /// The program, as it calls itself (`claude`, `run`).
    pub agent: Option<String>,
    /// The session this one was resumed or forked from.
    pub parent: Option<SessionId>,
    /// The process whose death ends it, where that is known.
    pub owner: Option<Process>,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub archived_at: Option<Timestamp>,
    /// The turn under way.
    pub open_turn: Option<TurnId>,
}

impl Session {
    /// The session that this one is a part of, as a subagent's is: its parent, if it is named below it
    /// (`parent/part`). Otherwise it is a whole.
    #[must_use]
    pub fn whole(&self) -> Option<&SessionId> {
        let below = |parent: &&SessionId| {
            self.id.0.strip_prefix(&parent.0).is_some_and(|rest| rest.starts_with('/'))
        };
        self.parent.as_ref().filter(below)
    }
}

/// A running process, told apart from a later one with the same number by its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    pub pid: u32,
    /// Clock ticks since boot, as the kernel counts them.
    pub started: u64,
}

/// One prompt, and all that the agent does for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    pub id: TurnId,
    pub session: SessionId,
    /// The agent's id of the user's message.
    pub message: Option<String>,
    pub prompt: String,
    pub opened_at: Timestamp,
    pub closed_at: Option<Timestamp>,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    pub session: SessionId,
    pub id: CallId,
    pub turn: TurnId,
    pub tool: String,
    pub kind: CallKind,
    pub state: CallState,
    pub opened_at: Timestamp,
    pub closed_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum CallKind {
    /// Writes these paths and no others.
    Edit { paths: Vec<WorkPath> },
    /// May write anything, and is known to write `paths`. `command` is for people.
    Shell {
        command: Option<String>,
        #[serde(default)]
        paths: Vec<WorkPath>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallState {
    Open,
    /// Another call of its session began or ended after it, and nobody said that it did: agents run
    /// several at once, so it may still write.
    Overtaken,
    /// It answered, but what it started still runs.
    Background,
    Done,
    Failed,
    /// Nobody said how it ended.
    CutOff,
}

impl CallKind {
    /// The paths that the call named; a shell call may write others too.
    #[must_use]
    pub fn paths(&self) -> &[WorkPath] {
        match self {
            Self::Edit { paths } | Self::Shell { paths, .. } => paths,
        }
    }
}

impl CallState {
    #[must_use]
    pub fn may_write(self) -> bool {
        matches!(self, Self::Open | Self::Overtaken | Self::Background)
    }
}
