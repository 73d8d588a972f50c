//! A workspace with the real clock and ids, for tests in several processes.

use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use takeback_core::worktree::scope::ScopeOptions;
use takeback_core::{Ambient, Limits, Workspace, WorkspaceOptions};
use takeback_store::{SqliteStates, SqliteStore, Timestamp};

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
        ambient: Ambient {
            now: Box::new(|| {
                let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
                Timestamp(i64::try_from(since_1970.as_millis()).unwrap())
            }),
            file_time: Box::new(takeback_core::system_file_time),
            random: Box::new(|| RandomState::new().hash_one(())),
            watch: None,
        },
    })
    .unwrap()
}
