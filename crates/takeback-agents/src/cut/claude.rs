//! Claude Code: its menu restores the conversation, and a copy of it can be resumed at a message.

use std::path::Path;

use super::{AskedFor, Cut, CutError, is_plain_name, quoted};
use crate::claude::history::{HistoryError, chain, transcript_of};

pub(super) const NAME: &str = "claude";

impl From<HistoryError> for CutError {
    fn from(error: HistoryError) -> Self {
        Self { path: error.path, source: error.source }
    }
}

pub(super) fn cut(home: &Path, asked: AskedFor<'_>) -> Result<Option<Cut>, CutError> {
    let session = asked.session;
    if !is_plain_name(session) {
        return Ok(None);
    }
    let Some(file) = transcript_of(home, session)? else { return Ok(None) };
    let chain = chain(&file)?;
    let Some(message) = chain.message(asked.message_ids).filter(|id| chain.goes_on_after(id))
    else {
        return Ok(None);
    };
    let before = chain.before(message).filter(|before| is_plain_name(before));
    let command = before.map(|before| {
        format!("claude -p --resume {session} --resume-session-at {before} --fork-session")
    });
    let mut how = vec![format!(
        "`claude --resume {session}`, then Esc Esc, {}, Restore conversation",
        quoted(asked.text)
    )];
    how.push(match &command {
        Some(command) => format!("`{command} PROMPT` goes on from there in a copy of it"),
        None => "it began with that prompt: `claude` begins a new one".to_owned(),
    });
    let (session, message_id) = (session.to_owned(), message.to_owned());
    Ok(Some(Cut { agent: NAME, session, message_id, how, command }))
}
