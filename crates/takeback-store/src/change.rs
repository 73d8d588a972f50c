//! One step of the log: a path was this before and that after, by someone.

use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::id::{CallId, RewindId, Seq, SessionId, Timestamp, TurnId};
use crate::path::WorkPath;
use crate::session::Call;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub seq: Seq,
    pub path: WorkPath,
    pub before: Entry,
    pub after: Entry,
    /// As it was known when the change was recorded; [`Change::attribution`] is what is known now.
    pub author: Author,
    pub evidence: Evidence,
    /// When it was recorded.
    pub time: Timestamp,
    /// When it happened, by the file's own change time. `None`: that cannot be known, as of a deletion.
    pub changed_at: Option<Timestamp>,
    /// What the person said of its author.
    pub correction: Option<Correction>,
    /// Only a [`Author::Rewind`] cancels: the earlier changes whose effect it took away. A cancelled
    /// rewind cancels nothing, so that undoing it revives what it had taken back.
    pub cancels: Vec<Seq>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Author {
    Agent {
        session: SessionId,
        turn: TurnId,
        call: CallId,
        tool: String,
    },
    Human,
    /// Any of these sessions, or the human.
    Ambiguous {
        sessions: Vec<SessionId>,
    },
    Rewind {
        id: RewindId,
    },
    /// A session that has been deleted since.
    Deleted,
    /// Nobody here: an import led the log into another one's history, and back.
    Import,
}

impl Author {
    /// The sessions that may have written it.
    #[must_use]
    pub fn sessions(&self) -> &[SessionId] {
        match self {
            Self::Agent { session, .. } => std::slice::from_ref(session),
            Self::Ambiguous { sessions } => sessions,
            Self::Human | Self::Rewind { .. } | Self::Deleted | Self::Import => &[],
        }
    }
}

/// How an agent is known to be the author. Of other authors it says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Evidence {
    /// The call named this path.
    Named,
    /// It changed while the call ran, and the call's start and end are known.
    Window,
    /// The call named this path, and a hook of the agent's own changed it right afterwards.
    AfterEdit,
    /// It changed after the call began, and the call's end is not known.
    OpenWindow,
}

/// What the person said of a change's author.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Correction {
    /// It is the person's own.
    Mine,
    /// This session made it.
    Agent { session: SessionId },
}

/// Whose change it is, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attribution {
    pub author: Author,
    pub evidence: Evidence,
}

impl Change {
    /// Whose it is by what is known now: what the person said decides, then how the call ended. `call`:
    /// the record of the call that the author names, if there is one.
    #[must_use]
    pub fn attribution(&self, call: Option<&Call>) -> Attribution {
        let stored = Attribution { author: self.author.clone(), evidence: self.evidence };
        let human = Attribution { author: Author::Human, evidence: Evidence::Named };
        match (&self.correction, &self.author) {
            (Some(Correction::Mine), _) => human,
            (Some(Correction::Agent { session }), Author::Agent { session: by, .. })
                if session == by =>
            {
                Attribution { evidence: Evidence::Named, ..stored }
            }
            (Some(Correction::Agent { session }), _) => Attribution {
                author: Author::Agent {
                    session: session.clone(),
                    turn: TurnId(0),
                    call: CallId(String::new()),
                    tool: String::new(),
                },
                evidence: Evidence::Named,
            },
            (None, Author::Agent { turn, .. }) => match call {
                Some(call) => match call.evidence_of(self, *turn) {
                    Some(evidence) => Attribution { evidence, ..stored },
                    None => human,
                },
                None => stored,
            },
            (None, _) => stored,
        }
    }
}
