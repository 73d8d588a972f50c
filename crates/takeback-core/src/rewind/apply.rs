//! Applying a promised plan.
//!
//! Every step looks before it acts, so that applying a half-done plan again finishes it: at the path is
//! what the plan saw (do it), the goal (done), or something else (leave it, conflict). What a step
//! displaces is checked *after* it was moved into the stage: if another program saved the file in between,
//! it is moved back. So no check is ever older than the move that relies on it.

mod clear;
pub(super) mod folder_modes;
mod moves;
mod native_paths;
mod verify;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use takeback_store::{Entry, RewindId, Store, WorkPath, map_in_parallel};

use self::folder_modes::ModePass;
pub(super) use self::native_paths::{put_back_native, resume_native};
use super::native::NativePath;
use super::plan::{Plan, Step, UnlockedFolder};
use super::receipt::{Note, Problem, StepOutcome};
use crate::progress::Counter;
use crate::worktree::Root;
use crate::worktree::look::{Bytes, look};
use crate::worktree::root::is_no_folder;
use crate::worktree::write::{Slot, Stage, StageError};

/// How many files [`Stages::apply`] and [`Stages::verify`] count: each is placed or removed, then checked.
pub(super) fn file_count(plan: &Plan) -> usize {
    2 * plan.actions().filter(|step| !is_of_folder(step)).count()
}

/// Whether the step makes, removes or changes the mode of a folder, and touches no file.
fn is_of_folder(step: &Step) -> bool {
    step.goal().is_some_and(|goal| match goal {
        Entry::Absent => step.present.is_dir(),
        goal => goal.is_dir(),
    })
}

/// Makes a step's file a hard link to the file at `twin`; returns whether that has the right contents.
pub(super) fn link_twin(
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
pub(super) struct Stages<'a> {
    actions: Vec<Action<'a>>,
    /// Folders of the workspace that are writable only while this runs.
    unlocked: &'a [UnlockedFolder],
    /// Those of them that could not get their modes back.
    left_open: Vec<Problem>,
    /// What a native restore may have written. Their slots come after those of the actions.
    native: &'a [NativePath],
    /// The workspace's first: while its stage exists, there may be others to clear.
    sites: Vec<StageSite<'a>>,
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

impl StageSite<'_> {
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
struct Action<'a> {
    step: &'a Step,
    goal: Entry,
    /// Its place among the plan's actions, by which its slots in the stage are named.
    number: usize,
    site: usize,
    /// Its path from the site's root.
    path: WorkPath,
    outcome: Option<StepOutcome>,
}

impl Action<'_> {
    /// Whether an entry found in a slot is one that the plan knows. Any other is a file that another
    /// program saved.
    fn knows(&self, entry: &Entry) -> bool {
        *entry == Entry::Absent || *entry == self.step.present || *entry == self.goal
    }
}

/// What `look` returns for each number below `count`, by several threads if there are many.
fn look_at_all<T: Send>(count: usize, look: impl Fn(usize) -> T + Sync) -> Vec<T> {
    /// Below this many a thread costs more than it saves.
    const FEWEST: usize = 64;
    let threads = match count {
        ..FEWEST => 1,
        _ => std::thread::available_parallelism().map_or(1, usize::from).min(4),
    };
    let numbers: Vec<usize> = (0..count).collect();
    map_in_parallel(&numbers, threads, |number| look(*number))
}

/// Opens the stages as they are, made where they are missing. A folder outside that cannot be used
/// fails only the steps in it.
pub(super) fn open_stages<'a>(
    root: &'a Root,
    plan: &'a Plan,
    id: RewindId,
) -> Result<Stages<'a>, StageError> {
    let stage = Stage::open_promised(root, id)?;
    let mut stages = Stages {
        actions: Vec::new(),
        unlocked: &plan.unlocked,
        left_open: Vec::new(),
        native: &plan.named,
        sites: vec![StageSite { root: SiteRoot::Workspace(root), stage }],
    };
    let mut outside: BTreeMap<Vec<u8>, Result<usize, StepOutcome>> = BTreeMap::new();
    for (number, step) in plan.actions().enumerate() {
        let goal = step.goal().expect("an action has a goal");
        let path = step.path.clone();
        let mut action = Action { step, goal, number, site: 0, path, outcome: None };
        if step.path.is_outside() {
            let folder = lasting_folder(&step.path, plan);
            let below = &step.path.as_bytes()[folder.len() + 1..];
            action.path = WorkPath::new(below).expect("what follows a folder is a plain path");
            let opened = outside.entry(folder.clone()).or_insert_with(|| {
                let site = StageSite::outside(&folder, id)
                    .map_err(|error| StepOutcome::Error(plain_error(&error)))?;
                stages.sites.push(site);
                Ok(stages.sites.len() - 1)
            });
            match opened {
                Ok(site) => action.site = *site,
                Err(outcome) => action.outcome = Some(outcome.clone()),
            }
        }
        stages.actions.push(action);
    }
    Ok(stages)
}

