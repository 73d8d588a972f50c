//! Applying a promised plan: the steps in an order that a crash cannot tear, then the moves of each step.
//!
//! Every step looks before it acts, so that applying a half-done plan again finishes it: at the path is
//! what the plan saw (do it), the goal (done), or something else (leave it, conflict).
//!
//! Hazards that the order within each move is there for:
//! - Another program may save the file at any moment. A look followed by a rename can lose that save, so
//!   what was displaced is looked at afterwards, in the stage, where no other program writes. If it is not what
//!   the plan saw, it is moved back. So no check is ever older than the move that relies on it.
//! - A crash may come after any call. The slots `new-n` and `old-n` then say how far the step had come:
//!   the goal in `new-n` is not placed yet; anything else in it was displaced by an exchange; `old-n` was
//!   moved away.
//! - A file may never exist nowhere. Only what the store has, or what exists under another name, is ever
//!   discarded from a slot.

mod clear;
pub(super) mod folder_modes;
mod native_paths;
mod open;

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;

use takeback_store::{Entry, Store, WorkPath, map_in_parallel};

pub(super) use self::clear::StageLeftovers;
use self::folder_modes::ModePass;
pub(super) use self::native_paths::{put_back_native, resume_native};
use super::native::NativePath;
use super::plan::{Plan, Step, UnlockedFolder};
use super::receipt::{Problem, StepOutcome};
use crate::progress::Counter;
use crate::worktree::Root;
use crate::worktree::fingerprint::{Fingerprint, stat};
use crate::worktree::look::{Bytes, LookResult, look};
use crate::worktree::root::is_no_folder;
use crate::worktree::write::{
    Slot, Stage, is_unsupported, make_folder, remove_empty_folder, set_file_mode,
};

/// A promised plan that is being applied, with its stages open.
pub(super) struct PlanRun<'a> {
    pub(super) actions: Vec<Action<'a>>,
    /// Folders of the workspace that are writable only while this runs.
    pub(super) unlocked: &'a [UnlockedFolder],
    /// Those of them that could not get their modes back.
    left_open: Vec<Problem>,
    /// What a native restore may have written. Their slots come after those of the actions.
    native: &'a [NativePath],
    /// The workspace's first: while its stage exists, there may be others to clear.
    sites: Vec<StageSite<'a>>,
}

/// One step that changes something.
pub(super) struct Action<'a> {
    pub(super) step: &'a Step,
    pub(super) goal: Entry,
    /// Its place among the plan's actions, by which its slots in the stage are named.
    pub(super) number: usize,
    pub(super) site: usize,
    /// Its path from the site's root.
    pub(super) path: WorkPath,
    pub(super) outcome: Option<StepOutcome>,
}

/// A folder with a stage of its own: the workspace, or one outside that holds a file of the plan.
struct StageSite<'a> {
    root: SiteRoot<'a>,
    stage: Stage,
}

enum SiteRoot<'a> {
    Workspace(&'a Root),
    Outside(Root),
}

