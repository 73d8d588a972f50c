//! What is found where nothing could be seen for a while: a folder that could not be read can be read
//! again.
//!
//! A file that has not changed since it was last missed is what stood there then: the change that says
//! that it could not be read is filled in. Anything else happened unseen. If calls ran meanwhile, it is
//! not certain whose it is; if none did, it is the person's.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use takeback_store::{
    Author, Call, CallKind, CallState, Change, Entry, Evidence, SLACK_MS, SessionId, Store,
    StoreError, Timestamp, WorkPath,
};

use super::sight::Sight;
use crate::author::{Found, Scene};
use crate::rewind::opened::Opened;
use crate::workspace::Workspace;
use crate::worktree::fingerprint::stat_open;
use crate::worktree::index::{Folder, Index, below as path_below, folder_of};
use crate::worktree::root::Access;
use crate::worktree::scan::{Observed, Scan};

/// Since when names in folders that could be read again were not seen. One that came since is known to
/// be new if no point was made meanwhile: of such a point it cannot be said whether it was there.
pub(super) fn surfaced(
    store: &dyn Store,
    opened: &Opened,
    before: &Index,
    scan: &mut Scan,
) -> Result<HashMap<WorkPath, Change>, StoreError> {
    if scan.surfaced.is_empty() {
        return Ok(HashMap::new());
    }
    // The one that a rewind has promised to make of this very moment knows what this look finds.
    let promised = opened.promised.map(|(_, safety_point)| safety_point);
    let points = store.points()?.into_iter().filter(|point| Some(point.id) != promised);
    let newest = points.map(|point| point.seq).max();
    let mut since: HashMap<Vec<u8>, Option<Change>> = HashMap::new();
    let mut surfaced = HashMap::new();
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
        surfaced.insert(observed.path.clone(), closed);
    }
    Ok(surfaced)
}

/// The nearest folder around a path that was read once and then could not be.
fn hidden_above(index: &Index, path: &WorkPath) -> Option<Vec<u8>> {
    let folders = path.ancestors().map(|folder| folder.as_bytes().to_vec());
    folders.chain([Vec::new()]).find(|folder| index.folder(folder).is_some_and(|f| f.hidden))
}

/// The first change that was recorded because a folder could not be read.
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
    // An empty one: what took the owner's right to read it.
    let Ok(path) = WorkPath::new(folder) else { return Ok(None) };
    let own = store.latest_of(&[path])?.pop().flatten();
    Ok(own.filter(|change| matches!(change.after, Entry::Dir { mode } if mode & 0o500 != 0o500)))
}

/// What the log says of paths that were not seen for a while.
#[derive(Default)]
pub(super) struct Unseen<'a> {
    /// The change after which nothing was seen of a path.
    since: HashMap<&'a WorkPath, Change>,
    surfaced: Option<&'a HashMap<WorkPath, Change>>,
    /// Those that ran since the first of them.
    calls: Vec<Call>,
    folders: Option<FolderTimes<'a>>,
}

/// How a change that was found is to be recorded.
pub(super) enum Judgement {
    /// It is what an earlier change left: that is known by now.
    SameChange(Change),
    Whose(Author, Evidence),
}

impl<'a> Unseen<'a> {
    pub(super) fn of(workspace: &'a Workspace, sight: &'a Sight) -> Result<Self, StoreError> {
        let is_back = |one: &&Observed| one.before.is_unreadable() && !one.after.is_unreadable();
        let paths = sight.found.iter().filter(is_back).map(|observed| &observed.path);
        let paths: Vec<&WorkPath> = paths.collect();
        if paths.is_empty() && sight.surfaced.is_empty() {
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
        let times = since.values().chain(sight.surfaced.values()).map(|change| change.time);
        let calls = match times.min() {
            Some(first) => workspace.store.calls_since(Timestamp(first.0 - SLACK_MS))?,
            None => Vec::new(),
        };
        let folders = Some(FolderTimes { workspace, known: RefCell::default() });
        Ok(Self { since, surfaced: Some(&sight.surfaced), calls, folders })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.folders.is_none()
    }

    /// `None`: it was seen all the time.
    pub(super) fn judge(
        &self,
        observed: &Observed,
        found: Found<'_>,
        scene: &Scene,
    ) -> Option<Judgement> {
        if let Some(since) = self.since.get(&observed.path) {
            if self.is_of_before(observed, found, since) {
                let changed_at = found.changed_at.or(since.changed_at);
                let after = observed.after.clone();
                return Some(Judgement::SameChange(Change { after, changed_at, ..since.clone() }));
            }
            let (author, evidence) = self.whose(found, since, scene);
            return Some(Judgement::Whose(author, evidence));
        }
        let since = self.surfaced?.get(&observed.path)?;
        // It came before the folder was closed: as much as what was changed there then.
        if self.is_of_before(observed, found, since) {
            let author = since.author.clone();
            return Some(Judgement::Whose(author, since.evidence));
        }
        let (author, evidence) = self.whose(found, since, scene);
        Some(Judgement::Whose(author, evidence))
    }

    /// Whether what stands there has been there since the change that says that it could not be read.
    fn is_of_before(&self, observed: &Observed, found: Found<'_>, since: &Change) -> bool {
        let times = self.folders.as_ref();
        let at = match &observed.after {
            // Its own time moves with whatever is made in it. To be again what it was says nothing new.
            Entry::Dir { .. } if observed.after == since.before => return true,
            // No name has come or gone in the folder it is in.
            Entry::Absent | Entry::Dir { .. } => {
                times.and_then(|times| times.changed_at(folder_of(&observed.path)))
            }
            _ => found.changed_at,
        };
        at.is_some_and(|at| at <= since.time)
    }

    /// Time alone decides nothing here: any call that ran since may have written it.
    fn whose(&self, found: Found<'_>, since: &Change, scene: &Scene) -> (Author, Evidence) {
        let (author, evidence) = scene.whose(found);
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

/// Whether a call ran when something changed, or, if that cannot be dated, at all since then.
fn may_have_run(call: &Call, found: Found<'_>, since: Timestamp) -> bool {
    let writes =
        matches!(call.kind, CallKind::Shell { .. }) || call.kind.paths().contains(found.path);
    let (from, to) = found.changed_at.map_or((since, found.found_at), |at| (at, at));
    let began = call.opened_at.0 - SLACK_MS;
    let ended = call.closed_at.map_or(i64::MAX, |at| at.0.saturating_add(SLACK_MS));
    writes && call.state != CallState::Rejected && began <= to.0 && ended >= from.0
}

/// When names last came or went in folders.
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
