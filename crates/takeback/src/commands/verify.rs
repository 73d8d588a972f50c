//! `verify`: checks everything in the store.

use std::io::Write as _;
use std::path::Path;

use takeback_core::{Inbox, Workspace};
use takeback_store::StoreError;

use crate::answers;
use crate::args::Options;
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::progress;
use crate::screen::{FAILURE, HINT, SUCCESS, Screen, count, plain};
use crate::stores;

pub(crate) fn verify(options: &Options, screen: &mut Screen) -> Result<u8, CommandError> {
    let place = place::open(options, Store::MustExist)?;
    let store = &*place.workspace.store;
    let spinner = progress::spinner("Reading everything in the store");
    let damage = damage(&place.workspace);
    drop(spinner);
    let damage = damage?;
    let code = if damage.is_empty() { 0 } else { Kind::Error as u8 };
    if screen.json {
        screen.json(&answer(damage))?;
    } else if damage.is_empty() {
        let points = store.points()?.len();
        writeln!(
            screen.out,
            "{SUCCESS}No damage found.{SUCCESS:#} {HINT}{}, {}, every byte read and checked.{HINT:#}",
            count(points, "point"),
            count(usize::try_from(store.usage()?.changes).unwrap_or(usize::MAX), "change"),
        )?;
    } else {
        for line in &damage {
            writeln!(screen.out, "{FAILURE}damaged{FAILURE:#}  {}", plain(line))?;
        }
        writeln!(
            screen.out,
            "\n{}. Points that do not need what is damaged are intact.",
            count(damage.len(), "problem")
        )?;
    }
    Ok(code)
}

/// The damage, in words.
pub(crate) fn damage(workspace: &Workspace) -> Result<Vec<String>, CommandError> {
    let beside = damage_beside(workspace.root.path(), &workspace.store_dir)?;
    Ok([beside, workspace.store.check()?, workspace.states.check()?].concat())
}

/// Damage outside the log, in the store of `root` at `folder`. Quick to check.
pub(crate) fn damage_beside(root: &Path, folder: &Path) -> Result<Vec<String>, StoreError> {
    let mut damage = Vec::new();
    if let Some(noted) = stores::wrong_root(folder, root) {
        let (noted, root) = (noted.display(), root.display());
        damage.push(format!(
            "the file `root` names {noted} instead of {root}; `takeback recover` fixes it"
        ));
    }
    let lost = Inbox::of(folder).damaged()?;
    if lost > 0 {
        let lost = count(lost, "event");
        damage.push(format!("{lost} in the inbox cannot be read, and will not be recorded"));
    }
    Ok(damage)
}

pub(crate) fn answer(damage: Vec<String>) -> answers::VerifyAnswer {
    answers::VerifyAnswer { ok: damage.is_empty(), damage }
}
