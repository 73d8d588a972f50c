//! Takeback's hooks in the settings of agents: where they stand, put in, taken out, found.
//!
//! Contents come in, contents go out; nothing is read or written here. A settings file is its owner's:
//! comments, order, indentation and everything that is not Takeback's stay as they are, and what cannot
//! be understood is refused as a whole.

mod command;
mod own;
mod place;
mod sessions;
mod settings;
mod splice;

pub use self::command::{HookCommand, Program};
pub use self::place::{Homes, Scope, file_of, home_of};
pub use self::sessions::{SeenSession, SessionFiles, seen_session, session_files};
use serde_json::Value;

use crate::hook::{Plugged, Wanted, wanted};

#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("it is not text (UTF-8)")]
    NotText,
    #[error("line {line}, column {column}: {what}")]
    NotJson { line: usize, column: usize, what: String },
    #[error(
        "line {line}, column {column}: {what}; {agent} refuses it, and everything else in the file"
    )]
    Refused { agent: &'static str, line: usize, column: usize, what: String },
    #[error("{what} is not {must_be}")]
    Shape { what: String, must_be: &'static str },
    #[error("{what} stands in it twice")]
    Twice { what: String },
    #[error("something else than Takeback's hooks is in it")]
    Foreign,
    #[error("what would come out is not what went in and Takeback's hooks")]
    Unfaithful,
}

/// What stands in a settings file after Takeback's hooks were taken out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Without {
    /// There were none.
    Same,
    Rest(Vec<u8>),
    /// Nothing but them was in it.
    Nothing,
}

/// Takeback's hooks in a settings file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    pub hooks: Vec<FoundHook>,
    /// Events that are wanted, and for which there is none.
    pub missing: Vec<&'static str>,
    /// What in the same file keeps all hooks from running.
    pub switched_off: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundHook {
    pub event: String,
    pub command: HookCommand,
    pub position: Position,
}

/// Which group of an event's, and which hook in it, counted from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    pub group: usize,
    pub hook: usize,
}

/// Whether Takeback's hooks have a file of their own.
#[must_use]
pub const fn is_own(agent: Plugged) -> bool {
    matches!(agent, Plugged::Opencode | Plugged::Copilot)
}

/// The contents with every hook that is wanted; `None`: they are all there.
///
/// Hooks of Takeback's that cannot run, or are for an event that is no longer wanted, go.
pub fn with_hooks(
    agent: Plugged,
    before: Option<&[u8]>,
    program: &Program<'_>,
) -> Result<Option<Vec<u8>>, SettingsError> {
    match agent {
        _ if is_own(agent) => own::with_hooks(agent, before, program),
        _ => settings::with_hooks(agent, before, program),
    }
}

/// The contents without any hook of Takeback's. `first`: what they were before the first of them was put
/// in, if that is known; a list that was empty then stays.
pub fn without_hooks(
    agent: Plugged,
    now: &[u8],
    first: Option<&[u8]>,
) -> Result<Without, SettingsError> {
    match agent {
        _ if is_own(agent) => own::without_hooks(agent, now),
        _ => settings::without_hooks(agent, now, first),
    }
}

/// What a settings file says: JSON that may hold comments. An empty one is an empty object.
pub fn value_of(contents: &[u8]) -> Result<Value, SettingsError> {
    settings::value_of(contents)
}

/// What in a settings file that Takeback can read makes the agent itself refuse it: not every agent reads
/// comments, or commas before a closing bracket. `None` also for a file that only Takeback writes.
#[must_use]
pub fn refused(agent: Plugged, contents: &[u8]) -> Option<SettingsError> {
    if is_own(agent) { None } else { settings::refused(agent, contents) }
}

/// Whether a command line is a hook of Takeback's, for whichever agent.
#[must_use]
pub fn is_own_command(line: &str) -> bool {
    Plugged::ALL.into_iter().any(|agent| HookCommand::read(line, agent).is_some())
}

pub fn find(agent: Plugged, contents: &[u8]) -> Result<Found, SettingsError> {
    let mut found = match agent {
        _ if is_own(agent) => own::find(agent, contents)?,
        _ => settings::find(agent, contents)?,
    };
    let is_there = |wanted: &&Wanted| found.hooks.iter().any(|hook| hook.event == wanted.event);
    found.missing =
        wanted(agent).iter().filter(|hook| !is_there(hook)).map(|hook| hook.event).collect();
    Ok(found)
}

#[cfg(test)]
mod tests;
