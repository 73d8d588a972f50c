//! All stores of the home fit into its limit: points of the store that was used longest ago go first.

use std::path::{Path, PathBuf};

use takeback_core::retention::{CleanedUp, Clock, Occasion, Policy, clean_up, store_bytes};
use takeback_core::rewind::needs_recovery;
use takeback_store::Timestamp;

use crate::args::Options;
use crate::commands::room::Home;
use crate::commands::workspaces::last_activity;
use crate::error::CommandError;
use crate::place::{self, Place, Store};
use crate::size::folder_bytes;
use crate::stores::{self, Kept};

/// What was done for the limit of the home.
#[derive(Debug)]
pub(crate) struct HomeCleanedUp {
    /// In which workspaces points went, and what was given back there.
    pub(crate) workspaces: Vec<(PathBuf, CleanedUp)>,
    pub(crate) left: Home,
}

/// `None`: it fits. Stores that cannot be used just now, and those of folders that are gone, stay as
/// they are: they may still be wanted.
pub(super) fn fit_home(
    place: &mut Place,
    options: &Options,
    clock: Clock,
) -> Result<Option<HomeCleanedUp>, CommandError> {
    let home = place::home(options)?;
    let mut left = Home::of(&home, &place.settings);
    if !left.is_over() {
        return Ok(None);
    }
    let aim = left.limit - left.limit / 10;
    let mut workspaces = Vec::new();
    for kept in by_use(&home) {
        if left.used <= aim {
            break;
        }
        let before = folder_bytes(&kept.folder);
        let most = before.saturating_sub(left.used - aim).max(1);
        let done = if kept.folder == place.workspace.store_dir {
            fit_into(most, place, clock)
        } else {
            place::open_at(&kept.root, &home, Store::MustExist)
                .and_then(|mut other| fit_into(most, &mut other, clock))
        };
        // Locked, damaged, of a newer version: it is no worse off than before.
        let Ok(Some((done, after))) = done else { continue };
        left.used = (left.used + after).saturating_sub(before);
        stores::remove_sessions(&done.sessions, &home)?;
        if done.points > 0 {
            workspaces.push((kept.root, done));
        }
    }
    Ok(Some(HomeCleanedUp { workspaces, left }))
}

/// What was done, and the bytes that the store then has. `None`: a rewind waits to be finished there,
/// and that is up to a user who works there.
fn fit_into(
    most: u64,
    place: &mut Place,
    clock: Clock,
) -> Result<Option<(CleanedUp, u64)>, CommandError> {
    if needs_recovery(&place.workspace)? {
        return Ok(None);
    }
    let own = place.settings.retention();
    let max_bytes = if own.max_bytes == 0 { most } else { own.max_bytes.min(most) };
    let policy = Policy { max_bytes, ..own };
    let done = clean_up(&mut place.workspace, &policy, Occasion::AtStart, clock)?;
    Ok(Some((done, store_bytes(&place.workspace))))
}

/// Those of folders that are there, the one that was used longest ago first.
fn by_use(home: &Path) -> Vec<Kept> {
    let mut stores: Vec<(Timestamp, Kept)> = stores::stores(home)
        .into_iter()
        .filter(|kept| kept.root.is_dir())
        .filter_map(|kept| Some((last_activity(&kept.folder)?, kept)))
        .collect();
    stores.sort();
    stores.into_iter().map(|(_, kept)| kept).collect()
}
