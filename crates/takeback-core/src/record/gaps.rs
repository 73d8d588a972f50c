//! Gaps: times during which a folder could not be read.
//!
//! After a gap, a file that has not changed since the gap began completes the change that recorded it as
//! unreadable. Anything else happened during the gap: if calls ran then, the author is unclear; if none
//! did, it is the person.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use takeback_store::{
    Author, Call, CallKind, CallState, Change, Entry, Evidence, SLACK_MS, SessionId, Store,
    StoreError, Timestamp, WorkPath,
};

use super::author::{ActiveCalls, DatedPath};
use super::observation::Observation;
use crate::rewind::closed_folders::OpenedFolders;
use crate::workspace::Workspace;
use crate::worktree::fingerprint::stat_open;
use crate::worktree::index::{Folder, Index, below as path_below, folder_of};
use crate::worktree::root::Access;
use crate::worktree::scan::{ObservedChange, Scan};

/// The change that began the gap, for each new name in a folder that can be read again. A name counts as
/// new (absent before) only if no point was made during the gap: whether the name existed at such a
/// point is not known.
pub(super) fn names_after_gap(
    store: &dyn Store,
    opened: &OpenedFolders,
    before: &Index,
    scan: &mut Scan,
) -> Result<HashMap<WorkPath, Change>, StoreError> {
    if scan.surfaced.is_empty() {
        return Ok(HashMap::new());
    }
    // Not the safety point that a rewind has promised for this very moment: it has what this scan finds.
    let promised = opened.promise.map(|(_, safety_point)| safety_point);
    let points = store.points()?.into_iter().filter(|point| Some(point.id) != promised);
    let newest = points.map(|point| point.seq).max();
    let mut since: HashMap<Vec<u8>, Option<Change>> = HashMap::new();
    let mut names = HashMap::new();
    for observed in &mut scan.found {
        if !scan.surfaced.contains(&observed.path) {
            continue;
        }
        let Some(folder) = hidden_above(before, &observed.path) else { continue };
        let closed = match since.get(&folder) {
            Some(closed) => closed.clone(),
            None => {
                let closed = closing_change(store, before, &folder)?;
                since.insert(folder, closed.clone());
                closed
            }
        };
        let Some(closed) = closed else { continue };
        if observed.before == Entry::Unknown && newest.is_none_or(|point| point < closed.seq) {
            observed.before = Entry::Absent;
        }
        names.insert(observed.path.clone(), closed);
    }
    Ok(names)
}

/// The nearest folder above a path that was readable once and then not.
fn hidden_above(index: &Index, path: &WorkPath) -> Option<Vec<u8>> {
    let folders = path.ancestors().map(|folder| folder.as_bytes().to_vec());
    folders.chain([Vec::new()]).find(|folder| index.folder(folder).is_some_and(|f| f.hidden))
}

/// The first change that was recorded because the folder could not be read.
fn closing_change(
    store: &dyn Store,
    index: &Index,
    folder: &[u8],
) -> Result<Option<Change>, StoreError> {
    let known: Option<std::sync::Arc<Folder>> = index.folder(folder);
    let names = known.iter().flat_map(|folder| &folder.children);
    let names = names.filter(|child| child.known.is_unreadable());
    let paths: Vec<WorkPath> = names.filter_map(|child| path_below(folder, &child.name)).collect();
    let closing = store.latest_of(&paths)?.into_iter().flatten();
    let first =
        closing.filter(|change| change.after.is_unreadable()).min_by_key(|change| change.seq);
    if first.is_some() {
        return Ok(first);
    }
    // An empty folder: the change that took away the owner's permission.
    let Ok(path) = WorkPath::new(folder) else { return Ok(None) };
    let own = store.latest_of(&[path])?.pop().flatten();
    Ok(own.filter(|change| matches!(change.after, Entry::Dir { mode } if mode & 0o500 != 0o500)))
}

/// What the log knows about paths that have a gap behind them.
#[derive(Default)]
pub(super) struct Gaps<'a> {
    /// The change that began the gap, for known paths.
    since: HashMap<&'a WorkPath, Change>,
    /// The same, for new names.
    names: Option<&'a HashMap<WorkPath, Change>>,
    /// Calls that ran since the first gap began.
    calls: Vec<Call>,
    folders: Option<FolderTimes<'a>>,
}

/// How to record a change that was found after a gap.
pub(super) enum GapVerdict {
    /// It happened before the gap: completes the change that began it.
    Completes(Change),
    MadeBy(Author, Evidence),
}

