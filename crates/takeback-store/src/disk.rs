//! The one layer through which Takeback changes anything on disk: its store, and the user's files.
//!
//! Every operation here passes a numbered [`CrashPoint`] before it happens. A test can arm the
//! current thread to stop at the n-th point passed; from then on nothing is written by that thread,
//! as if the process had been killed there. `docs/design/journal.md` tells, for each number, what a
//! crash there leaves behind.

#![expect(clippy::disallowed_methods, reason = "this is the layer that may")]

use std::cell::{Cell, RefCell};
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

use crate::parallel::map_in_parallel;
use crate::platform;

macro_rules! crash_points {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// What is about to happen. The numbers are used in the documentation and never reused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum CrashPoint {
            $($(#[$doc])* $name = $number,)*
        }

        impl CrashPoint {
            /// Every one, by number.
            pub const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

crash_points! {
    /// A folder of the store is made.
    MakeStoreFolder = 1,
    /// Bytes are appended to a pack segment or an event in the inbox.
    Append = 2,
    /// Appended bytes are made durable.
    Sync = 3,
    /// A transaction is committed.
    Commit = 4,
    /// A transaction has been committed.
    Committed = 5,
    /// A whole file of the store (the index) is written beside its place.
    WriteBeside = 6,
    /// … and takes its place; or a file of the store gets another name.
    Replace = 7,
    /// A file of the store is removed.
    RemoveStoreFile = 8,
    /// The end of a segment, or a part of it, is taken away that nothing names.
    Empty = 9,
    /// An empty file of the store is made.
    MakeStoreFile = 10,
    /// The file that tells the last commit is written over.
    Overwrite = 11,
    /// A folder is made in the workspace.
    MakeFolder = 20,
    /// A file is made in the stage.
    StageFile = 21,
    /// A link is made in the stage.
    StageLink = 22,
    /// A staged file or a folder is made durable.
    SyncStaged = 23,
    /// A staged file and the user's change places.
    Exchange = 24,
    /// Something is given a name that nothing has.
    Place = 25,
    /// A mode is set.
    SetMode = 26,
    /// A file is removed (from the stage; never one of the user's).
    Unlink = 27,
    /// An empty folder is removed.
    RemoveFolder = 28,
    /// A file gets a second name that nothing has.
    Link = 29,
    /// Something of the user's is moved into the stage.
    TakeAway = 30,
}

thread_local! {
    static UNTIL_STOP: Cell<Option<u64>> = const { Cell::new(None) };
    static PASSED: Cell<u64> = const { Cell::new(0) };
    static PLAIN_RENAMES: Cell<bool> = const { Cell::new(false) };
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Told of every crash point right before it is passed.
type Watch = Box<dyn FnMut(CrashPoint)>;

/// The panic of a thread that reached the point it was to stop at. Only tests ever see one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped(pub CrashPoint);

/// From now on this thread stops at the `n`-th crash point it passes (counted from 1), by panicking
/// with [`Stopped`], and at every one after it. `None`: never.
pub fn stop_at(n: Option<u64>) {
    UNTIL_STOP.set(n);
    PASSED.set(0);
}

/// From now on `watch` is told of every crash point that this thread comes to, before it is passed:
/// a test sees them, and can play somebody who changes a file in just that moment.
pub fn watch(watch: Option<Watch>) {
    WATCH.set(watch);
}

/// Whether this thread, from now on, is on a file system that knows no renames but plain ones.
pub fn only_plain_renames(only: bool) {
    PLAIN_RENAMES.set(only);
}

/// Fails while a test allows only plain renames.
fn check_renames() -> io::Result<()> {
    if PLAIN_RENAMES.get() { Err(platform::unsupported_rename()) } else { Ok(()) }
}

/// Crash points passed by this thread since [`stop_at`].
#[must_use]
pub fn points_passed() -> u64 {
    PASSED.get()
}

/// Passes a crash point that is not one of this module's own operations.
pub fn crash_point(point: CrashPoint) {
    // Taken out for the call, which may come to a crash point itself.
    if let Some(mut watch) = WATCH.take() {
        watch(point);
        WATCH.set(Some(watch));
    }
    PASSED.set(PASSED.get() + 1);
    if UNTIL_STOP.get().is_some_and(|n| PASSED.get() >= n) && !std::thread::panicking() {
        std::panic::panic_any(Stopped(point));
    }
}

/// Whether this thread has been stopped: then nothing more may be written.
fn stopped() -> bool {
    UNTIL_STOP.get().is_some_and(|n| PASSED.get() >= n)
}

fn pass(point: CrashPoint) -> io::Result<()> {
    crash_point(point);
    if stopped() { Err(io::Error::other("stopped at a crash point")) } else { Ok(()) }
}

// --- the store -------------------------------------------------------------------------------

/// Makes a folder of the store with all folders above it, readable by its owner alone, durably.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    let missing: Vec<_> = path.ancestors().take_while(|folder| !is_folder(folder)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    pass(CrashPoint::MakeStoreFolder)?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    missing.iter().filter_map(|made| made.parent()).try_for_each(sync_folder)
}

/// The folder above `name` is the empty path, which the system does not know.
fn is_folder(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.is_dir()
}

/// Opens a file of the store for reading and appending; made, if missing, for its owner alone.
pub fn open_private_file(path: &Path) -> io::Result<File> {
    std::fs::OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

/// A new file of the store, for its owner alone; fails if the name is taken.
pub fn create_private_file(path: &Path) -> io::Result<File> {
    pass(CrashPoint::MakeStoreFile)?;
    std::fs::OpenOptions::new().read(true).append(true).create_new(true).mode(0o600).open(path)
}

/// A socket that only its owner may connect to, in place of what has its name. The name beside it is
/// free, or a socket that somebody who had the same in mind left.
pub fn bind_private_socket(path: &Path) -> io::Result<UnixListener> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = Path::new(&beside);
    if beside.symlink_metadata().is_ok() {
        remove_store_file(beside)?;
    }
    pass(CrashPoint::MakeStoreFile)?;
    let listener = UnixListener::bind(beside)?;
    std::fs::set_permissions(beside, std::fs::Permissions::from_mode(0o600))?;
    rename_private_file(beside, path)?;
    Ok(listener)
}

pub fn append(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    pass(CrashPoint::Append)?;
    file.write_all(bytes)
}

/// Opens a file of the store to be written over in place; made, if missing, for its owner alone.
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

/// Writes over the first bytes of a file of the store. Not durable.
pub fn overwrite(file: &File, bytes: &[u8]) -> io::Result<()> {
    pass(CrashPoint::Overwrite)?;
    file.write_all_at(bytes, 0)
}

pub fn sync(file: &File) -> io::Result<()> {
    pass(CrashPoint::Sync)?;
    file.sync_data()
}

/// Begins to make appended bytes durable, without waiting; joining it says whether they are. `None`:
/// there is no thread for it.
pub fn begin_sync(file: &File) -> io::Result<Option<JoinHandle<io::Result<()>>>> {
    pass(CrashPoint::Sync)?;
    let file = file.try_clone()?;
    Ok(std::thread::Builder::new().spawn(move || file.sync_data()).ok())
}

/// Makes the names in a folder durable.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    pass(CrashPoint::Sync)?;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path)?.sync_all()
}

/// Gives a finished file of the store the name `to`; fails, and leaves it where it is, if something
/// has that name already.
pub fn place_private_file(from: &Path, to: &Path) -> io::Result<()> {
    pass(CrashPoint::Replace)?;
    match platform::rename_path_to_new(from, to) {
        Err(error) if platform::is_unsupported(&error) => {
            std::fs::hard_link(from, to)?;
            remove_store_file(from)
        }
        placed => placed,
    }
}

/// Replaces a file of the store as a whole: readers see the old or the new one. Not durable. The file
/// that has its place now.
pub fn replace_private_file(path: &Path, bytes: &[u8]) -> io::Result<File> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = Path::new(&beside);
    pass(CrashPoint::WriteBeside)?;
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(beside)?;
    file.write_all(bytes)?;
    pass(CrashPoint::Replace)?;
    std::fs::rename(beside, path)?;
    Ok(file)
}

/// As [`replace_private_file`], and durable. What lies where it is written beside its place is
/// removed, so no link that was put there leads anywhere.
pub fn replace_private_file_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.new", std::process::id()));
    let beside = Path::new(&beside);
    if beside.symlink_metadata().is_ok() {
        remove_store_file(beside)?;
    }
    pass(CrashPoint::WriteBeside)?;
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(beside)?;
    file.write_all(bytes)?;
    sync(&file)?;
    drop(file);
    rename_private_file(beside, path)?;
    sync_folder(path.parent().unwrap_or(Path::new("")))
}

