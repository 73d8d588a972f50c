//! A file of another program: replaced atomically, or left as it is.
//!
//! Links are followed, so that a linked file stays where it is. Mode and owner are kept. The new contents are
//! durable under another name before they replace the file. Then the replaced contents are checked: if they
//! are not what the caller had read, the replacement is undone.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use takeback_store::disk;

/// The file as it was when it was read.
#[derive(Debug, Clone)]
pub(crate) struct ForeignFile {
    /// Its path, with links resolved.
    pub(crate) path: PathBuf,
    /// `None`: the file does not exist.
    pub(crate) bytes: Option<Vec<u8>>,
    mode: u32,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("{path} is not a file")]
    NotAFile { path: PathBuf },
    #[error("{path} is a link to {target}, which does not exist")]
    LeadsNowhere { path: PathBuf, target: PathBuf },
    #[error("{path} is larger than {LARGEST} bytes")]
    TooLarge { path: PathBuf },
    #[error("{path} belongs to another user")]
    OtherOwner { path: PathBuf },
    #[error("{path} has other names (hard links), which would keep the old contents")]
    ManyNames { path: PathBuf },
    #[error("{path} was just changed by another program")]
    Changed { path: PathBuf },
    #[error("{doing} {path}")]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
}

/// Larger than any settings file.
const LARGEST: u64 = 16 << 20;

impl ForeignFile {
    /// Reads the file. `mode`: for a new file.
    pub(crate) fn read(path: &Path, mode: u32) -> Result<Self, FileError> {
        let at = |path: &Path| path.to_owned();
        let reading = |source| FileError::Io { path: at(path), doing: "reading", source };
        let real = match std::fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Ok(target) = std::fs::read_link(path) {
                    return Err(FileError::LeadsNowhere { path: at(path), target });
                }
                let path = with_real_folder(path);
                return Ok(Self { path, bytes: None, mode });
            }
            Err(error) => return Err(reading(error)),
        };
        let about = std::fs::metadata(&real).map_err(reading)?;
        if !about.is_file() {
            return Err(FileError::NotAFile { path: real });
        }
        let mut bytes = Vec::new();
        let file = File::open(&real).map_err(reading)?;
        file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(reading)?;
        if bytes.len() as u64 > LARGEST {
            return Err(FileError::TooLarge { path: real });
        }
        let mode = about.permissions().mode() & 0o7777;
        Ok(Self { path: real, bytes: Some(bytes), mode })
    }

    /// Checks whether this user can safely replace the file, as far as that can be known in advance.
    pub(crate) fn may_be_replaced(&self) -> Result<(), FileError> {
        let me = rustix::process::geteuid().as_raw();
        let path = self.path.clone();
        match std::fs::metadata(&self.path) {
            Ok(about) if about.uid() != me => Err(FileError::OtherOwner { path }),
            Ok(about) if about.nlink() > 1 => Err(FileError::ManyNames { path }),
            Ok(_) => Ok(()),
            // A file that root creates in another user's folder could no longer be changed by that user.
            Err(_) => match self.path.ancestors().skip(1).find_map(|f| std::fs::metadata(f).ok()) {
                Some(folder) if me == 0 && folder.uid() != 0 => Err(FileError::OtherOwner { path }),
                _ => Ok(()),
            },
        }
    }

    /// Missing parent folders, nearest first.
    pub(crate) fn missing_folders(&self) -> Vec<PathBuf> {
        let above = self.path.ancestors().skip(1);
        above.take_while(|folder| !folder.exists()).map(Path::to_owned).collect()
    }

    /// Replaces the contents. On failure, the file is unchanged.
    pub(crate) fn replace(&self, bytes: &[u8]) -> Result<(), FileError> {
        self.may_be_replaced()?;
        let failed = |doing| move |source| FileError::Io { path: self.path.clone(), doing, source };
        for folder in self.missing_folders().iter().rev() {
            let mode = if self.mode & 0o077 == 0 { 0o700 } else { 0o755 };
            match disk::make_folder(CWD, folder.as_os_str().as_bytes(), mode) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed("creating the folder of")(error));
                }
                _ => {}
            }
        }
        let beside = self.beside("new");
        let done = write_new(&beside, bytes, self.mode)
            .map_err(failed("writing a new version of"))
            .and_then(|()| self.put(&beside));
        if done.is_err() && beside.exists() {
            drop(disk::remove_store_file(&beside));
        }
        done?;
        let folder = self.path.parent().unwrap_or(Path::new(""));
        disk::sync_folder(folder).map_err(failed("syncing"))
    }

    /// Removes the file. On failure, it is unchanged.
    pub(crate) fn remove(&self) -> Result<(), FileError> {
        let failed = |doing| move |source| FileError::Io { path: self.path.clone(), doing, source };
        let aside = self.beside("old");
        disk::place_private_file(&self.path, &aside).map_err(failed("removing"))?;
        if std::fs::read(&aside).ok() != self.bytes {
            disk::place_private_file(&aside, &self.path).map_err(failed("restoring"))?;
            return Err(FileError::Changed { path: self.path.clone() });
        }
        disk::remove_store_file(&aside).map_err(failed("removing"))
    }

    /// Replaces this file by the finished file `new`.
    fn put(&self, new: &Path) -> Result<(), FileError> {
        let failed = |source| FileError::Io { path: self.path.clone(), doing: "replacing", source };
        let changed = || FileError::Changed { path: self.path.clone() };
        if self.bytes.is_none() {
            return match disk::place_private_file(new, &self.path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(changed()),
                placed => placed.map_err(failed),
            };
        }
        let [new_name, name] = [new, &self.path].map(|path| path.as_os_str().as_bytes());
        match disk::exchange(CWD, new_name, CWD, name) {
            Ok(()) if std::fs::read(new).ok() == self.bytes => {
                disk::remove_store_file(new).map_err(failed)
            }
            Ok(()) => {
                disk::exchange(CWD, new_name, CWD, name).map_err(failed)?;
                Err(changed())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(changed()),
            // This file system cannot exchange two files: keep the time between check and rename short.
            Err(_) if std::fs::read(&self.path).ok() == self.bytes => {
                disk::rename_private_file(new, &self.path).map_err(failed)
            }
            Err(_) => Err(changed()),
        }
    }

    /// Removes leftovers of interrupted changes next to the file. The caller must hold the lock.
    pub(crate) fn sweep(&self) -> io::Result<()> {
        let (Some(folder), Some(name)) = (self.path.parent(), self.path.file_name()) else {
            return Ok(());
        };
        let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let is_left = |end: &str| {
            let of_file = end.strip_suffix(".new").or_else(|| end.strip_suffix(".old"));
            of_file.or_else(|| end.strip_prefix("backup.")).is_some_and(is_number)
        };
        for entry in entries.filter_map(Result::ok) {
            let other = entry.file_name();
            let end = other.as_bytes().strip_prefix(name.as_bytes());
            let end = end.and_then(|end| std::str::from_utf8(end).ok());
            if end.and_then(|end| end.strip_prefix(".takeback-")).is_some_and(is_left) {
                disk::remove_store_file(&entry.path())?;
            }
        }
        Ok(())
    }

    fn beside(&self, what: &str) -> PathBuf {
        with_end(&self.path, &format!(".takeback-{}.{what}", std::process::id()))
    }
}

