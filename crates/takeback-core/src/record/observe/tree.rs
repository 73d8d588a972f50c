//! Observes the whole tree, for everything that is not an edit of named files: a scan, which saves the
//! contents it reads.

use std::collections::{HashMap, HashSet};

use takeback_store::{Change, PackedBlob, Store, StoreError, WorkPath};

use crate::record::RecordError;
use crate::record::count::{Amount, to_read};
use crate::record::gaps::names_after_gap;
use crate::record::observation::Observation;
use crate::record::trust::{Writers, distrusted};
use crate::watch::WatchedScan;
use crate::workspace::Workspace;
use crate::worktree::budget::Budget;
use crate::worktree::index::Index;
use crate::worktree::scan::{Extent, Scan, ScanRequest, scan};
use crate::worktree::scope::DistrustedRules;
use crate::worktree::write::{is_unclaimed, stage_name, stages};

/// Scans the tree. If it is watched, only what the watcher reported is read.
pub(in crate::record) fn observe_tree(
    workspace: &mut Workspace,
    budget: Budget,
    writers: Writers,
) -> Result<Observation, RecordError> {
    let (index, watched) = begin_scan(workspace)?;
    scan_extent(workspace, &index, watched, budget, writers)
}

/// Scans the whole tree, whatever a watcher reported.
pub(in crate::record) fn observe_whole_tree(
    workspace: &mut Workspace,
    budget: Budget,
) -> Result<Observation, RecordError> {
    let (index, watched) = begin_scan(workspace)?;
    let whole = watched.map(WatchedScan::of_whole_tree);
    scan_extent(workspace, &index, whole, budget, Writers::Live)
}

/// The index to compare with, and what the watcher reported, if the tree is watched.
fn begin_scan(workspace: &Workspace) -> Result<(Index, Option<WatchedScan>), StoreError> {
    Ok(match &workspace.watched {
        Some(watched) => {
            let (index, scan) = watched.begin(workspace)?;
            (index, Some(scan))
        }
        None => (workspace.index()?, None),
    })
}

fn scan_extent(
    workspace: &mut Workspace,
    index: &Index,
    mut watched: Option<WatchedScan>,
    budget: Budget,
    writers: Writers,
) -> Result<Observation, RecordError> {
    let Amount { files, bytes } = to_read(workspace, index)?;
    // Without an index this is the first scan. One that was killed has left contents that no change
    // refers to: they need not be saved again.
    let kept = match index.least_folders() {
        0 => workspace.store.unreferenced()?.digests,
        _ => HashSet::new(),
    };
    let stages = own_stages(workspace)?;
    let work = workspace.ambient.begin_reading(files, bytes);
    let ask = ScanRequest {
        root: &workspace.root,
        before: index,
        options: &workspace.scope,
        threads: workspace.limits.threads(),
        budget,
        counter: work.counter(),
        extent: watched.as_ref().map_or(Extent::Whole, WatchedScan::extent),
        kept: &kept,
        distrusted: &DistrustedRules::default(),
        stages: &stages,
    };
    // A scan applies rule files as they are. Only afterwards is it known which of them an agent
    // wrote, so a second scan covers the names that only those exclude.
    let mut scan = scan_into(&ask, &mut *workspace.store)?;
    let distrusted = distrusted(&*workspace.store, index, &scan, writers)?;
    if !distrusted.is_empty() {
        scan = scan_into(&ScanRequest { distrusted: &distrusted, ..ask }, &mut *workspace.store)?;
    }
    // A hard link that the watcher did not know: its file may have changed under a name that was not
    // scanned.
    if watched.as_mut().is_some_and(|watched| !watched.add_links(std::mem::take(&mut scan.linked)))
    {
        drop(work);
        let whole = watched.map(WatchedScan::of_whole_tree);
        return scan_extent(workspace, index, whole, budget, writers);
    }
    let first_seen = first_seen(&*workspace.store, &mut scan)?;
    let names_after_gap = names_after_gap(&*workspace.store, &workspace.opened, index, &mut scan)?;
    workspace.opened.hide(&mut scan);
    Ok(Observation {
        // Not the present head: the scan was compared with the index, and `catch_up` adds what was
        // committed since.
        base: index.stamp,
        found: scan.found,
        unreadable: scan.unreadable,
        names_after_gap,
        first_seen,
        index_on_disk: (!scan.index_changed).then_some(index.stamp),
        index: Some(scan.index),
        skipped: scan.skipped,
        stats: scan.stats,
        watched,
    })
}

/// The new names in ignored folders that are not in the log at all. The others existed before, were
/// deleted and came back.
fn first_seen(store: &dyn Store, scan: &mut Scan) -> Result<HashSet<WorkPath>, StoreError> {
    let mut first_seen = std::mem::take(&mut scan.new_in_ignored);
    if first_seen.is_empty() {
        return Ok(first_seen);
    }
    let asked: Vec<WorkPath> = first_seen.iter().cloned().collect();
    let known: HashMap<WorkPath, Change> =
        store.latest_of(&asked)?.into_iter().flatten().map(|c| (c.path.clone(), c)).collect();
    first_seen.retain(|path| !known.contains_key(path));
    for observed in &mut scan.found {
        if let Some(change) = known.get(&observed.path) {
            observed.before = change.after.clone();
        }
    }
    Ok(first_seen)
}

/// Scans, and saves the contents it reads.
fn scan_into(ask: &ScanRequest<'_>, store: &mut dyn Store) -> Result<Scan, RecordError> {
    let mut failed = None;
    let mut unsaved = 0;
    let mut save = |blob: PackedBlob| {
        if failed.is_some() {
            return;
        }
        unsaved += blob.bytes.len();
        let saved = store.put(blob).and_then(|()| {
            if unsaved < UNSAVED_MAX {
                return Ok(());
            }
            unsaved = 0;
            save_contents(store)
        });
        failed = saved.err();
    };
    let scan = scan(ask, &mut save)?;
    failed.map_or(Ok(scan), |error| Err(error.into()))
}

/// The stages in Takeback's own folder that this store made, by name.
fn own_stages(workspace: &Workspace) -> Result<HashSet<Vec<u8>>, StoreError> {
    let mut own = HashSet::new();
    // If they cannot be listed, the scan cannot see them either.
    for id in stages(&workspace.root).unwrap_or_default() {
        if workspace.store.rewind(id)?.is_some()
            || is_unclaimed(&workspace.root, id, &workspace.mark())
        {
            own.insert(stage_name(id));
        }
    }
    Ok(own)
}

/// At most this many bytes of contents have to be read again if a scan is killed.
const UNSAVED_MAX: usize = 32 << 20;

/// Makes contents durable before anything refers to them: a later scan finds them in the store.
fn save_contents(store: &mut dyn Store) -> Result<(), StoreError> {
    let head = store.head()?;
    match store.commit(head, &[]) {
        // Another process is writing: try again after the next batch.
        Ok(_) | Err(StoreError::Moved | StoreError::Busy { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
