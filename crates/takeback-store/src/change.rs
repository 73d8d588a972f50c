//! One change in the log: a path, its entries before and after, and an author.

use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::id::{CallId, RewindId, Seq, SessionId, Timestamp, TurnId};
use crate::path::WorkPath;
use crate::session::Call;

/// One entry of the log: what a path was before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Its position in the log.
    pub seq: Seq,
    /// The path that changed.
    pub path: WorkPath,
    /// What was there before.
    pub before: Entry,
    /// What was there afterwards.
    pub after: Entry,
    /// The author as known when the change was recorded; [`Change::attribution`] adds what is known
    /// now.
    pub author: Author,
    /// How the author is known.
    pub evidence: Evidence,
    /// When it was recorded.
    pub time: Timestamp,
    /// When it happened, by the file's own change time. `None` if that cannot be known, for example
    /// for a deletion.
    pub changed_at: Option<Timestamp>,
    /// What the user said about its author.
    pub correction: Option<Correction>,
    /// The earlier changes whose effect this change removed; only a change by [`Author::Rewind`]
    /// has any. A cancelled rewind cancels nothing, so undoing it revives the changes it had
    /// removed. [`IN_PART`] comes first if some of their effect is still there.
    pub cancels: Vec<Seq>,
}

/// Stands first in [`Change::cancels`] where lines that another author changed since were left: the
/// listed changes are still in effect there. No change has this number.
pub const IN_PART: Seq = Seq(0);

/// Who made a change.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Author {
    /// A tool call of an agent's session.
    Agent {
        /// The session.
        session: SessionId,
        /// The turn of the call.
        turn: TurnId,
        /// The call.
        call: CallId,
        /// The name of the tool, for display.
        tool: String,
    },
    /// The user.
    Human,
    /// One of these sessions, or the user; which one is not known.
    Ambiguous {
        /// The possible sessions; the user is always possible too.
        sessions: Vec<SessionId>,
    },
    /// A rewind, undo or redo.
    Rewind {
        /// The rewind.
        id: RewindId,
    },
    /// A session that has been deleted since.
    Deleted,
    /// No author in this workspace: an import led the log into another store's history, and back.
    Import,
}

impl Change {
    /// Whether it left some of the effect of the changes that it cancels.
    #[must_use]
    pub fn is_in_part(&self) -> bool {
        self.cancels.first() == Some(&IN_PART)
    }
}

impl Author {
    /// The sessions that may have written it; empty if none can have.
    #[must_use]
    pub fn sessions(&self) -> &[SessionId] {
        match self {
            Self::Agent { session, .. } => std::slice::from_ref(session),
            Self::Ambiguous { sessions } => sessions,
            Self::Human | Self::Rewind { .. } | Self::Deleted | Self::Import => &[],
        }
    }
}

/// How an agent is known to be the author. Meaningless for other authors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Evidence {
    /// The call named this path.
    Named,
    /// It changed while the call ran, and the call's start and end are known.
    Window,
    /// The call named this path, and one of the agent's own hooks changed it right afterwards.
    AfterEdit,
    /// It changed after the call began, and the call's end is not known.
    OpenWindow,
}

/// What the user said about a change's author.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Correction {
    /// The user made it.
    Mine,
    /// This session made it.
    Agent {
        /// The session.
        session: SessionId,
    },
}

/// The author of a change, and how it is known.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attribution {
    /// The author.
    pub author: Author,
    /// How the author is known.
    pub evidence: Evidence,
}

impl Change {
    /// The author according to everything known now: the user's correction decides, then how the
    /// call ended. `call` is the record of the call that the author names, if there is one.
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
