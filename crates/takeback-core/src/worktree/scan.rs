//! Finding out what changed in the whole tree since the last scan.
//!
//! In two passes, each by several threads. The first looks at every folder and name that is known and
//! reads nothing; the second goes into the folders that are not as they were, reads the names where
//! those may be others, and the files whose fingerprint moved, as long as the budget lasts. In: the
//! root and the index of the last scan. Out: what differs, the new index, and the bytes of changed
//! files (packed, to a sink). Writes nothing.

mod cover;
mod glance;
mod ignored;
mod linked;
mod strays;
mod unreadable;
mod visit;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Builder;

use takeback_store::blob::Encoding;
use takeback_store::{Digest, Entry, Lack, PackedBlob, WorkPath};

use self::glance::{Glanced, Moved};
use self::ignored::Candidate;
use self::unreadable::Unread;
pub use self::unreadable::{Unreadable, UnreadableKind};
use self::visit::Visit;
use super::budget::Budget;
use super::fingerprint::{Fingerprint, RacySince, stat, stat_open};
use super::index::{Child, Folder, Index, Known, folder_of};
use super::look::Looked;
use super::root::{Access, Near, Root, is_no_folder, names_in};
use super::scope::{Distrusted, OWN_FOLDER, OutReason, Rules, ScopeOptions};
use crate::progress::Counter;

/// What to look at, and how.
pub struct Ask<'a> {
    pub root: &'a Root,
    pub before: &'a Index,
    pub options: &'a ScopeOptions,
    pub threads: usize,
    pub budget: Budget,
    pub counter: Counter<'a>,
    pub extent: Extent<'a>,
    /// Contents that the store has although nothing names them: a look that was cut off kept them.
    pub kept: &'a HashSet<Digest>,
    /// Files with rules that do not hide what is new.
    pub distrusted: &'a Distrusted,
    /// The stages in Takeback's own folder that are this store's, by name.
    pub stages: &'a HashSet<Vec<u8>>,
}

#[derive(Debug, Clone, Copy)]
pub enum Extent<'a> {
    Whole,
    /// These folders alone, and what is new in them: somebody vouches for the others.
    Folders(&'a BTreeSet<Vec<u8>>),
}

/// What a scan found.
#[derive(Debug)]
pub struct Scan {
    /// What differs from the index, by path.
    pub found: Vec<Observed>,
    /// The index as the tree is now; its stamp is that of the index before.
    pub index: Index,
    /// Whether the index differs from the one before.
    pub index_changed: bool,
    /// What is not covered although the index knows it, by path; for the rest see [`Index::skipped`].
    pub skipped: Vec<(WorkPath, OutReason)>,
    /// What could not be read, by path: folders, each without those in it, and files.
    pub unreadable: Vec<Unreadable>,
    /// New names in folders that could not be read for a while.
    pub surfaced: HashSet<WorkPath>,
    /// New names in ignored folders.
    pub new_in_ignored: HashSet<WorkPath>,
    /// The files whose rules, as they are on disk, keep new names out: the caller knows who wrote them.
    pub judges: BTreeSet<WorkPath>,
    /// Files that have other names too, in the tree or outside of it, of those that were looked at.
    pub linked: Vec<WorkPath>,
    pub stats: ScanStats,
}

/// One path whose entry differs from what was known, or that has another file for which there was no
/// time, as there was none for the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    pub path: WorkPath,
    pub before: Entry,
    pub after: Entry,
    /// The file is the very one that was seen last, only its bytes could not be kept then: nothing has
    /// changed but what is known of that change.
    pub same_file: bool,
}

impl Observed {
    /// Whether it belongs in the log.
    #[must_use]
    pub fn is_a_change(&self) -> bool {
        let is_unknown = is_unread(&self.after) || self.after.is_unreadable();
        self.before != self.after || (is_unknown && !self.same_file)
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScanStats {
    pub files: u64,
    pub folders: u64,
    /// Files whose bytes were read.
    pub read: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    #[error("cannot scan {path}")]
    Unreadable { path: String, source: io::Error },
    #[error("there was not enough time to look at the whole tree")]
    OutOfTime,
}

/// Batches of packed blobs under way between the readers and the sink.
const BATCHES_IN_FLIGHT: usize = 8;

/// Blobs on their way to the sink. Handed over in batches: to wake the other side for each of them
/// takes as long as to read a file.
struct Blobs<'a> {
    hand_over: &'a dyn Fn(Vec<PackedBlob>),
    batch: RefCell<Vec<PackedBlob>>,
    bytes: Cell<usize>,
}

impl<'a> Blobs<'a> {
    const BATCH: usize = 128 << 10;

