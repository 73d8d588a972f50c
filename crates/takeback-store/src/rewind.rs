//! A rewind as the store keeps it: promised, then done.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{PointId, RewindId, Seq, Timestamp};

/// While [`RewindState::Open`] this is the journal: what was promised and must be finished or
/// discarded before anything else is rewound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RewindRecord {
    pub id: RewindId,
    pub kind: RewindKind,
    pub state: RewindState,
    /// The head of the log when it began; its own changes come after.
    pub began_at: Seq,
    pub safety_point: PointId,
    pub created_at: Timestamp,
    /// The plan, as JSON. The store does not look inside. Shared, because it can be large.
    pub plan: Arc<str>,
    /// The receipt, as JSON, once it is done.
    pub receipt: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum RewindKind {
    /// Back to a point.
    Rewind { point: PointId },
    /// Takes back a rewind.
    Undo { of: RewindId },
    /// Takes back an undo.
    Redo { of: RewindId },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RewindState {
    Open,
    Done,
}
