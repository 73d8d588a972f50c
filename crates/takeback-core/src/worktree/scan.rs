//! Finding out what changed in the whole tree since the last scan.
//!
//! Folders are read by several threads; a file is read only when its fingerprint moved, and only as
//! long as the budget lasts. In: the root and the index of the last scan. Out: what differs, the new
//! index, and the bytes of changed files (packed, to a sink). Writes nothing.

mod linked;
mod strays;
mod visit;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rustix::fs::FileType;
use takeback_store::blob::Encoding;
use takeback_store::{Entry, Lack, PackedBlob, WorkPath};

use self::visit::Visit;
use super::budget::Budget;
use super::fingerprint::{Fingerprint, RacySince, Stat, stat, stat_open};
use super::index::{Child, Folder, Index, Known, folder_of};
use super::look::{Bytes, Looked, look_at};
use super::root::{Access, Root, names_in};
use super::scope::{OutReason, Rules, ScopeOptions};
use crate::progress::Counter;

/// What a scan found.
#[derive(Debug)]
pub struct Scan {
    /// What differs from the index, by path.
    pub found: Vec<Observed>,
    /// The index as the tree is now; its stamp is that of the index before.
    pub index: Index,
    /// Whether the index differs from the one before.
    pub index_changed: bool,
    /// What is not covered, by path.
    pub skipped: Vec<(WorkPath, OutReason)>,
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
        self.before != self.after || (is_unread(&self.after) && !self.same_file)
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

/// Below this many known names a second thread costs more than it saves.
const ONE_THREAD_BELOW: usize = 4_000;
/// Packed blobs under way between the readers and the sink.
const BLOBS_IN_FLIGHT: usize = 8;

pub fn scan(
    root: &Root,
    before: &Index,
    options: &ScopeOptions,
    threads: usize,
    budget: Budget,
    counter: Counter<'_>,
    sink: &mut dyn FnMut(PackedBlob),
) -> Result<Scan, ScanError> {
    let sink = &mut |blob: PackedBlob| {
        // Of a file in chunks, the chunks were counted.
        if blob.encoding != Encoding::Chunks {
            counter.bytes(blob.size);
        }
        sink(blob);
    };
    let walk = Walk {
        root,
        before,
        options,
        budget,
        out_of_time: AtomicBool::new(false),
        counter,
        racy: RacySince::now(),
        shared: Mutex::new(Shared {
            folders: vec![Task {
                path: Vec::new(),
                above: None,
                fingerprint: None,
                was_absent: false,
            }],
            busy: 0,
        }),
        waiting: AtomicUsize::new(0),
        more: Condvar::new(),
    };
    // The first scan of a tree reads everything: it always pays.
    let small = !before.is_empty() && before.len() < ONE_THREAD_BELOW;
    let threads = if small { 1 } else { threads.max(1) };
    let mut results: Vec<Part> = Vec::new();
    let mut failed = None;
    std::thread::scope(|scope| {
        let (send, receive) = sync_channel(BLOBS_IN_FLIGHT);
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let send = send.clone();
                let walk = &walk;
                scope.spawn(move || walk.work(&send))
            })
            .collect();
        drop(send);
        receive.into_iter().for_each(&mut *sink);
        for worker in workers {
            match worker.join() {
                Ok(Ok(part)) => results.push(part),
                Ok(Err(error)) => failed = Some(error),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    match failed {
        Some(error) => Err(error),
        None if walk.is_over() => Err(ScanError::OutOfTime),
        None => walk.gather(results, sink),
    }
}

/// A folder to be read.
struct Task {
    path: Vec<u8>,
    above: Option<Arc<Rules>>,
    /// The folder's own, as it was seen from the folder it is in.
    fingerprint: Option<Fingerprint>,
    /// It was not there at the last scan, and so nothing in it was.
    was_absent: bool,
}

/// Folders that any thread may take.
struct Shared {
    folders: Vec<Task>,
    /// Threads that may still add folders.
    busy: usize,
}

struct Walk<'a> {
    root: &'a Root,
    before: &'a Index,
    options: &'a ScopeOptions,
    budget: Budget,
    /// Not all names were looked at.
    out_of_time: AtomicBool,
    counter: Counter<'a>,
    racy: RacySince,
    shared: Mutex<Shared>,
    /// Threads that have nothing to do.
    waiting: AtomicUsize,
    more: Condvar,
}

/// What one thread found.
#[derive(Default)]
struct Part {
    folders: Vec<(Vec<u8>, Arc<Folder>)>,
    /// How many of them differ from before.
    changed: usize,
    found: Vec<Observed>,
    skipped: Vec<(WorkPath, OutReason)>,
    /// Ignored files, in if the budget lasts.
    precious: Vec<(WorkPath, Stat, Entry)>,
    /// Files with several names, by inode.
    linked: Vec<(u64, WorkPath)>,
    stats: ScanStats,
}

impl Walk<'_> {
    fn work(&self, blobs: &SyncSender<PackedBlob>) -> Result<Part, ScanError> {
        let mut part = Part::default();
        let mut outcome = Ok(());
        // Each thread goes down the tree by itself, and shares only with those that wait.
        let mut own = Vec::new();
        while let Some(task) = own.pop().or_else(|| self.take()) {
            if outcome.is_ok() && !self.is_over() {
                let path = task.path.clone();
                outcome = self.visit(task, &mut part, &mut own, blobs).map_err(|source| {
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
        mut task: Task,
        part: &mut Part,
        below: &mut Vec<Task>,
        blobs: &SyncSender<PackedBlob>,
    ) -> io::Result<()> {
        let known = self.before.folder(&task.path);
        let opened = self.root.folder(&task.path, Access::Read);
        if let (Some(known), Ok(folder)) = (known, &opened)
            && self.is_unchanged(&task, known, folder, part, below)
        {
            part.stats.folders += 1;
            part.folders.push((task.path, Arc::clone(known)));
            return Ok(());
        }
        if let (true, Ok(folder)) = (task.path.is_empty(), &opened) {
            task.fingerprint = Some(stat_open(folder)?.fingerprint);
        }
        let names = opened.and_then(|folder| names_in(&folder).map(|names| (folder, names)));
        let (folder, names) = match names {
            Ok(read) => read,
            // Nothing is known of a folder that cannot be read, or that vanished just now: what it
            // held stays as it was, and the next scan does not take anything in it for new.
            Err(_) if !task.path.is_empty() => {
                let unread = known.map(|folder| folder.unread()).unwrap_or_default();
                part.changed += usize::from(known.is_none_or(|known| **known != unread));
                self.keep_below(&task.path, known, part);
                part.folders.push((task.path, Arc::new(unread)));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        part.stats.folders += 1;
        let has = |name: &[u8]| names.binary_search_by(|n| n.as_slice().cmp(name)).is_ok();
        let repository = has(b".git");
        let rules = Rules::read(task.above.as_ref(), &task.path, &folder, repository, has);
        let in_ignored = rules.ignores_folder(&task.path);
        let mut visit = Visit {
            walk: self,
            task: &task,
            folder,
            names: &names,
            rules,
            in_ignored,
            part,
            below,
            blobs,
        };
        let mut children = Vec::with_capacity(names.len());
        let mut old = known.map(|folder| folder.children.as_slice()).unwrap_or_default();
        for name in &names {
            if self.is_over() {
                return Ok(());
            }
            while let Some((gone, rest)) =
                old.split_first().filter(|(child, _)| *child.name < **name)
            {
                visit.gone(gone);
                old = rest;
            }
            let before = match old.split_first() {
                Some((child, rest)) if *child.name == **name => {
                    old = rest;
                    Some(child)
                }
                _ => None,
            };
            if let Some(known) = visit.name(name, before.map(|child| &child.known))? {
                children.push(Child { name: name.as_slice().into(), known });
            } else if let Some(gone) = before {
                visit.gone(gone);
            }
        }
        old.iter().for_each(|child| visit.gone(child));
        let trusted = task.fingerprint.filter(|_| self.root.folder_times);
        let fingerprint = trusted.and_then(|print| self.racy.trust(print));
        let folder = Folder { listed: true, fingerprint, repository, children };
        part.changed += usize::from(known.is_none_or(|known| **known != folder));
        part.folders.push((task.path, Arc::new(folder)));
        Ok(())
    }

    /// Whether a folder and all files in it are as they were: then the folders in it go to `below`.
    /// A name that was passed over must be judged anew, so a folder with such a name never is.
    fn is_unchanged(
        &self,
        task: &Task,
        known: &Folder,
        folder: &OwnedFd,
        part: &mut Part,
        below: &mut Vec<Task>,
    ) -> bool {
        let same_names = known.listed
            && known.fingerprint.is_some()
            && known.fingerprint == task.fingerprint
            && !known.children.iter().any(|child| child.known == Known::Skipped);
        // Takeback's own folder is in the root and is no child of it.
        if !same_names || task.path.is_empty() {
            return false;
        }
        let (first, first_linked) = (below.len(), part.linked.len());
        let mut rules = None;
        let mut files = 0;
        for child in &known.children {
            let seen = stat(folder, &child.name).unwrap_or(None);
            match (&child.known, seen) {
                _ if self.is_over() => return true,
                (Known::Entry { entry: Entry::Dir { mode }, .. }, Some(seen))
                    if seen.kind == FileType::Directory
                        && seen.device == self.root.device
                        && seen.mode() == *mode =>
                {
                    let has = |name: &[u8]| known.child(name).is_some();
                    let read = || {
                        Rules::read(task.above.as_ref(), &task.path, folder, known.repository, has)
                    };
                    below.push(Task {
                        path: join(&task.path, &child.name),
                        above: Some(Arc::clone(rules.get_or_insert_with(read))),
                        fingerprint: Some(seen.fingerprint),
                        was_absent: false,
                    });
                }
                (
                    Known::Entry {
                        entry: Entry::File { .. } | Entry::Symlink { .. },
                        fingerprint,
                        ..
                    },
                    Some(seen),
                ) if *fingerprint == Some(seen.fingerprint) => {
                    files += 1;
                    part.note_links(&seen, || join(&task.path, &child.name));
                }
                _ => {
                    below.truncate(first);
                    part.linked.truncate(first_linked);
                    return false;
                }
            }
        }
        part.stats.files += files;
        self.counter.files(files);
        true
    }

    /// Keeps all that is known below a folder that could not be read.
    fn keep_below(&self, path: &[u8], folder: Option<&Arc<Folder>>, part: &mut Part) {
        for child in folder.map(|folder| folder.children.as_slice()).unwrap_or_default() {
            let below = join(path, &child.name);
            if let Some(folder) = self.before.folder(&below) {
                part.changed += 1;
                part.folders.push((below.clone(), Arc::new(folder.unread())));
                self.keep_below(&below, Some(folder), part);
            }
        }
    }

    /// Puts the threads' parts together and lets in the ignored files for which there is room.
    fn gather(
        &self,
        parts: Vec<Part>,
        sink: &mut dyn FnMut(PackedBlob),
    ) -> Result<Scan, ScanError> {
        let mut scan = Scan {
            found: Vec::new(),
            index: Index::stamped(self.before.stamp),
            index_changed: false,
            skipped: Vec::new(),
            stats: ScanStats::default(),
        };
        let mut candidates = Vec::new();
        let mut linked = Vec::new();
        let mut used = 0;
        for part in parts {
            scan.index_changed |= part.changed > 0;
            for (path, folder) in part.folders {
                for child in &folder.children {
                    if let Known::Entry {
                        entry: Entry::File { size, .. }, precious: true, ..
                    } = child.known
                    {
                        used += size;
                    }
                }
                scan.index.set_folder(path, folder);
            }
            scan.found.extend(part.found);
            scan.skipped.extend(part.skipped);
            candidates.extend(part.precious);
            linked.extend(part.linked);
            scan.stats.files += part.stats.files;
            scan.stats.folders += part.stats.folders;
            scan.stats.read += part.stats.read;
        }
        candidates.sort_by(|a, b| a.0.cmp(&b.0));
        for (path, seen, before) in candidates {
            if self.is_over() {
                return Err(ScanError::OutOfTime);
            }
            let size = seen.fingerprint.size;
            let no_room = if size > self.options.precious_file_max {
                Some(OutReason::IgnoredFile)
            } else if used.saturating_add(size) > self.options.precious_total_max {
                Some(OutReason::OverBudget)
            } else {
                None
            };
            let looked =
                if no_room.is_none() { self.look_again(&path, &seen, sink)? } else { None };
            let known = match looked {
                Some(looked) => {
                    used = used.saturating_add(size);
                    scan.stats.files += 1;
                    scan.stats.read += u64::from(!is_unread(&looked.entry));
                    if seen.is_linked {
                        linked.push((seen.fingerprint.inode, path.clone()));
                    }
                    let fingerprint = self.lasting(&looked);
                    scan.found.push(Observed {
                        path: path.clone(),
                        before,
                        after: looked.entry.clone(),
                        same_file: false,
                    });
                    Known::Entry { entry: looked.entry, fingerprint, precious: true }
                }
                None => {
                    scan.skipped.extend(no_room.map(|reason| (path.clone(), reason)));
                    Known::Skipped
                }
            };
            let folder = scan.index.folder_mut(folder_of(&path));
            if let Err(at) = folder.children.binary_search_by(|c| (*c.name).cmp(path.file_name())) {
                folder.children.insert(at, Child { name: path.file_name().into(), known });
            }
            scan.index_changed = true;
        }
        self.look_at_strays(&mut scan, sink)?;
        scan.index_changed |= scan.index.folder_count() != self.before.folder_count();
        scan.found.sort_by(|a, b| a.path.cmp(&b.path));
        scan.index.linked = linked::since(self.before, linked, &scan.found);
        scan.index_changed |= scan.index.linked != self.before.linked;
        scan.skipped.sort();
        Ok(scan)
    }

    fn look_again(
        &self,
        path: &WorkPath,
        seen: &Stat,
        sink: &mut dyn FnMut(PackedBlob),
    ) -> Result<Option<Looked>, ScanError> {
        let mut look = || -> io::Result<Looked> {
            let folder = self.root.parent_of(path)?;
            let mut bytes = Bytes::Keep { known: None, sink, budget: self.budget };
            look_at(folder, path.file_name(), seen, &mut bytes)
        };
        match look() {
            Ok(looked) if looked.entry == Entry::Absent => Ok(None),
            Ok(looked) => Ok(Some(looked)),
            Err(source) => Err(ScanError::Unreadable { path: path.display(), source }),
        }
    }
}

/// Whether there was no time for it.
fn is_unread(entry: &Entry) -> bool {
    *entry == Entry::NotCaptured { lack: Lack::Deadline }
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
