//! What was seen: a look at the whole tree or at some paths, against a moment of the log.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::path::Path;

use takeback_store::{
    Change, Entry, Head, Lack, PackedBlob, Seq, Store, StoreError, Timestamp, Vouched, WorkPath,
};

use super::count::{Amount, to_read};
use super::trust::{Writers, distrusted};
use super::{RecordError, unseen};
use crate::watch::Look;
use crate::workspace::Workspace;
use crate::worktree::Root;
use crate::worktree::budget::Budget;
use crate::worktree::fingerprint::stat;
use crate::worktree::index::{Index, Known};
use crate::worktree::look::{Bytes, Looked, as_known, look};
use crate::worktree::root::is_no_folder;
use crate::worktree::scan::{Ask, Extent, Observed, Scan, ScanStats, Unreadable, scan};
use crate::worktree::scope::{Distrusted, OWN_FOLDER, OutReason, is_stage};
use crate::worktree::write::{is_nobodys, stage_name, stages};

/// What a look at the tree or at some paths showed, against a moment of the log.
pub(super) struct Sight {
    /// The log as it was when the look began.
    pub(super) base: Seq,
    pub(super) found: Vec<Observed>,
    /// After a scan of the whole tree.
    pub(super) index: Option<Index>,
    /// The index that was read from disk, to tell whether it must be written.
    pub(super) was_stamped: Seq,
    /// Not covered although it is known.
    skipped: Vec<(WorkPath, OutReason)>,
    pub(super) stats: ScanStats,
    pub(super) unreadable: Vec<Unreadable>,
    /// New names in folders that could not be read for a while, with the change that tells since when.
    pub(super) surfaced: HashMap<WorkPath, Change>,
    /// New names in ignored folders that the log has never had.
    pub(super) first_seen: HashSet<WorkPath>,
    /// Where the tree is watched.
    look: Option<Look>,
}

