//! The floor of every scan: `stat` of each file whose name is known, relative to its opened folder,
//! on all cores.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat};

use crate::Result;
use crate::corpus::Corpus;
use crate::measure::{Cost, inside};

const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

pub(crate) struct Floor {
    root: OwnedFd,
    /// Relative to the root, each with the names of its files.
    folders: Vec<(CString, Vec<CString>)>,
    files: usize,
}

impl Floor {
    pub(crate) fn new(corpus: &Corpus) -> Result<Self> {
        let mut folders: BTreeMap<&Path, Vec<CString>> = BTreeMap::new();
        for path in &corpus.paths {
            let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { continue };
            folders.entry(folder).or_default().push(CString::new(name.as_bytes())?);
        }
        let folders = folders.into_iter().map(|(folder, names)| {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            Ok((CString::new(folder.as_os_str().as_bytes())?, names))
        });
        Ok(Self {
            root: openat(CWD, &corpus.tree, FOLDER, Mode::empty())?,
            folders: folders.collect::<Result<_>>()?,
            files: corpus.paths.len(),
        })
    }

    pub(crate) fn measure(&self) -> Result<Cost> {
        let cores = std::thread::available_parallelism()?.get();
        let next = AtomicUsize::new(0);
        let (found, cost) = inside(|| {
            Ok(std::thread::scope(|scope| {
                let others: Vec<_> =
                    (1..cores).map(|_| scope.spawn(|| self.stat_folders(&next).ok())).collect();
                let own = self.stat_folders(&next).ok();
                let others = others.into_iter().map(|other| other.join().unwrap_or_default());
                others.chain([own]).try_fold(0, |sum, found| Some(sum + found?))
            }))
        })?;
        if found == Some(self.files) { Ok(cost) } else { Err("files vanished".into()) }
    }

    /// Takes folders until none is left; the number of files in them.
    fn stat_folders(&self, next: &AtomicUsize) -> rustix::io::Result<usize> {
        let mut found = 0;
        while let Some((folder, names)) = self.folders.get(next.fetch_add(1, Ordering::Relaxed)) {
            let folder = openat(&self.root, folder, FOLDER, Mode::empty())?;
            for name in names {
                statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            }
            found += names.len();
        }
        Ok(found)
    }
}