    fn new(hand_over: &'a dyn Fn(Vec<PackedBlob>)) -> Self {
        Self { hand_over, batch: RefCell::default(), bytes: Cell::new(0) }
    }

    fn put(&self, blob: PackedBlob) {
        self.bytes.set(self.bytes.get() + blob.bytes.len());
        self.batch.borrow_mut().push(blob);
        if self.bytes.get() >= Self::BATCH {
            self.hand_over();
        }
    }

    fn hand_over(&self) {
        self.bytes.set(0);
        (self.hand_over)(self.batch.take());
    }
}

pub fn scan(ask: &Ask<'_>, sink: &mut dyn FnMut(PackedBlob)) -> Result<Scan, ScanError> {
    let sink = &mut |blob: PackedBlob| {
        // Of a file in chunks, the chunks were counted.
        if blob.encoding != Encoding::Chunks {
            ask.counter.bytes(blob.size);
        }
        sink(blob);
    };
    let mut walk = Walk {
        root: ask.root,
        before: ask.before,
        options: ask.options,
        scope: ask.options.number(),
        threads: threads(ask),
        budget: ask.budget,
        extent: ask.extent,
        kept: ask.kept,
        distrusted: ask.distrusted,
        stages: ask.stages,
        out_of_time: AtomicBool::new(false),
        counter: ask.counter,
        racy: RacySince::now(),
        strays: HashSet::new(),
        rules: Mutex::default(),
        shared: Mutex::default(),
        waiting: AtomicUsize::new(0),
        more: Condvar::new(),
    };
    let glanced = walk.glance()?;
    let tasks = walk.tasks(&glanced);
    let mut parts = walk.visit_all(tasks, sink)?;
    let again = walk.judged_anew(&parts);
    parts.extend(walk.visit_all(again, sink)?);
    walk.gather(glanced, parts, sink)
}

/// The first scan of a tree reads everything: there all threads always pay.
fn threads(ask: &Ask<'_>) -> usize {
    /// Below this many known folders a second thread costs more than it saves.
    const ONE_BELOW: usize = 400;
    let known = ask.before.least_folders();
    if (1..ONE_BELOW).contains(&known) { 1 } else { ask.threads.max(1) }
}

/// A folder to be visited.
struct Task {
    path: Vec<u8>,
    /// The rules of the folder it is in; none: they are to be looked up.
    above: Option<Arc<Rules>>,
    /// It was not there at the last scan, and so nothing in it was.
    was_absent: bool,
    /// It is new in a folder that could not be read for a while.
    surfaced: bool,
    /// Its names are those that are known, and so many of them are as they were.
    same: Option<usize>,
}

impl Task {
    fn known(path: Vec<u8>, same: Option<usize>) -> Self {
        Self { path, above: None, was_absent: false, surfaced: false, same }
    }
}

/// Folders that any thread may take.
#[derive(Default)]
struct Shared {
    folders: Vec<Task>,
    /// Threads that may still add folders.
    busy: usize,
}

struct Walk<'a> {
    root: &'a Root,
    before: &'a Index,
    options: &'a ScopeOptions,
    /// What decides by now which names are covered, as one number.
    scope: u64,
    threads: usize,
    budget: Budget,
    extent: Extent<'a>,
    kept: &'a HashSet<Digest>,
    distrusted: &'a Distrusted,
    stages: &'a HashSet<Vec<u8>>,
    /// Not all names were looked at.
    out_of_time: AtomicBool,
    counter: Counter<'a>,
    racy: RacySince,
    /// Known folders that are not part of the workspace: something in them was named.
    strays: HashSet<Vec<u8>>,
    /// Of folders, as they were looked up.
    rules: Mutex<HashMap<Vec<u8>, Arc<Rules>>>,
    shared: Mutex<Shared>,
    /// Threads that have nothing to do.
    waiting: AtomicUsize,
    more: Condvar,
}

/// What one thread found.
#[derive(Default)]
struct Part {
    visited: Vec<Visited>,
    /// Known folders that are no more.
    dropped: Vec<Vec<u8>>,
    unread: Unread,
    new_in_ignored: Vec<WorkPath>,
    /// Folders whose rules are others than they were.
    judge_below: Vec<Vec<u8>>,
    found: Vec<Observed>,
    skipped: Vec<(WorkPath, OutReason)>,
    judges: BTreeSet<Vec<u8>>,
    /// Ignored files, in if the budget lasts.
    precious: Vec<Candidate>,
    /// Files with several names, by inode.
    linked: Vec<(u64, WorkPath)>,
    stats: ScanStats,
}

