//! The folder that a fork is written into.
//!
//! It must be empty, or hold an unfinished fork. While it is being filled, `.takeback/unfinished-fork` in it is
//! locked by the process that fills it; a crash leaves the file without a lock.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use takeback_store::{Seq, WorkPath, disk};

use super::base::base_index;
use super::origin::{Origin, fork_origin};
use super::plan::ForkPlan;
use super::write::Prints;
use super::{ForkError, base};
use crate::platform::folder::{Access, names_in};
use crate::workspace::Workspace;
use crate::worktree::Root;
use crate::worktree::fingerprint::{stat, stat_open};
use crate::worktree::scope::OWN_FOLDER;

/// The marker of an unfinished fork, in Takeback's own folder.
const MARKER: &[u8] = b"unfinished-fork";

pub(super) fn is_marker(path: &WorkPath) -> bool {
    path.as_bytes() == [OWN_FOLDER, b"/", MARKER].concat()
}

/// A place where a fork may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkPlace {
    /// The folder's canonical path. It may not exist yet.
    pub path: PathBuf,
    /// What is there.
    pub state: FolderState,
}

/// What a [`ForkPlace`] has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderState {
    /// Nothing, or an empty folder.
    Empty,
    /// A fork that was interrupted, or is being made.
    Unfinished,
}

impl ForkPlace {
    /// Checks, without changing anything, that a fork may be written to `folder`, which is absolute.
    /// `home`: where stores are kept.
    pub fn find(workspace: &Workspace, folder: &Path, home: &Path) -> Result<Self, ForkError> {
        let refused = |why| ForkError::Refused { folder: folder.to_owned(), why };
        let unusable = |source| ForkError::Unusable { path: folder.to_owned(), source };
        let path = match (folder.parent(), folder.file_name()) {
            (Some(parent), Some(name)) => match std::fs::canonicalize(parent) {
                Ok(parent) => parent.join(name),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(refused("the folder that it would be in does not exist"));
                }
                Err(source) => return Err(unusable(source)),
            },
            _ => std::fs::canonicalize(folder).map_err(unusable)?,
        };
        let root = workspace.root.path();
        if path == root {
            return Err(refused("it is the workspace itself"));
        }
        if path.starts_with(root) {
            return Err(refused("it is inside the workspace; choose a folder beside it"));
        }
        let home = std::fs::canonicalize(home).unwrap_or_else(|_| home.to_owned());
        if path.starts_with(&home) {
            return Err(refused("it is inside Takeback's own folder"));
        }
        let state = match std::fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => FolderState::Empty,
            Err(source) => return Err(unusable(source)),
            Ok(found) if found.is_symlink() => {
                return Err(refused("it is a link; name the folder itself"));
            }
            Ok(found) if !found.is_dir() => return Err(refused("it is not a folder")),
            Ok(_) => state_of(&path)?,
        };
        Ok(Self { path, state })
    }
}

/// The state of an existing folder.
fn state_of(path: &Path) -> Result<FolderState, ForkError> {
    let unusable = |source| ForkError::Unusable { path: path.to_owned(), source };
    if is_unfinished(path).map_err(unusable)? {
        Ok(FolderState::Unfinished)
    } else if is_empty(path).map_err(unusable)? {
        Ok(FolderState::Empty)
    } else {
        Err(ForkError::NotEmpty { folder: path.to_owned() })
    }
}

/// Also with an empty folder of Takeback's: a fork was killed before it made its marker.
fn is_empty(path: &Path) -> io::Result<bool> {
    let root = Root::open(path)?;
    let names = |folder: &[u8]| root.folder(folder, Access::Read).and_then(names_in);
    let found = names(b"")?;
    Ok(found.is_empty() || found == [OWN_FOLDER] && names(OWN_FOLDER).is_ok_and(|n| n.is_empty()))
}

/// Whether the folder has the marker of an unfinished fork.
pub(super) fn is_unfinished(folder: &Path) -> io::Result<bool> {
    let root = Root::open(folder)?;
    match root.folder(OWN_FOLDER, Access::Reach) {
        Ok(own) => Ok(stat(own, MARKER)?.is_some_and(|seen| seen.kind == FileType::RegularFile)),
        Err(_) => Ok(false),
    }
}

/// A folder that this process fills.
#[derive(Debug)]
pub struct ForkTarget {
    pub(super) root: Root,
    /// The workspace that is forked.
    pub(super) original: PathBuf,
    store_dir: PathBuf,
    /// Locked while the fork is being made.
    _marker: File,
}

