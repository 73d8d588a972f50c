//! A checkpoint: a position in the log that can be gone back to.

use serde::{Deserialize, Serialize};

use crate::id::{PointId, Seq, SessionId, Timestamp};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    pub id: PointId,
    /// Every change up to and including this one lies before the point.
    pub seq: Seq,
    /// `None`: made by hand; it stands for all agents.
    pub session: Option<SessionId>,
    pub kind: PointKind,
    pub description: String,
    pub label: Option<String>,
    pub pinned: bool,
    pub created_at: Timestamp,
    /// Other ids it is known by: message uuid, prompt id. In the order in which they were learned.
    pub message_ids: Vec<String>,
    pub git: Option<GitState>,
    #[serde(rename = "vouchedBy")]
    pub vouched: Vouched,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PointKind {
    Prompt,
    Manual,
    Step,
    /// Made by Takeback itself before a rewind.
    Safety,
}

/// On whose word the tree was as the point has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Vouched {
    /// Everything the point speaks of was looked at when it was made.
    #[default]
    Scan,
    /// Only folders of which the kernel had told were looked at, since the scan before it. A store
    /// through a memory map is not told, and shows at the next scan.
    Watch,
}

/// Where the user's repository stood. For people; never restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitState {
    pub head: Option<String>,
    pub branch: Option<String>,
}
