//! Temporary folders, and projects of small files in them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::Result;

/// A temporary folder with a `project` and a `home` in it, empty at first and removed on drop.
pub(crate) struct Scratch {
    folder: PathBuf,
    is_kept: bool,
}

impl Scratch {
    pub(crate) fn new() -> Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("takeback-bench-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder)?;
        Self::at(&folder, false)
    }

    /// A folder that is not removed, as an earlier run left it.
    pub(crate) fn kept(folder: &Path) -> Result<Self> {
        Self::at(folder, true)
    }

    fn at(folder: &Path, is_kept: bool) -> Result<Self> {
        for part in ["project", "home"] {
            fs::create_dir_all(folder.join(part))?;
        }
        Ok(Self { folder: folder.canonicalize()?, is_kept })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.join("project")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        make_writable(&self.folder);
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("cannot remove {}: {error}", self.folder.display());
        }
    }
}

/// Opens every folder, so that all of them can be removed.
fn make_writable(folder: &Path) {
    // If this fails, removing the folder reports it.
    drop(fs::set_permissions(folder, Permissions::from_mode(0o755)));
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            make_writable(&entry.path());
        }
    }
}

/// Writes `count` small files, each with its own bytes, `per_folder` to a folder.
pub(crate) fn fill(root: &Path, count: usize, per_folder: usize) -> Result<()> {
    for n in 0..count {
        let file = file_path(root, n, per_folder);
        if n.is_multiple_of(per_folder) {
            fs::create_dir_all(file.parent().unwrap_or(root))?;
        }
        fs::write(file, format!("this is file {n}\n"))?;
    }
    Ok(())
}

/// The `n`th file that [`fill`] writes.
pub(crate) fn file_path(root: &Path, n: usize, per_folder: usize) -> PathBuf {
    let folder = n / per_folder;
    root.join(format!("{:03}/{folder:06}/{n}.txt", folder / 1000))
}

/// An empty folder; anything that was in it is removed.
pub(crate) fn make_empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    Ok(fs::create_dir_all(folder)?)
}
