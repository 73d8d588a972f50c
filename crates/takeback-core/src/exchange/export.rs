//! Writes points, the changes between them and the contents they need into a bundle.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io::Write;

use takeback_store::{
    Author, Change, Digest, Entry, IN_PART, NotCapturedReason, PackedBlob, Point, PointId,
    PointKind, Seq, Session, SessionId, Store, StoreError, Timestamp, Turn, WorkPath,
};

use super::bundle::{BundleError, BundleWriter, Piece, WriteError};
use super::check::{check, is_ours};
use super::export_filter::ExportFilter;
use super::file::FileError;
use super::states::{self, OmittedStates};
use crate::lock::Hold;
use crate::record::{RecordError, drain_inbox};
use crate::workspace::Workspace;

/// What to export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportOptions {
    /// Whose points.
    pub selection: Selection,
    /// Whether ignored paths are exported.
    pub ignored: IgnoredPaths,
}

/// Which points, and the changes between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All, and the changes after the last.
    Everything,
    /// Those of this session, and the changes until its work ended.
    Session(SessionId),
    /// This one: its tree, and no changes.
    Point(PointId),
}

/// Whether ignored paths, even small ones that are recorded, and paths outside are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoredPaths {
    /// They are left out and counted.
    LeaveOut,
    /// They are exported.
    Include,
}

/// What an export wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportReport {
    /// Points in the bundle.
    pub points: usize,
    /// Changes in the bundle.
    pub changes: usize,
    /// Contents in the bundle.
    pub blobs: u64,
    /// Of the bundle.
    pub bytes: u64,
    /// Paths that were left out.
    pub left_out: usize,
    /// Paths of which the store has lost some contents. In the bundle these are unreadable.
    pub damaged: Vec<WorkPath>,
    /// Agents' states, which are not in the bundle. `None`: they cannot be read.
    pub states: Option<OmittedStates>,
}

/// Why nothing was exported. No file was written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum ExportError {
    #[error("there is no point {0}")]
    NoPoint(PointId),
    #[error("{0} is a safety point, which belongs to a rewind of this workspace")]
    SafetyPoint(PointId),
    #[error("no session is called {0:?}")]
    NoSession(String),
    #[error("there are no points to export")]
    NoPoints,
    #[error("another command has the workspace locked")]
    Locked,
    #[error("the log cannot be exported: as a bundle it would be refused")]
    Inconsistent { source: BundleError },
    #[error("{bytes} bytes in one record are too many for a bundle")]
    RecordTooLarge { bytes: usize },
    #[error("cannot write the bundle")]
    Sink { source: std::io::Error },
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<WriteError> for ExportError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::TooLarge(bytes) => Self::RecordTooLarge { bytes },
            WriteError::Io(source) => Self::Sink { source },
        }
    }
}

/// Writes the bundle to `sink`. Changes nothing in the workspace. It holds the shared lock, so no clean-up
/// removes contents while it runs.
pub fn export(
    workspace: &mut Workspace,
    options: &ExportOptions,
    sink: &mut dyn Write,
) -> Result<ExportReport, ExportError> {
    let Some(_lock) = workspace.lock(Hold::Shared, workspace.limits.rewind_patience)? else {
        return Err(ExportError::Locked);
    };
    drain_inbox(workspace)?;
    let ExportSelection { piece, left_out, damaged } = piece(workspace, options)?;
    let mut writer = BundleWriter::new(sink)?;
    writer.piece(&piece)?;
    let mut written = HashSet::new();
    let changed = piece.changes.iter().map(|change| &change.after);
    for entry in piece.base.iter().map(|(_, entry)| entry).chain(changed) {
        if let Some(digest) = entry.digest() {
            write_blob(&*workspace.store, &digest, &mut written, &mut writer)?;
        }
    }
    let file = writer.finish()?;
    Ok(ExportReport {
        points: piece.points.len(),
        changes: piece.changes.len(),
        blobs: file.blobs,
        bytes: file.bytes,
        left_out,
        damaged,
        states: states::omitted_states(&*workspace.states, &options.selection),
    })
}

/// The history to export.
struct ExportSelection {
    piece: Piece,
    /// How many paths are not exported.
    left_out: usize,
    damaged: Vec<WorkPath>,
}