impl Sight {
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
            surfaced: HashMap::new(),
            first_seen: HashSet::new(),
            look: None,
        })
    }

    /// The tree as it is now. Where it is watched, only that is looked at of which the watcher tells.
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

    /// The tree as it is now, all of it looked at, whatever a watcher tells.
    pub(super) fn of_whole_tree(
        workspace: &mut Workspace,
        budget: Budget,
    ) -> Result<Self, RecordError> {
        let (index, look) = match &workspace.watched {
            Some(watched) => {
                let (index, look) = watched.begin(workspace)?;
                (index, Some(look.at_everything()))
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
        let kept = match index.least_folders() {
            0 => workspace.store.unnamed()?.digests,
            _ => HashSet::new(),
        };
        let stages = own_stages(workspace)?;
        let work = workspace.ambient.begin_reading(files, bytes);
        let ask = Ask {
            root: &workspace.root,
            before: index,
            options: &workspace.scope,
            threads: workspace.limits.threads(),
            budget,
            counter: work.counter(),
            extent: look.as_ref().map_or(Extent::Whole, Look::extent),
            kept: &kept,
            distrusted: &Distrusted::default(),
            stages: &stages,
        };
        let mut scan = scan_into(&ask, &mut *workspace.store)?;
        let distrusted = distrusted(&*workspace.store, index, &scan, writers)?;
        if !distrusted.is_empty() {
            scan = scan_into(&Ask { distrusted: &distrusted, ..ask }, &mut *workspace.store)?;
        }
        if look.as_mut().is_some_and(|look| !look.takes_links(std::mem::take(&mut scan.linked))) {
            drop(work);
            let look = look.map(Look::at_everything);
            return Self::of_extent(workspace, index, look, budget, writers);
        }
        let first_seen = first_seen(&*workspace.store, &mut scan)?;
        let surfaced = unseen::surfaced(&*workspace.store, &workspace.opened, index, &mut scan)?;
        workspace.opened.hide(&mut scan);
        Ok(Self {
            base: index.stamp,
            found: scan.found,
            unreadable: scan.unreadable,
            surfaced,
            first_seen,
            was_stamped: if scan.index_changed { Seq(u64::MAX) } else { index.stamp },
            index: Some(scan.index),
            skipped: scan.skipped,
            stats: scan.stats,
            look,
        })
    }

    /// `limit`: larger files are not copied, unless the store has them already.
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
        let mut sight = Self::of_nothing(workspace)?;
        let latest = workspace.store.latest_of(paths)?;
        for (path, latest) in paths.iter().zip(latest) {
            // Takeback's own folder comes and goes with its stages: it counts as no change.
            if path.as_bytes() == OWN_FOLDER {
                continue;
            }
            let same_file = is_the_unkept_file(workspace, path, latest.as_ref(), scan)?;
            let looked = match limit {
                None if is_passed_over(workspace, path, latest.as_ref(), scan)? => {
                    latest.as_ref().map_or(Entry::Unknown, |change| change.after.clone())
                }
                Some(limit) => look_within(workspace, path, limit, latest.as_ref(), scan)?,
                None => look_here(workspace, path, latest.as_ref())?,
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
                sight.found.push(Observed { path: path.clone(), before, after: looked, same_file });
            }
        }
        Ok(sight)
    }

    /// What an edit overwrote before anybody could look.
    pub(super) fn of_missed(
        workspace: &Workspace,
        paths: &[WorkPath],
    ) -> Result<Self, RecordError> {
        let mut sight = Self::of_nothing(workspace)?;
        let latest = workspace.store.latest_of(paths)?;
        for (path, latest) in paths.iter().zip(latest) {
            sight.found.push(Observed {
                path: path.clone(),
                before: latest.map_or(Entry::Unknown, |change| change.after),
                after: Entry::NotCaptured { lack: Lack::Deadline },
                same_file: false,
            });
        }
        Ok(sight)
    }

    /// Also tells of paths that a call named before anybody could look, unless the scan covers them.
    pub(super) fn and_missed(
        mut self,
        workspace: &Workspace,
        paths: &[WorkPath],
    ) -> Result<Self, RecordError> {
        let is_covered = |path: &&WorkPath| {
            self.index.as_ref().is_some_and(|index| {
                matches!(index.known(path), Some(Known::Entry { .. })) || index.proves_absent(path)
            })
        };
        let missed: Vec<WorkPath> =
            paths.iter().filter(|path| !is_covered(path)).cloned().collect();
        let missed = Self::of_missed(workspace, &missed)?.found;
        if let Some(index) = &mut self.index {
            missed.iter().for_each(|observed| index.set(&observed.path, &observed.after));
        }
        self.found.extend(missed);
        Ok(self)
    }

    /// Also looks at paths that a scan may pass over, or had no time to read: there are few of them,
    /// and they are what a call is about.
    pub(super) fn and_paths(
        mut self,
        workspace: &mut Workspace,
        paths: &[WorkPath],
        limit: Option<u64>,
    ) -> Result<Self, RecordError> {
        let unread = Entry::NotCaptured { lack: Lack::Deadline };
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
        // What the scan found to differ is not what was seen before it.
        more.iter_mut().for_each(|observed| observed.same_file &= !again.contains(&observed.path));
        if let Some(index) = &mut self.index {
            more.iter().for_each(|observed| index.set(&observed.path, &observed.after));
        }
        self.found.extend(more);
        Ok(self)
    }

    /// Moves the sight on to what others appended meanwhile: a path that both saw, and not alike, is
    /// looked at again, since only now is it certain which look came last.
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
            // As the other one saw it: a first scan that two make at once is not made again.
            observed.same_file = observed.after == change.after;
            if !observed.same_file {
                let looked = look_here(workspace, &observed.path, Some(change))?;
                let looked = as_known(Some(&change.after), looked);
                observed.after = workspace.opened.as_it_was(&observed.path, looked);
                if let Some(index) = &mut self.index {
                    index.set(&observed.path, &observed.after);
                }
            }
        }
        self.found.retain(Observed::is_a_change);
        self.base = head.seq;
        Ok(())
    }

    /// What is not covered, by path.
    pub(super) fn skipped(&self) -> Vec<(WorkPath, OutReason)> {
        let mut skipped = self.skipped.clone();
        skipped.extend(self.index.iter().flat_map(Index::skipped));
        skipped.sort();
        skipped
    }

    /// When each of the changes that were found happened, by the change time of what is there now.
    /// Deletions have none, and a folder's moves with whatever is made in it.
    pub(super) fn dates(&self, workspace: &Workspace) -> Vec<Option<Timestamp>> {
        let mut last: Option<(WorkPath, OwnedFd)> = None;
        let mut date = |observed: &Observed| -> Option<Timestamp> {
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

    /// On whose word the tree is as it was seen.
    pub(super) fn vouched(&self) -> Vouched {
        match &self.look {
            Some(look) if !look.is_whole() => Vouched::Watch,
            _ => Vouched::Scan,
        }
    }

    /// Caches the index, now that the log holds what it shows.
    pub(super) fn save_index(self, workspace: &Workspace, head: Head) {
        let Some(mut index) = self.index else { return };
        index.stamp = head.seq;
        if self.was_stamped != head.seq {
            // Only a cache: without it the next scan takes longer, and says so if the disk is full.
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

/// Of the new names in ignored folders, those that the log has never had. The others are what they are
/// elsewhere: they were gone, and came again.
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

/// Scans, and keeps what it reads.
fn scan_into(ask: &Ask<'_>, store: &mut dyn Store) -> Result<Scan, RecordError> {
    let mut failed = None;
    let mut unsaved = 0;
    let mut keep = |blob: PackedBlob| {
        if failed.is_some() {
            return;
        }
        unsaved += blob.bytes.len();
        let kept = store.put(blob).and_then(|()| {
            if unsaved < SAVED_TOGETHER {
                return Ok(());
            }
            unsaved = 0;
            save_contents(store)
        });
        failed = kept.err();
    };
    let scan = scan(ask, &mut keep)?;
    failed.map_or(Ok(scan), |error| Err(error.into()))
}

/// The stages in Takeback's own folder that this store made, by name.
fn own_stages(workspace: &Workspace) -> Result<HashSet<Vec<u8>>, StoreError> {
    let mut own = HashSet::new();
    // Where they cannot be listed, a scan does not see them either.
    for id in stages(&workspace.root).unwrap_or_default() {
        if workspace.store.rewind(id)?.is_some()
            || is_nobodys(&workspace.root, id, &workspace.mark())
        {
            own.insert(stage_name(id));
        }
    }
    Ok(own)
}

/// So many bytes of contents are lost at most if a scan is cut off.
const SAVED_TOGETHER: usize = 32 << 20;

/// Makes durable what has been put, though nothing names it yet: whoever looks again finds it.
fn save_contents(store: &mut dyn Store) -> Result<(), StoreError> {
    let head = store.head()?;
    match store.commit(head, &[]) {
        // Somebody else is writing: the next time, then.
        Ok(_) | Err(StoreError::Moved | StoreError::Busy { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// What the last scan saw: the one just made, or the one on disk, read when it is first needed.
#[derive(Default)]
pub(super) struct LastScan<'a> {
    pub(super) made: Option<&'a Index>,
    pub(super) loaded: Option<Index>,
}

impl LastScan<'_> {
    pub(super) fn index(&mut self, workspace: &Workspace) -> Result<&Index, StoreError> {
        match self.made {
            Some(index) => Ok(index),
            None => Ok(match self.loaded.take() {
                Some(index) => self.loaded.insert(index),
                None => {
                    self.loaded.insert(Index::load(&workspace.index_file(), &*workspace.store)?)
                }
            }),
        }
    }
}

/// Whether a path has the very file whose bytes could not be kept when it was seen last.
fn is_the_unkept_file(
    workspace: &Workspace,
    path: &WorkPath,
    latest: Option<&Change>,
    scan: &mut LastScan<'_>,
) -> Result<bool, RecordError> {
    let unkept = latest.is_some_and(
        |change| matches!(change.after, Entry::NotCaptured { lack } if lack.may_be_kept_later()),
    );
    if !unkept {
        return Ok(false);
    }
    let Some(Known::Entry { fingerprint: Some(known), .. }) = scan.index(workspace)?.known(path)
    else {
        return Ok(false);
    };
    let seen = folder_of(&workspace.root, path).and_then(|folder| stat(folder, path.file_name()));
    Ok(seen.is_ok_and(|seen| seen.is_some_and(|seen| seen.fingerprint == known)))
}

/// Whether a path has a file that is not covered, of which the log knows only that it changed: that is
/// not read because a rewind asks for it.
fn is_passed_over(
    workspace: &Workspace,
    path: &WorkPath,
    latest: Option<&Change>,
    scan: &mut LastScan<'_>,
) -> Result<bool, RecordError> {
    let uncovered = Entry::NotCaptured { lack: Lack::TooLarge };
    if latest.is_none_or(|change| change.after != uncovered) {
        return Ok(false);
    }
    let is_skipped = scan.index(workspace)?.known(path).is_some_and(|known| known.is_skipped());
    let seen = folder_of(&workspace.root, path).and_then(|folder| stat(folder, path.file_name()));
    Ok(is_skipped && seen.is_ok_and(|seen| seen.is_some()))
}

/// Looks at a path and keeps its bytes, whatever their size.
pub(super) fn look_here(
    workspace: &mut Workspace,
    path: &WorkPath,
    latest: Option<&Change>,
) -> Result<Entry, RecordError> {
    let known = latest.and_then(|change| change.after.digest());
    let store = &mut workspace.store;
    let mut failed = None;
    let mut keep = |blob: PackedBlob| {
        if failed.is_none() {
            failed = store.put(blob).err();
        }
    };
    let bytes = Bytes::KeepQuickly { known, sink: &mut keep };
    let looked = look_in_tree(&workspace.root, path, bytes);
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(looked.entry),
    }
}

/// As [`look_here`], but a file above `limit` is only checked against the last scan.
pub(super) fn look_within(
    workspace: &mut Workspace,
    path: &WorkPath,
    limit: u64,
    latest: Option<&Change>,
    scan: &mut LastScan<'_>,
) -> Result<Entry, RecordError> {
    // What cannot be looked at is told by the look that follows.
    let seen = folder_of(&workspace.root, path).and_then(|folder| stat(folder, path.file_name()));
    let seen = seen.unwrap_or(None);
    let large = seen.filter(|seen| {
        seen.kind == rustix::fs::FileType::RegularFile && seen.fingerprint.size > limit
    });
    let Some(seen) = large else { return look_here(workspace, path, latest) };
    let known = match scan.index(workspace)?.known(path) {
        Some(Known::Entry { entry, fingerprint: Some(fingerprint), .. }) => {
            Some((entry, fingerprint))
        }
        _ => None,
    };
    let kept = latest.and_then(|change| match change.after {
        Entry::File { digest, size, .. } if size == seen.fingerprint.size => Some(digest),
        _ => None,
    });
    match (known, kept) {
        (Some((entry, fingerprint)), _) if fingerprint == seen.fingerprint => Ok(entry),
        // Its bytes were kept after the last scan: only reading it tells whether it still has them.
        (None, Some(kept)) => {
            let looked = look_in_tree(&workspace.root, path, Bytes::Hash).entry;
            let same = looked.digest() == Some(kept);
            Ok(if same { looked } else { Entry::NotCaptured { lack: Lack::TooLarge } })
        }
        _ => Ok(Entry::NotCaptured { lack: Lack::TooLarge }),
    }
}

/// Looks at a path inside or outside the workspace. What cannot be looked at is an entry too.
fn look_in_tree(root: &Root, path: &WorkPath, mut bytes: Bytes<'_>) -> Looked {
    let looked = match folder_of(root, path) {
        Ok(folder) => look(folder, path.file_name(), &mut bytes),
        // No such folder, or a link or file in its place: nothing stands at this path.
        Err(error) if is_no_folder(&error) => {
            Ok(Looked { entry: Entry::Absent, fingerprint: None })
        }
        Err(error) => Err(error),
    };
    let mut looked = looked.unwrap_or(Looked {
        entry: Entry::NotCaptured { lack: Lack::Unreadable },
        fingerprint: None,
    });
    if is_stage(path.as_bytes()) && looked.entry != Entry::Absent {
        looked.entry = Entry::NotCaptured { lack: Lack::Reserved };
    }
    looked
}

fn folder_of(root: &Root, path: &WorkPath) -> std::io::Result<OwnedFd> {
    if path.is_outside() {
        use std::os::unix::ffi::OsStrExt as _;
        let path = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
        let folder = Root::open(path.parent().unwrap_or(path))?;
        return folder.folder(b"", crate::worktree::root::Access::Reach);
    }
    root.parent_of(path)
}
