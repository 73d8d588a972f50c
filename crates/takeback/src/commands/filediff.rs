//! What differs between two entries, in lines.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline};
use takeback_core::history::PathHistory;
use takeback_store::{Digest, Entry, PackedBlob, Seq, Store, StoreError, WorkPath};

use crate::screen::{BAD, CARE, GOOD, HINT};
use crate::table::Cell;

/// One path, before and after.
#[derive(Debug, Clone)]
pub(crate) struct FileDiff {
    pub(crate) path: WorkPath,
    pub(crate) before: Entry,
    pub(crate) after: Entry,
}

/// Lines that came and went; `None`: not text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Lines {
    pub(crate) insertions: usize,
    pub(crate) deletions: usize,
}

/// What differs between the log at `from` and at `to`, given all changes after `from`. A path that
/// only came into sight did not change.
pub(crate) fn between(histories: &[PathHistory], to: Option<Seq>) -> Vec<FileDiff> {
    histories
        .iter()
        .map(|history| FileDiff {
            path: history.path.clone(),
            before: history.at_start().clone(),
            after: to.map_or_else(|| history.at_end().clone(), |to| history.at(to).clone()),
        })
        .filter(|diff| diff.before != diff.after && diff.before != Entry::Unknown)
        .collect()
}

/// Where contents are read.
#[derive(Clone, Copy)]
pub(crate) struct Contents<'a> {
    pub(crate) store: &'a dyn Store,
    /// What a plan has made, and nobody has kept yet.
    pub(crate) made: &'a [PackedBlob],
}

impl<'a> Contents<'a> {
    pub(crate) fn of(store: &'a dyn Store) -> Self {
        Self { store, made: &[] }
    }

    fn read(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let made = self.made.iter().find(|blob| blob.digest == *digest);
        match made.and_then(PackedBlob::unpack) {
            Some(contents) => Ok(contents),
            None => self.store.contents(digest),
        }
    }
}

/// What is said of contents that the store has lost.
pub(crate) const DAMAGED: &str = "damaged in the store";

/// Contents above this are not compared line by line.
const MOST: u64 = 4 << 20;
/// After this long a diff need not be the shortest any more.
const PATIENCE: Duration = Duration::from_millis(500);

/// Contents as far as they can be compared.
pub(crate) enum Text {
    Lines(Vec<u8>),
    Binary,
    /// Over [`MOST`].
    TooLarge,
    /// The store has lost them.
    Damaged,
}

impl Text {
    pub(crate) fn of(entry: &Entry, contents: Contents<'_>) -> Result<Self, StoreError> {
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

/// Two texts in lines (each with its line end), and how the one becomes the other.
pub(crate) struct LineDiff<'a> {
    pub(crate) old: Vec<&'a [u8]>,
    pub(crate) new: Vec<&'a [u8]>,
    pub(crate) ops: Vec<DiffOp>,
}

impl<'a> LineDiff<'a> {
    pub(crate) fn new(old: &'a [u8], new: &'a [u8]) -> Self {
        let lines = |text: &'a [u8]| text.split_inclusive(|byte| *byte == b'\n').collect();
        let (old, new): (Vec<&[u8]>, Vec<&[u8]>) = (lines(old), lines(new));
        let until = Instant::now() + PATIENCE;
        let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(until));
        Self { old, new, ops }
    }

    pub(crate) fn count(&self) -> Lines {
        let mut lines = Lines::default();
        for op in self.ops.iter().filter(|op| op.tag() != DiffTag::Equal) {
            lines.insertions += op.new_range().len();
            lines.deletions += op.old_range().len();
        }
        lines
    }
}

/// What was counted before is not counted again, and what takes too long is not counted now.
#[derive(Default)]
pub(crate) struct LineCounts {
    known: HashMap<(Entry, Entry), Lines>,
}

/// Before it is all forgotten.
const MOST_KNOWN: usize = 20_000;

