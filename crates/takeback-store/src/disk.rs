//! The one layer through which Takeback changes anything on disk: its store, and the user's files.
//!
//! Every operation here passes a numbered `CrashPoint` before it happens. `docs/design/journal.md`
//! describes what a crash at each number leaves behind. With the feature `crash-points` a test can
//! stop a thread at any of them; without it, passing one does nothing.

#![expect(clippy::disallowed_methods, reason = "this is the layer that may")]

mod copy;
mod crash_point;

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{
    DirBuilderExt as _, FileExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::thread::JoinHandle;

use rustix::fs::{AtFlags, Mode, OFlags};

pub use self::copy::{BlockSharing, CopyAttributes, copy_contents, make_copy, pass_copies};
use self::crash_point::{check_renames, pass};
use crate::parallel::map_in_parallel;
use crate::platform;

#[cfg(not(feature = "crash-points"))]
pub(crate) use self::crash_point::CrashPoint;
pub(crate) use self::crash_point::crash_point;
#[cfg(feature = "crash-points")]
pub use self::crash_point::{CrashPoint, only_plain_renames, stop_at, stopped, watch};

// --- the store -------------------------------------------------------------------------------

/// Creates a folder of the store and its parents, durably, accessible only to the owner. Existing
/// folders stay as they are.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    let missing: Vec<_> = path.ancestors().take_while(|folder| !is_folder(folder)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    pass(CrashPoint::MakeStoreFolder)?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    missing.iter().filter_map(|made| made.parent()).try_for_each(sync_folder)
}

/// The parent of a bare name is the empty path, which the system does not resolve.
fn is_folder(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.is_dir()
}

/// Opens a file of the store for reading and appending. Creates it if missing, accessible only to
/// the owner.
pub fn open_private_file(path: &Path) -> io::Result<File> {
    std::fs::OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

/// Creates a file of the store, accessible only to the owner. Fails if the name is taken.
pub fn create_private_file(path: &Path) -> io::Result<File> {
    pass(CrashPoint::MakeStoreFile)?;
    std::fs::OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)
}

/// Binds a socket that only its owner may connect to, and replaces whatever has its name. The
/// temporary name next to it must be unused, or be a socket that another process left there while
/// doing the same.
pub fn bind_private_socket(path: &Path) -> io::Result<UnixListener> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = Path::new(&temporary);
    if temporary.symlink_metadata().is_ok() {
        remove_store_file(temporary)?;
    }
    pass(CrashPoint::MakeStoreFile)?;
    let listener = UnixListener::bind(temporary)?;
    // Under the final name it must never be open to others, not even for a moment.
    std::fs::set_permissions(temporary, std::fs::Permissions::from_mode(0o600))?;
    rename_private_file(temporary, path)?;
    Ok(listener)
}

/// Appends to a file of the store. Not durable before [`sync`].
pub fn append(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    pass(CrashPoint::Append)?;
    file.write_all(bytes)
}

/// Opens a file of the store for overwriting in place. Creates it if missing, accessible only to
/// the owner.
pub fn open_overwritable(path: &Path) -> io::Result<File> {
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

/// Overwrites the first bytes of a file of the store. Not durable.
pub fn overwrite(file: &File, bytes: &[u8]) -> io::Result<()> {
    pass(CrashPoint::Overwrite)?;
    file.write_all_at(bytes, 0)
}

/// Makes the bytes of a file of the store durable.
pub fn sync(file: &File) -> io::Result<()> {
    pass(CrashPoint::Sync)?;
    file.sync_data()
}

/// Starts to make appended bytes durable on another thread. Joining it returns the result. `None`
/// if the system starts no thread; then nothing was done.
pub fn begin_sync(file: &File) -> io::Result<Option<JoinHandle<io::Result<()>>>> {
    pass(CrashPoint::Sync)?;
    let file = file.try_clone()?;
    Ok(std::thread::Builder::new().spawn(move || file.sync_data()).ok())
}

/// Makes the names in a folder durable: files created, renamed or removed there before.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    pass(CrashPoint::Sync)?;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path)?.sync_all()
}

