//! Blame: which change each line of a file came from.
//!
//! Follows the contents of the file through the log ([`super::lines`]), and the files that lost some of its
//! lines in the moments in which it got them: a rename, or lines that moved. Reads the log and contents, not
//! the disk. A line that the log cannot explain is unknown; nothing is guessed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use takeback_store::{Change, Digest, Entry, Seq, Store, StoreError, WorkPath};

use super::lines::{LineOrigins, OpenVersion, RemovedRun, split_lines};
use super::settle;
use crate::diff::diff;
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
/// Files that are followed, at most.
const FILES: usize = 64;
/// Files that a change may have taken lines from, at most.
const DONORS: usize = 64;
/// Texts that are searched for lines that moved, at most.
const SEARCHED: usize = 4_000;

/// The blame of a path's newest entry in the log.
pub fn blame(store: &dyn Store, path: &WorkPath) -> Result<Blame, BlameError> {
    blame_from(store, path, store.changes_of(path)?, Seq(0))
}

/// The same from a position on: lines that are older count as older than the log. `own`: the changes of the
/// path since then, oldest first.
pub(super) fn blame_from(
    store: &dyn Store,
    path: &WorkPath,
    own: Vec<Change>,
    from: Seq,
) -> Result<Blame, BlameError> {
    let Some(last) = own.last() else { return Err(BlameError::NotRecorded { path: path.clone() }) };
    let text = match &last.after {
        Entry::File { .. } => bytes_of(store, &last.after)?.filter(|bytes| !is_binary(bytes)),
        Entry::NotCaptured { .. } => return Err(BlameError::NotCaptured { path: path.clone() }),
        _ => return Err(BlameError::NotAFile { path: path.clone() }),
    };
    let Some(text) = text else { return Err(BlameError::NotText { path: path.clone() }) };
    let traced = TracedPath::follow(store, path, own, from)?;
    let lines = split_lines(&text).zip(traced.files[path].origins.origins());
    let lines: Vec<BlamedLine> =
        lines.map(|(text, origin)| BlamedLine::new(text, *origin)).collect();
    Ok(traced.blame(lines)?)
}

/// A path that was followed through the log.
pub(crate) struct TracedPath<'s> {
    store: &'s dyn Store,
    path: WorkPath,
    files: HashMap<WorkPath, FollowedFile>,
    versions: Vec<FileVersion>,
}

impl<'s> TracedPath<'s> {
    /// Follows a path up to now.
    pub(crate) fn new(store: &'s dyn Store, path: &WorkPath) -> Result<Self, BlameError> {
        let own = store.changes_of(path)?;
        if own.is_empty() {
            return Err(BlameError::NotRecorded { path: path.clone() });
        }
        Ok(Self::follow(store, path, own, Seq(0))?)
    }

    fn follow(
        store: &'s dyn Store,
        path: &WorkPath,
        own: Vec<Change>,
        from: Seq,
    ) -> Result<Self, StoreError> {
        let files = HashMap::from([(path.clone(), FollowedFile::new(own))]);
        let mut tracer = LineTracer { store, from, files, versions: Vec::new(), searched: 0 };
        tracer.follow(path, None)?;
        let LineTracer { files, versions, .. } = tracer;
        Ok(Self { store, path: path.clone(), files, versions })
    }

    /// The blame of a text that the path may have had at any time, as a commit has it for example. The
    /// lines that no version in the log has are left out; each other line comes with its number in the
    /// text, from 0.
    pub(crate) fn blame_text(&mut self, text: &[u8]) -> Result<(Blame, Vec<usize>), StoreError> {
        let file = self.files.get_mut(&self.path).expect("it was followed");
        let origins = file.origins.origins_of(&Digest::of(text), text);
        let known = split_lines(text).zip(origins).enumerate();
        let known = known.filter_map(|(at, (text, origin))| Some((at, text, origin?)));
        let (numbers, lines) =
            known.map(|(at, text, origin)| (at, BlamedLine::new(text, origin))).unzip();
        Ok((self.blame(lines)?, numbers))
    }

