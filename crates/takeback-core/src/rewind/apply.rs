//! Doing what was promised.
//!
//! Every step looks before it acts, so that doing a half-done plan again finishes it: the present
//! entry is the planned one before (do it), the planned one after (done), or something else (leave
//! it, conflict). What stood in the way is checked *after* it was moved into the stage: if somebody
//! saved in between, it goes back.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use takeback_store::{Entry, RewindId, Store, WorkPath};

use super::plan::{Plan, Step};
use super::receipt::Fate;
use crate::worktree::Root;
use crate::worktree::index::folder_of;
use crate::worktree::look::{Bytes, look};
use crate::worktree::root::{Access, is_no_folder};
use crate::worktree::write::{
    Slot, Stage, StageError, is_unsupported, make_folder, remove_empty_folder, set_mode, sync_all,
};

/// A plan with everything ready in its stages.
pub(crate) struct Staged<'a> {
    jobs: Vec<Job<'a>>,
    sites: Vec<Site<'a>>,
}

/// A folder with a stage of its own: the workspace, or one outside that holds a named file.
struct Site<'a> {
    root: SiteRoot<'a>,
    stage: Stage,
}

enum SiteRoot<'a> {
    Workspace(&'a Root),
    Outside(Root),
}

impl SiteRoot<'_> {
    fn get(&self) -> &Root {
        match self {
            Self::Workspace(root) => root,
            Self::Outside(root) => root,
        }
    }
}

/// One step that changes something.
struct Job<'a> {
    step: &'a Step,
    goal: Entry,
    number: usize,
    site: usize,
    /// Its path from the site's root.
    path: WorkPath,
    fate: Option<Fate>,
}

/// Opens the stages and makes ready in them what the plan will place and they do not hold already.
pub(crate) fn stage<'a>(
    root: &'a Root,
    store: &dyn Store,
    plan: &'a Plan,
    id: RewindId,
) -> Result<Staged<'a>, StageError> {
    let staged = open_stages(root, plan, id)?;
    let unsynced = |source| StageError::Disk { path: "the stage".to_owned(), source };
    let mut made = Vec::new();
    for job in staged.jobs.iter().filter(|job| job.needs_staging()) {
        let stage = &staged.sites[job.site].stage;
        let slot = stage.look(Slot::New(job.number)).map_err(failed(&job.step.path))?;
        // After a crash it may hold what an exchange displaced: that must not be lost.
        if slot.entry == Entry::Absent {
            made.extend(stage.make(job.number, &job.step.path, &job.goal, store)?);
        }
        if made.len() >= SYNCED_AT_ONCE {
            sync_all(&made).map_err(unsynced)?;
            made.clear();
        }
    }
    sync_all(&made).map_err(unsynced)?;
    for site in &staged.sites {
        site.stage.sync().map_err(unsynced)?;
    }
    Ok(staged)
}

/// Files or folders held open to be made durable together.
const SYNCED_AT_ONCE: usize = 64;

fn failed(path: &WorkPath) -> impl FnOnce(io::Error) -> StageError + use<> {
    let path = path.display();
    move |source| StageError::Disk { path, source }
}

/// Opens the stages as they are.
pub(crate) fn open_stages<'a>(root: &'a Root, plan: &'a Plan, id: RewindId) -> Result<Staged<'a>, StageError> {
    let mut staged = Staged { jobs: Vec::new(), sites: Vec::new() };
    let mut outside: Vec<(Vec<u8>, usize)> = Vec::new();
    let mut inside = None;
    for (number, step) in plan.actions().enumerate() {
        let goal = step.goal().expect("an action has a goal");
        let (site, path) = if step.path.is_outside() {
            let folder = folder_of(&step.path).to_vec();
            let known = outside.iter().find(|(known, _)| *known == folder).map(|(_, site)| *site);
            let site = match known {
                Some(site) => site,
                None => {
                    let at = if folder.is_empty() { b"/" } else { folder.as_slice() };
                    let root = Root::open(Path::new(std::ffi::OsStr::from_bytes(at)))
                        .map_err(failed(&step.path))?;
                    let stage = Stage::open_outside(&root, id).map_err(failed(&step.path))?;
                    staged.sites.push(Site { root: SiteRoot::Outside(root), stage });
                    outside.push((folder, staged.sites.len() - 1));
                    staged.sites.len() - 1
                }
            };
            (site, WorkPath::new(step.path.file_name()).expect("a file's name is a plain path"))
        } else {
            let site = match inside {
                Some(site) => site,
                None => {
                    let stage = Stage::open(root, id).map_err(failed(&step.path))?;
                    staged.sites.push(Site { root: SiteRoot::Workspace(root), stage });
                    *inside.insert(staged.sites.len() - 1)
                }
            };
            (site, step.path.clone())
        };
        staged.jobs.push(Job { step, goal, number, site, path, fate: None });
    }
    Ok(staged)
}

