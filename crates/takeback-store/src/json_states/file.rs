//! One file: read without following links, told apart from a damaged one, locked.

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

/// The format of the files that have one. Those of other programs have none.
pub(super) const FORMAT: u64 = 1;

pub(super) fn io_error(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> StateError {
    move |source| StateError::Io { path: path.to_owned(), doing, source }
}

/// Why a file cannot be used.
#[derive(Debug)]
pub(super) enum Unusable {
    Damaged(String),
    Newer(u64),
}

/// The bytes of a file; `None` if there is none. Neither a link nor anything but a file is opened.
pub(super) fn bytes(path: &Path) -> Result<Option<Result<Vec<u8>, Unusable>>, StateError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened =
        std::fs::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let damaged = |why: &str| Ok(Some(Err(Unusable::Damaged(why.to_owned()))));
    let mut file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return damaged("it is a link");
        }
        Err(error) => return Err(io_error(path, "read it")(error)),
    };
    if !file.metadata().map_err(io_error(path, "read it"))?.is_file() {
        return damaged("it is not a file");
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(io_error(path, "read it"))?;
    Ok(Some(Ok(bytes)))
}

pub(super) fn json(bytes: &[u8]) -> Result<Value, Unusable> {
    if bytes.is_empty() {
        return Err(Unusable::Damaged("it is empty".to_owned()));
    }
    serde_json::from_slice(bytes).map_err(|error| Unusable::Damaged(format!("no JSON: {error}")))
}

/// The fields of a file, checked against their checksum if it has one.
pub(super) fn fields(bytes: &[u8]) -> Result<Map<String, Value>, Unusable> {
    let damaged = |why: &str| Unusable::Damaged(why.to_owned());
    let Value::Object(mut fields) = json(bytes)? else {
        return Err(damaged("it is no object"));
    };
    let format =
        fields.get("format").map(|format| format.as_u64().ok_or("its format is no number"));
    let format = format.transpose().map_err(damaged)?;
    if let Some(found) = format.filter(|found| *found > FORMAT) {
        return Err(Unusable::Newer(found));
    }
    match fields.remove("checksum") {
        Some(checksum) if checksum != checksum_of(&fields) => {
            return Err(damaged("its checksum is another"));
        }
        None if format.is_some() => return Err(damaged("it has no checksum")),
        _ => {}
    }
    Ok(fields)
}

/// The text of a file with these fields, a format and a checksum.
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

/// The path of the lock of a file: beside it, as the programs have it that this layout is from.
pub(super) fn lock_path(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    lock.into()
}

/// Held until dropped, or until the process ends in any way.
#[derive(Debug)]
pub(super) struct Held {
    file: File,
}

impl Held {
    /// Notes that the save with this number was done. Not durable, and nothing depends on it: without
    /// the note, a checkpoint whose file is gone is taken for one that was never written.
    pub(super) fn note_saved(&self, position: u64) {
        drop(disk::overwrite(&self.file, format!("{position:020}\n").as_bytes()));
    }
}

/// The number of the last save to a file, if its lock has a note of it.
pub(super) fn noted_save(path: &Path) -> Option<u64> {
    let bytes = bytes(&lock_path(path)).ok()??.ok()?;
    str::from_utf8(&bytes).ok()?.trim_end().parse().ok()
}

/// The lock of a file. Lock files stay for as long as what they are for, and are removed with it by
/// whoever holds them: so a lock counts only if its name still leads to it.
pub(super) fn lock(path: &Path, patience: Duration) -> Result<Held, StateError> {
    let lock = lock_path(path);
    let failed = || io_error(&lock, "lock it");
    let until = Instant::now() + patience;
    let mut pause = Duration::from_millis(1);
    loop {
        let file = disk::open_private_file(&lock).map_err(failed())?;
        match file.try_lock() {
            Ok(()) => {
                let held = file.metadata().map_err(failed())?;
                let named = std::fs::symlink_metadata(&lock);
                if named.is_ok_and(|named| (named.dev(), named.ino()) == (held.dev(), held.ino())) {
                    return Ok(Held { file });
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
    // Looked for first: to remove what is not there is no step at which a crash would matter.
    if std::fs::symlink_metadata(path).is_err() {
        return Ok(false);
    }
    match disk::remove_store_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true).map_err(io_error(path, "remove it")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_lock_that_was_removed_while_it_was_opened_is_not_held() {
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
