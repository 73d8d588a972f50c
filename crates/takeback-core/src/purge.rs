//! Removes a path from all history: its contents and its names leave the store.
//!
//! The log keeps its shape: each purged path gets a placeholder name, and every entry of it becomes *not
//! captured (purged)*, so that points that lose a file can report it. The name is removed from texts that
//! have it (prompts, commands, plans, receipts). Files on disk are not touched.

mod scrub;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;

use takeback_store::{
    Author, Call, CallKind, Change, CompactEffort, Digest, Entry, Evidence, Head,
    NotCapturedReason, PointKind, RewindId, RewindRecord, Seq, StoreError, Timestamp, Turn,
    WorkPath, Write, disk,
};

pub use self::scrub::Scrubber;
use crate::lock::Hold;
use crate::record::{RecordError, drain_inbox};
use crate::rewind::recover_locked;
use crate::rewind::{RewindError, for_each_step};
use crate::workspace::Workspace;
use crate::worktree::write::{Slot, Stage, StageError, stages};

/// What a purge removed, or would remove.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PurgeReport {
    /// The purged paths, sorted.
    pub paths: Vec<WorkPath>,
    /// Contents that left the store.
    pub versions: usize,
    /// Their total size as files, in bytes.
    pub bytes: u64,
    /// Contents that stay because other paths have them too.
    pub shared: usize,
    /// Points that are incomplete from now on.
    pub points: usize,
}

