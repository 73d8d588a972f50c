//! The second pass of a scan: several threads visit the folders that may differ from the index.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Builder;

use takeback_store::{Digest, Entry, PackedBlob, WorkPath};

use super::blobs::{BATCHES_IN_FLIGHT, Blobs};
use super::ignored_files::Candidate;
use super::read_failures::UnreadParts;
use super::tasks::Task;
use super::visit::Visit;
use super::{
    Extent, ObservedChange, ScanError, ScanRequest, ScanStats, is_gone, is_unread, parent, shown,
};
use crate::progress::Counter;
use crate::worktree::budget::Budget;
use crate::worktree::fingerprint::{Fingerprint, RacySince, stat, stat_open};
use crate::worktree::index::{Folder, Index, KnownName};
use crate::worktree::look::LookResult;
use crate::worktree::root::{Access, FolderOpener, Root, names_in};
use crate::worktree::scope::{DistrustedRules, OutReason, Rules, ScopeOptions};

/// Folders that any thread may take.
#[derive(Default)]
struct TaskQueue {
    folders: Vec<Task>,
    /// Threads that may still add folders.
    busy: usize,
}

pub(super) struct Walk<'a> {
    pub(super) root: &'a Root,
    pub(super) before: &'a Index,
    pub(super) options: &'a ScopeOptions,
    /// A number for the present settings that decide which names are covered.
    pub(super) scope: u64,
    pub(super) threads: usize,
    pub(super) budget: Budget,
    pub(super) extent: Extent<'a>,
    pub(super) kept: &'a HashSet<Digest>,
    pub(super) distrusted: &'a DistrustedRules,
    pub(super) stages: &'a HashSet<Vec<u8>>,
    /// Not all names were looked at.
    out_of_time: AtomicBool,
    pub(super) counter: Counter<'a>,
    pub(super) racy: RacySince,
    /// Known folders that are not part of the workspace: a call named a path in them.
    pub(super) unvisited: HashSet<Vec<u8>>,
    /// Rules by folder, as they were looked up.
    pub(super) rules: Mutex<HashMap<Vec<u8>, Arc<Rules>>>,
    shared: Mutex<TaskQueue>,
    /// Idle threads.
    waiting: AtomicUsize,
    more: Condvar,
}

/// One thread: it descends the tree by itself, and shares folders only with idle threads.
struct Worker<'a> {
    part: Part,
    /// Folders that it has yet to visit.
    tasks: Vec<Task>,
    opener: FolderOpener<'a>,
}

/// What one thread found.
#[derive(Default)]
pub(super) struct Part {
    pub(super) visited: Vec<VisitedFolder>,
    /// Known folders that no longer exist.
    pub(super) dropped: Vec<Vec<u8>>,
    pub(super) unread: UnreadParts,
    pub(super) new_in_ignored: Vec<WorkPath>,
    /// Folders whose rules have changed.
    pub(super) judge_below: Vec<Vec<u8>>,
    pub(super) found: Vec<ObservedChange>,
    pub(super) skipped: Vec<(WorkPath, OutReason)>,
    pub(super) judges: BTreeSet<Vec<u8>>,
    /// Ignored files, covered if there is room.
    pub(super) precious: Vec<Candidate>,
    /// Files with several names, by inode.
    pub(super) linked: Vec<(u64, WorkPath)>,
    pub(super) stats: ScanStats,
}

pub(super) struct VisitedFolder {
    pub(super) path: Vec<u8>,
    /// None: unchanged.
    pub(super) changed: Option<Folder>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(ask: &ScanRequest<'a>) -> Self {
        Self {
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
            unvisited: HashSet::new(),
            rules: Mutex::default(),
            shared: Mutex::default(),
            waiting: AtomicUsize::new(0),
            more: Condvar::new(),
        }
    }
}

/// The first scan of a tree reads everything, so it always uses all threads.
fn threads(ask: &ScanRequest<'_>) -> usize {
    /// Below this many known folders a second thread costs more than it saves.
    const ONE_BELOW: usize = 400;
    let known = ask.before.least_folders();
    if (1..ONE_BELOW).contains(&known) { 1 } else { ask.threads.max(1) }
}

