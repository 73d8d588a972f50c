//! The checked out branch and commit, read from the repository's files.

use std::path::{Path, PathBuf};

use takeback_store::GitState;

use super::Repository;

/// What was checked out in git before and after something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadMove {
    /// Before it.
    pub before: GitState,
    /// After it; differs from `before`.
    pub after: GitState,
}

impl HeadMove {
    /// `None`: nothing moved, or one of the two is not known.
    #[must_use]
    pub fn between(before: Option<&GitState>, after: Option<&GitState>) -> Option<Self> {
        let (before, after) = before.zip(after).filter(|(before, after)| before != after)?;
        Some(Self { before: before.clone(), after: after.clone() })
    }
}

/// What is checked out in the repository around this folder. `None`: there is no repository, or its files do
/// not tell.
#[must_use]
pub fn git_state(folder: &Path) -> Option<GitState> {
    /// What HEAD contains where branches are not files (`extensions.refStorage = reftable`).
    const ELSEWHERE: &str = "refs/heads/.invalid";
    let git = git_folder(Repository::around(folder)?.top())?;
    let head = read_line(&git.join("HEAD"))?;
    let Some(reference) = head.strip_prefix("ref: ") else {
        // A damaged HEAD names no commit, so it has not moved to one either.
        let is_commit =
            matches!(head.len(), 40 | 64) && head.bytes().all(|c| c.is_ascii_hexdigit());
        return is_commit.then_some(GitState { head: Some(head), branch: None });
    };
    if reference == ELSEWHERE {
        return None;
    }
    let branch = reference.strip_prefix("refs/heads/").unwrap_or(reference).to_owned();
    // A worktree has its own HEAD; the branches are in the main repository.
    let common = common_folder(&git);
    let head = read_line(&common.join(reference)).or_else(|| packed(&common, reference));
    Some(GitState { head, branch: Some(branch) })
}

pub(super) fn git_folder(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let target = read_line(&git)?;
    Some(top.join(target.strip_prefix("gitdir: ")?))
}

/// What all worktrees of a repository share.
pub(super) fn common_folder(git: &Path) -> PathBuf {
    read_line(&git.join("commondir")).map_or_else(|| git.to_owned(), |common| git.join(common))
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

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]
mod tests {
    use super::git_state;

    #[test]
    fn a_damaged_head_is_no_commit() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join(".git");
        std::fs::create_dir(&git).unwrap();
        let id = "0123456789abcdef0123456789abcdef01234567";
        for (text, head) in [(id, Some(id)), ("junk", None), ("", None), (&id[..39], None)] {
            std::fs::write(git.join("HEAD"), text).unwrap();
            let found = git_state(folder.path()).and_then(|state| state.head);
            assert_eq!(found.as_deref(), head, "{text:?}");
        }
    }
}
