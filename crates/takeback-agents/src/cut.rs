//! How to cut an agent's conversation back to where a point was made.
//!
//! A rewind restores files; the agent still remembers what it did with them. Its transcript shows
//! whether there is anything to forget. This module writes nothing and starts no agent: agents whose
//! conversation can be cut without their screen need a prompt to continue with.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// How the user cuts a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cut {
    /// The agent's name.
    pub agent: &'static str,
    /// The agent's title.
    #[serde(skip)]
    pub title: &'static str,
    /// The agent's id of the conversation.
    pub session: String,
    /// The agent's id of the first message to forget.
    pub message_id: String,
    /// Instructions, the best way first.
    pub how: Vec<String>,
    /// Continues before that message, in a copy of the conversation; the user adds a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// A prompt that a point was made for.
#[derive(Debug, Clone, Copy)]
pub struct PointPrompt<'a> {
    /// The agent's id of the conversation.
    pub session: &'a str,
    /// The ids by which the prompt is known.
    pub message_ids: &'a [String],
    /// What the user typed.
    pub text: &'a str,
}

/// Finds the cut before a prompt, in the agent's home. `None`: the agent has no such conversation, or it
/// does not continue after that prompt.
pub type CutFinder = fn(home: &Path, prompt: PointPrompt<'_>) -> Result<Option<Cut>, CutError>;

/// A conversation that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {}", path.display())]
pub struct CutError {
    /// The file or folder.
    pub path: PathBuf,
    /// Why.
    pub source: io::Error,
}

/// A prompt, short enough for a sentence.
pub(crate) fn quoted(text: &str) -> String {
    const MOST: usize = 40;
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let plain: String = line.chars().filter(|c| !c.is_control()).collect();
    if plain == text.trim() && plain.chars().count() <= MOST {
        return format!("“{plain}”");
    }
    let begin: String = plain.chars().take(MOST - 1).collect();
    format!("“{}…”", begin.trim_end())
}

/// Whether a name needs no quotes in a path and in a command.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && !name.starts_with('-') && name.chars().all(plain)
}
