//! Blame: which change each line of a file came from.
//!
//! Follows the contents of the file through the log ([`super::lines`]), together with the files that lost
//! lines in the same moments: a rename, or lines that moved. Reads the log and contents, not the disk. A
//! line that the log cannot explain is unknown; nothing is guessed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use takeback_store::{Change, Digest, Entry, Seq, Store, StoreError, WorkPath};

use super::lines::{LineOrigins, RemovedRun, split_lines};
use super::settle;
use crate::git::CommitLine;

/// The lines of a file, and the changes they came from.
#[derive(Debug, Clone)]
pub struct Blame {
    /// In order.
    pub lines: Vec<BlamedLine>,
    /// The changes that the lines name, with the authors known now.
    pub changes: BTreeMap<Seq, Change>,
    /// The versions that [`LineOrigin::Before`] and [`LineOrigin::Unknown`] name.
    pub versions: Vec<FileVersion>,
    /// Why git could not be asked about lines that only it can know. Set by
    /// [`ask_git`](super::commit_lines::ask_git).
    pub git_problem: Option<String>,
}

/// One line.
#[derive(Debug, Clone)]
pub struct BlamedLine {
    /// Its bytes, with its end.
    pub text: Vec<u8>,
    /// Where it came from, as the log has it.
    pub origin: LineOrigin,
    /// The commit it came from: for a line that the log does not explain, or that git brought into the
    /// file. Set by [`ask_git`](super::commit_lines::ask_git).
    pub commit: Option<CommitLine>,
}

/// Where a line came from. Line numbers count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineOrigin {
    /// A change wrote it.
    Change {
        /// The change.
        seq: Seq,
        /// The line's number after it.
        line: u32,
    },
    /// It is older than the log.
    Before {
        /// The first version in the log, as an index of [`Blame::versions`].
        version: u32,
        /// The line's number there.
        line: u32,
    },
    /// Contents in between are not in the store.
    Unknown {
        /// The version after the gap, as an index of [`Blame::versions`].
        version: u32,
        /// The line's number there.
        line: u32,
    },
}

/// A text that a file had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileVersion {
    /// The file.
    pub path: WorkPath,
    /// The text.
    pub digest: Digest,
    /// Where the log has it: at this change, or before it.
    pub seq: Seq,
}

/// Why there is no blame.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum BlameError {
    #[error("{} is not in the log", path.display())]
    NotRecorded { path: WorkPath },
    #[error("{} is not a file now", path.display())]
    NotAFile { path: WorkPath },
    #[error("{} is not text, or larger than {MOST} bytes", path.display())]
    NotText { path: WorkPath },
    #[error("the contents of {} were not captured", path.display())]
    NotCaptured { path: WorkPath },
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Larger files are not followed line by line.
const MOST: u64 = 8 << 20;
/// Other files whose lines are followed, at most.
const FILES: usize = 64;

/// The blame of a path's newest entry in the log.
pub fn blame(store: &dyn Store, path: &WorkPath) -> Result<Blame, BlameError> {
    let own = store.changes_of(path)?;
    let Some(last) = own.last() else { return Err(BlameError::NotRecorded { path: path.clone() }) };
    let text = match &last.after {
        Entry::File { .. } => text_of(store, &last.after)?,
        Entry::NotCaptured { .. } => return Err(BlameError::NotCaptured { path: path.clone() }),
        _ => return Err(BlameError::NotAFile { path: path.clone() }),
    };
    let Some(text) = text else { return Err(BlameError::NotText { path: path.clone() }) };
    let mut files = related_files(store, path, own)?;
    let mut moments: BTreeMap<Seq, Vec<(WorkPath, Change)>> = BTreeMap::new();
    // The changes of one moment were found together: their order in the log means nothing.
    let mut begun: HashMap<i64, Seq> = HashMap::new();
    for (path, file) in &mut files {
        for change in std::mem::take(&mut file.changes) {
            let first = *begun.entry(change.time.0).or_insert(change.seq);
            moments.entry(first).or_default().push((path.clone(), change));
        }
    }
    let mut versions = Vec::new();
    for moment in moments.into_values() {
        follow(store, &mut files, &mut versions, &moment)?;
    }
    let origins = files[path].origins.origins();
    let lines = split_lines(&text).zip(origins);
    let lines: Vec<BlamedLine> = lines
        .map(|(text, origin)| BlamedLine { text: text.to_vec(), origin: *origin, commit: None })
        .collect();
    let seqs: BTreeSet<Seq> = lines.iter().filter_map(|line| line.origin.change()).collect();
    let mut changes = Vec::new();
    for seq in seqs {
        changes.extend(store.change(seq)?);
    }
    settle(store, &mut changes)?;
    let changes = changes.into_iter().map(|change| (change.seq, change)).collect();
    Ok(Blame { lines, changes, versions, git_problem: None })
}

