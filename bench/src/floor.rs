//! The least that a look at the whole tree takes: `stat` of every file whose name is known, relative
//! to its opened folder, on all cores.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Result;
use crate::measure::{Cost, inside};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat};

pub struct Floor {
    root: OwnedFd,
    /// From the root, each with the names of its files.
    folders: Vec<(CString, Vec<CString>)>,
    files: usize,
}

impl Floor {
    /// `paths` are those of all files, from the tree's root.
    pub fn new(tree: &Path, paths: &[PathBuf]) -> Result<Self> {
        let mut folders: BTreeMap<&Path, Vec<CString>> = BTreeMap::new();
        for path in paths {
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { continue };
            folders.entry(folder).or_default().push(CString::new(name.as_bytes())?);
        }
        let folders = folders.into_iter().map(|(folder, names)| {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            Ok((CString::new(folder.as_os_str().as_bytes())?, names))
        });
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            root: openat(CWD, tree, flags, Mode::empty())?,
            folders: folders.collect::<Result<_>>()?,
            files: paths.len(),
        })
    }

    pub fn measure(&self) -> Result<Cost> {
        let cores = std::thread::available_parallelism()?.get();
        let next = AtomicUsize::new(0);
        let (seen, cost) = inside(|| {
            let seen = std::thread::scope(|scope| {
                let others: Vec<_> =
                    (1..cores).map(|_| scope.spawn(|| self.look(&next).ok())).collect();
                let mine = self.look(&next).ok();
                others
                    .into_iter()
                    .map(|other| other.join().unwrap_or_default())
                    .chain([mine])
                    .try_fold(0, |sum, seen| Some(sum + seen?))
            });
            Ok(seen)
        })?;
        if seen == Some(self.files) { Ok(cost) } else { Err("files vanished".into()) }
    }

    /// Folders until none is left; the number of files in them.
    fn look(&self, next: &AtomicUsize) -> rustix::io::Result<usize> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut seen = 0;
        while let Some((folder, names)) = self.folders.get(next.fetch_add(1, Ordering::Relaxed)) {
            let folder = openat(&self.root, folder, flags, Mode::empty())?;
            for name in names {
                statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            seen += names.len();
        }
        Ok(seen)
    }
}
