//! Checks whether anything can be recorded by writing and removing a small file: neither file modes nor free
//! space guarantee that.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use takeback_store::disk;

use crate::answers;
use crate::place::{quoted, tilde_path};
use crate::stores;

/// The size of a small event: a file system may have room for a name but not for contents.
const SIZE: usize = 4096;

/// A folder that cannot be written.
#[derive(Debug)]
pub(crate) struct WriteFailure {
    path: PathBuf,
    error: io::Error,
}

impl WriteFailure {
    /// The message without the hint.
    pub(crate) fn what(&self) -> String {
        format!(
            "nothing can be recorded: {} cannot be written to: {}",
            tilde_path(&self.path),
            self.error
        )
    }

    pub(crate) fn next(&self) -> String {
        match self.error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "Free some space on that disk; `takeback cleanup` reclaims space.".to_owned()
            }
            io::ErrorKind::ReadOnlyFilesystem => {
                "Mount it read-write, or choose another home with TAKEBACK_HOME.".to_owned()
            }
            io::ErrorKind::PermissionDenied => format!(
                "`chmod u+rwX {}` as its owner, or choose another home with TAKEBACK_HOME.",
                quoted(&self.path)
            ),
            _ => "Fix that disk, or choose another home with TAKEBACK_HOME.".to_owned(),
        }
    }

    pub(crate) fn answer(&self) -> answers::WriteFailure {
        answers::WriteFailure { path: answers::place(&self.path), error: self.error.to_string() }
    }
}

/// What keeps events of a workspace from being recorded; its store need not exist yet.
pub(crate) fn not_writable(home: &Path, root: &Path) -> Option<WriteFailure> {
    let store = stores::store_of(root, home);
    let database = stores::database_of(root, home);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error| WriteFailure { path, error }
    };
    // An existing store does not depend on its parent folders.
    let folder = if store.is_dir() { &store } else { home };
    let tried = try_write(folder).map_err(failed(folder)).and_then(|()| match database.exists() {
        true => allowed(&database, Access::WRITE_OK).map_err(failed(&database)),
        false => Ok(()),
    });
    tried.err()
}

fn try_write(folder: &Path) -> io::Result<()> {
    if folder.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        // The first recorder creates it.
        let above = folder.ancestors().skip(1).find(|above| above.symlink_metadata().is_ok());
        return allowed(above.unwrap_or(folder), Access::WRITE_OK | Access::EXEC_OK);
    }
    let path = folder.join(format!(".probe-{}", std::process::id()));
    let mut file = disk::create_private_file(&path)?;
    let written = disk::append(&mut file, &[0; SIZE]).and_then(|()| disk::sync(&file));
    let removed = disk::remove_store_file(&path);
    written.and(removed)
}

fn allowed(path: &Path, access: Access) -> io::Result<()> {
    Ok(rustix::fs::access(path, access)?)
}
