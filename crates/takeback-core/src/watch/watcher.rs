//! What the kernel reports about the folders of a tree.
//!
//! In: folders to watch, reached from the root without following a link. Out: folders in which something
//! happened since the last call, or that this is unknown. Everything that a system call changed is
//! reported when it returns, except stores through a memory map, which are reported when the map is
//! closed. Reads no file and decides nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use crate::platform::watches::{WatchError, WatchEvent, WatchId, Watches};
use crate::worktree::fingerprint::stat_open;
use crate::worktree::root::{Access, Root, is_no_folder};

/// The watched folders of one tree.
#[derive(Debug)]
pub struct Watcher {
    watches: Watches,
    folders: BTreeMap<Vec<u8>, WatchedFolder>,
    paths: HashMap<WatchId, Vec<u8>>,
    /// Folders that exist and cannot be watched: they count as changed each time.
    unwatchable: BTreeSet<Vec<u8>>,
}

/// A watched folder. The inode distinguishes it from another folder that has taken its name.
#[derive(Debug, Clone, Copy)]
struct WatchedFolder {
    id: WatchId,
    inode: u64,
}

/// Where something happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirtyFolders {
    /// Unknown where.
    Everything(ScanCause),
    /// In these, by path; the root's is empty. A folder may be new, gone or replaced.
    Folders(BTreeSet<Vec<u8>>),
}

/// Why the whole tree has to be scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScanCause {
    /// Nothing was watched before.
    Start,
    /// The kernel's queue overflowed.
    Overflow,
    /// The kernel lets this user watch no more folders.
    Limit,
    /// The kernel's queue could not be read.
    Unreadable,
    /// The root was moved, removed or unmounted.
    Root,
    /// The last full scan is too old.
    Due,
    /// A full scan was requested.
    Asked,
    /// On this file system other machines may write unseen.
    Remote,
}

impl ScanCause {
    /// The cause, for messages: `the kernel's event queue overflowed`.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Start => "nothing was watched before",
            Self::Overflow => "the kernel's event queue overflowed",
            Self::Limit => "the kernel lets this user watch no more folders",
            Self::Unreadable => "the kernel's event queue could not be read",
            Self::Root => "the folder was moved, removed or unmounted",
            Self::Due => "the last full scan is too old",
            Self::Asked => "a full scan was requested",
            Self::Remote => "on this file system other machines may write unseen",
        }
    }

    /// Whether folders may have been moved or replaced without a report, so that watches may be on the
    /// wrong folders.
    pub(super) fn is_blind(self) -> bool {
        !matches!(self, Self::Due | Self::Asked)
    }
}

/// The result of a request to watch a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchOutcome {
    /// Watched from now on.
    Now,
    /// It was already watched.
    Before,
    /// There is no such folder.
    Gone,
    /// It exists and cannot be watched.
    Not,
}

/// The folder of a repository's own ignore rules, relative to the repository.
const OWN_RULES: &[u8] = b".git/info";

impl Watcher {
    /// Watches the root.
    pub fn new(root: &Root) -> Result<Self, ScanCause> {
        let mut watcher = Self {
            watches: Watches::new().map_err(cause_of)?,
            folders: BTreeMap::new(),
            paths: HashMap::new(),
            unwatchable: BTreeSet::new(),
        };
        match watcher.watch(root, b"")? {
            WatchOutcome::Now | WatchOutcome::Before => Ok(watcher),
            WatchOutcome::Gone | WatchOutcome::Not => Err(ScanCause::Unreadable),
        }
    }

    /// Watches a folder. Fails if no more folders can be watched, or none at all.
    pub fn watch(&mut self, root: &Root, path: &[u8]) -> Result<WatchOutcome, ScanCause> {
        let folder = match root.folder(path, Access::Reach) {
            Ok(folder) => folder,
            Err(error) if is_no_folder(&error) => {
                self.forget(path);
                return Ok(WatchOutcome::Gone);
            }
            Err(_) => return Ok(self.cannot_watch(path)),
        };
        let Ok(seen) = stat_open(&folder) else { return Ok(self.cannot_watch(path)) };
        let inode = seen.fingerprint.inode;
        if self.folders.get(path).is_some_and(|spot| spot.inode == inode) {
            return Ok(WatchOutcome::Before);
        }
        let id = match self.watches.add(&folder) {
            Ok(id) => id,
            Err(WatchError::Forbidden) => return Ok(self.cannot_watch(path)),
            Err(error) => return Err(cause_of(error)),
        };
        self.forget(path);
        // The same folder is watched under another path: it was moved from there.
        if let Some(old) = self.paths.insert(id, path.to_vec()) {
            self.folders.remove(&old);
            self.unwatchable.insert(old);
        }
        self.folders.insert(path.to_vec(), WatchedFolder { id, inode });
        Ok(WatchOutcome::Now)
    }

