//! The first pass of a scan: compares the fingerprint of every known folder and name with the index,
//! without reading any contents. The second pass visits the folders that differ.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

use rustix::fs::FileType;
use takeback_store::WorkPath;

use super::walk::Walk;
use super::{Extent, ScanError, ScanStats, join, valid};
use crate::worktree::fingerprint::{Fingerprint, stat, stat_open};
use crate::worktree::index::{Block, Brief, Folder, Kind};
use crate::worktree::root::{Access, FolderOpener, is_no_folder};
use crate::worktree::scope::EXCLUDE;

/// How many folders a thread takes at once.
const BATCH: usize = 16;

/// What the first pass found.
#[derive(Default)]
pub(super) struct FirstPass {
    pub(super) moved: Vec<ChangedFolder>,
    /// Folders whose names have never been read.
    pub(super) unlisted: Vec<Vec<u8>>,
    /// Folders that are no longer there.
    pub(super) lost: Vec<Vec<u8>>,
    /// Folders that cannot be opened: no permission, a failing disk, no free descriptor.
    pub(super) unreadable: Vec<Vec<u8>>,
    /// Folders that another file system hides.
    pub(super) foreign: Vec<Vec<u8>>,
    /// Files with several names, by inode.
    pub(super) linked: Vec<(u64, WorkPath)>,
    pub(super) stats: ScanStats,
}

/// A folder that differs from the index.
pub(super) struct ChangedFolder {
    pub(super) path: Vec<u8>,
    pub(super) mode: u32,
    /// Its names are the same, and the first so many of them are unchanged; none: the names must be read.
    pub(super) same: Option<usize>,
}

/// One folder as the index knows it.
struct KnownFolder<'a, I> {
    path: &'a [u8],
    listed: bool,
    fingerprint: Option<Fingerprint>,
    repository: bool,
    excludes: Option<Fingerprint>,
    has_skipped: bool,
    names: I,
}

