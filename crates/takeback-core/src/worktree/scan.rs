//! Scans: finds what changed in the tree since the last scan.
//!
//! Two passes, each by several threads. The first compares the fingerprint of every known folder and name
//! and reads nothing. The second visits the folders that differ, reads their names where needed, and the
//! files whose fingerprint changed, while the budget lasts. In: the root and the index of the last scan.
//! Out: the differences, the new index, and the packed bytes of changed files (to a sink). Writes
//! nothing.

mod blobs;
mod cover;
mod first_pass;
mod gather;
mod ignored_files;
mod hard_links;
mod unvisited_paths;
mod tasks;
mod read_failures;
mod visit;
mod walk;

use std::collections::{BTreeSet, HashSet};
use std::io;

use takeback_store::Encoding;
use takeback_store::{Digest, Entry, NotCapturedReason, PackedBlob, WorkPath};

pub use self::read_failures::{Unreadable, UnreadableKind};
use self::walk::Walk;
use super::budget::Budget;
use super::index::Index;
use super::root::{Root, is_no_folder};
use super::scope::{DistrustedRules, OutReason, ScopeOptions};
use crate::progress::Counter;

/// What to scan, and how.
pub(crate) struct ScanRequest<'a> {
    pub root: &'a Root,
    pub before: &'a Index,
    pub options: &'a ScopeOptions,
    pub threads: usize,
    pub budget: Budget,
    pub counter: Counter<'a>,
    pub extent: Extent<'a>,
    /// Contents that the store has although no change refers to them: an interrupted scan saved them.
    pub kept: &'a HashSet<Digest>,
    /// Rule files that must not hide new names.
    pub distrusted: &'a DistrustedRules,
    /// This store's stages in Takeback's own folder, by name.
    pub stages: &'a HashSet<Vec<u8>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Extent<'a> {
    Whole,
    /// Only these folders, and what is new in them: the watcher vouches for the others.
    Folders(&'a BTreeSet<Vec<u8>>),
}

/// What a scan found.
#[derive(Debug)]
pub(crate) struct Scan {
    /// Differences from the index, by path.
    pub found: Vec<ObservedChange>,
    /// The index of the tree as it is now, with the stamp of the previous index.
    pub index: Index,
    /// Whether the index differs from the previous one.
    pub index_changed: bool,
    /// Known paths that are no longer covered, by path; for the others see [`Index::skipped`].
    pub skipped: Vec<(WorkPath, OutReason)>,
    /// Folders and files that could not be read, by path. Folders inside an unreadable one are not listed.
    pub unreadable: Vec<Unreadable>,
    /// New names in folders that were unreadable for a while.
    pub surfaced: HashSet<WorkPath>,
    /// New names in ignored folders.
    pub new_in_ignored: HashSet<WorkPath>,
    /// The files whose rules, as they are on disk, exclude new names: the caller finds out who wrote them.
    pub judges: BTreeSet<WorkPath>,
    /// Files with several names, in the tree or outside it, among those that were looked at.
    pub linked: Vec<WorkPath>,
    pub stats: ScanStats,
}

/// A path whose entry differs from the known one; or that has another file, where neither this one nor the
/// previous one could be read in time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObservedChange {
    pub path: WorkPath,
    pub before: Entry,
    pub after: Entry,
    /// It is the very file that was seen last, whose bytes could not be saved then: the file has not
    /// changed, but more is known about its last change.
    pub same_file: bool,
}

impl ObservedChange {
    /// Whether it belongs in the log.
    #[must_use]
    pub(crate) fn is_a_change(&self) -> bool {
        let is_unknown = is_unread(&self.after) || self.after.is_unreadable();
        self.before != self.after || (is_unknown && !self.same_file)
    }
}

/// How much a scan looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScanStats {
    /// Files that it looked at.
    pub files: u64,
    /// Folders that it looked into.
    pub folders: u64,
    /// Files whose bytes were read.
    pub read: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    #[error("cannot scan {path}")]
    Unreadable { path: String, source: io::Error },
    #[error("not enough time to scan the whole tree")]
    OutOfTime,
}

pub(crate) fn scan(
    ask: &ScanRequest<'_>,
    sink: &mut dyn FnMut(PackedBlob),
) -> Result<Scan, ScanError> {
    let sink = &mut |blob: PackedBlob| {
        // The chunks of a chunked file were already counted.
        if blob.encoding != Encoding::Chunks {
            ask.counter.bytes(blob.size);
        }
        sink(blob);
    };
    let mut walk = Walk::new(ask);
    let first = walk.compare_known()?;
    let tasks = walk.tasks(&first);
    let mut parts = walk.visit_all(tasks, sink)?;
    let again = walk.tasks_to_judge_again(&parts);
    parts.extend(walk.visit_all(again, sink)?);
    walk.gather(first, parts, sink)
}

/// The folder that a folder is in.
fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|b| *b == b'/').map_or(b"", |cut| &path[..cut])
}

/// Whether there was no time to read it.
fn is_unread(entry: &Entry) -> bool {
    *entry == Entry::NotCaptured { reason: NotCapturedReason::Deadline }
}

/// Whether a folder no longer exists, or another file system was mounted over it.
fn is_gone(error: &io::Error) -> bool {
    is_no_folder(error) || error.kind() == io::ErrorKind::CrossesDevices
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

fn valid(path: Vec<u8>) -> WorkPath {
    WorkPath::new(path).expect("names read from a folder are plain")
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
