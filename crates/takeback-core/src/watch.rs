//! Watches a tree, so that a scan reads only folders in which something happened.
//!
//! An optimisation that is never trusted alone, because the kernel does not report everything: stores
//! through a memory map are reported only when the map is closed, and a write to a file with several
//! names only for the name that was used. So the whole tree is scanned when watching begins, when events
//! were lost (queue overflow, root moved, no more watches available), when a file with several names
//! appears, at least every [`Trust::WithScans`], and for every `status`, `diff` and rewind. In between, a
//! point may rest on the watcher alone and says so ([`takeback_store::PointBasis`]). This is safe around
//! shell calls too: a memory map is closed when the command that made it ends.
//!
//! A new folder is watched after a scan found it, and is scanned again: events between the scan and the
//! start of the watch are not reported.
//!
//! What has to be scanned is cleared only by a commit: after a failed scan everything is scanned again.

mod watcher;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use takeback_store::{Entry, Store, StoreError, Timestamp, WorkPath};

pub use self::watcher::{DirtyFolders, ScanCause, WatchOutcome, Watcher};
use crate::workspace::Workspace;
use crate::worktree::Root;
use crate::worktree::fingerprint::Fingerprint;
use crate::worktree::index::{Index, KnownName, folder_of};
use crate::worktree::scan::{Extent, ObservedChange};

/// How far the watcher is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Until events are lost, and no longer than this after a full scan.
    #[expect(missing_docs, reason = "the names say what the fields are")]
    WithScans { every: Duration },
    /// Always. For tests that show what this would miss.
    Blindly,
}

/// The default maximum age of the last full scan.
pub const EVERY: Duration = Duration::from_secs(300);

/// A watched tree, shared by all handles on its workspace in this process.
#[derive(Debug)]
pub struct TreeWatch {
    trust: Trust,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// None: not watching.
    watcher: Option<Watcher>,
    /// What has to be scanned.
    dirty: DirtyFolders,
    /// As of the last committed scan.
    index: Option<Index>,
    /// Files with several names. The kernel reports a write only for the name that was used, and not at
    /// all if that name is outside the tree, so these files are looked at each time.
    linked: BTreeSet<WorkPath>,
    /// Files whose bytes are still to be saved.
    unsaved: BTreeSet<WorkPath>,
    /// How many scans were begun.
    scans: u64,
    /// When the last full scan began.
    whole: Option<Timestamp>,
    /// A scan since then relied on the watcher.
    relied_on_watcher: bool,
    /// Watching failed; it is tried again when the next full scan is due.
    given_up: bool,
}

/// A scan of a watched tree, in progress.
#[derive(Debug)]
pub(crate) struct WatchedScan {
    number: u64,
    at: Timestamp,
    /// What it has to read.
    dirty: DirtyFolders,
    /// Files with several names.
    linked: BTreeSet<WorkPath>,
}

impl WatchedScan {
    pub(crate) fn extent(&self) -> Extent<'_> {
        match &self.dirty {
            DirtyFolders::Everything(_) => Extent::Whole,
            DirtyFolders::Folders(folders) => Extent::Folders(folders),
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.dirty, DirtyFolders::Everything(_))
    }

    /// Adds files that were found to have several names. `false`: some are new and not all names were
    /// scanned, so one may have been changed under another name.
    pub(crate) fn add_links(&mut self, seen: Vec<WorkPath>) -> bool {
        let is_new = |path: &WorkPath| !self.linked.contains(path);
        if !self.is_whole() && seen.iter().any(is_new) {
            return false;
        }
        match &self.dirty {
            DirtyFolders::Everything(_) => self.linked.clear(),
            DirtyFolders::Folders(folders) => {
                self.linked.retain(|path| !folders.contains(folder_of(path)));
            }
        }
        self.linked.extend(seen);
        true
    }

    /// The same, as a full scan.
    pub(crate) fn of_whole_tree(self) -> Self {
        Self { dirty: DirtyFolders::Everything(ScanCause::Asked), ..self }
    }
}

/// Whether the watcher is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchStatus {
    /// The next scan reads only folders in which something happened; this many are watched.
    #[expect(missing_docs, reason = "the names say what the fields are")]
    Watching { folders: usize },
    /// The next scan reads everything.
    Scanning(ScanCause),
}

impl TreeWatch {
    /// A watch of nothing yet: the first scan reads the whole tree.
    #[must_use]
    pub fn new(trust: Trust) -> Self {
        let dirty = match trust {
            Trust::WithScans { .. } => DirtyFolders::Everything(ScanCause::Start),
            Trust::Blindly => DirtyFolders::Folders(BTreeSet::new()),
        };
        Self {
            trust,
            state: Mutex::new(State {
                watcher: None,
                dirty,
                index: None,
                linked: BTreeSet::new(),
                unsaved: BTreeSet::new(),
                scans: 0,
                whole: None,
                relied_on_watcher: false,
                given_up: false,
            }),
        }
    }

