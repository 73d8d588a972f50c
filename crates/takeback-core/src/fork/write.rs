//! Writes the folders, links and files of a plan into every target.
//!
//! Several threads copy files from disk while this one hands them out. What cannot be copied (it changed, or
//! was never like this on disk) comes from the store afterwards. A file is complete when it gets its mode;
//! before that, its source was looked at again.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use rustix::fs::FileType;
use takeback_store::disk::{self, BlockSharing, CopyAttributes};
use takeback_store::{Entry, StoreError, WorkPath};

use super::ForkError;
use super::plan::{FileSource, ForkPlan, PlannedFile};
use super::target::{ForkTarget, OWN};
use crate::platform::folder::{Access, open_file};
use crate::progress::Counter;
use crate::tree_copy::link_into;
use crate::workspace::Workspace;
use crate::worktree::Root;
use crate::worktree::fingerprint::{Fingerprint, stat, stat_open};
use crate::worktree::look::{Bytes, look};

/// What was written.
pub(super) struct Written {
    /// By target.
    pub(super) prints: Vec<Prints>,
    /// By the number of the file in the plan.
    pub(super) outcomes: Vec<Outcome>,
}

/// The fingerprints of what was written, by their number in the plan.
#[derive(Clone)]
pub(super) struct Prints {
    pub(super) links: Vec<Option<Fingerprint>>,
    pub(super) files: Vec<Option<Fingerprint>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    FromDisk,
    FromStore,
    /// Its bytes are nowhere.
    Lost,
}

pub(super) fn write(
    workspace: &Workspace,
    plan: &ForkPlan,
    targets: &[ForkTarget],
    counter: Counter<'_>,
) -> Result<Written, ForkError> {
    let empty = Prints { links: vec![None; plan.links.len()], files: vec![None; plan.files.len()] };
    let mut prints = vec![empty; targets.len()];
    for (target, prints) in targets.iter().zip(&mut prints) {
        for (path, mode) in &plan.folders {
            make_folder(target, path, *mode).map_err(|source| target.failed(path, source))?;
        }
        for (number, (path, link)) in plan.links.iter().enumerate() {
            prints.links[number] = make_link(target, path, link)?;
        }
    }
    let writing =
        Writing { source: &workspace.root, plan, targets, sharing: BlockSharing::default() };
    let mut outcomes = vec![Outcome::FromStore; plan.files.len()];
    for (number, copied) in writing.copy_all(workspace.limits.threads(), counter)? {
        outcomes[number] = Outcome::FromDisk;
        for (prints, print) in prints.iter_mut().zip(copied) {
            prints.files[number] = Some(print);
        }
    }
    for (number, file) in plan.files.iter().enumerate() {
        if outcomes[number] == Outcome::FromDisk {
            continue;
        }
        for (target, prints) in targets.iter().zip(&mut prints) {
            match bring_from_store(workspace, target, file)? {
                Some(print) => prints.files[number] = Some(print),
                None => outcomes[number] = Outcome::Lost,
            }
        }
        counter.files(1);
    }
    Ok(Written { prints, outcomes })
}

fn make_folder(target: &ForkTarget, path: &WorkPath, mode: u32) -> io::Result<()> {
    let parent = target.root.parent_of(path)?;
    match disk::make_folder(&parent, path.file_name(), mode | OWN) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let seen = stat(&parent, path.file_name())?;
            let Some(seen) = seen.filter(|seen| seen.kind == FileType::Directory) else {
                return Err(error);
            };
            // An interrupted fork may have finished it.
            if seen.mode() & OWN != OWN {
                let folder = target.root.folder(path.as_bytes(), Access::Reach)?;
                disk::set_mode_by_path(&folder, seen.mode() | OWN)?;
            }
            Ok(())
        }
        made => made,
    }
}

fn make_link(
    target: &ForkTarget,
    path: &WorkPath,
    link: &[u8],
) -> Result<Option<Fingerprint>, ForkError> {
    let failed = |source| target.failed(path, source);
    let parent = target.root.parent_of(path).map_err(failed)?;
    let name = path.file_name();
    // A program that runs in the fork must not write to the workspace through it.
    let link = link_into(link, &target.original, target.path());
    match disk::create_symlink(&parent, name, &link) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = rustix::fs::readlinkat(&parent, name, Vec::new());
            if found.is_ok_and(|found| found.as_bytes() == link) {
                Ok(())
            } else {
                Err(in_the_way(target, path))
            }
        }
        made => made.map_err(failed),
    }?;
    Ok(stat(&parent, name).map_err(failed)?.map(|seen| seen.fingerprint))
}

fn in_the_way(target: &ForkTarget, path: &WorkPath) -> ForkError {
    ForkError::InTheWay { folder: target.path().to_owned(), path: path.clone() }
}

