//! What a rewind did, or would do.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{FirstSeen, Id, Note, PathEvidence, Problem, Time};

/// `rewind`, `undo`, `redo`, `state rollback` and their methods: what was done, verified on disk; in
/// a dry run, what would be done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// Everything planned was done, with no conflict, error or missing contents.
    pub success: bool,
    pub rewind: Option<Id>,
    pub point: Option<Id>,
    /// A rewind to this point restores the files as they were before; `null` in a dry run.
    pub safety_point: Option<Id>,
    pub restored_files: Vec<String>,
    pub deleted_files: Vec<String>,
    /// The exact bytes of restored and deleted names that are not UTF-8, as base64, by their text: one for each
    /// time it occurs in `restoredFiles`, then in `deletedFiles`. Left out if all names are UTF-8.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paths_base64: BTreeMap<String, Vec<String>>,
    pub merged_files: Vec<Note>,
    pub kept_files: Vec<Note>,
    pub first_seen: Vec<FirstSeen>,
    pub conflicts: Vec<Note>,
    pub ambiguous: Vec<Note>,
    pub not_captured: Vec<Note>,
    pub evidence: Vec<PathEvidence>,
    pub notes: Vec<Note>,
    pub errors: Vec<Problem>,
    /// The agent's state that was moved together with the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateReceipt>,
    /// Changes whose only evidence is that they happened while a call ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<Window>>,
    /// Agents that were working; left out if there were none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_work: Vec<ActiveSession>,
    /// How to cut the agent's conversation to the same point, if it went on after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
}

/// `checkpoint:preview`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PreviewAnswer {
    #[serde(flatten)]
    pub receipt: Receipt,
    /// `point:rewind` with this mark does what this preview shows, or nothing.
    pub mark: String,
}

/// What happened to an agent's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StateReceipt {
    pub execution: String,
    pub branch: String,
    /// The branch's newest checkpoint afterwards.
    pub checkpoint: Option<String>,
    /// False in a dry run, and if nothing was done.
    pub moved: bool,
    /// It was not moved because the agent has saved newer checkpoints since.
    pub stays: bool,
    pub error: Option<String>,
}

/// A call, and how many paths changed while it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Window {
    pub session: String,
    pub call: String,
    pub tool: String,
    pub command: Option<String>,
    pub paths: usize,
}

/// An agent that may write while files are rewound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ActiveSession {
    pub session: String,
    /// The tool of an open call whose process is alive; `null` if only its last event is recent.
    pub tool: Option<String>,
    pub last_event_at: Time,
}

/// How to cut an agent's conversation to the point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
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
    pub finished: Vec<Receipt>,
    pub cleared_stages: usize,
    /// Folders, from the root, that are named like a stage and do not belong to this store.
    pub left_stages: Vec<String>,
    pub drained_events: usize,
    pub mended_root: bool,
}

/// `recover --dry-run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RecoverPreview {
    pub interrupted_rewind: bool,
}