impl Job<'_> {
    fn needs_staging(&self) -> bool {
        matches!(self.goal, Entry::File { .. } | Entry::Symlink { .. }) && !self.is_mode_only()
    }

    /// Same bytes, other permissions: set in place, so that the file stays the same file.
    fn is_mode_only(&self) -> bool {
        self.goal.digest().is_some() && self.goal.digest() == self.step.present.digest()
    }
}

impl Staged<'_> {
    /// Does all steps and answers what became of each. In an order in which nothing stands in the
    /// way of anything, and deletions come late: a crash leaves rather too much than too little.
    pub(crate) fn apply(&mut self, store: &dyn Store) -> Vec<Fate> {
        let mut order: Vec<usize> = (0..self.jobs.len()).collect();
        order.sort_by_key(|at| self.jobs[*at].path.depth());
        let shallow = order.clone();
        let deep: Vec<usize> = order.into_iter().rev().collect();

        let making_room: BTreeSet<WorkPath> = self
            .jobs
            .iter()
            .filter(|job| job.step.present.is_dir() && !job.goal.is_dir() && job.goal != Entry::Absent)
            .map(|job| job.step.path.clone())
            .collect();
        for at in &deep {
            let job = &self.jobs[*at];
            let obstructs = job.goal == Entry::Absent
                && job.step.path.ancestors().any(|folder| making_room.contains(&folder));
            let becomes_folder = job.goal.is_dir() && !job.step.present.is_dir();
            if obstructs && job.step.present.is_dir() {
                self.run(*at, Self::remove_folder);
            } else if obstructs {
                self.run(*at, Self::remove);
            } else if becomes_folder && job.step.present != Entry::Absent {
                self.run_unsettled(*at, Self::remove);
            } else if making_room.contains(&job.step.path) {
                self.run_unsettled(*at, Self::remove_folder);
            }
        }
        for at in &shallow {
            if self.jobs[*at].goal.is_dir() {
                self.run_unsettled(*at, Self::make_folder);
            }
        }
        for at in &shallow {
            if matches!(self.jobs[*at].goal, Entry::File { .. } | Entry::Symlink { .. }) {
                self.run(*at, |staged, at| staged.put(at, store));
            }
        }
        for at in &shallow {
            if self.jobs[*at].goal == Entry::Absent && !self.jobs[*at].step.present.is_dir() {
                self.run(*at, Self::remove);
            }
        }
        for at in &deep {
            if self.jobs[*at].goal == Entry::Absent && self.jobs[*at].step.present.is_dir() {
                self.run(*at, Self::remove_folder);
            }
        }
        for at in &deep {
            if self.jobs[*at].goal.is_dir() {
                self.run(*at, Self::set_folder_mode);
            }
        }
        self.sync_folders();
        self.verify();
        self.jobs.iter().map(|job| job.fate.clone().unwrap_or(Fate::Done)).collect()
    }

    fn run(&mut self, at: usize, act: impl Fn(&Self, usize) -> io::Result<Fate>) {
        if self.jobs[at].fate.is_none() {
            let fate = act(self, at).unwrap_or_else(|error| Fate::Error(plain_error(&error)));
            self.jobs[at].fate = Some(fate);
        }
    }

    /// As [`Self::run`], for an act after which the step is not yet done.
    fn run_unsettled(&mut self, at: usize, act: impl Fn(&Self, usize) -> io::Result<Fate>) {
        self.run(at, act);
        if self.jobs[at].fate == Some(Fate::Done) {
            self.jobs[at].fate = None;
        }
    }

    fn site(&self, at: usize) -> (&Root, &Stage) {
        let site = &self.sites[self.jobs[at].site];
        (site.root.get(), &site.stage)
    }

    fn parent(&self, at: usize) -> io::Result<OwnedFd> {
        self.site(at).0.parent_of(&self.jobs[at].path)
    }

    fn present(&self, at: usize) -> io::Result<Entry> {
        let folder = self.parent(at)?;
        Ok(look(folder, self.jobs[at].path.file_name(), &mut Bytes::Hash)?.entry)
    }

    /// Brings a file or link to its place.
    fn put(&self, at: usize, store: &dyn Store) -> io::Result<Fate> {
        let job = &self.jobs[at];
        let (root, stage) = self.site(at);
        let folder = self.parent(at)?;
        let name = job.path.file_name();
        let present = self.present(at)?;
        if present == job.goal {
            return self.settle_displaced(at);
        }
        let moved_away = stage.look(Slot::Old(job.number))?.entry;
        let cleared = present == Entry::Absent
            && (job.step.present.is_dir() || moved_away != Entry::Absent || job.step.present == Entry::Absent);
        if present != job.step.present && !cleared {
            return Ok(conflict());
        }
        if job.is_mode_only() && !cleared {
            set_mode(&folder, name, job.goal.mode().unwrap_or(0o600))?;
            return Ok(Fate::Done);
        }
        if stage.look(Slot::New(job.number))?.entry != job.goal {
            let made = stage.make(job.number, &job.step.path, &job.goal, store);
            sync_all(made.map_err(io::Error::other)?.as_slice())?;
        }
        if cleared {
            if moved_away != Entry::Absent && moved_away != job.step.present {
                return self.put_back(at);
            }
            return match stage.place(Slot::New(job.number), &folder, name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(conflict()),
                Err(error) => Err(error),
                Ok(()) => Ok(Fate::Done),
            };
        }
        if root.can_exchange() {
            match stage.exchange(Slot::New(job.number), &folder, name) {
                Ok(()) => return self.settle_displaced(at),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(conflict()),
                Err(error) if is_unsupported(&error) => root.without_exchange(),
                Err(error) => return Err(error),
            }
        }
        match self.remove(at)? {
            Fate::Done => {}
            other => return Ok(other),
        }
        match stage.place(Slot::New(job.number), &folder, name) {
            // Somebody saved in the moment in which nothing stood there: theirs stays.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(conflict()),
            Err(error) => Err(error),
            Ok(()) => Ok(Fate::Done),
        }
    }

    /// After the goal took its place: what it displaced must be what the plan knew.
    fn settle_displaced(&self, at: usize) -> io::Result<Fate> {
        let job = &self.jobs[at];
        let (_, stage) = self.site(at);
        let displaced = stage.look(Slot::New(job.number))?.entry;
        if displaced == Entry::Absent || displaced == job.step.present || displaced == job.goal {
            return Ok(Fate::Done);
        }
        stage.exchange(Slot::New(job.number), self.parent(at)?, job.path.file_name())?;
        Ok(conflict())
    }

    /// Moves a file or link into the stage.
    fn remove(&self, at: usize) -> io::Result<Fate> {
        let job = &self.jobs[at];
        let (_, stage) = self.site(at);
        let slot = Slot::Old(job.number);
        if stage.look(slot)?.entry == Entry::Absent {
            match self.present(at) {
                Ok(Entry::Absent) => return Ok(Fate::Done),
                Ok(present) if present != job.step.present => return Ok(conflict()),
                Ok(_) => stage.take_away(slot, self.parent(at)?, job.path.file_name())?,
                Err(error) if is_no_folder(&error) => return Ok(Fate::Done),
                Err(error) => return Err(error),
            }
        }
        if stage.look(slot)?.entry == job.step.present { Ok(Fate::Done) } else { self.put_back(at) }
    }

    /// Somebody saved before it was moved away: it goes back to where it was.
    fn put_back(&self, at: usize) -> io::Result<Fate> {
        let job = &self.jobs[at];
        let (_, stage) = self.site(at);
        match stage.place(Slot::Old(job.number), self.parent(at)?, job.path.file_name()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Fate::Error(format!(
                "it was saved twice while the rewind ran; the earlier save lies in .takeback as old-{}",
                job.number
            ))),
            Err(error) => Err(error),
            Ok(()) => Ok(conflict()),
        }
    }

    fn make_folder(&self, at: usize) -> io::Result<Fate> {
        let job = &self.jobs[at];
        if self.present(at)?.is_dir() {
            return Ok(Fate::Done);
        }
        match make_folder(self.parent(at)?, job.path.file_name(), job.goal.mode().unwrap_or(0o755)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(conflict()),
            Err(error) => Err(error),
            Ok(()) => Ok(Fate::Done),
        }
    }

    fn remove_folder(&self, at: usize) -> io::Result<Fate> {
        let job = &self.jobs[at];
        let folder = match self.parent(at) {
            Err(error) if is_no_folder(&error) => return Ok(Fate::Done),
            opened => opened?,
        };
        match remove_empty_folder(folder, job.path.file_name()) {
            Ok(()) => Ok(Fate::Done),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Fate::Done),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                Ok(Fate::Kept("something else is in it".to_owned()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(conflict()),
            Err(error) => Err(error),
        }
    }

    fn set_folder_mode(&self, at: usize) -> io::Result<Fate> {
        let job = &self.jobs[at];
        let present = self.present(at)?;
        if !present.is_dir() {
            return Ok(conflict());
        }
        if present != job.goal {
            set_mode(self.parent(at)?, job.path.file_name(), job.goal.mode().unwrap_or(0o755))?;
        }
        Ok(Fate::Done)
    }

    /// Makes durable what was done. If that fails, nothing that was done counts as done.
    fn sync_folders(&mut self) {
        let folders: BTreeSet<(usize, &[u8])> = self
            .jobs
            .iter()
            .filter(|job| job.fate == Some(Fate::Done))
            .map(|job| (job.site, folder_of(&job.path)))
            .collect();
        let folders: Vec<(usize, &[u8])> = folders.into_iter().collect();
        let synced = folders.chunks(SYNCED_AT_ONCE).try_for_each(|some| {
            let mut opened = Vec::new();
            for (site, folder) in some {
                match self.sites[*site].root.get().folder(folder, Access::Read) {
                    Ok(folder) => opened.push(folder),
                    // Removed by this very plan, or become something else.
                    Err(error) if is_no_folder(&error) => {}
                    Err(error) => return Err(error),
                }
            }
            sync_all(&opened)
        });
        if let Err(error) = synced {
            for job in self.jobs.iter_mut().filter(|job| job.fate == Some(Fate::Done)) {
                job.fate = Some(Fate::Error(plain_error(&error)));
            }
        }
    }

    /// Reads everything back. Also looks at what was displaced once more: a program that had the old
    /// file open may have written to it since.
    fn verify(&mut self) {
        for at in 0..self.jobs.len() {
            if self.jobs[at].fate != Some(Fate::Done) {
                continue;
            }
            let fate = match self.present(at) {
                Ok(present) if present == self.jobs[at].goal => match self.jobs[at].goal {
                    Entry::File { .. } | Entry::Symlink { .. } => self.settle_displaced(at),
                    _ => Ok(Fate::Done),
                },
                Ok(_) => Ok(Fate::Conflict("it was changed right after the rewind".to_owned())),
                // Its folder is gone, or became something else.
                Err(error) if is_no_folder(&error) => {
                    let gone = self.jobs[at].goal == Entry::Absent;
                    Ok(if gone { Fate::Done } else { Fate::Error("it is not there".to_owned()) })
                }
                Err(error) => Err(error),
            };
            self.jobs[at].fate = Some(fate.unwrap_or_else(|error| Fate::Error(plain_error(&error))));
        }
    }

    /// Empties and removes the stages. What lies there and is in the store (or was given up) goes;
    /// anything else stays, and is named.
    pub(crate) fn clean_up(self, workspace_root: &Root) -> Vec<(WorkPath, String)> {
        let mut left = Vec::new();
        for job in &self.jobs {
            let stage = &self.sites[job.site].stage;
            for slot in [Slot::New(job.number), Slot::Old(job.number)] {
                let outcome = stage.look(slot).and_then(|looked| match looked.entry {
                    Entry::Absent => Ok(true),
                    entry if entry == job.goal || entry == job.step.present => {
                        stage.discard(slot).map(|()| true)
                    }
                    _ => Ok(false),
                });
                match outcome {
                    Ok(true) => {}
                    Ok(false) => left.push((
                        job.step.path.clone(),
                        "a version saved while the rewind ran is kept in the stage".to_owned(),
                    )),
                    Err(error) => left.push((job.step.path.clone(), plain_error(&error))),
                }
            }
        }
        if left.is_empty() {
            for site in self.sites {
                let root = match &site.root {
                    SiteRoot::Workspace(_) => workspace_root,
                    SiteRoot::Outside(root) => root,
                };
                if let Err(error) = site.stage.close(root) {
                    let path = WorkPath::new(".takeback").expect("a plain path");
                    left.push((path, plain_error(&error)));
                }
            }
        }
        left
    }
}

fn conflict() -> Fate {
    Fate::Conflict("it was changed while the rewind ran".to_owned())
}

fn plain_error(error: &io::Error) -> String {
    error.to_string()
}
