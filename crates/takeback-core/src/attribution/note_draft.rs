//! A note about a commit, from the writers of its lines. Pure.

use std::collections::{BTreeMap, BTreeSet};

use takeback_store::{Evidence, SessionId};

use super::NotedAuthor;
use super::ai_note::{AiNote, NotedFile, OwnMark, key, person_key, ranges, session_key};
use crate::git::{Commit, GitUser};
use crate::history::{LineAuthor, LineSource, LineWriter};

/// How many lines of a commit have which author.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineCount {
    /// Agents.
    pub agent: usize,
    /// Of those: written while a command of the agent ran, so perhaps by someone else.
    pub doubtful: usize,
    /// You.
    pub you: usize,
    /// The rest: the log does not explain them, or the format cannot name their file.
    pub unexplained: usize,
}

/// A note that grows file by file.
pub(super) struct NoteDraft<'c> {
    note: AiNote,
    own: OwnMark,
    pub(super) count: LineCount,
    /// Who "you" is, if the commit is yours. Nothing says who typed lines that another person committed.
    you: Option<String>,
    whole_of: &'c dyn Fn(&SessionId) -> SessionId,
}

impl<'c> NoteDraft<'c> {
    /// `whole_of`: the session that a subagent's session is a part of.
    pub(super) fn new(
        commit: &Commit,
        user: Option<&GitUser>,
        whole_of: &'c dyn Fn(&SessionId) -> SessionId,
    ) -> Self {
        let is_own = user.is_some_and(|user| user.email == commit.email);
        Self {
            note: AiNote { commit: commit.id.clone(), ..AiNote::default() },
            own: OwnMark {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                doubtful: BTreeSet::new(),
            },
            count: LineCount::default(),
            you: is_own.then(|| format!("{} <{}>", commit.name, commit.email)),
            whole_of,
        }
    }

    /// Adds lines of a file, with their numbers from 0, ascending. `added`: how many lines of it are the
    /// commit's.
    pub(super) fn add<'w>(
        &mut self,
        path: &[u8],
        lines: impl Iterator<Item = (usize, &'w LineWriter)>,
        added: usize,
    ) {
        let mut entries: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let can_name = AiNote::can_name(path);
        for (number, writer) in lines.filter(|_| can_name) {
            if let Some(key) = self.key_of(writer) {
                entries.entry(key).or_default().push(number + 1);
            }
        }
        let explained: usize = entries.values().map(Vec::len).sum();
        self.count.unexplained += added - explained;
        if entries.is_empty() {
            return;
        }
        let mut entries: Vec<_> =
            entries.into_iter().map(|(key, lines)| (key, ranges(&lines))).collect();
        entries.sort_by_key(|(_, ranges)| *ranges[0].start());
        let path = String::from_utf8_lossy(path).into_owned();
        self.note.files.push(NotedFile { path, entries });
    }

    /// The key of a line's entry; `None`: nothing is said about the line.
    fn key_of(&mut self, writer: &LineWriter) -> Option<String> {
        if writer.source != LineSource::Log {
            return None;
        }
        match writer.author {
            LineAuthor::Agent => {
                let session = (self.whole_of)(writer.session.as_ref()?);
                let is_doubtful = writer.evidence == Some(Evidence::Window);
                self.count.agent += 1;
                self.count.doubtful += usize::from(is_doubtful);
                Some(self.agent_key(&session, writer, is_doubtful))
            }
            LineAuthor::You => {
                let person = self.you.clone()?;
                let key = person_key(&person);
                let author = NotedAuthor::Person { name: Some(person) };
                self.note.people.insert(key.clone(), author);
                self.count.you += 1;
                Some(key)
            }
            LineAuthor::Other | LineAuthor::Before | LineAuthor::Unknown => None,
        }
    }

    fn agent_key(&mut self, session: &SessionId, writer: &LineWriter, is_doubtful: bool) -> String {
        let tool = writer.agent.clone().unwrap_or_else(|| "unknown".to_owned());
        let first = session_key(&tool, &session.0);
        let model = writer.model.as_deref().unwrap_or_default();
        let is_named = |author: &NotedAuthor| matches!(author, NotedAuthor::Agent { model, .. } if *model == writer.model);
        // One record holds one model: a session that switched has more than one.
        let key_of_session = match self.note.agents.get(&first) {
            Some(other) if !is_named(other) => session_key(&tool, &format!("{session} {model}")),
            _ => first,
        };
        let agent = NotedAuthor::Agent {
            tool: Some(tool),
            conversation: Some(session.0.clone()),
            model: writer.model.clone(),
            is_doubtful: false,
        };
        self.note.agents.insert(key_of_session.clone(), agent);
        let turn = writer.turn.as_ref().map_or(0, |turn| turn.id.0);
        let grade = if is_doubtful { "doubtful" } else { "certain" };
        let step = key("t_", &format!("{turn:016x} {grade}"));
        let key = format!("{key_of_session}::{step}");
        if is_doubtful {
            self.own.doubtful.insert(key.clone());
        }
        key
    }

    /// The note; `None`: it would say nothing.
    pub(super) fn finish(self) -> Option<AiNote> {
        (!self.note.files.is_empty()).then_some(AiNote { own: Some(self.own), ..self.note })
    }
}
