//! In which file an agent looks for hooks.

use std::path::{Path, PathBuf};

use crate::hook::Plugged;

/// For whom hooks are put in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// For everything that the user does with the agent.
    User,
    /// For everybody who works in one project.
    Project,
}

/// Where the user keeps things, as the environment tells it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Homes {
    pub user: PathBuf,
    /// `CLAUDE_CONFIG_DIR`
    pub claude: Option<PathBuf>,
    /// `CODEX_HOME`
    pub codex: Option<PathBuf>,
    /// `COPILOT_HOME`
    pub copilot: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`
    pub config: Option<PathBuf>,
    /// `XDG_DATA_HOME`
    pub data: Option<PathBuf>,
}

/// The folder in which an agent keeps what is the user's.
#[must_use]
pub fn home_of(agent: Plugged, homes: &Homes) -> PathBuf {
    let below = |name: &str| homes.user.join(name);
    match agent {
        Plugged::Claude => homes.claude.clone().unwrap_or_else(|| below(".claude")),
        Plugged::Codex => homes.codex.clone().unwrap_or_else(|| below(".codex")),
        Plugged::Gemini => below(".gemini"),
        Plugged::Qwen => below(".qwen"),
        Plugged::Opencode => {
            homes.config.clone().unwrap_or_else(|| below(".config")).join("opencode")
        }
        Plugged::Copilot => homes.copilot.clone().unwrap_or_else(|| below(".copilot")),
    }
}

/// The file that Takeback's hooks stand in. `project`: the root of the project.
#[must_use]
pub fn file_of(agent: Plugged, scope: Scope, homes: &Homes, project: &Path) -> PathBuf {
    let folder = match (scope, agent) {
        (Scope::User, _) => home_of(agent, homes),
        (Scope::Project, Plugged::Copilot) => project.join(".github"),
        (Scope::Project, _) => project.join(format!(".{}", agent.name())),
    };
    folder.join(match agent {
        Plugged::Claude | Plugged::Gemini | Plugged::Qwen => "settings.json",
        Plugged::Codex => "hooks.json",
        Plugged::Opencode => "plugins/takeback.js",
        Plugged::Copilot => "hooks/takeback.json",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_has_its_file() {
        let homes = Homes { user: "/u".into(), ..Homes::default() };
        let moved = Homes {
            user: "/u".into(),
            claude: Some("/c".into()),
            codex: Some("/x".into()),
            copilot: Some("/p".into()),
            config: Some("/xdg".into()),
            data: None,
        };
        let files = |scope, homes| {
            Plugged::ALL.map(|agent| {
                file_of(agent, scope, homes, Path::new("/w")).to_str().unwrap().to_owned()
            })
        };
        assert_eq!(
            files(Scope::User, &homes),
            [
                "/u/.claude/settings.json",
                "/u/.codex/hooks.json",
                "/u/.gemini/settings.json",
                "/u/.qwen/settings.json",
                "/u/.config/opencode/plugins/takeback.js",
                "/u/.copilot/hooks/takeback.json",
            ]
        );
        assert_eq!(
            files(Scope::User, &moved),
            [
                "/c/settings.json",
                "/x/hooks.json",
                "/u/.gemini/settings.json",
                "/u/.qwen/settings.json",
                "/xdg/opencode/plugins/takeback.js",
                "/p/hooks/takeback.json",
            ]
        );
        assert_eq!(
            files(Scope::Project, &moved),
            [
                "/w/.claude/settings.json",
                "/w/.codex/hooks.json",
                "/w/.gemini/settings.json",
                "/w/.qwen/settings.json",
                "/w/.opencode/plugins/takeback.js",
                "/w/.github/hooks/takeback.json",
            ]
        );
    }
}
