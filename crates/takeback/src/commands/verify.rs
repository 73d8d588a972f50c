//! `verify`: checks everything in the store.

use std::io::{self, Write as _};
use std::path::Path;

use serde_json::json;
use takeback_core::{Workspace, spool};

use crate::args::Options;
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::progress;
use crate::screen::{BAD, GOOD, HINT, Screen, count, plain};
use crate::stores;
use crate::wire::{self, Json};

pub(crate) fn verify(options: &Options, screen: &mut Screen) -> Result<u8, CommandError> {
    let place = place::open(options, Store::MustExist)?;
    let store = &*place.workspace.store;
    let spinner = progress::spinner("Reading everything in the store");
    let damage = damage(&place.workspace);
    drop(spinner);
    let damage = damage?;
    if screen.json {
        screen.json(&told(&damage)?)?;
    } else if damage.is_empty() {
        let points = store.points()?.len();
        writeln!(
            screen.out,
            "{GOOD}All is well.{GOOD:#} {HINT}{}, {}, every byte read and checked.{HINT:#}",
            count(points, "point"),
            count(usize::try_from(store.usage()?.changes).unwrap_or(usize::MAX), "change"),
        )?;
    } else {
        for line in &damage {
            writeln!(screen.out, "{BAD}damaged{BAD:#}  {}", plain(line))?;
        }
        writeln!(
            screen.out,
            "\n{}. Points that do not need it are intact.",
            count(damage.len(), "damage")
        )?;
    }
    Ok(if damage.is_empty() { 0 } else { Kind::Error as u8 })
}

/// What is damaged, in words.
pub(crate) fn damage(workspace: &Workspace) -> Result<Vec<String>, CommandError> {
    let beside = damage_beside(workspace.root.path(), &workspace.store_dir)?;
    Ok([beside, workspace.store.check()?, workspace.states.check()?].concat())
}

/// What is damaged beside the log, in the store of `root` that is in `folder`. Quick to tell.
pub(crate) fn damage_beside(root: &Path, folder: &Path) -> io::Result<Vec<String>> {
    let mut damage = Vec::new();
    if let Some(noted) = stores::misnamed(folder, root) {
        let (noted, root) = (noted.display(), root.display());
        damage.push(format!(
            "the file `root` names {noted} instead of {root}; `takeback recover` mends it"
        ));
    }
    let lost = spool::damaged(folder)?;
    if lost > 0 {
        let lost = count(lost, "event");
        damage.push(format!("{lost} could not be read from the spool, and cannot be recorded"));
    }
    Ok(damage)
}

pub(crate) fn told(damage: &[String]) -> Result<Json, CommandError> {
    Ok(wire::json(&json!({ "ok": damage.is_empty(), "damage": damage }))?)
}
