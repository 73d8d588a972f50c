//! Takeback's hooks in the settings of agents: install, remove, find.
//!
//! Contents in, contents out; nothing is read or written here. A settings file belongs to its user:
//! comments, order, indentation and all other settings stay as they are. A file that cannot be
//! parsed is refused as a whole.

mod command;
mod own_file;
pub(crate) mod plugin;
mod sessions;
mod settings;
mod splice;

use std::path::Path;

use serde_json::Value;

pub(crate) use self::command::IGNORE_FAILURE;
pub use self::command::{HookCommand, HookProgram, ProgramWord, command_line};
pub use self::own_file::OwnFile;
pub use self::sessions::{SessionInfo, read_session};
pub use self::settings::{JsonDialect, SettingsFormat, TimeUnit};
use crate::agents::AGENTS;
use crate::kind::AgentKind;

/// Who hooks are installed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookScope {
    /// The user, in every project.
    User,
    /// Everyone who works in one project.
    Project,
}

/// How an agent's hooks are written.
#[derive(Debug, Clone, Copy)]
pub enum HookFormat {
    /// Into a JSON file that has other settings too.
    Settings(SettingsFormat),
    /// Into a file with nothing else in it.
    OwnFile(OwnFile),
}

impl HookFormat {
    /// Plain JSON, as Claude Code reads it.
    pub const PLAIN_SETTINGS: Self = Self::Settings(SettingsFormat::PLAIN);

    /// Whether Takeback's hooks have a file of their own.
    #[must_use]
    pub const fn is_own_file(&self) -> bool {
        matches!(self, Self::OwnFile(_))
    }
}

/// Why hooks cannot be installed in a file, or removed from it.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// It is not UTF-8.
    #[error("it is not UTF-8 text")]
    NotText,
    /// It is not JSON that Takeback can read.
    #[error("line {line}, column {column}: {what}")]
    NotJson {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// What the parser says.
        what: String,
    },
    /// Takeback can read it, and the agent cannot.
    #[error("line {line}, column {column}: {what}; {agent} ignores the whole file because of it")]
    Refused {
        /// The agent's title.
        agent: &'static str,
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// What the parser says.
        what: String,
    },
    /// Something in it has another type than agents accept.
    #[error("{what} is not {must_be}")]
    Shape {
        /// The key.
        what: String,
        /// The type.
        must_be: &'static str,
    },
    /// A key above the hooks appears twice, and agents would ignore the first.
    #[error("{what} appears twice in it")]
    Twice {
        /// The key.
        what: String,
    },
    /// A file that should only have Takeback's hooks has other contents.
    #[error("it has contents other than Takeback's hooks")]
    Foreign,
    /// The result would change other settings. No input is known to cause this.
    #[error("the result would change more than Takeback's hooks")]
    ChangesOthers,
}

/// A settings file without Takeback's hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remainder {
    /// None of Takeback's hooks were in it.
    Same,
    /// The other settings.
    Rest(Vec<u8>),
    /// Nothing else was in it.
    Nothing,
}

/// Takeback's hooks in a settings file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HooksInFile {
    /// The hooks.
    pub hooks: Vec<HookInFile>,
    /// Events that should have a hook and have none.
    pub missing: Vec<&'static str>,
    /// The key in the same file that switches all hooks off.
    pub switched_off: Option<&'static str>,
}

/// One of Takeback's hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookInFile {
    /// The agent's name for the event.
    pub event: String,
    /// What it runs.
    pub command: HookCommand,
    /// Where it is in the list of its event.
    pub position: HookPosition,
}

/// Which group of an event, and which hook in it, counted from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HookPosition {
    /// The group.
    pub group: usize,
    /// The hook in the group.
    pub hook: usize,
}

/// What an agent's trust in hooks depends on.
#[derive(Debug, Clone, Copy)]
pub struct TrustSite<'a> {
    /// The contents of [`TrustCheck::file`](crate::kind::TrustCheck::file); empty if there is none.
    pub config: &'a [u8],
    /// The files with Takeback's hooks.
    pub files: &'a [InstalledFile<'a>],
    /// The root of the project.
    pub root: &'a Path,
}

/// A file with Takeback's hooks.
#[derive(Debug, Clone, Copy)]
pub struct InstalledFile<'a> {
    /// Who the hooks are for.
    pub scope: HookScope,
    /// The path by which the agent finds it.
    pub path: &'a Path,
    /// The same with links resolved.
    pub real_path: &'a Path,
    /// Its contents.
    pub contents: &'a [u8],
    /// Takeback's hooks in it.
    pub hooks: &'a [HookInFile],
}

/// Why hooks that are installed do not run, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookProblem {
    /// The reason.
    pub why: String,
    /// What the user can do.
    pub next: String,
}

/// The contents with all of Takeback's hooks; `None` if they are installed already.
///
/// Removes hooks of Takeback's that cannot run or whose event is no longer used.
pub fn add_hooks(
    agent: &AgentKind,
    before: Option<&[u8]>,
    program: &HookProgram<'_>,
) -> Result<Option<Vec<u8>>, SettingsError> {
    match &agent.install {
        HookFormat::OwnFile(file) => file.add_hooks(before, program),
        HookFormat::Settings(_) => settings::add_hooks(agent, before, program),
    }
}

/// The contents without Takeback's hooks. `first`: the contents before the first of them was installed, if
/// known; a list that was empty then stays.
pub fn remove_hooks(
    agent: &AgentKind,
    now: &[u8],
    first: Option<&[u8]>,
) -> Result<Remainder, SettingsError> {
    match &agent.install {
        HookFormat::OwnFile(file) => file.remove_hooks(now),
        HookFormat::Settings(_) => settings::remove_hooks(agent, now, first),
    }
}

/// A settings file as JSON. It may hold comments; an empty one is an empty object.
pub fn parse_settings(contents: &[u8]) -> Result<Value, SettingsError> {
    settings::parse_settings(contents)
}

/// Why the agent itself refuses a settings file that Takeback can read: not every agent accepts
/// comments or trailing commas. `None` also for a file that only Takeback writes.
#[must_use]
pub fn settings_refusal(agent: &AgentKind, contents: &[u8]) -> Option<SettingsError> {
    match &agent.install {
        HookFormat::OwnFile(_) => None,
        HookFormat::Settings(format) => settings::refusal(agent.title, format.dialect, contents),
    }
}

/// Whether a command line is a hook of Takeback's, for any agent.
#[must_use]
pub fn is_takeback_command(line: &str) -> bool {
    AGENTS.iter().any(|agent| HookCommand::read(line, agent.name).is_some())
}

/// Takeback's hooks in a settings file.
pub fn find_hooks(agent: &AgentKind, contents: &[u8]) -> Result<HooksInFile, SettingsError> {
    let mut found = match &agent.install {
        HookFormat::OwnFile(file) => file.find_hooks(contents)?,
        HookFormat::Settings(format) => settings::find_hooks(agent, format, contents)?,
    };
    let is_there = |event: &str| found.hooks.iter().any(|hook| hook.event == event);
    let events = agent.hooks.iter().map(|hook| hook.event);
    found.missing = events.filter(|event| !is_there(event)).collect();
    Ok(found)
}

/// `disableAllHooks`, a key of Claude Code and of agents modelled on it.
pub(crate) fn disable_all_hooks(settings: &Value) -> Option<&'static str> {
    const KEY: &str = "disableAllHooks";
    (settings[KEY] == true).then_some(KEY)
}

#[cfg(test)]
mod tests;
