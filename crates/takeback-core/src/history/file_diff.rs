//! What differs between two entries of a path, in lines.
//!
//! Reads contents from the store, and nothing else. Contents that are lost are a result, not an error.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::time::{Duration, Instant};

use takeback_store::{Change, Digest, Entry, PackedBlob, Seq, Store, StoreError, WorkPath};

use super::PathHistory;
use super::tally::spans_of;
use crate::diff::{Hunk, diff};

/// One path, before and after.
#[derive(Debug, Clone)]
pub struct FileDiff {
    /// The path.
    pub path: WorkPath,
    /// Its entry before; of a renamed file, that of its old path.
    pub before: Entry,
    /// Its entry after.
    pub after: Entry,
    /// The path that the file was renamed from.
    pub renamed_from: Option<WorkPath>,
}

/// Added and removed lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lines {
    /// Lines added.
    pub insertions: usize,
    /// Lines removed.
    pub deletions: usize,
}

impl std::ops::AddAssign for Lines {
    fn add_assign(&mut self, other: Self) {
        self.insertions += other.insertions;
        self.deletions += other.deletions;
    }
}

/// What differs between the log at `from` and at `to`, given all changes after `from`. A path that was only
/// seen for the first time did not change.
#[must_use]
pub fn between(histories: &[PathHistory], to: Option<Seq>) -> Vec<FileDiff> {
    let all = histories.iter().flat_map(|history| &history.changes);
    let mut changes: Vec<&Change> =
        all.filter(|change| to.is_none_or(|to| change.seq <= to)).collect();
    changes.sort_by_key(|change| change.seq);
    let diffs = spans_of(&changes, |_| ()).into_iter().map(|((), diff)| diff);
    diffs.filter(|diff| diff.differs() && diff.before != Entry::Unknown).collect()
}

/// Where contents are read.
#[derive(Clone, Copy)]
pub struct Contents<'a> {
    /// The store.
    pub store: &'a dyn Store,
    /// Contents made by a plan and not yet in the store.
    pub made: &'a [PackedBlob],
}

impl<'a> Contents<'a> {
    /// Only what is in the store.
    pub fn of(store: &'a dyn Store) -> Self {
        Self { store, made: &[] }
    }

    pub(crate) fn read(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let made = self.made.iter().find(|blob| blob.digest == *digest);
        match made.and_then(PackedBlob::unpack) {
            Some(contents) => Ok(contents),
            None => self.store.contents(digest),
        }
    }
}

/// The message for contents that are damaged in the store.
pub const DAMAGED: &str = "damaged in the store";

/// Contents above this are not compared line by line.
const MOST: u64 = 4 << 20;
/// Context lines around a change.
const CONTEXT: usize = 3;

/// Contents prepared for comparison.
pub enum Text {
    /// Text. Nothing is there: no lines.
    Lines(Vec<u8>),
    /// Not text, or not captured.
    Binary,
    /// Over 4 MiB.
    TooLarge,
    /// Damaged in the store.
    Damaged,
}

impl Text {
    /// What an entry has. A link's target counts as text.
    pub fn of(entry: &Entry, contents: Contents<'_>) -> Result<Self, StoreError> {
        let bytes = match entry {
            Entry::File { size, .. } if *size > MOST => return Ok(Self::TooLarge),
            Entry::File { digest, .. } => match contents.read(digest) {
                Err(error) if error.is_lost_contents() => return Ok(Self::Damaged),
                read => read?,
            },
            Entry::Symlink { target } => target.clone(),
            Entry::NotCaptured { .. } => return Ok(Self::Binary),
            Entry::Absent | Entry::Dir { .. } | Entry::Unknown => Vec::new(),
        };
        let binary = bytes.iter().take(8000).any(|byte| *byte == 0);
        Ok(if binary { Self::Binary } else { Self::Lines(bytes) })
    }
}

/// Two texts as lines, each with its line end, and the edits between them.
pub struct LineDiff<'a> {
    /// The lines before.
    pub old: Vec<&'a [u8]>,
    /// The lines after.
    pub new: Vec<&'a [u8]>,
    hunks: Vec<Hunk>,
}

/// Neighbouring hunks, with the unchanged lines around them.
#[derive(Debug, Clone)]
pub struct Passage {
    /// Its lines before.
    pub old: Range<usize>,
    /// Its lines after.
    pub new: Range<usize>,
    /// The same, divided into what differs and what does not.
    pub parts: Vec<Part>,
}

/// Lines of a passage.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its lines before.
    pub old: Range<usize>,
    /// Its lines after.
    pub new: Range<usize>,
    /// Whether they differ.
    pub differs: bool,
}

