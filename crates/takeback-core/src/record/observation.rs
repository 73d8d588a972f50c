//! An observation: what a scan or a look at some paths found, compared with the log at one position.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;

use takeback_store::{
    Change, Entry, Head, NotCapturedReason, PackedBlob, PointBasis, Seq, Store, StoreError,
    Timestamp, WorkPath,
};

use super::RecordError;
use super::count::{Amount, to_read};
use super::gaps::names_after_gap;
use super::look_path::{
    LastScan, folder_of, is_uncovered_file, is_unsaved_file, look_and_save, look_within,
};
use super::trust::{Writers, distrusted};
use crate::watch::Look;
use crate::workspace::Workspace;
use crate::worktree::budget::Budget;
use crate::worktree::fingerprint::stat;
use crate::worktree::index::{Index, KnownName};
use crate::worktree::look::as_known;
use crate::worktree::scan::{
    Extent, ObservedChange, Scan, ScanRequest, ScanStats, Unreadable, scan,
};
use crate::worktree::scope::{DistrustedRules, OWN_FOLDER, OutReason};
use crate::worktree::write::{is_unclaimed, stage_name, stages};

/// What a scan or a look found to differ from the log.
pub(super) struct Observation {
    /// The head of the log that it is compared with.
    pub(super) base: Seq,
    pub(super) found: Vec<ObservedChange>,
    /// The new index, after a scan.
    pub(super) index: Option<Index>,
    /// The stamp of the index on disk: the index is written only if this differs from the head.
    pub(super) was_stamped: Seq,
    /// Known paths that are out of scope.
    skipped: Vec<(WorkPath, OutReason)>,
    pub(super) stats: ScanStats,
    pub(super) unreadable: Vec<Unreadable>,
    /// New names in folders that were unreadable for a while, with the change that began the gap.
    pub(super) names_after_gap: HashMap<WorkPath, Change>,
    /// New names in ignored folders that are not in the log at all.
    pub(super) first_seen: HashSet<WorkPath>,
    /// What the watcher reported, if the tree is watched.
    look: Option<Look>,
}

impl Observation {
    pub(super) fn of_nothing(workspace: &Workspace) -> Result<Self, RecordError> {
        let base = workspace.store.head()?.seq;
        Ok(Self {
            base,
            found: Vec::new(),
            index: None,
            was_stamped: base,
            skipped: Vec::new(),
            stats: ScanStats::default(),
            unreadable: Vec::new(),
            names_after_gap: HashMap::new(),
            first_seen: HashSet::new(),
            look: None,
        })
    }

    /// Scans the tree. If it is watched, only what the watcher reported is read.
    pub(super) fn of_tree(
        workspace: &mut Workspace,
        budget: Budget,
        writers: Writers,
    ) -> Result<Self, RecordError> {
        match &workspace.watched {
            Some(watched) => {
                let (index, look) = watched.begin(workspace)?;
                Self::of_extent(workspace, &index, Some(look), budget, writers)
            }
            None => {
                let index = workspace.index()?;
                Self::of_extent(workspace, &index, None, budget, writers)
            }
        }
    }

    /// Scans the whole tree, whatever a watcher reported.
    pub(super) fn of_whole_tree(
        workspace: &mut Workspace,
        budget: Budget,
    ) -> Result<Self, RecordError> {
        let (index, look) = match &workspace.watched {
            Some(watched) => {
                let (index, look) = watched.begin(workspace)?;
                (index, Some(look.of_whole_tree()))
            }
            None => (workspace.index()?, None),
        };
        Self::of_extent(workspace, &index, look, budget, Writers::Live)
    }