/// The nearest folder of a path outside that exists before and after the plan. The stage is in it, so the
/// plan must neither make nor remove it.
fn lasting_folder(path: &WorkPath, plan: &Plan) -> Vec<u8> {
    let comes_or_goes = |folder: &WorkPath| {
        plan.actions().any(|step| {
            step.path == *folder
                && (!step.present.is_dir() || step.goal().is_some_and(|goal| !goal.is_dir()))
        })
    };
    let lasting = path.ancestors().find(|folder| !comes_or_goes(folder));
    lasting.map_or(Vec::new(), |folder| folder.as_bytes().to_vec())
}

impl Stages<'_> {
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
                self.run_first_half(*at, Self::make_folder);
            }
        }
        for at in &shallow {
            if matches!(self.actions[*at].goal, Entry::File { .. } | Entry::Symlink { .. }) {
                self.run(*at, |stages, at| stages.put(at, store));
                counter.files(1);
            }
        }
        for at in &shallow {
            if self.actions[*at].goal == Entry::Absent && !self.actions[*at].step.present.is_dir() {
                self.run(*at, Self::remove);
                counter.files(1);
            }
        }
        for at in &deep {
            if self.actions[*at].goal == Entry::Absent && self.actions[*at].step.present.is_dir() {
                self.run(*at, Self::remove_folder);
            }
        }
        // A folder's own mode is set when everything in it is done: the mode may forbid writing there.
        self.set_folder_modes(&deep, ModePass::Readable);
    }

    fn deepest_first(&self) -> Vec<usize> {
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
                self.run(*at, Self::remove_folder);
            } else if obstructs {
                self.run(*at, Self::remove);
            } else if becomes_folder && action.step.present != Entry::Absent {
                self.run_first_half(*at, Self::remove);
            } else if making_room.contains(&action.step.path) {
                self.run_first_half(*at, Self::remove_folder);
            }
        }
    }

    /// Runs a step unless it already has an outcome. An error ends only this step: the plan was promised,
    /// so the others still have to be done.
    fn run(&mut self, at: usize, act: impl Fn(&Self, usize) -> io::Result<StepOutcome>) {
        if self.actions[at].outcome.is_none() {
            let outcome =
                act(self, at).unwrap_or_else(|error| StepOutcome::Error(plain_error(&error)));
            self.actions[at].outcome = Some(outcome);
        }
    }

    /// As [`Self::run`], for an act after which the step is not done yet.
    fn run_first_half(&mut self, at: usize, act: impl Fn(&Self, usize) -> io::Result<StepOutcome>) {
        self.run(at, act);
        if self.actions[at].outcome == Some(StepOutcome::Done) {
            self.actions[at].outcome = None;
        }
    }

    fn site(&self, at: usize) -> (&Root, &Stage) {
        let site = &self.sites[self.actions[at].site];
        (site.root(), &site.stage)
    }

    fn parent(&self, at: usize) -> io::Result<OwnedFd> {
        self.site(at).0.parent_of(&self.actions[at].path)
    }

    fn present(&self, at: usize) -> io::Result<Entry> {
        match self.parent(at) {
            Ok(folder) => {
                Ok(look(folder, self.actions[at].path.file_name(), &mut Bytes::Hash)?.entry)
            }
            Err(error) if is_no_folder(&error) => Ok(Entry::Absent),
            Err(error) => Err(error),
        }
    }
}

const CHANGED_WHILE_RUNNING: &str = "it was changed while the rewind ran";

fn conflict() -> StepOutcome {
    StepOutcome::Conflict(CHANGED_WHILE_RUNNING.to_owned())
}

fn plain_error(error: &io::Error) -> String {
    error.to_string()
}
