//! A look at the tree for which there was no time, and which goes on in the background.
//!
//! `going-on` in the store says that there is something left to read. Whoever reads it has the file
//! locked, writes into it now and then how far it is, and removes it when nothing is left. There is
//! one at most; a file that nobody has locked wants somebody.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use takeback_store::disk;

use crate::lock::is_named;

/// The right to be the one who reads.
#[derive(Debug)]
pub struct GoingOn {
    file: File,
    path: PathBuf,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Going {
    /// Bytes that have been read.
    pub read: u64,
    /// Of how many; 0: nobody knows.
    pub of: u64,
}

/// Says that there is something left to read.
pub(crate) fn want(store_dir: &Path) -> io::Result<()> {
    disk::open_private_file(&file_of(store_dir)).map(drop)
}

/// Whether something is left to read, and nobody reads it.
pub fn is_wanted(store_dir: &Path) -> io::Result<bool> {
    match File::open(file_of(store_dir)) {
        Ok(file) => is_free(&file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// How far somebody is who reads what was left; `None`: nobody does.
pub fn how_far(store_dir: &Path) -> io::Result<Option<Going>> {
    let file = match File::open(file_of(store_dir)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if is_free(&file)? {
        return Ok(None);
    }
    let mut bytes = [0; 100];
    let length = file.read_at(&mut bytes, 0)?;
    Ok(Some(serde_json::from_slice(&bytes[..length]).unwrap_or_default()))
}

impl GoingOn {
    /// `None`: somebody else is at it, or nothing is left.
    pub fn begin(store_dir: &Path) -> io::Result<Option<Self>> {
        let path = file_of(store_dir);
        let file = match File::options().read(true).append(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        match file.try_lock() {
            Ok(()) => Ok(is_named(&file, &path)?.then_some(Self { file, path })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// For whoever asks; nothing hangs on it.
    pub fn tell(&mut self, going: Going) -> io::Result<()> {
        disk::shorten(&self.file, 0)?;
        disk::append(&mut self.file, &serde_json::to_vec(&going)?)
    }

    /// Nothing is left.
    pub fn done(self) -> io::Result<()> {
        disk::remove_store_file(&self.path)
    }
}

fn is_free(file: &File) -> io::Result<bool> {
    match file.try_lock_shared() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn file_of(store_dir: &Path) -> PathBuf {
    store_dir.join("going-on")
}
