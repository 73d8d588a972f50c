//! Trees of files: read, compared, copied.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use takeback_store::WorkPath;

/// A file, link or folder, as far as trees are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Thing {
    /// A file.
    File {
        /// Its contents.
        bytes: Vec<u8>,
        /// Its permissions.
        mode: u32,
    },
    /// A symbolic link to this target.
    Link(PathBuf),
    /// A folder.
    Folder {
        /// Its permissions.
        mode: u32,
    },
}

/// A path of the log.
#[must_use]
pub fn path(text: &str) -> WorkPath {
    WorkPath::new(text).expect("a plain path")
}

/// Everything below a folder except `.takeback` and `.git`, by relative path.
#[must_use]
pub fn tree(root: &Path) -> BTreeMap<PathBuf, Thing> {
    let mut things = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be read") {
            let path = entry.expect("it has a name").path();
            if matches!(path.file_name().map(|name| name.as_bytes()), Some(b".takeback" | b".git"))
            {
                continue;
            }
            let metadata = fs::symlink_metadata(&path).expect("it is there");
            let mode = metadata.permissions().mode() & 0o777;
            let thing = if metadata.is_dir() {
                open.push(path.clone());
                Thing::Folder { mode }
            } else if metadata.is_symlink() {
                Thing::Link(fs::read_link(&path).expect("it is a link"))
            } else {
                Thing::File { bytes: fs::read(&path).expect("it can be read"), mode }
            };
            let inside = path.strip_prefix(root).expect("it is below").to_owned();
            things.insert(inside, thing);
        }
    }
    things
}

/// Copies everything below a folder.
pub(crate) fn copy_tree(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("the folder can be read") {
        let from = entry.expect("it has a name").path();
        let to = to.join(from.file_name().expect("it has a name"));
        let metadata = fs::symlink_metadata(&from).expect("it is there");
        if metadata.is_dir() {
            fs::create_dir(&to).expect("a folder is made");
            copy_tree(&from, &to);
            fs::set_permissions(&to, metadata.permissions()).expect("a mode is set");
        } else if metadata.is_symlink() {
            let target = fs::read_link(&from).expect("it is a link");
            std::os::unix::fs::symlink(target, &to).expect("a link is made");
        } else {
            fs::copy(&from, &to).expect("a file is copied");
        }
    }
}
