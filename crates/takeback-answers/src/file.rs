//! Paths, what stands at them, and how they changed.

use serde::{Deserialize, Serialize};

use crate::{Id, Time};

/// A path from the root of the workspace; flattened into what it is the path of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FilePath {
    pub file_path: String,
    /// The exact bytes, where the path is not UTF-8 and `filePath` is lossy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_path_base64: Option<String>,
}

/// A path and a reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Note {
    #[serde(flatten)]
    pub path: FilePath,
    pub reason: String,
}

/// A path and the error it failed with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    #[serde(flatten)]
    pub path: FilePath,
    pub error: String,
}

/// Files first seen after the point, by folder: new in an ignored folder, or not covered before. A
/// rewind keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FirstSeen {
    #[serde(flatten)]
    pub path: FilePath,
    pub names: usize,
}

/// A folder or file that could not be read. What is known there counts as not captured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Unreadable {
    #[serde(flatten)]
    pub path: FilePath,
    pub kind: UnreadableKind,
    /// Known names below it that could not be compared.
    pub known: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum UnreadableKind {
    File,
    Folder,
}

/// The least certain evidence of what an agent did at this path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PathEvidence {
    #[serde(flatten)]
    pub path: FilePath,
    pub evidence: Evidence,
}

/// What is, or was, at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Entry {
    Absent,
    /// `digest`: BLAKE3, 64 hexadecimal digits.
    File {
        digest: String,
        size: u64,
        mode: u32,
    },
    /// `target`: base64.
    Symlink {
        target: String,
    },
    Dir {
        mode: u32,
    },
    NotCaptured {
        lack: NotCapturedReason,
    },
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum NotCapturedReason {
    TooLarge,
    Deadline,
    Unreadable,
    Unstable,
    Purged,
    Special,
    Derived,
    TooMany,
    Reserved,
    Damaged,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Author {
    Agent {
        session: String,
        turn: Id,
        call: String,
        tool: String,
    },
    Human,
    /// Any of these sessions, or the person.
    Ambiguous {
        sessions: Vec<String>,
    },
    Rewind {
        id: Id,
    },
    /// A session that was deleted since.
    Deleted,
    Import,
}

/// How an agent is known to be the author, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Evidence {
    Observed,
    Named,
    AfterEdit,
    Window,
    OpenWindow,
}

/// What the person said about the author of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Correction {
    Mine,
    Agent { session: String },
}

/// One change of one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Change {
    pub seq: u64,
    #[serde(flatten)]
    pub path: FilePath,
    pub before: Entry,
    pub after: Entry,
    pub author: Author,
    /// For an agent's change only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction: Option<Correction>,
    pub time: Time,
}

/// One path that differs between two points, or between a point and the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileDiff {
    #[serde(flatten)]
    pub path: FilePath,
    pub before: Entry,
    pub after: Entry,
    /// `null`: not text.
    pub insertions: Option<usize>,
    /// `null`: not text.
    pub deletions: Option<usize>,
    /// Present, and true, if the store has lost the contents before or after.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// Only of `checkpoint:diff` with `patchBytes`, for text that fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
}
