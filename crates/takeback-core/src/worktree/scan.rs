//! Finding out what changed in the whole tree since the last scan.
//!
//! In two passes, each by several threads. The first looks at every folder and name that is known and
//! reads nothing; the second goes into the folders that are not as they were, reads the names where
//! those may be others, and the files whose fingerprint moved, as long as the budget lasts. In: the
//! root and the index of the last scan. Out: what differs, the new index, and the bytes of changed
//! files (packed, to a sink). Writes nothing.

mod blobs;
mod cover;
mod first_pass;
mod gather;
mod ignored;
mod linked;
mod strays;
mod tasks;
mod unreadable;
mod visit;
mod walk;

use std::collections::{BTreeSet, HashSet};
use std::io;

use takeback_store::Encoding;
use takeback_store::{Digest, Entry, NotCapturedReason, PackedBlob, WorkPath};

pub use self::unreadable::{Unreadable, UnreadableKind};
use self::walk::Walk;
use super::budget::Budget;
use super::index::Index;
use super::root::{Root, is_no_folder};
use super::scope::{Distrusted, OutReason, ScopeOptions};
use crate::progress::Counter;

/// What to look at, and how.
pub struct Ask<'a> {
    pub root: &'a Root,
    pub before: &'a Index,
    pub options: &'a ScopeOptions,
    pub threads: usize,
    pub budget: Budget,
    pub counter: Counter<'a>,
    pub extent: Extent<'a>,
    /// Contents that the store has although nothing names them: a look that was cut off kept them.
    pub kept: &'a HashSet<Digest>,
    /// Files with rules that do not hide what is new.
    pub distrusted: &'a Distrusted,
    /// The stages in Takeback's own folder that are this store's, by name.
    pub stages: &'a HashSet<Vec<u8>>,
}

#[derive(Debug, Clone, Copy)]
pub enum Extent<'a> {
    Whole,
    /// These folders alone, and what is new in them: somebody vouches for the others.
    Folders(&'a BTreeSet<Vec<u8>>),
}

/// What a scan found.
#[derive(Debug)]
pub struct Scan {
    /// What differs from the index, by path.
    pub found: Vec<ObservedChange>,
    /// The index as the tree is now; its stamp is that of the index before.
    pub index: Index,
    /// Whether the index differs from the one before.
    pub index_changed: bool,
    /// What is not covered although the index knows it, by path; for the rest see [`Index::skipped`].
    pub skipped: Vec<(WorkPath, OutReason)>,
    /// What could not be read, by path: folders, each without those in it, and files.
    pub unreadable: Vec<Unreadable>,
    /// New names in folders that could not be read for a while.
    pub surfaced: HashSet<WorkPath>,
    /// New names in ignored folders.
    pub new_in_ignored: HashSet<WorkPath>,
    /// The files whose rules, as they are on disk, keep new names out: the caller knows who wrote them.
    pub judges: BTreeSet<WorkPath>,
    /// Files that have other names too, in the tree or outside of it, of those that were looked at.
    pub linked: Vec<WorkPath>,
    pub stats: ScanStats,
}

/// One path whose entry differs from what was known, or that has another file for which there was no
/// time, as there was none for the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedChange {
    pub path: WorkPath,
    pub before: Entry,
    pub after: Entry,
    /// The file is the very one that was seen last, only its bytes could not be kept then: nothing has
    /// changed but what is known of that change.
    pub same_file: bool,
}

impl ObservedChange {
    /// Whether it belongs in the log.
    #[must_use]
    pub fn is_a_change(&self) -> bool {
        let is_unknown = is_unread(&self.after) || self.after.is_unreadable();
        self.before != self.after || (is_unknown && !self.same_file)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScanStats {
    pub files: u64,
    pub folders: u64,
    /// Files whose bytes were read.
    pub read: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    #[error("cannot scan {path}")]
    Unreadable { path: String, source: io::Error },
    #[error("there was not enough time to look at the whole tree")]
    OutOfTime,
}

pub fn scan(ask: &Ask<'_>, sink: &mut dyn FnMut(PackedBlob)) -> Result<Scan, ScanError> {
    let sink = &mut |blob: PackedBlob| {
        // Of a file in chunks, the chunks were counted.
        if blob.encoding != Encoding::Chunks {
            ask.counter.bytes(blob.size);
        }
        sink(blob);
    };
    let mut walk = Walk::new(ask);
    let first = walk.compare_known()?;
    let tasks = walk.tasks(&first);
    let mut parts = walk.visit_all(tasks, sink)?;
    let again = walk.judged_anew(&parts);
    parts.extend(walk.visit_all(again, sink)?);
    walk.gather(first, parts, sink)
}

/// The folder that a folder is in.
fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|b| *b == b'/').map_or(b"", |cut| &path[..cut])
}

/// Whether there was no time for it.
fn is_unread(entry: &Entry) -> bool {
    *entry == Entry::NotCaptured { reason: NotCapturedReason::Deadline }
}

/// Whether a folder is none any more, or another file system has come over it.
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