impl<'a> Gaps<'a> {
    pub(super) fn of(
        workspace: &'a Workspace,
        observation: &'a Observation,
    ) -> Result<Self, StoreError> {
        let is_back =
            |one: &&ObservedChange| one.before.is_unreadable() && !one.after.is_unreadable();
        let paths = observation.found.iter().filter(is_back).map(|observed| &observed.path);
        let paths: Vec<&WorkPath> = paths.collect();
        if paths.is_empty() && observation.names_after_gap.is_empty() {
            return Ok(Self::default());
        }
        let asked: Vec<WorkPath> = paths.iter().map(|path| (*path).clone()).collect();
        let latest = workspace.store.latest_of(&asked)?;
        let since: HashMap<&WorkPath, Change> = paths
            .into_iter()
            .zip(latest)
            .filter_map(|(path, change)| Some((path, change?)))
            .filter(|(_, change)| change.after.is_unreadable())
            .collect();
        let times =
            since.values().chain(observation.names_after_gap.values()).map(|change| change.time);
        let calls = match times.min() {
            Some(first) => workspace.store.calls_since(Timestamp(first.0 - SLACK_MS))?,
            None => Vec::new(),
        };
        let folders = Some(FolderTimes { workspace, known: RefCell::default() });
        Ok(Self { since, names: Some(&observation.names_after_gap), calls, folders })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.folders.is_none()
    }

    /// `None`: the path has no gap behind it.
    pub(super) fn judge(
        &self,
        observed: &ObservedChange,
        found: DatedPath<'_>,
        active: &ActiveCalls,
    ) -> Option<GapVerdict> {
        if let Some(since) = self.since.get(&observed.path) {
            if self.is_older_than(observed, found, since) {
                let changed_at = found.changed_at.or(since.changed_at);
                let after = observed.after.clone();
                return Some(GapVerdict::Completes(Change { after, changed_at, ..since.clone() }));
            }
            let (author, evidence) = self.author_of(found, since, active);
            return Some(GapVerdict::MadeBy(author, evidence));
        }
        let since = self.names?.get(&observed.path)?;
        // It was made before the gap began, by the author of that change.
        if self.is_older_than(observed, found, since) {
            let author = since.author.clone();
            return Some(GapVerdict::MadeBy(author, since.evidence));
        }
        let (author, evidence) = self.author_of(found, since, active);
        Some(GapVerdict::MadeBy(author, evidence))
    }

    /// Whether the entry was already there when the gap began.
    fn is_older_than(
        &self,
        observed: &ObservedChange,
        found: DatedPath<'_>,
        since: &Change,
    ) -> bool {
        let times = self.folders.as_ref();
        let at = match &observed.after {
            // A folder's time moves with every name made in it: only its mode can be compared.
            Entry::Dir { .. } if observed.after == since.before => return true,
            // The parent folder's time shows whether names came or went.
            Entry::Absent | Entry::Dir { .. } => {
                times.and_then(|times| times.changed_at(folder_of(&observed.path)))
            }
            _ => found.changed_at,
        };
        at.is_some_and(|at| at <= since.time)
    }

    /// Any call that ran during the gap may have written it, unless a call named it.
    fn author_of(
        &self,
        found: DatedPath<'_>,
        since: &Change,
        active: &ActiveCalls,
    ) -> (Author, Evidence) {
        let (author, evidence) = active.author_of(found);
        if matches!(author, Author::Agent { .. }) && evidence == Evidence::Named {
            return (author, evidence);
        }
        let mut sessions: BTreeSet<SessionId> = author.sessions().iter().cloned().collect();
        let calls = self.calls.iter().filter(|call| may_have_run(call, found, since.time));
        sessions.extend(calls.map(|call| call.session.clone()));
        if found.changed_at.is_none() {
            sessions.extend(since.author.sessions().iter().cloned());
        }
        match sessions.is_empty() {
            true => (Author::Human, Evidence::Named),
            false => {
                let sessions = sessions.into_iter().collect();
                (Author::Ambiguous { sessions }, Evidence::OpenWindow)
            }
        }
    }
}

/// Whether a call ran when the path changed, or, if that has no date, at any time since the gap began.
fn may_have_run(call: &Call, found: DatedPath<'_>, since: Timestamp) -> bool {
    let writes =
        matches!(call.kind, CallKind::Shell { .. }) || call.kind.paths().contains(found.path);
    let (from, to) = found.changed_at.map_or((since, found.found_at), |at| (at, at));
    let began = call.opened_at.0 - SLACK_MS;
    let ended = call.closed_at.map_or(i64::MAX, |at| at.0.saturating_add(SLACK_MS));
    writes && call.state != CallState::Rejected && began <= to.0 && ended >= from.0
}

/// When names were last added to or removed from folders.
struct FolderTimes<'a> {
    workspace: &'a Workspace,
    known: RefCell<HashMap<Vec<u8>, Option<Timestamp>>>,
}

impl FolderTimes<'_> {
    fn changed_at(&self, folder: &[u8]) -> Option<Timestamp> {
        if let Some(known) = self.known.borrow().get(folder) {
            return *known;
        }
        let opened = self.workspace.root.folder(folder, Access::Reach);
        let seen = opened.and_then(|folder| stat_open(&folder)).ok();
        let time =
            seen.and_then(|seen| (self.workspace.ambient.file_time)(seen.fingerprint.modified));
        self.known.borrow_mut().insert(folder.to_vec(), time);
        time
    }
}
