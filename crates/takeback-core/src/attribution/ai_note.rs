//! A note on a commit in git-ai's format (`authorship/3.0.0`, in `refs/notes/ai`): which lines of the
//! commit's files were written in which session. Pure.
//!
//! ```text
//! src/cart.rs
//!   s_aa2798be83c02f::t_00000000000001 4-9,12
//! ---
//! {"schema_version": "authorship/3.0.0", "base_commit_sha": "…", "prompts": {}, "sessions": {…}}
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use super::NotedAuthor;

const VERSION: &str = "authorship/3.0.0";
/// What stands for a name that is not known.
const UNKNOWN: &str = "unknown";

/// A note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AiNote {
    /// The commit it is about.
    pub commit: String,
    /// The files that it has lines of.
    pub files: Vec<NotedFile>,
    /// Agents by the keys of entries.
    pub agents: BTreeMap<String, NotedAuthor>,
    /// People by the keys of entries.
    pub people: BTreeMap<String, NotedAuthor>,
    /// Set in a note that Takeback wrote: what the format has no field for.
    pub own: Option<OwnMark>,
}

/// What Takeback adds to its notes. Other readers skip it, and tools that rewrite a note drop it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnMark {
    /// The version of Takeback that wrote the note.
    #[serde(default)]
    pub version: String,
    /// Keys of entries whose lines were written while a command of the agent ran, so perhaps not by it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub doubtful: BTreeSet<String>,
}

/// The lines of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotedFile {
    /// From the top of the repository.
    pub path: String,
    /// Keys with their lines, from 1. Where entries overlap, the last one counts.
    pub entries: Vec<(String, Vec<RangeInclusive<usize>>)>,
}

/// Why a note cannot be read.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum NoteError {
    #[error("it has no line `---`")]
    NoDivider,
    #[error("line {line} of it is not an entry")]
    NotAnEntry { line: usize },
    #[error("its JSON cannot be read")]
    Json(#[from] serde_json::Error),
    #[error("it has the format {version}, not {VERSION}")]
    Version { version: String },
}