impl LineOrigin {
    /// The change that wrote the line, if that is known.
    #[must_use]
    pub fn change(&self) -> Option<Seq> {
        match self {
            Self::Change { seq, .. } => Some(*seq),
            Self::Before { .. } | Self::Unknown { .. } => None,
        }
    }
}

/// A file that is followed.
struct FollowedFile {
    changes: Vec<Change>,
    origins: LineOrigins<LineOrigin>,
    /// Whether its last entry could not be read: what is new then may be older.
    is_unknown: bool,
    is_begun: bool,
}

/// The path, and the files that may have given it lines: those that changed together with it.
fn related_files(
    store: &dyn Store,
    path: &WorkPath,
    own: Vec<Change>,
) -> Result<HashMap<WorkPath, FollowedFile>, StoreError> {
    let file = |changes| FollowedFile {
        changes,
        origins: LineOrigins::default(),
        is_unknown: false,
        is_begun: false,
    };
    let mut files = HashMap::new();
    let mut waiting = vec![(path.clone(), own)];
    while let Some((path, changes)) = waiting.pop() {
        for change in &changes {
            if files.len() + waiting.len() >= FILES {
                break;
            }
            for donor in donors(store, change)? {
                let is_known = files.contains_key(&donor.path)
                    || donor.path == path
                    || waiting.iter().any(|(path, _)| *path == donor.path);
                if !is_known && files.len() + waiting.len() < FILES {
                    let changes = store.changes_of(&donor.path)?;
                    waiting.push((donor.path, changes));
                }
            }
        }
        files.insert(path, file(changes));
    }
    Ok(files)
}

/// The changes found together with one that added lines, and that took lines away from a file: first
/// those of deleted files with the same contents.
fn donors(store: &dyn Store, change: &Change) -> Result<Vec<Change>, StoreError> {
    let Some(digest) = change.after.digest() else { return Ok(Vec::new()) };
    if change.before == Entry::Unknown {
        return Ok(Vec::new());
    }
    let mut donors = store.changes_beside(change)?;
    donors.retain(|other| other.path != change.path && other.before.digest().is_some());
    let rank = |other: &Change| match (other.before.digest() == Some(digest), &other.after) {
        (true, Entry::Absent) => 0,
        (_, Entry::Absent) => 1,
        _ => 2,
    };
    donors.sort_by_key(|other| (rank(other), other.seq.0.abs_diff(change.seq.0)));
    if donors.first().is_some_and(|first| rank(first) == 0) {
        donors.truncate(1);
    }
    Ok(donors)
}

