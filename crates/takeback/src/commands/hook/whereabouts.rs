//! Which workspace an agent's hook is about, and which process is the agent.

use std::path::{Path, PathBuf};

use takeback_agents::hook::Heard;
use takeback_core::process;
use takeback_store::Process;

use crate::place;

/// The workspace that an event belongs to: the session's, unless the agent works elsewhere now. A
/// worktree of git is one of its own, also inside another, where it is often ignored.
pub(super) fn root_of(
    home: &Path,
    heard: &Heard,
    of_session: Option<&Path>,
) -> Result<PathBuf, String> {
    let cwd = heard.cwd.as_deref().or(of_session).ok_or("where the agent works is not known")?;
    // The agent may just have deleted the folder that it is in.
    let there = cwd.ancestors().find_map(|folder| std::fs::canonicalize(folder).ok());
    let cwd = there.ok_or_else(|| format!("{}: there is no such folder", cwd.display()))?;
    let worktree = cwd.ancestors().find(|folder| is_worktree(folder));
    Ok(match (worktree, of_session) {
        (Some(worktree), Some(root)) if root.starts_with(worktree) => root.to_owned(),
        (Some(worktree), _) => worktree.to_owned(),
        (None, Some(root)) if cwd.starts_with(root) => root.to_owned(),
        (None, _) => place::root_of(&cwd, home),
    })
}

/// A worktree has a file in place of the folder `.git`, which leads to its place in the repository's.
fn is_worktree(folder: &Path) -> bool {
    let leads_to = std::fs::read_to_string(folder.join(".git"));
    leads_to.is_ok_and(|text| text.starts_with("gitdir:") && text.contains("/worktrees/"))
}

/// The process that ran the hook: the nearest above this one that is no shell or the like. Agents run
/// hooks through a shell, which may or may not stay in between.
pub(super) fn agent_process() -> Option<Process> {
    const BETWEEN: &[&str] = &[
        "sh", "bash", "dash", "zsh", "fish", "ksh", "busybox", "env", "timeout", "nice", "setsid",
    ];
    const MOST: usize = 8;
    let mut pid = std::process::id();
    for _ in 0..MOST {
        pid = process::parent_of(pid).filter(|pid| *pid > 1)?;
        let name = process::name_of(pid)?;
        if !BETWEEN.contains(&name.as_str()) {
            return process::started(pid);
        }
    }
    None
}
