//! Sessions of agents.

use serde::{Deserialize, Serialize};

use crate::Time;

/// `sessions` and `session:list`: newest first.
pub type SessionsAnswer = Vec<Session>;

/// An agent's conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Session {
    pub id: String,
    pub agent: Option<String>,
    /// The session it was resumed or forked from.
    pub parent: Option<String>,
    pub started_at: Time,
    pub ended_at: Option<Time>,
    pub archived_at: Option<Time>,
    pub at_work: bool,
    pub points: usize,
    /// The first prompt that is kept.
    pub description: String,
}

/// `session archive` and `session:archive`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ArchiveAnswer {
    pub session: String,
    pub archived_at: Option<Time>,
    pub kept_days: u64,
}

/// `session delete --dry-run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionDeletePreview {
    pub sessions: Vec<String>,
    pub points: usize,
    /// Points with a label or a pin.
    pub marked: usize,
    /// Rewinds that could no longer be undone.
    pub rewinds: usize,
}
