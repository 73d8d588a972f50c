//! The interface of an agent that the user talks to: its commands and its events.
//!
//! The host holds a [`ChatAgent`] and the receiving end of a channel of [`ChatEvent`]. The agent
//! works on its own threads and records through a [`crate::capture::Capture`].

use serde_json::Value;
use takeback_store::{PointId, Seq, Timestamp};

/// An agent that the user talks to. Called from several threads at once: a turn can be interrupted while another call waits.
pub trait ChatAgent: Send + Sync {
    /// `claude`, `builtin`.
    fn name(&self) -> &'static str;

    /// Starts a turn; returns at once. The prompt's point is durable before the agent receives the
    /// prompt. `message` is the prompt's id from here on: a UUID.
    ///
    /// One turn at a time: a prompt during a turn is [`AgentError::Busy`].
    fn prompt(&self, message: &str, text: &str) -> Result<(), AgentError>;

    /// Asks the turn and its background work to end; returns at once. [`ChatEvent::TurnEnd`]
    /// follows, even without a turn, and nothing is written after it.
    fn interrupt(&self) -> Result<(), AgentError>;

    /// Answers a [`ChatEvent::PermissionRequest`].
    fn decide(&self, request: &str, decision: Decision) -> Result<(), AgentError>;

    /// Whether the agent can receive prompts: its process or thread runs.
    fn is_live(&self) -> bool;

    /// Asks the agent to restore its own copies of files from before `message`, or to say what it
    /// would do. Waits for the answer. `Ok(None)`: it keeps no copies.
    fn rewind_files(
        &self,
        message: &str,
        mode: RestoreMode,
    ) -> Result<Option<NativeFiles>, NativeFilesError>;

    /// Makes the agent forget `message` and everything after it. Waits until it has. Restarts the
    /// agent if necessary, even if it had died.
    fn cut(&self, message: &str) -> Result<(), AgentError>;

    /// The current conversation, for [`Self::load`]: now or after a restart, here or in another
    /// session.
    fn memory(&self) -> Value;

    /// Continues a conversation from [`Self::memory`]; `null` is an empty one. Waits until it is
    /// loaded. Other holders of the previous conversation keep theirs unchanged.
    fn load(&self, memory: &Value) -> Result<(), AgentError>;

    /// Ends the agent; waits until everything is recorded.
    fn close(&self);
}

/// The point of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptPoint {
    /// The point.
    pub id: PointId,
    /// The time in the log.
    pub created_at: Timestamp,
}

/// An event of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatEvent {
    /// The agent can receive prompts.
    Ready {
        /// The agent's id of the conversation, if it has one.
        session: Option<String>,
        /// The model's name, if known.
        model: Option<String>,
    },
    /// A prompt was accepted, and its point is durable.
    PromptAccepted {
        /// The prompt's id.
        message: String,
        /// The agent's id of the conversation, if it has one.
        session: Option<String>,
        /// `None` if it could not be recorded.
        point: Option<PromptPoint>,
    },
    /// The agent started a turn without a prompt; it ends like any other.
    TurnBegin,
    /// A piece of text as it arrives.
    Text(String),
    /// The text is complete; the next piece starts a paragraph.
    TextEnd,
    /// A tool call started.
    Tool {
        /// The call's id.
        call: String,
        /// One line, such as `Write utils.ts` or `$ cargo test`.
        title: String,
    },
    /// A tool call ended.
    ToolEnd {
        /// The call's id.
        call: String,
        /// Whether it succeeded.
        ok: bool,
        /// Its result in one line.
        line: String,
        /// Its changes are in the log after the first and up to the second.
        changes: Option<(Seq, Seq)>,
    },
    /// The agent asks for permission and waits for [`ChatAgent::decide`].
    PermissionRequest(PermissionRequest),
    /// The turn ended; nothing is written after it.
    TurnEnd(TurnResult),
    /// What could not be recorded, and why. No rewind restores it.
    NotRecorded(String),
    /// A message for the user.
    Note(String),
    /// The agent ended, and why. [`ChatAgent::cut`] and [`ChatAgent::load`] start it again.
    Ended(String),
}

/// A call that waits for the user's permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRequest {
    /// The id for [`ChatAgent::decide`].
    pub request: String,
    /// As in [`ChatEvent::Tool`].
    pub title: String,
    /// What the call would do: the command, the text.
    pub detail: String,
}

/// The user's answer to a [`PermissionRequest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Allows this call.
    Allow,
    /// Also allows similar calls for the rest of the session.
    AllowAlways,
    /// Refuses the call, with the reason for the agent.
    Deny(String),
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnResult {
    /// The agent has answered the prompt.
    Done,
    /// The user interrupted it.
    Interrupted,
    /// It failed, with the reason.
    Failed(String),
}

/// Whether an agent restores its own copies of files, or only reports what it would do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreMode {
    /// Only reports what it would do.
    DryRun,
    /// Restores.
    Apply,
}

/// What an agent's own copies would restore, or restored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NativeFiles {
    /// Absolute, as the agent names them. Only a dry run reports them.
    pub paths: Vec<std::path::PathBuf>,
}

/// Why an agent did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Wait for the turn to end, or interrupt it.
    #[error("a turn is running")]
    Busy,
    /// With the reason. [`ChatAgent::cut`] and [`ChatAgent::load`] start it again.
    #[error("the agent has ended: {0}")]
    Ended(String),
    /// Its program or thread.
    #[error("cannot start {program}")]
    CannotStart {
        /// The program.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// It did not answer in time.
    #[error("the agent did not answer within {0} s")]
    Timeout(u64),
    /// No prompt of the conversation has this id.
    #[error("the agent does not know the message {0}")]
    UnknownMessage(String),
    /// The memory to load is another agent's. With the name of this one.
    #[error("this conversation is not one of {0}'s")]
    ForeignMemory(&'static str),
    /// With the agent's reason.
    #[error("the agent refused: {0}")]
    Refused(String),
}

/// Why an agent's own copies were not restored.
#[derive(Debug, thiserror::Error)]
pub enum NativeFilesError {
    /// The agent does not know the message: an interrupted turn, a prompt beyond its limit, or a
    /// deleted folder.
    #[error("the agent has no copies for this prompt")]
    NoCheckpoint,
    /// The agent was started without copies.
    #[error("the agent keeps no copies in this session")]
    NotEnabled,
    /// With the agent's reason.
    #[error("the agent could not restore its copies: {0}")]
    Failed(String),
    /// The agent could not be asked.
    #[error(transparent)]
    Agent(#[from] AgentError),
}
