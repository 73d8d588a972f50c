//! The calls of `disk.rs` that only Linux has in this form. A port replaces this file and
//! `takeback-core/src/platform`; `docs/design/porting.md` says with what, and what it must prove.
//!
//! Nothing here passes a crash point: only `disk.rs` calls these functions, and passes it first.

#![expect(clippy::disallowed_methods, reason = "a part of the layer that changes the disk")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

#[cfg(not(target_os = "linux"))]
compile_error!(
    "Takeback runs on Linux only: docs/design/porting.md lists what another system needs."
);

/// Swaps two existing names in one step, which no other process sees half done. Fails without
/// changing anything where [`is_unsupported`] says so.
pub(crate) fn exchange(a: impl AsFd, a_name: &[u8], b: impl AsFd, b_name: &[u8]) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(a, a_name, b, b_name, RenameFlags::EXCHANGE)?)
}

/// Renames, and fails if the new name exists: a file that another process creates there at the same
/// moment survives. Fails without changing anything where [`is_unsupported`] says so.
pub(crate) fn rename_to_new(
    from: impl AsFd,
    from_name: &[u8],
    to: impl AsFd,
    to_name: &[u8],
) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(from, from_name, to, to_name, RenameFlags::NOREPLACE)?)
}

/// Like [`rename_to_new`], by path.
pub(crate) fn rename_path_to_new(from: &Path, to: &Path) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

/// The error of [`exchange`] and [`rename_to_new`] on a file system (NFS, FUSE) or kernel that has
/// only plain renames.
#[cfg(feature = "crash-points")]
pub(crate) fn unsupported_rename() -> io::Error {
    Errno::INVAL.into()
}

/// Whether an operation failed because this file system or kernel lacks that kind of rename or
/// unnamed files.
#[must_use]
pub fn is_unsupported(error: &io::Error) -> bool {
    is_any_of(error, &[Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP])
}

/// Creates a file without a name, accessible only to the owner, on the file system of `folder`. It
/// disappears with the process unless [`name_file`] names it.
pub(crate) fn create_unnamed(folder: impl AsFd) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(folder, c".", flags, Mode::from_raw_mode(0o600))?))
}

/// Names a file of [`create_unnamed`]; fails if the name exists.
pub(crate) fn name_file(file: &File, folder: impl AsFd, name: &[u8]) -> io::Result<()> {
    // Linking the descriptor itself (AT_EMPTY_PATH) needs a privilege; its name in /proc does not.
    let flags = AtFlags::SYMLINK_FOLLOW;
    Ok(rustix::fs::linkat(CWD, descriptor_path(file), folder, name, flags)?)
}

/// Whether [`create_unnamed`] failed because the file system has no files without a name.
#[must_use]
pub fn lacks_unnamed_files(error: &io::Error) -> bool {
    is_unsupported(error) || is_any_of(error, &[Errno::ISDIR])
}

/// Sets the mode of a folder opened with `O_PATH`, which works even if its mode forbids reading it.
pub(crate) fn set_mode_by_path(folder: &OwnedFd, mode: u32) -> io::Result<()> {
    // fchmod rejects an `O_PATH` descriptor.
    Ok(rustix::fs::chmod(descriptor_path(folder), Mode::from_raw_mode(mode))?)
}

/// Lets an empty file share all blocks of another one, so that neither bytes nor space are copied. Fails
/// without changing anything where the file system cannot, or the files are on different ones.
pub(crate) fn share_blocks(from: &File, to: &File) -> io::Result<()> {
    Ok(rustix::fs::ioctl_ficlone(to, from)?)
}

/// Copies at most `length` bytes from where one file stands to where another one stands, in the kernel.
/// Returns how many; 0: the first file has no more.
pub(crate) fn copy_range(from: &File, to: &File, length: usize) -> io::Result<usize> {
    Ok(rustix::fs::copy_file_range(from, None, to, None, length)?)
}

/// Frees the blocks of a part of a file, which then reads as zeros. Does nothing where the file
/// system cannot do that.
pub(crate) fn punch(file: &File, offset: u64, length: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(file, flags, offset, length) {
        Err(Errno::NOTSUP | Errno::NOSYS | Errno::INVAL) => Ok(()),
        punched => Ok(punched?),
    }
}

/// A path to an open file or folder that works even after it was renamed or removed. Only this
/// process can use it, and only where `/proc` is mounted.
#[must_use]
pub fn descriptor_path(file: impl AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

fn is_any_of(error: &io::Error, numbers: &[Errno]) -> bool {
    numbers.iter().any(|number| error.raw_os_error() == Some(number.raw_os_error()))
}
