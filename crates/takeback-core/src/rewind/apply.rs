//! Doing what was promised.
//!
//! Every step looks before it acts, so that doing a half-done plan again finishes it: the present
//! entry is the planned one before (do it), the planned one after (done), or something else (leave
//! it, conflict). What stood in the way is checked *after* it was moved into the stage: if somebody
//! saved in between, it goes back.

pub(crate) mod locks;
mod settle;
mod staging;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use takeback_store::{Entry, Lack, RewindId, Store, WorkPath, at_once};

use self::locks::Closing;
pub(crate) use self::settle::{settle, settle_further};
pub(crate) use self::staging::{stage, to_stage};
use super::helper::Named;
use super::plan::{Plan, Step, Unlocked};
use super::receipt::{Fate, Note, Problem};
use crate::progress::Counter;
use crate::worktree::Root;
use crate::worktree::fingerprint::{Fingerprint, stat};
use crate::worktree::index::folder_of;
use crate::worktree::look::{Bytes, Looked, look};
use crate::worktree::root::{Access, is_no_folder};
use crate::worktree::write::{
    Slot, Stage, StageError, is_unsupported, make_folder, remove_empty_folder, set_file_mode,
    sync_all,
};

/// Folders held open to be made durable together. The more at once, the fewer the times that the disk
/// is waited for; half of what a process may usually have open.
const SYNCED_AT_ONCE: usize = 512;

/// How many files [`Staged::apply`] counts: each is put or removed, then checked.
pub(crate) fn to_apply(plan: &Plan) -> usize {
    2 * plan.actions().filter(|step| !is_of_folder(step)).count()
}

/// Whether a folder comes, goes or changes its mode, and no file.
fn is_of_folder(step: &Step) -> bool {
    step.goal().is_some_and(|goal| match goal {
        Entry::Absent => step.present.is_dir(),
        goal => goal.is_dir(),
    })
}

/// Makes what a step needs as another name of the file at `twin`; whether that is the right one.
fn link_twin(
    root: &Root,
    stage: &Stage,
    number: usize,
    goal: &Entry,
    twin: &WorkPath,
) -> io::Result<bool> {
    match root.parent_of(twin) {
        Ok(folder) => stage.link(number, goal, folder, twin.file_name()),
        Err(_) => Ok(false),
    }
}

/// A promised plan with its stages open.
pub(crate) struct Staged<'a> {
    jobs: Vec<Job<'a>>,
    /// Folders of the workspace that are writable only as long as this runs.
    unlocked: &'a [Unlocked],
    /// Those of them that could not be made what they were.
    left_open: Vec<Problem>,
    /// What a helper may have written. Their slots come after those of the steps.
    named: &'a [Named],
    /// The workspace's first: as long as its stage exists, there may be others to clear.
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

impl Site<'_> {
    fn outside(folder: &[u8], id: RewindId) -> io::Result<Self> {
        let folder = if folder.is_empty() { b"/" } else { folder };
        let root = Root::open(Path::new(std::ffi::OsStr::from_bytes(folder)))?;
        let stage = Stage::open_outside(&root, id)?;
        Ok(Self { root: SiteRoot::Outside(root), stage })
    }

    fn root(&self) -> &Root {
        match &self.root {
            SiteRoot::Workspace(root) => root,
            SiteRoot::Outside(root) => root,
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

impl Job<'_> {
    /// Whether what lies in a slot is nobody's save.
    fn knows(&self, entry: &Entry) -> bool {
        *entry == Entry::Absent || *entry == self.step.present || *entry == self.goal
    }
}

/// What lies in a slot when the rewind is closed.
enum Lies {
    Nothing,
    /// The store has it, or it stands at its place.
    OfNoWorth,
    /// Somebody's, and nowhere else.
    Saved,
}

/// What `look` answers for each number below `count`, by several threads if there are many.
fn look_at_all<T: Send>(count: usize, look: impl Fn(usize) -> T + Sync) -> Vec<T> {
    /// Below this many a thread costs more than it saves.
    const FEWEST: usize = 64;
    let threads = match count {
        ..FEWEST => 1,
        _ => std::thread::available_parallelism().map_or(1, usize::from).min(4),
    };
    let numbers: Vec<usize> = (0..count).collect();
    at_once(&numbers, threads, |number| look(*number))
}

/// Opens the stages as they are, made where they are missing. A folder outside that cannot be used
/// is the misfortune of the steps in it alone.
pub(crate) fn open_stages<'a>(
    root: &'a Root,
    plan: &'a Plan,
    id: RewindId,
) -> Result<Staged<'a>, StageError> {
    let stage = Stage::open_promised(root, id)?;
    let mut staged = Staged {
        jobs: Vec::new(),
        unlocked: &plan.unlocked,
        left_open: Vec::new(),
        named: &plan.named,
        sites: vec![Site { root: SiteRoot::Workspace(root), stage }],
    };
    let mut outside: BTreeMap<Vec<u8>, Result<usize, Fate>> = BTreeMap::new();
    for (number, step) in plan.actions().enumerate() {
        let goal = step.goal().expect("an action has a goal");
        let mut job = Job { step, goal, number, site: 0, path: step.path.clone(), fate: None };
        if step.path.is_outside() {
            let folder = standing_folder(&step.path, plan);
            let below = &step.path.as_bytes()[folder.len() + 1..];
            job.path = WorkPath::new(below).expect("what follows a folder is a plain path");
            let opened = outside.entry(folder.clone()).or_insert_with(|| {
                let site =
                    Site::outside(&folder, id).map_err(|error| Fate::Error(plain_error(&error)))?;
                staged.sites.push(site);
                Ok(staged.sites.len() - 1)
            });
            match opened {
                Ok(site) => job.site = *site,
                Err(fate) => job.fate = Some(fate.clone()),
            }
        }
        staged.jobs.push(job);
    }
    Ok(staged)
}

