//! A workspace with the real clock and ids, for tests in several processes.

use std::path::Path;
use std::sync::Arc;

use takeback_core::worktree::ScopeOptions;
use takeback_core::{Ambient, Limits, Workspace, WorkspaceOptions};
use takeback_store::{SqliteStates, SqliteStore};

pub(crate) fn open(folder: &Path) -> Workspace {
    let store_dir = folder.join("store");
    Workspace::open(WorkspaceOptions {
        root: folder.join("work"),
        store: Box::new(SqliteStore::create(&store_dir).unwrap()),
        states: Arc::new(SqliteStates::at(&store_dir)),
        store_dir,
        home: None,
        scope: ScopeOptions::default(),
        limits: Limits::default(),
        ambient: Ambient::system(),
    })
    .unwrap()
}
