//! Files of a fork: made under their final names, by several threads, and not synced.
//!
//! Until a file is complete its mode is 0, so that one of which a crash left only a part is recognised.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, Timespec, Timestamps, UTIME_OMIT};

use super::crash_point::{CrashPoint, pass};
use crate::platform;

/// What a complete file gets besides its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyAttributes {
    /// Its permission bits.
    pub mode: u32,
    /// Its modification time in nanoseconds; `None`: the present one.
    pub modified: Option<i64>,
}

/// Whether the file system lets files share blocks; true until it refuses.
#[derive(Debug)]
pub struct BlockSharing(AtomicBool);

impl Default for BlockSharing {
    fn default() -> Self {
        Self(AtomicBool::new(true))
    }
}

/// Passes the crash point of [`make_copy`] for a caller that runs it on other threads, where it would not
/// count; once for several files.
pub fn pass_copies() -> io::Result<()> {
    pass(CrashPoint::CopyFiles)
}

/// Creates a file in `dir`; fails if the name is taken. If `write` fails, a part of the file is left, with
/// mode 0. Returns the complete file.
pub fn make_copy(
    dir: impl AsFd,
    name: &[u8],
    attributes: CopyAttributes,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<File> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = rustix::fs::openat(dir, name, flags, Mode::empty()).map(File::from)?;
    write(&mut file)?;
    if let Some(modified) = attributes.modified {
        rustix::fs::futimens(&file, &modified_at(modified))?;
    }
    // Last: from here on the file is complete.
    rustix::fs::fchmod(&file, Mode::from_raw_mode(attributes.mode))?;
    Ok(file)
}

/// Copies everything from one open file to another, which is empty. Shares the blocks where the file system
/// can. `size`: that of the first file; what is added meanwhile may be left out. Returns how many bytes the
/// copy has.
pub fn copy_contents(
    from: &mut File,
    to: &mut File,
    size: u64,
    sharing: &BlockSharing,
) -> io::Result<u64> {
    /// Smaller files are copied faster through a buffer than by a call of their own.
    const BUFFER: usize = 64 << 10;
    if sharing.0.load(Ordering::Relaxed) {
        match platform::share_blocks(from, to) {
            Ok(()) => return Ok(rustix::fs::fstat(&*to)?.st_size.cast_unsigned()),
            Err(_) => sharing.0.store(false, Ordering::Relaxed),
        }
    }
    let mut buffer = [0; BUFFER];
    let mut copied = 0;
    let mut in_kernel = false;
    // Without asking for the end of a small file, which would be one call more.
    while copied < size {
        if in_kernel {
            match platform::copy_range(from, to, 1 << 30) {
                Ok(0) => return Ok(copied),
                Ok(some) => {
                    copied += some as u64;
                    continue;
                }
                // Not between these file systems. Both files stand where the last copy ended.
                Err(_) => in_kernel = false,
            }
        }
        match from.read(&mut buffer) {
            Ok(0) => return Ok(copied),
            Ok(some) => {
                to.write_all(&buffer[..some])?;
                // A file that fills the buffer is large; a kernel that refused is not asked again.
                in_kernel = copied == 0 && some == BUFFER;
                copied += some as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(copied)
}

fn modified_at(nanos: i64) -> Timestamps {
    const SECOND: i64 = 1_000_000_000;
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: nanos.div_euclid(SECOND),
            tv_nsec: nanos.rem_euclid(SECOND),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom};

    use super::*;

    #[test]
    fn copies_of_any_size_are_equal_with_and_without_the_kernels_help() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = File::open(folder.path()).expect("it opens");
        for size in [0, 1, 65_535, 65_536, 65_537, 3_000_000] {
            let bytes: Vec<u8> = (0..size).map(|at: u32| (at % 251) as u8).collect();
            let mut from = tempfile::tempfile().expect("a file");
            from.write_all(&bytes).expect("written");
            from.seek(SeekFrom::Start(0)).expect("sought");
            let name = format!("copy-{size}");
            let attributes = CopyAttributes { mode: 0o640, modified: Some(-1_500_000_000) };
            let made = make_copy(&dir, name.as_bytes(), attributes, |to| {
                let copied =
                    copy_contents(&mut from, to, u64::from(size), &BlockSharing::default())?;
                assert_eq!(copied, u64::from(size));
                Ok(())
            });
            let stat = rustix::fs::fstat(made.expect("copied")).expect("a stat");
            assert_eq!((stat.st_mode & 0o7777, stat.st_mtime), (0o640, -2));
            assert_eq!(stat.st_mtime_nsec, 500_000_000);
            assert!(std::fs::read(folder.path().join(&name)).expect("read") == bytes, "{size}");
            let taken = make_copy(&dir, name.as_bytes(), attributes, |_| Ok(()));
            assert_eq!(
                taken.map_err(|error| error.kind()).err(),
                Some(io::ErrorKind::AlreadyExists)
            );
        }
    }

    #[test]
    fn a_part_of_a_file_has_no_permissions() {
        let folder = tempfile::tempdir().expect("a folder");
        let dir = File::open(folder.path()).expect("it opens");
        let attributes = CopyAttributes { mode: 0o644, modified: None };
        let failed = make_copy(&dir, b"part", attributes, |file| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(failed.is_err());
        let stat = rustix::fs::statat(&dir, "part", rustix::fs::AtFlags::empty()).expect("there");
        assert_eq!((stat.st_mode & 0o7777, stat.st_size), (0, 4));
    }
}
