//! Keeps all stores of a home within its size limit: points of the least recently used store are dropped
//! first.

use std::path::{Path, PathBuf};

use takeback_core::retention::{CleanUpReport, Clock, Occasion, Policy, clean_up, store_bytes};
use takeback_core::rewind::needs_recovery;
use takeback_store::Timestamp;

use crate::args::Options;
use crate::commands::disk_limits::Home;
use crate::commands::workspaces::last_activity;
use crate::error::CommandError;
use crate::place::{self, Place, Store};
use crate::size::folder_bytes;
use crate::stores::{self, StoreFolder};

/// What was done to keep the home within its limit.
#[derive(Debug)]
pub(crate) struct HomeCleanedUp {
    /// The workspaces that lost points, and the bytes reclaimed in each.
    pub(crate) workspaces: Vec<(PathBuf, CleanUpReport)>,
    pub(crate) left: Home,
}

/// `None`: the home is within its limit. Stores that cannot be opened now and stores of deleted folders are
/// left alone: they may still be wanted.
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
        // Locked, damaged, or of a newer version: skip it.
        let Ok(Some((done, after))) = done else { continue };
        left.used = (left.used + after).saturating_sub(before);
        stores::remove_sessions(&done.sessions, &home)?;
        if done.points > 0 {
            workspaces.push((kept.root, done));
        }
    }
    Ok(Some(HomeCleanedUp { workspaces, left }))
}

/// What was done, and the size of the store afterwards. `None`: the workspace has an unfinished rewind, which
/// only its user should finish.
fn fit_into(
    most: u64,
    place: &mut Place,
    clock: Clock,
) -> Result<Option<(CleanUpReport, u64)>, CommandError> {
    if needs_recovery(&place.workspace)? {
        return Ok(None);
    }
    let own = place.settings.retention();
    let max_bytes = if own.max_bytes == 0 { most } else { own.max_bytes.min(most) };
    let policy = Policy { max_bytes, ..own };
    let done = clean_up(&mut place.workspace, &policy, Occasion::AtStart, clock)?;
    Ok(Some((done, store_bytes(&place.workspace))))
}

/// The stores of existing folders, least recently used first.
fn by_use(home: &Path) -> Vec<StoreFolder> {
    let mut stores: Vec<(Timestamp, StoreFolder)> = stores::stores(home)
        .into_iter()
        .filter(|kept| kept.root.is_dir())
        .filter_map(|kept| Some((last_activity(&kept.folder)?, kept)))
        .collect();
    stores.sort();
    stores.into_iter().map(|(_, kept)| kept).collect()
}
