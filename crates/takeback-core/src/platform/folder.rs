//! Opening and listing folders without following a link.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, RawDir, ResolveFlags};
use rustix::io::Errno;

/// What a folder is opened for.
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

/// The folder `name` of `folder` (`.`: that folder again). Fails if it is a link.
pub(crate) fn open_folder(
    folder: impl AsFd,
    name: &[u8],
    access: Access,
) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(folder, name, access.flags(), Mode::empty())
}

pub(crate) fn open_file_system_root(access: Access) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/", access.flags(), Mode::empty())?)
}

/// The file `name` of `folder`, for reading. Fails if it is a link, and does not wait for the other end
/// of a pipe.
pub(crate) fn open_file(folder: impl AsFd, name: &[u8]) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?))
}

/// The folder at `path` below `from`, in as few calls as the longest path of the kernel allows. Fails
/// if any part of the path is a link or leads out of `from`, even if one took a folder's place while
/// the call runs. [`lacks_open_beneath`] says whether the kernel has no such call.
pub(crate) fn open_beneath(
    from: BorrowedFd<'_>,
    path: &[u8],
    access: Access,
) -> Result<OwnedFd, Errno> {
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

/// The longest path the kernel accepts in one call, without the zero byte at its end.
const LONGEST_PATH: usize = 4095;

/// Whether [`open_beneath`] failed because the kernel is too old for it, or a sandbox forbids it.
pub(crate) fn lacks_open_beneath(error: Errno) -> bool {
    matches!(error, Errno::NOSYS | Errno::PERM)
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

/// Whether a folder is on a file system known to be local: there a folder's times move with every name
/// in it, and every write is reported to a watcher. On network file systems other machines write
/// unseen.
pub(crate) fn is_on_local_file_system(folder: impl AsFd) -> bool {
    rustix::fs::fstatfs(folder).is_ok_and(|fs| {
        let kind = u32::try_from(fs.f_type & 0xffff_ffff).unwrap_or(0);
        LOCAL_FILE_SYSTEMS.contains(&kind)
    })
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