/// The nearest folder of a path outside that stands before the plan and after it.
fn standing_folder(path: &WorkPath, plan: &Plan) -> Vec<u8> {
    let comes_or_goes = |folder: &WorkPath| {
        plan.actions().any(|step| {
            step.path == *folder
                && (!step.present.is_dir() || step.goal().is_some_and(|goal| !goal.is_dir()))
        })
    };
    let standing = path.ancestors().find(|folder| !comes_or_goes(folder));
    standing.map_or(Vec::new(), |folder| folder.as_bytes().to_vec())
}

impl Staged<'_> {
    /// Does all steps and answers what became of each. In an order in which nothing stands in the
    /// way of anything, and deletions come late: a crash leaves rather too much than too little.
    pub(crate) fn apply(&mut self, store: &dyn Store, counter: Counter<'_>) -> Vec<Fate> {
        let mut order: Vec<usize> = (0..self.jobs.len()).collect();
        order.sort_by_cached_key(|at| self.jobs[*at].path.depth());
        let shallow = order.clone();
        let deep: Vec<usize> = order.into_iter().rev().collect();
        self.unlock();

        let making_room: BTreeSet<WorkPath> = self
            .jobs
            .iter()
            .filter(|job| {
                job.step.present.is_dir() && !job.goal.is_dir() && job.goal != Entry::Absent
            })
            .map(|job| job.step.path.clone())
            .collect();
        for at in &deep {
            let job = &self.jobs[*at];
            let obstructs = job.goal == Entry::Absent
                && !making_room.is_empty()
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
                counter.files(1);
            }
        }
        for at in &shallow {
            if self.jobs[*at].goal == Entry::Absent && !self.jobs[*at].step.present.is_dir() {
                self.run(*at, Self::remove);
                counter.files(1);
            }
        }
        for at in &deep {
            if self.jobs[*at].goal == Entry::Absent && self.jobs[*at].step.present.is_dir() {
                self.run(*at, Self::remove_folder);
            }
        }
        self.set_folder_modes(&deep, Closing::Readable);
        self.sync_folders();
        self.verify(counter);
        self.set_folder_modes(&deep, Closing::Closed);
        self.own_up();
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
        (site.root(), &site.stage)
    }

    fn parent(&self, at: usize) -> io::Result<OwnedFd> {
        self.site(at).0.parent_of(&self.jobs[at].path)
    }

    fn present(&self, at: usize) -> io::Result<Entry> {
        match self.parent(at) {
            Ok(folder) => Ok(look(folder, self.jobs[at].path.file_name(), &mut Bytes::Hash)?.entry),
            Err(error) if is_no_folder(&error) => Ok(Entry::Absent),
            Err(error) => Err(error),
        }
    }

    /// Brings a file or link to its place.
    fn put(&self, at: usize, store: &dyn Store) -> io::Result<Fate> {
        let job = &self.jobs[at];
        let (root, stage) = self.site(at);
        let present = self.present(at)?;
        if present == job.goal {
            return self.settle_displaced(at);
        }
        let moved_away = stage.look(Slot::Old(job.number))?.entry;
        let cleared = present == Entry::Absent
            && (job.step.present.is_dir()
                || moved_away != Entry::Absent
                || job.step.present == Entry::Absent);
        if present != job.step.present && !cleared {
            return Ok(conflict());
        }
        let folder = self.parent(at)?;
        let name = job.path.file_name();
        if job.step.is_mode_only() && !cleared {
            set_file_mode(&folder, name, job.goal.mode().unwrap_or(0o600))?;
            return Ok(Fate::Done);
        }
        let Looked { entry: staged, fingerprint } = stage.look(Slot::New(job.number))?;
        if staged != job.goal {
            match staged {
                Entry::Absent => {}
                staged if staged == job.step.present => stage.discard(Slot::New(job.number))?,
                // Somebody saved the file of which this is but another name.
                _ if self.is_twin(at, fingerprint) => stage.discard(Slot::New(job.number))?,
                // Displaced by an exchange before a crash, and not what the plan knew.
                _ => return Ok(conflict()),
            }
            let is_linked = match &job.step.one_with {
                Some(twin) => link_twin(root, stage, job.number, &job.goal, twin)?,
                None => false,
            };
            if is_linked {
                stage.finish(job.number)?;
            } else {
                let made = stage.make(job.number, &job.goal, store, root, &job.path);
                made.map_err(io::Error::other)?;
            }
        }
        if cleared {
            if moved_away != Entry::Absent && moved_away != job.step.present {
                return self.put_back(at);
            }
            return self.place(at);
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
            Fate::Done => self.place(at),
            other => Ok(other),
        }
    }

    /// Whether a file is the one that a step's is to be one with.
    fn is_twin(&self, at: usize, fingerprint: Option<Fingerprint>) -> bool {
        let (root, _) = self.site(at);
        let Some(twin) = &self.jobs[at].step.one_with else { return false };
        let seen = root.parent_of(twin).and_then(|folder| stat(folder, twin.file_name()));
        let inode = seen.ok().flatten().map(|seen| seen.fingerprint.inode);
        inode.is_some() && inode == fingerprint.map(|print| print.inode)
    }

    /// Gives the goal its name, which nothing has.
    fn place(&self, at: usize) -> io::Result<Fate> {
        let job = &self.jobs[at];
        let (_, stage) = self.site(at);
        match stage.place(Slot::New(job.number), self.parent(at)?, job.path.file_name()) {
            // Somebody saved in the moment in which nothing stood there: theirs stays.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(conflict()),
            Err(error) => {
                if stage.look(Slot::Old(job.number))?.entry != Entry::Absent {
                    self.put_back(at)?;
                }
                Err(error)
            }
            Ok(()) => Ok(Fate::Done),
        }
    }

    /// When the goal is reached: what it displaced must be what the plan knew, else it goes back.
    fn settle_displaced(&self, at: usize) -> io::Result<Fate> {
        let job = &self.jobs[at];
        let (_, stage) = self.site(at);
        let (new, old) = (Slot::New(job.number), Slot::Old(job.number));
        let name = job.path.file_name();
        let displaced = stage.look(new)?.entry;
        if !job.knows(&displaced) {
            stage.exchange(new, self.parent(at)?, name)?;
            return Ok(conflict());
        }
        if job.knows(&stage.look(old)?.entry) {
            return Ok(Fate::Done);
        }
        if job.goal != Entry::Absent && !job.goal.is_dir() {
            if displaced != Entry::Absent {
                stage.discard(new)?;
            }
            stage.take_away(new, self.parent(at)?, name)?;
            if stage.look(new)?.entry != job.goal {
                // Saved twice: the later one stays, the earlier one is kept in the stage.
                stage.place(new, self.parent(at)?, name)?;
                return Ok(conflict());
            }
        }
        self.put_back(at)
    }

    /// Moves a file or link into the stage.
    fn remove(&self, at: usize) -> io::Result<Fate> {
        let job = &self.jobs[at];
        let (_, stage) = self.site(at);
        let slot = Slot::Old(job.number);
        if stage.look(slot)?.entry == Entry::Absent {
            match self.present(at)? {
                Entry::Absent => return Ok(Fate::Done),
                present if present != job.step.present => return Ok(conflict()),
                _ => stage.take_away(slot, self.parent(at)?, job.path.file_name())?,
            }
        }
        if stage.look(slot)?.entry == job.step.present { Ok(Fate::Done) } else { self.put_back(at) }
    }

    /// Somebody saved before it was moved away: it goes back to where it was.
    fn put_back(&self, at: usize) -> io::Result<Fate> {
        let job = &self.jobs[at];
        let (_, stage) = self.site(at);
        match stage.place(Slot::Old(job.number), self.parent(at)?, job.path.file_name()) {
            // Something stands there again: this is kept in the stage.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(conflict()),
        }
    }

    fn make_folder(&self, at: usize) -> io::Result<Fate> {
        let job = &self.jobs[at];
        if self.present(at)?.is_dir() {
            return Ok(Fate::Done);
        }
        match make_folder(self.parent(at)?, job.path.file_name(), job.goal.mode().unwrap_or(0o755))
        {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(conflict()),
            Err(error) => Err(error),
            Ok(()) => Ok(Fate::Done),
        }
    }

    fn remove_folder(&self, at: usize) -> io::Result<Fate> {
        let job = &self.jobs[at];
        let present = self.present(at)?;
        if present == Entry::Absent || present == job.goal {
            return Ok(Fate::Done);
        }
        match remove_empty_folder(self.parent(at)?, job.path.file_name()) {
            Ok(()) => Ok(Fate::Done),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Fate::Done),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => match job.goal {
                Entry::Absent => Ok(Fate::Kept("something else is in it".to_owned())),
                _ => Ok(conflict()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(conflict()),
            Err(error) => Err(error),
        }
    }

    /// Makes durable what was done. If that fails it is done all the same, and not confirmed.
    fn sync_folders(&mut self) {
        let folders: BTreeSet<(usize, &[u8])> = self
            .jobs
            .iter()
            .filter(|job| job.fate == Some(Fate::Done))
            .map(|job| (job.site, folder_of(&job.path)))
            .chain(self.unlocked.iter().map(|folder| (0, folder.path.as_bytes())))
            .collect();
        let folders: Vec<(usize, &[u8])> = folders.into_iter().collect();
        let mut failed: BTreeMap<(usize, Vec<u8>), String> = BTreeMap::new();
        for some in folders.chunks(SYNCED_AT_ONCE) {
            let mut opened = Vec::new();
            let mut names = Vec::new();
            for (site, folder) in some {
                match self.sites[*site].root().folder(folder, Access::Read) {
                    Ok(open) => {
                        opened.push(open);
                        names.push((*site, folder.to_vec()));
                    }
                    // Removed by this very plan, or become something else.
                    Err(error) if is_no_folder(&error) => {}
                    Err(error) => {
                        failed.insert((*site, folder.to_vec()), plain_error(&error));
                    }
                }
            }
            for (name, synced) in names.into_iter().zip(sync_all(&opened)) {
                failed.extend(synced.err().map(|error| (name, plain_error(&error))));
            }
        }
        if failed.is_empty() {
            return;
        }
        for job in self.jobs.iter_mut().filter(|job| job.fate == Some(Fate::Done)) {
            if let Some(why) = failed.get(&(job.site, folder_of(&job.path).to_vec())) {
                job.fate = Some(Fate::Unconfirmed(why.clone()));
            }
        }
    }

    /// A step that failed when its goal was already in place has happened: what is said of it, and what
    /// the log has, is that.
    fn own_up(&mut self) {
        for at in 0..self.jobs.len() {
            let job = &self.jobs[at];
            let Some(Fate::Error(why)) = &job.fate else { continue };
            let why = why.clone();
            let is_placed = job.goal != job.step.present
                && self.present(at).is_ok_and(|present| present == self.jobs[at].goal);
            if is_placed {
                self.jobs[at].fate = Some(Fate::Unconfirmed(why));
            }
        }
    }

    /// Reads everything back. Also looks at what was displaced once more: a program that had the old
    /// file open may have written to it since.
    fn verify(&mut self, counter: Counter<'_>) {
        let as_planned = look_at_all(self.jobs.len(), |at| self.is_as_planned(at).unwrap_or(false));
        for (at, as_planned) in as_planned.into_iter().enumerate() {
            counter.files(u64::from(!is_of_folder(self.jobs[at].step)));
            let was = self.jobs[at].fate.clone();
            let Some(was) = was.filter(|fate| !as_planned && fate.is_in_place()) else { continue };
            let fate = match self.present(at) {
                Ok(present) if present == self.jobs[at].goal => self.settle_displaced(at),
                Ok(Entry::NotCaptured { lack: lack @ Lack::Unreadable }) => {
                    Ok(Fate::Unconfirmed(lack.reason().to_owned()))
                }
                Ok(_) => Ok(Fate::Conflict("it was changed right after the rewind".to_owned())),
                // It was put there; it only cannot be read back now.
                Err(error) => Ok(Fate::Unconfirmed(plain_error(&error))),
            };
            self.jobs[at].fate = Some(match fate {
                Ok(Fate::Done) => was,
                Ok(fate) => fate,
                Err(error) => Fate::Error(plain_error(&error)),
            });
        }
    }

    /// Whether a step is done, and what it displaced is what the plan knew.
    fn is_as_planned(&self, at: usize) -> io::Result<bool> {
        let job = &self.jobs[at];
        let stage = &self.sites[job.site].stage;
        Ok(job.fate.as_ref().is_some_and(Fate::is_in_place)
            && self.present(at)? == job.goal
            && job.knows(&stage.look(Slot::New(job.number))?.entry)
            && job.knows(&stage.look(Slot::Old(job.number))?.entry))
    }

    /// What lies in the slots of a step, and whether it may go.
    fn in_slots(&self, at: usize) -> [(Slot, io::Result<Lies>); 3] {
        let job = &self.jobs[at];
        let stage = &self.sites[job.site].stage;
        [Slot::Part(job.number), Slot::New(job.number), Slot::Old(job.number)].map(|slot| {
            let lies = || -> io::Result<Lies> {
                let entry = stage.look(slot)?.entry;
                Ok(if entry == Entry::Absent {
                    Lies::Nothing
                } else if matches!(slot, Slot::Part(_))
                    || job.knows(&entry)
                    || entry == self.present(at)?
                {
                    Lies::OfNoWorth
                } else {
                    Lies::Saved
                })
            };
            (slot, lies())
        })
    }

    /// Empties and removes the stages. What lies there and is in the store (or was given up), or
    /// stands at its place, goes; anything else stays, and is named.
    pub(crate) fn clean_up(self, store: &dyn Store) -> Left {
        let mut left = Left { problems: Vec::new(), kept: self.clear_named(store) };
        let mut full = BTreeSet::new();
        if !left.kept.is_empty() {
            full.insert(0);
        }
        let mut not_cleared = |job: &Job<'_>, error: String| {
            full.insert(job.site);
            left.problems.push(Problem { path: job.step.path.clone(), error });
        };
        let mut of_no_worth: Vec<Vec<(&Job<'_>, Slot)>> = vec![Vec::new(); self.sites.len()];
        let lying = look_at_all(self.jobs.len(), |at| self.in_slots(at));
        for (job, slots) in self.jobs.iter().zip(lying) {
            for (slot, lies) in slots {
                match lies {
                    Ok(Lies::Nothing) => {}
                    Ok(Lies::OfNoWorth) => of_no_worth[job.site].push((job, slot)),
                    Ok(Lies::Saved) => {
                        let place = self.sites[job.site].stage.place_of(slot);
                        let kept = "a version saved while the rewind ran is kept as";
                        not_cleared(job, format!("{kept} {place}"));
                    }
                    Err(error) => not_cleared(job, plain_error(&error)),
                }
            }
        }
        for (site, slots) in self.sites.iter().zip(of_no_worth) {
            let names: Vec<Slot> = slots.iter().map(|(_, slot)| *slot).collect();
            for ((job, _), discarded) in slots.iter().zip(site.stage.discard_all(&names)) {
                if let Err(error) = discarded {
                    not_cleared(job, plain_error(&error));
                }
            }
        }
        let of_own_folder =
            |error: &io::Error| Problem { path: own_path(), error: plain_error(error) };
        for (at, site) in self.sites.into_iter().enumerate().rev() {
            let Site { root, stage } = site;
            if full.contains(&at) || (at == 0 && !left.problems.is_empty()) {
                // A power cut must not bring back the mark that says that nothing here is anybody's.
                if let Err(error) = stage.sync() {
                    left.problems.push(of_own_folder(&error));
                }
                continue;
            }
            let root = match &root {
                SiteRoot::Workspace(root) => root,
                SiteRoot::Outside(root) => root,
            };
            if let Err(error) = stage.close(root) {
                left.problems.push(of_own_folder(&error));
            }
        }
        left.problems.extend(self.left_open);
        left
    }
}

/// What could not be cleared away.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) problems: Vec<Problem>,
    /// What lay where a helper had written, and is nowhere else.
    pub(crate) kept: Vec<Note>,
}

fn own_path() -> WorkPath {
    WorkPath::new(".takeback").expect("a plain path")
}

const MEANWHILE: &str = "it was changed while the rewind ran";

fn conflict() -> Fate {
    Fate::Conflict(MEANWHILE.to_owned())
}

fn plain_error(error: &io::Error) -> String {
    error.to_string()
}
