//! A copy of the workspace's files, as they were at a position of the log, in another folder.
//!
//! The copy can be moved to another position: then only what differs is written, so that a build in it
//! stays incremental. What another program changed in it meanwhile is put right; files that the log does not
//! know (build output) stay. Everything is written below the copy's folder, and never through a link.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType};
use takeback_store::{Entry, Seq, Store, StoreError, WorkPath, disk};

use crate::worktree::Root;
use crate::worktree::fingerprint::{Fingerprint, stat};

/// A copy.
pub struct TreeCopy {
    root: Root,
    /// The workspace that it is a copy of.
    original: PathBuf,
    /// What was written, with the fingerprint after writing; a folder has none.
    written: BTreeMap<WorkPath, (Entry, Option<Fingerprint>)>,
}

/// What a copy lacks, because the log does not have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CopyGaps {
    /// Files whose contents were not captured, or are lost.
    pub missing: Vec<WorkPath>,
}

/// Why a copy could not be written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CopyError {
    #[error("cannot open {path}")]
    Open { path: PathBuf, source: io::Error },
    #[error("cannot write {} in the copy", path.display())]
    Write { path: WorkPath, source: io::Error },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl TreeCopy {
    /// A copy of the workspace at `original`, in an existing, empty folder. Both are canonical.
    pub fn in_folder(folder: &Path, original: &Path) -> Result<Self, CopyError> {
        let open = |source| CopyError::Open { path: folder.to_owned(), source };
        let root = Root::open(folder).map_err(open)?;
        Ok(Self { root, original: original.to_owned(), written: BTreeMap::new() })
    }

    /// Makes the copy what the workspace was at `seq`.
    pub fn move_to(&mut self, store: &dyn Store, seq: Seq) -> Result<CopyGaps, CopyError> {
        let wanted = entries_at(store, seq)?;
        let gone: Vec<WorkPath> =
            self.written.keys().filter(|path| !wanted.contains_key(path)).cloned().collect();
        // Deepest first: a folder is emptied before it goes.
        for path in gone.into_iter().rev() {
            self.remove(&path).map_err(|source| CopyError::Write { path: path.clone(), source })?;
            self.written.remove(&path);
        }
        let mut gaps = CopyGaps::default();
        for (path, entry) in wanted {
            let failed = |source| CopyError::Write { path: path.clone(), source };
            if self.is_there(&path, &entry).map_err(failed)? {
                continue;
            }
            let contents = match &entry {
                Entry::File { digest, .. } => match store.contents(digest) {
                    Err(error) if error.is_lost_contents() => None,
                    contents => Some(contents?),
                },
                Entry::Symlink { .. } | Entry::Dir { .. } => Some(Vec::new()),
                Entry::Absent | Entry::NotCaptured { .. } | Entry::Unknown => None,
            };
            match contents {
                Some(contents) => {
                    let written = self.write(&path, &entry, &contents).map_err(failed)?;
                    self.written.insert(path, (entry, written));
                }
                None => gaps.missing.push(path),
            }
        }
        Ok(gaps)
    }

    /// Whether this entry was written and nothing touched it since.
    fn is_there(&self, path: &WorkPath, entry: &Entry) -> io::Result<bool> {
        let Some((written, fingerprint)) = self.written.get(path) else { return Ok(false) };
        if written != entry {
            return Ok(false);
        }
        let Ok(parent) = self.root.parent_of(path) else { return Ok(false) };
        let found = stat(&parent, path.file_name())?;
        Ok(match fingerprint {
            Some(fingerprint) => found.is_some_and(|found| found.fingerprint == *fingerprint),
            None => found.is_some_and(|found| found.kind == FileType::Directory),
        })
    }

    fn remove(&self, path: &WorkPath) -> io::Result<()> {
        // A program in the copy may have removed the folder already.
        let Ok(parent) = self.root.parent_of(path) else { return Ok(()) };
        match stat(&parent, path.file_name())? {
            None => Ok(()),
            Some(found) if found.kind == FileType::Directory => {
                match disk::remove_folder(&parent, path.file_name()) {
                    // It holds what a program made there.
                    Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
                    removed => removed,
                }
            }
            Some(_) => disk::unlink(&parent, path.file_name()),
        }
    }

    /// Writes one entry in place of whatever is there. The fingerprint of a file or link.
    fn write(
        &self,
        path: &WorkPath,
        entry: &Entry,
        contents: &[u8],
    ) -> io::Result<Option<Fingerprint>> {
        let parent = self.folder_for(path)?;
        let name = path.file_name();
        let found = stat(&parent, name)?;
        if let Entry::Dir { mode } = entry {
            match found {
                Some(found) if found.kind == FileType::Directory => {}
                Some(_) => {
                    disk::unlink(&parent, name)?;
                    disk::make_folder(&parent, name, mode | OWN)?;
                }
                None => disk::make_folder(&parent, name, mode | OWN)?,
            }
            return Ok(None);
        }
        if found.is_some() {
            clear(&parent, name)?;
        }
        match entry {
            Entry::Symlink { target } => {
                disk::create_symlink(&parent, name, &self.inside(target))?;
            }
            Entry::File { mode, .. } => {
                let mut file = disk::create_file(&parent, name)?;
                disk::append(&mut file, contents)?;
                disk::set_mode(&OwnedFd::from(file), *mode)?;
            }
            Entry::Dir { .. } | Entry::Absent | Entry::NotCaptured { .. } | Entry::Unknown => {}
        }
        Ok(stat(&parent, name)?.map(|found| found.fingerprint))
    }

    /// A link's target. One into the workspace leads into the copy: a program that runs there must not
    /// write to the user's files.
    fn inside(&self, target: &[u8]) -> Vec<u8> {
        link_into(target, &self.original, self.root.path())
    }

    /// The folder that a path is in, made if the log does not have it.
    fn folder_for(&self, path: &WorkPath) -> io::Result<OwnedFd> {
        if let Ok(parent) = self.root.parent_of(path) {
            return Ok(parent);
        }
        let mut above: Vec<WorkPath> = path.ancestors().collect();
        above.reverse();
        for folder in above {
            let parent = self.root.parent_of(&folder)?;
            let name = folder.file_name();
            match stat(&parent, name)? {
                Some(found) if found.kind == FileType::Directory => continue,
                Some(_) => disk::unlink(&parent, name)?,
                None => {}
            }
            disk::make_folder(&parent, name, 0o755)?;
        }
        self.root.parent_of(path)
    }
}

