//! Resolves the paths of the file tools, and refuses those outside of the workspace. Links are followed.

use std::path::{Path, PathBuf};

use takeback_core::Workspace;

/// The real path of something that exists.
pub(super) fn resolve_for_read(workspace: &Workspace, path: &str) -> Result<PathBuf, String> {
    let root = workspace.root.path();
    let real =
        std::fs::canonicalize(root.join(path)).map_err(|error| describe_error(path, &error))?;
    if real.starts_with(root) { Ok(real) } else { Err(outside_error(path)) }
}

/// The real path that writing to `path` would change, whether it exists or not.
pub(super) fn resolve_for_write(workspace: &Workspace, path: &str) -> Result<PathBuf, String> {
    let root = workspace.root.path();
    let Some(resolved) = workspace.resolve(Path::new(path)) else {
        if std::fs::canonicalize(root.join(path)).is_ok_and(|real| real == root) {
            return Err(format!("{path} is a folder"));
        }
        return Err(format!("{path} is refused: it belongs to version control or to Takeback"));
    };
    let real = workspace.absolute(&resolved);
    if real.starts_with(root) { Ok(real) } else { Err(outside_error(path)) }
}

fn outside_error(path: &str) -> String {
    format!("{path} is refused: it leads outside of the workspace")
}

/// Names the path as the model did, not its real path.
pub(super) fn describe_error(path: &str, error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => format!("{path} does not exist"),
        ErrorKind::PermissionDenied => format!("{path} cannot be accessed (permission denied)"),
        ErrorKind::IsADirectory => format!("{path} is a folder"),
        // The second is the error of creating folders where a file is in the way.
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
            format!("{path}: a parent of it is not a folder")
        }
        _ => format!("{path}: {error}"),
    }
}
