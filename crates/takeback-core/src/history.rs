//! Reading the log: changes by path, whose they are by what is known now, and what a turn's files were.

mod file_checkpoint;

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap};

use takeback_store::{
    Author, Call, CallId, Change, Entry, Seq, SessionId, Store, StoreError, WorkPath,
};

pub use self::file_checkpoint::{
    FileCheckpoint, FileCheckpointId, file_checkpoints, kept_for_call,
};

/// The changes of one path after some moment, oldest first; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathHistory {
    pub path: WorkPath,
    pub changes: Vec<Change>,
}

/// Sorts changes (oldest first) by path.
#[must_use]
pub fn by_path(changes: Vec<Change>) -> Vec<PathHistory> {
    let mut paths: BTreeMap<WorkPath, Vec<Change>> = BTreeMap::new();
    for change in changes {
        paths.entry(change.path.clone()).or_default().push(change);
    }
    paths.into_iter().map(|(path, changes)| PathHistory { path, changes }).collect()
}

/// Gives changes the authors that are known now.
pub fn settle(store: &dyn Store, changes: &mut [Change]) -> Result<(), StoreError> {
    let mut calls: HashMap<(SessionId, CallId), Option<Call>> = HashMap::new();
    for change in changes {
        let call = match &change.author {
            Author::Agent { session, call, .. } => {
                match calls.entry((session.clone(), call.clone())) {
                    Slot::Occupied(known) => known.into_mut(),
                    Slot::Vacant(slot) => slot.insert(store.call(session, call)?),
                }
                .as_ref()
            }
            _ => None,
        };
        let known = change.attribution(call);
        (change.author, change.evidence) = (known.author, known.evidence);
    }
    Ok(())
}

impl PathHistory {
    /// What stood here at the moment after which the changes came.
    #[must_use]
    pub fn at_start(&self) -> &Entry {
        &self.changes[0].before
    }

    /// What stood here after the last change.
    #[must_use]
    pub fn at_end(&self) -> &Entry {
        &self.changes[self.changes.len() - 1].after
    }

    /// What stood here at `seq`, given that the changes before it are not needed.
    #[must_use]
    pub fn at(&self, seq: Seq) -> &Entry {
        self.changes
            .iter()
            .find(|change| change.seq > seq)
            .map_or(self.at_end(), |change| &change.before)
    }
}
