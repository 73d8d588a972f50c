//! What can stop a rewind.

use std::io;

use takeback_store::{PointId, RewindId, StateError, StoreError};

use super::{Preview, Receipt};
use crate::record::RecordError;
use crate::worktree::write::StageError;

/// Why a rewind, preview or recovery did not finish. Up to [`Self::Unfinished`] nothing has changed on disk.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RewindError {
    #[error("there is no point {0}")]
    NoPoint(PointId),
    #[error("there is no rewind to undo")]
    NothingToUndo,
    #[error("the last rewind changed nothing, so there is nothing to undo")]
    RewoundNothing,
    #[error("there is no undo to redo")]
    NothingToRedo,
    #[error("the last rewind cannot be undone or redone: it was deleted together with a session")]
    SessionDeleted,
    #[error("there is no operation {0} that changed files")]
    NoOperation(RewindId),
    #[error("operation {0} is taken back already")]
    TakenBack(RewindId),
    #[error("a rollback of a state must say which")]
    NoState,
    #[error("{pattern:?} is not a path or pattern")]
    Pattern { pattern: String, source: globset::Error },
    #[error("{pattern:?} has not changed since that point")]
    NotChanged { pattern: String },
    #[error("another command has the workspace locked")]
    Locked,
    #[error("something changed since the preview")]
    Changed(Box<Preview>),
    #[error("the plan of rewind {id} in the store cannot be read")]
    DamagedPlan { id: RewindId, source: serde_json::Error },
    #[error("the plan of rewind {id} cannot be written")]
    UnwritablePlan { id: RewindId, source: io::Error },
    #[error("the stages of rewinds in .takeback cannot be read")]
    Stages { source: io::Error },
    /// The journal is open: the next command tries again.
    #[error("the rewind has been promised and cannot continue")]
    Unfinished { source: StageError },
    /// Everything that could be done is in place, but not in the log yet. The journal is open.
    #[error("the files are in place, but the store could not record it")]
    NotClosed { receipt: Box<Receipt>, source: StoreError },
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Stage(#[from] StageError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    State(#[from] StateError),
}