    fn of_extent(
        workspace: &mut Workspace,
        index: &Index,
        mut look: Option<Look>,
        budget: Budget,
        writers: Writers,
    ) -> Result<Self, RecordError> {
        let Amount { files, bytes } = to_read(workspace, index)?;
        // Without an index this is the first scan. One that was killed has left contents that no change
        // refers to: they need not be packed again.
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
            extent: look.as_ref().map_or(Extent::Whole, Look::extent),
            kept: &kept,
            distrusted: &DistrustedRules::default(),
            stages: &stages,
        };
        // A scan applies rule files as they are. Only afterwards is it known which of them an agent
        // wrote, so a second scan covers the names that only those exclude.
        let mut scan = scan_into(&ask, &mut *workspace.store)?;
        let distrusted = distrusted(&*workspace.store, index, &scan, writers)?;
        if !distrusted.is_empty() {
            scan =
                scan_into(&ScanRequest { distrusted: &distrusted, ..ask }, &mut *workspace.store)?;
        }
        // A hard link that the watcher did not know: its file may have changed under a name that was not
        // scanned.
        if look.as_mut().is_some_and(|look| !look.add_links(std::mem::take(&mut scan.linked))) {
            drop(work);
            let look = look.map(Look::of_whole_tree);
            return Self::of_extent(workspace, index, look, budget, writers);
        }
        let first_seen = first_seen(&*workspace.store, &mut scan)?;
        let names_after_gap =
            names_after_gap(&*workspace.store, &workspace.opened, index, &mut scan)?;
        workspace.opened.hide(&mut scan);
        Ok(Self {
            // Not the present head: the scan was compared with the index, and `catch_up` adds what was
            // committed since.
            base: index.stamp,
            found: scan.found,
            unreadable: scan.unreadable,
            names_after_gap,
            first_seen,
            was_stamped: if scan.index_changed { Seq(u64::MAX) } else { index.stamp },
            index: Some(scan.index),
            skipped: scan.skipped,
            stats: scan.stats,
            look,
        })
    }

    /// Looks at `paths`. Files larger than `limit` are not copied, unless the store has them already.
    pub(super) fn of_paths(
        workspace: &mut Workspace,
        paths: &[WorkPath],
        limit: Option<u64>,
    ) -> Result<Self, RecordError> {
        Self::of_paths_since(&mut LastScan::default(), workspace, paths, limit)
    }

    pub(super) fn of_paths_since(
        scan: &mut LastScan<'_>,
        workspace: &mut Workspace,
        paths: &[WorkPath],
        limit: Option<u64>,
    ) -> Result<Self, RecordError> {
        let mut observation = Self::of_nothing(workspace)?;
        let latest = workspace.store.latest_of(paths)?;
        for (path, latest) in paths.iter().zip(latest) {
            // Takeback makes and removes its own folder with its stages: that is not a change.
            if path.as_bytes() == OWN_FOLDER {
                continue;
            }
            let same_file = is_unsaved_file(workspace, path, latest.as_ref(), scan)?;
            let looked = match limit {
                None if is_uncovered_file(workspace, path, latest.as_ref(), scan)? => {
                    latest.as_ref().map_or(Entry::Unknown, |change| change.after.clone())
                }
                Some(limit) => look_within(workspace, path, limit, latest.as_ref(), scan)?,
                None => look_and_save(workspace, path, latest.as_ref())?,
            };
            let looked = as_known(latest.as_ref().map(|change| &change.after), looked);
            let looked = workspace.opened.as_it_was(path, looked);
            let before = match latest {
                Some(change) => change.after,
                None => {
                    if scan.index(workspace)?.proves_absent(path) {
                        Entry::Absent
                    } else {
                        Entry::Unknown
                    }
                }
            };
            if before != looked {
                observation.found.push(ObservedChange {
                    path: path.clone(),
                    before,
                    after: looked,
                    same_file,
                });
            }
        }
        Ok(observation)
    }

    /// Paths that an edit may have overwritten before Takeback could look.
    pub(super) fn of_overwritten(
        workspace: &Workspace,
        paths: &[WorkPath],
    ) -> Result<Self, RecordError> {
        let mut observation = Self::of_nothing(workspace)?;
        let latest = workspace.store.latest_of(paths)?;
        for (path, latest) in paths.iter().zip(latest) {
            observation.found.push(ObservedChange {
                path: path.clone(),
                before: latest.map_or(Entry::Unknown, |change| change.after),
                after: Entry::NotCaptured { reason: NotCapturedReason::Deadline },
                same_file: false,
            });
        }
        Ok(observation)
    }

    /// Adds paths that a call may have overwritten before Takeback could look, unless the scan covers
    /// them.
    pub(super) fn and_overwritten(
        mut self,
        workspace: &Workspace,
        paths: &[WorkPath],
    ) -> Result<Self, RecordError> {
        let is_covered = |path: &&WorkPath| {
            self.index.as_ref().is_some_and(|index| {
                matches!(index.known(path), Some(KnownName::Entry { .. }))
                    || index.proves_absent(path)
            })
        };
        let overwritten: Vec<WorkPath> =
            paths.iter().filter(|path| !is_covered(path)).cloned().collect();
        let overwritten = Self::of_overwritten(workspace, &overwritten)?.found;
        if let Some(index) = &mut self.index {
            overwritten.iter().for_each(|observed| index.set(&observed.path, &observed.after));
        }
        self.found.extend(overwritten);
        Ok(self)
    }

    /// Looks at paths that the scan does not cover or had no time to read. They are few, and they are
    /// what the call is about.
    pub(super) fn and_paths(
        mut self,
        workspace: &mut Workspace,
        paths: &[WorkPath],
        limit: Option<u64>,
    ) -> Result<Self, RecordError> {
        let unread = Entry::NotCaptured { reason: NotCapturedReason::Deadline };
        let mut again = HashSet::new();
        self.found.retain(|observed| {
            let is_left = observed.after == unread && paths.contains(&observed.path);
            if is_left {
                again.insert(observed.path.clone());
            }
            !is_left
        });
        let seen: HashSet<&WorkPath> = self.found.iter().map(|observed| &observed.path).collect();
        let mut rest: Vec<WorkPath> =
            paths.iter().filter(|path| !seen.contains(path)).cloned().collect();
        rest.sort();
        rest.dedup();
        let mut scan = LastScan { made: self.index.as_ref(), loaded: None };
        let mut more = Self::of_paths_since(&mut scan, workspace, &rest, limit)?.found;
        // The scan saw these files change, so they are not the ones that an earlier look saw.
        more.iter_mut().for_each(|observed| observed.same_file &= !again.contains(&observed.path));
        if let Some(index) = &mut self.index {
            more.iter().for_each(|observed| index.set(&observed.path, &observed.after));
        }
        self.found.extend(more);
        Ok(self)
    }

    /// Moves the observation to a newer head of the log. Where another process recorded the same path
    /// with another result, looks again: which of the two looks was later is unknown.
    pub(super) fn catch_up(
        &mut self,
        workspace: &mut Workspace,
        head: Head,
    ) -> Result<(), RecordError> {
        if head.seq == self.base {
            return Ok(());
        }
        let others = workspace.store.changes_after(self.base)?;
        if let Some(index) = &mut self.index {
            index.catch_up(&others);
        }
        let newest: HashMap<&WorkPath, &Change> = others.iter().map(|c| (&c.path, c)).collect();
        for observed in &mut self.found {
            let Some(change) = newest.get(&observed.path) else { continue };
            observed.before = change.after.clone();
            // The same result: two processes that make the first scan at once need not repeat it.
            observed.same_file = observed.after == change.after;
            if !observed.same_file {
                let looked = look_and_save(workspace, &observed.path, Some(change))?;
                let looked = as_known(Some(&change.after), looked);
                observed.after = workspace.opened.as_it_was(&observed.path, looked);
                if let Some(index) = &mut self.index {
                    index.set(&observed.path, &observed.after);
                }
            }
        }
        self.found.retain(ObservedChange::is_a_change);
        self.base = head.seq;
        Ok(())
    }

    /// What is out of scope, by path.
    pub(super) fn skipped(&self) -> Vec<(WorkPath, OutReason)> {
        let mut skipped = self.skipped.clone();
        skipped.extend(self.index.iter().flat_map(Index::skipped));
        skipped.sort();
        skipped
    }

    /// When each change happened: the ctime of the entry. A deletion has none, and a folder's ctime moves
    /// with every name made in it.
    pub(super) fn dates(&self, workspace: &Workspace) -> Vec<Option<Timestamp>> {
        let mut last: Option<(WorkPath, OwnedFd)> = None;
        let mut date = |observed: &ObservedChange| -> Option<Timestamp> {
            if observed.after == Entry::Absent || observed.after.is_dir() {
                return None;
            }
            let parent = observed.path.ancestors().next();
            let stat = match (&last, &parent) {
                (Some((folder, fd)), Some(parent)) if folder == parent => {
                    stat(fd, observed.path.file_name())
                }
                _ => {
                    let fd = folder_of(&workspace.root, &observed.path).ok()?;
                    let seen = stat(&fd, observed.path.file_name());
                    last = parent.map(|parent| (parent, fd));
                    seen
                }
            };
            (workspace.ambient.file_time)(stat.ok()??.fingerprint.changed)
        };
        self.found.iter().map(&mut date).collect()
    }

    /// Whether a point made now rests on a scan or on a watcher.
    pub(super) fn basis(&self) -> PointBasis {
        match &self.look {
            Some(look) if !look.is_whole() => PointBasis::Watch,
            _ => PointBasis::Scan,
        }
    }

    /// Saves the index, now that the log has what it shows.
    pub(super) fn save_index(self, workspace: &Workspace, head: Head) {
        let Some(mut index) = self.index else { return };
        index.stamp = head.seq;
        if self.was_stamped != head.seq {
            // Only a cache: without it the next scan takes longer, and reports a full disk.
            drop(index.save(&workspace.index_file()));
        }
        match (&workspace.watched, self.look) {
            (Some(watched), Some(look)) => {
                watched.settle(&workspace.root, look, index, &self.found);
            }
            _ => workspace.keep_index(index),
        }
    }
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
