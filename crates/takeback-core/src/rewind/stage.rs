//! Staging: every file that a plan will place is made next to its place and verified, before the plan is promised.
//! A full disk or a damaged blob is found here, while nothing has been changed.
//!
//! The contents are durable, the names in the stage are not: a power loss may take them. Then `apply.rs` makes the
//! files again from the store.

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use takeback_store::{Digest, Entry, RewindId, Store, disk};

use super::damage;
use super::error::RewindError;
use super::plan::{Plan, Step};
use super::preview::Preview;
use crate::progress::{Counter, Work};
use crate::workspace::Workspace;
use crate::worktree::Root;
use crate::worktree::write::{Slot, Stage, StageError, clear_stage, not_brought_back};

/// Puts merged contents into the store and makes everything that the plan places in the workspace. What
/// it places outside is only read and verified: a stage there that no promise names could never be found
/// again.
///
/// Returns the contents that the store has lost. If there are any, or it fails, no stage is left and the
/// plan cannot be promised as it is.
pub(super) fn stage(
    workspace: &mut Workspace,
    preview: &Preview,
    id: RewindId,
) -> Result<BTreeSet<Digest>, RewindError> {
    // Merged contents exist nowhere else: the store must have them before a promise refers to them.
    for blob in &preview.plan.merged {
        workspace.store.put(blob.clone())?;
    }
    let absent = damage::absent(&preview.plan, &*workspace.store)?;
    let lost: BTreeSet<Digest> = absent.difference(&preview.lost).copied().collect();
    if preview.plan.leaves_files() || !lost.is_empty() {
        return Ok(lost);
    }
    let work = workspace.ambient.begin(Work::Stage, file_count(&preview.plan));
    let made = make_all(workspace, &preview.plan, id, work.counter());
    drop(work);
    match &made {
        Ok(lost) if lost.is_empty() => {}
        Ok(_) | Err(_) => discard(workspace, id),
    }
    Ok(made?)
}

/// Removes the stage of a rewind that was not promised.
pub(super) fn discard(workspace: &Workspace, id: RewindId) {
    // If it cannot be removed now, the next command does it: the stage has this store's mark.
    drop(clear_stage(&workspace.root, id, &workspace.mark()));
}

/// How many files [`stage`] counts.
fn file_count(plan: &Plan) -> usize {
    plan.actions().filter(|step| step.needs_staging()).count()
}

fn make_all(
    workspace: &Workspace,
    plan: &Plan,
    id: RewindId,
    counter: Counter<'_>,
) -> Result<BTreeSet<Digest>, StageError> {
    let root = &workspace.root;
    // The mark says that nothing in the stage is a user's file yet. It is removed when the promise is
    // being kept: from then on the stage may hold the only copy of something.
    let stage = Stage::make_marked(root, id, &workspace.mark())?;
    let store = &*workspace.store;
    let mut staging = Staging { root, store, stage, counter, lost: BTreeSet::new() };
    let actions: Vec<&Step> = plan.actions().collect();
    let steps = actions.iter().copied().enumerate().filter(|(_, step)| step.needs_staging());
    let (linked, own): (Vec<_>, Vec<_>) = steps.partition(|(_, step)| step.hard_link_of.is_some());
    let mut left = staging.make_in_parallel(&own)?;
    // Hard links come last: the files that they are further names of exist by now.
    left.extend(linked);
    for (number, step) in left {
        staging.make(number, step, &actions)?;
    }
    Ok(staging.lost)
}

/// A stage that is being filled.
struct Staging<'a> {
    root: &'a Root,
    store: &'a dyn Store,
    stage: Stage,
    counter: Counter<'a>,
    /// Contents that the store has lost, as far as they were needed.
    lost: BTreeSet<Digest>,
}

/// A file to be made by the next free thread.
struct PendingFile<'a> {
    number: usize,
    step: &'a Step,
    mode: u32,
    contents: Vec<u8>,
}

