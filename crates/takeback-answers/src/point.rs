//! Points, and what happened after them.

use serde::{Deserialize, Serialize};

use crate::{Change, FileDiff, FirstSighting, HeadMove, Id, Note, Time, Unreadable};

/// `log` and `point:list`: points and operations, newest first.
pub type LogAnswer = Vec<Point>;

/// `diff` and `checkpoint:diff`.
pub type DiffAnswer = Vec<FileDiff>;

/// A point, with the sum of what changed between it and the next; or an operation (a rewind, undo or redo)
/// with what it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// Its id.
    pub id: Id,
    /// Its position in the log.
    pub seq: u64,
    /// What made it.
    pub kind: PointKind,
    /// The session whose prompt or step made it.
    pub session: Option<String>,
    /// The agent's ids of the prompt.
    pub message_ids: Vec<String>,
    /// The first words of the prompt.
    pub description: String,
    /// Its label.
    pub label: Option<String>,
    /// Whether it is pinned.
    pub pinned: bool,
    /// When it was made.
    pub created_at: Time,
    /// Files that changed after it.
    pub files_changed: usize,
    /// Lines added after it.
    pub insertions: usize,
    /// Lines removed after it.
    pub deletions: usize,
    /// Paths whose contents were not captured after it.
    pub not_captured: usize,
    /// Paths that could not be read when the point was made; left out if there are none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unreadable: usize,
    /// Whether an agent's checkpoint names it.
    pub has_state: bool,
    /// How the tree was read for it.
    #[serde(rename = "vouchedBy")]
    pub basis: PointBasis,
    /// The same counts by author. What rewinds did is in none of them.
    pub by_author: ByAuthor,
    /// Whether rewinds took back what its agent did; of an operation: whether it was undone.
    pub taken_back: TakenBack,
    /// Of a rewind: its point. Of an undo or redo: the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Id>,
    /// How git's HEAD moved until the next point; for the newest point: until now. Left out if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_moved: Option<HeadMove>,
}

/// Who changed how much between a point and the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ByAuthor {
    /// The session of the point, with its subagents; of a point made by hand: any agent.
    pub agent: ChangeCount,
    /// You.
    pub you: ChangeCount,
    /// Other sessions.
    pub others: ChangeCount,
    /// An agent or you: the evidence does not tell.
    pub unclear: ChangeCount,
}

/// How much was changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ChangeCount {
    /// Files.
    pub files: usize,
    /// Lines added.
    pub insertions: usize,
    /// Lines removed.
    pub deletions: usize,
}

/// How much was taken back by rewinds that are in effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "the JSON words are the variants; a comment on each would change the schema"
)]
pub enum TakenBack {
    #[default]
    No,
    Partly,
    Yes,
}

/// What made a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "the JSON words are the variants; a comment on each would change the schema"
)]
pub enum PointKind {
    Prompt,
    Manual,
    Step,
    Safety,
    Rewind,
    Undo,
    Redo,
    Revert,
    Restore,
    Adopt,
    Resolve,
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
            Self::Rewind => "rewind",
            Self::Undo => "undo",
            Self::Redo => "redo",
            Self::Revert => "revert",
            Self::Restore => "restore",
            Self::Adopt => "adopt",
            Self::Resolve => "resolve",
        }
    }
}

/// `scan`: the whole tree was scanned. `watch`: only the folders that the kernel reported as changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "the JSON words are the variants; a comment on each would change the schema"
)]
pub enum PointBasis {
    Scan,
    Watch,
}

/// `show` and `point:show`: a point, and every change between it and the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShowAnswer {
    /// The point.
    #[serde(flatten)]
    pub point: Point,
    /// The whole prompt; `null` if no prompt made the point, or it is not known.
    pub prompt: Option<String>,
    /// The model that worked on the prompt, where the agent named it.
    pub model: Option<String>,
    /// The state of the user's git repository, if there is one.
    pub git: Option<GitState>,
    /// The changes after it, oldest first.
    pub changes: Vec<Change>,
    /// The calls of the point's turn, in order; then other calls that the authors of the changes name.
    pub calls: Vec<Call>,
}

/// The user's repository when the point was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GitState {
    /// The commit that is checked out.
    pub head: Option<String>,
    /// The branch that is checked out.
    pub branch: Option<String>,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Call {
    /// Its session.
    pub session: String,
    /// Its id within the session.
    pub id: String,
    /// Its tool.
    pub tool: String,
    /// For a shell call only.
    pub command: Option<String>,
    /// Its number in the point's turn; `null`: it belongs to another turn.
    pub number: Option<usize>,
    /// How many paths it changed after the point.
    pub files: usize,
}

/// `checkpoint` and `checkpoint:create`: the new point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CheckpointAnswer {
    /// The point's id.
    pub id: Id,
    /// Its position in the log.
    pub seq: u64,
    /// Its label.
    pub label: Option<String>,
    /// How many changes were recorded with it.
    pub changes: usize,
    /// How many paths were not captured.
    pub not_captured: usize,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
}

/// `run`: the last line on standard error, since standard output is the command's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunAnswer {
    /// The point before the command.
    pub point: Option<Id>,
    /// The command's session.
    pub session: String,
    /// The command's exit code.
    pub exit_code: u8,
    /// What the command changed.
    pub changes: Vec<FileDiff>,
    /// Paths whose contents were not captured.
    pub not_captured: Vec<Note>,
    /// Files first seen while it ran.
    pub first_seen: Vec<FirstSighting>,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
