//! How a conversation is cut to where a point was made, for agents that have to be told so themselves.
//!
//! A rewind takes files back; the agent goes on to remember what it did with them. What it wrote down
//! of the conversation says whether there is anything to forget. Nothing is written, and no agent is
//! started: those that can be told without their screen want a prompt to go on with.

mod claude;
mod codex;

use std::io;
use std::path::PathBuf;

use serde::Serialize;

/// What to do about a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cut {
    pub agent: &'static str,
    /// As the agent calls it.
    pub session: String,
    /// The first message to be forgotten, as the agent calls it.
    pub message_id: String,
    /// For people, the best way first.
    pub how: Vec<String>,
    /// Goes on before that message, in a copy of the conversation; it wants a prompt as its last word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Cut {
    /// What people call the agent.
    #[must_use]
    pub fn title(&self) -> &'static str {
        match self.agent {
            claude::NAME => "Claude Code",
            _ => "Codex",
        }
    }
}

/// Where agents keep their conversations.
#[derive(Debug, Clone)]
pub struct AgentHomes {
    /// `~/.claude`
    pub claude: PathBuf,
    /// `~/.codex`
    pub codex: PathBuf,
}

/// A prompt that a point was made for.
#[derive(Debug, Clone, Copy)]
pub struct AskedFor<'a> {
    /// The agent, as the log has it.
    pub agent: &'a str,
    pub session: &'a str,
    pub message_ids: &'a [String],
    pub text: &'a str,
}

#[derive(Debug, thiserror::Error)]
#[error("{} cannot be read", path.display())]
pub struct CutError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// `None`: the agent is none that can be told, it has no such conversation, or the conversation does
/// not go on after that prompt.
pub fn cut(homes: &AgentHomes, asked: AskedFor<'_>) -> Result<Option<Cut>, CutError> {
    match asked.agent {
        claude::NAME => claude::cut(&homes.claude, asked),
        codex::NAME => codex::cut(&homes.codex, asked),
        _ => Ok(None),
    }
}

/// A prompt as it can stand in a sentence.
fn quoted(text: &str) -> String {
    const MOST: usize = 40;
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let plain: String = line.chars().filter(|c| !c.is_control()).collect();
    if plain == text.trim() && plain.chars().count() <= MOST {
        return format!("“{plain}”");
    }
    let begin: String = plain.chars().take(MOST - 1).collect();
    format!("“{}…”", begin.trim_end())
}

/// Whether a name can stand in a path and in a command as it is.
fn is_plain_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !name.is_empty() && !name.starts_with('-') && name.chars().all(plain)
}
