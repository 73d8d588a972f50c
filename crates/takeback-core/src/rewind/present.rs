//! What a plan is made from: the histories of the requested paths, and what is at these paths now.
//!
//! First the paths that the plan may touch are recorded as any other event is (`record.rs`): then the store
//! has all bytes that the rewind could displace, and the log says what is on disk.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use takeback_store::{
    Author, Change, ChangeRun, Correction, Digest, Entry, Evidence, PathRuns, RewindKind, Seq,
    SessionId, Store, StoreError, WorkPath,
};

use super::corrections::{correct, session_to_correct};
use super::error::RewindError;
use super::path_filter::PathFilter;
use super::plan::roles::may_be_taken;
use super::plan::{Aim, DiskState, Plan, Sources, links};
use super::request::{
    ChosenChanges, Exactness, Incoming, IncomingChange, RewindRequest, RewindScope, Target,
};
use super::safety_point::CoverageGap;
use super::state_move::Terms;
use super::target::Selection;
use crate::exchange::imported::import_of;
use crate::history::{PathHistory, by_path, settle};
use crate::record::{look_at_paths, scan_locked};
use crate::workspace::Workspace;
use crate::worktree::index::Index;
use crate::worktree::root::{Access, names_in};

/// What a plan is made from.
pub(super) struct PlanInputs {
    /// Every requested path that changed after the selected moment.
    pub(super) histories: Vec<PathRuns>,
    /// The same for paths that the selected safety point does not cover.
    pub(super) uncovered: Vec<PathRuns>,
    /// The user's corrections of authors, to be recorded.
    pub(super) corrections: Vec<(Seq, Correction)>,
    /// The positions of all points.
    pub(super) points: BTreeSet<Seq>,
    pub(super) disk: DiskState,
    /// Whether the whole tree was scanned.
    pub(super) is_full_scan: bool,
}

/// Records what differs from the log at every path that the plan may touch, and reads histories and entries.
pub(super) fn look(
    workspace: &mut Workspace,
    request: &RewindRequest,
    selection: &Selection,
) -> Result<PlanInputs, RewindError> {
    let Selection { aim, kind, at } = selection;
    let gap = match (aim, kind) {
        (Aim::Exact { .. }, RewindKind::Rewind { point } | RewindKind::Restore { point }) => {
            CoverageGap::of(workspace, *point)?
        }
        _ => None,
    };
    let log = LogReader::new(&*workspace.store, request, selection)?;
    let is_full_scan = needs_full_scan(workspace, request)?;
    if is_full_scan {
        scan_locked(workspace)?;
    }
    let head = workspace.store.head()?;
    let session = session_to_correct(&*workspace.store, *kind)?;
    let mut histories = log.read(&*workspace.store)?;
    let mut corrections = correct(&mut histories, request, session.as_ref())?;
    let points = workspace.store.points()?.into_iter().map(|point| point.seq).collect();
    let touched = may_be_touched(&histories, aim, &points, &StoreSources(&*workspace.store))?;
    let mut linked = Index::linked_at(&workspace.index_file(), head.seq, *at);
    linked.retain(|names| names.iter().any(|name| touched.binary_search(name).is_ok()));
    let mut paths = touched.clone();
    paths.extend(linked.iter().flatten().cloned());
    let paths = with_folders(&paths);
    look_at_paths(workspace, &paths)?;
    let disk = DiskState { linked, ..disk_state(workspace, &paths, &touched)? };
    if workspace.store.head()? != head {
        histories = log.read(&*workspace.store)?;
        corrections = correct(&mut histories, request, session.as_ref())?;
    }
    let uncovered = gap.map(|gap| gap.take_out(&mut histories)).unwrap_or_default();
    Ok(PlanInputs { histories, uncovered, corrections, points, disk, is_full_scan })
}

/// The paths a plan may touch, by what the log says: nothing was looked at yet.
fn may_be_touched(
    histories: &[PathRuns],
    aim: &Aim,
    points: &BTreeSet<Seq>,
    sources: &dyn Sources,
) -> Result<Vec<WorkPath>, StoreError> {
    let mut paths = Vec::new();
    for history in histories {
        let may_touch = match aim {
            Aim::Exact { .. } => true,
            aim => may_be_taken(history, aim, points, sources)?,
        };
        if may_touch {
            paths.push(history.path.clone());
        }
    }
    Ok(paths)
}

