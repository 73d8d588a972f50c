//! Finds the workspaces that a hook event belongs to, and the agent's process.

use std::path::{Path, PathBuf};

use takeback_agents::{HookEvent, HookEventKind};
use takeback_core::process;
use takeback_store::{Process, Timestamp};

use crate::place;
use crate::stores::is_protected;

/// Workspaces of one session, at most.
const MOST: usize = 8;

/// The workspaces that an event belongs to, the session's own first: the known ones, and at most one more.
///
/// A session stays in the workspace in which it began, even if the agent changes its folder. A git worktree
/// is added, since the workspace around it often ignores it, and so is another folder that is already
/// protected. No other folder becomes a workspace because an agent was in it, least of all a parent folder.
pub(super) fn roots_of(
    home: &Path,
    hook_event: &HookEvent,
    known: &[PathBuf],
) -> Result<Vec<PathBuf>, String> {
    let mut roots = known.to_vec();
    let cwd = hook_event.cwd.as_deref().or(known.first().map(PathBuf::as_path));
    let cwd = cwd.ok_or("the agent's folder is unknown")?;
    let Some(cwd) = existing_ancestor(cwd) else {
        let lost = || format!("{}: there is no such folder", cwd.display());
        return if roots.is_empty() { Err(lost()) } else { Ok(roots) };
    };
    let worktree = cwd.ancestors().find(|folder| is_worktree(folder)).map(Path::to_owned);
    let Some(own) = roots.first() else {
        return Ok(vec![worktree.unwrap_or_else(|| place::root_of(&cwd, home))]);
    };
    // The end of a session or call belongs to the workspaces of its start.
    let begins = matches!(
        hook_event.kind,
        HookEventKind::SessionStart | HookEventKind::Prompt { .. } | HookEventKind::BeforeTool(_)
    );
    if !begins || roots.len() >= MOST {
        return Ok(roots);
    }
    let protected = || Some(place::root_of(&cwd, home)).filter(|it| is_protected(it, home));
    let another = worktree.or_else(protected);
    roots.extend(another.filter(|it| !own.starts_with(it) && !known.contains(it)));
    Ok(roots)
}

/// The workspace that contains a path: the innermost, or else the session's own.
pub(super) fn root_of_path<'r>(roots: &'r [PathBuf], path: &Path) -> Option<&'r PathBuf> {
    let real = existing_ancestor(path).unwrap_or_else(|| path.to_owned());
    let holding = roots.iter().filter(|root| real.starts_with(root));
    holding.max_by_key(|root| root.components().count()).or(roots.first())
}

/// The longest existing prefix of a path, without links: the agent may just have deleted its own folder.
fn existing_ancestor(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|folder| std::fs::canonicalize(folder).ok())
}

/// In a git worktree, `.git` is a file that points into the repository's `.git` folder.
fn is_worktree(folder: &Path) -> bool {
    let file = folder.join(".git");
    // Reading a pipe of that name would block.
    let is_file = std::fs::symlink_metadata(&file).is_ok_and(|found| found.is_file());
    let leads_to = || std::fs::read_to_string(&file);
    is_file
        && leads_to().is_ok_and(|text| text.starts_with("gitdir:") && text.contains("/worktrees/"))
}

/// The process that ran a hook, and when it did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HookRun {
    /// The agent: the nearest parent process that is not a shell or similar. Agents run hooks through a
    /// shell, which may or may not stay in between.
    pub(crate) agent: Option<Process>,
    pub(crate) at: Option<Timestamp>,
}

impl HookRun {
    /// Of this process.
    pub(super) fn of_this_process() -> Self {
        const BETWEEN: &[&str] = &[
            "sh", "bash", "dash", "zsh", "fish", "ksh", "busybox", "env", "timeout", "nice",
            "setsid",
        ];
        const MOST: usize = 8;
        let mut pid = std::process::id();
        for _ in 0..MOST {
            let Some(above) = process::parent_of(pid).filter(|pid| *pid > 1) else { break };
            let Some(name) = process::name_of(above) else { break };
            if !BETWEEN.contains(&name.as_str()) {
                return Self { agent: process::started(above), at: process::started_at(pid) };
            }
            pid = above;
        }
        Self::default()
    }
}
