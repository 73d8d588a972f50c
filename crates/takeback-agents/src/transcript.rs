//! What an agent's transcript says and its hooks do not: how calls ended, and which session another one
//! was copied from.
//!
//! After Esc or a refusal most agents run no hook, but they write the transcript. Each agent's
//! `transcript.rs` is the only place that knows its format.

mod lines;

use std::path::{Path, PathBuf};
use std::time::Duration;

use takeback_store::Timestamp;

pub(crate) use self::lines::records_with;

/// What a transcript says about the call, the session or the prompt of an id.
pub type Lookup<T> = fn(transcript: &[u8], id: &str) -> Option<T>;

/// The ids of something in a transcript.
pub type IdsLookup = fn(transcript: &[u8]) -> Vec<String>;

/// The name of a model in a transcript.
pub type ModelLookup = fn(transcript: &[u8]) -> Option<String>;

/// The transcript of the session or the subagent of an id, found from a path.
pub type PathLookup = fn(from: &Path, id: &str) -> Option<PathBuf>;

/// What can be read from an agent's transcripts. A missing function means that the transcript does not say
/// it, or that hooks do. The text given to a function may be only the end of a transcript.
#[derive(Debug, Clone, Copy)]
pub struct Transcript {
    /// How a call ended, by its newest record. `None`: it may still run, or the transcript does not know
    /// it.
    pub end: Option<Lookup<TranscriptEnd>>,
    /// When a person allowed a call, or when it began to run.
    pub allowed_at: Option<Lookup<Timestamp>>,
    /// The transcript of a session in the agent's home, if hooks do not name it.
    pub path: Option<PathLookup>,
    /// The transcript of a subagent, from the session's, if it has its own and hooks do not name it.
    pub subagent_path: Option<PathLookup>,
    /// The session that a session was copied from, if the transcript names it.
    pub parent: Option<Lookup<String>>,
    /// The messages that prompts became, oldest first. A copy of a session has the messages of the first
    /// one under the same ids: the session that the newest known one was made for is the copy's parent.
    pub prompts: Option<IdsLookup>,
    /// The message that a prompt became, if hooks know prompts by another id.
    pub message: Option<Lookup<String>>,
    /// The model that answered last, if hooks do not name it.
    pub model: Option<ModelLookup>,
}

impl Transcript {
    /// Transcripts are not read.
    pub const NONE: Self = Self {
        end: None,
        allowed_at: None,
        path: None,
        subagent_path: None,
        parent: None,
        prompts: None,
        message: None,
        model: None,
    };

    /// The ends of those `calls` that have ended.
    ///
    /// Some agents give calls no id; then two calls that do the same are the same to the transcript, and
    /// an end before a call began belongs to an earlier one.
    #[must_use]
    pub fn ends(&self, transcript: &[u8], calls: &[&str]) -> Vec<TranscriptEnd> {
        let Some(end) = self.end else { return Vec::new() };
        calls.iter().filter_map(|call| end(transcript, call)).collect()
    }
}

/// How a call ended, according to a transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TranscriptEnd {
    /// The same as [`ToolCall::id`](crate::hook::ToolCall::id).
    pub call: String,
    /// How it ended.
    pub how: TranscriptEndKind,
    /// When.
    pub at: Option<Timestamp>,
    /// How long it ran, without the time that it waited for a permission.
    pub took: Option<Duration>,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriptEndKind {
    /// It ran to its end, with or without an error.
    Finished,
    /// It was refused and never ran.
    Rejected,
    /// It was stopped: it ran until the end's time.
    Interrupted,
    /// The agent stopped waiting for it at the end's time. It was refused, killed, or still runs: only its
    /// processes show which.
    Abandoned,
}
