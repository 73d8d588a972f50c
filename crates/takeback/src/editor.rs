//! The user's editor.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use crate::error::{CommandError, Kind};
use crate::place::environment;
use crate::screen::plain;

/// Runs the user's editor through a shell, as git does: it may have arguments.
pub(crate) fn run_editor(path: &Path) -> Result<(), CommandError> {
    let editor = environment("VISUAL").or_else(|| environment("EDITOR"));
    let editor = editor.unwrap_or_else(|| OsString::from("vi"));
    let name = plain(&editor.to_string_lossy());
    let mut script = editor.clone();
    script.push(r#" "$@""#);
    let status = Command::new("sh").arg("-c").arg(script).arg(editor).arg(path).status();
    let why = match status {
        Ok(status) if status.success() => return Ok(()),
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    Err(CommandError::new(Kind::Error, format!("the editor {name} failed: {why}"))
        .hint("Nothing was changed. VISUAL or EDITOR name the editor."))
}
