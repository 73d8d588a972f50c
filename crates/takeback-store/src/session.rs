//! Who works in a workspace: sessions, their turns, their tool calls.

use serde::{Deserialize, Serialize};

use crate::change::{Change, Evidence};
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
    /// When it began to run, where the agent said how long it took: before that it waited for the
    /// person's permission.
    #[serde(default)]
    pub began_at: Option<Timestamp>,
    pub closed_at: Option<Timestamp>,
    /// Of a call that went to the background: when files last changed in step with it.
    #[serde(default)]
    pub active_at: Option<Timestamp>,
}

/// How much earlier or later than its call a file may seem to have changed: hooks are delivered with a
/// delay, and file times come from a coarser clock.
pub const SLACK_MS: i64 = 250;

impl Call {
    /// Whether this call can have changed `path` at `changed_at`, by the times that are known. What
    /// cannot be dated is not ruled out.
    #[must_use]
    pub fn may_have_made(&self, path: &WorkPath, changed_at: Option<Timestamp>) -> bool {
        if self.state == CallState::Rejected {
            return false;
        }
        // A file that came with a folder that was moved keeps its time from before the call.
        let Some(at) = changed_at.filter(|at| at.0 >= self.opened_at.0 - SLACK_MS) else {
            return true;
        };
        // A call that succeeded wrote what it named, however late the hook came that says so.
        let wrote_it = matches!(self.state, CallState::Done | CallState::Settling)
            && self.kind.paths().contains(path);
        let began = self.began_at.filter(|_| !wrote_it);
        began.is_none_or(|began| at.0 >= began.0 - SLACK_MS)
            && self.closed_at.is_none_or(|closed| at.0 <= closed.0 + SLACK_MS)
    }

    /// How certain it is that this call made a change that was recorded as its own in `turn`; `None`:
    /// it did not.
    pub(crate) fn evidence_of(&self, change: &Change, turn: TurnId) -> Option<Evidence> {
        let recorded = change.evidence;
        // Agents that give calls no id run the same call again under the same one.
        if self.turn != turn || change.time < self.opened_at || recorded == Evidence::AfterEdit {
            return Some(recorded);
        }
        match self.state {
            CallState::Rejected => None,
            // What happens in the background stays in doubt.
            _ if self.active_at.is_some() => Some(recorded),
            CallState::Open | CallState::Overtaken | CallState::Background | CallState::CutOff => {
                Some(recorded)
            }
            CallState::Settling | CallState::Done | CallState::Failed | CallState::Interrupted => {
                let names = self.kind.paths().contains(&change.path);
                let ended = if names { Evidence::Named } else { Evidence::Window };
                let learned = if recorded == Evidence::OpenWindow { ended } else { recorded };
                self.may_have_made(&change.path, change.changed_at).then_some(learned)
            }
        }
    }
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
    /// It ended, and a hook of the agent's own may still change what it named (a formatter), until the
    /// session's next event.
    Settling,
    Done,
    Failed,
    /// It is over, and it is not known when it ran.
    CutOff,
    /// The person stopped it; it ran until `closed_at`.
    Interrupted,
    /// The person refused it; it never ran.
    Rejected,
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
        matches!(self, Self::Open | Self::Overtaken | Self::Background | Self::Settling)
    }
}