/// Removes what a crash left of replacing `path`, for a caller who knows that nobody replaces it now.
pub fn remove_leftovers(path: &Path) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let beside = entry.file_name();
        let (beside, name) = (beside.as_encoded_bytes(), name.as_encoded_bytes());
        let rest = beside.strip_prefix(name).and_then(|rest| rest.strip_prefix(b"."));
        if rest.is_some_and(|rest| rest.ends_with(b".new")) {
            remove_store_file(&entry.path())?;
        }
    }
    Ok(())
}

/// Gives a finished file of the store the name `to`, and takes it from what has it. Not durable.
pub fn rename_private_file(from: &Path, to: &Path) -> io::Result<()> {
    pass(CrashPoint::Replace)?;
    std::fs::rename(from, to)
}

/// Takes the end of a file of the store away again.
pub fn shorten(file: &File, length: u64) -> io::Result<()> {
    pass(CrashPoint::Empty)?;
    file.set_len(length)
}

/// Gives the blocks of a part of a file of the store back; it reads as zeros from then on. Does nothing
/// where the file system does not know how.
pub fn punch(file: &File, offset: u64, length: u64) -> io::Result<()> {
    pass(CrashPoint::Empty)?;
    platform::punch(file, offset, length)
}

pub fn remove_store_file(path: &Path) -> io::Result<()> {
    pass(CrashPoint::RemoveStoreFile)?;
    std::fs::remove_file(path)
}

