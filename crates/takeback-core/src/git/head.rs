//! The checked out branch and commit, read from the repository's files.

use std::path::{Path, PathBuf};

use takeback_store::GitState;

/// `None`: the workspace's root is not a repository.
#[must_use]
pub fn git_state(root: &Path) -> Option<GitState> {
    let git = git_folder(root)?;
    let head = read_line(&git.join("HEAD"))?;
    let Some(reference) = head.strip_prefix("ref: ") else {
        return Some(GitState { head: Some(head), branch: None });
    };
    let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference).to_owned();
    // A worktree has its own HEAD; the branches are in the main repository.
    let common =
        read_line(&git.join("commondir")).map_or_else(|| git.clone(), |common| git.join(common));
    let head = read_line(&common.join(reference)).or_else(|| packed(&common, reference));
    Some(GitState { head, branch: Some(branch) })
}

fn git_folder(root: &Path) -> Option<PathBuf> {
    let git = root.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let target = read_line(&git)?;
    Some(root.join(target.strip_prefix("gitdir: ")?))
}

fn packed(common: &Path, reference: &str) -> Option<String> {
    let refs = std::fs::read_to_string(common.join("packed-refs")).ok()?;
    refs.lines().find_map(|line| {
        let (commit, name) = line.split_once(' ')?;
        (name == reference).then(|| commit.to_owned())
    })
}

fn read_line(path: &Path) -> Option<String> {
    Some(std::fs::read_to_string(path).ok()?.lines().next()?.to_owned())
}
