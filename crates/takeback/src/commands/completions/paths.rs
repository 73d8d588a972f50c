//! Paths at the cursor: on disk, in the store, and programs.

use std::collections::BTreeSet;
use std::fs::DirEntry;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::Candidate;
use crate::place::{environment, user_home};

/// Which entries of a folder are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathKind {
    Any,
    Folder,
}

/// A path as a shell would pass it.
pub(super) fn expanded(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), user_home()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

/// What begins with `word` on disk, seen from `folder`. Folders end with a slash.
pub(super) fn on_disk(folder: &Path, word: &str, kind: PathKind) -> Vec<Candidate> {
    let (above, name) = split(word);
    let Ok(entries) = std::fs::read_dir(folder.join(expanded(above))) else { return Vec::new() };
    let mut found: Vec<String> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let found = entry.file_name().into_string().ok()?;
            let is_meant = found.starts_with(name) && (!found.starts_with('.') || !name.is_empty());
            let is_folder = is_meant && is_folder(&entry);
            let is_listed = is_meant && (is_folder || kind == PathKind::Any);
            is_listed.then(|| format!("{above}{found}{}", if is_folder { "/" } else { "" }))
        })
        .collect();
    found.sort();
    found.into_iter().map(|path| Candidate::new(path, "")).collect()
}

/// What begins with `word` among the paths of a workspace, one folder at a time. `below` is the current
/// folder's path in the workspace.
pub(super) fn recorded(paths: &[String], below: &str, word: &str) -> Vec<Candidate> {
    let whole = if below.is_empty() { word.to_owned() } else { format!("{below}/{word}") };
    let (above, _) = split(word);
    let skipped = split(&whole).0.len();
    let next = |path: &String| {
        // Not the folder itself.
        let name = path.starts_with(&whole).then(|| &path[skipped..])?;
        (!name.is_empty()).then_some(())?;
        let end = name.find('/').map_or(name.len(), |at| at + 1);
        Some(format!("{above}{}", &name[..end]))
    };
    let found: BTreeSet<String> = paths.iter().filter_map(next).collect();
    found.into_iter().map(|path| Candidate::new(path, "")).collect()
}

/// Programs on PATH, and paths.
pub(super) fn programs(folder: &Path, word: &str) -> Vec<Candidate> {
    if word.is_empty() || word.contains('/') {
        return on_disk(folder, word, PathKind::Any);
    }
    let folders = environment("PATH").unwrap_or_default();
    let entries = std::env::split_paths(&folders).filter_map(|folder| folder.read_dir().ok());
    let is_program = |entry: &DirEntry| {
        let file = entry.path().metadata();
        file.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let named = entries.flatten().filter_map(Result::ok).filter_map(|entry| {
        let name = entry.file_name().into_string().ok().filter(|name| name.starts_with(word))?;
        is_program(&entry).then_some(name)
    });
    let found: BTreeSet<String> = named.collect();
    found.into_iter().map(|name| Candidate::new(name, "")).collect()
}

/// The part up to the last slash, and the rest.
fn split(word: &str) -> (&str, &str) {
    word.split_at(word.rfind('/').map_or(0, |at| at + 1))
}

fn is_folder(entry: &DirEntry) -> bool {
    entry.path().metadata().is_ok_and(|file| file.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_paths_are_offered_folder_by_folder() {
        let paths =
            ["README", "src/cart.rs", "src/main.rs", "src/deep/a", "srd"].map(str::to_owned);
        let offered = |below: &str, word: &str| -> Vec<String> {
            recorded(&paths, below, word).into_iter().map(|found| found.word).collect()
        };
        assert_eq!(offered("", ""), ["README", "src/", "srd"]);
        assert_eq!(offered("", "sr"), ["src/", "srd"]);
        assert_eq!(offered("", "src/"), ["src/cart.rs", "src/deep/", "src/main.rs"]);
        assert_eq!(offered("src", ""), ["cart.rs", "deep/", "main.rs"]);
        assert_eq!(offered("src", "deep/"), ["deep/a"]);
        assert_eq!(offered("", "lost"), [""; 0]);
    }
}