/// The JSON below the divider. Fields that Takeback does not use are passed over.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Metadata {
    schema_version: String,
    base_commit_sha: String,
    #[serde(default)]
    prompts: BTreeMap<String, SessionRecord>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    sessions: BTreeMap<String, SessionRecord>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    humans: BTreeMap<String, PersonRecord>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    takeback: Option<OwnMark>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SessionRecord {
    agent_id: AgentRecord,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct AgentRecord {
    #[serde(default)]
    tool: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    model: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct PersonRecord {
    author: String,
}

/// The key of an agent's conversation.
#[must_use]
pub fn session_key(tool: &str, conversation: &str) -> String {
    key("s_", &format!("{tool}:{conversation}"))
}

/// The key of a person.
#[must_use]
pub fn person_key(name_and_address: &str) -> String {
    key("h_", name_and_address)
}

/// A key as git-ai makes them: 14 hex digits of a hash.
pub(super) fn key(prefix: &str, of: &str) -> String {
    let hash = sha2::Sha256::digest(of);
    let mut key = prefix.to_owned();
    for byte in &hash[..7] {
        write!(key, "{byte:02x}").expect("a String takes any text");
    }
    key
}

impl AiNote {
    /// Reads a note.
    pub fn parse(text: &[u8]) -> Result<Self, NoteError> {
        let text = String::from_utf8_lossy(text);
        let mut note = Self::default();
        let mut rows = text.lines().enumerate();
        loop {
            let (at, row) = rows.next().ok_or(NoteError::NoDivider)?;
            let wrong = || NoteError::NotAnEntry { line: at + 1 };
            if row == "---" {
                break;
            } else if let Some(entry) = row.strip_prefix("  ") {
                let file = note.files.last_mut().ok_or_else(wrong)?;
                let (key, ranges) = entry.split_once(' ').ok_or_else(wrong)?;
                let ranges = ranges.split(',').map(range).collect::<Option<_>>();
                file.entries.push((key.to_owned(), ranges.ok_or_else(wrong)?));
            } else if !row.is_empty() {
                let inner = row.strip_prefix('"').and_then(|row| row.strip_suffix('"'));
                let path = inner.unwrap_or(row).to_owned();
                note.files.push(NotedFile { path, entries: Vec::new() });
            }
        }
        let json: Vec<&str> = rows.map(|(_, row)| row).collect();
        let metadata: Metadata = serde_json::from_str(&json.join("\n"))?;
        if !metadata.schema_version.starts_with("authorship/3.") {
            return Err(NoteError::Version { version: metadata.schema_version });
        }
        note.commit = metadata.base_commit_sha;
        let agent = |(key, record): (String, SessionRecord)| {
            let text = |text: String| Some(text).filter(|text| !text.is_empty() && text != UNKNOWN);
            let AgentRecord { tool, id, model } = record.agent_id;
            let (tool, conversation, model) = (text(tool), text(id), text(model));
            (key, NotedAuthor::Agent { tool, conversation, model, is_doubtful: false })
        };
        note.agents = metadata.prompts.into_iter().chain(metadata.sessions).map(agent).collect();
        let person = |(key, record): (String, PersonRecord)| {
            (key, NotedAuthor::Person { name: Some(record.author) })
        };
        note.own = metadata.takeback;
        note.people = metadata.humans.into_iter().map(person).collect();
        Ok(note)
    }

    /// Who wrote a line of the commit's version of a file. `line`: from 1.
    #[must_use]
    pub fn author_of(&self, path: &[u8], line: usize) -> Option<NotedAuthor> {
        let file = self.files.iter().find(|file| file.path.as_bytes() == path)?;
        let entries = file.entries.iter().rev();
        let (key, _) = entries
            .filter(|(_, ranges)| ranges.iter().any(|range| range.contains(&line)))
            .find(|(key, _)| self.record(key).is_some())?;
        let mut author = self.record(key)?.clone();
        if let NotedAuthor::Agent { is_doubtful, .. } = &mut author {
            *is_doubtful = self.own.as_ref().is_some_and(|own| own.doubtful.contains(key));
        }
        Some(author)
    }

    /// Whether only the version of Takeback differs.
    #[must_use]
    pub fn says_the_same(&self, other: &Self) -> bool {
        let own = |note: &Self| note.own.as_ref().map(|own| own.doubtful.clone());
        let rest = |note: &Self| Self { own: None, ..note.clone() };
        own(self) == own(other) && rest(self).to_string() == rest(other).to_string()
    }

    /// How many lines have an author.
    #[must_use]
    pub fn lines(&self) -> usize {
        let entries = self.files.iter().flat_map(|file| &file.entries);
        entries.flat_map(|(_, ranges)| ranges).map(|range| range.clone().count()).sum()
    }

    /// The record of an entry's key; what follows `::` names a step within the session.
    fn record(&self, key: &str) -> Option<&NotedAuthor> {
        let key = key.split_once("::").map_or(key, |(session, _)| session);
        self.agents.get(key).or_else(|| self.people.get(key))
    }

    /// Whether the format can name a path: not one with a quote, and only UTF-8.
    #[must_use]
    pub fn can_name(path: &[u8]) -> bool {
        std::str::from_utf8(path).is_ok_and(|path| !path.contains('"') && !path.contains('\n'))
    }
}

/// The note as text.
impl std::fmt::Display for AiNote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for NotedFile { path, entries } in &self.files {
            if path.contains([' ', '\t']) {
                writeln!(f, "\"{path}\"")?;
            } else {
                writeln!(f, "{path}")?;
            }
            for (key, ranges) in entries {
                let range = |range: &RangeInclusive<usize>| match range.start() == range.end() {
                    true => range.start().to_string(),
                    false => format!("{}-{}", range.start(), range.end()),
                };
                let ranges: Vec<String> = ranges.iter().map(range).collect();
                writeln!(f, "  {key} {}", ranges.join(","))?;
            }
        }
        let agent = |(key, author): (&String, &NotedAuthor)| match author {
            NotedAuthor::Agent { tool, conversation, model, .. } => {
                let text =
                    |text: &Option<String>| text.clone().unwrap_or_else(|| UNKNOWN.to_owned());
                let agent_id =
                    AgentRecord { tool: text(tool), id: text(conversation), model: text(model) };
                Some((key.clone(), SessionRecord { agent_id }))
            }
            NotedAuthor::Person { .. } => None,
        };
        let person = |(key, author): (&String, &NotedAuthor)| match author {
            NotedAuthor::Person { name: Some(name) } => {
                Some((key.clone(), PersonRecord { author: name.clone() }))
            }
            _ => None,
        };
        let metadata = Metadata {
            schema_version: VERSION.to_owned(),
            base_commit_sha: self.commit.clone(),
            prompts: BTreeMap::new(),
            sessions: self.agents.iter().filter_map(agent).collect(),
            humans: self.people.iter().filter_map(person).collect(),
            takeback: self.own.clone(),
        };
        let json = serde_json::to_string_pretty(&metadata).map_err(|_not_data| std::fmt::Error)?;
        write!(f, "---\n{json}\n")
    }
}

fn range(text: &str) -> Option<RangeInclusive<usize>> {
    match text.split_once('-') {
        Some((from, to)) => Some(from.parse().ok()?..=to.parse().ok()?),
        None => text.parse().ok().map(|line| line..=line),
    }
}

