//! A folder, held open, below which everything is reached without ever following a link.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use takeback_store::WorkPath;

/// The workspace's root folder.
#[derive(Debug)]
pub struct Root {
    fd: OwnedFd,
    path: PathBuf,
    /// The file system it is on; what lies on others is not part of the workspace.
    pub device: u64,
    /// Cleared when the kernel has no `openat2`: then folders are opened one by one.
    openat2: AtomicBool,
    /// Cleared when the file system cannot exchange two names.
    exchange: AtomicBool,
}

/// What an opened folder is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To reach what is in it; needs no permission to read the folder.
    Reach,
    /// To read its names, make them durable, or set its mode.
    Read,
}

impl Access {
    fn flags(self) -> OFlags {
        let base = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match self {
            Self::Reach => base | OFlags::PATH,
            Self::Read => base | OFlags::RDONLY,
        }
    }
}

impl Root {
    /// `path` must be canonical; links in it have been followed for the last time.
    pub fn open(path: &Path) -> io::Result<Self> {
        let fd = rustix::fs::openat(CWD, path, Access::Read.flags(), Mode::empty())?;
        let device = rustix::fs::fstat(&fd)?.st_dev;
        Ok(Self {
            fd,
            path: path.to_owned(),
            device,
            openat2: AtomicBool::new(true),
            exchange: AtomicBool::new(true),
        })
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder at `path` (empty: the root itself). Fails with `ELOOP` or `ENOTDIR` when a link
    /// stands anywhere on the way.
    pub fn folder(&self, path: &[u8], access: Access) -> io::Result<OwnedFd> {
        if path.is_empty() {
            return Ok(rustix::fs::openat(&self.fd, c".", access.flags(), Mode::empty())?);
        }
        if self.openat2.load(Ordering::Relaxed) {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            match rustix::fs::openat2(&self.fd, path, access.flags(), Mode::empty(), resolve) {
                Err(Errno::NOSYS | Errno::PERM) => self.openat2.store(false, Ordering::Relaxed),
                // Longer than a path may be: only reached step by step.
                Err(Errno::NAMETOOLONG) => {}
                opened => return Ok(opened?),
            }
        }
        let mut at: Option<OwnedFd> = None;
        for part in path.split(|b| *b == b'/') {
            let from = at.as_ref().unwrap_or(&self.fd);
            at = Some(rustix::fs::openat(from, part, Access::Reach.flags(), Mode::empty())?);
        }
        let at = at.expect("a path has at least one component");
        Ok(rustix::fs::openat(at, c".", access.flags(), Mode::empty())?)
    }

    /// The folder in which `path` stands.
    pub fn parent_of(&self, path: &WorkPath) -> io::Result<OwnedFd> {
        match path.parent() {
            Some(parent) => self.folder(parent.as_bytes(), Access::Reach),
            None => self.folder(b"", Access::Reach),
        }
    }

    pub(crate) fn can_exchange(&self) -> bool {
        self.exchange.load(Ordering::Relaxed)
    }

    /// From now on names are not exchanged, as on file systems that cannot.
    pub fn without_exchange(&self) {
        self.exchange.store(false, Ordering::Relaxed);
    }

    /// From now on folders are opened one by one, as on kernels without `openat2`.
    pub fn without_openat2(&self) {
        self.openat2.store(false, Ordering::Relaxed);
    }
}

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

/// The names in a folder, sorted, without `.` and `..`.
pub(crate) fn names_in(folder: impl AsFd) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(folder)? {
        let name = CStr::to_bytes(entry?.file_name()).to_vec();
        if !matches!(name.as_slice(), b"." | b"..") {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}
