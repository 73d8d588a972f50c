//! What is to become of each settings file.

use std::path::{Path, PathBuf};

use serde_json::json;
use takeback_agents::hook::Plugged;
use takeback_agents::install::{
    Homes, Program, Scope, SettingsError, Without, file_of, with_hooks, without_hooks,
};
use takeback_store::Digest;

use crate::error::{CommandError, Kind};
use crate::foreign_file::{FileError, ForeignFile};
use crate::installed::{Installed, backup_of};
use crate::place;
use crate::plugs;

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
    pub(super) scope: Scope,
}

/// A settings file, and what is to become of it.
pub(super) struct Planned {
    pub(super) agent: Plugged,
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

pub(super) fn plan(agent: Plugged, direction: Direction, site: &Site<'_>) -> Planned {
    let path = file_of(agent, site.scope, site.homes, site.root);
    let mode = if site.scope == Scope::User { 0o600 } else { 0o644 };
    let read = ForeignFile::read(&path, mode).map_err(CommandError::from);
    let (file, after) = match read {
        Err(error) => (None, Err(error)),
        Ok(file) => {
            let after = match direction {
                Direction::In => put_in(agent, &file, site),
                Direction::Out => take_out(agent, &file, site),
            };
            (Some(file), after.map_err(|error| about(error, &path)))
        }
    };
    Planned { agent, path, file, after, backup: None }
}

fn put_in(agent: Plugged, file: &ForeignFile, _site: &Site<'_>) -> Result<After, CommandError> {
    let word = plugs::own_word()?;
    let program = Program { word: &word, runs: &plugs::runs };
    Ok(match with_hooks(agent, file.bytes.as_deref(), &program)? {
        None => After::AsItIs,
        Some(after) => {
            file.may_be_replaced()?;
            After::Bytes(after)
        }
    })
}

fn take_out(agent: Plugged, file: &ForeignFile, site: &Site<'_>) -> Result<After, CommandError> {
    let Some(now) = &file.bytes else { return Ok(After::AsItIs) };
    let backup = std::fs::read(backup_of(&file.path)).ok();
    let exact = Installed::of(&file.path, site.home)
        .filter(|installed| installed.after == Some(Digest::of(now)))
        .filter(|installed| installed.before == backup.as_deref().map(Digest::of));
    if exact.is_some() {
        file.may_be_replaced()?;
        return Ok(backup.map_or(After::Gone, After::Bytes));
    }
    Ok(match without_hooks(agent, now, backup.as_deref())? {
        Without::Same => After::AsItIs,
        Without::Rest(rest) => {
            file.may_be_replaced()?;
            After::Bytes(rest)
        }
        Without::Nothing => After::Gone,
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

    pub(super) fn to_json(&self) -> serde_json::Value {
        let change = match &self.after {
            Err(_) => "failed",
            Ok(After::AsItIs) => "none",
            Ok(After::Bytes(_)) if self.before().is_none() => "created",
            Ok(After::Bytes(_)) => "changed",
            Ok(After::Gone) => "removed",
        };
        let error = self.after.as_ref().err();
        json!({
            "agent": self.agent.name(),
            "file": self.path.to_string_lossy(),
            "change": change,
            "backup": self.backup,
            "error": error.map(CommandError::what),
            "hints": error.map(|error| error.hints.clone()).unwrap_or_default(),
        })
    }
}

/// Names the file that an error is about.
fn about(error: CommandError, path: &Path) -> CommandError {
    match error.source.downcast::<SettingsError>() {
        Ok(source) => {
            let hint = match *source {
                SettingsError::Refused { .. } => {
                    "Make it plain JSON, without comments and surplus commas, and try again; nothing \
                     was written."
                }
                SettingsError::NotJson { .. } | SettingsError::NotText => {
                    "Mend it there and try again; nothing was written."
                }
                SettingsError::Foreign => "Move it aside and try again; nothing was written.",
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
            FileError::LeadsNowhere { .. } => "Make the file that it leads to, or remove the link.",
            FileError::ManyNames { .. } => "Make it a file of its own, or a symbolic link.",
            FileError::NotAFile { .. } | FileError::TooLarge { .. } => "Move it aside.",
            FileError::Io { .. } => "Make the folder and the file writable for you.",
        };
        Self::new(Kind::Error, error).hint(hint)
    }
}