    /// What the next scan will read.
    #[must_use]
    pub fn status(&self) -> WatchStatus {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match (&state.watcher, &state.dirty) {
            (_, DirtyFolders::Everything(why)) => WatchStatus::Scanning(*why),
            (None, _) => WatchStatus::Scanning(ScanCause::Start),
            (Some(watcher), _) => WatchStatus::Watching { folders: watcher.folders().count() },
        }
    }

    /// Whether an idle process should scan the whole tree: that is due soon, and scans have relied on the
    /// watcher.
    #[must_use]
    pub fn is_nearly_due(&self, now: Timestamp) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match self.trust {
            Trust::WithScans { every } => {
                state.relied_on_watcher && state.is_due(now, every / 5 * 4)
            }
            Trust::Blindly => false,
        }
    }

    /// Begins a scan: the index, and what has to be read to bring it up to date. Events from here on
    /// belong to the next scan.
    pub(crate) fn begin(&self, workspace: &Workspace) -> Result<(Index, WatchedScan), StoreError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let at = (workspace.ambient.now)();
        let index = match state.index.clone() {
            Some(index) => caught_up(index, &*workspace.store)?,
            None => None,
        };
        state.scans += 1;
        state.read_events(self.trust, at, &workspace.root);
        let index = match index {
            Some(index) => index,
            None => {
                if self.trust != Trust::Blindly && !state.given_up {
                    state.dirty = DirtyFolders::Everything(ScanCause::Start);
                }
                Index::load(&workspace.index_file(), &*workspace.store)?
            }
        };
        state.begin_to_watch(&workspace.root, &index);
        let mut dirty = state.dirty.clone();
        if let DirtyFolders::Folders(folders) = &mut dirty {
            folders.extend(state.linked.iter().map(|path| folder_of(path).to_vec()));
        }
        Ok((index, WatchedScan { number: state.scans, at, dirty, linked: state.linked.clone() }))
    }

    /// Ends a scan whose changes `found` are in the log now; `index` is the result.
    pub(crate) fn settle(
        &self,
        root: &Root,
        scan: WatchedScan,
        index: Index,
        found: &[ObservedChange],
    ) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A scan that began later covers everything that this one did, and more.
        if scan.number != state.scans {
            return;
        }
        let mut again = state.watch_found_folders(root, &scan, &index, found);
        if self.trust == Trust::Blindly {
            again.clear();
        }
        state.remember(index, found);
        again.extend(state.unsaved.iter().map(|path| folder_of(path).to_vec()));
        if !state.given_up {
            state.dirty = DirtyFolders::Folders(again);
        }
        if scan.is_whole() {
            state.whole = Some(scan.at);
        }
        state.relied_on_watcher = !scan.is_whole();
        state.linked = scan.linked;
    }
}

/// The index with what other processes appended to the log since. None: the log is another one.
fn caught_up(mut index: Index, store: &dyn Store) -> Result<Option<Index>, StoreError> {
    let head = store.head()?.seq;
    if index.stamp > head {
        return Ok(None);
    }
    if index.stamp < head {
        index.catch_up(&store.changes_after(index.stamp)?);
    }
    Ok(Some(index))
}

impl State {
    /// Reads the queued events.
    fn read_events(&mut self, trust: Trust, now: Timestamp, root: &Root) {
        let reported = match &mut self.watcher {
            Some(watcher) => watcher.drain(),
            None => DirtyFolders::Folders(BTreeSet::new()),
        };
        match (reported, &mut self.dirty) {
            (DirtyFolders::Everything(_), _) if trust == Trust::Blindly => {}
            (DirtyFolders::Everything(why), dirty) => *dirty = DirtyFolders::Everything(why),
            (DirtyFolders::Folders(reported), DirtyFolders::Folders(dirty)) => {
                dirty.extend(reported);
            }
            (DirtyFolders::Folders(_), DirtyFolders::Everything(_)) => {}
        }
        let Trust::WithScans { every } = trust else { return };
        let due = self.is_due(now, every);
        if due && let DirtyFolders::Folders(_) = self.dirty {
            self.dirty = DirtyFolders::Everything(ScanCause::Due);
        }
        if due {
            self.given_up = false;
        }
        if !root.folder_times {
            self.give_up(ScanCause::Remote);
        }
    }

    /// Whether the last full scan is at least this old.
    fn is_due(&self, now: Timestamp, every: Duration) -> bool {
        self.whole.is_none_or(|whole| {
            let since = now.0.checked_sub(whole.0).and_then(|since| u64::try_from(since).ok());
            since.is_none_or(|since| Duration::from_millis(since) >= every)
        })
    }

