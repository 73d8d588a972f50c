//! A tree that is watched, so that a snapshot looks only where something happened.
//!
//! An accelerator, never trusted blindly. The kernel does not tell of everything: of stores through a
//! memory map it tells when the map goes, and what is done to a file under one of its names it tells of
//! that name. So the whole tree is looked at when watching begins, whenever something was lost (more
//! happened than the kernel keeps, the root moved, no more watches to be had), whenever a file with
//! several names turns up, at least every [`Trust::WithScans`], and whenever somebody asks what there
//! is (`status`, `diff`) or goes back. Between these a snapshot may be made on the watcher's word,
//! whatever the event it is for, and its point says so ([`takeback_store::PointBasis`]). Around shell
//! calls, too: a map that a command made goes with the command.
//!
//! A folder is watched once somebody has looked into it, and is looked at again after that: what
//! happened in between nobody told.
//!
//! What is known is kept from one snapshot to the next, and goes only with a commit: a look that
//! failed leaves everything to be looked at again.

pub mod watcher;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use takeback_store::{Entry, Store, StoreError, Timestamp, WorkPath};

pub use self::watcher::{Begun, Dirty, Watcher, Why};
use crate::workspace::Workspace;
use crate::worktree::Root;
use crate::worktree::fingerprint::Fingerprint;
use crate::worktree::index::{Index, Known, folder_of};
use crate::worktree::scan::{Extent, ObservedChange};

/// How far the watcher is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Until something was lost, and no longer than this after a look at the whole tree.
    WithScans { every: Duration },
    /// Always. For tests that show what is lost with it.
    Blindly,
}

/// How old the last look at the whole tree may be, unless somebody says otherwise.
pub const EVERY: Duration = Duration::from_secs(300);

/// One tree under watch, for as many handles on its workspace as there are in this process.
#[derive(Debug)]
pub struct Watched {
    trust: Trust,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// None: nobody watches.
    watcher: Option<Watcher>,
    /// What is to be looked at before the tree is known.
    dirty: Dirty,
    /// As of the last look that was committed.
    index: Option<Index>,
    /// Files that have several names: what is done under one of them is told nowhere else, and not at
    /// all if that is outside of the tree. They are looked at each time.
    linked: BTreeSet<WorkPath>,
    /// Files whose bytes are still wanted.
    unkept: BTreeSet<WorkPath>,
    /// How many looks were begun.
    looks: u64,
    /// When the last look at the whole tree began.
    whole: Option<Timestamp>,
    /// Something was recorded on the watcher's word since then.
    on_its_word: bool,
    /// Nobody can watch; it is tried again when the next look at the whole tree is due.
    given_up: bool,
}

/// A look at the tree, as it began.
#[derive(Debug)]
pub(crate) struct Look {
    number: u64,
    at: Timestamp,
    /// What has to be looked at.
    dirty: Dirty,
    /// Files that have several names.
    linked: BTreeSet<WorkPath>,
}

impl Look {
    pub(crate) fn extent(&self) -> Extent<'_> {
        match &self.dirty {
            Dirty::Everything(_) => Extent::Whole,
            Dirty::Folders(folders) => Extent::Folders(folders),
        }
    }

    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.dirty, Dirty::Everything(_))
    }

    /// Takes in which files were seen to have several names. Whether these were known, or all names
    /// there are were looked at: otherwise one may have been changed under another name.
    pub(crate) fn takes_links(&mut self, seen: Vec<WorkPath>) -> bool {
        let is_new = |path: &WorkPath| !self.linked.contains(path);
        if !self.is_whole() && seen.iter().any(is_new) {
            return false;
        }
        match &self.dirty {
            Dirty::Everything(_) => self.linked.clear(),
            Dirty::Folders(folders) => {
                self.linked.retain(|path| !folders.contains(folder_of(path)));
            }
        }
        self.linked.extend(seen);
        true
    }

    /// The same, for somebody who wants to see for himself.
    pub(crate) fn at_everything(self) -> Self {
        Self { dirty: Dirty::Everything(Why::Asked), ..self }
    }
}

/// How a tree is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The next snapshot looks at folders in which something happened; this many are watched.
    Watching { folders: usize },
    /// The next snapshot looks at everything.
    Scanning(Why),
}

