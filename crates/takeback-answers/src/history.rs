//! Questions about the log: one file over time, a file at a point, and who wrote how much.

use serde::{Deserialize, Serialize};

use crate::{Author, ByAuthor, ChangeCount, Evidence, FilePath, Id, TakenBack, Time};

/// `blame`: the lines of a file, in order.
pub type BlameAnswer = Vec<BlamedLine>;

/// `history:blame`: the lines of a file, and what the command prints on standard error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BlameReport {
    /// The lines, in order.
    pub lines: BlameAnswer,
    /// What could not be asked about; lines may lack an author because of it.
    pub problems: Vec<String>,
}

/// A line, and who wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BlamedLine {
    /// Its number, from 1.
    pub line: usize,
    /// The line without its end.
    pub text: String,
    /// The exact bytes, where the line is not UTF-8 and `text` is lossy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_base64: Option<String>,
    /// Who wrote it.
    #[serde(flatten)]
    pub writer: LineWriter,
}

/// Who wrote a line, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LineWriter {
    /// Who. `other`: a commit's author, or a person named by another tool. `before`: older than the log.
    pub author: LineAuthor,
    /// How an agent is known to be the author, or possibly the author.
    pub evidence: Option<Evidence>,
    /// What names the author; `null`: nothing does.
    pub source: Option<LineSource>,
    /// The session.
    pub session: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// The model, where the agent said it.
    pub model: Option<String>,
    /// The point of the prompt.
    pub point: Option<Id>,
    /// The tool call.
    pub call: Option<String>,
    /// The tool.
    pub tool: Option<String>,
    /// The beginning of the prompt.
    pub prompt: Option<String>,
    /// When it was written.
    pub at: Option<Time>,
    /// The commit that it came from, where git says so.
    pub commit: Option<String>,
    /// The name of an author who is not you.
    pub name: Option<String>,
}

/// Who wrote a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "the JSON words are the variants; a comment on each would change the schema"
)]
pub enum LineAuthor {
    You,
    Agent,
    Other,
    Before,
    Unknown,
}

/// What names a line's author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "the JSON words are the variants; a comment on each would change the schema"
)]
pub enum LineSource {
    Log,
    Git,
    Note,
    Trace,
}

/// `why` and `history:why`: why a line is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WhyAnswer {
    /// The line and who wrote it.
    #[serde(flatten)]
    pub line: BlamedLine,
    /// The prompt in full.
    pub whole_prompt: Option<String>,
    /// The command, of a shell call.
    pub command: Option<String>,
    /// The path that the line was written to, if the file or the line was moved since.
    pub written_to: Option<String>,
    /// The change that wrote the line, in git's format; `null`: the log does not have it.
    pub patch: Option<String>,
    /// The first line of the commit's message.
    pub summary: Option<String>,
    /// What could not be asked about; the author may be missing because of it.
    pub problems: Vec<String>,
}

/// `history` and `history:path`: newest first.
pub type HistoryAnswer = Vec<FileRow>;

/// What happened to a file between a point and the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileRow {
    /// Its path then.
    #[serde(flatten)]
    pub path: FilePath,
    /// The path it was renamed from, if that happened here.
    pub renamed_from: Option<String>,
    /// The last point before it changed; `null`: older than all points.
    pub point: Option<Id>,
    /// The session of the point.
    pub session: Option<String>,
    /// The description of the point.
    pub description: String,
    /// When it last changed here.
    pub at: Time,
    /// What happened: `new`, `deleted`, `changed`, `mode 644 → 755`, and so on.
    pub what: String,
    /// Who changed how much.
    pub by_author: ByAuthor,
    /// Whether rewinds took back what the agent did.
    pub taken_back: TakenBack,
}

/// `cat` and `history:cat`: a file at a point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CatAnswer {
    /// Bytes of the whole file.
    pub size: usize,
    /// The contents; `null`: they are not UTF-8.
    pub text: Option<String>,
    /// The contents, if they are not UTF-8.
    pub base64: Option<String>,
    /// Whether the contents end early, because only so many bytes were wanted; left out if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

/// `stats` and `history:stats`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatsAnswer {
    /// All agents.
    pub agents: Contribution,
    /// You.
    pub you: Contribution,
    /// An agent or you: the evidence does not tell.
    pub unclear: Contribution,
    /// Sessions that were deleted since.
    pub unknown: Contribution,
    /// Each session, by when it first wrote.
    pub sessions: Vec<SessionStats>,
    /// Each model.
    pub models: Vec<ModelStats>,
    /// Each prompt that changed something, oldest first.
    pub prompts: Vec<PromptStats>,
    /// Files of which it is not known what is left: not text, too large, or lost.
    pub not_followed: Vec<String>,
}

/// How much was written, also what was rewritten or taken back later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Contribution {
    /// Files and lines.
    #[serde(flatten)]
    pub count: ChangeCount,
    /// Lines that are still there.
    pub left: usize,
}

/// `bisect` and `history:bisect`: what made a command fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BisectAnswer {
    /// The point of the prompt; `null`: the step belongs to no prompt.
    pub turn: Option<Id>,
    /// The tool call; `null`: the step is no tool call.
    pub call: Option<String>,
    /// The beginning of the prompt.
    pub prompt: Option<String>,
    /// Who made the step.
    pub author: Author,
    /// How an agent is known to be its author, or possibly its author.
    pub evidence: Option<Evidence>,
    /// The command, of a shell call.
    pub command: Option<String>,
    /// The last point at which the command was good.
    pub good: Option<Id>,
    /// The paths that the step changed.
    pub files: Vec<FilePath>,
    /// How many steps it may be; more than one only where steps between were skipped.
    pub candidates: usize,
    /// How often the command ran.
    pub runs: usize,
    /// How often it could not be tested.
    pub skipped: usize,
}

/// What a session wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SessionStats {
    /// The session.
    pub session: String,
    /// Its agent.
    pub agent: Option<String>,
    /// The model that it last named.
    pub model: Option<String>,
    /// How much.
    #[serde(flatten)]
    pub written: Contribution,
}

/// What a model wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelStats {
    /// Its name; `null`: agents that did not name theirs.
    pub model: Option<String>,
    /// How much.
    #[serde(flatten)]
    pub written: Contribution,
}

/// What came of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PromptStats {
    /// The prompt's point.
    pub point: Id,
    /// Its session.
    pub session: Option<String>,
    /// The first words of the prompt.
    pub description: String,
    /// How much.
    #[serde(flatten)]
    pub written: Contribution,
}