/// As in a patch: `@@ -3,7 +3,8 @@`.
impl fmt::Display for Passage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let range = |lines: &Range<usize>| match lines.len() {
            0 => format!("{},0", lines.start),
            1 => format!("{}", lines.start + 1),
            n => format!("{},{n}", lines.start + 1),
        };
        write!(f, "@@ -{} +{} @@", range(&self.old), range(&self.new))
    }
}

impl<'a> LineDiff<'a> {
    /// Compares two texts.
    #[must_use]
    pub fn new(old: &'a [u8], new: &'a [u8]) -> Self {
        let lines = |text: &'a [u8]| text.split_inclusive(|byte| *byte == b'\n').collect();
        let (old, new): (Vec<&[u8]>, Vec<&[u8]>) = (lines(old), lines(new));
        let hunks = diff(&old, &new);
        Self { old, new, hunks }
    }

    /// How many lines were added and removed.
    #[must_use]
    pub fn count(&self) -> Lines {
        let mut lines = Lines::default();
        for hunk in &self.hunks {
            lines.insertions += hunk.after.len();
            lines.deletions += hunk.before.len();
        }
        lines
    }

    /// Whether there is any edit.
    #[must_use]
    pub fn differ(&self) -> bool {
        !self.hunks.is_empty()
    }

    /// The edits with the lines around them.
    pub fn passages(&self) -> impl Iterator<Item = Passage> {
        let near = |a: &Hunk, b: &Hunk| b.before.start - a.before.end <= 2 * CONTEXT;
        self.hunks.chunk_by(near).map(|hunks| self.passage(hunks))
    }

    fn passage(&self, hunks: &[Hunk]) -> Passage {
        let mut parts = Vec::new();
        let (first, last) = (&hunks[0], &hunks[hunks.len() - 1]);
        let above = first.before.start.min(CONTEXT);
        let below = (self.old.len() - last.before.end).min(CONTEXT);
        let old = first.before.start - above..last.before.end + below;
        let new = first.after.start - above..last.after.end + below;
        let mut at = (old.start, new.start);
        let same = |parts: &mut Vec<Part>, at: (usize, usize), end: (usize, usize)| {
            if at != end {
                parts.push(Part { old: at.0..end.0, new: at.1..end.1, differs: false });
            }
        };
        for Hunk { before, after } in hunks {
            same(&mut parts, at, (before.start, after.start));
            parts.push(Part { old: before.clone(), new: after.clone(), differs: true });
            at = (before.end, after.end);
        }
        same(&mut parts, at, (old.end, new.end));
        Passage { old, new, parts }
    }
}

/// A cache of line counts. Does not count what would take too long.
#[derive(Default)]
pub struct LineCounts {
    known: HashMap<(Entry, Entry), Lines>,
}

/// Cleared when it has this many entries.
const MOST_KNOWN: usize = 20_000;

impl LineCounts {
    /// The sum of all files; `None` if counting would take longer than `patience`. Binary or damaged files
    /// count as zero.
    pub fn total(
        &mut self,
        diffs: &[FileDiff],
        store: &dyn Store,
        patience: Duration,
    ) -> Option<Lines> {
        let until = Instant::now() + patience;
        let mut total = Lines::default();
        for diff in diffs.iter().filter(|diff| !diff.is_folder()) {
            let key = (diff.before.clone(), diff.after.clone());
            let lines = match self.known.get(&key) {
                Some(lines) => *lines,
                None if Instant::now() >= until => return None,
                None => {
                    if self.known.len() >= MOST_KNOWN {
                        self.known.clear();
                    }
                    let lines = diff.lines(store).ok().flatten().unwrap_or_default();
                    self.known.insert(key, lines);
                    lines
                }
            };
            total.insertions += lines.insertions;
            total.deletions += lines.deletions;
        }
        Some(total)
    }
}

/// The result of comparing two entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Both are text.
    Lines(Lines),
    /// One of them is not.
    NotText,
    /// The contents of one of them are damaged in the store.
    Damaged,
}

impl Comparison {
    /// `None`: they could not be counted.
    #[must_use]
    pub fn lines(self) -> Option<Lines> {
        match self {
            Self::Lines(lines) => Some(lines),
            Self::NotText | Self::Damaged => None,
        }
    }
}

impl FileDiff {
    /// Two entries of one path.
    #[must_use]
    pub fn new(path: WorkPath, before: Entry, after: Entry) -> Self {
        Self { path, before, after, renamed_from: None }
    }

