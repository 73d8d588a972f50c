//! What Takeback knows about a supported agent: one [`AgentKind`] for each.
//!
//! An entry is a `static` in the agent's own folder and one line in [`AGENTS`](crate::agents::AGENTS).
//! Everything that differs between agents is a value or a function in it; no other code asks which agent
//! it has.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::conversation_copy::CopyFinder;
use crate::cut::CutFinder;
use crate::hook::{HookEvent, PayloadError};
use crate::install::{HookFormat, HookProblem, HookScope, TrustSite};
use crate::tools::ToolNames;
use crate::transcript::Transcript;

/// A supported agent. Two are equal if they have the same name.
pub struct AgentKind {
    /// Its name on the command line, in settings and in the log.
    pub name: &'static str,
    /// The name that its vendor gives it.
    pub title: &'static str,
    /// The program to look for on `PATH`.
    pub program: &'static str,
    /// Where it keeps the user's settings.
    pub home: HomeFolder,
    /// The file with Takeback's hooks.
    pub hooks_file: HooksFile,
    /// The hooks that Takeback installs.
    pub hooks: &'static [HookSpec],
    /// How hooks are written into `hooks_file`.
    pub install: HookFormat,
    /// What follows the common part of a hook's command line: nothing, for an agent whose payload names
    /// the event.
    pub command_suffix: fn(event: &str) -> String,
    /// Every file whose hooks it runs.
    pub settings: SettingsFiles,
    /// The names of the events after a tool call in those files.
    pub post_tool_events: &'static [&'static str],
    /// Its tools, by what they write.
    pub tools: ToolNames,
    /// Parses the payload of a hook. `event`: what the command line says happened. Lone surrogates and
    /// read-only tools are handled by [`AgentKind::parse`].
    pub decode: fn(payload: &[u8], event: Option<&str>) -> Result<HookEvent, PayloadError>,
    /// What a hook prints to make the agent show a text to its user; `None` if no way is known.
    pub message: Option<fn(text: &str) -> Value>,
    /// How a hook adds a text to what the model reads; `None` if no way is known.
    pub context: Option<HookContext>,
    /// What can be read from its transcripts.
    pub transcript: Transcript,
    /// The files in which it keeps its sessions.
    pub sessions: SessionFiles,
    /// How its conversation is cut back to a prompt. The path is the agent's home.
    pub cut: Option<CutFinder>,
    /// How its conversation continues in a copy in another folder. The path is the agent's home.
    pub copy: Option<CopyFinder>,
    /// How it decides whether to trust a hook, if that can be read.
    pub trust: Option<TrustCheck>,
    /// Whether it ignores the hooks of projects that its user has not trusted. Which ones those are cannot
    /// be read.
    pub ignores_untrusted_projects: bool,
    /// Whether it runs two hooks with the same command line only once.
    pub runs_equal_hooks_once: bool,
    /// What the user has to do after the hooks were installed.
    pub install_note: fn(HookScope) -> Option<&'static str>,
}

impl AgentKind {
    /// The defaults of an entry: no transcript, no trust check, no messages.
    pub const DEFAULT: Self = Self {
        name: "",
        title: "",
        program: "",
        home: HomeFolder { variable: None, subfolder: "", default: "" },
        hooks_file: HooksFile { user: "", project: "" },
        hooks: &[],
        install: HookFormat::PLAIN_SETTINGS,
        command_suffix: |_| String::new(),
        settings: SettingsFiles { user: &[], project: &[], system: &[] },
        post_tool_events: &[],
        tools: ToolNames::NONE,
        decode: |_, _| Err(PayloadError::MissingField { agent: "", field: "decoder" }),
        message: None,
        context: None,
        transcript: Transcript::NONE,
        sessions: SessionFiles {
            folder: HomeFolder { variable: None, subfolder: "", default: "" },
            patterns: &[],
            id: &[],
            began: &[],
        },
        cut: None,
        copy: None,
        trust: None,
        ignores_untrusted_projects: false,
        runs_equal_hooks_once: false,
        install_note: |_| None,
    };

    /// The file that Takeback's hooks are in. `project`: the root of the project.
    #[must_use]
    pub fn hooks_file(&self, scope: HookScope, homes: &Homes, project: &Path) -> PathBuf {
        match scope {
            HookScope::User => self.home.path(homes).join(self.hooks_file.user),
            HookScope::Project => project.join(self.hooks_file.project),
        }
    }
}

impl PartialEq for AgentKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for AgentKind {}

impl fmt::Debug for AgentKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// The user's home folder and environment, from which agents' folders follow.
#[derive(Debug, Clone)]
pub struct Homes {
    /// The home folder.
    pub user: PathBuf,
    /// Reads an environment variable that names a folder.
    pub variable: fn(&str) -> Option<PathBuf>,
}

/// A folder that an environment variable can move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HomeFolder {
    /// The variable that names it.
    pub variable: Option<&'static str>,
    /// What follows the variable's value, as with `XDG_CONFIG_HOME`.
    pub subfolder: &'static str,
    /// Where it is in the user's home without the variable.
    pub default: &'static str,
}

