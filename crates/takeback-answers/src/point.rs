//! Points, and what happened after them.

use serde::{Deserialize, Serialize};

use crate::{Change, FileDiff, FirstSeen, Id, Note, Time, Unreadable};

/// `log` and `point:list`: newest first.
pub type LogAnswer = Vec<Point>;

/// `diff` and `checkpoint:diff`.
pub type DiffAnswer = Vec<FileDiff>;

/// A point, with the sum of what changed between it and the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Point {
    pub id: Id,
    pub seq: u64,
    pub kind: PointKind,
    pub session: Option<String>,
    pub message_ids: Vec<String>,
    pub description: String,
    pub label: Option<String>,
    pub pinned: bool,
    pub created_at: Time,
    pub files_changed: usize,
    pub insertions: usize,
    pub deletions: usize,
    pub not_captured: usize,
    /// Paths that could not be read when the point was made; left out if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreadable: usize,
    pub has_state: bool,
    #[serde(rename = "vouchedBy")]
    pub basis: PointBasis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum PointKind {
    Prompt,
    Manual,
    Step,
    Safety,
}

impl PointKind {
    /// As in the JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Manual => "manual",
            Self::Step => "step",
            Self::Safety => "safety",
        }
    }
}

/// `scan`: the whole tree was scanned. `watch`: only the folders that the kernel reported as changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum PointBasis {
    Scan,
    Watch,
}

/// `show` and `point:show`: a point, and every change between it and the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShowAnswer {
    #[serde(flatten)]
    pub point: Point,
    /// The whole prompt; `null` if no prompt made the point, or it is not known.
    pub prompt: Option<String>,
    pub git: Option<GitState>,
    pub changes: Vec<Change>,
    /// The calls that the authors of the changes name, once each.
    pub calls: Vec<Call>,
}

/// The user's repository when the point was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GitState {
    pub head: Option<String>,
    pub branch: Option<String>,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Call {
    pub session: String,
    pub id: String,
    pub tool: String,
    /// For a shell call only.
    pub command: Option<String>,
}

/// `checkpoint` and `checkpoint:create`: the new point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CheckpointAnswer {
    pub id: Id,
    pub seq: u64,
    pub label: Option<String>,
    pub changes: usize,
    pub not_captured: usize,
    pub unreadable: Vec<Unreadable>,
}

/// `run`: the last line on standard error, since standard output is the command's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunAnswer {
    pub point: Option<Id>,
    pub session: String,
    pub exit_code: u8,
    pub changes: Vec<FileDiff>,
    pub not_captured: Vec<Note>,
    pub first_seen: Vec<FirstSeen>,
    pub unreadable: Vec<Unreadable>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