impl ForkTarget {
    /// Makes the folder if it is missing, and marks it as unfinished.
    ///
    /// `store_dir`: where the fork's store is, or will be before [`super::fork`] is called.
    pub fn claim(
        workspace: &Workspace,
        place: &ForkPlace,
        store_dir: PathBuf,
    ) -> Result<Self, ForkError> {
        let path = &place.path;
        let unusable = |source| ForkError::Unusable { path: path.clone(), source };
        let root = Self::open_folder(workspace, path).map_err(unusable)?;
        // Again: it may have been filled meanwhile.
        state_of(path)?;
        let marker = mark(&root).map_err(unusable)?;
        match marker.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(ForkError::Busy { folder: path.clone() }),
            Err(TryLockError::Error(source)) => return Err(unusable(source)),
        }
        // Another process may have finished and removed the marker before this one locked it.
        if !is_unfinished(path).map_err(unusable)? {
            return Err(ForkError::NotEmpty { folder: path.clone() });
        }
        let original = workspace.root.path().to_owned();
        Ok(Self { root, original, store_dir, _marker: marker })
    }

    fn open_folder(workspace: &Workspace, path: &Path) -> io::Result<Root> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Root::open(path);
        };
        let above = Root::open(parent)?;
        if stat(&above, name.as_bytes())?.is_none() {
            // As private as the workspace.
            let mode = stat_open(&workspace.root)?.mode() | OWN;
            match disk::make_folder(&above, name.as_bytes(), mode) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        Root::open(path)
    }

    /// The folder's canonical path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// Notes the origin in the fork's store, unless an interrupted fork noted the same one.
    pub(super) fn note_origin(&self, origin: &Origin) -> Result<(), ForkError> {
        match fork_origin(&self.store_dir)? {
            Some(noted) if noted.is_same_point(origin) => Ok(()),
            Some(_) => Err(ForkError::OtherFork { folder: self.path().to_owned() }),
            None => origin.save(&self.store_dir),
        }
    }

    /// Sets the folders' modes, and saves what a scan of the fork has to compare with.
    pub(super) fn seal(&self, plan: &ForkPlan, prints: &Prints, seq: Seq) -> Result<(), ForkError> {
        let folders = self.finish_folders(plan)?;
        let mut index = base_index(self, plan, prints, folders);
        index.stamp = seq;
        base::save(&mut index, &self.store_dir)
    }

    /// Removes the marker: the fork is complete.
    pub(super) fn release(self) -> Result<(), ForkError> {
        let unusable = |source| ForkError::Unusable { path: self.path().to_owned(), source };
        let own = self.root.folder(OWN_FOLDER, Access::Reach).map_err(unusable)?;
        disk::unlink(&own, MARKER).map_err(unusable)?;
        match disk::remove_folder(&self.root, OWN_FOLDER) {
            // The workspace has its settings there.
            Err(error) if error.kind() != io::ErrorKind::DirectoryNotEmpty => Err(unusable(error)),
            _ => Ok(()),
        }
    }

    /// Deepest first: a folder may get a mode that no longer lets this process in.
    fn finish_folders(&self, plan: &ForkPlan) -> Result<base::FolderPrints, ForkError> {
        let mut prints = base::FolderPrints::new();
        for (path, mode) in plan.folders.iter().rev() {
            let failed = |source| self.failed(path, source);
            let folder = self.root.folder(path.as_bytes(), Access::Read).map_err(failed)?;
            if stat_open(&folder).map_err(failed)?.mode() != mode & 0o777 {
                disk::set_mode(&folder, *mode).map_err(failed)?;
            }
            // In this order: a name that another program adds after this moment changes the fingerprint.
            let fingerprint = stat_open(&folder).map_err(failed)?.fingerprint;
            let names = names_in(&folder).map_err(failed)?;
            prints.insert(path.as_bytes().to_vec(), (fingerprint, names));
        }
        Ok(prints)
    }

    pub(super) fn failed(&self, path: &WorkPath, source: io::Error) -> ForkError {
        ForkError::Write { folder: self.path().to_owned(), path: path.clone(), source }
    }
}

/// The owner must be able to write into every folder until the fork is complete.
pub(super) const OWN: u32 = 0o700;

/// The marker, made if it is missing.
fn mark(root: &Root) -> io::Result<File> {
    match disk::make_folder(root, OWN_FOLDER, 0o755) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let own = root.folder(OWN_FOLDER, Access::Reach)?;
    match disk::create_file(&own, MARKER) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            Ok(File::from(rustix::fs::openat(&own, MARKER, flags, Mode::empty())?))
        }
        made => made,
    }
}