/// What the threads share.
struct Writing<'a> {
    source: &'a Root,
    plan: &'a ForkPlan,
    targets: &'a [ForkTarget],
    sharing: BlockSharing,
}

/// A file that was copied, with its fingerprint in each target.
type CopiedFile = (usize, Vec<Fingerprint>);

impl Writing<'_> {
    /// Copies what can be copied from disk.
    fn copy_all(&self, threads: usize, counter: Counter<'_>) -> Result<Vec<CopiedFile>, ForkError> {
        /// A thread takes so many neighbours at once, which mostly share a folder.
        const BATCH: usize = 64;
        const BATCHES_IN_FLIGHT: usize = 4;
        let (send, receive) = sync_channel::<usize>(BATCHES_IN_FLIGHT);
        let receive = Mutex::new(receive);
        let done = Mutex::new(Ok(Vec::new()));
        let files = &self.plan.files;
        let batch = |first: usize| first..files.len().min(first + BATCH);
        let work = || {
            let mut near = OpenFolders::default();
            while let Some(first) = next(&receive) {
                let copied = batch(first).map(|number| {
                    let copied = self.copy(&files[number], &mut near)?;
                    counter.files(u64::from(copied.is_some()));
                    Ok(copied.map(|prints| (number, prints)))
                });
                let copied: Result<Vec<_>, ForkError> =
                    copied.filter_map(Result::transpose).collect();
                let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                match (&mut *done, copied) {
                    (Ok(all), Ok(copied)) => all.extend(copied),
                    (Ok(_), Err(error)) => *done = Err(error),
                    (Err(_), _) => {}
                }
            }
        };
        let has_failed = || done.lock().unwrap_or_else(PoisonError::into_inner).is_err();
        std::thread::scope(|scope| {
            let start = |_| Builder::new().spawn_scoped(scope, work).ok();
            let started = (0..threads.max(1)).map_while(start).count();
            // Moved in here so that it is dropped on every way out: that ends the threads.
            let send = send;
            for first in (0..files.len()).step_by(BATCH) {
                // No thread: everything comes from the store.
                if started == 0 || has_failed() {
                    break;
                }
                disk::pass_copies()
                    .map_err(|source| self.targets[0].failed(&files[first].path, source))?;
                send.send(first).expect("the receiver lives longer than this scope");
            }
            Ok::<_, ForkError>(())
        })?;
        done.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies a file into every target. `None`: it is not on disk as it should be, or could not be copied.
    fn copy(
        &self,
        file: &PlannedFile,
        near: &mut OpenFolders,
    ) -> Result<Option<Vec<Fingerprint>>, ForkError> {
        const TRIES: usize = 3;
        let expected = match &file.source {
            FileSource::Log { known: None, .. } => return Ok(None),
            FileSource::Log { known, .. } => *known,
            FileSource::Disk => None,
        };
        near.go_to(self, &file.path)?;
        for _ in 0..TRIES {
            let Some(source) = &near.source else { return Ok(None) };
            let Ok(mut source) = open_file(source, file.path.file_name()) else { return Ok(None) };
            let Ok(seen) = stat_open(&source) else { return Ok(None) };
            let is_right = seen.kind == FileType::RegularFile
                && expected.is_none_or(|expected| expected == seen.fingerprint);
            if !is_right {
                return Ok(None);
            }
            let mode = file.entry().and_then(Entry::mode).unwrap_or(seen.mode());
            let modified = Some(seen.fingerprint.modified);
            let attributes = CopyAttributes { mode, modified };
            let mut prints = Vec::with_capacity(self.targets.len());
            let mut is_read = false;
            for (target, folder) in self.targets.iter().zip(&near.targets) {
                let place = Place { target, folder, file, attributes };
                let copied = place.fill(&mut |to| {
                    if std::mem::replace(&mut is_read, true) {
                        source.seek(SeekFrom::Start(0))?;
                    }
                    let expected = seen.fingerprint.size;
                    let size = disk::copy_contents(&mut source, to, expected, &self.sharing)?;
                    // Before the copy gets its mode, which says that it is complete.
                    let again = stat_open(&source)?.fingerprint;
                    if again == seen.fingerprint && size == again.size {
                        Ok(())
                    } else {
                        Err(io::ErrorKind::Interrupted.into())
                    }
                });
                match copied {
                    Ok(print) => prints.push(print),
                    Err(FillError::Source) => break,
                    Err(FillError::Target(error)) => return Err(error),
                }
            }
            if prints.len() == self.targets.len() {
                return Ok(Some(prints));
            }
            if expected.is_some() {
                return Ok(None);
            }
        }
        Ok(None)
    }
}