/// Renames a finished file of the store to `to`. If that name is taken, fails and leaves the file
/// where it is.
pub fn place_private_file(from: &Path, to: &Path) -> io::Result<()> {
    pass(CrashPoint::Replace)?;
    match platform::rename_path_to_new(from, to) {
        Err(error) if platform::is_unsupported(&error) => {
            // A hard link fails if `to` exists, like the rename. A crash in between leaves both names.
            std::fs::hard_link(from, to)?;
            remove_store_file(from)
        }
        placed => placed,
    }
}

/// Replaces a file of the store as a whole: readers see the old or the new contents. Not durable.
/// Returns the new file.
pub fn replace_private_file(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.new", std::process::id()));
    let temporary = Path::new(&temporary);
    pass(CrashPoint::WriteBeside)?;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(temporary)?;
    file.write_all(bytes)?;
    pass(CrashPoint::Replace)?;
    std::fs::rename(temporary, path)?;
    Ok(file)
}

/// Like [`replace_private_file`], and durable. Whatever has the temporary name is removed first, so
/// a symlink planted there is never followed.
pub fn replace_private_file_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.new", std::process::id()));
    let temporary = Path::new(&temporary);
    if temporary.symlink_metadata().is_ok() {
        remove_store_file(temporary)?;
    }
    pass(CrashPoint::WriteBeside)?;
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(temporary)?;
    file.write_all(bytes)?;
    // The bytes before the name: otherwise a power loss could leave an empty file under the name.
    sync(&file)?;
    drop(file);
    rename_private_file(temporary, path)?;
    sync_folder(path.parent().unwrap_or(Path::new("")))
}

/// Removes what a crash during the replacement of `path` left behind. The caller must know that no
/// other process is replacing it now.
pub fn remove_leftovers(path: &Path) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let temporary = entry.file_name();
        let (temporary, name) = (temporary.as_encoded_bytes(), name.as_encoded_bytes());
        let rest = temporary.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"."));
        if rest.is_some_and(|rest| rest.ends_with(b".new")) {
            remove_store_file(&entry.path())?;
        }
    }
    Ok(())
}

/// Renames a finished file of the store to `to` and replaces the file that has this name. Not
/// durable.
pub fn rename_private_file(from: &Path, to: &Path) -> io::Result<()> {
    pass(CrashPoint::Replace)?;
    std::fs::rename(from, to)
}

/// Truncates a file of the store to `length`.
pub fn shorten(file: &File, length: u64) -> io::Result<()> {
    pass(CrashPoint::Empty)?;
    file.set_len(length)
}

/// Frees the blocks of a part of a file of the store, which then reads as zeros. Does nothing where
/// the file system cannot do that.
pub fn punch(file: &File, offset: u64, length: u64) -> io::Result<()> {
    pass(CrashPoint::Empty)?;
    platform::punch(file, offset, length)
}

/// Removes a file of the store. Not durable before [`sync_folder`].
pub fn remove_store_file(path: &Path) -> io::Result<()> {
    pass(CrashPoint::RemoveStoreFile)?;
    std::fs::remove_file(path)
}

// --- the workspace: always a name in an open folder, never a path ----------------------------

/// Creates a folder in `dir`; fails if the name is taken.
pub fn make_folder(dir: impl AsFd, name: &[u8], mode: u32) -> io::Result<()> {
    pass(CrashPoint::MakeFolder)?;
    Ok(rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(mode))?)
}

/// Creates a file accessible only to the owner. Fails if the name is taken.
pub fn create_file(dir: impl AsFd, name: &[u8]) -> io::Result<File> {
    pass(CrashPoint::StageFile)?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o600)).map(File::from)?)
}

/// Passes the crash points of [`make_file`] for a caller that runs it on another thread, where they
/// would not count.
pub fn pass_make_file() -> io::Result<()> {
    use CrashPoint::{Link, SetMode, StageFile, SyncStaged};
    [StageFile, SetMode, SyncStaged, Link].into_iter().try_for_each(pass)
}

/// Creates a file that appears in `dir` complete, durable and with its mode. Until then it has no
/// name; its blocks are on the file system of `near`, which must be the same.
pub fn make_file(
    near: impl AsFd,
    dir: impl AsFd,
    name: &[u8],
    mode: u32,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = platform::create_unnamed(near)?;
    write(&mut file)?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    rustix::fs::fsync(&file)?;
    platform::name_file(&file, dir, name)
}

