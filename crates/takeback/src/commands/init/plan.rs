//! Plans the change to each settings file.

use std::path::{Path, PathBuf};

use takeback_agents::{
    AgentKind, Homes, HookProgram, HookScope, Remainder, SettingsError, add_hooks, remove_hooks,
};
use takeback_store::Digest;

use crate::answers::{self, InitChange};
use crate::error::{CommandError, Kind};
use crate::foreign_file::{FileError, ForeignFile};
use crate::install_record::{InstallRecord, backup_of};
use crate::installed_agents;
use crate::place;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    In,
    Out,
}

pub(super) struct InitContext<'a> {
    pub(super) homes: &'a Homes,
    pub(super) root: &'a Path,
    /// Takeback's home.
    pub(super) home: &'a Path,
    pub(super) scope: HookScope,
}

/// A settings file and its planned change.
pub(super) struct SettingsChange {
    pub(super) agent: &'static AgentKind,
    /// The path that the agent uses; it may be a link.
    pub(super) path: PathBuf,
    pub(super) file: Option<ForeignFile>,
    pub(super) after: Result<NewContents, CommandError>,
    /// Where the original bytes are backed up.
    pub(super) backup: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NewContents {
    Unchanged,
    Bytes(Vec<u8>),
    Removed,
}

pub(super) fn plan(
    agent: &'static AgentKind,
    direction: Direction,
    context: &InitContext<'_>,
) -> SettingsChange {
    let path = agent.hooks_file(context.scope, context.homes, context.root);
    let mode = if context.scope == HookScope::User { 0o600 } else { 0o644 };
    let read = ForeignFile::read(&path, mode).map_err(CommandError::from);
    let (file, after) = match read {
        Err(error) => (None, Err(error)),
        Ok(file) => {
            let after = match direction {
                Direction::In => put_in(agent, &file),
                Direction::Out => take_out(agent, &file, context),
            };
            (Some(file), after.map_err(|error| about(error, &path)))
        }
    };
    SettingsChange { agent, path, file, after, backup: None }
}

fn put_in(agent: &AgentKind, file: &ForeignFile) -> Result<NewContents, CommandError> {
    let word = installed_agents::own_word()?;
    let program = HookProgram { word: &word, runs: &installed_agents::runs };
    Ok(match add_hooks(agent, file.bytes.as_deref(), &program)? {
        None => NewContents::Unchanged,
        Some(after) => {
            file.may_be_replaced()?;
            NewContents::Bytes(after)
        }
    })
}

fn take_out(
    agent: &AgentKind,
    file: &ForeignFile,
    context: &InitContext<'_>,
) -> Result<NewContents, CommandError> {
    let Some(now) = &file.bytes else { return Ok(NewContents::Unchanged) };
    let backup = std::fs::read(backup_of(&file.path)).ok();
    let exact = InstallRecord::of(&file.path, context.home)
        .filter(|installed| installed.after == Some(Digest::of(now)))
        .filter(|installed| installed.before == backup.as_deref().map(Digest::of));
    if exact.is_some() {
        file.may_be_replaced()?;
        return Ok(backup.map_or(NewContents::Removed, NewContents::Bytes));
    }
    Ok(match remove_hooks(agent, now, backup.as_deref())? {
        Remainder::Same => NewContents::Unchanged,
        Remainder::Rest(rest) => {
            file.may_be_replaced()?;
            NewContents::Bytes(rest)
        }
        Remainder::Nothing => NewContents::Removed,
    })
}

impl SettingsChange {
    pub(super) fn before(&self) -> Option<&Vec<u8>> {
        self.file.as_ref()?.bytes.as_ref()
    }

    /// The path for display.
    pub(super) fn tilde_path(&self) -> String {
        place::tilde_path(&self.path)
    }

    pub(super) fn answer(&self) -> answers::InitAgent {
        let change = match &self.after {
            Err(_) => InitChange::Failed,
            Ok(NewContents::Unchanged) => InitChange::None,
            Ok(NewContents::Bytes(_)) if self.before().is_none() => InitChange::Created,
            Ok(NewContents::Bytes(_)) => InitChange::Changed,
            Ok(NewContents::Removed) => InitChange::Removed,
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

/// Adds the file's path to an error.
fn about(error: CommandError, path: &Path) -> CommandError {
    match error.source.downcast::<SettingsError>() {
        Ok(source) => {
            let hint = match *source {
                SettingsError::Refused { .. } => {
                    "Make it plain JSON, without comments and trailing commas, and try again; nothing \
                     was written."
                }
                SettingsError::NotJson { .. } | SettingsError::NotText => {
                    "Fix the file and try again; nothing was written."
                }
                SettingsError::Foreign => "Move it away and try again; nothing was written.",
                _ => "Nothing was written.",
            };
            let text = format!("{} cannot be used: {source}", place::tilde_path(path));
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
            FileError::Io { .. } => "Make the folder and the file writable.",
        };
        Self::new(Kind::Error, error).hint(hint)
    }
}
