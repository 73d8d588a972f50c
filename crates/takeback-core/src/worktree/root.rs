//! A folder, held open, below which everything is reached without ever following a link.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;
use takeback_store::WorkPath;

use crate::platform::folder;
pub(crate) use crate::platform::folder::Access;
pub(crate) use crate::platform::folder::names_in;

/// The workspace's root folder.
#[derive(Debug)]
pub struct Root {
    fd: OwnedFd,
    path: PathBuf,
    /// The file system it is on; others are not part of the workspace.
    pub device: u64,
    /// Whether a folder's times change with the names in it: always on local file systems, not always on
    /// network ones.
    pub(crate) folder_times: bool,
    /// Cleared when the kernel has no `openat2`: then folders are opened one by one.
    openat2: AtomicBool,
    /// Cleared when the file system cannot exchange two names.
    exchange: AtomicBool,
    /// Cleared when the file system has no files without a name.
    unnamed: AtomicBool,
}

impl Root {
    /// `path` must be absolute and canonical: a link anywhere in it, even one that has replaced a folder
    /// since, is refused.
    pub fn open(path: &Path) -> io::Result<Self> {
        let slash = folder::open_file_system_root(Access::Read)?;
        let slash = Self::from_folder(slash, Path::new("/"))?;
        match path.as_os_str().as_bytes().strip_prefix(b"/") {
            Some(b"") => Ok(slash),
            Some(below) => Self::from_folder(slash.folder(below, Access::Read)?, path),
            None => Err(io::Error::new(io::ErrorKind::InvalidInput, "not an absolute path")),
        }
    }

    fn from_folder(fd: OwnedFd, path: &Path) -> io::Result<Self> {
        let device = rustix::fs::fstat(&fd)?.st_dev;
        let folder_times = folder::is_on_local_file_system(&fd);
        Ok(Self {
            fd,
            path: path.to_owned(),
            device,
            folder_times,
            openat2: AtomicBool::new(true),
            exchange: AtomicBool::new(true),
            unnamed: AtomicBool::new(true),
        })
    }

    /// The root's canonical path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder at `path` (empty: the root itself). Fails with `ELOOP` or `ENOTDIR` if any part of the
    /// path is a link.
    pub fn folder(&self, path: &[u8], access: Access) -> io::Result<OwnedFd> {
        if path.is_empty() {
            return Ok(folder::open_folder(&self.fd, b".", access)?);
        }
        if self.openat2.load(Ordering::Relaxed) {
            match folder::open_beneath(self.fd.as_fd(), path, access) {
                Err(error) if folder::lacks_open_beneath(error) => self.without_openat2(),
                opened => return Ok(opened?),
            }
        }
        let mut at: Option<OwnedFd> = None;
        for part in path.split(|b| *b == b'/') {
            let from = at.as_ref().unwrap_or(&self.fd);
            at = Some(folder::open_folder(from, part, Access::Reach)?);
        }
        let at = at.expect("a path has at least one component");
        Ok(folder::open_folder(at, b".", access)?)
    }

    /// The folder that `path` is in.
    pub fn parent_of(&self, path: &WorkPath) -> io::Result<OwnedFd> {
        match path.parent() {
            Some(parent) => self.folder(parent.as_bytes(), Access::Reach),
            None => self.folder(b"", Access::Reach),
        }
    }

    pub(crate) fn can_exchange(&self) -> bool {
        self.exchange.load(Ordering::Relaxed)
    }

    /// Stops exchanging names, as on file systems that cannot.
    pub fn without_exchange(&self) {
        self.exchange.store(false, Ordering::Relaxed);
    }

    pub(crate) fn has_unnamed_files(&self) -> bool {
        self.unnamed.load(Ordering::Relaxed)
    }

    /// Gives every file a name from the start, as on file systems without unnamed files.
    pub fn without_unnamed_files(&self) {
        self.unnamed.store(false, Ordering::Relaxed);
    }

