//! What sessions are called on screen.
//!
//! Agents name theirs by long random ids. People know who it was, and tell two apart by the beginning,
//! which is also enough where a command asks for a session.

use std::collections::HashMap;

use takeback_store::{Session, SessionId};

use crate::screen::plain;

/// What the sessions of agents are called.
pub(crate) struct SessionNames(HashMap<SessionId, String>);

impl SessionNames {
    pub(crate) fn of(sessions: &[Session]) -> Self {
        let named = |session: &Session| Some((session.id.clone(), called(session)?));
        Self(sessions.iter().filter_map(named).collect())
    }

    pub(crate) fn get(&self, session: &SessionId) -> String {
        self.0.get(session).cloned().unwrap_or_else(|| plain(&session.0))
    }
}

fn called(session: &Session) -> Option<String> {
    let agent = session.agent.as_deref()?;
    let id = &session.id.0;
    let (whole, part) =
        id.split_once('/').map_or((id.as_str(), None), |(id, part)| (id, Some(part)));
    let short = start_of_uuid(whole)?;
    let part = part.map_or_else(String::new, |part| format!(" subagent {}", plain(start(part, 8))));
    Some(format!("{} {short}{part}", plain(agent)))
}

/// As much of a UUID as tells it from others: those that begin with the time of their making share more.
fn start_of_uuid(id: &str) -> Option<&str> {
    let groups: Vec<usize> = id.split('-').map(str::len).collect();
    let is_uuid =
        groups == [8, 4, 4, 4, 12] && id.bytes().all(|c| c == b'-' || c.is_ascii_hexdigit());
    let is_timed = id.as_bytes().get(14) == Some(&b'7');
    is_uuid.then(|| start(id, if is_timed { 13 } else { 8 }))
}

fn start(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(at, _)| &text[..at])
}

#[cfg(test)]
mod tests {
    use takeback_store::Timestamp;

    use super::*;

    #[test]
    fn long_ids_of_agents_are_told_by_agent_and_beginning() {
        let session = |id: &str, agent: Option<&str>| Session {
            id: SessionId::from(id),
            agent: agent.map(str::to_owned),
            parent: None,
            owner: None,
            started_at: Timestamp(0),
            ended_at: None,
            archived_at: None,
            open_turn: None,
        };
        let claude = "db753a22-174a-4484-9c39-c1e560b4df84";
        let part = "db753a22-174a-4484-9c39-c1e560b4df84/a009855d4d22087c7";
        let codex = "019a8b2c-1234-7aaa-8000-c1e560b4df84";
        let names = SessionNames::of(&[
            session(claude, Some("claude")),
            session(part, Some("claude")),
            session(codex, Some("codex")),
            session("mine", Some("claude")),
            session("00000000-0000-4000-8000-000000000000", None),
        ]);
        let name = |id: &str| names.get(&SessionId::from(id));
        assert_eq!(name(claude), "claude db753a22");
        assert_eq!(name(part), "claude db753a22 subagent a009855d");
        assert_eq!(name(codex), "codex 019a8b2c-1234");
        assert_eq!(name("mine"), "mine");
        assert_eq!(
            name("00000000-0000-4000-8000-000000000000"),
            "00000000-0000-4000-8000-000000000000"
        );
        assert_eq!(name("gone"), "gone");
    }
}
