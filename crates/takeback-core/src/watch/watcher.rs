//! What the kernel reports of the folders of a tree.
//!
//! In: folders to be watched, reached from the root without following a link. Out: folders in which
//! something happened since it was last asked, or that this is not known. Everything that a call
//! changed before it returned has been told by then, but for stores through a memory map, which are
//! told when the map goes. Looks at no file and decides nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use crate::platform::watches::{WatchError, WatchEvent, WatchId, Watches};
use crate::worktree::fingerprint::stat_open;
use crate::worktree::root::{Access, Root, is_no_folder};

/// Folders of one tree that are watched.
#[derive(Debug)]
pub struct Watcher {
    watches: Watches,
    folders: BTreeMap<Vec<u8>, Spot>,
    paths: HashMap<WatchId, Vec<u8>>,
    /// Folders that are there and cannot be watched: nobody knows what happens in them.
    unwatchable: BTreeSet<Vec<u8>>,
}

/// A folder under watch: it, and not what may have taken its name since.
#[derive(Debug, Clone, Copy)]
struct Spot {
    id: WatchId,
    inode: u64,
}

/// Where something happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dirty {
    /// It is not known where.
    Everything(Why),
    /// In these, by path; the root's is empty. One of them may be new, gone, or another than before.
    Folders(BTreeSet<Vec<u8>>),
}

/// Why nobody knows where something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Nobody has watched so far.
    Start,
    /// More happened than the kernel keeps for those who do not ask.
    Overflow,
    /// The kernel lets this user watch no more folders.
    Limit,
    /// The kernel could not be asked.
    Unreadable,
    /// The root has another name or none, or its file system is gone.
    Root,
    /// The last look at the whole tree was too long ago.
    Due,
    /// A look at the whole tree was asked for.
    Asked,
    /// On this file system, others may write unseen.
    Remote,
}

impl Why {
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Start => "nothing was watched before",
            Self::Overflow => "more happened than the kernel keeps",
            Self::Limit => "the kernel lets this user watch no more folders",
            Self::Unreadable => "the kernel could not be asked",
            Self::Root => "the folder was moved, removed or unmounted",
            Self::Due => "the last look at the whole tree was too long ago",
            Self::Asked => "a look at the whole tree was asked for",
            Self::Remote => "on this file system others may write unseen",
        }
    }

    /// Whether folders may have changed places unseen, so that what is watched is not what has its
    /// name.
    pub(super) fn is_blind(self) -> bool {
        !matches!(self, Self::Due | Self::Asked)
    }
}

/// What became of a wish to watch a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begun {
    /// From now on.
    Now,
    /// It was watched already.
    Before,
    /// There is no such folder.
    Gone,
    /// It is there and cannot be watched.
    Not,
}

/// Where a repository keeps rules of its own, from its folder.
const OWN_RULES: &[u8] = b".git/info";

impl Watcher {
    /// Watches the root.
    pub fn new(root: &Root) -> Result<Self, Why> {
        let mut watcher = Self {
            watches: Watches::new().map_err(cause_of)?,
            folders: BTreeMap::new(),
            paths: HashMap::new(),
            unwatchable: BTreeSet::new(),
        };
        match watcher.watch(root, b"")? {
            Begun::Now | Begun::Before => Ok(watcher),
            Begun::Gone | Begun::Not => Err(Why::Unreadable),
        }
    }

    /// Watches a folder. Fails if no more folders can be watched, or none at all.
    pub fn watch(&mut self, root: &Root, path: &[u8]) -> Result<Begun, Why> {
        let folder = match root.folder(path, Access::Reach) {
            Ok(folder) => folder,
            Err(error) if is_no_folder(&error) => {
                self.forget(path);
                return Ok(Begun::Gone);
            }
            Err(_) => return Ok(self.cannot_watch(path)),
        };
        let Ok(seen) = stat_open(&folder) else { return Ok(self.cannot_watch(path)) };
        let inode = seen.fingerprint.inode;
        if self.folders.get(path).is_some_and(|spot| spot.inode == inode) {
            return Ok(Begun::Before);
        }
        let id = match self.watches.add(&folder) {
            Ok(id) => id,
            Err(WatchError::Forbidden) => return Ok(self.cannot_watch(path)),
            Err(error) => return Err(cause_of(error)),
        };
        self.forget(path);
        // The same folder under another path, from which it was moved.
        if let Some(old) = self.paths.insert(id, path.to_vec()) {
            self.folders.remove(&old);
            self.unwatchable.insert(old);
        }
        self.folders.insert(path.to_vec(), Spot { id, inode });
        Ok(Begun::Now)
    }

    /// Watches the rules that a repository at `path` keeps for itself, if it has any.
    pub fn watch_own_rules(&mut self, root: &Root, path: &[u8]) -> Result<(), Why> {
        let rules = join(path, OWN_RULES);
        self.watch(root, &rules)?;
        self.unwatchable.remove(&rules);
        Ok(())
    }

    fn cannot_watch(&mut self, path: &[u8]) -> Begun {
        self.forget(path);
        self.unwatchable.insert(path.to_vec());
        Begun::Not
    }

    /// The folders that are watched, or that cannot be.
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

    /// Watches this folder no longer.
    pub fn forget(&mut self, path: &[u8]) {
        self.unwatchable.remove(path);
        if let Some(spot) = self.folders.remove(path) {
            self.paths.remove(&spot.id);
            self.watches.remove(spot.id);
        }
    }

    /// Where something happened since this was last asked.
    pub fn drain(&mut self) -> Dirty {
        let mut told = Told { folders: self.unwatchable.clone(), lost: None };
        let Ok(events) = self.watches.drain() else { return Dirty::Everything(Why::Unreadable) };
        for event in events {
            self.take(event, &mut told);
        }
        match told.lost {
            Some(why) => Dirty::Everything(why),
            None => Dirty::Folders(told.folders),
        }
    }

    fn take(&mut self, event: WatchEvent, told: &mut Told) {
        match event {
            WatchEvent::Overflow => told.lost = Some(Why::Overflow),
            WatchEvent::Name { watch, name, renamed, is_folder } => {
                // One that is not watched any more.
                let Some(path) = self.paths.get(&watch).cloned() else { return };
                if let Some(repository) = repository_of(&path) {
                    told.folders.insert(repository.to_vec());
                    return;
                }
                let child = join(&path, &name);
                told.folders.insert(path);
                if renamed {
                    self.forget_with_all_below(&child, told);
                }
                if is_folder {
                    told.folders.insert(child);
                }
            }
            WatchEvent::Folder { watch, gone } => {
                let Some(path) = self.paths.get(&watch).cloned() else { return };
                if gone && path.is_empty() {
                    told.lost = Some(Why::Root);
                }
                if gone {
                    self.forget_with_all_below(&path, told);
                }
                told.folders.insert(parent(&path).to_vec());
                told.folders.insert(path);
            }
        }
    }

    /// Whatever is below has moved with it, or is gone: what is there now has to be found.
    fn forget_with_all_below(&mut self, path: &[u8], told: &mut Told) {
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
                told.folders.insert(folder);
            }
        }
    }
}

fn cause_of(error: WatchError) -> Why {
    match error {
        WatchError::Limit => Why::Limit,
        WatchError::Forbidden | WatchError::Kernel => Why::Unreadable,
    }
}

/// What has been told so far.
struct Told {
    folders: BTreeSet<Vec<u8>>,
    lost: Option<Why>,
}

/// The folder of the repository whose rules are kept here.
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