    /// Opens folders one by one, as on kernels without `openat2`.
    pub fn without_openat2(&self) {
        self.openat2.store(false, Ordering::Relaxed);
    }
}

/// Opens folders for reading, each starting near the last one, so that deep paths need not be walked from
/// the root each time. Never write through it: a folder that it holds open may have been moved.
#[derive(Debug)]
pub(crate) struct FolderOpener<'r> {
    root: &'r Root,
    /// The folder opened last.
    last: Vec<u8>,
    /// Folders above it, outermost first, by the length of their paths.
    held: Vec<(usize, OwnedFd)>,
}

impl<'r> FolderOpener<'r> {
    pub(crate) fn new(root: &'r Root) -> Self {
        Self { root, last: Vec::new(), held: Vec::new() }
    }

    /// As [`Root::folder`].
    pub(crate) fn folder(&mut self, path: &[u8], access: Access) -> io::Result<OwnedFd> {
        if path.len() <= HELD_APART || !self.root.openat2.load(Ordering::Relaxed) {
            return self.root.folder(path, access);
        }
        let is_above =
            |len: usize| path[len..].starts_with(b"/") && self.last[..len] == path[..len];
        let above = self.held.partition_point(|(len, _)| *len < path.len() && is_above(*len));
        self.held.truncate(above);
        path.clone_into(&mut self.last);
        loop {
            let (from, len) = self.held.last().map_or((None, 0), |(len, fd)| (Some(fd), len + 1));
            let (from, rest) = (from.map_or(self.root.as_fd(), AsFd::as_fd), &path[len..]);
            let next = rest.iter().skip(HELD_APART).position(|b| *b == b'/');
            let Some(next) = next.map(|at| at + HELD_APART) else {
                return Ok(folder::open_beneath(from, rest, access)?);
            };
            let fd = folder::open_beneath(from, &rest[..next], Access::Reach)?;
            self.held.push((len + next, fd));
        }
    }
}

/// Two folders that are held open are at least this many bytes of path apart.
const HELD_APART: usize = 512;

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether a folder could not be opened because there is none: no such name, or a link or a file in
/// its place.
pub(crate) fn is_no_folder(error: &io::Error) -> bool {
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP]
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever was opened before, the folder at the path is opened, and no link is followed.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]
    fn folder_opener_opens_what_the_root_opens() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Root::open(&folder.path().canonicalize().expect("it is there")).expect("opens");
        let deep = |name: &str, depth: usize| vec![name.repeat(60); depth].join("/");
        let paths = [
            deep("a", 40),
            format!("{}/side", deep("a", 30)),
            deep("a", 41),
            deep("b", 50),
            format!("{}/{}", deep("a", 12), deep("c", 30)),
            deep("a", 2),
            deep("a", 40),
        ];
        for path in &paths {
            std::fs::create_dir_all(folder.path().join(path)).expect("made");
        }
        let inode = |fd: OwnedFd| rustix::fs::fstat(fd).expect("a folder").st_ino;
        let mut near = FolderOpener::new(&root);
        for path in &paths {
            let path = path.as_bytes();
            let expected = inode(root.folder(path, Access::Read).expect("opens"));
            assert_eq!(inode(near.folder(path, Access::Read).expect("opens")), expected);
        }
        assert!(!near.held.is_empty(), "folders are held");
        let link = folder.path().join(deep("a", 38)).join("link");
        std::os::unix::fs::symlink(".", link).expect("linked");
        let through = format!("{}/link/{}", deep("a", 38), "a".repeat(60));
        let refused = near.folder(through.as_bytes(), Access::Read);
        assert!(refused.is_err_and(|error| is_no_folder(&error)));
        assert!(near.folder(format!("{}/none/x", deep("b", 49)).as_bytes(), Access::Read).is_err());
        let again = deep("b", 50);
        assert!(near.folder(again.as_bytes(), Access::Read).is_ok());
    }
}
