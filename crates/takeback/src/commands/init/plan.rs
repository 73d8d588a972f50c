//! What is to become of each settings file.

use std::path::{Path, PathBuf};

use takeback_agents::{
    AgentKind, Homes, HookProgram, HookScope, Remainder, SettingsError, add_hooks, remove_hooks,
};
use takeback_store::Digest;

use crate::answers::{self, InitChange};
use crate::error::{CommandError, Kind};
use crate::foreign_file::{FileError, ForeignFile};
use crate::installed::{Installed, backup_of};
use crate::installed_agents;
use crate::place;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    In,
    Out,
}

pub(super) struct Site<'a> {
    pub(super) homes: &'a Homes,
    pub(super) root: &'a Path,
    /// Takeback's.
    pub(super) home: &'a Path,
    pub(super) scope: HookScope,
}

/// A settings file, and what is to become of it.
pub(super) struct Planned {
    pub(super) agent: &'static AgentKind,
    /// As the agent knows it.
    pub(super) path: PathBuf,
    pub(super) file: Option<ForeignFile>,
    pub(super) after: Result<After, CommandError>,
    /// Where the bytes of before lie, once they do.
    pub(super) backup: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum After {
    AsItIs,
    Bytes(Vec<u8>),
    Gone,
}

pub(super) fn plan(agent: &'static AgentKind, direction: Direction, site: &Site<'_>) -> Planned {
    let path = agent.hooks_file(site.scope, site.homes, site.root);
    let mode = if site.scope == HookScope::User { 0o600 } else { 0o644 };
    let read = ForeignFile::read(&path, mode).map_err(CommandError::from);
    let (file, after) = match read {
        Err(error) => (None, Err(error)),
        Ok(file) => {
            let after = match direction {
                Direction::In => put_in(agent, &file),
                Direction::Out => take_out(agent, &file, site),
            };
            (Some(file), after.map_err(|error| about(error, &path)))
        }
    };
    Planned { agent, path, file, after, backup: None }
}

fn put_in(agent: &AgentKind, file: &ForeignFile) -> Result<After, CommandError> {
    let word = installed_agents::own_word()?;
    let program = HookProgram { word: &word, runs: &installed_agents::runs };
    Ok(match add_hooks(agent, file.bytes.as_deref(), &program)? {
        None => After::AsItIs,
        Some(after) => {
            file.may_be_replaced()?;
            After::Bytes(after)
        }
    })
}

fn take_out(agent: &AgentKind, file: &ForeignFile, site: &Site<'_>) -> Result<After, CommandError> {
    let Some(now) = &file.bytes else { return Ok(After::AsItIs) };
    let backup = std::fs::read(backup_of(&file.path)).ok();
    let exact = Installed::of(&file.path, site.home)
        .filter(|installed| installed.after == Some(Digest::of(now)))
        .filter(|installed| installed.before == backup.as_deref().map(Digest::of));
    if exact.is_some() {
        file.may_be_replaced()?;
        return Ok(backup.map_or(After::Gone, After::Bytes));
    }
    Ok(match remove_hooks(agent, now, backup.as_deref())? {
        Remainder::Same => After::AsItIs,
        Remainder::Rest(rest) => {
            file.may_be_replaced()?;
            After::Bytes(rest)
        }
        Remainder::Nothing => After::Gone,
    })
}

impl Planned {
    pub(super) fn before(&self) -> Option<&Vec<u8>> {
        self.file.as_ref()?.bytes.as_ref()
    }

    /// The file, as people write it.
    pub(super) fn shown(&self) -> String {
        place::shown(&self.path)
    }

    pub(super) fn answer(&self) -> answers::InitAgent {
        let change = match &self.after {
            Err(_) => InitChange::Failed,
            Ok(After::AsItIs) => InitChange::None,
            Ok(After::Bytes(_)) if self.before().is_none() => InitChange::Created,
            Ok(After::Bytes(_)) => InitChange::Changed,
            Ok(After::Gone) => InitChange::Removed,
        };
        let error = self.after.as_ref().err();
        answers::InitAgent {
            agent: self.agent.name.to_owned(),
            file: answers::place(&self.path),
            change,
            backup: self.backup.clone(),
            error: error.map(CommandError::what),
            hints: error.map(|error| error.hints.clone()).unwrap_or_default(),
        }
    }
}

/// Names the file that an error is about.
fn about(error: CommandError, path: &Path) -> CommandError {
    match error.source.downcast::<SettingsError>() {
        Ok(source) => {
            let hint = match *source {
                SettingsError::Refused { .. } => {
                    "Make it plain JSON, without comments and trailing commas, and try again; nothing \
                     was written."
                }
                SettingsError::NotJson { .. } | SettingsError::NotText => {
                    "Fix it there and try again; nothing was written."
                }
                SettingsError::Foreign => "Move it away and try again; nothing was written.",
                _ => "Nothing was written.",
            };
            let text = format!("{} cannot be used: {source}", place::shown(path));
            CommandError::new(Kind::Error, text).hint(hint)
        }
        Err(source) => CommandError { source, ..error },
    }
}

impl From<SettingsError> for CommandError {
    fn from(error: SettingsError) -> Self {
        Self::new(Kind::Error, error)
    }
}

impl From<FileError> for CommandError {
    fn from(error: FileError) -> Self {
        let hint = match &error {
            FileError::OtherOwner { .. } => "Run this as that user.",
            FileError::Changed { .. } => "Try again.",
            FileError::LeadsNowhere { .. } => "Create the file it points to, or remove the link.",
            FileError::ManyNames { .. } => "Make it a file of its own, or a symbolic link.",
            FileError::NotAFile { .. } | FileError::TooLarge { .. } => "Move it aside.",
            FileError::Io { .. } => "Make the folder and the file writable for you.",
        };
        Self::new(Kind::Error, error).hint(hint)
    }
}
