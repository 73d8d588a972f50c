//! Attribution in the formats of other tools: notes on commits as git-ai writes them, and Agent Trace.
//! Both are read where the log does not reach, and written only when asked.

mod agent_trace;
mod ai_note;
mod commit_notes;
mod note_draft;
mod trace_export;

pub use self::agent_trace::{
    AgentTrace, Contributor, OwnLines, OwnTrace, TraceConversation, TraceFile, TraceLink,
    TraceMetadata, TraceRange, TraceRevision, TraceTool,
};
pub use self::ai_note::{AiNote, NoteError, NotedFile, OwnMark, person_key, session_key};
pub use self::commit_notes::{
    AI_NOTES, CommitNote, ForeignNotes, NoteOutcome, NotesError, NotesReport, NotesRequest,
    write_notes,
};
pub use self::note_draft::LineCount;
pub use self::trace_export::{TraceReport, TraceRequest, traces};

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
        /// The lines were written while a command of the agent ran, so perhaps by someone else.
        is_doubtful: bool,
    },
    /// A person. Tools also write this where they only know that no agent of theirs wrote it.
    Person {
        /// Name and address, where the format has them.
        name: Option<String>,
    },
}