/// The selected piece of history.
fn piece(workspace: &Workspace, options: &ExportOptions) -> Result<ExportSelection, ExportError> {
    let store = &*workspace.store;
    let mut points = selected(store, &options.selection)?;
    points.sort_by_key(|point| point.seq);
    let (Some(first), Some(last)) = (points.first(), points.last()) else {
        return Err(ExportError::NoPoints);
    };
    let (first, last) = (first.seq, last.seq);
    // In this order: a change committed in between is in the second read and says what was before it.
    let mut base: BTreeMap<WorkPath, Entry> = store.latest()?.into_iter().collect();
    let mut changes = store.changes_after(first)?;
    for change in changes.iter().rev() {
        base.insert(change.path.clone(), change.before.clone());
    }
    let until = match &options.selection {
        Selection::Everything => changes.last().map_or(last, |change| change.seq),
        Selection::Point(_) => first,
        Selection::Session(session) => {
            let theirs = |change: &&Change| change.author.sessions().contains(session);
            changes.iter().rev().find(theirs).map_or(last, |change| change.seq.max(last))
        }
    };
    changes.retain(|change| change.seq <= until);
    let out = left_out(workspace, options.ignored, &base, &changes)?;
    changes.retain(|change| !out.contains(&change.path));
    base.retain(|path, entry| *entry != Entry::Absent && !out.contains(path));
    let damaged = without_lost(store, &mut base, &mut changes)?;
    let (changes, positions) = renumbered(changes);
    for point in &mut points {
        point.seq = positions.range(..=point.seq).next_back().map_or(Seq(0), |(_, seq)| *seq);
    }
    let piece = Piece {
        sessions: sessions(store, &points, &changes)?,
        turns: turns(store, &changes)?,
        base: base.into_iter().collect(),
        changes,
        points,
    };
    check(&piece).map_err(|source| ExportError::Inconsistent { source })?;
    Ok(ExportSelection { piece, left_out: out.len(), damaged })
}

/// Makes entries whose contents the store has lost unreadable, so that the rest can be exported; returns
/// their paths. Reads all contents in addition to the read that writes them.
fn without_lost(
    store: &dyn Store,
    base: &mut BTreeMap<WorkPath, Entry>,
    changes: &mut [Change],
) -> Result<Vec<WorkPath>, StoreError> {
    let mut seen: HashMap<Digest, bool> = HashMap::new();
    let mut is_lost = |entry: &Entry| -> Result<bool, StoreError> {
        // Damage belongs to this store; a bundle does not record it.
        if *entry == (Entry::NotCaptured { reason: NotCapturedReason::Damaged }) {
            return Ok(true);
        }
        let Some(digest) = entry.digest() else { return Ok(false) };
        if let Some(lost) = seen.get(&digest) {
            return Ok(*lost);
        }
        let lost = match store.read(&digest, &mut |_| Ok(())) {
            Err(error) if error.is_lost_contents() => true,
            read => read.map(|()| false)?,
        };
        seen.insert(digest, lost);
        Ok(lost)
    };
    let mut damaged = BTreeSet::new();
    let changed = changes
        .iter_mut()
        .flat_map(|change| [(&change.path, &mut change.before), (&change.path, &mut change.after)]);
    for (path, entry) in base.iter_mut().chain(changed) {
        if is_lost(entry)? {
            *entry = Entry::NotCaptured { reason: NotCapturedReason::Unreadable };
            damaged.insert(path.clone());
        }
    }
    Ok(damaged.into_iter().collect())
}

pub(super) fn selected(
    store: &dyn Store,
    selection: &Selection,
) -> Result<Vec<Point>, ExportError> {
    let mut points = store.points()?;
    match selection {
        Selection::Everything => points.retain(|point| point.kind != PointKind::Safety),
        Selection::Session(session) => {
            points.retain(|point| point.session.as_ref() == Some(session));
            if points.is_empty() && store.session(session)?.is_none() {
                return Err(ExportError::NoSession(session.0.clone()));
            }
        }
        Selection::Point(id) => {
            points.retain(|point| point.id == *id);
            match points.first() {
                None => return Err(ExportError::NoPoint(*id)),
                Some(point) if point.kind == PointKind::Safety => {
                    return Err(ExportError::SafetyPoint(*id));
                }
                Some(_) => {}
            }
        }
    }
    Ok(points)
}

/// The paths that are not exported, of those that the piece would name.
pub(crate) fn left_out(
    workspace: &Workspace,
    ignored: IgnoredPaths,
    base: &BTreeMap<WorkPath, Entry>,
    changes: &[Change],
) -> Result<HashSet<WorkPath>, StoreError> {
    let mut folders: HashMap<&WorkPath, bool> = HashMap::new();
    for change in changes {
        *folders.entry(&change.path).or_default() |= change.after.is_dir();
    }
    let mut left = ExportFilter::of(workspace)?;
    let mut out = HashSet::new();
    for (path, entry) in base {
        let was_folder = folders.get(path);
        if *entry == Entry::Absent && was_folder.is_none() {
            continue;
        }
        let is_folder = entry.is_dir() || was_folder == Some(&true);
        if is_ours(path) || (ignored == IgnoredPaths::LeaveOut && left.includes(path, is_folder)) {
            out.insert(path.clone());
        }
    }
    Ok(out)
}

/// The changes, numbered from 1, each beginning where the previous one of its path ended; with the number of
/// the last change up to each old number.
fn renumbered(changes: Vec<Change>) -> (Vec<Change>, BTreeMap<Seq, Seq>) {
    let mut numbers = HashMap::new();
    let mut positions = BTreeMap::new();
    let mut bridges = bridges(&changes);
    let mut numbered: Vec<Change> = Vec::with_capacity(changes.len() + bridges.len());
    for mut change in changes {
        let old = change.seq;
        if change.before != change.after {
            change.seq = Seq(numbered.len() as u64 + 1);
            numbers.insert(old, change.seq);
            let same = |cancelled: &Seq| {
                if *cancelled == IN_PART {
                    return Some(IN_PART);
                }
                let number = numbers.get(cancelled).copied()?;
                let at = usize::try_from(number.0 - 1).ok()?;
                numbered.get(at).filter(|other| other.path == change.path).map(|_| number)
            };
            change.cancels = change.cancels.iter().filter_map(same).collect();
            if change.cancels == [IN_PART] {
                change.cancels.clear();
            }
            numbered.push(change);
        }
        if let Some(bridge) = bridges.remove(&old) {
            numbered.push(Change { seq: Seq(numbered.len() as u64 + 1), ..bridge });
        }
        positions.insert(old, Seq(numbered.len() as u64));
    }
    (numbered, positions)
}

