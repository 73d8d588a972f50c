//! Why hooks that are in place do not run, and what to do about it.

use std::path::{Path, PathBuf};

use takeback_agents::hook::Plugged;
use takeback_agents::install::{Homes, find, home_of};

use crate::place::shown;

/// A reason that was found, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cause {
    pub(super) why: String,
    pub(super) next: String,
}

pub(super) fn switched_off(agent: Plugged, homes: &Homes, root: &Path) -> Option<Cause> {
    settings_of(agent, homes, root).into_iter().find_map(|file| {
        let found = find(agent, &std::fs::read(&file).ok()?).ok()?;
        let key = found.switched_off?;
        let file = shown(&file);
        Some(Cause {
            why: format!("{key} in {file} switches all hooks off"),
            next: format!("Take {key} out of {file}."),
        })
    })
}

/// Every file in which hooks can be switched off.
fn settings_of(agent: Plugged, homes: &Homes, root: &Path) -> Vec<PathBuf> {
    let own = home_of(agent, homes);
    let project = root.join(format!(".{}", agent.name()));
    match agent {
        Plugged::Claude => vec![
            own.join("settings.json"),
            project.join("settings.json"),
            project.join("settings.local.json"),
            PathBuf::from("/etc/claude-code/managed-settings.json"),
        ],
        Plugged::Gemini | Plugged::Qwen => {
            vec![own.join("settings.json"), project.join("settings.json")]
        }
        Plugged::Codex | Plugged::Opencode | Plugged::Copilot => Vec::new(),
    }
}