// --- the workspace: always a name in an open folder, never a path ----------------------------

pub fn make_folder(dir: impl AsFd, name: &[u8], mode: u32) -> io::Result<()> {
    pass(CrashPoint::MakeFolder)?;
    Ok(rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(mode))?)
}

/// A new file for its owner alone; fails if the name is taken.
pub fn create_file(dir: impl AsFd, name: &[u8]) -> io::Result<File> {
    pass(CrashPoint::StageFile)?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(0o600)).map(File::from)?)
}

/// What [`make_file`] comes to, for a caller who lets another thread call that.
pub fn pass_make_file() -> io::Result<()> {
    use CrashPoint::{Link, SetMode, StageFile, SyncStaged};
    [StageFile, SetMode, SyncStaged, Link].into_iter().try_for_each(pass)
}

/// A new file that appears in `dir` as a whole, durable, and with its mode. Until then it has no name,
/// and lies near `near`, which is on the same file system.
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

pub fn create_symlink(dir: impl AsFd, name: &[u8], target: &[u8]) -> io::Result<()> {
    pass(CrashPoint::StageLink)?;
    Ok(rustix::fs::symlinkat(target, dir, name)?)
}

/// Makes a file's bytes, or a folder's names, durable.
pub fn sync_staged(file: impl AsFd) -> io::Result<()> {
    pass(CrashPoint::SyncStaged)?;
    Ok(rustix::fs::fsync(file)?)
}

/// Makes several files' bytes, or folders' names, durable. All at once: a file system that keeps a
/// journal writes them as one group, where one after the other each would wait for the disk. Answers
/// for each whether it is.
pub fn sync_all(files: &[OwnedFd]) -> Vec<io::Result<()>> {
    const THREADS: usize = 8;
    let passed = files.iter().try_for_each(|_| pass(CrashPoint::SyncStaged));
    map_in_parallel(files, THREADS, |file| match &passed {
        Ok(()) => Ok(rustix::fs::fsync(file)?),
        Err(error) => Err(error.kind().into()),
    })
}

/// Two existing names change places, atomically.
pub fn exchange(a: impl AsFd, a_name: &[u8], b: impl AsFd, b_name: &[u8]) -> io::Result<()> {
    pass(CrashPoint::Exchange)?;
    check_renames()?;
    platform::exchange(a, a_name, b, b_name)
}

/// Moves to a name that nothing has; fails if something has it.
pub fn place(from: impl AsFd, from_name: &[u8], to: impl AsFd, to_name: &[u8]) -> io::Result<()> {
    pass(CrashPoint::Place)?;
    check_renames()?;
    platform::rename_to_new(from, from_name, to, to_name)
}

/// Moves into a folder that nobody else writes to, to a name that the caller knows to be free.
pub fn take_away(
    from: impl AsFd,
    from_name: &[u8],
    to: impl AsFd,
    to_name: &[u8],
) -> io::Result<()> {
    pass(CrashPoint::TakeAway)?;
    Ok(rustix::fs::renameat(from, from_name, to, to_name)?)
}

/// Gives a file a second name that nothing has; fails if something has it.
pub fn link(from: impl AsFd, from_name: &[u8], to: impl AsFd, to_name: &[u8]) -> io::Result<()> {
    pass(CrashPoint::Link)?;
    Ok(rustix::fs::linkat(from, from_name, to, to_name, AtFlags::empty())?)
}

pub fn set_mode(file: &OwnedFd, mode: u32) -> io::Result<()> {
    pass(CrashPoint::SetMode)?;
    Ok(rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?)
}

/// As [`set_mode`], of a folder that is held by its place alone (`O_PATH`), which its mode may not let
/// anybody open.
pub fn set_mode_by_path(folder: &OwnedFd, mode: u32) -> io::Result<()> {
    pass(CrashPoint::SetMode)?;
    platform::set_mode_by_path(folder, mode)
}

pub fn unlink(dir: impl AsFd, name: &[u8]) -> io::Result<()> {
    pass(CrashPoint::Unlink)?;
    Ok(rustix::fs::unlinkat(dir, name, AtFlags::empty())?)
}

/// As [`unlink`], of many: the most of it is to give back what they took, which several threads do sooner.
pub fn unlink_all(dir: impl AsFd + Copy + Sync, names: &[Vec<u8>]) -> Vec<io::Result<()>> {
    const THREADS: usize = 8;
    /// Below this many a thread costs more than it saves.
    const FEWEST: usize = 32;
    let passed = names.iter().try_for_each(|_| pass(CrashPoint::Unlink));
    let threads = if names.len() < FEWEST { 1 } else { THREADS };
    map_in_parallel(names, threads, |name| match &passed {
        Ok(()) => Ok(rustix::fs::unlinkat(dir, name.as_slice(), AtFlags::empty())?),
        Err(error) => Err(error.kind().into()),
    })
}

/// Removes a folder that is empty; fails if it is not.
pub fn remove_folder(dir: impl AsFd, name: &[u8]) -> io::Result<()> {
    pass(CrashPoint::RemoveFolder)?;
    Ok(rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)?)
}