impl LineCounts {
    /// Of all of them together; `None` if that would take longer than `patience`. What is not text, or
    /// damaged, has no lines.
    pub(crate) fn total(
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

/// What came of comparing two entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compared {
    Lines(Lines),
    NotText,
    /// The store has lost the contents of one of them.
    Damaged,
}

impl Compared {
    pub(crate) fn lines(self) -> Option<Lines> {
        match self {
            Self::Lines(lines) => Some(lines),
            Self::NotText | Self::Damaged => None,
        }
    }
}

impl FileDiff {
    pub(crate) fn compare(&self, store: &dyn Store) -> Result<Compared, StoreError> {
        let contents = Contents::of(store);
        Ok(match (Text::of(&self.before, contents)?, Text::of(&self.after, contents)?) {
            (Text::Lines(before), Text::Lines(after)) => {
                Compared::Lines(LineDiff::new(&before, &after).count())
            }
            (Text::Damaged, _) | (_, Text::Damaged) => Compared::Damaged,
            _ => Compared::NotText,
        })
    }

    pub(crate) fn lines(&self, store: &dyn Store) -> Result<Option<Lines>, StoreError> {
        Ok(self.compare(store)?.lines())
    }

    /// Whether it is only a folder that came, went or changed its mode.
    pub(crate) fn is_folder(&self) -> bool {
        let no_file = |entry: &Entry| matches!(entry, Entry::Dir { .. } | Entry::Absent);
        no_file(&self.before) && no_file(&self.after)
    }

    /// `+3 -1`, or what else there is to say.
    pub(crate) fn counts(&self, store: &dyn Store) -> Result<Cell, StoreError> {
        if self.is_folder() {
            return Ok(Cell::default());
        }
        Ok(match self.compare(store)? {
            Compared::Lines(Lines { insertions: 0, deletions: 0 }) => Cell::default(),
            Compared::Lines(lines) => {
                let mut cell = Cell::new(GOOD, format!("+{}", lines.insertions));
                cell.push(BAD, format!(" -{}", lines.deletions));
                cell
            }
            Compared::NotText => Cell::new(HINT, "not text"),
            Compared::Damaged => Cell::new(CARE, DAMAGED),
        })
    }

    /// `new`, `deleted`, `mode 644 → 755`: what lines do not show.
    pub(crate) fn what(&self) -> String {
        match (&self.before, &self.after) {
            (before, after) if before == after => "as before".to_owned(),
            (Entry::Absent, Entry::Dir { .. }) => "new folder".to_owned(),
            (Entry::Absent, Entry::Symlink { .. }) => "new link".to_owned(),
            (Entry::Absent, _) => "new".to_owned(),
            (Entry::Dir { .. }, Entry::Absent) => "folder deleted".to_owned(),
            (_, Entry::Absent) => "deleted".to_owned(),
            (Entry::NotCaptured { lack }, _) | (_, Entry::NotCaptured { lack }) => {
                format!("not kept: {}", lack.reason())
            }
            (before, after) => match (before.mode(), after.mode()) {
                (Some(old), Some(new)) if old != new => format!("mode {old:o} → {new:o}"),
                (Some(_), Some(_)) if before.is_dir() == after.is_dir() => "changed".to_owned(),
                _ if matches!((before, after), (Entry::Symlink { .. }, Entry::Symlink { .. })) => {
                    "points elsewhere".to_owned()
                }
                _ => "another kind of file".to_owned(),
            },
        }
    }
}

pub(crate) enum PrintError {
    Store(StoreError),
    Io(io::Error),
}

impl From<StoreError> for PrintError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for PrintError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<PrintError> for crate::error::CommandError {
    fn from(error: PrintError) -> Self {
        match error {
            PrintError::Store(error) => error.into(),
            PrintError::Io(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use takeback_store::MemoryStore;

    use super::*;

    #[test]
    fn what_was_counted_is_told_again_and_what_takes_too_long_is_not() {
        let mut store = MemoryStore::default();
        let blob = PackedBlob::new(b"one\ntwo\n".to_vec());
        let after = Entry::File { digest: blob.digest, size: 8, mode: 0o644 };
        store.put(blob).expect("it is kept");
        let path = WorkPath::new("a").expect("a path");
        let diffs = [FileDiff { path, before: Entry::Absent, after }];
        let mut counts = LineCounts::default();
        assert_eq!(counts.total(&diffs, &store, Duration::ZERO), None);
        let two = Some(Lines { insertions: 2, deletions: 0 });
        assert_eq!(counts.total(&diffs, &store, Duration::from_secs(60)), two);
        assert_eq!(counts.total(&diffs, &store, Duration::ZERO), two);
    }
}