fn next(receive: &Mutex<Receiver<usize>>) -> Option<usize> {
    receive.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// The folder of the file that was copied last, in the workspace and in every target.
#[derive(Default)]
struct OpenFolders {
    path: Option<Option<WorkPath>>,
    /// None: the workspace has no such folder any more.
    source: Option<OwnedFd>,
    targets: Vec<OwnedFd>,
}

impl OpenFolders {
    fn go_to(&mut self, writing: &Writing<'_>, file: &WorkPath) -> Result<(), ForkError> {
        let folder = file.parent();
        if self.path.as_ref() == Some(&folder) {
            return Ok(());
        }
        self.source = writing.source.parent_of(file).ok();
        self.targets.clear();
        for target in writing.targets {
            let opened = target.root.parent_of(file);
            self.targets.push(opened.map_err(|source| target.failed(file, source))?);
        }
        self.path = Some(folder);
        Ok(())
    }
}

/// Where one file goes.
struct Place<'a> {
    target: &'a ForkTarget,
    folder: &'a OwnedFd,
    file: &'a PlannedFile,
    attributes: CopyAttributes,
}

enum FillError {
    /// The bytes did not come.
    Source,
    Target(ForkError),
}

impl Place<'_> {
    /// Makes the file, unless an interrupted fork has made it.
    fn fill(
        &self,
        write: &mut dyn FnMut(&mut File) -> io::Result<()>,
    ) -> Result<Fingerprint, FillError> {
        let name = self.file.path.file_name();
        let failed = |source| FillError::Target(self.target.failed(&self.file.path, source));
        loop {
            let mut has_begun = false;
            let made = disk::make_copy(self.folder, name, self.attributes, |file| {
                has_begun = true;
                write(file)
            });
            match made {
                Ok(file) => return Ok(stat_open(&file).map_err(failed)?.fingerprint),
                Err(error) if has_begun => {
                    // It has mode 0 and would count as unfinished; but nothing may come to complete it.
                    disk::unlink(self.folder, name).map_err(failed)?;
                    return Err(if is_full(&error) { failed(error) } else { FillError::Source });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if let Some(print) = self.existing()? {
                        return Ok(print);
                    }
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// The fingerprint of the file that is there, if it is complete and right. `None`: it was a part of a
    /// file, and is removed.
    fn existing(&self) -> Result<Option<Fingerprint>, FillError> {
        let name = self.file.path.file_name();
        let failed = |source| FillError::Target(self.target.failed(&self.file.path, source));
        let Some(seen) = stat(self.folder, name).map_err(failed)? else { return Ok(None) };
        let is_part = seen.kind == FileType::RegularFile && seen.mode() == 0;
        if is_part {
            disk::unlink(self.folder, name).map_err(failed)?;
            return Ok(None);
        }
        let is_same = match self.file.entry() {
            Some(entry) => {
                let found = look(self.folder, name, &mut Bytes::Hash).map_err(failed)?;
                found.entry == *entry && found.fingerprint == Some(seen.fingerprint)
            }
            // Its bytes are not known. An interrupted fork gave it this time.
            None => {
                let attributes =
                    CopyAttributes { mode: seen.mode(), modified: Some(seen.fingerprint.modified) };
                seen.kind == FileType::RegularFile && attributes == self.attributes
            }
        };
        if is_same {
            Ok(Some(seen.fingerprint))
        } else {
            Err(FillError::Target(in_the_way(self.target, &self.file.path)))
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// `None`: the store has lost the contents, or never had them.
fn bring_from_store(
    workspace: &Workspace,
    target: &ForkTarget,
    file: &PlannedFile,
) -> Result<Option<Fingerprint>, ForkError> {
    let Some(Entry::File { digest, mode, .. }) = file.entry() else { return Ok(None) };
    let failed = |source| target.failed(&file.path, source);
    let folder = &target.root.parent_of(&file.path).map_err(failed)?;
    let attributes = CopyAttributes { mode: *mode, modified: None };
    let place = Place { target, folder, file, attributes };
    let mut cause = None;
    let filled = place.fill(&mut |to| {
        let read = workspace.store.read(digest, &mut |part| io::Write::write_all(to, part));
        read.map_err(|error| {
            let kind = match &error {
                StoreError::Sink { source, .. } => source.kind(),
                _ => io::ErrorKind::Other,
            };
            cause = Some(error);
            kind.into()
        })
    });
    match (filled, cause) {
        (Ok(print), _) => Ok(Some(print)),
        (Err(FillError::Target(error)), _) => Err(error),
        (Err(FillError::Source), Some(error)) if error.is_lost_contents() => Ok(None),
        (Err(FillError::Source), Some(StoreError::Sink { source, .. })) => Err(failed(source)),
        (Err(FillError::Source), Some(error)) => Err(error.into()),
        (Err(FillError::Source), None) => Ok(None),
    }
}
