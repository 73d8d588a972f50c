//! The first pass of a scan: every folder that is known, and every name in it, looked at without
//! reading anything. What is not as it was is left to the second pass.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;

use rustix::fs::FileType;
use takeback_store::WorkPath;

use super::{Extent, ScanError, ScanStats, Walk, join, valid};
use crate::worktree::fingerprint::{Fingerprint, stat, stat_open};
use crate::worktree::index::{Block, Brief, Folder, Kind};
use crate::worktree::root::{Access, Near, is_no_folder};
use crate::worktree::scope::EXCLUDE;

/// Folders that a thread takes at once.
const BATCH: usize = 16;

/// What the first pass found.
#[derive(Default)]
pub(super) struct Glanced {
    pub(super) moved: Vec<Moved>,
    /// Folders whose names nobody has read.
    pub(super) unlisted: Vec<Vec<u8>>,
    /// Folders that are no longer there.
    pub(super) lost: Vec<Vec<u8>>,
    /// Folders that cannot be reached: no permission, a failing disk, no descriptor to be had.
    pub(super) unreadable: Vec<Vec<u8>>,
    /// Folders that another file system hides.
    pub(super) foreign: Vec<Vec<u8>>,
    /// Files with several names, by inode.
    pub(super) linked: Vec<(u64, WorkPath)>,
    pub(super) stats: ScanStats,
}

/// A folder that is not as it was.
pub(super) struct Moved {
    pub(super) path: Vec<u8>,
    pub(super) mode: u32,
    /// Its names are the same, and so are this many of its files; none: the names must be read.
    pub(super) same: Option<usize>,
}

/// One folder as the index knows it.
struct Known<'a, I> {
    path: &'a [u8],
    listed: bool,
    fingerprint: Option<Fingerprint>,
    repository: bool,
    excludes: Option<Fingerprint>,
    has_skipped: bool,
    names: I,
}

impl Walk<'_> {
    pub(super) fn glance(&self) -> Result<Glanced, ScanError> {
        let glanced = match self.extent {
            Extent::Whole => self.glance_at_all(),
            Extent::Folders(folders) => {
                let (mut glanced, mut near) = (Glanced::default(), Near::new(self.root));
                for path in folders {
                    if let Some(folder) = self.before.folder(path) {
                        self.glance_at_folder(path, &folder, &mut near, &mut glanced);
                    }
                }
                glanced
            }
        };
        if self.is_over() {
            return Err(ScanError::OutOfTime);
        }
        // Of a root that cannot be read nothing can be said at all.
        if glanced.unreadable.iter().any(Vec::is_empty) {
            let path = self.root.path().display().to_string();
            let again = self.root.folder(b"", Access::Read).err();
            let source = again.unwrap_or_else(|| std::io::ErrorKind::Interrupted.into());
            return Err(ScanError::Unreadable { path, source });
        }
        Ok(glanced)
    }

    fn glance_at_all(&self) -> Glanced {
        let over: Vec<(&[u8], &Arc<Folder>)> = self.before.over().collect();
        let in_base = self.before.base().map_or(0, |base| base.len());
        let count = in_base + over.len();
        let next = AtomicUsize::new(0);
        let work = || {
            let (mut glanced, mut near) = (Glanced::default(), Near::new(self.root));
            while !self.is_over() {
                let first = next.fetch_add(BATCH, Ordering::Relaxed);
                if first >= count {
                    break;
                }
                for at in first..count.min(first + BATCH) {
                    match over.get(at.wrapping_sub(in_base)) {
                        Some((path, folder)) => {
                            self.glance_at_folder(path, folder, &mut near, &mut glanced);
                        }
                        None => self.glance_at_block(at, &mut near, &mut glanced),
                    }
                }
            }
            glanced
        };
        let more = self.threads - 1;
        std::thread::scope(|scope| {
            let start = |_| Builder::new().spawn_scoped(scope, work).ok();
            let others: Vec<_> = (0..more).map_while(start).collect();
            let mut glanced = work();
            for other in others {
                match other.join() {
                    Ok(other) => glanced.add(other),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            glanced
        })
    }

    fn glance_at_block(&self, at: usize, near: &mut Near<'_>, glanced: &mut Glanced) {
        let block = self.before.base().and_then(|base| base.block(at));
        let Some(block) = block.filter(|block: &Block<'_>| !self.before.is_over(block.path)) else {
            return;
        };
        let known = Known {
            path: block.path,
            listed: block.is_listed(),
            fingerprint: block.fingerprint,
            repository: block.is_repository(),
            excludes: block.excludes,
            has_skipped: block.has_skipped(),
            names: block.briefs(),
        };
        self.glance_at_one(known, near, glanced);
    }

    fn glance_at_folder(
        &self,
        path: &[u8],
        folder: &Folder,
        near: &mut Near<'_>,
        glanced: &mut Glanced,
    ) {
        let known = Known {
            path,
            listed: folder.listed,
            fingerprint: folder.fingerprint,
            repository: folder.repository,
            excludes: folder.excludes,
            has_skipped: folder.has_skipped(),
            names: folder.children.iter().map(|child| child.known.brief(&child.name)),
        };
        self.glance_at_one(known, near, glanced);
    }

    fn glance_at_one<'a>(
        &self,
        known: Known<'a, impl Iterator<Item = Brief<'a>>>,
        near: &mut Near<'_>,
        glanced: &mut Glanced,
    ) {
        let path = known.path;
        if !known.listed {
            return glanced.unlisted.push(path.to_vec());
        }
        let folder = match near.folder(path, Access::Reach) {
            Ok(folder) => folder,
            Err(error) if is_no_folder(&error) => return glanced.lost.push(path.to_vec()),
            Err(_) => return glanced.unreadable.push(path.to_vec()),
        };
        let Ok(own) = stat_open(&folder) else { return glanced.unreadable.push(path.to_vec()) };
        if own.device != self.root.device {
            return glanced.foreign.push(path.to_vec());
        }
        let mut same = None;
        let same_names = known.fingerprint == Some(own.fingerprint)
            && (!known.repository || known.excludes == excludes_of(&folder));
        if same_names {
            let first_linked = glanced.linked.len();
            same = self.first_moved(&folder, path, known.names, glanced);
            if same.is_none() {
                return;
            }
            // Which of its names are covered is to be judged for all of them.
            if known.has_skipped {
                same = Some(0);
                glanced.linked.truncate(first_linked);
            }
        }
        glanced.moved.push(Moved { path: path.to_vec(), mode: own.mode(), same });
    }

    /// How many names come before the first that is not as it was; `None`: all are.
    fn first_moved<'a>(
        &self,
        folder: &OwnedFd,
        path: &[u8],
        names: impl Iterator<Item = Brief<'a>>,
        glanced: &mut Glanced,
    ) -> Option<usize> {
        let mut files = 0;
        for (at, brief) in names.enumerate() {
            match (brief.kind, brief.fingerprint) {
                // A folder is looked at by itself.
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
                            glanced.linked.push((known.inode, path));
                        }
                    }
                }
                (Kind::Kept | Kind::NotCaptured | Kind::Other, _) => return Some(at),
            }
        }
        glanced.stats.folders += 1;
        glanced.stats.files += files;
        self.counter.files(files);
        None
    }
}

impl Glanced {
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

/// The fingerprint of the rules that a repository keeps for itself.
pub(super) fn excludes_of(folder: &OwnedFd) -> Option<Fingerprint> {
    stat(folder, EXCLUDE).ok().flatten().map(|seen| seen.fingerprint)
}
