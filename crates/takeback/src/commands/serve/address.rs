//! The path of a home's socket, which serves all its workspaces.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::place::runtime_folder;
use crate::stores;

/// `$XDG_RUNTIME_DIR/takeback/<16 hex of BLAKE3(canonical home)>.sock`; or `<home>/run/` if the user has no
/// private runtime folder.
pub(super) fn of(home: &Path) -> std::io::Result<PathBuf> {
    let hash = blake3::hash(stores::real_path(home)?.as_os_str().as_bytes()).to_hex();
    let folder = match runtime_folder() {
        Some(folder) => folder.join("takeback"),
        None => home.join("run"),
    };
    Ok(folder.join(format!("{}.sock", &hash[..16])))
}