    /// Watches the own ignore rules of the repository at `path`, if it has any.
    pub fn watch_own_rules(&mut self, root: &Root, path: &[u8]) -> Result<(), ScanCause> {
        let rules = join(path, OWN_RULES);
        self.watch(root, &rules)?;
        self.unwatchable.remove(&rules);
        Ok(())
    }

    fn cannot_watch(&mut self, path: &[u8]) -> WatchOutcome {
        self.forget(path);
        self.unwatchable.insert(path.to_vec());
        WatchOutcome::Not
    }

    /// The folders that are watched or cannot be.
    pub fn folders(&self) -> impl Iterator<Item = &[u8]> {
        let all = self.folders.keys().chain(&self.unwatchable).map(Vec::as_slice);
        all.filter(|path| repository_of(path).is_none())
    }

    /// Whether the folder with this inode is the one that is watched under this path.
    #[must_use]
    pub fn watches(&self, path: &[u8], inode: Option<u64>) -> bool {
        let spot = self.folders.get(path);
        spot.is_some_and(|spot| inode.is_none_or(|inode| spot.inode == inode))
    }

    /// Stops watching a folder.
    pub fn forget(&mut self, path: &[u8]) {
        self.unwatchable.remove(path);
        if let Some(spot) = self.folders.remove(path) {
            self.paths.remove(&spot.id);
            self.watches.remove(spot.id);
        }
    }

    /// Where something happened since the last call.
    pub fn drain(&mut self) -> DirtyFolders {
        let mut reported = ReportedEvents { folders: self.unwatchable.clone(), lost: None };
        let Ok(events) = self.watches.drain() else {
            return DirtyFolders::Everything(ScanCause::Unreadable);
        };
        for event in events {
            self.take(event, &mut reported);
        }
        match reported.lost {
            Some(why) => DirtyFolders::Everything(why),
            None => DirtyFolders::Folders(reported.folders),
        }
    }

    fn take(&mut self, event: WatchEvent, reported: &mut ReportedEvents) {
        match event {
            WatchEvent::Overflow => reported.lost = Some(ScanCause::Overflow),
            WatchEvent::Name { watch, name, renamed, is_folder } => {
                // No longer watched.
                let Some(path) = self.paths.get(&watch).cloned() else { return };
                if let Some(repository) = repository_of(&path) {
                    reported.folders.insert(repository.to_vec());
                    return;
                }
                let child = join(&path, &name);
                reported.folders.insert(path);
                if renamed {
                    self.forget_with_all_below(&child, reported);
                }
                if is_folder {
                    reported.folders.insert(child);
                }
            }
            WatchEvent::Folder { watch, gone } => {
                let Some(path) = self.paths.get(&watch).cloned() else { return };
                if gone && path.is_empty() {
                    reported.lost = Some(ScanCause::Root);
                }
                if gone {
                    self.forget_with_all_below(&path, reported);
                }
                reported.folders.insert(parent(&path).to_vec());
                reported.folders.insert(path);
            }
        }
    }

    /// Everything below has moved along or is gone: it has to be scanned again.
    fn forget_with_all_below(&mut self, path: &[u8], reported: &mut ReportedEvents) {
        let below = join(path, b"");
        let from = (Bound::Included(&below), Bound::Unbounded);
        let watched = self.folders.range::<Vec<u8>, _>(from).map(|(path, _)| path);
        let not = self.unwatchable.range::<Vec<u8>, _>(from);
        let mut moved: Vec<Vec<u8>> = watched
            .take_while(|folder| folder.starts_with(&below))
            .chain(not.take_while(|folder| folder.starts_with(&below)))
            .cloned()
            .collect();
        if self.folders.contains_key(path) || self.unwatchable.contains(path) {
            moved.push(path.to_vec());
        }
        for folder in moved {
            self.forget(&folder);
            if repository_of(&folder).is_none() {
                reported.folders.insert(folder);
            }
        }
    }
}

fn cause_of(error: WatchError) -> ScanCause {
    match error {
        WatchError::Limit => ScanCause::Limit,
        WatchError::Forbidden | WatchError::Kernel => ScanCause::Unreadable,
    }
}

/// What the events reported so far.
struct ReportedEvents {
    folders: BTreeSet<Vec<u8>>,
    lost: Option<ScanCause>,
}

/// The folder of the repository whose own rules are in this folder.
fn repository_of(path: &[u8]) -> Option<&[u8]> {
    let above = path.strip_suffix(OWN_RULES)?;
    if above.is_empty() { Some(above) } else { above.strip_suffix(b"/") }
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|b| *b == b'/').map_or(b"", |cut| &path[..cut])
}
