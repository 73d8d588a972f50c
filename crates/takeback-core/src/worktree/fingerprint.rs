//! Shows without reading a file that it has not changed.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use crate::platform::clock;

/// As long as these are the same, so are a file's bytes. The change time (`ctime`) catches what
/// restores the modification time: `cp -p`, `touch -r`, archives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    pub size: u64,
    pub modified: i64,
    pub changed: i64,
    pub inode: u64,
    pub mode: u32,
}

/// The `stat` of a name. Never follows a link.
#[derive(Debug, Clone, Copy)]
pub struct Stat {
    pub kind: FileType,
    pub device: u64,
    /// It has several names, or is a folder.
    pub is_linked: bool,
    pub fingerprint: Fingerprint,
}

impl Stat {
    /// Permission bits, and for a file also the set-id and sticky bits. A folder may inherit those from
    /// its parent, so they are left out.
    #[must_use]
    pub fn mode(&self) -> u32 {
        let bits = if self.kind == FileType::Directory { 0o777 } else { 0o7777 };
        self.fingerprint.mode & bits
    }
}

/// `None`: nothing is there.
pub fn stat(folder: impl AsFd, name: &[u8]) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(convert(&stat))),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// How many names a file has.
pub(crate) fn links_of(folder: impl AsFd, name: &[u8]) -> io::Result<u64> {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(stat.st_nlink as u64)
}

pub(crate) fn stat_open(file: impl AsFd) -> io::Result<Stat> {
    Ok(convert(&rustix::fs::fstat(file)?))
}

fn convert(stat: &rustix::fs::Stat) -> Stat {
    let nanos = |s: i64, ns: u64| s.saturating_mul(1_000_000_000).saturating_add(ns.cast_signed());
    Stat {
        kind: FileType::from_raw_mode(stat.st_mode),
        device: stat.st_dev,
        is_linked: stat.st_nlink > 1,
        fingerprint: Fingerprint {
            size: stat.st_size.cast_unsigned(),
            modified: nanos(stat.st_mtime, stat.st_mtime_nsec),
            changed: nanos(stat.st_ctime, stat.st_ctime_nsec),
            inode: stat.st_ino,
            mode: stat.st_mode,
        },
    }
}

/// The moment from which file times may not differ: one clock tick before now.
///
/// A file whose times are not older than this may be written again within the same tick and keep the same
/// times. Its fingerprint must not be kept.
#[derive(Debug, Clone, Copy)]
pub struct RacySince(i64);

impl RacySince {
    /// Uses the kernel's clock for file times, which a test clock cannot replace.
    #[must_use]
    pub fn now() -> Self {
        Self(clock::file_time_now() - clock::FILE_TIME_TICK)
    }

    /// The fingerprint, unless the file was changed so recently that another change could leave the same
    /// one.
    #[must_use]
    pub fn trust(self, fingerprint: Fingerprint) -> Option<Fingerprint> {
        let newest = fingerprint.modified.max(fingerprint.changed);
        (newest < self.0).then_some(fingerprint)
    }
}