impl Walk<'_> {
    pub(super) fn visit_all(
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

    fn work_for(&self, send: &dyn Fn(Vec<PackedBlob>)) -> Result<Part, ScanError> {
        let blobs = Blobs::new(send);
        let part = self.work(&blobs);
        blobs.flush();
        part
    }

    fn work(&self, blobs: &Blobs<'_>) -> Result<Part, ScanError> {
        let mut outcome = Ok(());
        let opener = FolderOpener::new(self.root);
        let mut worker = Worker { part: Part::default(), tasks: Vec::new(), opener };
        while let Some(task) = worker.tasks.pop().or_else(|| self.take()) {
            if outcome.is_ok() && !self.is_over() {
                let path = task.path.clone();
                outcome = self.visit(task, &mut worker, blobs).map_err(|source| {
                    let path = self.root.path().join(shown(&path));
                    ScanError::Unreadable { path: path.display().to_string(), source }
                });
            }
            let own = &mut worker.tasks;
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
        outcome.map(|()| worker.part)
    }

    /// Whether the time is up: then the findings are incomplete and are discarded.
    pub(super) fn is_over(&self) -> bool {
        if self.out_of_time.load(Ordering::Relaxed) {
            return true;
        }
        let over = self.budget.is_over();
        if over {
            self.out_of_time.store(true, Ordering::Relaxed);
        }
        over
    }

    /// Whether the bytes of a file could not be saved before, and there is time now.
    pub(super) fn reads_later(&self, entry: &Entry) -> bool {
        matches!(entry, Entry::NotCaptured { reason } if reason.may_be_captured_later())
            && self.budget.lets_read()
    }

    /// The fingerprint by which the next scan recognises the entry.
    pub(super) fn lasting_fingerprint(&self, looked: &LookResult) -> Option<Fingerprint> {
        if is_unread(&looked.entry) {
            looked.fingerprint
        } else {
            looked.fingerprint.and_then(|print| self.racy.trust(print))
        }
    }

    /// A folder that another thread shared; `None`: all threads are done.
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

    fn visit(&self, task: Task, worker: &mut Worker<'_>, blobs: &Blobs<'_>) -> io::Result<()> {
        let Worker { part, tasks: below, opener } = worker;
        let known = self.before.folder(&task.path);
        let read = opener.folder(&task.path, Access::Read).and_then(|folder| {
            let own = stat_open(&folder)?;
            // Another file system was mounted over it.
            if own.device != self.root.device {
                return Err(io::ErrorKind::CrossesDevices.into());
            }
            let names = if task.same.is_some() { None } else { Some(names_in(&folder)?) };
            Ok((folder, own.fingerprint, names))
        });
        let (folder, fingerprint, names) = match read {
            Ok(read) => read,
            Err(error) if task.path.is_empty() => return Err(error),
            // It was removed just now: its known entries stay, so that the next scan does not take
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
        let mut visit = Visit {
            walk: self,
            task: &task,
            folder,
            names: names.map(Rc::new),
            known: known.as_deref(),
            rules: OnceCell::new(),
            part,
            below,
            blobs,
        };
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
                    Some(KnownName::Entry { entry, .. }) => Some(entry.clone()),
                    _ => None,
                });
                (rules, folder.repository, folder.excludes)
            };
            if judged_by(known) != judged_by(&folder) {
                part.judge_below.push(task.path.clone());
            }
        }
        part.visited.push(VisitedFolder { path: task.path, changed: (!is_same).then_some(folder) });
        Ok(())
    }

    /// A folder's fingerprint, if it proves that its names are unchanged.
    fn trusted(&self, fingerprint: Fingerprint) -> Option<Fingerprint> {
        Some(fingerprint)
            .filter(|_| self.root.folder_times)
            .and_then(|print| self.racy.trust(print))
    }

    /// The rules that apply in a folder, as it is now.
    pub(super) fn rules_of(&self, path: &[u8]) -> Arc<Rules> {
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
        let mut opener = FolderOpener::new(self.root);
        for folder in unread.into_iter().rev() {
            let rules = match opener.folder(folder, Access::Reach) {
                Ok(opened) => {
                    let has = |name: &[u8]| {
                        name != b".git" || stat(&opened, name).is_ok_and(|seen| seen.is_some())
                    };
                    Rules::read(above.as_ref(), folder, &opened, self.distrusted, has)
                }
                Err(_) => above.unwrap_or_else(Rules::none),
            };
            above = Some(Arc::clone(lock().entry(folder.to_vec()).or_insert(rules)));
        }
        above.expect("the root has no folder above it")
    }
}

impl Part {
    fn unread(&mut self, path: Vec<u8>, known: Option<&Folder>) {
        let unread = known.map(Folder::unread).unwrap_or_default();
        let is_same = known == Some(&unread);
        self.visited.push(VisitedFolder { path, changed: (!is_same).then_some(unread) });
    }
}

pub(super) fn visited(parts: &[Part]) -> impl Iterator<Item = &[u8]> {
    parts.iter().flat_map(|part| &part.visited).map(|visited| visited.path.as_slice())
}
