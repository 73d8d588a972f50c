//! An observation: what a scan or a look at some paths found, compared with the log at one position.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;

use takeback_store::{Change, Entry, Head, PointBasis, Seq, Timestamp, WorkPath};

use super::RecordError;
use super::observe::look_and_save;
use crate::watch::WatchedScan;
use crate::workspace::Workspace;
use crate::worktree::fingerprint::stat;
use crate::worktree::index::Index;
use crate::worktree::look::{as_known, open_parent};
use crate::worktree::scan::{ObservedChange, ScanStats, Unreadable};
use crate::worktree::scope::OutReason;

/// What a scan or a look found to differ from the log.
pub(super) struct Observation {
    /// The head of the log that it is compared with.
    pub(super) base: Seq,
    pub(super) found: Vec<ObservedChange>,
    /// The new index, after a scan.
    pub(super) index: Option<Index>,
    /// The stamp of the index on disk, if its contents are those of `index`.
    pub(super) index_on_disk: Option<Seq>,
    /// Known paths that are out of scope.
    pub(super) skipped: Vec<(WorkPath, OutReason)>,
    pub(super) stats: ScanStats,
    pub(super) unreadable: Vec<Unreadable>,
    /// New names in folders that were unreadable for a while, with the change that began the gap.
    pub(super) names_after_gap: HashMap<WorkPath, Change>,
    /// New names in ignored folders that are not in the log at all.
    pub(super) first_seen: HashSet<WorkPath>,
    /// The scan, if the tree is watched.
    pub(super) watched: Option<WatchedScan>,
}

impl Observation {
    /// Nothing differs from the log at its present head.
    pub(super) fn of_nothing(workspace: &Workspace) -> Result<Self, RecordError> {
        Ok(Self {
            base: workspace.store.head()?.seq,
            found: Vec::new(),
            index: None,
            index_on_disk: None,
            skipped: Vec::new(),
            stats: ScanStats::default(),
            unreadable: Vec::new(),
            names_after_gap: HashMap::new(),
            first_seen: HashSet::new(),
            watched: None,
        })
    }

    /// Whether the tree was scanned, not only named paths.
    pub(super) fn is_scan(&self) -> bool {
        self.index.is_some()
    }

    pub(super) fn extend(&mut self, more: Vec<ObservedChange>) {
        if let Some(index) = &mut self.index {
            more.iter().for_each(|observed| index.set(&observed.path, &observed.after));
        }
        self.found.extend(more);
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
    /// with every name made in it. Entries that `is_asked` passes over have none either: a date costs a
    /// stat.
    pub(super) fn dates(
        &self,
        workspace: &Workspace,
        is_asked: impl Fn(&ObservedChange) -> bool,
    ) -> Vec<Option<Timestamp>> {
        let mut last: Option<(WorkPath, OwnedFd)> = None;
        let mut date = |observed: &ObservedChange| -> Option<Timestamp> {
            let is_absent = observed.after == Entry::Absent;
            if is_absent || observed.after.is_dir() || !is_asked(observed) {
                return None;
            }
            let parent = observed.path.ancestors().next();
            let stat = match (&last, &parent) {
                (Some((folder, fd)), Some(parent)) if folder == parent => {
                    stat(fd, observed.path.file_name())
                }
                _ => {
                    let fd = open_parent(&workspace.root, &observed.path).ok()?;
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
        match &self.watched {
            Some(scan) if !scan.is_whole() => PointBasis::Watch,
            _ => PointBasis::Scan,
        }
    }

    /// Saves the index, now that the log has what it shows.
    pub(super) fn save_index(self, workspace: &Workspace, head: Head) {
        let Some(mut index) = self.index else { return };
        index.stamp = head.seq;
        if self.index_on_disk != Some(head.seq) {
            // Only a cache: without it the next scan takes longer, and reports a full disk.
            drop(index.save(&workspace.index_file()));
        }
        match (&workspace.watched, self.watched) {
            (Some(watch), Some(scan)) => {
                watch.settle(&workspace.root, scan, index, &self.found);
            }
            _ => workspace.keep_index(index),
        }
    }
}
