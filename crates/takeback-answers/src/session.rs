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
    /// Its id.
    pub id: String,
    /// The agent's name, if known.
    pub agent: Option<String>,
    /// The model that it last named.
    pub model: Option<String>,
    /// The session it was resumed or forked from.
    pub parent: Option<String>,
    /// When it started.
    pub started_at: Time,
    /// When it ended.
    pub ended_at: Option<Time>,
    /// When it was archived.
    pub archived_at: Option<Time>,
    /// Whether a turn is open and the agent may be alive.
    pub at_work: bool,
    /// How many points it has.
    pub points: usize,
    /// The first prompt that is kept.
    pub description: String,
}

/// `session archive` and `session:archive`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ArchiveAnswer {
    /// The session.
    pub session: String,
    /// When it was archived.
    pub archived_at: Option<Time>,
    /// How many days its data is kept.
    pub kept_days: u64,
}

/// `session delete --dry-run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionDeletePreview {
    /// The session and its subagents.
    pub sessions: Vec<String>,
    /// How many points would be deleted.
    pub points: usize,
    /// Points with a label or a pin.
    pub marked: usize,
    /// Rewinds that could no longer be undone.
    pub rewinds: usize,
}