impl Watched {
    #[must_use]
    pub fn new(trust: Trust) -> Self {
        let dirty = match trust {
            Trust::WithScans { .. } => Dirty::Everything(Why::Start),
            Trust::Blindly => Dirty::Folders(BTreeSet::new()),
        };
        Self {
            trust,
            state: Mutex::new(State {
                watcher: None,
                dirty,
                index: None,
                linked: BTreeSet::new(),
                unkept: BTreeSet::new(),
                looks: 0,
                whole: None,
                on_its_word: false,
                given_up: false,
            }),
        }
    }

    #[must_use]
    pub fn standing(&self) -> Standing {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match (&state.watcher, &state.dirty) {
            (_, Dirty::Everything(why)) => Standing::Scanning(*why),
            (None, _) => Standing::Scanning(Why::Start),
            (Some(watcher), _) => Standing::Watching { folders: watcher.folders().count() },
        }
    }

    /// Whether somebody who has the time should look at the whole tree: it will soon have to be done,
    /// and snapshots have been made without it.
    #[must_use]
    pub fn is_nearly_due(&self, now: Timestamp) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match self.trust {
            Trust::WithScans { every } => state.on_its_word && state.is_due(now, every / 5 * 4),
            Trust::Blindly => false,
        }
    }

    /// What is known of the tree, and what has to be looked at to know it as it is now. From here on,
    /// whatever happens is told to the next one who asks.
    pub(crate) fn begin(&self, workspace: &Workspace) -> Result<(Index, Look), StoreError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let at = (workspace.ambient.now)();
        let index = match state.index.clone() {
            Some(index) => caught_up(index, &*workspace.store)?,
            None => None,
        };
        state.looks += 1;
        state.hear(self.trust, at, &workspace.root);
        let index = match index {
            Some(index) => index,
            None => {
                if self.trust != Trust::Blindly && !state.given_up {
                    state.dirty = Dirty::Everything(Why::Start);
                }
                Index::load(&workspace.index_file(), &*workspace.store)?
            }
        };
        state.begin_to_watch(&workspace.root, &index);
        let mut dirty = state.dirty.clone();
        if let Dirty::Folders(folders) = &mut dirty {
            folders.extend(state.linked.iter().map(|path| folder_of(path).to_vec()));
        }
        Ok((index, Look { number: state.looks, at, dirty, linked: state.linked.clone() }))
    }

    /// What was seen is in the log: `index` is what is known now, `found` what differed.
    pub(crate) fn settle(&self, root: &Root, look: Look, index: Index, found: &[ObservedChange]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever began later looked at all that this one did, and more.
        if look.number != state.looks {
            return;
        }
        let mut again = state.watch_what_was_seen(root, &look, &index, found);
        if self.trust == Trust::Blindly {
            again.clear();
        }
        state.remember(index, found);
        again.extend(state.unkept.iter().map(|path| folder_of(path).to_vec()));
        if !state.given_up {
            state.dirty = Dirty::Folders(again);
        }
        if look.is_whole() {
            state.whole = Some(look.at);
        }
        state.on_its_word = !look.is_whole();
        state.linked = look.linked;
    }
}