    fn blame(&self, lines: Vec<BlamedLine>) -> Result<Blame, StoreError> {
        let seqs: BTreeSet<Seq> = lines.iter().filter_map(|line| line.origin.change()).collect();
        let all = self.files.values().flat_map(|file| &file.changes);
        let mut changes: Vec<Change> =
            all.filter(|change| seqs.contains(&change.seq)).cloned().collect();
        settle(self.store, &mut changes)?;
        let changes = changes.into_iter().map(|change| (change.seq, change)).collect();
        Ok(Blame { lines, changes, versions: self.versions.clone(), git_problem: None })
    }
}

impl BlamedLine {
    fn new(text: &[u8], origin: LineOrigin) -> Self {
        Self { text: text.to_vec(), origin, commit: None }
    }
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
    /// How many of its changes it has passed.
    passed: usize,
    /// It is being followed, and asks others about lines that moved.
    is_asking: bool,
    origins: LineOrigins<LineOrigin>,
    /// Whether its last entry could not be read: what is new then may be older.
    is_unknown: bool,
    is_begun: bool,
}

impl FollowedFile {
    fn new(changes: Vec<Change>) -> Self {
        Self {
            changes,
            passed: 0,
            is_asking: false,
            origins: LineOrigins::default(),
            is_unknown: false,
            is_begun: false,
        }
    }

    /// The next change; `until`: only if it was found before that one.
    fn next(&self, until: Option<&Change>) -> Option<&Change> {
        let is_before = |next: &&Change| {
            // The changes of one moment were found together: their order in the log means nothing.
            until.is_none_or(|until| next.seq < until.seq && next.time != until.time)
        };
        self.changes.get(self.passed).filter(is_before)
    }
}

/// Follows a file, and others as far as they may have given it lines.
struct LineTracer<'a> {
    store: &'a dyn Store,
    /// Older changes are not followed.
    from: Seq,
    files: HashMap<WorkPath, FollowedFile>,
    versions: Vec<FileVersion>,
    searched: usize,
}