/// Line numbers as ranges. `lines`: ascending.
pub(crate) fn ranges(lines: &[usize]) -> Vec<RangeInclusive<usize>> {
    let runs = lines.chunk_by(|a, b| a + 1 == *b);
    runs.map(|run| run[0]..=run[run.len() - 1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_that_git_ai_makes() {
        let key = session_key("claude", "d15c4fb4-96b6-4811-aadb-66652203680c");
        assert_eq!(key, "s_aa2798be83c02f");
        assert_eq!(person_key("Hugo <hugo@example.com>"), "h_28051352df200e");
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let agent = |model: &str| NotedAuthor::Agent {
            tool: Some("claude".to_owned()),
            conversation: Some("one".to_owned()),
            model: Some(model.to_owned()),
            is_doubtful: false,
        };
        let person = NotedAuthor::Person { name: Some("Ada <ada@example.com>".to_owned()) };
        let note = AiNote {
            commit: "c0ffee".to_owned(),
            files: vec![
                NotedFile {
                    path: "a.rs".to_owned(),
                    entries: vec![
                        ("s_1::t_1".to_owned(), vec![2..=4, 9..=9]),
                        ("h_1".to_owned(), vec![3..=3]),
                        ("s_lost".to_owned(), vec![4..=4, 20..=20]),
                    ],
                },
                NotedFile { path: "with space".to_owned(), entries: Vec::new() },
            ],
            agents: [("s_1".to_owned(), agent("m"))].into(),
            people: [("h_1".to_owned(), person.clone())].into(),
            own: None,
        };
        let read = AiNote::parse(note.to_string().as_bytes()).unwrap();
        assert_eq!(read, note);
        for (line, author) in
            [(1, None), (2, Some(agent("m"))), (3, Some(person)), (4, Some(agent("m"))), (20, None)]
        {
            assert_eq!(read.author_of(b"a.rs", line), author, "line {line}");
        }
        assert_eq!(read.author_of(b"b.rs", 2), None);
    }

    #[test]
    fn doubt_is_kept() {
        let agent = NotedAuthor::Agent {
            tool: Some("claude".to_owned()),
            conversation: Some("one".to_owned()),
            model: None,
            is_doubtful: false,
        };
        let doubtful = ["s_1::t_2".to_owned()].into();
        let entry = |key: &str, line| (key.to_owned(), vec![line..=line]);
        let entries = vec![entry("s_1::t_1", 1), entry("s_1::t_2", 2)];
        let note = AiNote {
            files: vec![NotedFile { path: "a".to_owned(), entries }],
            agents: [("s_1".to_owned(), agent.clone())].into(),
            own: Some(OwnMark { version: "1.0.0".to_owned(), doubtful }),
            ..AiNote::default()
        };
        let read = AiNote::parse(note.to_string().as_bytes()).unwrap();
        assert_eq!((read.own.as_ref(), read.lines()), (note.own.as_ref(), 2));
        assert_eq!(read.author_of(b"a", 1), Some(agent), "an unknown model stays unknown");
        let is_doubtful = |line| {
            matches!(read.author_of(b"a", line), Some(NotedAuthor::Agent { is_doubtful: true, .. }))
        };
        assert_eq!((is_doubtful(1), is_doubtful(2)), (false, true));
    }

    #[test]
    fn old_keys_are_found_in_prompts_and_damaged_notes_are_errors() {
        let json = r#"{"schema_version":"authorship/3.0.0","base_commit_sha":"c","prompts":
            {"0123456789abcdef":{"agent_id":{"tool":"cursor","id":"x","model":"m"},"extra":1}}}"#;
        let note =
            AiNote::parse(format!("a\n  0123456789abcdef 1\n---\n{json}").as_bytes()).unwrap();
        assert!(
            matches!(note.author_of(b"a", 1), Some(NotedAuthor::Agent { tool: Some(tool), .. }) if tool == "cursor")
        );
        for damaged in
            ["", "a\n  key\n---\n{}", "  key 1\n---\n{}", "a\n  key x\n---\n{}", "---\n{"]
        {
            assert!(AiNote::parse(damaged.as_bytes()).is_err(), "{damaged:?}");
        }
        let newer = json.replace("3.0.0", "9.0.0");
        let error = AiNote::parse(format!("---\n{newer}").as_bytes()).unwrap_err();
        assert!(matches!(error, NoteError::Version { .. }));
    }

    #[test]
    fn lines_become_ranges() {
        assert_eq!(ranges(&[1, 2, 3, 7, 9, 10]), [1..=3, 7..=7, 9..=10]);
        assert_eq!(ranges(&[]), []);
    }
}