/// Moves the files to the state after one moment.
fn follow(
    store: &dyn Store,
    files: &mut HashMap<WorkPath, FollowedFile>,
    versions: &mut Vec<FileVersion>,
    moment: &[(WorkPath, Change)],
) -> Result<(), StoreError> {
    let mut removed: Vec<(&WorkPath, Vec<RemovedRun<LineOrigin>>)> = Vec::new();
    let mut texts = Vec::new();
    for (path, change) in moment {
        let file = files.get_mut(path).expect("it is followed");
        file.begin(store, change, versions)?;
        let after = text_of(store, &change.after)?;
        let lost = file.origins.removed_by(after.as_deref().unwrap_or_default());
        if !lost.is_empty() {
            removed.push((path, lost));
        }
        texts.push(after);
    }
    for ((path, change), text) in moment.iter().zip(texts) {
        let others = removed.iter().filter(|(other, _)| *other != path);
        let runs: Vec<RemovedRun<LineOrigin>> =
            others.flat_map(|(_, runs)| runs.iter().cloned()).collect();
        files.get_mut(path).expect("it is followed").apply(change, text, &runs, versions);
    }
    Ok(())
}

impl FollowedFile {
    /// The state before a change, where the log did not follow it: the first one, or after a gap.
    fn begin(
        &mut self,
        store: &dyn Store,
        change: &Change,
        versions: &mut Vec<FileVersion>,
    ) -> Result<(), StoreError> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        if change.before.digest().is_some_and(|digest| self.origins.resume(&digest)) {
            return Ok(());
        }
        match (&change.before, text_of(store, &change.before)?) {
            (Entry::File { digest, .. }, Some(text)) => {
                let cause = if is_first { Cause::Before } else { Cause::Unknown };
                self.add((*digest, &text), (cause, change), &[], versions);
            }
            (Entry::NotCaptured { .. }, _) => self.is_unknown = true,
            _ if is_first => {}
            _ => self.origins.remove(),
        }
        Ok(())
    }

    fn apply(
        &mut self,
        change: &Change,
        text: Option<Vec<u8>>,
        removed: &[RemovedRun<LineOrigin>],
        versions: &mut Vec<FileVersion>,
    ) {
        let cause = match &change.before {
            _ if self.is_unknown => Cause::Unknown,
            Entry::Unknown => Cause::Before,
            _ => Cause::Change,
        };
        match (change.after.digest(), text) {
            (Some(digest), Some(text)) => {
                self.is_unknown = false;
                self.add((digest, &text), (cause, change), removed, versions);
            }
            (Some(_), None) => self.is_unknown = true,
            (None, _) => {
                self.is_unknown =
                    matches!(change.after, Entry::NotCaptured { .. } | Entry::Unknown);
                if !self.is_unknown {
                    self.origins.remove();
                }
            }
        }
    }

    /// Adds a version whose new lines have this cause.
    fn add(
        &mut self,
        (digest, text): (Digest, &[u8]),
        (cause, change): (Cause, &Change),
        removed: &[RemovedRun<LineOrigin>],
        versions: &mut Vec<FileVersion>,
    ) {
        let seq = change.seq;
        let version = u32::try_from(versions.len()).expect("the log has fewer changes");
        let origin = |line| match cause {
            Cause::Change => LineOrigin::Change { seq, line },
            Cause::Before => LineOrigin::Before { version, line },
            Cause::Unknown => LineOrigin::Unknown { version, line },
        };
        self.origins.add(digest, text, origin, removed);
        if cause != Cause::Change {
            versions.push(FileVersion { path: change.path.clone(), digest, seq });
        }
    }
}

/// Why a line is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Change,
    Before,
    Unknown,
}

/// The text of a file; `None`: it is not text, too large, or lost.
fn text_of(store: &dyn Store, entry: &Entry) -> Result<Option<Vec<u8>>, StoreError> {
    let Entry::File { digest, size, .. } = entry else { return Ok(None) };
    if *size > MOST {
        return Ok(None);
    }
    match store.contents(digest) {
        Ok(text) => Ok(Some(text).filter(|text| !text.iter().take(8000).any(|byte| *byte == 0))),
        Err(error) if error.is_lost_contents() => Ok(None),
        Err(error) => Err(error),
    }
}
