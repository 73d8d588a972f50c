//! What a rewind is asked to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use takeback_store::{
    Author, CallId, Entry, PointId, RewindId, RewindKind, Seq, SessionId, WorkPath,
};

use super::conflict::{ConflictPolicy, LineConflict};
use super::state_move::Rollback;
use crate::exchange::imported::is_imported;

/// One rewind, undo, redo or rollback.
#[derive(Debug, Clone)]
pub struct RewindRequest {
    /// Where it goes.
    pub target: Target,
    /// What the operation is called in the log: "revert of …". `None`: by its kind and target.
    pub title: Option<String>,
    /// `None`: the point's session and those that continue it; all agents if the point is manual.
    pub scope: Option<RewindScope>,
    /// Only these paths and everything below them, as globs from the root. Empty: all.
    pub paths: Vec<String>,
    /// What becomes of lines that others changed since.
    pub exactness: Exactness,
    /// What becomes of lines that another author changed since.
    pub conflicts: ConflictPolicy,
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
            title: None,
            scope: None,
            paths: Vec::new(),
            exactness: Exactness::AgentsOnly,
            conflicts: ConflictPolicy::Keep,
            ambiguous: AmbiguousPolicy::Leave,
            take: Vec::new(),
            mine: Vec::new(),
            discard: BTreeSet::new(),
            outside: false,
            rollback: None,
        }
    }
}

impl RewindRequest {
    /// The conflicts that incoming changes leave open.
    pub(super) fn open_lines(&self) -> BTreeMap<WorkPath, Vec<LineConflict>> {
        let Target::Incoming(incoming) = &self.target else { return BTreeMap::new() };
        let open = incoming.changes.iter().filter(|change| !change.lines.is_empty());
        open.map(|change| (change.path.clone(), change.lines.clone())).collect()
    }
}

/// Where a rewind goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Back to this point.
    Point(PointId),
    /// No file, only the state in the request; its point, if it has one.
    State(Option<PointId>),
    /// The newest rewind that is not undone.
    Undo,
    /// The newest undo that is not redone and that no rewind follows.
    Redo,
    /// As if this operation had not happened; what came later stays.
    Operation(RewindId),
    /// As if these changes had not happened; what came later stays.
    Changes(ChosenChanges),
    /// The requested paths as they were at this point, whoever changed them since.
    Restore(PointId),
    /// Changes made elsewhere, merged into what is here.
    Incoming(Arc<Incoming>),
}

/// Changes of agents in a stretch of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenChanges {
    /// The point of the turn, or where the stretch begins.
    pub point: PointId,
    /// The stretch: after the first position, up to the second or to the newest change.
    pub stretch: (Seq, Option<Seq>),
    /// Whose.
    pub scope: RewindScope,
    /// Only those of this call.
    pub call: Option<(SessionId, CallId)>,
}

impl ChosenChanges {
    pub(super) fn includes(&self, seq: Seq, author: &Author) -> bool {
        let (after, through) = self.stretch;
        let is_of_call = match (&self.call, author) {
            (None, _) => true,
            (Some((session, call)), Author::Agent { session: of, call: by, .. }) => {
                of == session && by == call
            }
            (Some(_), _) => false,
        };
        seq > after
            && through.is_none_or(|through| seq <= through)
            && is_of_call
            && self.scope.includes(author)
    }
}

/// Changes made elsewhere. The store must have their contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// What the operation is recorded as.
    pub kind: RewindKind,
    /// The changes, one for each path.
    pub changes: Vec<IncomingChange>,
    /// Whether a change that leaves the file as it is now is recorded too, for what it cancels.
    pub settles: bool,
}

/// A change made elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncomingChange {
    /// The path.
    pub path: WorkPath,
    /// What it was made from.
    pub base: Entry,
    /// What was made of that.
    pub entry: Entry,
    /// The changes of the log that it cancels.
    pub cancels: Vec<Seq>,
    /// Conflicts that it leaves open.
    pub lines: Vec<LineConflict>,
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