impl Staging<'_> {
    fn make(&mut self, number: usize, step: &Step, actions: &[&Step]) -> Result<(), StageError> {
        let goal = step.goal().expect("an action has a goal");
        let is_linked = match &step.hard_link_of {
            Some(twin) => match actions.binary_search_by(|other| other.path.cmp(twin)) {
                Ok(twin) => self.stage.link_slot(number, &goal, Slot::New(twin)),
                Err(_) => self.stage.link_path(number, &goal, self.root, twin),
            }
            .map_err(not_staged)?,
            None => false,
        };
        if is_linked {
            self.stage.finish(number).map_err(not_staged)?;
        } else if !step.path.is_outside() {
            let made = self.stage.make(number, &goal, self.store, (self.root, &step.path));
            or_lost(made, &goal, &mut self.lost)?;
        } else if let Some(digest) = goal.digest() {
            let read = self.store.read(&digest, &mut |_| Ok(()));
            let read = read.map_err(|error| not_brought_back(&step.path, error));
            or_lost(read, &goal, &mut self.lost)?;
        }
        self.counter.files(1);
        Ok(())
    }

    /// Makes small files by several threads while this one reads the store: most of the time goes to
    /// waiting for the disk. Returns the steps that are left to be made one by one.
    ///
    /// Crash points are passed by this thread alone (`pass_make_file`), so that tests can count them.
    fn make_in_parallel<'s>(
        &mut self,
        steps: &[(usize, &'s Step)],
    ) -> Result<Vec<(usize, &'s Step)>, StageError> {
        const THREADS: usize = 8;
        /// Below this many files threads cost more than they save.
        const FEWEST: usize = 4;
        /// Larger files are written as they are read.
        const LARGEST: u64 = 1 << 20;
        if steps.len() < FEWEST || !self.root.has_unnamed_files() {
            return Ok(steps.to_vec());
        }
        let (root, stage, counter) = (self.root, &self.stage, self.counter);
        let left = Mutex::new(Vec::new());
        let leave = |number, step| {
            left.lock().unwrap_or_else(PoisonError::into_inner).push((number, step));
        };
        // Bounded: only a few small files are in memory at once, however large the plan is.
        let (send, receive) = sync_channel::<PendingFile<'s>>(THREADS);
        let receive = Mutex::new(receive);
        let work = || {
            let take = || receive.lock().unwrap_or_else(PoisonError::into_inner).recv();
            while let Ok(PendingFile { number, step, mode, contents }) = take() {
                match stage.make_of(number, mode, &contents, (root, &step.path)) {
                    Ok(()) => counter.files(1),
                    // Made once more, alone: that reports what is wrong.
                    Err(_) => leave(number, step),
                }
            }
        };
        std::thread::scope(|scope| {
            let start = |_| Builder::new().spawn_scoped(scope, work).ok();
            let threads = (0..THREADS.min(steps.len() / 2)).map_while(start).count();
            // Moved in here so that it is dropped on every way out: that ends the threads.
            let send = send;
            for (number, step) in steps {
                match step.goal() {
                    Some(goal @ Entry::File { digest, size, mode })
                        if threads > 0 && size <= LARGEST && !step.path.is_outside() =>
                    {
                        let mut contents = Vec::new();
                        let read = self.store.read(&digest, &mut |part| {
                            contents.extend_from_slice(part);
                            Ok(())
                        });
                        let read = read.map_err(|error| not_brought_back(&step.path, error));
                        if !or_lost(read, &goal, &mut self.lost)? {
                            continue;
                        }
                        disk::pass_make_file().map_err(not_staged)?;
                        // Cannot fail: the receiver lives longer than this scope.
                        drop(send.send(PendingFile { number: *number, step, mode, contents }));
                    }
                    _ => leave(*number, step),
                }
            }
            Ok(())
        })?;
        Ok(left.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Notes contents that the store has lost and continues; whether they were there.
fn or_lost(
    made: Result<(), StageError>,
    goal: &Entry,
    lost: &mut BTreeSet<Digest>,
) -> Result<bool, StageError> {
    match (made, goal.digest()) {
        (Err(StageError::Contents { source, .. }), Some(digest)) if source.is_lost_contents() => {
            lost.insert(digest);
            Ok(false)
        }
        (made, _) => made.map(|()| true),
    }
}

fn not_staged(source: io::Error) -> StageError {
    StageError::Disk { path: ".takeback".to_owned(), source }
}
