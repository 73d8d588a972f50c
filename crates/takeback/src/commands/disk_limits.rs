//! Size limits of stores and of the home, and how to describe them.

use std::path::Path;

use takeback_core::retention::{HeldBytes, LimitExcess, held_bytes};
use takeback_store::{Store, StoreError};

use crate::answers;
use crate::screen::bytes;
use crate::settings::{Settings, table};
use crate::size::folder_bytes;
use crate::stores;

/// Whether a store of this size is over its limit, and what cannot be dropped.
pub(crate) fn over(
    store: &dyn Store,
    used: u64,
    settings: &Settings,
) -> Result<Option<LimitExcess>, StoreError> {
    let limit = settings.max_store_bytes();
    if limit == 0 || used <= limit {
        return Ok(None);
    }
    Ok(Some(LimitExcess { limit, used, held: held_bytes(store)? }))
}

/// A fragment: lowercase, without a full stop.
pub(crate) fn words(over: &LimitExcess) -> String {
    let LimitExcess { limit, used, held: HeldBytes { present, marked } } = *over;
    let mut held = vec![format!("current files use {}", bytes(present))];
    if marked > 0 {
        held.push(format!("pinned and labelled points {}", bytes(marked)));
    }
    format!(
        "over {} ({}) by {}: {}; recording continues",
        table::MAX_STORE,
        bytes(limit),
        bytes(used - limit),
        held.join(", ")
    )
}

pub(crate) fn answer(over: &LimitExcess) -> answers::OverLimit {
    answers::OverLimit {
        limit: over.limit,
        bytes: over.used,
        present_bytes: over.held.present,
        marked_bytes: over.held.marked,
    }
}

/// All stores in Takeback's home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Home {
    pub(crate) limit: u64,
    pub(crate) used: u64,
    /// By stores of folders that no longer exist.
    pub(crate) of_gone: u64,
}

impl Home {
    pub(crate) fn of(home: &Path, settings: &Settings) -> Self {
        let mut all = Self { limit: settings.max_home_bytes(), used: 0, of_gone: 0 };
        for kept in stores::stores(home) {
            let size = folder_bytes(&kept.folder);
            all.used += size;
            if !kept.root.is_dir() {
                all.of_gone += size;
            }
        }
        all
    }

    pub(crate) fn is_over(&self) -> bool {
        self.limit > 0 && self.used > self.limit
    }

    /// Like [`words`].
    pub(crate) fn words(&self) -> String {
        let (limit, over) = (bytes(self.limit), bytes(self.used.saturating_sub(self.limit)));
        let mut words =
            format!("all workspaces together are over {} ({limit}) by {over}", table::MAX_HOME);
        if self.of_gone > 0 {
            let gone = bytes(self.of_gone);
            words.push_str(&format!(
                "; {gone} are of folders that no longer exist: `takeback forget` removes them"
            ));
        }
        words
    }
}