/// The owner must be able to write into every folder of a copy.
const OWN: u32 = 0o700;

/// A link's target; one that is an absolute path into the folder `from` leads to the same place in `to`.
pub(crate) fn link_into(target: &[u8], from: &Path, to: &Path) -> Vec<u8> {
    match Path::new(OsStr::from_bytes(target)).strip_prefix(from) {
        // Joined to an empty path, the folder itself would get a slash at its end.
        Ok(below) if below.as_os_str().is_empty() => to.as_os_str().as_bytes().to_vec(),
        Ok(below) => to.join(below).into_os_string().into_vec(),
        Err(_) => target.to_vec(),
    }
}

/// Every path inside the workspace that existed at a position.
pub(crate) fn entries_at(
    store: &dyn Store,
    seq: Seq,
) -> Result<BTreeMap<WorkPath, Entry>, StoreError> {
    let mut entries = all_entries_at(store, seq)?;
    entries.retain(|_, entry| *entry != Entry::Unknown);
    Ok(entries.into_iter().collect())
}

/// The same, with the paths that were not looked at before.
pub(crate) fn all_entries_at(
    store: &dyn Store,
    seq: Seq,
) -> Result<HashMap<WorkPath, Entry>, StoreError> {
    let mut entries: HashMap<WorkPath, Entry> = store.latest()?.into_iter().collect();
    for change in store.changes_after(seq)?.into_iter().rev() {
        entries.insert(change.path, change.before);
    }
    entries.retain(|path, entry| !path.is_outside() && *entry != Entry::Absent);
    Ok(entries)
}

/// Removes a file, or a folder with all that is in it.
fn clear(parent: impl AsFd, name: &[u8]) -> io::Result<()> {
    let flags =
        rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC;
    let found = rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
        return disk::unlink(parent, name);
    }
    let folder = rustix::fs::openat(&parent, name, flags, rustix::fs::Mode::empty())?;
    let names: Vec<Vec<u8>> = rustix::fs::Dir::read_from(&folder)?
        .map(|entry| entry.map(|entry| entry.file_name().to_bytes().to_vec()))
        .collect::<Result<_, _>>()?;
    for inner in names.iter().filter(|name| !matches!(name.as_slice(), b"." | b"..")) {
        clear(&folder, inner)?;
    }
    disk::remove_folder(parent, name)
}
