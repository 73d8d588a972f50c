//! Attribution in the formats of other tools: notes on commits as git-ai writes them, and Agent Trace.
//! Both are read where the log does not reach, and written only when asked.

mod agent_trace;
mod ai_note;

pub use self::agent_trace::{
    AgentTrace, Contributor, TraceConversation, TraceFile, TraceLink, TraceRange, TraceRevision,
    TraceTool,
};
pub use self::ai_note::{AiNote, NoteError, NotedFile, session_key};

/// Who another tool says wrote a line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NotedAuthor {
    /// An agent.
    Agent {
        /// Its name, where the format has one.
        tool: Option<String>,
        /// Its conversation.
        conversation: Option<String>,
        /// The model.
        model: Option<String>,
    },
    /// A person. Tools also write this where they only know that no agent of theirs wrote it.
    Person {
        /// Name and address, where the format has them.
        name: Option<String>,
    },
}