impl PlanRun<'_> {
    /// Does all steps, in an order in which no step is in the way of another: parents are made before
    /// children, and folders are removed deepest first. Deletions come late: a crash leaves too much
    /// rather than too little.
    pub(super) fn apply(&mut self, store: &dyn Store, counter: Counter<'_>) {
        let deep = self.deepest_first();
        let shallow: Vec<usize> = deep.iter().rev().copied().collect();
        self.unlock();
        // The one exception: an entry of another kind has to go before the goal can take its place.
        self.make_room(&deep);
        for at in &shallow {
            if self.actions[*at].goal.is_dir() {
                self.act_first_half(*at, Self::make_folder);
            }
        }
        for at in &shallow {
            if matches!(self.actions[*at].goal, Entry::File { .. } | Entry::Symlink { .. }) {
                self.act(*at, |run, at| run.put(at, store));
                counter.files(1);
            }
        }
        for at in &shallow {
            if self.actions[*at].goal == Entry::Absent && !self.actions[*at].step.present.is_dir() {
                self.act(*at, Self::remove);
                counter.files(1);
            }
        }
        for at in &deep {
            if self.actions[*at].goal == Entry::Absent && self.actions[*at].step.present.is_dir() {
                self.act(*at, Self::remove_folder);
            }
        }
        // A folder's own mode is set when everything in it is done: the mode may forbid writing there.
        self.set_folder_modes(&deep, ModePass::Readable);
    }

    pub(super) fn deepest_first(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.actions.len()).collect();
        order.sort_by_cached_key(|at| self.actions[*at].path.depth());
        order.reverse();
        order
    }

    /// Removes what is in the way of another kind of entry: everything in a folder that becomes a file,
    /// and files that become folders.
    fn make_room(&mut self, deep: &[usize]) {
        let actions = self.actions.iter();
        let replaced = actions.filter(|action| {
            action.step.present.is_dir() && !action.goal.is_dir() && action.goal != Entry::Absent
        });
        let making_room: BTreeSet<WorkPath> =
            replaced.map(|action| action.step.path.clone()).collect();
        for at in deep {
            let action = &self.actions[*at];
            let obstructs = action.goal == Entry::Absent
                && !making_room.is_empty()
                && action.step.path.ancestors().any(|folder| making_room.contains(&folder));
            let becomes_folder = action.goal.is_dir() && !action.step.present.is_dir();
            if obstructs && action.step.present.is_dir() {
                self.act(*at, Self::remove_folder);
            } else if obstructs {
                self.act(*at, Self::remove);
            } else if becomes_folder && action.step.present != Entry::Absent {
                self.act_first_half(*at, Self::remove);
            } else if making_room.contains(&action.step.path) {
                self.act_first_half(*at, Self::remove_folder);
            }
        }
    }

    /// Does a step unless it already has an outcome. An error ends only this step: the plan was promised,
    /// so the others still have to be done.
    fn act(&mut self, at: usize, step: impl Fn(&Self, usize) -> io::Result<StepOutcome>) {
        if self.actions[at].outcome.is_none() {
            let outcome =
                step(self, at).unwrap_or_else(|error| StepOutcome::Error(plain_error(&error)));
            self.actions[at].outcome = Some(outcome);
        }
    }

    /// As [`Self::act`], for a part of a step, after which the step is not done yet.
    fn act_first_half(
        &mut self,
        at: usize,
        step: impl Fn(&Self, usize) -> io::Result<StepOutcome>,
    ) {
        self.act(at, step);
        if self.actions[at].outcome == Some(StepOutcome::Done) {
            self.actions[at].outcome = None;
        }
    }
}

