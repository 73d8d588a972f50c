//! The library on a store that the command made, as an agent's host holds it.

use std::fs;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use takeback_core::worktree::scope::ScopeOptions;
use takeback_core::{Ambient, Limits, Workspace, WorkspaceOptions};
use takeback_store::{SqliteStates, SqliteStore, Timestamp};

use crate::Result;

/// The only workspace that has a store in `home`, which is that of `root`.
pub fn only_workspace(home: &Path, root: &Path) -> Result<Workspace> {
    let mut stores = fs::read_dir(home.join("workspaces"))?;
    let store_dir = stores.next().ok_or("the command made no store")??.path();
    Ok(Workspace::open(WorkspaceOptions {
        root: root.to_owned(),
        states: Arc::new(SqliteStates::at(&store_dir)),
        store: Box::new(SqliteStore::create(&store_dir)?),
        store_dir,
        home: None,
        scope: ScopeOptions::default(),
        limits: Limits::default(),
        ambient: Ambient {
            now: Box::new(|| {
                let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
                Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
            }),
            file_time: Box::new(takeback_core::system_file_time),
            random: Box::new(|| RandomState::new().build_hasher().finish()),
            watch: None,
        },
    })?)
}
