//! `write_file` and `edit_file`: write the user's files in place, as any program would. Mode, owner and
//! hard links of a file stay.

#![expect(
    clippy::disallowed_methods,
    reason = "an agent's tool edits the user's files as any program would"
)]

use std::fs;
use std::path::Path;

use takeback_core::Workspace;

use super::{EditInput, Outcome, WriteInput, count, paths, read};

pub(super) fn write(workspace: &Workspace, write: &WriteInput) -> Result<Outcome, String> {
    let WriteInput { path, content } = write;
    let real = paths::resolve_for_write(workspace, path)?;
    let is_there = match fs::metadata(&real) {
        Ok(metadata) if metadata.is_dir() => return Err(format!("{path} is a folder")),
        Ok(metadata) if !metadata.is_file() => return Err(format!("{path} is not a plain file")),
        Ok(_) => true,
        Err(_) => false,
    };
    write_text(path, &real, content)?;
    let done = if is_there { "replaced" } else { "created" };
    let line = format!("{done}, {}", count(content.lines().count(), "line"));
    Ok(Outcome::done(line, format!("{path} was {done}.")))
}

pub(super) fn edit(workspace: &Workspace, edit: &EditInput) -> Result<Outcome, String> {
    let EditInput { path, old_string, new_string, replace_all } = edit;
    if old_string.is_empty() {
        return Err("old_string is empty: use write_file to create a file".to_owned());
    }
    if old_string == new_string {
        return Err("old_string and new_string are the same".to_owned());
    }
    let real = paths::resolve_for_write(workspace, path)?;
    let text = read::text_of(path, &real)?;
    let found = text.matches(old_string.as_str()).count();
    match found {
        0 => return Err(format!("old_string does not occur in {path}")),
        1 => {}
        _ if *replace_all => {}
        _ => {
            return Err(format!(
                "old_string occurs {found} times in {path}: include more of the surrounding text, or \
                 set replace_all"
            ));
        }
    }
    write_text(path, &real, &text.replace(old_string.as_str(), new_string))?;
    let line = count(found, "replacement");
    Ok(Outcome::done(line.clone(), format!("{line} in {path}.")))
}

fn write_text(path: &str, real: &Path, content: &str) -> Result<(), String> {
    if let Some(parent) = real.parent() {
        fs::create_dir_all(parent).map_err(|error| paths::describe_error(path, &error))?;
    }
    fs::write(real, content).map_err(|error| paths::describe_error(path, &error))
}
