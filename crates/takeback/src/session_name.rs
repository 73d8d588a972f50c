//! Display names of sessions.
//!
//! Agents use long random ids. The display name is the agent and a few digits of the id, which commands also
//! accept. No two sessions of a workspace have the same name.

use std::collections::HashMap;

use takeback_core::rewind::Receipt;
use takeback_store::{Session, SessionId};

use crate::screen::plain;

/// Digits shown of an id, if they are unique.
const SHORT: usize = 8;

/// The display names of agents' sessions.
pub(crate) struct SessionNames(HashMap<SessionId, SessionName>);

struct SessionName {
    /// With the agent, and the subagent if it is one.
    whole: String,
    /// Only the digits; unset for a subagent.
    short: Option<String>,
}

impl SessionNames {
    pub(crate) fn of(sessions: &[Session]) -> Self {
        let timed = sessions.iter().filter_map(Uuid::of);
        let ids = ShortIds::of(timed.map(|uuid| (uuid, "")));
        let parts =
            sessions.iter().filter_map(|session| Some((Uuid::of(session)?, session.part()?)));
        let parts =
            ShortIds::of(parts.map(|(uuid, part)| (Uuid { id: part, is_timed: false }, uuid.id)));
        let named = sessions.iter().filter_map(|session| {
            let (agent, uuid) = (plain(session.agent.as_deref()?), Uuid::of(session)?);
            let short = plain(ids.get(uuid, ""));
            let name = match session.part() {
                Some(part) => {
                    let part = plain(parts.get(Uuid { id: part, is_timed: false }, uuid.id));
                    SessionName { whole: format!("{agent} {short} subagent {part}"), short: None }
                }
                None => SessionName { whole: format!("{agent} {short}"), short: Some(short) },
            };
            Some((session.id.clone(), name))
        });
        Self(named.collect())
    }

    pub(crate) fn get(&self, session: &SessionId) -> String {
        self.shortened(session).map_or_else(|| plain(&session.0), str::to_owned)
    }

    /// The display name of an agent's session, if it differs from the id.
    pub(crate) fn shortened(&self, session: &SessionId) -> Option<&str> {
        self.0.get(session).map(|name| name.whole.as_str())
    }

    /// Replaces session ids in a text by their names.
    pub(crate) fn in_text(&self, text: &str) -> String {
        // A subagent's id begins with its parent's.
        let mut named: Vec<(&SessionId, &SessionName)> =
            self.0.iter().filter(|(id, _)| text.contains(&id.0)).collect();
        named.sort_by_key(|(id, _)| std::cmp::Reverse(id.0.len()));
        named.iter().fold(text.to_owned(), |text, (id, name)| text.replace(&id.0, &name.whole))
    }

    /// A receipt for display: its reasons use display names.
    pub(crate) fn in_receipt(&self, mut receipt: Receipt) -> Receipt {
        let Receipt { kept_files, conflicts, ambiguous, .. } = &mut receipt;
        for note in kept_files.iter_mut().chain(conflicts).chain(ambiguous) {
            note.reason = self.in_text(&note.reason);
        }
        receipt
    }

    /// Whether `name` is a session's display name, with or without the agent, or with more digits than shown.
    pub(crate) fn means(&self, name: &str, session: &Session) -> bool {
        let Some(shown) = self.0.get(&session.id) else { return false };
        let is_end =
            |uuid: Uuid<'_>| uuid.is_timed && name.len() >= SHORT && uuid.id.ends_with(name);
        shown.whole == name
            || shown.short.as_deref().is_some_and(|short| short == name)
            || (session.whole().is_none() && Uuid::of(session).is_some_and(is_end))
    }
}

/// An id of which a few digits are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Uuid<'a> {
    id: &'a str,
    /// A UUID that begins with its creation time: ids made at almost the same time begin alike, and only
    /// their ends are random.
    is_timed: bool,
}

impl<'a> Uuid<'a> {
    /// The id of a session, or of its parent if it is a subagent.
    fn of(session: &'a Session) -> Option<Self> {
        let id = session.whole().unwrap_or(&session.id).0.as_str();
        let groups: Vec<usize> = id.split('-').map(str::len).collect();
        let is_uuid =
            groups == [8, 4, 4, 4, 12] && id.bytes().all(|c| c == b'-' || c.is_ascii_hexdigit());
        let is_timed = matches!(id.as_bytes().get(14), Some(b'6' | b'7'));
        is_uuid.then_some(Self { id, is_timed })
    }

    fn cut(self, characters: usize) -> &'a str {
        let Self { id, is_timed } = self;
        let cut = match is_timed {
            true => id.char_indices().nth_back(characters - 1).map_or(id, |(at, _)| &id[at..]),
            false => id.char_indices().nth(characters).map_or(id, |(at, _)| &id[..at]),
        };
        cut.trim_matches('-')
    }
}

/// Ids, each within a scope, by the digits that would be shown.
struct ShortIds<'a>(HashMap<(&'a str, &'a str), Vec<Uuid<'a>>>);

