//! `read_file` and `list_files`.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use takeback_core::Workspace;

use super::limit::MOST;
use super::{Outcome, ReadInput, count, paths};

/// Larger files are not read; the model can use the shell.
const LARGEST: u64 = 16 << 20;

const MOST_NAMES: usize = 1000;

pub(super) fn read(workspace: &Workspace, read: &ReadInput) -> Result<Outcome, String> {
    let real = paths::resolve_for_read(workspace, &read.path)?;
    let text = text_of(&read.path, &real)?;
    let from = read.offset.unwrap_or(1).max(1) - 1;
    let total = text.lines().count();
    if from > 0 && from >= total {
        return Err(format!("{} has only {}", read.path, count(total, "line")));
    }
    let mut shown = String::new();
    let (mut lines, mut room) = (0, MOST);
    for line in text.split_inclusive('\n').skip(from).take(read.limit.unwrap_or(usize::MAX)) {
        let length = line.chars().count();
        if length > room {
            // Only a first line that is too long is cut; other lines stay whole.
            if lines == 0 {
                shown.extend(line.chars().take(room));
                shown.push_str("\n[the line continues]");
                lines = 1;
            }
            break;
        }
        (lines, room) = (lines + 1, room - length);
        shown.push_str(line);
    }
    let end = from + lines;
    if end < total {
        shown.push_str(&format!("\n[{total} lines in total; continue with offset {}]", end + 1));
    }
    let line = if lines == total {
        count(total, "line")
    } else {
        format!("lines {} to {end} of {total}", from + 1)
    };
    Ok(Outcome::done(line, if shown.is_empty() { "[the file is empty]".to_owned() } else { shown }))
}

/// The text of a plain file that is not too large.
pub(super) fn text_of(path: &str, real: &Path) -> Result<String, String> {
    let metadata = std::fs::metadata(real).map_err(|error| paths::describe_error(path, &error))?;
    if metadata.is_dir() {
        return Err(format!("{path} is a folder"));
    }
    // Opening a pipe would wait for a writer.
    if !metadata.is_file() {
        return Err(format!("{path} is not a plain file"));
    }
    if metadata.len() > LARGEST {
        let size = metadata.len() >> 20;
        return Err(format!("{path} is too large ({size} MiB): use the shell"));
    }
    let mut bytes = Vec::new();
    File::open(real)
        .and_then(|file| file.take(LARGEST).read_to_end(&mut bytes))
        .map_err(|error| paths::describe_error(path, &error))?;
    let binary = || format!("{path} is binary ({} bytes)", metadata.len());
    if bytes.contains(&0) {
        return Err(binary());
    }
    String::from_utf8(bytes).map_err(|_not_text| binary())
}

pub(super) fn list(workspace: &Workspace, path: &str) -> Result<Outcome, String> {
    let real = paths::resolve_for_read(workspace, path)?;
    if !real.is_dir() {
        return Err(format!("{path} is not a folder"));
    }
    let failed = |error| paths::describe_error(path, &error);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&real).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name().to_string_lossy().into_owned();
        names.push(if is_folder { format!("{name}/") } else { name });
    }
    names.sort();
    let line = count(names.len(), "name");
    let left_out = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    if left_out > 0 {
        names.push(format!("[{left_out} left out]"));
    }
    let text = if names.is_empty() { "[the folder is empty]".to_owned() } else { names.join("\n") };
    Ok(Outcome::done(line, super::limit::shorten(&text)))
}