/// The index with what others appended to the log since. None: the log is not the one it knew.
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
    /// Takes in what happened.
    fn hear(&mut self, trust: Trust, now: Timestamp, root: &Root) {
        let told = match &mut self.watcher {
            Some(watcher) => watcher.drain(),
            None => Dirty::Folders(BTreeSet::new()),
        };
        match (told, &mut self.dirty) {
            (Dirty::Everything(_), _) if trust == Trust::Blindly => {}
            (Dirty::Everything(why), dirty) => *dirty = Dirty::Everything(why),
            (Dirty::Folders(told), Dirty::Folders(dirty)) => dirty.extend(told),
            (Dirty::Folders(_), Dirty::Everything(_)) => {}
        }
        let Trust::WithScans { every } = trust else { return };
        let due = self.is_due(now, every);
        if due && let Dirty::Folders(_) = self.dirty {
            self.dirty = Dirty::Everything(Why::Due);
        }
        if due {
            self.given_up = false;
        }
        if !root.folder_times {
            self.give_up(Why::Remote);
        }
    }

    /// Whether the last look at the whole tree was this long ago.
    fn is_due(&self, now: Timestamp, every: Duration) -> bool {
        self.whole.is_none_or(|whole| {
            let since = now.0.checked_sub(whole.0).and_then(|since| u64::try_from(since).ok());
            since.is_none_or(|since| Duration::from_millis(since) >= every)
        })
    }

    /// Watches every folder that is known, before anybody looks into them.
    fn begin_to_watch(&mut self, root: &Root, index: &Index) {
        let blind = matches!(&self.dirty, Dirty::Everything(why) if why.is_blind());
        if self.given_up || (self.watcher.is_some() && !blind) {
            return;
        }
        let watch_all = || -> Result<Watcher, Why> {
            let mut watcher = Watcher::new(root)?;
            // By path, a folder before what is in it: one that moves meanwhile is told by that.
            for (path, about) in About::folders(index) {
                see_to(&mut watcher, root, &path, about)?;
            }
            Ok(watcher)
        };
        match watch_all() {
            Ok(watcher) => self.watcher = Some(watcher),
            Err(why) => self.give_up(why),
        }
    }

    /// Nobody watches until the next look at the whole tree is due.
    fn give_up(&mut self, why: Why) {
        self.watcher = None;
        self.dirty = Dirty::Everything(why);
        self.given_up = true;
    }

    fn remember(&mut self, mut index: Index, found: &[ObservedChange]) {
        let is_unkept = |entry: &Entry| matches!(entry, Entry::NotCaptured { reason } if reason.may_be_captured_later());
        let unkept = found.iter().filter(|observed| is_unkept(&observed.after));
        self.unkept.extend(unkept.map(|observed| observed.path.clone()));
        self.unkept.retain(|path| {
            let known = index.known(path);
            matches!(known, Some(Known::Entry { entry, .. }) if is_unkept(&entry))
        });
        if index.is_loose() {
            index.compact();
        }
        self.index = Some(index);
    }

    /// Watches folders that the look has found and nobody watches yet. Answers these: between the
    /// look and now something may have happened in them.
    fn watch_what_was_seen(
        &mut self,
        root: &Root,
        look: &Look,
        index: &Index,
        found: &[ObservedChange],
    ) -> BTreeSet<Vec<u8>> {
        let mut again = BTreeSet::new();
        let Some(watcher) = &mut self.watcher else { return again };
        let seen: BTreeMap<Vec<u8>, About> = match &look.dirty {
            Dirty::Everything(_) => {
                let seen = About::folders(index);
                let watched: Vec<Vec<u8>> = watcher.folders().map(<[u8]>::to_vec).collect();
                let gone = watched.iter().filter(|path| !seen.contains_key(*path));
                gone.for_each(|path| watcher.forget(path));
                seen
            }
            Dirty::Folders(folders) => {
                let new = found.iter().filter(|observed| observed.after.is_dir());
                let new = new.map(|observed| observed.path.as_bytes());
                let mut seen = BTreeMap::new();
                for path in folders.iter().map(Vec::as_slice).chain(new) {
                    match About::folder(index, path) {
                        Some(about) => drop(seen.insert(path.to_vec(), about)),
                        None => watcher.forget(path),
                    }
                }
                seen
            }
        };
        for (path, about) in seen {
            match see_to(watcher, root, &path, about) {
                Ok(Begun::Before) => {}
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

/// As much of a folder in the index as is needed to watch it.
#[derive(Debug, Clone, Copy)]
struct About {
    repository: bool,
    inode: Option<u64>,
}

impl About {
    fn new(repository: bool, fingerprint: Option<Fingerprint>) -> Self {
        Self { repository, inode: fingerprint.map(|fingerprint| fingerprint.inode) }
    }

    fn folder(index: &Index, path: &[u8]) -> Option<Self> {
        let folder = index.folder(path)?;
        Some(Self::new(folder.repository, folder.fingerprint))
    }

    /// Of all folders, by path.
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

/// Watches a folder, if this very one is not watched.
fn see_to(watcher: &mut Watcher, root: &Root, path: &[u8], about: About) -> Result<Begun, Why> {
    if about.repository {
        watcher.watch_own_rules(root, path)?;
    }
    if watcher.watches(path, about.inode) {
        return Ok(Begun::Before);
    }
    watcher.watch(root, path)
}
