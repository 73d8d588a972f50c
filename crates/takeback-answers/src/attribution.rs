//! Attribution that other tools read: notes on commits, and Agent Trace records.

use serde::{Deserialize, Serialize};

/// `notes write`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NotesWriteAnswer {
    /// Where the notes are.
    pub reference: String,
    /// Whether nothing was written.
    pub dry_run: bool,
    /// How many notes were written, or would be.
    pub written: usize,
    /// The commits, newest first.
    pub commits: Vec<CommitNote>,
    /// What could not be asked about.
    pub problems: Vec<String>,
}

/// The note of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommitNote {
    /// The commit.
    pub commit: String,
    /// The first line of its message.
    pub summary: String,
    /// What happened, or would happen. `nothingKnown`: the log explains no line of the commit. `leftForeign`:
    /// another tool's note stays. `leftFuller`: an earlier note of Takeback has more lines, and stays.
    pub outcome: NoteOutcome,
    /// Lines that the commit added, by agents.
    pub agent_lines: usize,
    /// Of those: written while a command of the agent ran, so perhaps by someone else.
    pub doubtful_lines: usize,
    /// Lines by you.
    pub your_lines: usize,
    /// Lines that the log does not explain; the note leaves them out.
    pub unexplained_lines: usize,
    /// The note that was written, or would be.
    pub note: Option<String>,
}

/// What happens with the note of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "the JSON words are the variants; a comment on each would change the schema"
)]
pub enum NoteOutcome {
    Written,
    Replaced,
    Unchanged,
    NothingKnown,
    LeftForeign,
    LeftFuller,
}

/// `notes show`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NotesShowAnswer {
    /// The commit.
    pub commit: String,
    /// Whether Takeback wrote the note.
    pub is_own: bool,
    /// The note.
    pub note: String,
}

/// `export --agent-trace`; on standard error if the file is `-`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TraceExportAnswer {
    /// The file.
    pub file: String,
    /// How many records it has: one for each commit, and one for lines that are not committed.
    pub records: usize,
    /// Files with lines in the records.
    pub files: usize,
    /// Lines by agents.
    pub ai_lines: usize,
    /// Of those: written while a command of the agent ran, so perhaps by someone else.
    pub doubtful_lines: usize,
    /// Lines by you.
    pub human_lines: usize,
    /// Lines of which the evidence does not tell who wrote them.
    pub unknown_lines: usize,
    /// Files whose lines cannot be followed.
    pub not_followed: Vec<String>,
    /// What git could not be asked.
    pub problems: Vec<String>,
}
