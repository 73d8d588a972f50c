//! The trees that a server watches, each once for all clients, so that a point reads only changed paths.
//!
//! Full scans for events a watcher may have missed run while no request waits.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use takeback_core::look_around;
use takeback_core::watch::{EVERY, TreeWatch, Trust};

use crate::place::{self, Place, Store};
use crate::stores;
use crate::time::now;

/// The maximum number of watched trees; the least recently used is dropped first.
const MOST: usize = 8;
/// How often to check whether a tree needs a full scan.
const TICK: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct Watchlist {
    /// Most recently used last.
    trees: Mutex<Vec<Tree>>,
}

#[derive(Debug, Clone)]
struct Tree {
    root: PathBuf,
    home: PathBuf,
    /// The database's device and inode: distinguishes a recreated store from the known one.
    database: Option<(u64, u64)>,
    watched: Arc<TreeWatch>,
}

impl Watchlist {
    /// Starts a list whose trees are scanned when due, as long as the list exists.
    pub(crate) fn start() -> Arc<Self> {
        let list = Arc::new(Self::default());
        let seen_to = Arc::downgrade(&list);
        let see_to = move || {
            loop {
                thread::sleep(TICK);
                let Some(list) = seen_to.upgrade() else { return };
                list.scan_due_trees();
            }
        };
        // Without a thread, each point runs its own full scan.
        drop(thread::Builder::new().spawn(see_to));
        list
    }

    /// Watches a workspace's tree from its next point on.
    pub(crate) fn watch(&self, place: &mut Place, home: &Path) {
        let root = place.workspace.root.path().to_owned();
        let database = database_inode(&root, home);
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        let known = trees.iter().position(|tree| tree.root == root && tree.home == home);
        let tree = match known.map(|at| trees.remove(at)) {
            Some(tree) if tree.database == database => tree,
            _ => {
                let watched = Arc::new(TreeWatch::new(Trust::WithScans { every: EVERY }));
                Tree { root, home: home.to_owned(), database, watched }
            }
        };
        place.workspace.watched = Some(Arc::clone(&tree.watched));
        if trees.len() == MOST {
            trees.remove(0);
        }
        trees.push(tree);
    }

    /// Scans the trees that are due for a full scan, before a request has to wait for it.
    fn scan_due_trees(&self) {
        let trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for tree in trees.iter().filter(|tree| tree.watched.is_nearly_due(now())) {
            if database_inode(&tree.root, &tree.home) != tree.database {
                continue;
            }
            let looked =
                place::open_at(&tree.root, &tree.home, Store::MustExist).map(|mut place| {
                    place.workspace.watched = Some(Arc::clone(&tree.watched));
                    look_around(&mut place.workspace)
                });
            // The next point repeats the scan and reports the error.
            drop(looked);
        }
    }
}

/// The database's device and inode.
pub(crate) fn database_inode(root: &Path, home: &Path) -> Option<(u64, u64)> {
    let about = stores::database_of(root, home).metadata().ok()?;
    Some((about.dev(), about.ino()))
}
