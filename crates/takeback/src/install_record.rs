//! What `init` installed where: `<home>/installed/<hash of the file's path>.json`, with a backup of the
//! original bytes next to each settings file.
//!
//! `uninstall` finds Takeback's hooks without it. With it, `uninstall` knows whether the file has changed
//! since, and can restore its original bytes.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::CWD;
use serde::{Deserialize, Serialize};
use takeback_core::lock::{Hold, Lock, lock};
use takeback_store::{Digest, Timestamp, disk};

use crate::error::{CommandError, Kind};
use crate::foreign_file::{with_end, write_new};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InstallRecord {
    /// When the hooks were first installed.
    pub(crate) at: Timestamp,
    /// The settings file, for people who read the record.
    pub(crate) file: String,
    /// The original contents; `None`: there was no file.
    pub(crate) before: Option<Digest>,
    /// The file as Takeback left it; `None`: another program changed it between two runs.
    pub(crate) after: Option<Digest>,
    /// How many parent folders were created for the file.
    pub(crate) folders: usize,
}

const FOLDER: &str = "installed";
const BACKUP: &str = ".takeback-backup";
/// `init` does not prompt while it holds the lock.
const PATIENCE: Duration = Duration::from_secs(10);

impl InstallRecord {
    pub(crate) fn of(file: &Path, home: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(record(file, home)).ok()?).ok()
    }

    pub(crate) fn note(&self, file: &Path, home: &Path) -> io::Result<()> {
        disk::replace_private_file_durably(&record(file, home), &serde_json::to_vec(self)?)
    }
}

/// Whether anything was ever installed.
pub(crate) fn has_any(home: &Path) -> bool {
    home.join(FOLDER).is_dir()
}

/// Removes the record and the backup of `file`.
pub(crate) fn forget(file: &Path, home: &Path) -> io::Result<()> {
    for path in [backup_of(file), record(file, home)] {
        match disk::remove_store_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
    }
    Ok(())
}

/// The path of the backup.
pub(crate) fn backup_of(file: &Path) -> PathBuf {
    with_end(file, BACKUP)
}

/// Writes the backup durably. An existing backup is kept.
pub(crate) fn back_up(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let backup = backup_of(file);
    if backup.symlink_metadata().is_ok() {
        return Ok(());
    }
    let beside = with_end(&backup, &format!(".{}", std::process::id()));
    let written = write_new(&beside, bytes, 0o600).and_then(|()| {
        disk::place_private_file(&beside, &backup)?;
        disk::sync_folder(file.parent().unwrap_or(Path::new("")))
    });
    if written.is_err() && beside.exists() {
        drop(disk::remove_store_file(&beside));
    }
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        written => written,
    }
}

/// Removes at most `count` empty parent folders of `file`.
pub(crate) fn remove_empty_folders(file: &Path, count: usize) -> io::Result<()> {
    for folder in file.ancestors().skip(1).take(count) {
        let is_empty = std::fs::read_dir(folder).is_ok_and(|mut names| names.next().is_none());
        if !is_empty {
            return Ok(());
        }
        disk::remove_folder(CWD, folder.as_os_str().as_bytes())?;
    }
    Ok(())
}

/// While this is held, no other process installs or removes hooks.
pub(crate) fn lock_installs(home: &Path) -> Result<Lock, CommandError> {
    let folder = home.join(FOLDER);
    let failed = |error: io::Error| {
        CommandError::new(Kind::Error, format!("{} cannot be used: {error}", folder.display()))
            .hint("Make it writable, or choose another home with --home or TAKEBACK_HOME.")
    };
    disk::make_private_folder(&folder).map_err(failed)?;
    lock(&folder.join("lock"), Hold::Exclusive, PATIENCE).map_err(failed)?.ok_or_else(|| {
        CommandError::new(Kind::Locked, "another `takeback init` or `uninstall` is running")
            .hint("Try again in a moment.")
    })
}

fn record(file: &Path, home: &Path) -> PathBuf {
    let hash = blake3::hash(file.as_os_str().as_bytes()).to_hex();
    home.join(FOLDER).join(format!("{}.json", &hash[..16]))
}