/// The moves of a single step.
impl PlanRun<'_> {
    /// Puts a file or link in its place.
    fn put(&self, at: usize, store: &dyn Store) -> io::Result<StepOutcome> {
        let action = &self.actions[at];
        let (root, stage) = self.site(at);
        let present = self.present(at)?;
        if present == action.goal {
            return self.settle_displaced(at);
        }
        let moved_away = stage.look(Slot::Old(action.number))?.entry;
        // Nothing at the path, as expected: it was empty before, its folder was removed to make room, or
        // this step (before a crash, or without exchange) has moved the old file to `old-n`.
        let cleared = present == Entry::Absent
            && (action.step.present.is_dir()
                || moved_away != Entry::Absent
                || action.step.present == Entry::Absent);
        if present != action.step.present && !cleared {
            return Ok(conflict());
        }
        let folder = self.parent(at)?;
        let name = action.path.file_name();
        // Set in place: the file stays the same file for programs that have it open.
        if action.step.is_mode_only() && !cleared {
            set_file_mode(&folder, name, action.goal.mode().unwrap_or(0o600))?;
            return Ok(StepOutcome::Done);
        }
        let LookResult { entry: staged, fingerprint } = stage.look(Slot::New(action.number))?;
        if staged != action.goal {
            // Not made yet (outside the workspace), lost in a power cut, or no longer the goal.
            match staged {
                Entry::Absent => {}
                // Displaced by an exchange that was then taken back. The store has it.
                staged if staged == action.step.present => {
                    stage.discard(Slot::New(action.number))?;
                }
                // Another program saved the file that this is a hard link to.
                _ if self.is_twin(at, fingerprint) => stage.discard(Slot::New(action.number))?,
                // A save that an exchange displaced before a crash. It must not be overwritten.
                _ => return Ok(conflict()),
            }
            let is_linked = match &action.step.hard_link_of {
                Some(twin) => stage.link_path(action.number, &action.goal, root, twin)?,
                None => false,
            };
            if is_linked {
                stage.finish(action.number)?;
            } else {
                let made = stage.make(action.number, &action.goal, store, (root, &action.path));
                made.map_err(io::Error::other)?;
            }
        }
        if cleared {
            // Saved between the look and the move: the save returns to its place.
            if moved_away != Entry::Absent && moved_away != action.step.present {
                return self.put_back(at);
            }
            return self.place(at);
        }
        if root.can_exchange() {
            match stage.exchange(Slot::New(action.number), &folder, name) {
                Ok(()) => return self.settle_displaced(at),
                // Another program removed the file after the look.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(conflict()),
                Err(error) if is_unsupported(&error) => root.without_exchange(),
                Err(error) => return Err(error),
            }
        }
        // Without exchange nothing is at the path for a moment; a crash then leaves the file in `old-n`.
        match self.remove(at)? {
            StepOutcome::Done => self.place(at),
            other => Ok(other),
        }
    }

    /// Whether a file in the stage is a hard link to the file that the step's goal is linked with.
    fn is_twin(&self, at: usize, fingerprint: Option<Fingerprint>) -> bool {
        let (root, _) = self.site(at);
        let Some(twin) = &self.actions[at].step.hard_link_of else { return false };
        let seen = root.parent_of(twin).and_then(|folder| stat(folder, twin.file_name()));
        let inode = seen.ok().flatten().map(|seen| seen.fingerprint.inode);
        inode.is_some() && inode == fingerprint.map(|print| print.inode)
    }

    /// Places the goal where nothing is. Never replaces.
    fn place(&self, at: usize) -> io::Result<StepOutcome> {
        let action = &self.actions[at];
        let (_, stage) = self.site(at);
        match stage.place(Slot::New(action.number), self.parent(at)?, action.path.file_name()) {
            // Another program saved a file there in the meantime: it stays.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(conflict()),
            Err(error) => {
                // The path must not stay empty.
                if stage.look(Slot::Old(action.number))?.entry != Entry::Absent {
                    self.put_back(at)?;
                }
                Err(error)
            }
            Ok(()) => Ok(StepOutcome::Done),
        }
    }

    /// The goal is in place: checks that what it displaced is what the plan saw. If another program had
    /// saved the file just before, that save returns to its place.
    pub(super) fn settle_displaced(&self, at: usize) -> io::Result<StepOutcome> {
        let action = &self.actions[at];
        let (_, stage) = self.site(at);
        let (new, old) = (Slot::New(action.number), Slot::Old(action.number));
        let name = action.path.file_name();
        let displaced = stage.look(new)?.entry;
        if !action.knows(&displaced) {
            stage.exchange(new, self.parent(at)?, name)?;
            return Ok(conflict());
        }
        // `old-n` is filled by a move without exchange, perhaps before a crash.
        if action.knows(&stage.look(old)?.entry) {
            return Ok(StepOutcome::Done);
        }
        if action.goal != Entry::Absent && !action.goal.is_dir() {
            // The goal has to leave its place before `old-n` can return to it.
            if displaced != Entry::Absent {
                stage.discard(new)?;
            }
            stage.take_away(new, self.parent(at)?, name)?;
            if stage.look(new)?.entry != action.goal {
                // Saved twice: the later save stays, the earlier one is kept in the stage.
                stage.place(new, self.parent(at)?, name)?;
                return Ok(conflict());
            }
        }
        self.put_back(at)
    }

    /// Moves a file or link into the stage. It is unlinked only after the receipt.
    fn remove(&self, at: usize) -> io::Result<StepOutcome> {
        let action = &self.actions[at];
        let (_, stage) = self.site(at);
        let slot = Slot::Old(action.number);
        if stage.look(slot)?.entry == Entry::Absent {
            match self.present(at)? {
                Entry::Absent => return Ok(StepOutcome::Done),
                present if present != action.step.present => return Ok(conflict()),
                _ => stage.take_away(slot, self.parent(at)?, action.path.file_name())?,
            }
        }
        // Looked at only now that it is in the stage: before the move another program could still save it.
        if stage.look(slot)?.entry == action.step.present {
            Ok(StepOutcome::Done)
        } else {
            self.put_back(at)
        }
    }

    /// Returns to its place what another program saved before it was moved away.
    fn put_back(&self, at: usize) -> io::Result<StepOutcome> {
        let action = &self.actions[at];
        let (_, stage) = self.site(at);
        match stage.place(Slot::Old(action.number), self.parent(at)?, action.path.file_name()) {
            // The path is taken again: both saves exist, this one in the stage.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(conflict()),
        }
    }

    fn make_folder(&self, at: usize) -> io::Result<StepOutcome> {
        let action = &self.actions[at];
        if self.present(at)?.is_dir() {
            return Ok(StepOutcome::Done);
        }
        match make_folder(
            self.parent(at)?,
            action.path.file_name(),
            action.goal.mode().unwrap_or(0o755),
        ) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(conflict()),
            Err(error) => Err(error),
            Ok(()) => Ok(StepOutcome::Done),
        }
    }

    fn remove_folder(&self, at: usize) -> io::Result<StepOutcome> {
        let action = &self.actions[at];
        let present = self.present(at)?;
        if present == Entry::Absent || present == action.goal {
            return Ok(StepOutcome::Done);
        }
        // Never recursive: the kernel refuses a folder into which another program has put something.
        match remove_empty_folder(self.parent(at)?, action.path.file_name()) {
            Ok(()) => Ok(StepOutcome::Done),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(StepOutcome::Done),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => match action.goal {
                Entry::Absent => Ok(StepOutcome::Kept("something else is in it".to_owned())),
                _ => Ok(conflict()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(conflict()),
            Err(error) => Err(error),
        }
    }
}

impl PlanRun<'_> {
    pub(super) fn site(&self, at: usize) -> (&Root, &Stage) {
        let site = &self.sites[self.actions[at].site];
        (site.root(), &site.stage)
    }

    pub(super) fn root_of(&self, site: usize) -> &Root {
        self.sites[site].root()
    }

    fn parent(&self, at: usize) -> io::Result<OwnedFd> {
        self.site(at).0.parent_of(&self.actions[at].path)
    }

    pub(super) fn present(&self, at: usize) -> io::Result<Entry> {
        match self.parent(at) {
            Ok(folder) => {
                Ok(look(folder, self.actions[at].path.file_name(), &mut Bytes::Hash)?.entry)
            }
            Err(error) if is_no_folder(&error) => Ok(Entry::Absent),
            Err(error) => Err(error),
        }
    }
}

