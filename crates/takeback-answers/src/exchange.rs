//! Bundles: points that leave a workspace, and points that come in.

use serde::{Deserialize, Serialize};

use crate::{FilePath, Id, Note};

/// `export`; on standard error if the file is `-`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExportAnswer {
    /// The bundle.
    pub file: String,
    /// How many points it has.
    pub points: usize,
    /// How many changes it has.
    pub changes: usize,
    /// How many distinct file contents it has.
    pub blobs: u64,
    /// The size of the bundle.
    pub bytes: u64,
    /// Paths that were left out.
    pub left_out: usize,
    /// Paths whose contents the store has lost.
    pub damaged: Vec<FilePath>,
    /// Checkpoints of agents, which a bundle does not include; `null` if they cannot be read.
    pub states_left_out: Option<u64>,
}

/// `export --patch` and `export --git`; on standard error if the file is `-`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SeriesExportAnswer {
    /// The file with the patches; `null` with `--git`.
    pub file: Option<String>,
    /// The new branch; `null` with `--patch`.
    pub branch: Option<String>,
    /// How many patches or commits there are.
    pub commits: usize,
    /// The last commit of the branch.
    pub tip: Option<String>,
    /// The commit that the branch begins at; `null`: its first commit has no parent.
    pub parent: Option<String>,
    /// How many paths were left out.
    pub left_out: usize,
    /// Paths that are not in a commit as they were.
    pub not_captured: Vec<Note>,
}

/// `import`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImportAnswer {
    /// The imported points.
    pub points: Vec<ImportedPoint>,
    /// The imported sessions.
    pub sessions: Vec<ImportedSession>,
    /// How many changes were imported.
    pub changes: usize,
    /// How many file contents were new to the store.
    pub blobs: usize,
    /// Points that an agent made with a state, which the bundle does not include.
    pub steps_without_state: usize,
    /// Only with `--from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_over: Option<ImportSkips>,
}

/// An imported point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImportedPoint {
    /// Its id in this workspace.
    pub id: Id,
    /// Its id where it comes from; `null` with `--from`.
    pub was: Option<Id>,
    /// Its label in this workspace.
    pub label: Option<String>,
    /// The first words of its prompt.
    pub description: String,
    /// Only with `--from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_ids: Option<Vec<String>>,
}

/// An imported session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ImportedSession {
    /// Its id in this workspace.
    pub id: String,
    /// Its id where it comes from.
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
    /// Damaged lines of transcripts.
    pub damaged_lines: usize,
    /// Files whose copies are gone.
    pub lost: Vec<FilePath>,
    /// Files outside the workspace.
    pub outside: Vec<String>,
}
