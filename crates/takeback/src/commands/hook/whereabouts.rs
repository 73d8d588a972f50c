//! Which workspaces an agent's hook is about, and which process is the agent.

use std::path::{Path, PathBuf};

use takeback_agents::{HookEvent, HookEventKind};
use takeback_core::process;
use takeback_store::{Process, Timestamp};

use crate::place;
use crate::stores::is_protected;

/// Workspaces of one session, at most.
const MOST: usize = 8;

/// The workspaces that an event belongs to, the session's own first: `known`, and perhaps one more.
///
/// A session stays in the workspace in which it began, wherever the agent goes. A worktree of git is told
/// as well, since the workspace around it often ignores it, and so is another folder that is protected
/// already. Nothing else becomes a workspace because an agent was there, least of all a folder above.
pub(super) fn roots_of(
    home: &Path,
    hook_event: &HookEvent,
    known: &[PathBuf],
) -> Result<Vec<PathBuf>, String> {
    let mut roots = known.to_vec();
    let cwd = hook_event.cwd.as_deref().or(known.first().map(PathBuf::as_path));
    let cwd = cwd.ok_or("the agent's folder is unknown")?;
    let Some(cwd) = there(cwd) else {
        let lost = || format!("{}: there is no such folder", cwd.display());
        return if roots.is_empty() { Err(lost()) } else { Ok(roots) };
    };
    let worktree = cwd.ancestors().find(|folder| is_worktree(folder)).map(Path::to_owned);
    let Some(own) = roots.first() else {
        return Ok(vec![worktree.unwrap_or_else(|| place::root_of(&cwd, home))]);
    };
    // What ends here has begun where it was told to begin.
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

/// The workspace in which a path lies: the innermost, or the session's own.
pub(super) fn root_of_path<'r>(roots: &'r [PathBuf], path: &Path) -> Option<&'r PathBuf> {
    let real = there(path).unwrap_or_else(|| path.to_owned());
    let holding = roots.iter().filter(|root| real.starts_with(root));
    holding.max_by_key(|root| root.components().count()).or(roots.first())
}

/// As much of a path as exists, without links: the agent may just have deleted the folder that it is in.
fn there(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|folder| std::fs::canonicalize(folder).ok())
}

/// A worktree has a file in place of the folder `.git`, which leads to its place in the repository's.
fn is_worktree(folder: &Path) -> bool {
    let file = folder.join(".git");
    // A pipe of that name would be waited for.
    let is_file = std::fs::symlink_metadata(&file).is_ok_and(|found| found.is_file());
    let leads_to = || std::fs::read_to_string(&file);
    is_file
        && leads_to().is_ok_and(|text| text.starts_with("gitdir:") && text.contains("/worktrees/"))
}

/// The process that ran a hook, and when it did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HookRun {
    /// The agent: the nearest process above this one that is no shell or the like. Agents run hooks
    /// through a shell, which may or may not stay in between.
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
