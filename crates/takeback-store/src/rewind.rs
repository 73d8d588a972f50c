//! A rewind as the store records it: first promised, then done.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{PointId, RewindId, Seq, Timestamp};

/// One rewind. While it is [`RewindState::Open`] it is the journal: a promise that must be finished
/// or discarded before the next rewind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindRecord {
    /// Its id.
    pub id: RewindId,
    /// What it does.
    pub kind: RewindKind,
    /// Whether it is done.
    pub state: RewindState,
    /// The head of the log when it began; its own changes come after.
    pub began_at: Seq,
    /// The safety point that was made before it.
    pub safety_point: PointId,
    /// When it was promised.
    pub created_at: Timestamp,
    /// The plan as JSON, which the store does not interpret. Shared, because it can be large.
    pub plan: Arc<str>,
    /// The receipt as JSON, once the rewind is done.
    pub receipt: Option<String>,
}

/// A [`RewindRecord`] without its plan and receipt, which can be hundreds of megabytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RewindHeader {
    /// Its id.
    pub id: RewindId,
    /// What it does.
    pub kind: RewindKind,
    /// Whether it is done.
    pub state: RewindState,
    /// The head of the log when it began.
    pub began_at: Seq,
    /// The safety point that was made before it.
    pub safety_point: PointId,
    /// When it was promised.
    pub created_at: Timestamp,
}

impl RewindRecord {
    /// All but the plan and the receipt.
    #[must_use]
    pub fn header(&self) -> RewindHeader {
        let Self { id, kind, state, began_at, safety_point, created_at, .. } = *self;
        RewindHeader { id, kind, state, began_at, safety_point, created_at }
    }
}

/// What a rewind does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum RewindKind {
    /// Back to a point.
    Rewind {
        /// The target.
        point: PointId,
    },
    /// Undoes a rewind.
    Undo {
        /// The rewind that is undone.
        of: RewindId,
    },
    /// Undoes an undo.
    Redo {
        /// The undo that is undone.
        of: RewindId,
    },
}

/// How far a rewind is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RewindState {
    /// Promised, and not done.
    Open,
    /// Done; the receipt is recorded.
    Done,
}
