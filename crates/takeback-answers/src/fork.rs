//! Answers of `fork` and `compare`.

use serde::{Deserialize, Serialize};

use crate::{FilePath, Id, Note, Time, Unreadable};

/// `fork` and `checkpoint:fork`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForkAnswer {
    /// The point that was forked. It is pinned or has a label.
    pub point: Id,
    /// Its position in the log.
    pub seq: u64,
    /// The roots of the forks.
    pub forks: Vec<String>,
    /// Files in each fork, without those of `--all`.
    pub files: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// How many of them were copied from disk; the others came from the store.
    pub from_disk: usize,
    /// Files that `--all` added.
    pub extra_files: usize,
    /// What existed at the point and is not in the forks.
    pub missing: Vec<Note>,
    /// Paths that were not recorded yet at the point: they may have existed, and are not in the forks.
    pub unknown: Vec<FilePath>,
    /// What is not recorded, and not in the forks.
    pub left_out: Vec<Note>,
    /// Executions whose state at the point was copied into the forks' stores.
    pub executions: Vec<String>,
    /// How an agent's conversation continues in the forks; left out if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<ForkedConversation>,
}

/// How an agent's conversation continues in forks, in a copy for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForkedConversation {
    /// The agent's name.
    pub agent: String,
    /// The agent's own id of it.
    pub session: String,
    /// For each fork, a shell command that opens a copy of the conversation there, on the agent's screen.
    pub commands: Vec<String>,
    /// What to press on that screen, so that the copy ends at the point; left out if it is to be whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<String>,
    /// For each fork, a shell command that continues without a screen from the point; append a prompt. Empty
    /// if the agent has none.
    pub headless: Vec<String>,
}

/// Where a fork comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForkOrigin {
    /// The root of the workspace that was forked.
    pub root: String,
    /// The point.
    pub point: Id,
    /// Its position in that workspace's log.
    pub seq: u64,
    /// Its label or description.
    pub description: String,
    /// When the fork was made.
    pub forked_at: Time,
}

/// `compare` and `checkpoint:compare`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CompareAnswer {
    /// One for each folder, in the order of the arguments.
    pub forks: Vec<ComparedFork>,
    /// Files that several of them changed.
    pub shared: Vec<SharedFile>,
}

/// What happened in a fork since it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ComparedFork {
    /// Its root.
    pub root: String,
    /// Where it comes from.
    pub origin: ForkOrigin,
    /// Files and links that differ.
    pub files: usize,
    /// Lines added in text files.
    pub insertions: usize,
    /// Lines removed in text files.
    pub deletions: usize,
    /// What differs, by path.
    pub changed: Vec<ForkedFile>,
    /// What could not be read.
    pub unreadable: Vec<Unreadable>,
    /// The sessions that were recorded in it, oldest first.
    pub sessions: Vec<ForkSession>,
    /// How the command ended in it, if one was run.
    pub command: Option<CommandResult>,
}

/// One file of a fork that differs from what the fork got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForkedFile {
    /// The path.
    #[serde(flatten)]
    pub path: FilePath,
    /// `new`, `deleted`, `mode 644 → 755`: what line counts do not show.
    pub what: String,
    /// Lines added; `null`: it is not text, or its earlier contents are not at hand.
    pub insertions: Option<usize>,
    /// Lines removed.
    pub deletions: Option<usize>,
}

/// A session that worked in a fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForkSession {
    /// Its id.
    pub id: String,
    /// The agent.
    pub agent: Option<String>,
    /// How many of its prompts are recorded there.
    pub prompts: usize,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommandResult {
    /// `null`: a signal ended it.
    pub exit_code: Option<i32>,
    /// How long it ran.
    pub milliseconds: u64,
    /// The last line that it printed.
    pub last_line: Option<String>,
}

/// A file that several forks changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SharedFile {
    /// The path.
    #[serde(flatten)]
    pub path: FilePath,
    /// The roots of the forks.
    pub forks: Vec<String>,
    /// Whether all of them have the same result.
    pub same: bool,
}
