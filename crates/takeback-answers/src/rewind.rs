//! What a rewind did, or would do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{FirstSighting, FollowUp, Id, Note, PathEvidence, Problem, Time};

/// `rewind`, `undo`, `redo`, `revert`, `restore`, `resolve`, `state rollback` and their methods: what was done, verified on disk; in
/// a dry run, what would be done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Everything planned was done, with no conflict, error or missing contents.
    pub success: bool,
    /// The id of the operation; `null` in a dry run, and if nothing was done.
    pub rewind: Option<Id>,
    /// The point that was restored; `null` for an undo or redo.
    pub point: Option<Id>,
    /// A rewind to this point restores the files as they were before; `null` in a dry run.
    pub safety_point: Option<Id>,
    /// Files that were written.
    pub restored_files: Vec<String>,
    /// Files that were deleted.
    pub deleted_files: Vec<String>,
    /// The exact bytes of restored and deleted names that are not UTF-8, as base64, by their text: one for each
    /// time it occurs in `restoredFiles`, then in `deletedFiles`. Left out if all names are UTF-8.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paths_base64: BTreeMap<String, Vec<String>>,
    /// Files from which only the agent's part was taken out.
    pub merged_files: Vec<Note>,
    /// Files left as they are because they are not the agent's.
    pub kept_files: Vec<Note>,
    /// Files first seen since the point; they are kept.
    pub first_seen: Vec<FirstSighting>,
    /// Whose changes it covers; left out where that is the operation's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covers: Option<Coverage>,
    /// Files with changes that cannot be taken back without destroying another author's work. These
    /// changes stay; a file that is also in `mergedFiles` or `restoredFiles` keeps only some lines.
    pub conflicts: Vec<Conflict>,
    /// Files whose author is unclear; they are kept.
    pub ambiguous: Vec<Note>,
    /// Files whose earlier contents were not captured.
    pub not_captured: Vec<Note>,
    /// How the authors of the taken back changes are known.
    pub evidence: Vec<PathEvidence>,
    /// Remarks about single files.
    pub notes: Vec<Note>,
    /// Files that could not be written.
    pub errors: Vec<Problem>,
    /// The agent's state that was moved together with the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateReceipt>,
    /// Changes whose only evidence is that they happened while a call ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<Window>>,
    /// What is left to the user.
    #[serde(flatten)]
    pub follow_up: FollowUp,
    /// Agents that were working; left out if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_work: Vec<ActiveSession>,
    /// How to cut the agent's conversation to the same point, if it went on after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
}

/// A file with a conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Conflict {
    /// The file and the reason.
    #[serde(flatten)]
    pub note: Note,
    /// The lines; left out if the conflict is about the file as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<ConflictLines>,
}

/// Lines that two authors changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConflictLines {
    /// The first line in the file as it is left, from 1.
    pub line: usize,
    /// How many lines are there.
    pub count: usize,
    /// What is there. What is not UTF-8 is replaced.
    pub mine: String,
    /// The other version: what was there before, or what an adopted fork has.
    pub before: String,
}

/// `resolve --list` and `checkpoint:conflicts`: a conflict that is not settled yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OpenConflict {
    /// The operation that left it.
    pub operation: Id,
    /// The file, the reason and the lines.
    #[serde(flatten)]
    pub conflict: Conflict,
}

/// Whose changes an operation takes back, and who else changed something since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// Whose.
    pub whose: Covered,
    /// The sessions, if it is theirs.
    pub sessions: Vec<String>,
    /// Other sessions that changed something since; their changes stay.
    pub other_sessions: Vec<String>,
    /// Whether you changed something since, which stays.
    pub yours: bool,
}

/// Whose changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Covered {
    /// Those of some sessions.
    Sessions,
    /// Some changes of some sessions; what came later stays.
    Chosen,
    /// Those of every agent.
    AllAgents,
    /// Everyone's, yours too.
    Everyone,
}

/// `checkpoint:preview`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PreviewAnswer {
    /// What would be done.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// `point:rewind` with this mark does what this preview shows, or nothing.
    pub mark: String,
}

/// `checkpoint:revert`, `checkpoint:restore`, `checkpoint:resolve`, `checkpoint:adopt`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActionAnswer {
    /// What was done; with `dryRun`, what would be done.
    #[serde(flatten)]
    pub receipt: Receipt,
    /// With `dryRun`: the same call with this mark does what this preview shows, or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
}

/// What happened to an agent's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StateReceipt {
    /// The execution.
    pub execution: String,
    /// The branch.
    pub branch: String,
    /// The branch's newest checkpoint afterwards.
    pub checkpoint: Option<String>,
    /// False in a dry run, and if nothing was done.
    pub moved: bool,
    /// It was not moved because the agent has saved newer checkpoints since.
    pub stays: bool,
    /// Why the state was not moved, if it failed.
    pub error: Option<String>,
}

/// A call, and how many paths changed while it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// The call's session.
    pub session: String,
    /// The call.
    pub call: String,
    /// The call's tool.
    pub tool: String,
    /// The command, for a shell call.
    pub command: Option<String>,
    /// How many paths changed.
    pub paths: usize,
}

/// An agent that may write while files are rewound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActiveSession {
    /// The session.
    pub session: String,
    /// The tool of an open call whose process is alive; `null` if only its last event is recent.
    pub tool: Option<String>,
    /// When its last event was recorded.
    pub last_event_at: Time,
}

/// How to cut an agent's conversation to the point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    /// The agent's name.
    pub agent: String,
    /// The agent's own id of it.
    pub session: String,
    /// The first message to drop.
    pub message_id: String,
    /// Instructions for people, the best way first.
    pub how: Vec<String>,
    /// Continues before that message, in a copy of the conversation; append a prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// `recover`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RecoverAnswer {
    /// The interrupted rewinds that were finished.
    pub finished: Vec<Receipt>,
    /// Stages of rewinds that had not started, now removed.
    pub cleared_stages: usize,
    /// Folders, from the root, that are named like a stage and do not belong to this store.
    pub left_stages: Vec<String>,
    /// Waiting events that were recorded.
    pub drained_events: usize,
    /// Whether the root noted in the store was corrected.
    pub mended_root: bool,
}

/// `recover --dry-run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RecoverPreview {
    /// Whether a rewind was interrupted.
    pub interrupted_rewind: bool,
}
