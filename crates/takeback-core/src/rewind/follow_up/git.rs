//! HEAD beside a rewind: that it has moved, and how the restored files differ from its commit.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::time::Duration;

use takeback_store::{Call, CallKind, CallState, Point, SessionId, StoreError, WorkPath};

use super::Stage;
use crate::git::{FileStatus, GitError, HeadMove, ListedCommit, Repository, git_state};
use crate::rewind::receipt::Receipt;
use crate::workspace::Workspace;

/// What git will make of a rewind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitFollowUp {
    /// What was checked out in the restored state, and what is checked out now.
    pub head: HeadMove,
    /// How the files differ from the commit. `None` before the rewind, if they do not differ, and if git
    /// gave no answer.
    pub status: Option<GitStatus>,
}

/// What `git status` shows of the files that a rewind changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitStatus {
    /// Files that differ from the checked out commit.
    pub modified: usize,
    /// Files that are staged and not in the commit.
    pub added: usize,
    /// Files that the commit has and the folder does not.
    pub deleted: usize,
    /// Files that git does not know.
    pub untracked: usize,
    /// The commits since the restored state that changed these files, newest first. Empty if HEAD does not
    /// continue what was checked out then.
    pub commits: Vec<CrossedCommit>,
    /// The command that drops these commits and keeps all files. Only if they are all that was committed
    /// since, by agents, on the same branch, and no remote and no tag has them.
    pub reset: Option<String>,
}

/// A commit whose files were taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrossedCommit {
    /// Its id in full.
    pub id: String,
    /// The first line of its message.
    pub summary: String,
    /// The session during whose `git commit` it was made; `None`: it is not known to be an agent's.
    pub session: Option<SessionId>,
}

/// How long one question to git may take.
const TIME_LIMIT: Duration = Duration::from_secs(2);

/// Commits that are listed at most; if there are more, none is claimed.
const COMMITS_MAX: usize = 100;

/// Digits of a commit's id in a command.
const DIGITS: usize = 12;

pub(super) fn follow_up(
    workspace: &Workspace,
    receipt: &Receipt,
    then: &Point,
    stage: Stage,
) -> Result<Option<GitFollowUp>, StoreError> {
    let root = workspace.root.path();
    let now = git_state(root);
    let Some(head) = HeadMove::between(then.git.as_ref(), now.as_ref()) else { return Ok(None) };
    let mut status = None;
    if stage == Stage::Applied
        && head.before.head != head.after.head
        && let Some(repository) = Repository::around(root)
    {
        let repository = repository.with_time_limit(TIME_LIMIT);
        let calls = workspace.store.calls_since(then.created_at)?;
        let paths = changed_paths(workspace, &repository, receipt);
        // The rewind is done whether or not git can be asked about it.
        status = status_of(&repository, &head, &paths, &calls).ok().flatten();
    }
    Ok(Some(GitFollowUp { head, status }))
}

/// The files that the rewind changed, from the top of the repository.
fn changed_paths(
    workspace: &Workspace,
    repository: &Repository,
    receipt: &Receipt,
) -> BTreeSet<Vec<u8>> {
    let merged = receipt.merged_files.iter().map(|note| &note.path);
    let paths = receipt.restored_files.iter().chain(&receipt.deleted_files).chain(merged);
    let inside = paths.filter(|path| !WorkPath::is_outside(path));
    let absolute = inside.map(|path| workspace.absolute(path));
    let from_top = absolute
        .filter_map(|path| Some(repository.path_of(&path)?.as_os_str().as_bytes().to_vec()));
    from_top.collect()
}

fn status_of(
    repository: &Repository,
    head: &HeadMove,
    paths: &BTreeSet<Vec<u8>>,
    calls: &[Call],
) -> Result<Option<GitStatus>, GitError> {
    let listed = repository.status_of(paths)?;
    if listed.is_empty() {
        return Ok(None);
    }
    let count = |status| listed.values().filter(|one| **one == status).count();
    let mut status = GitStatus {
        modified: count(FileStatus::Modified),
        added: count(FileStatus::Added),
        deleted: count(FileStatus::Deleted),
        untracked: count(FileStatus::Untracked),
        ..GitStatus::default()
    };
    // The counts stand without the commits.
    if let Ok(Some((commits, reset))) = commits_behind(repository, head, &listed, calls) {
        (status.commits, status.reset) = (commits, reset);
    }
    Ok(Some(status))
}

type CommitsAndReset = (Vec<CrossedCommit>, Option<String>);

/// The commits that made the listed files differ, and how to drop them. `None`: HEAD does not continue what
/// was checked out then.
fn commits_behind(
    repository: &Repository,
    head: &HeadMove,
    listed: &BTreeMap<Vec<u8>, FileStatus>,
    calls: &[Call],
) -> Result<Option<CommitsAndReset>, GitError> {
    let (Some(before), Some(after)) = (&head.before.head, &head.after.head) else {
        return Ok(None);
    };
    if !repository.is_ancestor(before, after)? {
        return Ok(None);
    }
    let since = repository.commits_between(before, after, COMMITS_MAX + 1)?;
    if since.len() > COMMITS_MAX {
        return Ok(None);
    }
    let changed_them =
        |commit: &&ListedCommit| commit.paths.iter().any(|path| listed.contains_key(path));
    let crossed = since.iter().filter(changed_them).map(|commit| CrossedCommit {
        id: commit.id.clone(),
        summary: commit.summary.clone(),
        session: session_of(commit, calls),
    });
    let reset = reset_command(repository, head, &since, calls)?;
    Ok(Some((crossed.collect(), reset)))
}

/// The session whose shell ran `git commit` when this commit was made.
fn session_of(commit: &ListedCommit, calls: &[Call]) -> Option<SessionId> {
    let (first, last) = (commit.committed_at * 1000, commit.committed_at * 1000 + 999);
    let made_it = |call: &&Call| {
        let CallKind::Shell { command: Some(command), .. } = &call.kind else { return false };
        let commits = command.contains("git") && command.contains("commit");
        let ended_later = call.closed_at.is_some_and(|closed| first <= closed.0);
        commits && call.state != CallState::Rejected && call.opened_at.0 <= last && ended_later
    };
    calls.iter().find(made_it).map(|call| call.session.clone())
}

fn reset_command(
    repository: &Repository,
    head: &HeadMove,
    since: &[ListedCommit],
    calls: &[Call],
) -> Result<Option<String>, GitError> {
    let (Some(before), Some(oldest)) = (&head.before.head, since.last()) else { return Ok(None) };
    // One after another, without merges.
    let parents = since.iter().skip(1).map(|commit| &commit.id).chain([before]);
    let is_chain = since.iter().zip(parents).all(|(commit, parent)| {
        commit.parents.len() == 1 && commit.parents.first() == Some(parent)
    });
    let is_agents = since.iter().all(|commit| session_of(commit, calls).is_some());
    let is_same_branch = head.before.branch == head.after.branch;
    if !(is_chain && is_agents && is_same_branch) || repository.is_shared(&oldest.id)? {
        return Ok(None);
    }
    // A plain reset also resets the index, which would lose what the user has staged.
    let keeps_index = if repository.has_staged()? { " --soft" } else { "" };
    let target = before.get(..DIGITS).unwrap_or(before);
    Ok(Some(format!("git reset{keeps_index} {target}")))
}
