//! A folder, held open, below which everything is reached without ever following a link.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;
use takeback_store::WorkPath;

/// The workspace's root folder.
#[derive(Debug)]
pub struct Root {
    fd: OwnedFd,
    path: PathBuf,
    /// The file system it is on; what lies on others is not part of the workspace.
    pub device: u64,
    /// Whether a folder's times move with the names in it: so on local file systems, not always on
    /// network ones.
    pub(crate) folder_times: bool,
    /// Cleared when the kernel has no `openat2`: then folders are opened one by one.
    openat2: AtomicBool,
    /// Cleared when the file system cannot exchange two names.
    exchange: AtomicBool,
    /// Cleared when the file system has no files without a name.
    unnamed: AtomicBool,
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

/// ext2 to ext4, XFS, btrfs, tmpfs, F2FS, ZFS, overlayfs, bcachefs: as the kernel numbers them.
const LOCAL_FILE_SYSTEMS: [u32; 8] = [
    0x0000_ef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0xf2f5_2010,
    0x2fc1_2fc1,
    0x794c_7630,
    0xca45_1a4e,
];

impl Root {
    /// `path` must be absolute and canonical: a link anywhere in it, also one that took a folder's
    /// place since, is refused.
    pub fn open(path: &Path) -> io::Result<Self> {
        let slash = rustix::fs::openat(CWD, c"/", Access::Read.flags(), Mode::empty())?;
        let slash = Self::from_folder(slash, Path::new("/"))?;
        match path.as_os_str().as_bytes().strip_prefix(b"/") {
            Some(b"") => Ok(slash),
            Some(below) => Self::from_folder(slash.folder(below, Access::Read)?, path),
            None => Err(io::Error::new(io::ErrorKind::InvalidInput, "not an absolute path")),
        }
    }

    fn from_folder(fd: OwnedFd, path: &Path) -> io::Result<Self> {
        let device = rustix::fs::fstat(&fd)?.st_dev;
        let folder_times = rustix::fs::fstatfs(&fd).is_ok_and(|fs| {
            let kind = u32::try_from(fs.f_type & 0xffff_ffff).unwrap_or(0);
            LOCAL_FILE_SYSTEMS.contains(&kind)
        });
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
            match open_beneath(self.fd.as_fd(), path, access) {
                Err(Errno::NOSYS | Errno::PERM) => self.openat2.store(false, Ordering::Relaxed),
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

    pub(crate) fn has_unnamed_files(&self) -> bool {
        self.unnamed.load(Ordering::Relaxed)
    }

    /// From now on every file has a name from the start, as on file systems that know no others.
    pub fn without_unnamed_files(&self) {
        self.unnamed.store(false, Ordering::Relaxed);
    }

    /// From now on folders are opened one by one, as on kernels without `openat2`.
    pub fn without_openat2(&self) {
        self.openat2.store(false, Ordering::Relaxed);
    }
}

/// The folder at `path` below `from`, by as few calls as the length of a path allows.
fn open_beneath(from: BorrowedFd<'_>, path: &[u8], access: Access) -> Result<OwnedFd, Errno> {
    let open = |from: BorrowedFd<'_>, path: &[u8], access: Access| {
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(from, path, access.flags(), Mode::empty(), resolve)
    };
    let (mut at, mut rest) = (None::<OwnedFd>, path);
    while rest.len() > LONGEST_PATH {
        let cut = rest[..LONGEST_PATH].iter().rposition(|b| *b == b'/');
        let cut = cut.ok_or(Errno::NAMETOOLONG)?;
        let above = at.as_ref().map_or(from, OwnedFd::as_fd);
        at = Some(open(above, &rest[..cut], Access::Reach)?);
        rest = &rest[cut + 1..];
    }
    open(at.as_ref().map_or(from, OwnedFd::as_fd), rest, access)
}

/// What the kernel takes in one call, without the zero byte at its end.
const LONGEST_PATH: usize = 4095;

/// Opens folders for reading, each from near the last one: in a deep tree the way from the root is not gone
/// again for every folder. Nothing is written through it: a folder that it holds may have been moved.
#[derive(Debug)]
pub(crate) struct Near<'r> {
    root: &'r Root,
    /// The folder opened last.
    last: Vec<u8>,
    /// Folders above it, outermost first, by the length of their paths.
    held: Vec<(usize, OwnedFd)>,
}

impl<'r> Near<'r> {
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
                return Ok(open_beneath(from, rest, access)?);
            };
            let fd = open_beneath(from, &rest[..next], Access::Reach)?;
            self.held.push((len + next, fd));
        }
    }
}

/// At least so many bytes of a path are between two folders that are held open.
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

/// The names in a folder, sorted, without `.` and `..`.
pub(crate) fn names_in(folder: impl AsFd) -> io::Result<Vec<Vec<u8>>> {
    const BUFFER: usize = 32 << 10;
    let mut buffer = Vec::with_capacity(BUFFER);
    let mut entries = RawDir::new(folder, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let name = entry?.file_name().to_bytes().to_vec();
        if !matches!(name.as_slice(), b"." | b"..") {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever was opened before, the folder is the one at the path, and no link is followed.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]
    fn near_opens_what_the_root_opens() {
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
        let mut near = Near::new(&root);
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
