//! Sessions of agents, their turns and their tool calls.

use serde::{Deserialize, Serialize};

use crate::change::{Change, Evidence};
use crate::id::{CallId, SessionId, Timestamp, TurnId};
use crate::path::WorkPath;

/// One conversation with an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The agent's own id of the conversation.
    pub id: SessionId,
    /// The program, as it calls itself (`claude`, `run`).
    pub agent: Option<String>,
    /// The session this one was resumed or forked from.
    pub parent: Option<SessionId>,
    /// The process whose death ends it, where that is known.
    pub owner: Option<Process>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended; `None` while it is open or its end is unknown.
    pub ended_at: Option<Timestamp>,
    /// When it was archived. Retention deletes it some days later.
    pub archived_at: Option<Timestamp>,
    /// The turn under way.
    pub open_turn: Option<TurnId>,
    /// The model that the agent last named.
    #[serde(default)]
    pub model: Option<String>,
}

impl Session {
    /// The session that this one is a part of, for a subagent's session: its parent, if its id is
    /// one that [`SessionId::part`] makes for it. `None` for a session of its own: a client may
    /// have any text as its id, also one with a slash.
    #[must_use]
    pub fn whole(&self) -> Option<&SessionId> {
        self.parent.as_ref().filter(|parent| self.id.part_of(parent).is_some())
    }

    /// The name of this part within [`Self::whole`].
    #[must_use]
    pub fn part(&self) -> Option<&str> {
        self.id.part_of(self.whole()?)
    }
}

/// A running process. Its start time distinguishes it from a later process with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// The process id.
    pub pid: u32,
    /// Clock ticks since boot, as the kernel counts them.
    pub started: u64,
}

/// One prompt and everything the agent does for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// The session it belongs to.
    pub session: SessionId,
    /// The agent's id of the user's message.
    pub message: Option<String>,
    /// The prompt.
    pub prompt: String,
    /// When the prompt came.
    pub opened_at: Timestamp,
    /// When the agent finished; `None` while it works.
    pub closed_at: Option<Timestamp>,
    /// The model that worked on it, where the agent named it.
    #[serde(default)]
    pub model: Option<String>,
}

/// One tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// The session it belongs to.
    pub session: SessionId,
    /// The agent's own id of the call.
    pub id: CallId,
    /// The turn it belongs to.
    pub turn: TurnId,
    /// The name of the tool.
    pub tool: String,
    /// What it may write.
    pub kind: CallKind,
    /// How far it is.
    pub state: CallState,
    /// When the agent announced it.
    pub opened_at: Timestamp,
    /// When it began to run, if the agent reported a duration: before that it waited for the user's
    /// permission.
    #[serde(default)]
    pub began_at: Option<Timestamp>,
    /// When it ended; `None` while it may run.
    pub closed_at: Option<Timestamp>,
    /// For a background call: when files last changed while it ran.
    #[serde(default)]
    pub active_at: Option<Timestamp>,
}

/// How many milliseconds before or after its call a file's change time may be: hooks arrive late,
/// and file times come from a coarser clock.
pub const SLACK_MS: i64 = 250;

impl Call {
    /// Whether this call can have changed `path` at `changed_at`, according to the known times. A
    /// change without a time is not ruled out.
    #[must_use]
    pub fn may_have_made(&self, path: &WorkPath, changed_at: Option<Timestamp>) -> bool {
        if self.state == CallState::Rejected {
            return false;
        }
        // A file inside a moved folder keeps its time from before the call.
        let Some(at) = changed_at.filter(|at| at.0 >= self.opened_at.0 - SLACK_MS) else {
            return true;
        };
        // A successful call wrote the paths it named, however late its hook arrived.
        let wrote_it = matches!(self.state, CallState::Done | CallState::Settling)
            && self.kind.paths().contains(path);
        let began = self.began_at.filter(|_| !wrote_it);
        began.is_none_or(|began| at.0 >= began.0 - SLACK_MS)
            && self.closed_at.is_none_or(|closed| at.0 <= closed.0 + SLACK_MS)
    }

    /// The evidence that this call made a change that was recorded as its own in `turn`. `None` if
    /// it did not.
    pub(crate) fn evidence_of(&self, change: &Change, turn: TurnId) -> Option<Evidence> {
        let recorded = change.evidence;
        // Agents without call ids reuse the same id when they run a call again.
        if self.turn != turn || change.time < self.opened_at || recorded == Evidence::AfterEdit {
            return Some(recorded);
        }
        match self.state {
            CallState::Rejected => None,
            // Changes by a background call stay unclear.
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

/// What a call may write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum CallKind {
    /// Writes these paths and no others.
    Edit {
        /// The paths.
        paths: Vec<WorkPath>,
    },
    /// May write anything, and is known to write `paths`. `command` is for display.
    Shell {
        /// The command line.
        command: Option<String>,
        /// Paths that it is known to write.
        #[serde(default)]
        paths: Vec<WorkPath>,
    },
}

/// How far a call is, and how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CallState {
    /// It runs.
    Open,
    /// Another call of its session began or ended later, and no hook reported the end of this one.
    /// Agents run several calls at once, so it may still write.
    Overtaken,
    /// It returned, but a process that it started still runs.
    Background,
    /// It ended, but one of the agent's own hooks (a formatter) may still change the paths it
    /// named, until the session's next event.
    Settling,
    /// It succeeded.
    Done,
    /// It failed; it may have written before.
    Failed,
    /// It is over; when it ran is not known.
    CutOff,
    /// The user stopped it; it ran until `closed_at`.
    Interrupted,
    /// The user refused it; it never ran.
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
    /// Whether a call in this state may still write.
    #[must_use]
    pub fn may_write(self) -> bool {
        matches!(self, Self::Open | Self::Overtaken | Self::Background | Self::Settling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_its_parents_id_and_its_parent() {
        let session = |id: SessionId, parent: Option<&str>| Session {
            id,
            agent: None,
            parent: parent.map(SessionId::from),
            owner: None,
            started_at: Timestamp(0),
            ended_at: None,
            archived_at: None,
            open_turn: None,
            model: None,
        };
        let subagent = session(SessionId::from("a").part("b/c"), Some("a"));
        assert_eq!(subagent.id, SessionId::from("a/b/c"));
        assert_eq!((subagent.whole(), subagent.part()), (Some(&SessionId::from("a")), Some("b/c")));
        // A client's own id, a fork, and a fork whose id begins alike.
        for (id, parent) in [("a/b", None), ("b", Some("a")), ("ab", Some("a")), ("a/", Some("b"))]
        {
            let own = session(SessionId::from(id), parent);
            assert_eq!((own.whole(), own.part()), (None, None), "{id} of {parent:?}");
        }
    }
}
