//! Writes the planned settings files.
//!
//! The order makes a crash harmless, since the file is always complete and can be restored: first the backup
//! of the original bytes, then the record of the new contents, then the file itself. `uninstall` works in
//! reverse order.

use std::path::Path;

use takeback_agents::AgentKind;
use takeback_store::Digest;

use super::plan::{Direction, NewContents, SettingsChange};
use crate::error::CommandError;
use crate::foreign_file::{FileError, ForeignFile};
use crate::install_record::{self, InstallRecord, back_up, backup_of};
use crate::time::now;

/// Applies each change; a change that fails is replaced by its error.
pub(super) fn apply(
    planned: &mut [SettingsChange],
    direction: Direction,
    home: &Path,
) -> Result<(), CommandError> {
    let _alone = install_record::lock_installs(home)?;
    for one in planned {
        let (Some(file), Ok(after)) = (&one.file, &one.after) else { continue };
        let swept = file.sweep().map_err(CommandError::from);
        let done = match (direction, after) {
            (Direction::In, NewContents::Unchanged) => Ok(()),
            (Direction::Out, NewContents::Unchanged) => tidy(file, home),
            (Direction::In, NewContents::Bytes(bytes)) => put_in(one.agent, file, bytes, home),
            (_, after) => take_out(file, after, home),
        };
        let backup = backup_of(&file.path);
        one.backup = backup.exists().then(|| backup.to_string_lossy().into_owned());
        if let Err(error) = done.and(swept) {
            one.after = Err(error);
        }
    }
    Ok(())
}

fn put_in(
    agent: &AgentKind,
    file: &ForeignFile,
    bytes: &[u8],
    home: &Path,
) -> Result<(), CommandError> {
    let failed = |doing| {
        move |source| {
            let error = FileError::Io { path: file.path.clone(), doing, source };
            CommandError::from(error).hint("Nothing was changed in your settings.")
        }
    };
    let known = InstallRecord::of(&file.path, home);
    let before = file.bytes.as_deref().map(Digest::of);
    let after = Some(Digest::of(bytes));
    let installed = match known {
        // Only Takeback has changed the file since the first install.
        Some(known) if known.after == before || known.before == before => {
            InstallRecord { after, ..known }
        }
        Some(known) => InstallRecord { after: None, ..known },
        None => InstallRecord {
            at: now(),
            file: file.path.to_string_lossy().into_owned(),
            // A file that only Takeback uses has no original contents.
            before: before.filter(|_| !agent.install.is_own_file()),
            after,
            folders: file.missing_folders().len(),
        },
    };
    if let Some(before) = &file.bytes
        && installed.before.is_some()
    {
        back_up(&file.path, before).map_err(failed("writing a backup of"))?;
    }
    installed.note(&file.path, home).map_err(failed("recording the change to"))?;
    Ok(file.replace(bytes)?)
}

fn take_out(file: &ForeignFile, after: &NewContents, home: &Path) -> Result<(), CommandError> {
    let folders = InstallRecord::of(&file.path, home).map_or(0, |installed| installed.folders);
    match after {
        NewContents::Unchanged => {}
        NewContents::Bytes(bytes) => file.replace(bytes)?,
        NewContents::Removed => file.remove()?,
    }
    install_record::forget(&file.path, home)?;
    if *after == NewContents::Removed {
        install_record::remove_empty_folders(&file.path, folders)?;
    }
    Ok(())
}

/// Cleans up when the file has no Takeback hooks: the user removed them, or an `uninstall` was interrupted. A
/// backup that is not the original is left alone.
fn tidy(file: &ForeignFile, home: &Path) -> Result<(), CommandError> {
    if let Some(installed) = InstallRecord::of(&file.path, home) {
        let backup = std::fs::read(backup_of(&file.path)).ok();
        if backup.as_deref().map(Digest::of) == installed.before {
            install_record::forget(&file.path, home)?;
        }
    }
    Ok(())
}