/// Whether looking at the paths of the log is not enough.
fn needs_full_scan(workspace: &Workspace, request: &RewindRequest) -> Result<bool, StoreError> {
    let store = &*workspace.store;
    let is_busy = store.sessions()?.iter().any(|session| session.open_turn.is_some())
        || !store.live_calls()?.is_empty();
    // All or nothing: changes by others anywhere count, not only where this may write.
    let is_whole = request.rollback.as_ref().is_some_and(|r| r.terms == Terms::AllOrNothing);
    let is_exact =
        request.exactness == Exactness::Exact || matches!(request.target, Target::Restore(_));
    let is_corrected = !(request.take.is_empty() && request.mine.is_empty());
    let has_open_folders = !workspace.opened.folders.is_empty();
    Ok(has_open_folders
        || is_busy
        || is_exact
        || is_whole
        || is_corrected
        || store.last_scan()?.is_none())
}

/// Reads the part of the log that a request is about.
struct LogReader {
    /// The changes that the request names itself.
    incoming: Option<Arc<Incoming>>,
    /// The changes that it wants to take back, each for itself.
    chosen: Option<ChosenChanges>,
    after: Seq,
    filter: PathFilter,
    /// Only paths that this rewind changed.
    only: Option<Author>,
    /// The sessions that a plan for this aim treats as one.
    as_one: BTreeSet<SessionId>,
}

impl LogReader {
    fn new(
        store: &dyn Store,
        request: &RewindRequest,
        selection: &Selection,
    ) -> Result<Self, RewindError> {
        let only = match (&selection.aim, selection.kind) {
            (Aim::Exact { .. }, RewindKind::Undo { of } | RewindKind::Redo { of }) => {
                Some(Author::Rewind { id: of })
            }
            _ => None,
        };
        let as_one = match &selection.aim {
            Aim::Point { scope: RewindScope::Sessions(chosen), .. } => chosen.clone(),
            Aim::Point { scope: RewindScope::AllAgents, .. }
            | Aim::Exact { .. }
            | Aim::Without { .. }
            | Aim::WithoutChanges { .. }
            | Aim::Incoming { .. } => {
                let sessions = store.sessions()?.into_iter().map(|session| session.id);
                sessions.filter(|id| import_of(id).is_none()).collect()
            }
        };
        let filter = PathFilter::new(&request.paths)?;
        let incoming = match &request.target {
            Target::Incoming(incoming) => Some(Arc::clone(incoming)),
            _ => None,
        };
        let chosen = match &selection.aim {
            Aim::WithoutChanges { chosen } => Some(chosen.clone()),
            _ => None,
        };
        Ok(Self { incoming, chosen, after: selection.at, filter, only, as_one })
    }

    fn read(&self, store: &dyn Store) -> Result<Vec<PathRuns>, StoreError> {
        if let Some(incoming) = &self.incoming {
            return Ok(incoming.as_runs(&self.filter));
        }
        if let Some(chosen) = &self.chosen {
            return chosen_runs(store, chosen, &self.filter);
        }
        let mut histories = store.runs_after(self.after, &self.as_one)?;
        histories.retain(|history| self.filter.includes(&history.path));
        if let Some(author) = &self.only {
            histories.retain(|history| history.runs.iter().any(|one| one.author == *author));
        }
        Ok(histories)
    }
}

/// The changes of the paths that chosen changes are about, each as a run of its own: what came before and
/// after them by the same author stays.
fn chosen_runs(
    store: &dyn Store,
    chosen: &ChosenChanges,
    filter: &PathFilter,
) -> Result<Vec<PathRuns>, StoreError> {
    let mut changes = store.changes_after(chosen.stretch.0)?;
    changes.retain(|change| filter.includes(&change.path));
    settle(store, &mut changes)?;
    let asked = changes.iter().filter(|change| chosen.includes(change.seq, &change.author));
    let asked: HashSet<WorkPath> = asked.map(|change| change.path.clone()).collect();
    changes.retain(|change| asked.contains(&change.path));
    let runs = |history: PathHistory| PathRuns {
        path: history.path,
        runs: history.changes.into_iter().map(ChangeRun::of).collect(),
    };
    Ok(by_path(changes).into_iter().map(runs).collect())
}

