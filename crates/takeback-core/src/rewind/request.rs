//! What a rewind is asked to do.

use std::collections::BTreeSet;

use takeback_store::{Author, PointId, SessionId, WorkPath};

use super::state_move::Rollback;
use crate::exchange::imported::is_imported;

/// One rewind, undo, redo or rollback.
#[derive(Debug, Clone)]
pub struct RewindRequest {
    /// Where it goes.
    pub target: Target,
    /// `None`: the point's session and those that continue it; all agents if the point is manual.
    pub scope: Option<RewindScope>,
    /// Only these paths and everything below them, as globs from the root. Empty: all.
    pub paths: Vec<String>,
    /// What becomes of lines that others changed since.
    pub exactness: Exactness,
    /// What becomes of changes with an unclear author.
    pub ambiguous: AmbiguousPolicy,
    /// Paths whose changes the user attributes to an agent, as globs from the root.
    pub take: Vec<String>,
    /// Paths whose changes the user claims as their own, as globs from the root.
    pub mine: Vec<String>,
    /// Paths whose present bytes may be lost although the store could not save them.
    pub discard: BTreeSet<WorkPath>,
    /// Whether files outside the workspace may be written.
    pub outside: bool,
    /// An agent's state that moves together with the files.
    pub rollback: Option<Rollback>,
}

impl RewindRequest {
    /// The defaults: the point's own session, all paths, nothing ambiguous, nothing outside.
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            scope: None,
            paths: Vec::new(),
            exactness: Exactness::AgentsOnly,
            ambiguous: AmbiguousPolicy::Leave,
            take: Vec::new(),
            mine: Vec::new(),
            discard: BTreeSet::new(),
            outside: false,
            rollback: None,
        }
    }
}

/// Where a rewind goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Back to this point.
    Point(PointId),
    /// No file, only the state in the request; its point, if it has one.
    State(Option<PointId>),
    /// The newest rewind that is not undone.
    Undo,
    /// The newest undo that is not redone and that no rewind follows.
    Redo,
}

/// Which authors' changes an exact or ordinary rewind takes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exactness {
    /// Only what agents did.
    AgentsOnly,
    /// Every path as it was, regardless of author.
    Exact,
}

/// The sessions whose changes are taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RewindScope {
    /// All of this workspace. Imported sessions did nothing here and are not among them.
    AllAgents,
    /// These, and no others.
    Sessions(BTreeSet<SessionId>),
}

impl RewindScope {
    pub(super) fn includes(&self, author: &Author) -> bool {
        match (self, author) {
            (Self::AllAgents, author) => !author.sessions().is_empty() && !is_imported(author),
            (Self::Sessions(chosen), author) => {
                author.sessions().iter().any(|s| chosen.contains(s))
            }
        }
    }

    /// Whether no session outside the scope can have written it.
    pub(super) fn includes_all(&self, author: &Author) -> bool {
        match self {
            Self::AllAgents => self.includes(author),
            Self::Sessions(chosen) => author.sessions().iter().all(|s| chosen.contains(s)),
        }
    }
}

/// What to do with changes whose author is not certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AmbiguousPolicy {
    /// Restore what is missing; leave the rest.
    #[default]
    Leave,
    /// Take it back like an agent's if only sessions in scope can have written it.
    TakeOwn,
    /// Take it back like an agent's.
    Take,
}
