//! Single files: reading without following symlinks, checksums, locks.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use serde_json::{Map, Value};

use crate::blob::Digest;
use crate::disk;
use crate::state::StateError;

/// The format number in Takeback's own files. Files of other programs have none.
pub(super) const FORMAT: u64 = 1;

pub(super) fn io_error(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> StateError {
    move |source| StateError::Io { path: path.to_owned(), doing, source }
}

/// Why a file cannot be used.
#[derive(Debug)]
pub(super) enum FileError {
    Damaged(String),
    Newer(u64),
}

/// The bytes of a file; `None` if it does not exist. Only regular files are opened, never symlinks.
pub(super) fn bytes(path: &Path) -> Result<Option<Result<Vec<u8>, FileError>>, StateError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened =
        std::fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let damaged = |why: &str| Ok(Some(Err(FileError::Damaged(why.to_owned()))));
    let mut file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return damaged("it is a link");
        }
        Err(error) => return Err(io_error(path, "reading it")(error)),
    };
    if !file.metadata().map_err(io_error(path, "reading it"))?.is_file() {
        return damaged("it is not a file");
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(io_error(path, "reading it"))?;
    Ok(Some(Ok(bytes)))
}

pub(super) fn json(bytes: &[u8]) -> Result<Value, FileError> {
    if bytes.is_empty() {
        return Err(FileError::Damaged("it is empty".to_owned()));
    }
    serde_json::from_slice(bytes)
        .map_err(|error| FileError::Damaged(format!("it is not JSON: {error}")))
}

/// The fields of a file, verified if it has a checksum.
pub(super) fn fields(bytes: &[u8]) -> Result<Map<String, Value>, FileError> {
    let damaged = |why: &str| FileError::Damaged(why.to_owned());
    let Value::Object(mut fields) = json(bytes)? else {
        return Err(damaged("it is not a JSON object"));
    };
    let format =
        fields.get("format").map(|format| format.as_u64().ok_or("its format is not a number"));
    let format = format.transpose().map_err(damaged)?;
    if let Some(found) = format.filter(|found| *found > FORMAT) {
        return Err(FileError::Newer(found));
    }
    match fields.remove("checksum") {
        Some(checksum) if checksum != checksum_of(&fields) => {
            return Err(damaged("its checksum does not match"));
        }
        None if format.is_some() => return Err(damaged("it has no checksum")),
        _ => {}
    }
    Ok(fields)
}

/// The bytes of a file with these fields, plus format and checksum.
pub(super) fn text(mut fields: Map<String, Value>) -> Vec<u8> {
    fields.insert("format".to_owned(), FORMAT.into());
    fields.insert("checksum".to_owned(), checksum_of(&fields).into());
    pretty(&Value::Object(fields))
}

pub(super) fn pretty(value: &Value) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).expect("JSON can be written");
    text.push(b'\n');
    text
}

fn checksum_of(fields: &Map<String, Value>) -> String {
    Digest::of(&serde_json::to_vec(fields).expect("JSON can be written")).to_string()
}

/// The path of a file's lock, in the place where other programs with this layout expect it.
pub(super) fn lock_path(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    lock.into()
}

/// A lock, held until it is dropped or the process ends.
#[derive(Debug)]
pub(super) struct FileLock {
    file: File,
}

impl FileLock {
    /// Notes in the lock file that the save with this number happened. Not durable, and nothing
    /// depends on it: without the note, a checkpoint whose file is gone counts as never written.
    pub(super) fn note_saved(&self, position: u64) {
        drop(disk::overwrite(&self.file, format!("{position:020}\n").as_bytes()));
    }
}

/// The number of the last save to a file, if its lock file has a note of it.
pub(super) fn noted_save(path: &Path) -> Option<u64> {
    let bytes = bytes(&lock_path(path)).ok()??.ok()?;
    str::from_utf8(&bytes).ok()?.trim_end().parse().ok()
}

/// Locks a file. The holder of a lock may remove the lock file together with its file, so a lock is
/// valid only if its name still refers to the locked inode.
pub(super) fn lock(path: &Path, lock_timeout: Duration) -> Result<FileLock, StateError> {
    let lock = lock_path(path);
    let failed = || io_error(&lock, "locking it");
    let until = Instant::now() + lock_timeout;
    let mut pause = Duration::from_millis(1);
    loop {
        let file = disk::open_private_file(&lock).map_err(failed())?;
        match file.try_lock() {
            Ok(()) => {
                let held = file.metadata().map_err(failed())?;
                let named = std::fs::symlink_metadata(&lock);
                // The previous holder may have removed the file: then this lock excludes no other process.
                if named.is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())) {
                    return Ok(FileLock { file });
                }
            }
            Err(TryLockError::Error(error)) => return Err(failed()(error)),
            Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                return Err(StateError::Locked { path: path.to_owned() });
            }
            Err(TryLockError::WouldBlock) => {
                std::thread::sleep(pause.min(until.saturating_duration_since(Instant::now())));
                pause = (pause * 2).min(Duration::from_millis(20));
            }
        }
    }
}

pub(super) fn remove(path: &Path) -> Result<bool, StateError> {
    // Check first: removing a missing file must not pass a crash point.
    if std::fs::symlink_metadata(path).is_err() {
        return Ok(false);
    }
    match disk::remove_store_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true).map_err(io_error(path, "removing it")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_lock_file_removed_while_opening_it_is_not_a_lock() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("e.json");
        let is_held = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1500 {
                        let held = lock(&path, Duration::from_secs(60)).unwrap();
                        assert!(!is_held.swap(true, Ordering::SeqCst), "held by two");
                        is_held.store(false, Ordering::SeqCst);
                        assert!(remove(&lock_path(&path)).unwrap());
                        drop(held);
                    }
                });
            }
        });
    }
}
