//! Reading the log: changes by path, their authors as known now, who wrote a line, and the original files
//! of a turn.

mod authored_lines;
mod bisect;
mod blame;
mod by_author;
mod commit_lines;
mod committed_lines;
mod file_checkpoint;
mod file_diff;
mod lines;
mod log;
mod path_history;
mod prompts;
mod renames;
mod stats;
mod tally;

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap};

use takeback_store::{
    Author, Call, CallId, Change, Entry, Seq, SessionId, Store, StoreError, WorkPath,
};

pub(crate) use self::authored_lines::AuthoredPath;
pub use self::authored_lines::{
    AuthoredFile, AuthoredLine, LineAuthor, LineSource, LineWriter, authored_lines,
};
pub use self::bisect::{Bisection, Verdict};
pub use self::blame::{Blame, BlameError, BlamedLine, FileVersion, LineOrigin, blame};
pub use self::by_author::{AuthorDiff, changes_by};
pub use self::commit_lines::ask_git;
pub use self::committed_lines::{CommittedLinesError, committed_lines};
pub use self::file_checkpoint::{
    FileCheckpoint, FileCheckpointId, file_checkpoints, kept_for_call,
};
pub use self::file_diff::{
    Comparison, Contents, DAMAGED, FileDiff, LineCounts, LineDiff, Lines, Part, Passage, Text,
    between,
};
pub(crate) use self::log::next_of_session;
pub use self::log::{
    AuthorFilter, LogFilter, LogQuery, LogRow, LogRows, OperationRow, PointRow, UnreadablePaths,
    changes_until, git_moved, keep_own, log, next_point,
};
pub use self::path_history::{FileRow, entry_at, path_history};
pub use self::prompts::point_of;
pub(crate) use self::renames::recognizable;
pub use self::stats::{Contribution, Stats, stats};
pub use self::tally::{
    Cancelled, Count, Party, TakenBack, Tally, Viewpoint, cancelled, spans, taken_back,
};

/// The changes of one path after some position, oldest first; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathHistory {
    /// The path.
    pub path: WorkPath,
    /// Its changes, oldest first.
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

/// Replaces the authors of changes by those known now.
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
    /// The entry before the first change.
    #[must_use]
    pub fn at_start(&self) -> &Entry {
        &self.changes[0].before
    }

    /// The entry after the last change.
    #[must_use]
    pub fn at_end(&self) -> &Entry {
        &self.changes[self.changes.len() - 1].after
    }

    /// The entry at `seq`, which must not be before the position that the changes follow.
    #[must_use]
    pub fn at(&self, seq: Seq) -> &Entry {
        self.changes
            .iter()
            .find(|change| change.seq > seq)
            .map_or(self.at_end(), |change| &change.before)
    }
}