struct Visited {
    path: Vec<u8>,
    /// None: as it was.
    changed: Option<Folder>,
}

impl Walk<'_> {
    /// What is left to the second pass.
    fn tasks(&mut self, glanced: &Glanced) -> Vec<Task> {
        let mut tasks: Vec<Task> = Vec::new();
        if !self.before.has_folder(b"") {
            tasks.push(Task::known(Vec::new(), None));
        }
        let moved = glanced.moved.iter();
        tasks.extend(moved.map(|moved| Task::known(moved.path.clone(), moved.same)));
        for path in &glanced.unlisted {
            if self.is_reached(path) && !self.is_own_and_gone(path) {
                tasks.push(Task::known(path.clone(), None));
            } else {
                self.strays.insert(path.clone());
            }
        }
        // What it is in is known to be no folder any more, or never was covered.
        let lost = glanced.lost.iter().chain(&glanced.unreadable);
        let lost = lost.filter(|path| !self.is_reached(path) || self.is_own_and_gone(path));
        let lost: Vec<Vec<u8>> = lost.cloned().collect();
        self.strays.extend(lost);
        let judged = match self.extent {
            _ if self.scope != self.before.scope => self.before.folders_with_skipped(),
            Extent::Whole => self.before.folders_with_room(self.options.precious_total_max),
            Extent::Folders(_) => Vec::new(),
        };
        let taken: HashSet<Vec<u8>> = tasks.iter().map(|task| task.path.clone()).collect();
        let judged = judged.into_iter().filter(|path| !taken.contains(*path));
        tasks.extend(judged.map(|path| Task::known(path.to_vec(), Some(0))));
        tasks
    }

    /// Whether a known folder is part of the workspace, and so are those it is in.
    fn is_reached(&self, path: &[u8]) -> bool {
        let mut path = path;
        while !path.is_empty() && path != OWN_FOLDER {
            let Ok(folder) = WorkPath::new(path) else { return false };
            let is_folder = match self.before.known(&folder) {
                Some(Known::Entry { entry: Entry::Dir { .. }, .. }) => true,
                // One in a folder that could not be read.
                Some(known) => known.is_unreadable() && self.before.has_folder(path),
                None => false,
            };
            if !is_folder {
                return false;
            }
            path = parent(path);
        }
        true
    }

    /// Whether it is Takeback's own folder, which is no entry: no other scan of a name finds it gone.
    fn is_own_and_gone(&self, path: &[u8]) -> bool {
        path == OWN_FOLDER
            && self.root.folder(path, Access::Reach).is_err_and(|error| is_no_folder(&error))
    }

    /// Folders in which names were passed over by rules that have changed.
    fn judged_anew(&self, parts: &[Part]) -> Vec<Task> {
        let changed: Vec<&[u8]> =
            parts.iter().flat_map(|part| &part.judge_below).map(Vec::as_slice).collect();
        if changed.is_empty() {
            return Vec::new();
        }
        let visited: HashSet<&[u8]> = visited(parts).collect();
        let is_below = |path: &[u8]| {
            changed.iter().any(|above| {
                above.is_empty()
                    || path.strip_prefix(*above).is_some_and(|rest| rest.starts_with(b"/"))
            })
        };
        let folders = self.before.folders_with_skipped().into_iter();
        let folders = folders.filter(|path| !visited.contains(path) && is_below(path));
        folders
            .filter(|path| !self.strays.contains(*path))
            .map(|path| Task::known(path.to_vec(), Some(0)))
            .collect()
    }

    fn visit_all(
        &self,
        tasks: Vec<Task>,
        sink: &mut dyn FnMut(PackedBlob),
    ) -> Result<Vec<Part>, ScanError> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).folders = tasks;
        let mut parts = Vec::new();
        let mut failed = None;
        let threads = std::thread::scope(|scope| {
            let (send, receive) = sync_channel(BATCHES_IN_FLIGHT);
            let start = |_| {
                let send = send.clone();
                // The receiver lives as long as any reader: sending cannot fail.
                let work = move || self.work_for(&|batch| drop(send.send(batch)));
                Builder::new().spawn_scoped(scope, work).ok()
            };
            let workers: Vec<_> = (0..self.threads).map_while(start).collect();
            drop(send);
            let threads = workers.len();
            receive.into_iter().flatten().for_each(&mut *sink);
            for worker in workers {
                match worker.join() {
                    Ok(Ok(part)) => parts.push(part),
                    Ok(Err(error)) => failed = Some(error),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            threads
        });
        if threads == 0 {
            let sink = RefCell::new(sink);
            let put = |blob| (sink.borrow_mut())(blob);
            parts.push(self.work_for(&|batch| batch.into_iter().for_each(put))?);
        }
        match failed {
            Some(error) => Err(error),
            None if self.is_over() => Err(ScanError::OutOfTime),
            None => Ok(parts),
        }
    }

    fn work_for(&self, hand_over: &dyn Fn(Vec<PackedBlob>)) -> Result<Part, ScanError> {
        let blobs = Blobs::new(hand_over);
        let part = self.work(&blobs);
        blobs.hand_over();
        part
    }

    fn work(&self, blobs: &Blobs<'_>) -> Result<Part, ScanError> {
        let mut part = Part::default();
        let mut outcome = Ok(());
        // Each thread goes down the tree by itself, and shares only with those that wait.
        let mut own = Vec::new();
        let mut near = Near::new(self.root);
        while let Some(task) = own.pop().or_else(|| self.take()) {
            if outcome.is_ok() && !self.is_over() {
                let path = task.path.clone();
                outcome =
                    self.visit(task, &mut near, &mut part, &mut own, blobs).map_err(|source| {
                        let path = self.root.path().join(shown(&path));
                        ScanError::Unreadable { path: path.display().to_string(), source }
                    });
            }
            if own.is_empty() {
                self.shared.lock().unwrap_or_else(PoisonError::into_inner).busy -= 1;
                self.more.notify_all();
            } else if own.len() > 1 && self.waiting.load(Ordering::Relaxed) > 0 {
                let give = own.len() / 2;
                let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
                shared.folders.extend(own.drain(..give));
                self.more.notify_all();
            }
        }
        outcome.map(|()| part)
    }

    /// Whether the time is up: then what was found is not the whole tree, and nothing of it counts.
    fn is_over(&self) -> bool {
        if self.out_of_time.load(Ordering::Relaxed) {
            return true;
        }
        let over = self.budget.is_over();
        if over {
            self.out_of_time.store(true, Ordering::Relaxed);
        }
        over
    }

    /// Whether the bytes of a file could not be kept before, and there is time for them now.
    fn reads_later(&self, entry: &Entry) -> bool {
        matches!(entry, Entry::NotCaptured { lack } if lack.may_be_kept_later())
            && self.budget.lets_read()
    }

    /// The fingerprint by which the next scan knows what was looked at.
    fn lasting(&self, looked: &Looked) -> Option<Fingerprint> {
        if is_unread(&looked.entry) {
            looked.fingerprint
        } else {
            looked.fingerprint.and_then(|print| self.racy.trust(print))
        }
    }

    /// A folder from the others; `None` when all are done.
    fn take(&self) -> Option<Task> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(task) = shared.folders.pop() {
                shared.busy += 1;
                return Some(task);
            }
            if shared.busy == 0 {
                return None;
            }
            self.waiting.fetch_add(1, Ordering::Relaxed);
            shared = self.more.wait(shared).unwrap_or_else(PoisonError::into_inner);
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }

    fn visit(
        &self,
        task: Task,
        near: &mut Near<'_>,
        part: &mut Part,
        below: &mut Vec<Task>,
        blobs: &Blobs,
    ) -> io::Result<()> {
        let known = self.before.folder(&task.path);
        let read = near.folder(&task.path, Access::Read).and_then(|folder| {
            let own = stat_open(&folder)?;
            // Another file system has come over it meanwhile.
            if own.device != self.root.device {
                return Err(io::ErrorKind::CrossesDevices.into());
            }
            let names = if task.same.is_some() { None } else { Some(names_in(&folder)?) };
            Ok((folder, own.fingerprint, names))
        });
        let (folder, fingerprint, names) = match read {
            Ok(read) => read,
            Err(error) if task.path.is_empty() => return Err(error),
            // It vanished just now: what it held stays as it was, and the next scan does not take
            // anything in it for new.
            Err(error) if is_gone(&error) => {
                part.unread(task.path, known.as_deref());
                return Ok(());
            }
            Err(_) => {
                part.unread.folders.insert(task.path);
                return Ok(());
            }
        };
        part.stats.folders += 1;
        let mut visit =
            Visit::new(self, &task, folder, names, known.as_deref(), part, below, blobs);
        let Some(children) = visit.children() else { return Ok(()) };
        let (repository, excludes) = visit.repository();
        let fingerprint = match &known {
            Some(known) if task.same.is_some() => known.fingerprint,
            _ => self.trusted(fingerprint),
        };
        let folder =
            Folder { listed: true, hidden: false, fingerprint, repository, excludes, children };
        let is_same = known.as_ref().is_some_and(|known| **known == folder);
        if let Some(known) = known.as_deref().filter(|_| !is_same) {
            let judged_by = |folder: &Folder| {
                let rules = [b".gitignore".as_slice(), b".takebackignore"];
                let rules = rules.map(|name| match folder.child(name) {
                    Some(Known::Entry { entry, .. }) => Some(entry.clone()),
                    _ => None,
                });
                (rules, folder.repository, folder.excludes)
            };
            if judged_by(known) != judged_by(&folder) {
                part.judge_below.push(task.path.clone());
            }
        }
        part.visited.push(Visited { path: task.path, changed: (!is_same).then_some(folder) });
        Ok(())
    }

    /// A folder's fingerprint, if it stands for the names in it.
    fn trusted(&self, fingerprint: Fingerprint) -> Option<Fingerprint> {
        Some(fingerprint)
            .filter(|_| self.root.folder_times)
            .and_then(|print| self.racy.trust(print))
    }

    /// The rules that hold in a folder, as it is now.
    fn rules_of(&self, path: &[u8]) -> Arc<Rules> {
        let lock = || self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unread = Vec::new();
        let mut at = Some(path);
        let mut above = loop {
            let Some(folder) = at else { break None };
            if let Some(rules) = lock().get(folder) {
                break Some(Arc::clone(rules));
            }
            unread.push(folder);
            at = (!folder.is_empty()).then(|| parent(folder));
        };
        let mut near = Near::new(self.root);
        for folder in unread.into_iter().rev() {
            let rules = match near.folder(folder, Access::Reach) {
                Ok(opened) => {
                    let repository = stat(&opened, b".git").is_ok_and(|seen| seen.is_some());
                    let distrusted = self.distrusted;
                    Rules::read(above.as_ref(), folder, &opened, repository, distrusted, |_| true)
                }
                Err(_) => above.unwrap_or_else(Rules::none),
            };
            above = Some(Arc::clone(lock().entry(folder.to_vec()).or_insert(rules)));
        }
        above.expect("the root has no folder above it")
    }

    /// Puts what the passes found together, and lets in the ignored files for which there is room.
    fn gather(
        &self,
        glanced: Glanced,
        parts: Vec<Part>,
        sink: &mut dyn FnMut(PackedBlob),
    ) -> Result<Scan, ScanError> {
        let mut scan = Scan {
            found: Vec::new(),
            index: self.before.clone(),
            index_changed: self.before.scope != self.scope,
            skipped: Vec::new(),
            unreadable: Vec::new(),
            surfaced: HashSet::new(),
            new_in_ignored: HashSet::new(),
            judges: BTreeSet::new(),
            linked: Vec::new(),
            stats: glanced.stats,
        };
        scan.index.scope = self.scope;
        let visited: HashSet<Vec<u8>> = visited(&parts).map(<[u8]>::to_vec).collect();
        let mut candidates = Vec::new();
        let mut dropped: HashSet<Vec<u8>> = HashSet::new();
        let mut linked = glanced.linked;
        let mut unread = Unread::default();
        unread.folders.extend(glanced.unreadable.iter().cloned());
        for part in parts {
            unread.add(part.unread);
            scan.new_in_ignored.extend(part.new_in_ignored);
            for Visited { path, changed } in part.visited {
                if let Some(folder) = changed {
                    scan.set_folder(path, folder);
                }
            }
            dropped.extend(part.dropped);
            scan.found.extend(part.found);
            scan.skipped.extend(part.skipped);
            scan.judges.extend(part.judges.into_iter().map(valid));
            candidates.extend(part.precious);
            linked.extend(part.linked);
            scan.stats.files += part.stats.files;
            scan.stats.folders += part.stats.folders;
            scan.stats.read += part.stats.read;
        }
        for path in &dropped {
            scan.index.remove_folder(path);
            scan.index_changed = true;
        }
        for path in glanced.lost.iter().chain(&glanced.foreign) {
            let is_left = !visited.contains(path) && !self.strays.contains(path);
            if is_left && !dropped.contains(path) {
                scan.unread(path);
            }
        }
        unread.folders.retain(|path| !dropped.contains(path) && !self.strays.contains(path));
        scan.take_in_unread(unread);
        self.note_foreign(&glanced.foreign, &mut scan);
        for moved in glanced.moved.iter().filter(|moved| !visited.contains(parent(&moved.path))) {
            note_mode(moved, &mut scan);
        }
        self.let_in(candidates, &mut scan, &mut linked, sink)?;
        self.look_at_strays(&visited, &mut scan, sink)?;
        // What was visited and then found gone is gone.
        scan.found.sort_by(|a, b| {
            let is_there = |observed: &Observed| observed.after != Entry::Absent;
            a.path.cmp(&b.path).then(is_there(a).cmp(&is_there(b)))
        });
        scan.found.dedup_by(|later, first| later.path == first.path);
        scan.skipped.sort();
        scan.unreadable.sort();
        scan.linked = linked.iter().map(|(_, path)| path.clone()).collect();
        if scan.index_changed || !visited.is_empty() {
            let linked = linked::since(self.before, self.extent, linked, &scan.found);
            scan.index_changed |= linked != self.before.linked;
            scan.index.linked = linked;
        }
        Ok(scan)
    }

    /// Another file system hides what was known here; it is still there, below.
    fn note_foreign(&self, foreign: &[Vec<u8>], scan: &mut Scan) {
        let hidden: HashSet<&[u8]> = foreign.iter().map(Vec::as_slice).collect();
        for path in foreign.iter().filter(|path| !hidden.contains(parent(path))) {
            let path = valid(path.clone());
            if self.is_reached(path.as_bytes()) {
                scan.skipped.push((path, OutReason::OtherFileSystem));
            }
        }
        scan.skipped.sort();
        scan.skipped.dedup();
    }
}