impl HomeFolder {
    /// The folder on this machine.
    #[must_use]
    pub fn path(&self, homes: &Homes) -> PathBuf {
        match self.variable.and_then(homes.variable) {
            // Joining an empty path would add a slash.
            Some(folder) if self.subfolder.is_empty() => folder,
            Some(folder) => folder.join(self.subfolder),
            None => homes.user.join(self.default),
        }
    }
}

/// A file with Takeback's hooks, per scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HooksFile {
    /// Below the agent's home.
    pub user: &'static str,
    /// Below the root of a project.
    pub project: &'static str,
}

/// A hook that Takeback installs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookSpec {
    /// The agent's name for the event.
    pub event: &'static str,
    /// The tools it is for, in the agent's notation; `None`: all of them, or the event has no tool.
    pub matcher: Option<&'static str>,
    /// How long the agent waits for it.
    pub timeout_seconds: u32,
}

impl HookSpec {
    /// A hook for every tool, with the usual timeout. Unknown tools may write too.
    #[must_use]
    pub const fn new(event: &'static str) -> Self {
        Self { event, matcher: None, timeout_seconds: 30 }
    }
}

/// Files whose hooks an agent runs. A name that ends in `*.json` is every such file in its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsFiles {
    /// Below the agent's home.
    pub user: &'static [&'static str],
    /// Below the folder that it works in, or below a folder above that.
    pub project: &'static [&'static str],
    /// Written by an administrator.
    pub system: &'static [&'static str],
}

/// Where an agent keeps its sessions: each pattern is a path below `folder`, `*` any name, `*.jsonl` any
/// name with that ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionFiles {
    /// The folder that patterns begin in.
    pub folder: HomeFolder,
    /// One name for each level.
    pub patterns: &'static [&'static [&'static str]],
    /// Pointers (RFC 6901) into the JSON of a file's first lines: to the id by which hooks know the session.
    pub id: &'static [&'static str],
    /// To the time when it began, as ISO 8601.
    pub began: &'static [&'static str],
}

/// How a hook adds a text to what the model reads.
#[derive(Debug, Clone, Copy)]
pub struct HookContext {
    /// What the hook prints. `event`: the agent's name for the event.
    pub print: fn(event: &str, text: &str) -> Value,
    /// Whether the hook before a tool can do so, too, besides the hook of a prompt.
    pub before_tool: bool,
}

/// How an agent records which hooks its user trusts.
#[derive(Debug, Clone, Copy)]
pub struct TrustCheck {
    /// The file in the agent's home with the record.
    pub file: &'static str,
    /// Why the agent would not run the hooks, if it would not.
    pub problem: fn(&TrustSite<'_>) -> Option<HookProblem>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::AGENTS;

    #[test]
    fn every_agent_has_its_file() {
        let homes = Homes { user: "/u".into(), variable: |_| None };
        let moved = Homes {
            variable: |name| {
                let folders = [
                    ("CLAUDE_CONFIG_DIR", "/c"),
                    ("CODEX_HOME", "/x"),
                    ("COPILOT_HOME", "/p"),
                    ("PI_CODING_AGENT_DIR", "/i"),
                    ("XDG_CONFIG_HOME", "/xdg"),
                ];
                let found = folders.into_iter().find(|(variable, _)| *variable == name);
                found.map(|(_, folder)| folder.into())
            },
            ..homes.clone()
        };
        let rows = [
            ("claude", ".claude/settings.json", "/c/settings.json", ".claude/settings.json"),
            ("codex", ".codex/hooks.json", "/x/hooks.json", ".codex/hooks.json"),
            (
                "gemini",
                ".gemini/settings.json",
                "/u/.gemini/settings.json",
                ".gemini/settings.json",
            ),
            ("qwen", ".qwen/settings.json", "/u/.qwen/settings.json", ".qwen/settings.json"),
            (
                "opencode",
                ".config/opencode/plugins/takeback.js",
                "/xdg/opencode/plugins/takeback.js",
                ".opencode/plugins/takeback.js",
            ),
            (
                "copilot",
                ".copilot/hooks/takeback.json",
                "/p/hooks/takeback.json",
                ".github/hooks/takeback.json",
            ),
            (
                "pi",
                ".pi/agent/extensions/takeback.js",
                "/i/extensions/takeback.js",
                ".pi/extensions/takeback.js",
            ),
        ];
        for agent in AGENTS {
            let row = rows.iter().find(|(name, ..)| *name == agent.name);
            let (_, user, by_variable, project) = row.expect("a row for every agent");
            let file = |scope, homes| agent.hooks_file(scope, homes, Path::new("/w"));
            assert_eq!(file(HookScope::User, &homes), Path::new("/u").join(user));
            assert_eq!(file(HookScope::User, &moved), Path::new(by_variable));
            assert_eq!(file(HookScope::Project, &moved), Path::new("/w").join(project));
        }
    }
}
