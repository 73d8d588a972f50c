//! What `init` has put where: `<home>/installed/<hash of the file's path>.json`, and the bytes that a
//! settings file had before, beside it.
//!
//! Without it `uninstall` still finds Takeback's hooks; with it, it knows whether anything else has changed
//! since, and brings the very bytes back.

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
pub(crate) struct Installed {
    /// When the hooks were first put in.
    pub(crate) at: Timestamp,
    /// For people who look in here.
    pub(crate) file: String,
    /// What was there before the first hook; `None`: no file.
    pub(crate) before: Option<Digest>,
    /// The file as Takeback left it; `None`: another program changed it between two runs.
    pub(crate) after: Option<Digest>,
    /// How many of the folders above the file were made for it.
    pub(crate) folders: usize,
}

const FOLDER: &str = "installed";
const BACKUP: &str = ".takeback-backup";
/// `init` does not prompt while it holds the lock.
const PATIENCE: Duration = Duration::from_secs(10);

impl Installed {
    pub(crate) fn of(file: &Path, home: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(record(file, home)).ok()?).ok()
    }

    pub(crate) fn note(&self, file: &Path, home: &Path) -> io::Result<()> {
        disk::replace_private_file_durably(&record(file, home), &serde_json::to_vec(self)?)
    }
}

/// Whether anything was ever put anywhere.
pub(crate) fn is_anything(home: &Path) -> bool {
    home.join(FOLDER).is_dir()
}

/// Forgets that anything was put into `file`, and removes the bytes of before.
pub(crate) fn forget(file: &Path, home: &Path) -> io::Result<()> {
    for path in [backup_of(file), record(file, home)] {
        match disk::remove_store_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
    }
    Ok(())
}

/// Where the bytes of before lie.
pub(crate) fn backup_of(file: &Path) -> PathBuf {
    with_end(file, BACKUP)
}

/// Keeps the bytes of before, durably; what is kept already stays.
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

/// Removes folders above `file` that are empty, at most `count`.
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
pub(crate) fn hold(home: &Path) -> Result<Lock, CommandError> {
    let folder = home.join(FOLDER);
    let failed = |error: io::Error| {
        CommandError::new(Kind::Error, format!("{} cannot be used: {error}", folder.display()))
            .hint("Make it writable for you, or choose another home with --home or TAKEBACK_HOME.")
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