/// Creates a symlink in `dir`; fails if the name is taken.
pub fn create_symlink(dir: impl AsFd, name: &[u8], target: &[u8]) -> io::Result<()> {
    pass(CrashPoint::StageLink)?;
    Ok(rustix::fs::symlinkat(target, dir, name)?)
}

/// Makes a file's bytes, or a folder's names, durable.
pub fn sync_staged(file: impl AsFd) -> io::Result<()> {
    pass(CrashPoint::SyncStaged)?;
    Ok(rustix::fs::fsync(file)?)
}

/// Makes several files' bytes, or folders' names, durable. It syncs them at once: a journaling file
/// system writes them as one group, while one after the other each would wait for the disk. Returns
/// one result per file.
pub fn sync_all(files: &[OwnedFd]) -> Vec<io::Result<()>> {
    const THREADS: usize = 8;
    let passed = files.iter().try_for_each(|_| pass(CrashPoint::SyncStaged));
    map_in_parallel(files, THREADS, |file| match &passed {
        Ok(()) => Ok(rustix::fs::fsync(file)?),
        Err(error) => Err(error.kind().into()),
    })
}

/// Swaps two existing names atomically.
pub fn exchange(a: impl AsFd, a_name: &[u8], b: impl AsFd, b_name: &[u8]) -> io::Result<()> {
    pass(CrashPoint::Exchange)?;
    check_renames()?;
    platform::exchange(a, a_name, b, b_name)
}

/// Moves to an unused name; fails if it is taken.
pub fn place(from: impl AsFd, from_name: &[u8], to: impl AsFd, to_name: &[u8]) -> io::Result<()> {
    pass(CrashPoint::Place)?;
    check_renames()?;
    platform::rename_to_new(from, from_name, to, to_name)
}

/// Moves into a folder that no other process writes to, to a name that the caller knows to be
/// unused.
pub fn take_away(
    from: impl AsFd,
    from_name: &[u8],
    to: impl AsFd,
    to_name: &[u8],
) -> io::Result<()> {
    pass(CrashPoint::TakeAway)?;
    Ok(rustix::fs::renameat(from, from_name, to, to_name)?)
}

/// Gives a file a second name; fails if that is taken.
pub fn link(from: impl AsFd, from_name: &[u8], to: impl AsFd, to_name: &[u8]) -> io::Result<()> {
    pass(CrashPoint::Link)?;
    Ok(rustix::fs::linkat(from, from_name, to, to_name, AtFlags::empty())?)
}

/// Sets the mode of an open file.
pub fn set_mode(file: &OwnedFd, mode: u32) -> io::Result<()> {
    pass(CrashPoint::SetMode)?;
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?)
}

/// Like [`set_mode`], for a folder opened with `O_PATH` because its mode may forbid opening it
/// otherwise.
pub fn set_mode_by_path(folder: &OwnedFd, mode: u32) -> io::Result<()> {
    pass(CrashPoint::SetMode)?;
    platform::set_mode_by_path(folder, mode)
}

/// Removes a file in `dir`, which must be in the stage: user files are never unlinked.
pub fn unlink(dir: impl AsFd, name: &[u8]) -> io::Result<()> {
    pass(CrashPoint::Unlink)?;
    Ok(rustix::fs::unlinkat(dir, name, AtFlags::empty())?)
}

/// Like [`unlink`], for many files. Most of the time goes into freeing their blocks, so several
/// threads share the work.
pub fn unlink_all(dir: impl AsFd + Copy + Sync, names: &[Vec<u8>]) -> Vec<io::Result<()>> {
    const THREADS: usize = 8;
    /// With fewer files a thread costs more than it saves.
    const FEWEST: usize = 32;
    let passed = names.iter().try_for_each(|_| pass(CrashPoint::Unlink));
    let threads = if names.len() < FEWEST { 1 } else { THREADS };
    map_in_parallel(names, threads, |name| match &passed {
        Ok(()) => Ok(rustix::fs::unlinkat(dir, name.as_slice(), AtFlags::empty())?),
        Err(error) => Err(error.kind().into()),
    })
}

/// Removes an empty folder; fails if it is not empty.
pub fn remove_folder(dir: impl AsFd, name: &[u8]) -> io::Result<()> {
    pass(CrashPoint::RemoveFolder)?;
    Ok(rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)?)
}
