//! How an agent continues a conversation in another folder: in a copy, so that several forks of a workspace
//! can each have one. This module writes nothing and starts no agent.

use std::path::Path;

use crate::cut::{CutError, PointPrompt};

/// How the user continues a conversation in another folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversationCopy {
    /// The agent's name.
    pub agent: &'static str,
    /// The agent's title.
    pub title: &'static str,
    /// The agent's id of the conversation.
    pub session: String,
    /// Run in the other folder, it opens a copy on the agent's screen.
    pub command: String,
    /// What to press there, so that the copy ends before the prompt; `None`: the whole conversation is wanted.
    pub keys: Option<String>,
    /// The same without a screen, if the agent can do that; the user adds a prompt.
    pub headless: Option<String>,
}

/// Finds how a conversation continues in another folder. `None`: the agent does not keep it, or nothing of it
/// was said before the point.
pub type CopyFinder =
    fn(home: &Path, extent: CopyExtent<'_>) -> Result<Option<ConversationCopy>, CutError>;

/// How much of a conversation is copied.
#[derive(Debug, Clone, Copy)]
pub enum CopyExtent<'a> {
    /// All of the conversation with this id.
    Whole(&'a str),
    /// What was said before a prompt.
    Before(PointPrompt<'a>),
}
