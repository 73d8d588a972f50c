//! Paths, their entries, and how they changed.

use serde::{Deserialize, Serialize};

use crate::{Id, Time};

/// A path from the root of the workspace; flattened into the object that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FilePath {
    /// The path, with `/` between names.
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
    /// The path.
    #[serde(flatten)]
    pub path: FilePath,
    /// The reason.
    pub reason: String,
}

/// A path and the error it failed with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The path.
    #[serde(flatten)]
    pub path: FilePath,
    /// The error.
    pub error: String,
}

/// Files first seen after the point, by folder: new in an ignored folder, or not covered before. A
/// rewind keeps them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FirstSighting {
    /// The folder or file.
    #[serde(flatten)]
    pub path: FilePath,
    /// How many files were first seen in the folder; 0 for a file.
    pub names: usize,
}

/// A folder or file that could not be read. What is known there counts as not captured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Unreadable {
    /// The path.
    #[serde(flatten)]
    pub path: FilePath,
    /// Whether it is a file or a folder.
    pub kind: UnreadableKind,
    /// Known names below it that could not be compared.
    pub known: usize,
}

/// Whether a file or a folder could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "the JSON words are the variants; a comment on each would change the schema"
)]
pub enum UnreadableKind {
    File,
    Folder,
}

/// The least certain evidence of what an agent did at this path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PathEvidence {
    /// The path.
    #[serde(flatten)]
    pub path: FilePath,
    /// The evidence.
    pub evidence: Evidence,
}

/// What is, or was, at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Entry {
    /// Nothing.
    Absent,
    /// `digest`: BLAKE3, 64 hexadecimal digits.
    File {
        /// BLAKE3 of the contents.
        digest: String,
        /// Bytes.
        size: u64,
        /// Permission bits.
        mode: u32,
    },
    /// `target`: base64.
    Symlink {
        /// Where the link points.
        target: String,
    },
    /// A folder.
    Dir {
        /// Permission bits.
        mode: u32,
    },
    /// Contents that could not be saved.
    NotCaptured {
        /// Why not.
        lack: NotCapturedReason,
    },
    /// Not known: the path was not read before.
    Unknown,
}

/// Why contents were not captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "the JSON words are the variants; a comment on each would change the schema"
)]
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

/// Who made a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Author {
    /// A session's tool call.
    Agent {
        /// The session.
        session: String,
        /// Its turn.
        turn: Id,
        /// The call.
        call: String,
        /// The call's tool.
        tool: String,
    },
    /// The user.
    Human,
    /// Any of these sessions, or the user.
    Ambiguous {
        /// The sessions.
        sessions: Vec<String>,
    },
    /// A rewind.
    Rewind {
        /// The rewind.
        id: Id,
    },
    /// A session that was deleted since.
    Deleted,
    /// An import.
    Import,
}

/// How an agent is known to be the author, the most certain first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "the JSON words are the variants; a comment on each would change the schema"
)]
pub enum Evidence {
    Observed,
    Named,
    AfterEdit,
    Window,
    OpenWindow,
}

/// What the user said about the author of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Correction {
    /// The user made the change.
    Mine,
    /// A session made the change.
    Agent {
        /// The session.
        session: String,
    },
}

/// One change of one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Its position in the log.
    pub seq: u64,
    /// The path.
    #[serde(flatten)]
    pub path: FilePath,
    /// The entry before.
    pub before: Entry,
    /// The entry after.
    pub after: Entry,
    /// Who made it.
    pub author: Author,
    /// For an agent's change only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// What the user said about its author, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correction: Option<Correction>,
    /// When it was recorded.
    pub time: Time,
}

/// One path that differs between two points, or between a point and the disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileDiff {
    /// The path.
    #[serde(flatten)]
    pub path: FilePath,
    /// The entry before.
    pub before: Entry,
    /// The entry after.
    pub after: Entry,
    /// `null`: not text.
    pub insertions: Option<usize>,
    /// `null`: not text.
    pub deletions: Option<usize>,
    /// Present, and true, if the store has lost the contents before or after.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// The path that the file was renamed from; `before` is what was there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// Only of `checkpoint:diff` with `patchBytes`, for text that fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
}