impl Scan {
    fn set_folder(&mut self, path: Vec<u8>, folder: Folder) {
        self.index.set_folder(path, Arc::new(folder));
        self.index_changed = true;
    }

    /// Nothing is known of a folder that cannot be reached: what it held stays as it was.
    fn unread(&mut self, path: &[u8]) {
        if let Some(folder) = self.index.folder(path) {
            let unread = folder.unread();
            if unread != *folder {
                self.set_folder(path.to_vec(), unread);
            }
        }
    }

    fn set_child(&mut self, path: &WorkPath, known: Known) {
        let folder = folder_of(path);
        if self.index.known(path).as_ref() == Some(&known) {
            return;
        }
        let children = &mut self.index.folder_mut(folder).children;
        match children.binary_search_by(|child| (*child.name).cmp(path.file_name())) {
            Ok(at) => children[at].known = known,
            Err(at) => children.insert(at, Child { name: path.file_name().into(), known }),
        }
        self.index_changed = true;
    }
}

impl Part {
    fn unread(&mut self, path: Vec<u8>, known: Option<&Folder>) {
        let unread = known.map(Folder::unread).unwrap_or_default();
        let is_same = known == Some(&unread);
        self.visited.push(Visited { path, changed: (!is_same).then_some(unread) });
    }
}