impl StageSite<'_> {
    fn root(&self) -> &Root {
        match &self.root {
            SiteRoot::Workspace(root) => root,
            SiteRoot::Outside(root) => root,
        }
    }
}

impl Action<'_> {
    /// Whether an entry found in a slot is one that the plan knows. Any other is a file that another
    /// program saved.
    pub(super) fn knows(&self, entry: &Entry) -> bool {
        *entry == Entry::Absent || *entry == self.step.present || *entry == self.goal
    }
}

/// How many files [`PlanRun::apply`] and [`PlanRun::verify`] count: each is placed or removed, then checked.
pub(super) fn file_count(plan: &Plan) -> usize {
    2 * plan.actions().filter(|step| !is_of_folder(step)).count()
}

/// Whether the step makes, removes or changes the mode of a folder, and touches no file.
pub(super) fn is_of_folder(step: &Step) -> bool {
    step.goal().is_some_and(|goal| match goal {
        Entry::Absent => step.present.is_dir(),
        goal => goal.is_dir(),
    })
}

/// What `look` returns for each number below `count`, by several threads if there are many.
pub(super) fn look_at_all<T: Send>(count: usize, look: impl Fn(usize) -> T + Sync) -> Vec<T> {
    /// Below this many a thread costs more than it saves.
    const FEWEST: usize = 64;
    let threads = match count {
        ..FEWEST => 1,
        _ => std::thread::available_parallelism().map_or(1, usize::from).min(4),
    };
    let numbers: Vec<usize> = (0..count).collect();
    map_in_parallel(&numbers, threads, |number| look(*number))
}

const CHANGED_WHILE_RUNNING: &str = "it was changed while the rewind ran";

fn conflict() -> StepOutcome {
    StepOutcome::Conflict(CHANGED_WHILE_RUNNING.to_owned())
}

pub(super) fn plain_error(error: &io::Error) -> String {
    error.to_string()
}
