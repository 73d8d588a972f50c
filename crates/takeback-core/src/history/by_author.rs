//! One author's part of what differs between two positions of the log.
//!
//! The others' changes are taken out of the later state, as a rewind would, so the result applies to the
//! earlier one. What was taken back meanwhile is in no part.

use std::collections::BTreeMap;

use takeback_store::{Author, Change, Entry, PackedBlob, Store, StoreError, WorkPath};

use super::file_diff::FileDiff;
use super::renames::renames;
use super::tally::{Cancelled, spans};
use super::{PathHistory, by_path};
use crate::rewind::merge::without;

/// One author's part of a range.
#[derive(Debug, Default)]
pub struct AuthorDiff {
    /// What the author changed, by path. A path in `overlapping` has one entry for each of the author's
    /// changes.
    pub diffs: Vec<FileDiff>,
    /// Contents that are not in the store: texts without the others' changes.
    pub made: Vec<PackedBlob>,
    /// The paths of which the author's part cannot be told apart.
    pub overlapping: Vec<WorkPath>,
}

/// What is whose in a path's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Author,
    Others,
    /// A rewind with what it took back, and first sightings.
    Neutral,
}

/// The part of `changes` (oldest first, with the authors known now) that `is_theirs`. `cancelled`: as of
/// [`cancelled`](super::cancelled).
pub fn changes_by(
    store: &dyn Store,
    changes: Vec<Change>,
    cancelled: &Cancelled,
    is_theirs: impl Fn(&Change) -> bool,
) -> Result<AuthorDiff, StoreError> {
    let mut part = AuthorDiff::default();
    let moves = moves(&changes, &is_theirs);
    for history in by_path(changes) {
        let whose = |change: &Change| match change {
            _ if cancelled.contains(&change.seq) => Part::Neutral,
            change if change.before == Entry::Unknown => Part::Neutral,
            change if matches!(change.author, Author::Rewind { .. }) => {
                // What an earlier rewind took back, from before the range, is the rewind's alone.
                let own = history.changes.iter().any(|other| change.cancels.contains(&other.seq));
                if own { Part::Neutral } else { Part::Others }
            }
            change if is_theirs(change) => Part::Author,
            _ => Part::Others,
        };
        let spans = spans(&history.changes, whose);
        add(store, &history, &spans, &mut part)?;
    }
    part.join(moves);
    Ok(part)
}

/// The renames among one author's changes: the old path and the new one, oldest first.
fn moves(changes: &[Change], is_theirs: impl Fn(&Change) -> bool) -> Vec<(WorkPath, WorkPath)> {
    let own: Vec<&Change> = changes.iter().filter(|change| is_theirs(change)).collect();
    let path = |at: usize| own[at].path.clone();
    let renames = renames(&own, |_| ()).into_iter();
    renames.map(|rename| (path(rename.departure), path(rename.arrival))).collect()
}

impl AuthorDiff {
    /// Makes one difference of a renamed file, if the author's part has both paths.
    fn join(&mut self, moves: Vec<(WorkPath, WorkPath)>) {
        let mut origins: BTreeMap<WorkPath, WorkPath> = BTreeMap::new();
        for (old, new) in moves {
            let origin = origins.remove(&old).unwrap_or(old);
            origins.insert(new, origin);
        }
        for (new, origin) in origins {
            let find = |is_its: &dyn Fn(&FileDiff) -> bool| self.diffs.iter().position(is_its);
            let gone = find(&|diff| diff.path == origin && diff.after == Entry::Absent);
            let come = find(&|diff| diff.path == new && diff.before == Entry::Absent);
            let (Some(gone), Some(come)) = (gone, come) else { continue };
            self.diffs[come].before = self.diffs[gone].before.clone();
            self.diffs[come].renamed_from = Some(origin);
            self.diffs.remove(gone);
        }
    }
}

fn add(
    store: &dyn Store,
    history: &PathHistory,
    spans: &[(Part, FileDiff)],
    part: &mut AuthorDiff,
) -> Result<(), StoreError> {
    let of =
        |wanted: Part| spans.iter().filter(move |(part, _)| *part == wanted).map(|(_, diff)| diff);
    if of(Part::Author).next().is_none() {
        return Ok(());
    }
    let others = of(Part::Others).map(|diff| (&diff.before, &diff.after));
    let (before, end) = (history.at_start(), history.at_end());
    // An edit may follow a first sighting in one range.
    let before = match before {
        Entry::Unknown => history.changes.get(1).map_or(before, |change| &change.before),
        before => before,
    };
    if let Some(after) = without(store, others, end, &mut part.made)? {
        if after != *before {
            part.diffs.push(FileDiff::new(history.path.clone(), before.clone(), after));
        }
        return Ok(());
    }
    part.overlapping.push(history.path.clone());
    part.diffs.extend(of(Part::Author).filter(|diff| diff.before != diff.after).cloned());
    Ok(())
}