/// A path with a suffix added to its name.
pub(crate) fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

/// Writes a new file durably.
pub(crate) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        disk::remove_store_file(path)?;
    }
    let mut file = disk::create_private_file(path)?;
    disk::append(&mut file, bytes)?;
    disk::sync(&file)?;
    disk::set_mode(&OwnedFd::from(file), mode)
}

/// The path with links in its parent folder resolved, if that exists.
fn with_real_folder(path: &Path) -> PathBuf {
    path.ancestors()
        .skip(1)
        .find_map(|folder| {
            let real = std::fs::canonicalize(folder).ok()?;
            Some(real.join(path.strip_prefix(folder).ok()?))
        })
        .unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let names = std::fs::read_dir(folder).unwrap();
        names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn what_another_program_wrote_in_between_stays() {
        for plain in [false, true] {
            disk::only_plain_renames(plain);
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("settings.json");
            let absent = ForeignFile::read(&path, 0o600).unwrap();
            std::fs::write(&path, "old").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
            let file = ForeignFile::read(&path, 0o600).unwrap();
            std::fs::write(&path, "theirs").unwrap();
            let changed = |done| matches!(done, Err(FileError::Changed { .. }));
            assert!(changed(file.replace(b"new")) && changed(absent.replace(b"new")));
            assert!(changed(file.remove()));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "theirs");
            std::fs::write(&path, "old").unwrap();
            file.replace(b"new").unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(
                (mode & 0o7777, names(folder.path())),
                (0o640, vec!["settings.json".into()])
            );
            ForeignFile::read(&path, 0o600).unwrap().remove().unwrap();
            assert_eq!(names(folder.path()), Vec::<String>::new());
        }
        disk::only_plain_renames(false);
    }

    #[test]
    fn only_what_was_left_beside_it_is_swept_away() {
        let folder = tempfile::tempdir().unwrap();
        let left = ["a.takeback-12.new", "a.takeback-3.old", "a.takeback-backup.7"];
        let stays = ["a", "a.takeback-backup", "a.takeback-x.new", "b.takeback-12.new", "a.new"];
        for name in left.iter().chain(&stays) {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        ForeignFile::read(&folder.path().join("a"), 0o600).unwrap().sweep().unwrap();
        let mut found = names(folder.path());
        let mut stays = stays.map(str::to_owned).to_vec();
        found.sort();
        stays.sort();
        assert_eq!(found, stays);
    }
}