fn visited(parts: &[Part]) -> impl Iterator<Item = &[u8]> {
    parts.iter().flat_map(|part| &part.visited).map(|visited| visited.path.as_slice())
}

/// A folder's mode is known in the folder it is in, which may be as it was.
fn note_mode(moved: &Moved, scan: &mut Scan) {
    if moved.path.is_empty() || moved.path == OWN_FOLDER {
        return;
    }
    let path = valid(moved.path.clone());
    let Some(Known::Entry { entry: before @ Entry::Dir { .. }, precious, .. }) =
        scan.index.known(&path)
    else {
        return;
    };
    let after = Entry::Dir { mode: moved.mode };
    if before != after {
        let entry = after.clone();
        scan.set_child(&path, Known::Entry { entry, fingerprint: None, precious });
        scan.found.push(Observed { path, before, after, same_file: false });
    }
}

/// The folder that a folder is in.
fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|b| *b == b'/').map_or(b"", |cut| &path[..cut])
}

/// Whether there was no time for it.
fn is_unread(entry: &Entry) -> bool {
    *entry == Entry::NotCaptured { lack: Lack::Deadline }
}

/// Whether a folder is none any more, or another file system has come over it.
fn is_gone(error: &io::Error) -> bool {
    is_no_folder(error) || error.kind() == io::ErrorKind::CrossesDevices
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

fn valid(path: Vec<u8>) -> WorkPath {
    WorkPath::new(path).expect("names read from a folder are plain")
}

fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
