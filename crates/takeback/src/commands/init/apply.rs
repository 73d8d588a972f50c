//! Settings files become what was planned.
//!
//! In this order, so that whatever is cut off leaves a file that is whole and can be had back: the bytes of
//! before beside it, the note of what will be there, the file itself. Out of it the other way round.

use std::path::Path;

use takeback_agents::AgentKind;
use takeback_store::Digest;

use super::plan::{After, Direction, Planned};
use crate::error::CommandError;
use crate::foreign_file::{FileError, ForeignFile};
use crate::installed::{self, Installed, back_up, backup_of};
use crate::time::now;

/// Does what can be done; what cannot be done says why in its place.
pub(super) fn apply(
    planned: &mut [Planned],
    direction: Direction,
    home: &Path,
) -> Result<(), CommandError> {
    let _alone = installed::hold(home)?;
    for one in planned {
        let (Some(file), Ok(after)) = (&one.file, &one.after) else { continue };
        let swept = file.sweep().map_err(CommandError::from);
        let done = match (direction, after) {
            (Direction::In, After::AsItIs) => Ok(()),
            (Direction::Out, After::AsItIs) => tidy(file, home),
            (Direction::In, After::Bytes(bytes)) => put_in(one.agent, file, bytes, home),
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
    let known = Installed::of(&file.path, home);
    let before = file.bytes.as_deref().map(Digest::of);
    let after = Some(Digest::of(bytes));
    let installed = match known {
        // Only Takeback has changed it since the first time.
        Some(known) if known.after == before || known.before == before => {
            Installed { after, ..known }
        }
        Some(known) => Installed { after: None, ..known },
        None => Installed {
            at: now(),
            file: file.path.to_string_lossy().into_owned(),
            // What stood in a file of Takeback's own was Takeback's.
            before: before.filter(|_| !agent.install.is_own_file()),
            after,
            folders: file.missing_folders().len(),
        },
    };
    if let Some(before) = &file.bytes
        && installed.before.is_some()
    {
        back_up(&file.path, before).map_err(failed("keeping a copy beside"))?;
    }
    installed.note(&file.path, home).map_err(failed("noting the change to"))?;
    Ok(file.replace(bytes)?)
}

fn take_out(file: &ForeignFile, after: &After, home: &Path) -> Result<(), CommandError> {
    let folders = Installed::of(&file.path, home).map_or(0, |installed| installed.folders);
    match after {
        After::AsItIs => {}
        After::Bytes(bytes) => file.replace(bytes)?,
        After::Gone => file.remove()?,
    }
    installed::forget(&file.path, home)?;
    if *after == After::Gone {
        installed::remove_empty_folders(&file.path, folders)?;
    }
    Ok(())
}

/// Nothing of Takeback's is in it any more: the user removed it by hand, or an `uninstall` was cut
/// off. A copy that is not the one of before the first change is left.
fn tidy(file: &ForeignFile, home: &Path) -> Result<(), CommandError> {
    if let Some(installed) = Installed::of(&file.path, home) {
        let backup = std::fs::read(backup_of(&file.path)).ok();
        if backup.as_deref().map(Digest::of) == installed.before {
            installed::forget(&file.path, home)?;
        }
    }
    Ok(())
}
