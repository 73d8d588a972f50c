//! The trees that a server watches, each once for all its clients, so that their snapshots look only
//! where something happened.
//!
//! Full scans for events a watcher may have missed run while no request waits.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use takeback_core::look_around;
use takeback_core::watch::{EVERY, Trust, Watched};

use crate::place::{self, Place, Store};
use crate::stores;
use crate::time::now;

/// Trees that are watched at once; the one used longest ago goes first.
const MOST: usize = 8;
/// How often it is seen to whether a tree should be looked at as a whole.
const TICK: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct Watchlist {
    /// The one used last is last.
    trees: Mutex<Vec<Tree>>,
}

#[derive(Debug, Clone)]
struct Tree {
    root: PathBuf,
    home: PathBuf,
    /// By which a store that was made anew is told from the one whose log is known.
    database: Option<(u64, u64)>,
    watched: Arc<Watched>,
}

impl Watchlist {
    /// A list that is seen to as long as it is held.
    pub(crate) fn kept() -> Arc<Self> {
        let list = Arc::new(Self::default());
        let seen_to = Arc::downgrade(&list);
        let see_to = move || {
            loop {
                thread::sleep(TICK);
                let Some(list) = seen_to.upgrade() else { return };
                list.look_at_those_due();
            }
        };
        // Without a thread, each snapshot looks for itself.
        drop(thread::Builder::new().spawn(see_to));
        list
    }

    /// Has the tree of a workspace watched from its next snapshot on.
    pub(crate) fn watch(&self, place: &mut Place, home: &Path) {
        let root = place.workspace.root.path().to_owned();
        let database = number_of(&root, home);
        let mut trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        let known = trees.iter().position(|tree| tree.root == root && tree.home == home);
        let tree = match known.map(|at| trees.remove(at)) {
            Some(tree) if tree.database == database => tree,
            _ => {
                let watched = Arc::new(Watched::new(Trust::WithScans { every: EVERY }));
                Tree { root, home: home.to_owned(), database, watched }
            }
        };
        place.workspace.watched = Some(Arc::clone(&tree.watched));
        if trees.len() == MOST {
            trees.remove(0);
        }
        trees.push(tree);
    }

    /// Looks at all of the trees of which the next snapshot would have to, before anybody waits for it.
    fn look_at_those_due(&self) {
        let trees = self.trees.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for tree in trees.iter().filter(|tree| tree.watched.is_nearly_due(now())) {
            if number_of(&tree.root, &tree.home) != tree.database {
                continue;
            }
            let looked =
                place::open_at(&tree.root, &tree.home, Store::MustExist).map(|mut place| {
                    place.workspace.watched = Some(Arc::clone(&tree.watched));
                    look_around(&mut place.workspace)
                });
            // The next snapshot does it then, and says what is wrong.
            drop(looked);
        }
    }
}

/// The database's device and number.
pub(crate) fn number_of(root: &Path, home: &Path) -> Option<(u64, u64)> {
    let about = stores::database_of(root, home).metadata().ok()?;
    Some((about.dev(), about.ino()))
}
