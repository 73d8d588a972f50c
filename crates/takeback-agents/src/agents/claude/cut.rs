//! Claude Code: its menu restores the conversation, and a copy of it can be resumed at a message.

use std::path::Path;

use super::CLAUDE;
use super::history::{ClaudeHistoryError, chain, claude_transcript};
use crate::conversation_copy::{ConversationCopy, CopyExtent};
use crate::cut::{Cut, CutError, PointPrompt, is_plain_name, quoted};

impl From<ClaudeHistoryError> for CutError {
    fn from(error: ClaudeHistoryError) -> Self {
        Self { path: error.path, source: error.source }
    }
}

pub(super) fn cut(home: &Path, prompt: PointPrompt<'_>) -> Result<Option<Cut>, CutError> {
    let session = prompt.session;
    let Some(place) = place_of(home, prompt)? else { return Ok(None) };
    let command = place.headless(session);
    let mut how = vec![format!("`claude --resume {session}`, then {}", keys(prompt.text))];
    how.push(match &command {
        Some(command) => format!("`{command} PROMPT` continues from there in a copy"),
        None => "the conversation began with that prompt: `claude` starts a new one".to_owned(),
    });
    let (session, message_id) = (session.to_owned(), place.message);
    Ok(Some(Cut { agent: CLAUDE.name, title: CLAUDE.title, session, message_id, how, command }))
}

/// The program finds a session by its id from any folder.
pub(super) fn copy(
    home: &Path,
    extent: CopyExtent<'_>,
) -> Result<Option<ConversationCopy>, CutError> {
    let (session, keys, headless) = match extent {
        CopyExtent::Whole(session) => {
            if !is_plain_name(session) || claude_transcript(home, session)?.is_none() {
                return Ok(None);
            }
            (session, None, format!("claude -p --resume {session} --fork-session"))
        }
        CopyExtent::Before(prompt) => {
            let place = place_of(home, prompt)?;
            let Some(headless) = place.and_then(|place| place.headless(prompt.session)) else {
                return Ok(None);
            };
            (prompt.session, Some(keys(prompt.text)), headless)
        }
    };
    Ok(Some(ConversationCopy {
        agent: CLAUDE.name,
        title: CLAUDE.title,
        session: session.to_owned(),
        command: format!("claude --resume {session} --fork-session"),
        keys,
        headless: Some(headless),
    }))
}

fn keys(text: &str) -> String {
    format!("Esc Esc, {}, Restore conversation", quoted(text))
}

/// Where a prompt is in its conversation.
struct PromptPlace {
    message: String,
    /// The message before; `None` if the conversation began with the prompt.
    before: Option<String>,
}

impl PromptPlace {
    fn headless(&self, session: &str) -> Option<String> {
        let before = self.before.as_ref()?;
        Some(format!("claude -p --resume {session} --resume-session-at {before} --fork-session"))
    }
}

/// `None`: there is no such prompt, or the conversation does not continue after it.
fn place_of(home: &Path, prompt: PointPrompt<'_>) -> Result<Option<PromptPlace>, CutError> {
    if !is_plain_name(prompt.session) {
        return Ok(None);
    }
    let Some(file) = claude_transcript(home, prompt.session)? else { return Ok(None) };
    let chain = chain(&file)?;
    let message = chain.message(prompt.message_ids).filter(|id| chain.continues_after(id));
    Ok(message.map(|message| PromptPlace {
        message: message.to_owned(),
        before: chain.before(message).filter(|before| is_plain_name(before)).map(str::to_owned),
    }))
}
