//! Bundles: points that leave a workspace, and points that come in.

use serde::{Deserialize, Serialize};

use crate::{FilePath, Id};

/// `export`; on standard error if the file is `-`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExportAnswer {
    pub file: String,
    pub points: usize,
    pub changes: usize,
    pub blobs: u64,
    pub bytes: u64,
    /// Paths that were left out.
    pub left_out: usize,
    /// Paths whose contents the store has lost.
    pub damaged: Vec<FilePath>,
    /// Checkpoints of agents, which a bundle does not include; `null` if they cannot be read.
    pub states_left_out: Option<u64>,
}

/// `import`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImportAnswer {
    pub points: Vec<ImportedPoint>,
    pub sessions: Vec<ImportedSession>,
    pub changes: usize,
    pub blobs: usize,
    /// Points that an agent made with a state, which the bundle does not include.
    pub steps_without_state: usize,
    /// Only with `--from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_over: Option<ImportSkips>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImportedPoint {
    pub id: Id,
    /// Its id where it comes from; `null` with `--from`.
    pub was: Option<Id>,
    pub label: Option<String>,
    pub description: String,
    /// Only with `--from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_ids: Option<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImportedSession {
    pub id: String,
    pub was: Option<String>,
}

/// What an import from an agent's own files leaves out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImportSkips {
    /// Prompts that have a point here already.
    pub known: usize,
    /// Prompts whose files the agent did not keep.
    pub without_files: usize,
    pub damaged_lines: usize,
    /// Files whose copies are gone.
    pub lost: Vec<FilePath>,
    /// Files outside the workspace.
    pub outside: Vec<String>,
}
