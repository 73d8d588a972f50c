//! The history as a series of commits: for each point, what its turn changed, and what others changed until
//! the next point. Each commit has the tree of its moment, so that the last one has the tree of the end.
//!
//! Reads the log; writes nothing. [`super::git_export`] makes commits of it.

use std::collections::{BTreeMap, BTreeSet};

use takeback_store::{
    Author, Change, Entry, NotCapturedReason, PackedBlob, Point, PointKind, Seq, SessionId, Store,
    StoreError, Timestamp, WorkPath,
};

use super::export::{ExportError, IgnoredPaths, Selection, left_out, selected};
use super::original_name;
use crate::history::{
    Cancelled, Party, PathHistory, Viewpoint, by_path, changes_by, next_point, settle,
};
use crate::tree_copy::entries_at;
use crate::workspace::Workspace;

/// Which points, and which paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesOptions {
    /// The points. Of one point, its turn.
    pub selection: Selection,
    /// Whether ignored paths are exported. Paths outside the workspace never are.
    pub ignored: IgnoredPaths,
}

/// A series of commits.
#[derive(Debug)]
pub(super) struct Series {
    /// The first point.
    pub(super) first: Point,
    /// The files at the first point.
    pub(super) base: BTreeMap<WorkPath, Entry>,
    /// Paths that the log knows and that were not there.
    pub(super) absent: BTreeSet<WorkPath>,
    pub(super) commits: Vec<SeriesCommit>,
    /// Contents that are not in the store: files without what others changed.
    pub(super) made: Vec<PackedBlob>,
    /// How many paths were left out.
    pub(super) left_out: usize,
}

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SeriesCommit {
    pub(super) author: CommitAuthor,
    pub(super) point: Point,
    pub(super) part: TurnPart,
    /// The prompt in full, where it is known.
    pub(super) prompt: String,
    pub(super) at: Timestamp,
    /// The paths that differ from the previous commit.
    pub(super) entries: BTreeMap<WorkPath, Entry>,
}

/// Which part of the time until the next point a commit has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TurnPart {
    /// What the turn changed.
    Own,
    /// What others changed until the next point.
    Rest,
}

/// Who made the changes of a commit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CommitAuthor {
    You,
    /// The agent of a session, by its name.
    Agent(Option<String>),
    /// A rewind, undo or redo.
    Rewind,
    /// Several of them, or the evidence does not tell who.
    Several,
}

/// Reads the series.
pub(super) fn series(
    workspace: &Workspace,
    options: &SeriesOptions,
) -> Result<Series, ExportError> {
    let store = &*workspace.store;
    let mut points = selected(store, &options.selection)?;
    points.retain(|point| point.kind != PointKind::Safety);
    if options.selection == Selection::Everything {
        // An import is a detour of the log, which ends where it began.
        let is_own = |point: &Point| point.session.as_ref().and_then(original_name).is_none();
        points.retain(is_own);
    }
    points.sort_by_key(|point| point.seq);
    let Some(first) = points.first().cloned() else { return Err(ExportError::NoPoints) };
    let end = match options.selection {
        Selection::Point(_) => next_point(store, &first)?.map(|next| next.seq),
        Selection::Everything | Selection::Session(_) => None,
    };
    let changes = match end {
        Some(end) => store.changes_between(first.seq, end)?,
        None => store.changes_after(first.seq)?,
    };
    let mut base = entries_at(store, first.seq)?;
    let mut named = base.clone();
    for change in &changes {
        named.entry(change.path.clone()).or_insert(Entry::Absent);
    }
    let mut out = left_out(workspace, options.ignored, &named, &changes)?;
    out.extend(named.into_keys().filter(WorkPath::is_outside));
    base.retain(|path, _| !out.contains(path));
    let latest = store.latest()?.into_iter().map(|(path, _)| path);
    let absent = latest.filter(|path| !base.contains_key(path) && !out.contains(path)).collect();
    let mut series =
        Series { first, base, absent, commits: Vec::new(), made: Vec::new(), left_out: out.len() };
    let mut changes: Vec<Change> =
        changes.into_iter().filter(|change| !out.contains(&change.path)).collect();
    settle(store, &mut changes)?;
    let mut tree = series.base.clone();
    for (at, point) in points.iter().enumerate() {
        let until = points.get(at + 1).map_or(Seq(u64::MAX), |next| next.seq);
        let later = changes.partition_point(|change| change.seq <= until);
        let of_turn: Vec<Change> = changes.drain(..later).collect();
        series.add_turn(store, point, of_turn, &mut tree)?;
    }
    Ok(series)
}

