//! The file a bundle is written to: complete, or not there at all.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType};
use takeback_store::disk;

/// Whether an existing file is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// It stays, and writing fails.
    No,
    /// The new file replaces it.
    Yes,
}

/// Why a file was not written. An existing one is unchanged.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum FileError {
    #[error("{path} already exists")]
    Taken { path: PathBuf },
    #[error("{path} is not a file")]
    NotAFile { path: PathBuf },
    #[error("cannot write {path}")]
    Io { path: PathBuf, source: io::Error },
}

/// Lets `write` fill a new private file next to `path`, and renames it to `path` once it is complete and
/// durable. If anything fails, `path` is unchanged and the new file is removed.
pub fn write_file<T, E: From<FileError>>(
    path: &Path,
    overwrite: Overwrite,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<T, E> {
    let failed = |source| FileError::Io { path: path.to_owned(), source };
    match rustix::fs::lstat(path) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile => {
            return Err(FileError::NotAFile { path: path.to_owned() }.into());
        }
        Ok(_) if overwrite == Overwrite::No => {
            return Err(FileError::Taken { path: path.to_owned() }.into());
        }
        _ => {}
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let file = disk::create_private_file(&beside).map_err(failed)?;
    let mut sink = BufferedAppender { file, buffer: Vec::new() };
    let done = write(&mut sink).and_then(|value| {
        sink.flush().and_then(|()| disk::sync(&sink.file)).map_err(failed)?;
        place(&beside, path, overwrite)?;
        Ok(value)
    });
    match done {
        Ok(value) => {
            let folder = path.parent().unwrap_or(Path::new(""));
            disk::sync_folder(folder).map_err(failed)?;
            Ok(value)
        }
        Err(error) => {
            // If it cannot be removed, its name shows where it comes from.
            drop(disk::remove_store_file(&beside));
            Err(error)
        }
    }
}

fn place(beside: &Path, path: &Path, overwrite: Overwrite) -> Result<(), FileError> {
    let failed = |source| FileError::Io { path: path.to_owned(), source };
    match disk::place_private_file(beside, path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match overwrite {
            Overwrite::No => Err(FileError::Taken { path: path.to_owned() }),
            Overwrite::Yes => {
                let (new, old) = (beside.as_os_str().as_bytes(), path.as_os_str().as_bytes());
                match disk::exchange(CWD, new, CWD, old) {
                    Ok(()) => disk::remove_store_file(beside).map_err(failed),
                    // The file system cannot exchange names: for a moment `path` does not exist.
                    Err(_) => disk::remove_store_file(path)
                        .and_then(|()| disk::place_private_file(beside, path))
                        .map_err(failed),
                }
            }
        },
        placed => placed.map_err(failed),
    }
}

/// Collects writes until a system call is worth it.
struct BufferedAppender {
    file: File,
    buffer: Vec<u8>,
}

impl Write for BufferedAppender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        const WORTH: usize = 1 << 20;
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= WORTH {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            disk::append(&mut self.file, &self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}