impl<'a> ShortIds<'a> {
    fn of(ids: impl Iterator<Item = (Uuid<'a>, &'a str)>) -> Self {
        let mut alike: HashMap<(&str, &str), Vec<Uuid<'_>>> = HashMap::new();
        for (id, within) in ids {
            let ids = alike.entry((within, id.cut(SHORT))).or_default();
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        Self(alike)
    }

    /// The shortest unique part of an id.
    fn get(&self, id: Uuid<'a>, within: &'a str) -> &'a str {
        let alike = self.0.get(&(within, id.cut(SHORT))).map_or(&[][..], Vec::as_slice);
        let is_alone = |characters: &usize| {
            alike.iter().all(|other| *other == id || other.cut(*characters) != id.cut(*characters))
        };
        (SHORT..id.id.len()).find(is_alone).map_or(id.id, |characters| id.cut(characters))
    }
}

#[cfg(test)]
mod tests {
    use takeback_store::Timestamp;

    use super::*;

    fn session(id: &str, agent: Option<&str>) -> Session {
        Session {
            id: SessionId::from(id),
            agent: agent.map(str::to_owned),
            parent: id.split_once('/').map(|(whole, _)| SessionId::from(whole)),
            owner: None,
            started_at: Timestamp(0),
            ended_at: None,
            archived_at: None,
            open_turn: None,
            model: None,
        }
    }

    #[test]
    fn long_ids_of_agents_are_told_by_agent_and_a_few_digits() {
        let claude = "db753a22-174a-4484-9c39-c1e560b4df84";
        let part = "db753a22-174a-4484-9c39-c1e560b4df84/a009855d4d22087c7";
        let own = "db753a22-174a-4484-9c39-c1e560b4df84/mine";
        let codex = "019a8b2c-1234-7aaa-8000-c1e560b4df84";
        let sessions = [
            session(claude, Some("claude")),
            session(part, Some("claude")),
            session(codex, Some("codex")),
            session("mine", Some("claude")),
            // A client's own id with a slash.
            Session { parent: None, ..session(own, Some("claude")) },
            session("00000000-0000-4000-8000-000000000000", None),
        ];
        let names = SessionNames::of(&sessions);
        let name = |id: &str| names.get(&SessionId::from(id));
        assert_eq!(name(claude), "claude db753a22");
        assert_eq!(name(part), "claude db753a22 subagent a009855d");
        assert_eq!(name(codex), "codex 60b4df84");
        assert_eq!(name("mine"), "mine");
        assert_eq!(name(own), own);
        assert_eq!(
            name("00000000-0000-4000-8000-000000000000"),
            "00000000-0000-4000-8000-000000000000"
        );
        assert_eq!(name("gone"), "gone");
        let text = format!("changed by session {part}, {codex}");
        assert_eq!(
            names.in_text(&text),
            "changed by session claude db753a22 subagent a009855d, codex 60b4df84"
        );
    }

    /// Codex makes ids of version 7: those of one millisecond differ only in what is random.
    #[test]
    fn sessions_of_one_millisecond_are_never_called_the_same() {
        let ids = [
            "019a8b2c-1234-7aaa-8000-c1e560b4df84",
            "019a8b2c-1234-7aaa-8000-d2e560b4df84",
            "019a8b2c-1234-7aab-8000-d2e560b4df84",
            "019a8b2c-1234-7aab-9000-000000000001",
        ];
        let sessions: Vec<Session> = ids.iter().map(|id| session(id, Some("codex"))).collect();
        let names = SessionNames::of(&sessions);
        let shown: Vec<String> = sessions.iter().map(|session| names.get(&session.id)).collect();
        assert_eq!(
            shown,
            [
                "codex 1e560b4df84",
                "codex a-8000-d2e560b4df84",
                "codex b-8000-d2e560b4df84",
                "codex 00000001",
            ]
        );
        for (at, session) in sessions.iter().enumerate() {
            for name in [&shown[at], shown[at].trim_start_matches("codex "), ids[at]] {
                let meant = sessions.iter().filter(|one| names.means(name, one));
                assert_eq!(meant.map(|one| &one.id).collect::<Vec<_>>(), [&session.id], "{name}");
            }
        }
        let alone = SessionNames::of(&sessions[..1]);
        assert_eq!(alone.get(&sessions[0].id), "codex 60b4df84");
        assert!(alone.means("1e560b4df84", &sessions[0]), "what it was called among others");
    }

    #[test]
    fn parts_that_begin_alike_and_ids_of_other_kinds_are_told_apart() {
        let whole = "db753a22-174a-4484-9c39-c1e560b4df84";
        let ids = [
            format!("{whole}/agent-subtask-1"),
            format!("{whole}/agent-subtask-2"),
            "db753a22-999a-4484-9c39-c1e560b4df84".to_owned(),
            "019a8b2c-1234-7aaa-8000-c1e5db753a22".to_owned(),
        ];
        let sessions: Vec<Session> = ids.iter().map(|id| session(id, Some("claude"))).collect();
        let names = SessionNames::of(&sessions);
        let shown: Vec<String> = sessions.iter().map(|session| names.get(&session.id)).collect();
        assert_eq!(
            shown,
            [
                "claude db753a22-1 subagent agent-subtask-1",
                "claude db753a22-1 subagent agent-subtask-2",
                "claude db753a22-9",
                "claude 5db753a22",
            ]
        );
    }
}
