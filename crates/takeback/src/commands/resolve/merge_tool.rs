//! The user's merge tool, as `git mergetool` finds and runs it.
//!
//! git knows how to call some thirty tools, and reads `merge.tool` from the user's settings. It works on a
//! repository with an unmerged file, so a scratch one is made, with both versions.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use takeback_core::Workspace;
use takeback_core::rewind::{Choice, OpenConflict};
use takeback_store::{Entry, disk};

use super::Decision;
use crate::error::{CommandError, Kind};
use crate::screen::name;

/// Opens the tool with both versions of the file. What it saves settles all conflicts of the file.
pub(super) fn run(
    workspace: &Workspace,
    conflict: &OpenConflict,
) -> Result<Decision, CommandError> {
    let Entry::File { digest, .. } = &conflict.left else { return no_lines(conflict) };
    if conflict.lines.is_empty() {
        return no_lines(conflict);
    }
    let text = workspace.store.contents(digest)?;
    let all = |choice: Choice| {
        let choices = vec![Some(choice); conflict.lines.len()];
        conflict.text_with(&text, &choices)
    };
    let (mine, before) = (all(Choice::Mine), all(Choice::Before));
    let folder = tempfile::Builder::new().prefix("takeback-merge-").tempdir()?;
    let file = OsStr::from_bytes(conflict.path.file_name());
    let scratch = Scratch { folder: folder.path() };
    scratch.git(&["init", "--quiet"], b"")?;
    let mut index = Vec::new();
    for (stage, version) in [(2, &mine), (3, &before)] {
        let blob = scratch.git(&["hash-object", "-w", "--stdin"], version)?;
        index.extend(format!("100644 {} {stage}\t", blob.trim()).into_bytes());
        index.extend(file.as_bytes());
        index.push(0);
    }
    scratch.git(&["update-index", "-z", "--index-info"], &index)?;
    let path = folder.path().join(file);
    disk::replace_private_file(&path, &mine)?;
    let left_open = || Decision::Places(vec![None; conflict.lines.len()]);
    if !scratch.merge(file)? {
        return Ok(left_open());
    }
    Ok(Decision::Whole(std::fs::read(&path)?))
}

fn no_lines(conflict: &OpenConflict) -> Result<Decision, CommandError> {
    let path = name(&conflict.path);
    Err(CommandError::new(Kind::Usage, format!("{path} has no lines to merge"))
        .hint("--take mine or --take before settles it."))
}

struct Scratch<'a> {
    folder: &'a Path,
}

impl Scratch<'_> {
    fn command(&self) -> Command {
        let mut git = Command::new("git");
        // The caller may itself run below git.
        for key in [
            "GIT_DIR",
            "GIT_WORK_TREE",
            "GIT_INDEX_FILE",
            "GIT_OBJECT_DIRECTORY",
            "GIT_COMMON_DIR",
            "GIT_NAMESPACE",
            "GIT_PREFIX",
        ] {
            git.env_remove(key);
        }
        git.arg("-C").arg(self.folder);
        git
    }

    fn git(&self, arguments: &[&str], input: &[u8]) -> Result<String, CommandError> {
        let mut git = self.command();
        git.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = git.spawn().map_err(|error| failed(&error.to_string()))?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input)?;
        }
        let done = child.wait_with_output()?;
        match done.status.success() {
            true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
            false => Err(failed(String::from_utf8_lossy(&done.stderr).trim())),
        }
    }

    /// Whether the user saved a merge.
    fn merge(&self, file: &OsStr) -> Result<bool, CommandError> {
        let mut git = self.command();
        // A tool that cannot tell is asked for its word by git.
        git.args(["mergetool", "--no-prompt", "--"]).arg(file);
        let status = git.status().map_err(|error| failed(&error.to_string()))?;
        let unmerged = self.git(&["ls-files", "--unmerged"], b"")?;
        Ok(status.success() && unmerged.is_empty())
    }
}

fn failed(why: &str) -> CommandError {
    CommandError::new(Kind::Error, format!("git could not run the merge tool: {why}"))
        .hint("`git config merge.tool` names it. Nothing was changed.")
}