/// Why a purge did not finish.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum PurgeError {
    #[error("{path} is not in the history")]
    Unknown { path: String },
    #[error("another command has the workspace locked")]
    Locked,
    #[error("{path} cannot be removed")]
    Remove { path: String, source: io::Error },
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Rewind(#[from] RewindError),
    #[error(transparent)]
    Stage(#[from] StageError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

const PURGED: Entry = Entry::NotCaptured { reason: NotCapturedReason::Purged };

/// What [`purge`] would remove. Changes nothing.
pub fn would_purge(workspace: &Workspace, path: &WorkPath) -> Result<PurgeReport, PurgeError> {
    Ok(Work::prepare(workspace, path)?.purged)
}

/// Removes `path` and everything known below it from the store. Afterwards no byte of it is in the
/// store's files. The returned [`Scrubber`] removes its names from other texts.
pub fn purge(
    workspace: &mut Workspace,
    path: &WorkPath,
) -> Result<(PurgeReport, Scrubber), PurgeError> {
    let patience = workspace.limits.rewind_patience;
    let Some(_lock) = workspace.lock(Hold::Exclusive, patience)? else {
        return Err(PurgeError::Locked);
    };
    // Also finishes an interrupted purge.
    recover_locked(workspace)?;
    drain_inbox(workspace)?;
    let work = loop {
        let work = Work::prepare(workspace, path)?;
        clear_stages(workspace, &work)?;
        // Before the log forgets the names: an outdated index would keep them.
        remove_index(workspace)?;
        note_begun(workspace)?;
        match workspace.store.commit(work.head, &work.writes) {
            Err(StoreError::Moved) => {}
            done => {
                done?;
                break work;
            }
        }
    };
    finish(workspace)?;
    Ok((work.purged, work.scrubber))
}

/// This file exists from before the log forgets contents until they are out of the store's files.
const UNFINISHED: &str = "purging";

/// Notes that the log is about to forget contents of which no byte may stay in the store's files.
pub(crate) fn note_begun(workspace: &Workspace) -> Result<(), StoreError> {
    let path = workspace.store_dir.join(UNFINISHED);
    disk::replace_private_file_durably(&path, b"").map_err(|source| {
        let doing = "noting that a purge begins";
        StoreError::Io { path, doing, source }
    })
}

/// Whether a purge was interrupted: bytes that no record names may still be in the store's files.
pub(crate) fn is_unfinished(workspace: &Workspace) -> bool {
    workspace.store_dir.join(UNFINISHED).exists()
}

/// If a purge has begun, removes unreferenced contents from the store's files.
pub(crate) fn finish(workspace: &mut Workspace) -> Result<(), StoreError> {
    if !is_unfinished(workspace) {
        return Ok(());
    }
    let unreferenced = workspace.store.unreferenced()?;
    workspace.store.drop_blobs(&unreferenced)?;
    workspace.store.compact(CompactEffort::Everything)?;
    let path = workspace.store_dir.join(UNFINISHED);
    disk::remove_store_file(&path).map_err(|source| StoreError::Io {
        path,
        doing: "noting that the purge is done",
        source,
    })
}

/// A purging commit, and the head it was made for.
struct Work {
    head: Head,
    writes: Vec<Write>,
    purged: PurgeReport,
    scrubber: Scrubber,
    /// Steps of rewinds that touched the purged paths.
    steps: Vec<(RewindId, usize)>,
}

impl Work {
    fn prepare(workspace: &Workspace, path: &WorkPath) -> Result<Self, PurgeError> {
        let store = &*workspace.store;
        let head = store.head()?;
        let changes = store.changes_after(Seq(0))?;
        let is_in = |change: &&Change| change.path.is_within(path.as_bytes());
        let going: Vec<&Change> = changes.iter().filter(is_in).collect();
        let paths: BTreeSet<WorkPath> = going.iter().map(|change| change.path.clone()).collect();
        if paths.is_empty() {
            return Err(PurgeError::Unknown { path: path.display() });
        }
        let scrubber = Scrubber::of(path, &paths);
        let names = placeholder_names(workspace, &paths);
        let time = (workspace.ambient.now)();
        let mut writes: Vec<Write> = going
            .iter()
            .map(|change| Write::ReplaceChange(purged_change(change, &names)))
            .collect();
        writes.extend(closing_changes(&going, &names, head.seq, time));
        let mut steps = Vec::new();
        writes.extend(store.turns()?.into_iter().filter_map(|turn| without_name(turn, &scrubber)));
        let calls = store.calls_since(Timestamp(i64::MIN))?.into_iter();
        writes.extend(calls.filter_map(|call| without_paths(call, &paths, &scrubber)));
        for point in store.points()? {
            if let Some(description) = scrubber.text(&point.description) {
                writes.push(Write::Point(takeback_store::Point { description, ..point }));
            }
        }
        for record in store.rewinds()? {
            steps.extend(steps_of(&record, &paths));
            writes.extend(scrubbed(record, &scrubber));
        }
        let mut purged = count_removed(&changes, &paths);
        purged.points = losing_points(workspace, &going)?;
        Ok(Self { head, writes, purged, scrubber, steps })
    }
}

/// A new name for each path, which reveals nothing about it.
fn placeholder_names(
    workspace: &Workspace,
    paths: &BTreeSet<WorkPath>,
) -> HashMap<WorkPath, WorkPath> {
    let mut names = HashMap::new();
    for path in paths {
        let number = (workspace.ambient.random)();
        let name = WorkPath::new(format!("purged-{number:016x}")).expect("a plain path");
        names.insert(path.clone(), name);
    }
    names
}

fn purged_change(change: &Change, names: &HashMap<WorkPath, WorkPath>) -> Change {
    let empty = |entry: &Entry| match entry {
        Entry::Absent | Entry::Unknown => entry.clone(),
        // Only a folder's name was recorded.
        Entry::Dir { .. } => Entry::Absent,
        _ => PURGED,
    };
    Change {
        path: names[&change.path].clone(),
        before: empty(&change.before),
        after: empty(&change.after),
        ..change.clone()
    }
}

/// Changes that end each purged path: nothing exists under its new name.
fn closing_changes(
    going: &[&Change],
    names: &HashMap<WorkPath, WorkPath>,
    head: Seq,
    time: Timestamp,
) -> Vec<Write> {
    let mut last: BTreeMap<&WorkPath, &Change> = BTreeMap::new();
    for change in going {
        last.insert(&change.path, change);
    }
    let standing =
        last.values().filter(|change| purged_change(change, names).after != Entry::Absent);
    let mut seq = head;
    let mut ends = Vec::new();
    for change in standing {
        seq = seq.next();
        let before = purged_change(change, names).after;
        ends.push(Write::Change(Change {
            seq,
            path: names[&change.path].clone(),
            before,
            after: Entry::Absent,
            // Not an edit by any author: no plan takes it back.
            author: Author::Import,
            evidence: Evidence::Named,
            time,
            changed_at: None,
            correction: None,
            cancels: Vec::new(),
        }));
    }
    ends
}

fn without_name(turn: Turn, scrubber: &Scrubber) -> Option<Write> {
    let prompt = scrubber.text(&turn.prompt)?;
    Some(Write::Turn(Turn { prompt, ..turn }))
}

fn without_paths(call: Call, paths: &BTreeSet<WorkPath>, scrubber: &Scrubber) -> Option<Write> {
    let left = |named: &[WorkPath]| -> Vec<WorkPath> {
        named.iter().filter(|path| !paths.contains(*path)).cloned().collect()
    };
    let kind = match &call.kind {
        CallKind::Edit { paths: named } => CallKind::Edit { paths: left(named) },
        CallKind::Shell { command, paths: named } => {
            let clean = |command: &String| scrubber.text(command).unwrap_or(command.clone());
            CallKind::Shell { command: command.as_ref().map(clean), paths: left(named) }
        }
    };
    (kind != call.kind).then_some(Write::Call(Call { kind, ..call }))
}

/// The steps of a rewind at purged paths, by their numbers in its stage.
fn steps_of(record: &RewindRecord, paths: &BTreeSet<WorkPath>) -> Vec<(RewindId, usize)> {
    let (mut number, mut steps) = (0, Vec::new());
    let read = for_each_step(&record.plan, |step| {
        if step.goal().is_some() {
            steps.extend(paths.contains(&step.path).then_some((record.id, number)));
            number += 1;
        }
    });
    // A plan that cannot be read has no stage that is still of use.
    if read.is_ok() { steps } else { Vec::new() }
}

fn scrubbed(record: RewindRecord, scrubber: &Scrubber) -> Option<Write> {
    let plan = scrubber.plan(&record.plan);
    let receipt = record.receipt.as_deref().and_then(|receipt| scrubber.receipt(receipt));
    if plan.is_none() && receipt.is_none() {
        return None;
    }
    let plan = plan.unwrap_or(record.plan);
    Some(Write::Rewind(RewindRecord { plan, receipt: receipt.or(record.receipt), ..record }))
}

/// Counts what only these paths have.
fn count_removed(changes: &[Change], paths: &BTreeSet<WorkPath>) -> PurgeReport {
    let mut own: HashMap<Digest, u64> = HashMap::new();
    let mut others: HashSet<Digest> = HashSet::new();
    for change in changes {
        for entry in [&change.before, &change.after] {
            if let Entry::File { digest, size, .. } = entry {
                match paths.contains(&change.path) {
                    true => drop(own.insert(*digest, *size)),
                    false => drop(others.insert(*digest)),
                }
            }
        }
    }
    let shared = own.keys().filter(|digest| others.contains(*digest)).count();
    own.retain(|digest, _| !others.contains(digest));
    PurgeReport {
        paths: paths.iter().cloned().collect(),
        versions: own.len(),
        bytes: own.values().sum(),
        shared,
        points: 0,
    }
}

/// How many listed points have one of the purged entries.
fn losing_points(workspace: &Workspace, going: &[&Change]) -> Result<usize, StoreError> {
    let mut by_path: HashMap<&WorkPath, Vec<&Change>> = HashMap::new();
    for change in going {
        by_path.entry(&change.path).or_default().push(change);
    }
    let is_kept = |entry: &Entry| matches!(entry, Entry::File { .. } | Entry::Symlink { .. });
    let loses = |seq: Seq| {
        by_path.values().any(|changes| {
            let next = changes.partition_point(|change| change.seq <= seq);
            match changes.get(next) {
                Some(change) => is_kept(&change.before),
                None => changes.last().is_some_and(|change| is_kept(&change.after)),
            }
        })
    };
    let points = workspace.store.points()?.into_iter();
    let listed = points.filter(|point| point.kind != PointKind::Safety);
    Ok(listed.filter(|point| loses(point.seq)).count())
}

/// Removes purged contents that are left in stages.
fn clear_stages(workspace: &Workspace, work: &Work) -> Result<(), PurgeError> {
    let left = stages(&workspace.root);
    let left: HashSet<RewindId> = left.unwrap_or_default().into_iter().collect();
    for (id, number) in work.steps.iter().filter(|(id, _)| left.contains(id)) {
        let stage = Stage::open_promised(&workspace.root, *id)?;
        for slot in [Slot::Part(*number), Slot::New(*number), Slot::Old(*number)] {
            let removed = match stage.look(slot) {
                Ok(looked) if looked.entry == Entry::Absent => Ok(()),
                Ok(_) => stage.discard(slot),
                Err(error) => Err(error),
            };
            removed.map_err(|source| PurgeError::Remove { path: stage.place_of(slot), source })?;
        }
    }
    Ok(())
}

/// The index is rebuilt from the log, without fingerprints, so that nothing in it counts as new.
fn remove_index(workspace: &Workspace) -> Result<(), PurgeError> {
    let file = workspace.index_file();
    let removed = match disk::remove_store_file(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    };
    let cleared = removed.and_then(|()| disk::remove_leftovers(&file));
    cleared.map_err(|source| PurgeError::Remove { path: file.display().to_string(), source })
}