impl Series {
    /// Adds what the turn of a point changed, and then what others did until the next point.
    fn add_turn(
        &mut self,
        store: &dyn Store,
        point: &Point,
        changes: Vec<Change>,
        tree: &mut BTreeMap<WorkPath, Entry>,
    ) -> Result<(), StoreError> {
        let view = Viewpoint { session: point.session.as_ref() };
        let is_own = |change: &Change| view.party(change) == Some(Party::Agent);
        let own: Vec<&Change> = changes.iter().filter(|change| is_own(change)).collect();
        let ended = changes.last().map_or(point.created_at, |change| change.time);
        let turn = match own.first().map(|first| &first.author) {
            Some(Author::Agent { turn, .. }) if point.session.is_some() => store.turn(*turn)?,
            _ => None,
        };
        let prompt = turn.map_or_else(|| point.description.clone(), |turn| turn.prompt);
        if !own.is_empty() {
            let author = author_of(store, &own)?;
            let at = own.last().map_or(point.created_at, |change| change.time);
            // As `diff POINT!`: also what was taken back later.
            let part = changes_by(store, changes.clone(), &Cancelled::default(), is_own)?;
            let mut apart = part.diffs;
            apart.retain(|diff| !part.overlapping.contains(&diff.path));
            // A renamed file goes from its old path, unless something else came there.
            let left = apart.iter().filter_map(|diff| diff.renamed_from.clone());
            let left: Vec<WorkPath> = left.collect();
            let left = left.into_iter().map(|old| (old, Entry::Absent));
            let entries = left.chain(apart.into_iter().map(|diff| (diff.path, diff.after)));
            self.made.extend(part.made);
            self.add(tree, entries, |entries| SeriesCommit {
                author,
                point: point.clone(),
                part: TurnPart::Own,
                prompt: prompt.clone(),
                at,
                entries,
            });
        }
        let histories = by_path(changes);
        let differs = |history: &&PathHistory| {
            tree.get(&history.path).unwrap_or(&Entry::Absent) != history.at_end()
        };
        let rest: Vec<&PathHistory> = histories.iter().filter(differs).collect();
        let others: Vec<&Change> = rest
            .iter()
            .flat_map(|history| {
                let has_others = history.changes.iter().any(|change| !is_own(change));
                history.changes.iter().filter(move |change| !has_others || !is_own(change))
            })
            .collect();
        let author = author_of(store, &others)?;
        let entries = rest.iter().map(|history| (history.path.clone(), history.at_end().clone()));
        let entries: Vec<(WorkPath, Entry)> = entries.collect();
        self.add(tree, entries.into_iter(), |entries| SeriesCommit {
            author,
            point: point.clone(),
            part: TurnPart::Rest,
            prompt,
            at: ended,
            entries,
        });
        Ok(())
    }

    fn add(
        &mut self,
        tree: &mut BTreeMap<WorkPath, Entry>,
        entries: impl Iterator<Item = (WorkPath, Entry)>,
        commit: impl FnOnce(BTreeMap<WorkPath, Entry>) -> SeriesCommit,
    ) {
        let entries: BTreeMap<WorkPath, Entry> = entries.collect();
        if entries.is_empty() {
            return;
        }
        tree.extend(entries.iter().map(|(path, entry)| (path.clone(), entry.clone())));
        self.commits.push(commit(entries));
    }
}

/// The only author of these changes.
fn author_of(store: &dyn Store, changes: &[&Change]) -> Result<CommitAuthor, StoreError> {
    let mut sessions: BTreeSet<&SessionId> = BTreeSet::new();
    let mut authors = BTreeSet::new();
    for change in changes {
        match &change.author {
            Author::Human => _ = authors.insert(CommitAuthor::You),
            Author::Rewind { .. } => _ = authors.insert(CommitAuthor::Rewind),
            Author::Agent { session, .. } => _ = sessions.insert(session),
            _ => _ = authors.insert(CommitAuthor::Several),
        }
    }
    for session in sessions {
        let known = store.session(session)?;
        // A subagent works for its session's agent.
        let whole = known.as_ref().and_then(|known| known.whole().cloned());
        let known = match whole {
            Some(whole) => store.session(&whole)?,
            None => known,
        };
        authors.insert(CommitAuthor::Agent(known.and_then(|known| known.agent)));
    }
    let only = authors.pop_first().filter(|_| authors.is_empty());
    Ok(only.unwrap_or(CommitAuthor::Several))
}

/// Why an entry cannot be in a commit; `None`: it can, or nothing is there.
pub(super) fn gap(entry: &Entry) -> Option<&'static str> {
    match entry {
        Entry::NotCaptured { reason } => Some(reason.describe()),
        Entry::Unknown => Some(NotCapturedReason::Unreadable.describe()),
        Entry::File { .. } | Entry::Symlink { .. } | Entry::Dir { .. } | Entry::Absent => None,
    }
}
