//! Where a path leads, and whether the file tools may go there: only inside the workspace, links
//! followed.

use std::path::{Path, PathBuf};

use takeback_core::Workspace;

/// The real place of something that is there.
pub(super) fn to_read(workspace: &Workspace, path: &str) -> Result<PathBuf, String> {
    let root = workspace.root.path();
    let real = std::fs::canonicalize(root.join(path)).map_err(|error| why(path, &error))?;
    if real.starts_with(root) { Ok(real) } else { Err(outside(path)) }
}

/// The real place where writing to `path` would end up, there or not.
pub(super) fn to_write(workspace: &Workspace, path: &str) -> Result<PathBuf, String> {
    let root = workspace.root.path();
    let Some(resolved) = workspace.resolve(Path::new(path)) else {
        if std::fs::canonicalize(root.join(path)).is_ok_and(|real| real == root) {
            return Err(format!("{path} is a folder"));
        }
        return Err(format!("{path} is refused: it belongs to version control or to Takeback"));
    };
    let real = workspace.absolute(&resolved);
    if real.starts_with(root) { Ok(real) } else { Err(outside(path)) }
}

fn outside(path: &str) -> String {
    format!("{path} is refused: it leads outside of the workspace")
}

/// Without the place on this machine: the model named the path, and knows it by that name.
pub(super) fn why(path: &str, error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => format!("{path} is not there"),
        ErrorKind::PermissionDenied => format!("{path} is not for this user (permission denied)"),
        ErrorKind::IsADirectory => format!("{path} is a folder"),
        // The second is what making folders says of a file in their way.
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            format!("{path} leads through something that is no folder")
        }
        _ => format!("{path}: {error}"),
    }
}