    /// Watches every known folder before it is scanned.
    fn begin_to_watch(&mut self, root: &Root, index: &Index) {
        let blind = matches!(&self.dirty, DirtyFolders::Everything(why) if why.is_blind());
        if self.given_up || (self.watcher.is_some() && !blind) {
            return;
        }
        let watch_all = || -> Result<Watcher, ScanCause> {
            let mut watcher = Watcher::new(root)?;
            // Parents first: a folder that moves while this runs is then reported by its parent.
            for (path, about) in FolderIdentity::folders(index) {
                ensure_watched(&mut watcher, root, &path, about)?;
            }
            Ok(watcher)
        };
        match watch_all() {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(why) => self.give_up(why),
        }
    }

    /// Stops watching until the next full scan is due.
    fn give_up(&mut self, why: ScanCause) {
        self.watcher = None;
        self.dirty = DirtyFolders::Everything(why);
        self.given_up = true;
    }

    fn remember(&mut self, mut index: Index, found: &[ObservedChange]) {
        let is_unsaved = |entry: &Entry| matches!(entry, Entry::NotCaptured { reason } if reason.may_be_captured_later());
        let unsaved = found.iter().filter(|observed| is_unsaved(&observed.after));
        self.unsaved.extend(unsaved.map(|observed| observed.path.clone()));
        self.unsaved.retain(|path| {
            let known = index.known(path);
            matches!(known, Some(KnownName::Entry { entry, .. }) if is_unsaved(&entry))
        });
        if index.is_loose() {
            index.compact();
        }
        self.index = Some(index);
    }

    /// Watches folders that the scan found and that are not watched yet. Returns these: something may
    /// have happened in them between the scan and now.
    fn watch_found_folders(
        &mut self,
        root: &Root,
        scan: &WatchedScan,
        index: &Index,
        found: &[ObservedChange],
    ) -> BTreeSet<Vec<u8>> {
        let mut again = BTreeSet::new();
        let Some(watcher) = &mut self.watcher else { return again };
        let seen: BTreeMap<Vec<u8>, FolderIdentity> = match &scan.dirty {
            DirtyFolders::Everything(_) => {
                let seen = FolderIdentity::folders(index);
                let watched: Vec<Vec<u8>> = watcher.folders().map(<[u8]>::to_vec).collect();
                let gone = watched.iter().filter(|path| !seen.contains_key(*path));
                gone.for_each(|path| watcher.forget(path));
                seen
            }
            DirtyFolders::Folders(folders) => {
                let new = found.iter().filter(|observed| observed.after.is_dir());
                let new = new.map(|observed| observed.path.as_bytes());
                let mut seen = BTreeMap::new();
                for path in folders.iter().map(Vec::as_slice).chain(new) {
                    match FolderIdentity::folder(index, path) {
                        Some(about) => drop(seen.insert(path.to_vec(), about)),
                        None => watcher.forget(path),
                    }
                }
                seen
            }
        };
        for (path, about) in seen {
            match ensure_watched(watcher, root, &path, about) {
                Ok(WatchOutcome::Before) => {}
                Ok(_) => {
                    again.insert(path);
                }
                Err(why) => {
                    self.give_up(why);
                    return again;
                }
            }
        }
        again
    }
}

/// What identifies a folder of the index to the watcher.
#[derive(Debug, Clone, Copy)]
struct FolderIdentity {
    repository: bool,
    inode: Option<u64>,
}

impl FolderIdentity {
    fn new(repository: bool, fingerprint: Option<Fingerprint>) -> Self {
        Self { repository, inode: fingerprint.map(|fingerprint| fingerprint.inode) }
    }

    fn folder(index: &Index, path: &[u8]) -> Option<Self> {
        let folder = index.folder(path)?;
        Some(Self::new(folder.repository, folder.fingerprint))
    }

    /// All folders, by path.
    fn folders(index: &Index) -> BTreeMap<Vec<u8>, Self> {
        let blocks = index.base().into_iter().flat_map(|base| base.blocks());
        let base = blocks.filter(|block| !index.is_over(block.path)).map(|block| {
            (block.path.to_vec(), Self::new(block.is_repository(), block.fingerprint))
        });
        let over = index.over().map(|(path, folder)| {
            (path.to_vec(), Self::new(folder.repository, folder.fingerprint))
        });
        base.chain(over).collect()
    }
}

/// Watches a folder, unless this very folder is already watched.
fn ensure_watched(
    watcher: &mut Watcher,
    root: &Root,
    path: &[u8],
    about: FolderIdentity,
) -> Result<WatchOutcome, ScanCause> {
    if about.repository {
        watcher.watch_own_rules(root, path)?;
    }
    if watcher.watches(path, about.inode) {
        return Ok(WatchOutcome::Before);
    }
    watcher.watch(root, path)
}