impl Walk<'_> {
    pub(super) fn compare_known(&self) -> Result<FirstPass, ScanError> {
        let pass = match self.extent {
            Extent::Whole => self.compare_all(),
            Extent::Folders(folders) => {
                let (mut pass, mut opener) = (FirstPass::default(), FolderOpener::new(self.root));
                for path in folders {
                    if let Some(folder) = self.before.folder(path) {
                        self.compare_folder(path, &folder, &mut opener, &mut pass);
                    }
                }
                pass
            }
        };
        if self.is_over() {
            return Err(ScanError::OutOfTime);
        }
        // Without the root there is nothing to report.
        if pass.unreadable.iter().any(Vec::is_empty) {
            let path = self.root.path().display().to_string();
            let again = self.root.folder(b"", Access::Read).err();
            let source = again.unwrap_or_else(|| std::io::ErrorKind::Interrupted.into());
            return Err(ScanError::Unreadable { path, source });
        }
        Ok(pass)
    }

    fn compare_all(&self) -> FirstPass {
        let over: Vec<(&[u8], &Arc<Folder>)> = self.before.over().collect();
        let in_base = self.before.base().map_or(0, |base| base.len());
        let count = in_base + over.len();
        let next = AtomicUsize::new(0);
        let work = || {
            let (mut pass, mut opener) = (FirstPass::default(), FolderOpener::new(self.root));
            while !self.is_over() {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= count {
                    break;
                }
                for at in first..count.min(first + BATCH) {
                    match over.get(at.wrapping_sub(in_base)) {
                        Some((path, folder)) => {
                            self.compare_folder(path, folder, &mut opener, &mut pass);
                        }
                        None => self.compare_block(at, &mut opener, &mut pass),
                    }
                }
            }
            pass
        };
        let more = self.threads - 1;
        std::thread::scope(|scope| {
            let start = |_| Builder::new().spawn_scoped(scope, work).ok();
            let others: Vec<_> = (0..more).map_while(start).collect();
            let mut pass = work();
            for other in others {
                match other.join() {
                    Ok(other) => pass.add(other),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            pass
        })
    }

    fn compare_block(&self, at: usize, opener: &mut FolderOpener<'_>, pass: &mut FirstPass) {
        let block = self.before.base().and_then(|base| base.block(at));
        let Some(block) = block.filter(|block: &Block<'_>| !self.before.is_over(block.path)) else {
            return;
        };
        let known = KnownFolder {
            path: block.path,
            listed: block.is_listed(),
            fingerprint: block.fingerprint,
            repository: block.is_repository(),
            excludes: block.excludes,
            has_skipped: block.has_skipped(),
            names: block.briefs(),
        };
        self.compare_one(known, opener, pass);
    }

    fn compare_folder(
        &self,
        path: &[u8],
        folder: &Folder,
        opener: &mut FolderOpener<'_>,
        pass: &mut FirstPass,
    ) {
        let known = KnownFolder {
            path,
            listed: folder.listed,
            fingerprint: folder.fingerprint,
            repository: folder.repository,
            excludes: folder.excludes,
            has_skipped: folder.has_skipped(),
            names: folder.children.iter().map(|child| child.known.brief(&child.name)),
        };
        self.compare_one(known, opener, pass);
    }

    fn compare_one<'a>(
        &self,
        known: KnownFolder<'a, impl Iterator<Item = Brief<'a>>>,
        opener: &mut FolderOpener<'_>,
        pass: &mut FirstPass,
    ) {
        let path = known.path;
        if !known.listed {
            return pass.unlisted.push(path.to_vec());
        }
        let folder = match opener.folder(path, Access::Reach) {
            Ok(folder) => folder,
            Err(error) if is_no_folder(&error) => return pass.lost.push(path.to_vec()),
            Err(_) => return pass.unreadable.push(path.to_vec()),
        };
        let Ok(own) = stat_open(&folder) else { return pass.unreadable.push(path.to_vec()) };
        if own.device != self.root.device {
            return pass.foreign.push(path.to_vec());
        }
        let mut same = None;
        let same_names = known.fingerprint == Some(own.fingerprint)
            && (!known.repository || known.excludes == excludes_of(&folder));
        if same_names {
            let first_linked = pass.linked.len();
            same = self.first_moved(&folder, path, known.names, pass);
            if same.is_none() {
                return;
            }
            // All of its names have to be judged again.
            if known.has_skipped {
                same = Some(0);
                pass.linked.truncate(first_linked);
            }
        }
        pass.moved.push(ChangedFolder { path: path.to_vec(), mode: own.mode(), same });
    }

    /// How many names come before the first that changed; `None`: none changed.
    fn first_moved<'a>(
        &self,
        folder: &OwnedFd,
        path: &[u8],
        names: impl Iterator<Item = Brief<'a>>,
        pass: &mut FirstPass,
    ) -> Option<usize> {
        let mut files = 0;
        for (at, brief) in names.enumerate() {
            match (brief.kind, brief.fingerprint) {
                // Each folder is compared on its own.
                (Kind::Folder | Kind::Left, _) | (Kind::Skipped, None) => {}
                (Kind::Kept | Kind::Skipped, Some(known)) => {
                    let seen = stat(folder, brief.name).unwrap_or(None);
                    let Some(seen) = seen.filter(|seen| seen.fingerprint == known) else {
                        return Some(at);
                    };
                    if brief.kind == Kind::Kept {
                        files += 1;
                        if seen.is_linked && seen.kind == FileType::RegularFile {
                            let path = valid(join(path, brief.name));
                            pass.linked.push((known.inode, path));
                        }
                    }
                }
                (Kind::Kept | Kind::NotCaptured | Kind::Other, _) => return Some(at),
            }
        }
        pass.stats.folders += 1;
        pass.stats.files += files;
        self.counter.files(files);
        None
    }
}

impl FirstPass {
    fn add(&mut self, other: Self) {
        self.moved.extend(other.moved);
        self.unlisted.extend(other.unlisted);
        self.lost.extend(other.lost);
        self.unreadable.extend(other.unreadable);
        self.foreign.extend(other.foreign);
        self.linked.extend(other.linked);
        self.stats.files += other.stats.files;
        self.stats.folders += other.stats.folders;
    }
}

/// The fingerprint of a repository's own rules.
pub(super) fn excludes_of(folder: &OwnedFd) -> Option<Fingerprint> {
    stat(folder, EXCLUDE).ok().flatten().map(|seen| seen.fingerprint)
}
