//! Which files a tool call is about to write, as far as its input names them.

use std::path::{Path, PathBuf};

use serde_json::Value;
use takeback_core::middleware::command_in;
use takeback_core::{CallTargets, Tools};

use super::folder::folder_after;

/// Keys that hold the path of a file to write.
const KEYS: &[&str] = &[
    "file_path",
    "filePath",
    "path",
    "notebook_path",
    "absolute_path",
    "filepath",
    "target_file",
    "new_path",
];

/// Keys of lists whose elements name further files.
const LISTS: &[&str] = &["edits", "files", "operations", "changes"];

/// Keys whose text may be a patch.
const PATCHES: &[&str] = &["input", "patch", "patchText", "patch_text", "diff", "command", "cmd"];

/// The start of a patch in the format of `apply_patch`.
const BEGIN: &str = "*** Begin Patch";

/// What a call of `tool` may write. Paths that are not absolute begin at `cwd`.
#[must_use]
pub fn call_targets(tools: &Tools, tool: &str, input: &Value, cwd: Option<&Path>) -> CallTargets {
    // A text that is only a patch is not a command, even under the key of one.
    let command = command_in(input)
        .or_else(|| text_of(input, "cmd"))
        .filter(|command| !command.trim_start().starts_with(BEGIN));
    let paths: Vec<PathBuf> = paths_in(input).into_iter().map(|path| from(cwd, path)).collect();
    tools.touches(tool, paths, command)
}

fn from(cwd: Option<&Path>, path: PathBuf) -> PathBuf {
    match cwd {
        Some(cwd) => cwd.join(path),
        None => path,
    }
}

pub(super) fn paths_in(input: &Value) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        KEYS.iter().filter_map(|key| input.get(key)?.as_str()).map(PathBuf::from).collect();
    for list in LISTS.iter().filter_map(|key| input.get(key)?.as_array()) {
        paths.extend(list.iter().flat_map(paths_in));
    }
    // A command may be a list of words, and some agents send the patch as the whole input.
    let patches = PATCHES.iter().filter_map(|key| input.get(key));
    for patch in patches.flat_map(texts).chain(input.as_str()) {
        paths.extend(paths_of_patch(patch));
    }
    paths
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn text_of(input: &Value, key: &str) -> Option<String> {
    match input.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => {
            Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    }
}

/// The files that a patch in the format of `apply_patch` names, anywhere in a text such as a shell command.
/// After a `cd`, also the same paths from that folder.
#[must_use]
pub fn paths_of_patch(text: &str) -> Vec<PathBuf> {
    const NAMES: &[&str] =
        &["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    let Some(at) = text.find(BEGIN) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = text[at..]
        .lines()
        .filter_map(|line| NAMES.iter().find_map(|name| line.trim_start().strip_prefix(name)))
        .map(|path| PathBuf::from(path.trim_end()))
        .collect();
    // The `cd` may fail.
    if let Some(folder) = folder_after(&text[..at]) {
        let there = paths.iter().map(|path| folder.join(path));
        let there: Vec<PathBuf> = there.filter(|path| !paths.contains(path)).collect();
        paths.extend(there);
    }
    paths
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::default_tools;

    fn paths(tool: &str, input: &Value) -> CallTargets {
        call_targets(&default_tools(), tool, input, Some(Path::new("/w/sub")))
    }

    fn names(paths: &[&str]) -> CallTargets {
        CallTargets::Paths(paths.iter().map(PathBuf::from).collect())
    }

    #[test]
    fn every_path_that_an_edit_names_is_found() {
        assert_eq!(paths("Edit", &json!({"file_path": "/w/a"})), names(&["/w/a"]));
        assert_eq!(paths("write_file", &json!({"path": "a"})), names(&["/w/sub/a"]));
        let input = json!({"edits": [{"file_path": "a"}, {"file_path": "b"}]});
        assert_eq!(paths("MultiEdit", &input), names(&["/w/sub/a", "/w/sub/b"]));
    }

    #[test]
    fn a_patch_names_what_it_adds_changes_deletes_and_moves() {
        let patch = "*** Begin Patch\n*** Add File: new/a.txt\n+x\n*** Update File: b c.txt\n\
                     *** Move to: d.txt\n@@\n-x\n+y\n*** Delete File: e\n*** End Patch\n";
        let found: Vec<PathBuf> =
            ["new/a.txt", "b c.txt", "d.txt", "e"].iter().map(PathBuf::from).collect();
        assert_eq!(paths_of_patch(patch), found);
        assert_eq!(paths_of_patch(&format!("apply_patch <<'EOF'\n{patch}EOF\n")), found);
        assert_eq!(paths_of_patch("echo '*** Add File: no'"), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_patch_after_a_change_of_folder_names_files_there_too() {
        let patch = "*** Begin Patch\n*** Update File: a\n*** Delete File: /w/b\n*** End Patch\n";
        let command = format!("cd 'my dir' && apply_patch <<'EOF'\n{patch}EOF\n");
        let found = |input: Value| match paths("Bash", &input) {
            CallTargets::Anything { paths, .. } => paths,
            other => panic!("{other:?}"),
        };
        let both: Vec<PathBuf> =
            ["/w/sub/a", "/w/b", "/w/sub/my dir/a"].iter().map(PathBuf::from).collect();
        assert_eq!(found(json!({"command": command})), both);
        assert_eq!(found(json!({"cmd": command})), both);
        assert_eq!(found(json!({"command": ["bash", "-lc", command]})), both);
    }
}