impl Incoming {
    /// As changes to be taken out: what was made comes back, and what it was made from goes.
    fn as_runs(&self, filter: &PathFilter) -> Vec<PathRuns> {
        let asked = self.changes.iter().filter(|change| filter.includes(&change.path));
        let run = |change: &IncomingChange| ChangeRun {
            seqs: if change.cancels.is_empty() { vec![Seq(0)] } else { change.cancels.clone() },
            before: change.entry.clone(),
            after: change.base.clone(),
            author: Author::Human,
            evidence: Evidence::Named,
            cancels: Vec::new(),
            inferred: Vec::new(),
        };
        asked
            .map(|change| PathRuns { path: change.path.clone(), runs: vec![run(change)] })
            .collect()
    }
}

fn with_folders(paths: &[WorkPath]) -> Vec<WorkPath> {
    let mut folders: HashSet<WorkPath> = HashSet::new();
    for path in paths.iter().filter(|path| !path.is_outside()) {
        // If a folder is already in, so are those above it.
        for folder in path.ancestors() {
            if !folders.insert(folder) {
                break;
            }
        }
    }
    let mut all: Vec<WorkPath> = folders.into_iter().chain(paths.iter().cloned()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// What is at these paths, now that the log is up to date with them. Names are read only in folders
/// among `touched`: no other folder can be removed.
fn disk_state(
    workspace: &Workspace,
    paths: &[WorkPath],
    touched: &[WorkPath],
) -> Result<DiskState, RewindError> {
    let touched: HashSet<&WorkPath> = touched.iter().collect();
    let mut disk = DiskState::default();
    // In pieces: a change takes several times the memory of what is kept of it.
    for paths in paths.chunks(1024) {
        for (path, latest) in paths.iter().zip(workspace.store.latest_of(paths)?) {
            disk.add(workspace, path, latest, touched.contains(path));
        }
    }
    Ok(disk)
}

impl DiskState {
    fn add(
        &mut self,
        workspace: &Workspace,
        path: &WorkPath,
        latest: Option<Change>,
        is_touched: bool,
    ) {
        if let Some(Change { before: Entry::Dir { mode }, after: Entry::Absent, .. }) = latest {
            self.former_modes.insert(path.clone(), mode);
        }
        let entry = latest.map_or(Entry::Absent, |change| change.after);
        if entry.is_dir() && !path.is_outside() && is_touched {
            match workspace.root.folder(path.as_bytes(), Access::Read).and_then(names_in) {
                Ok(names) => {
                    let below = names.into_iter().filter_map(|name| {
                        WorkPath::new([path.as_bytes(), b"/", name.as_slice()].concat()).ok()
                    });
                    self.names.insert(path.clone(), below.collect());
                }
                // Not permitted, or just removed by another program: only this folder stays.
                Err(_) => {
                    self.unread.insert(path.clone());
                }
            }
        }
        self.entries.insert(path.clone(), entry);
    }
}

/// Marks steps that separate a path from another hard link to the same file, if the log does not know that
/// link.
pub(super) fn mark_links_elsewhere(
    workspace: &Workspace,
    plan: &mut Plan,
) -> Result<(), StoreError> {
    let now = workspace.store.head()?.seq;
    let linked = Index::linked_at(&workspace.index_file(), now, Seq(now.0 + 1));
    links::mark_links_elsewhere(plan, &linked, &workspace.root);
    Ok(())
}

/// The store, as a plan reads it.
pub(super) struct StoreSources<'a>(pub(super) &'a dyn Store);

impl Sources for StoreSources<'_> {
    fn change(&self, seq: Seq) -> Result<Option<Change>, StoreError> {
        let Some(mut change) = self.0.change(seq)? else { return Ok(None) };
        let known = self.0.attribution(&change)?;
        (change.author, change.evidence) = (known.author, known.evidence);
        Ok(Some(change))
    }

    fn contents(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        self.0.contents(digest)
    }
}
