//! An agent that somebody talks to: what can be asked of it, and what it says.
//!
//! Whoever shows the conversation has an [`Agent`] and the receiving end of a channel of [`Said`]. The
//! agent works on threads of its own and records what it does through a [`crate::capture::Capture`].

use serde_json::Value;
use takeback_store::{PointId, Seq, Timestamp};

/// Asked from several threads at once: a turn is interrupted while somebody waits for an answer.
pub trait Agent: Send + Sync {
    /// `claude`, `builtin`.
    fn name(&self) -> &'static str;

    /// Begins a turn; answers at once. The point of the prompt is durable before the agent hears of
    /// it. `message` is the id by which the prompt is known from here on: a UUID.
    ///
    /// One turn at a time: a prompt while one runs is [`AgentError::Busy`].
    fn prompt(&self, message: &str, text: &str) -> Result<(), AgentError>;

    /// Asks the turn to end, and what it left at work in the background; answers at once.
    /// [`Said::TurnEnd`] follows, and nothing is written after it. It may also follow without a turn.
    fn interrupt(&self) -> Result<(), AgentError>;

    /// Answers a [`Said::Asks`].
    fn decide(&self, request: &str, decision: Decision) -> Result<(), AgentError>;

    /// Whether there is somebody to talk to: a process that runs, a thread that listens.
    fn is_live(&self) -> bool;

    /// Asks the agent to bring its own copies of files back to where they were before `message`, or to
    /// say what it would do. Waits for the answer. `Ok(None)`: it keeps no copies.
    fn rewind_files(&self, message: &str, trial: Trial) -> Result<Option<OwnFiles>, OwnFilesError>;

    /// Makes the agent forget `message` and everything after it. Waits until it has. The agent is
    /// started anew if it has to be, and also if it had died.
    fn cut(&self, message: &str) -> Result<(), AgentError>;

    /// The conversation as it stands, for [`Self::load`]: now or after a restart, here or in another
    /// session.
    fn memory(&self) -> Value;

    /// Goes on from a conversation that [`Self::memory`] gave; `null` is an empty one. Waits until it is
    /// so, and leaves what was there before untouched for whoever has it.
    fn load(&self, memory: &Value) -> Result<(), AgentError>;

    /// Ends it; waits for what is being recorded.
    fn close(&self);
}

/// The point of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptPoint {
    pub id: PointId,
    /// As the log has it.
    pub created_at: Timestamp,
}

/// Something an agent says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It can be talked to. `session`: what it calls the conversation, where it has a name of its own.
    Ready {
        session: Option<String>,
        model: Option<String>,
    },
    /// A prompt was taken in, and its point is durable. `point`: `None` if it could not be recorded.
    Prompted {
        message: String,
        session: Option<String>,
        point: Option<PromptPoint>,
    },
    /// The agent goes on by itself: a turn that nobody asked for, which ends as any other.
    TurnBegin,
    /// A piece of text, as it comes.
    Text(String),
    /// The text is complete; what comes next is a new paragraph.
    TextEnd,
    /// A tool call begins. `title`: one line for people, like `Write utils.ts` or `$ cargo test`.
    Tool {
        call: String,
        title: String,
    },
    /// It has ended. `line`: what came of it, in one line. `changes`: what it changed is in the log after
    /// the first and up to the second.
    ToolEnd {
        call: String,
        ok: bool,
        line: String,
        changes: Option<(Seq, Seq)>,
    },
    /// It wants to do something that somebody has to allow; it waits for [`Agent::decide`].
    Asks(Permission),
    TurnEnd(Ending),
    /// What could not be recorded, and why: no rewind brings it back.
    Unrecorded(String),
    /// Something else worth a line.
    Note(String),
    /// There is nobody to talk to any more, and why. [`Agent::cut`] and [`Agent::load`] start it anew.
    Gone(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permission {
    pub request: String,
    /// As in [`Said::Tool`].
    pub title: String,
    /// What it would do in more lines: the command, the text.
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    Allow,
    /// And whatever is alike for the rest of the session.
    AllowAlways,
    /// The agent hears why.
    Deny(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Done,
    Interrupted,
    Failed(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trial {
    /// Says what it would do.
    Dry,
    Real,
}

/// What an agent's own copies would do, or did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OwnFiles {
    /// Absolute, as the agent names them. Only a dry run knows them.
    pub paths: Vec<std::path::PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("a turn is running")]
    Busy,
    #[error("the agent has ended: {0}")]
    Gone(String),
    #[error("{program} cannot be started")]
    CannotStart { program: String, source: std::io::Error },
    #[error("the agent did not answer within {0} s")]
    Silent(u64),
    #[error("the agent does not know the message {0}")]
    UnknownMessage(String),
    #[error("this conversation is not one of {0}'s")]
    ForeignMemory(&'static str),
    #[error("the agent refused: {0}")]
    Refused(String),
}

/// Why an agent's own copies did not come back.
#[derive(Debug, thiserror::Error)]
pub enum OwnFilesError {
    /// It knows nothing of that message: a cut-off turn, a prompt beyond its limit, a swept folder.
    #[error("the agent has no copies for this prompt")]
    NoCheckpoint,
    #[error("the agent keeps no copies in this session")]
    NotEnabled,
    #[error("the agent could not restore its copies: {0}")]
    Failed(String),
    #[error(transparent)]
    Agent(#[from] AgentError),
}
