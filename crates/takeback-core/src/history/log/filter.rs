//! Which rows of the log pass: by path, author, time, text and tool.

use std::collections::{HashMap, HashSet};

use memchr::memmem;
use takeback_store::{
    Author, Change, Entry, Point, PointKind, SessionId, Store, StoreError, Timestamp, WorkPath,
};

use super::super::by_path;
use super::super::file_diff::{Contents, FileDiff, Text, between};
use crate::rewind::PathFilter;

/// What a row must have. A row passes if every part of the filter that is set agrees.
#[derive(Debug, Default)]
pub struct LogFilter {
    /// A change of one of these paths; the row shows only those changes. Without any: every path.
    pub paths: Option<PathFilter>,
    /// If `paths` is one path or folder: its name. Its changes are found without reading all others.
    pub below: Option<WorkPath>,
    /// A change by this author.
    pub by: Option<AuthorFilter>,
    /// Made at this time or later.
    pub since: Option<Timestamp>,
    /// Made at this time or earlier.
    pub until: Option<Timestamp>,
    /// This text in the prompt, the label or the description, whatever the case.
    pub grep: Option<String>,
    /// A file in which this text appeared or disappeared.
    pub text: Option<Vec<u8>>,
    /// A change by a call of this tool, whatever the case.
    pub tool: Option<String>,
}

/// An author to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthorFilter {
    /// You.
    You,
    /// Any of these sessions; empty: any agent.
    Sessions(Vec<SessionId>),
}

impl LogFilter {
    /// Whether nothing is filtered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        let Self { paths, below: _, by, since, until, grep, text, tool } = self;
        paths.is_none()
            && by.is_none()
            && since.is_none()
            && until.is_none()
            && grep.is_none()
            && text.is_none()
            && tool.is_none()
    }

    /// Whether it asks about changes that only points have.
    pub(super) fn is_about_authors(&self) -> bool {
        self.by.is_some() || self.tool.is_some() || self.grep.is_some()
    }

    pub(super) fn includes_time(&self, time: Timestamp) -> bool {
        self.since.is_none_or(|since| time >= since) && self.until.is_none_or(|until| time <= until)
    }

    pub(super) fn includes_changes(
        &self,
        changes: &[Change],
        store: &dyn Store,
    ) -> Result<bool, StoreError> {
        if self.paths.is_some() && changes.is_empty() {
            return Ok(false);
        }
        if let Some(by) = &self.by
            && !changes.iter().any(|change| by.includes(change))
        {
            return Ok(false);
        }
        if let Some(tool) = &self.tool {
            let is_its = |change: &Change| matches!(&change.author, Author::Agent { tool: by, .. } if by.eq_ignore_ascii_case(tool));
            if !changes.iter().any(is_its) {
                return Ok(false);
            }
        }
        match &self.text {
            Some(text) => has_text_changed(changes, text, store),
            None => Ok(true),
        }
    }
}

impl AuthorFilter {
    /// Whether this author made the change.
    #[must_use]
    pub fn includes(&self, change: &Change) -> bool {
        if change.before == Entry::Unknown {
            return false;
        }
        match (self, &change.author) {
            (Self::You, Author::Human) => true,
            (Self::Sessions(sessions), Author::Agent { session, .. }) => {
                let is_one = |one: &SessionId| session == one || session.part_of(one).is_some();
                sessions.is_empty() || sessions.iter().any(is_one)
            }
            _ => false,
        }
    }
}

/// Prompts in full, by session and time; points have only their beginning.
#[derive(Default)]
pub(super) struct Prompts(Option<HashMap<(SessionId, Timestamp), String>>);

impl Prompts {
    pub(super) fn mention(
        &mut self,
        store: &dyn Store,
        point: &Point,
        text: &str,
    ) -> Result<bool, StoreError> {
        let text = text.to_lowercase();
        let has = |other: &str| other.to_lowercase().contains(&text);
        if has(&point.description) || point.label.as_deref().is_some_and(has) {
            return Ok(true);
        }
        let (Some(session), PointKind::Prompt) = (&point.session, point.kind) else {
            return Ok(false);
        };
        if self.0.is_none() {
            let turns = store.turns()?.into_iter();
            self.0 =
                Some(turns.map(|turn| ((turn.session, turn.opened_at), turn.prompt)).collect());
        }
        let prompt = self.0.as_ref().and_then(|all| all.get(&(session.clone(), point.created_at)));
        Ok(prompt.is_some_and(|prompt| has(prompt)))
    }
}

/// Whether some file has the text more or less often after the changes than before. In a file that was only
/// renamed it did not change.
fn has_text_changed(
    changes: &[Change],
    text: &[u8],
    store: &dyn Store,
) -> Result<bool, StoreError> {
    let finder = memmem::Finder::new(text);
    let count = |entry: &Entry| -> Result<Option<usize>, StoreError> {
        match Text::of(entry, Contents::of(store))? {
            Text::Lines(bytes) => Ok(Some(finder.find_iter(&bytes).count())),
            Text::Binary | Text::TooLarge | Text::Damaged => Ok(None),
        }
    };
    let diffs = between(&by_path(changes.to_vec()), None);
    let digests = |of: fn(&FileDiff) -> (&Entry, &Entry)| -> HashSet<_> {
        let only = diffs.iter().map(of).filter(|(_, other)| **other == Entry::Absent);
        only.filter_map(|(entry, _)| entry.digest()).collect()
    };
    let (gone, new) =
        (digests(|diff| (&diff.before, &diff.after)), digests(|diff| (&diff.after, &diff.before)));
    let is_renamed = |diff: &FileDiff| match (&diff.before, &diff.after) {
        (before, Entry::Absent) => before.digest().is_some_and(|digest| new.contains(&digest)),
        (Entry::Absent, after) => after.digest().is_some_and(|digest| gone.contains(&digest)),
        _ => false,
    };
    for diff in diffs.iter().filter(|diff| !is_renamed(diff)) {
        if let (Some(before), Some(after)) = (count(&diff.before)?, count(&diff.after)?)
            && before != after
        {
            return Ok(true);
        }
    }
    Ok(false)
}