impl LineTracer<'_> {
    fn file(&mut self, path: &WorkPath) -> &mut FollowedFile {
        self.files.get_mut(path).expect("it is followed")
    }

    /// Moves a file to its state before a change, or to the newest.
    fn follow(&mut self, path: &WorkPath, until: Option<&Change>) -> Result<(), StoreError> {
        if self.file(path).is_asking {
            return Ok(());
        }
        while let Some(change) = self.file(path).next(until).cloned() {
            self.pass(path, &change)?;
            self.file(path).passed += 1;
        }
        Ok(())
    }

    fn pass(&mut self, path: &WorkPath, change: &Change) -> Result<(), StoreError> {
        self.begin(path, change)?;
        let text = text_of(self.store, &change.after)?;
        let file = self.file(path);
        let cause = match &change.before {
            _ if file.is_unknown => Cause::Unknown,
            Entry::Unknown => Cause::Before,
            _ => Cause::Change,
        };
        match (change.after.digest(), text) {
            (Some(digest), Some(text)) => {
                file.is_unknown = false;
                self.add(path, (digest, &text), (cause, change))
            }
            (Some(_), None) => {
                file.is_unknown = true;
                Ok(())
            }
            (None, _) => {
                file.is_unknown =
                    matches!(change.after, Entry::NotCaptured { .. } | Entry::Unknown);
                if !file.is_unknown {
                    file.origins.remove();
                }
                Ok(())
            }
        }
    }

    /// The state before a change, where the log did not follow it: the first one, or after a gap.
    fn begin(&mut self, path: &WorkPath, change: &Change) -> Result<(), StoreError> {
        let store = self.store;
        let file = self.file(path);
        let is_first = !std::mem::replace(&mut file.is_begun, true);
        if change.before.digest().is_some_and(|digest| file.origins.resume(&digest)) {
            return Ok(());
        }
        match (&change.before, text_of(store, &change.before)?) {
            (Entry::File { digest, .. }, Some(text)) => {
                let cause = if is_first { Cause::Before } else { Cause::Unknown };
                if let Some(version) = file.origins.begin(*digest, &text) {
                    self.end(path, version, &[], (*digest, cause, change));
                }
            }
            (Entry::NotCaptured { .. }, _) => file.is_unknown = true,
            _ if is_first => {}
            _ => file.origins.remove(),
        }
        Ok(())
    }

    /// Adds a version that a change made.
    fn add(
        &mut self,
        path: &WorkPath,
        (digest, text): (Digest, &[u8]),
        (cause, change): (Cause, &Change),
    ) -> Result<(), StoreError> {
        let file = self.file(path);
        let Some(version) = file.origins.begin(digest, text) else { return Ok(()) };
        let open: HashSet<&[u8]> = file.origins.open_lines(&version, text).into_iter().collect();
        let mut removed = Vec::new();
        if !open.is_empty() {
            file.is_asking = true;
            removed = self.removed_beside(change, &open)?;
            self.file(path).is_asking = false;
        }
        self.end(path, version, &removed, (digest, cause, change));
        Ok(())
    }

    fn end(
        &mut self,
        path: &WorkPath,
        version: OpenVersion<LineOrigin>,
        removed: &[RemovedRun<LineOrigin>],
        (digest, cause, change): (Digest, Cause, &Change),
    ) {
        let seq = change.seq;
        let number = u32::try_from(self.versions.len()).expect("the log has fewer changes");
        self.file(path).origins.end(version, removed, |line| match cause {
            Cause::Change => LineOrigin::Change { seq, line },
            Cause::Before => LineOrigin::Before { version: number, line },
            Cause::Unknown => LineOrigin::Unknown { version: number, line },
        });
        if cause != Cause::Change {
            self.versions.push(FileVersion { path: change.path.clone(), digest, seq });
        }
    }

    /// What other files lost in the moment of a change, if that includes one of these lines.
    fn removed_beside(
        &mut self,
        change: &Change,
        lines: &HashSet<&[u8]>,
    ) -> Result<Vec<RemovedRun<LineOrigin>>, StoreError> {
        let mut removed = Vec::new();
        for donor in donors(self.store, change)?.into_iter().take(DONORS) {
            self.searched += 1;
            if self.searched > SEARCHED {
                break;
            }
            let Some(before) = text_of(self.store, &donor.before)? else { continue };
            let is_asked = |line: &&[u8]| lines.contains(line);
            let before: Vec<&[u8]> = split_lines(&before).map(<[u8]>::trim_ascii).collect();
            if !before.iter().any(is_asked) {
                continue;
            }
            let after = text_of(self.store, &donor.after)?.unwrap_or_default();
            let left: Vec<&[u8]> = split_lines(&after).map(<[u8]>::trim_ascii).collect();
            let mut gone = diff(&before, &left).into_iter().flat_map(|hunk| hunk.before);
            if gone.any(|at| is_asked(&before[at])) {
                removed.extend(self.removed_by(&donor, &after)?);
            }
        }
        Ok(removed)
    }

    /// The lines that a change of another file removed, with their origins.
    fn removed_by(
        &mut self,
        donor: &Change,
        after: &[u8],
    ) -> Result<Vec<RemovedRun<LineOrigin>>, StoreError> {
        let Some(digest) = donor.before.digest() else { return Ok(Vec::new()) };
        if !self.files.contains_key(&donor.path) {
            if self.files.len() >= FILES {
                return Ok(Vec::new());
            }
            let mut changes = self.store.changes_of(&donor.path)?;
            changes.retain(|change| change.seq >= self.from);
            self.files.insert(donor.path.clone(), FollowedFile::new(changes));
        }
        self.follow(&donor.path, Some(donor))?;
        // It may be further already, or ask for this itself: then it knows its state before the change.
        let file = self.file(&donor.path);
        if !file.is_asking && file.next(None).is_some_and(|next| next.seq == donor.seq) {
            self.begin(&donor.path, donor)?;
        }
        Ok(self.file(&donor.path).origins.removed_between(&digest, after))
    }
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

/// Why a line is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Change,
    Before,
    Unknown,
}

/// The text of a file; one that is not text has no lines. `None`: it is too large, or lost.
fn text_of(store: &dyn Store, entry: &Entry) -> Result<Option<Vec<u8>>, StoreError> {
    let bytes = bytes_of(store, entry)?;
    Ok(bytes.map(|bytes| if is_binary(&bytes) { Vec::new() } else { bytes }))
}

fn bytes_of(store: &dyn Store, entry: &Entry) -> Result<Option<Vec<u8>>, StoreError> {
    let Entry::File { digest, size, .. } = entry else { return Ok(None) };
    if *size > MOST {
        return Ok(None);
    }
    match store.contents(digest) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_lost_contents() => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes.iter().take(8000).any(|byte| *byte == 0)
}
