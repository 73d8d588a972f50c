//! `inbox/scan`: the mark that files are left to read, because an event had no time for them.
//!
//! The process that reads them locks the file, writes its progress into it, and removes it when nothing
//! is left. There is at most one; a file without a lock waits for a process that has the time.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use takeback_store::{StoreError, disk};

use super::{Inbox, if_exists, try_share};
use crate::lock::is_named;

/// A claim on reading the remaining files. Dropped before [`Self::done`], they wait for another process.
#[derive(Debug)]
pub struct BackgroundScan {
    file: File,
    path: PathBuf,
}

/// The progress of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ScanProgress {
    /// Bytes that have been read.
    pub read: u64,
    /// Of how many; 0: unknown.
    pub of: u64,
}

impl Inbox {
    /// Notes that files are left to read.
    pub(crate) fn request_scan(&self) -> Result<(), StoreError> {
        disk::make_private_folder(&self.folder)
            .and_then(|()| disk::open_private_file(&self.scan_file()))
            .map(drop)
            .map_err(self.failed("requesting a scan"))
    }

    /// Whether files are left to read, and no process reads them.
    pub fn wants_scan(&self) -> Result<bool, StoreError> {
        let file = if_exists(File::open(self.scan_file()));
        let is_free = file.and_then(|file| file.map_or(Ok(false), |file| try_share(&file)));
        is_free.map_err(self.failed("looking for a scan"))
    }

    /// The progress of the process that reads the remaining files; `None`: no process does.
    pub fn scan_progress(&self) -> Result<Option<ScanProgress>, StoreError> {
        let read = || {
            let Some(file) = if_exists(File::open(self.scan_file()))? else { return Ok(None) };
            if try_share(&file)? {
                return Ok(None);
            }
            let mut bytes = [0; 100];
            let length = file.read_at(&mut bytes, 0)?;
            Ok(Some(serde_json::from_slice(&bytes[..length]).unwrap_or_default()))
        };
        read().map_err(self.failed("looking for a scan"))
    }

    /// `None`: another process reads the remaining files, or there are none.
    pub fn claim_scan(&self) -> Result<Option<BackgroundScan>, StoreError> {
        let path = self.scan_file();
        let claim = || {
            let file = if_exists(File::options().read(true).append(true).open(&path))?;
            let Some(file) = file else { return Ok(None) };
            match file.try_lock() {
                Ok(()) => {
                    Ok(is_named(&file, &path)?.then(|| BackgroundScan { file, path: path.clone() }))
                }
                Err(TryLockError::WouldBlock) => Ok(None),
                Err(TryLockError::Error(error)) => Err(error),
            }
        };
        claim().map_err(self.failed("beginning a scan"))
    }

    fn scan_file(&self) -> PathBuf {
        self.folder.join("scan")
    }
}

impl BackgroundScan {
    /// For [`Inbox::scan_progress`]. Not durable.
    pub fn report(&mut self, progress: ScanProgress) -> io::Result<()> {
        disk::shorten(&self.file, 0)?;
        disk::append(&mut self.file, &serde_json::to_vec(&progress)?)
    }

    /// Nothing is left to read.
    pub fn done(self) -> io::Result<()> {
        disk::remove_store_file(&self.path)
    }
}
