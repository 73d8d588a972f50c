//! Claude Code: its menu restores the conversation, and a copy of it can be resumed at a message.

use std::path::Path;

use super::CLAUDE;
use super::history::{ClaudeHistoryError, chain, claude_transcript};
use crate::cut::{Cut, CutError, PointPrompt, is_plain_name, quoted};

impl From<ClaudeHistoryError> for CutError {
    fn from(error: ClaudeHistoryError) -> Self {
        Self { path: error.path, source: error.source }
    }
}

pub(super) fn cut(home: &Path, prompt: PointPrompt<'_>) -> Result<Option<Cut>, CutError> {
    let session = prompt.session;
    if !is_plain_name(session) {
        return Ok(None);
    }
    let Some(file) = claude_transcript(home, session)? else { return Ok(None) };
    let chain = chain(&file)?;
    let Some(message) = chain.message(prompt.message_ids).filter(|id| chain.continues_after(id))
    else {
        return Ok(None);
    };
    let before = chain.before(message).filter(|before| is_plain_name(before));
    let command = before.map(|before| {
        format!("claude -p --resume {session} --resume-session-at {before} --fork-session")
    });
    let mut how = vec![format!(
        "`claude --resume {session}`, then Esc Esc, {}, Restore conversation",
        quoted(prompt.text)
    )];
    how.push(match &command {
        Some(command) => format!("`{command} PROMPT` continues from there in a copy"),
        None => "the conversation began with that prompt: `claude` starts a new one".to_owned(),
    });
    let (session, message_id) = (session.to_owned(), message.to_owned());
    Ok(Some(Cut { agent: CLAUDE.name, title: CLAUDE.title, session, message_id, how, command }))
}