    /// What one change did.
    #[must_use]
    pub fn of_change(change: &Change) -> Self {
        Self::new(change.path.clone(), change.before.clone(), change.after.clone())
    }

    /// The way back.
    #[must_use]
    pub fn reversed(self) -> Self {
        let Self { path, before: after, after: before, renamed_from } = self;
        match renamed_from {
            Some(old) => Self { path: old, before, after, renamed_from: Some(path) },
            None => Self { path, before, after, renamed_from },
        }
    }

    /// Whether anything differs: contents, mode, kind or path.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.before != self.after || self.renamed_from.is_some()
    }

    /// Whether the contents did not change.
    #[must_use]
    pub fn has_same_bytes(&self) -> bool {
        self.before.digest().is_some() && self.before.digest() == self.after.digest()
    }

    /// Compares the two entries line by line.
    pub fn compare(&self, store: &dyn Store) -> Result<Comparison, StoreError> {
        self.compare_in(Contents::of(store))
    }

    /// Like [`compare`](Self::compare), with contents that may not be in the store.
    pub fn compare_in(&self, contents: Contents<'_>) -> Result<Comparison, StoreError> {
        Ok(match (Text::of(&self.before, contents)?, Text::of(&self.after, contents)?) {
            (Text::Lines(before), Text::Lines(after)) => {
                Comparison::Lines(LineDiff::new(&before, &after).count())
            }
            (Text::Damaged, _) | (_, Text::Damaged) => Comparison::Damaged,
            _ => Comparison::NotText,
        })
    }

    /// The lines added and removed; `None`: they could not be counted.
    pub fn lines(&self, store: &dyn Store) -> Result<Option<Lines>, StoreError> {
        Ok(self.compare(store)?.lines())
    }

    /// Whether only a folder was created, deleted, or changed its mode.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        let no_file = |entry: &Entry| matches!(entry, Entry::Dir { .. } | Entry::Absent);
        no_file(&self.before) && no_file(&self.after)
    }

    /// `new`, `deleted`, `renamed`, `mode 644 → 755`: what line counts do not show.
    #[must_use]
    pub fn what(&self) -> String {
        if self.renamed_from.is_none() {
            return self.what_in_place();
        }
        match (self.before.mode(), self.after.mode()) {
            (Some(old), Some(new)) if old != new => format!("renamed, mode {old:o} → {new:o}"),
            _ => match (&self.before, &self.after) {
                (Entry::File { .. }, Entry::File { .. }) => "renamed".to_owned(),
                _ => format!("renamed, {}", self.what_in_place()),
            },
        }
    }

    fn what_in_place(&self) -> String {
        match (&self.before, &self.after) {
            (before, after) if before == after => "as before".to_owned(),
            (Entry::Absent, Entry::Dir { .. }) => "new folder".to_owned(),
            (Entry::Absent, Entry::Symlink { .. }) => "new link".to_owned(),
            (Entry::Absent, _) => "new".to_owned(),
            (Entry::Dir { .. }, Entry::Absent) => "folder deleted".to_owned(),
            (_, Entry::Absent) => "deleted".to_owned(),
            (Entry::NotCaptured { reason }, _) | (_, Entry::NotCaptured { reason }) => {
                format!("not captured: {}", reason.describe())
            }
            (before, after) => match (before.mode(), after.mode()) {
                (Some(old), Some(new)) if old != new => format!("mode {old:o} → {new:o}"),
                (Some(_), Some(_)) if before.is_dir() == after.is_dir() => "changed".to_owned(),
                _ if matches!((before, after), (Entry::Symlink { .. }, Entry::Symlink { .. })) => {
                    "new target".to_owned()
                }
                _ => "type changed".to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use takeback_store::{Blobs as _, MemoryStore};

    use super::*;

    #[test]
    fn what_was_counted_is_told_again_and_what_takes_too_long_is_not() {
        let mut store = MemoryStore::default();
        let blob = PackedBlob::new(b"one\ntwo\n".to_vec());
        let after = Entry::File { digest: blob.digest, size: 8, mode: 0o644 };
        store.put(blob).expect("it is kept");
        let path = WorkPath::new("a").expect("a path");
        let diffs = [FileDiff::new(path, Entry::Absent, after)];
        let mut counts = LineCounts::default();
        assert_eq!(counts.total(&diffs, &store, Duration::ZERO), None);
        let two = Some(Lines { insertions: 2, deletions: 0 });
        assert_eq!(counts.total(&diffs, &store, Duration::from_secs(60)), two);
        assert_eq!(counts.total(&diffs, &store, Duration::ZERO), two);
    }
}