/// Where a change does not begin where the previous one of its path ended, retention dropped what was
/// between. Returns a change that fills each gap, by the number of the previous change. It directly
/// follows that one, so every point in the gap has the entry that the next change began with, as the log
/// says.
fn bridges(changes: &[Change]) -> HashMap<Seq, Change> {
    let mut last: HashMap<&WorkPath, &Change> = HashMap::new();
    let mut bridges = HashMap::new();
    for change in changes {
        if let Some(before) = last.insert(&change.path, change)
            && before.after != change.before
        {
            bridges.insert(
                before.seq,
                Change {
                    before: before.after.clone(),
                    after: change.before.clone(),
                    author: Author::Import,
                    cancels: Vec::new(),
                    ..before.clone()
                },
            );
        }
    }
    bridges
}

/// The turns of the changes, in order.
fn turns(store: &dyn Store, changes: &[Change]) -> Result<Vec<Turn>, StoreError> {
    let mut seen = HashSet::new();
    let mut turns = Vec::new();
    for change in changes {
        if let Author::Agent { turn, .. } = change.author
            && seen.insert(turn)
        {
            turns.extend(store.turn(turn)?);
        }
    }
    Ok(turns)
}

/// The sessions of the points and changes, parents first. One that is known only by name began when it was
/// first mentioned.
fn sessions(
    store: &dyn Store,
    points: &[Point],
    changes: &[Change],
) -> Result<Vec<Session>, StoreError> {
    let mentioned = points.iter().map(|point| (point.session.as_slice(), point.created_at));
    let mentioned =
        mentioned.chain(changes.iter().map(|change| (change.author.sessions(), change.time)));
    let mut named: BTreeMap<&SessionId, Timestamp> = BTreeMap::new();
    for (sessions, time) in mentioned {
        for session in sessions {
            let first = named.entry(session).or_insert(time);
            *first = time.min(*first);
        }
    }
    let mut open = Vec::new();
    for (id, started_at) in &named {
        let by_name = || Session {
            id: (*id).clone(),
            agent: None,
            parent: None,
            owner: None,
            started_at: *started_at,
            ended_at: None,
            archived_at: None,
            open_turn: None,
            model: None,
        };
        let mut session = store.session(id)?.unwrap_or_else(by_name);
        session.parent = session.parent.filter(|parent| named.contains_key(parent));
        open.push(session);
    }
    let mut sorted: Vec<Session> = Vec::with_capacity(open.len());
    while !open.is_empty() {
        let (ready, rest): (Vec<_>, Vec<_>) = open.into_iter().partition(|session| {
            session.parent.as_ref().is_none_or(|parent| sorted.iter().any(|s| s.id == *parent))
        });
        open = rest;
        if ready.is_empty() {
            // A cycle of parents: break it.
            open.iter_mut().for_each(|session| session.parent = None);
        }
        sorted.extend(ready);
    }
    Ok(sorted)
}

/// Writes contents, parts first, unless they are already written.
fn write_blob(
    store: &dyn Store,
    digest: &Digest,
    written: &mut HashSet<Digest>,
    writer: &mut BundleWriter<'_>,
) -> Result<(), ExportError> {
    if written.contains(digest) {
        return Ok(());
    }
    let damaged = || StoreError::DamagedBlob { digest: *digest };
    let whole = store.read_packed(digest)?;
    let parts = whole.chunks();
    if parts.is_empty() && whole.size <= takeback_store::CHUNKED_ABOVE {
        whole.unpack().ok_or_else(damaged)?;
        written.insert(*digest);
        return Ok(writer.blob(&whole)?);
    }
    if parts.is_empty() {
        // A merge stored it in one piece.
        let contents = whole.unpack().ok_or_else(damaged)?;
        let mut failed = None;
        PackedBlob::stream(&mut contents.as_slice(), &mut |part| {
            if failed.is_none() && written.insert(part.digest) {
                failed = writer.blob(&part).err();
            }
        })
        .map_err(|source| ExportError::Sink { source })?;
        return failed.map_or(Ok(()), |error| Err(error.into()));
    }
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        let packed = store.read_packed(&part)?;
        hasher.update(&packed.unpack().ok_or_else(damaged)?);
        if written.insert(part) {
            writer.blob(&packed)?;
        }
    }
    if *hasher.finalize().as_bytes() != digest.0 {
        return Err(damaged().into());
    }
    written.insert(*digest);
    Ok(writer.blob(&whole)?)
}
