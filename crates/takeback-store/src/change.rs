//! One step of the log: a path was this before and that after, by someone.

use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::id::{CallId, RewindId, Seq, SessionId, Timestamp, TurnId};
use crate::path::WorkPath;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub seq: Seq,
    pub path: WorkPath,
    pub before: Entry,
    pub after: Entry,
    pub author: Author,
    pub evidence: Evidence,
    pub time: Timestamp,
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

/// How the author is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Evidence {
    /// The call named this path; or it is the human's, or a rewind's own.
    Tool,
    /// It changed while the call ran.
    Window,
}
