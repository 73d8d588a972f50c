//! Making ready what a plan will place, before it is promised.

use std::collections::BTreeSet;
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use takeback_store::{Digest, Entry, RewindId, Store, disk};

use super::link_twin;
use crate::progress::Counter;
use crate::rewind::plan::{Plan, Step};
use crate::worktree::Root;
use crate::worktree::write::{Mark, Slot, Stage, StageError, not_brought_back};

/// Makes ready in the workspace's stage what the plan will place there, before it is promised. What
/// it will place outside is only verified: a stage there that no promise names would never be found
/// again. Answers the contents that the store has lost: with any of these, the plan cannot be done
/// as it is.
pub(crate) fn stage(
    root: &Root,
    store: &dyn Store,
    plan: &Plan,
    id: RewindId,
    mark: &Mark,
    counter: Counter<'_>,
) -> Result<BTreeSet<Digest>, StageError> {
    let failed = |source| StageError::Disk { path: ".takeback".to_owned(), source };
    let stage = Stage::make_marked(root, id, mark)?;
    let actions: Vec<&Step> = plan.actions().collect();
    let steps = actions.iter().copied().enumerate().filter(|(_, step)| step.needs_staging());
    let (linked, own): (Vec<_>, Vec<_>) = steps.partition(|(_, step)| step.one_with.is_some());
    let mut lost = BTreeSet::new();
    let mut left = make_at_once(root, store, &stage, &own, counter, &mut lost)?;
    // What they are to be further names of is there by now.
    left.extend(linked);
    for (number, step) in left {
        let goal = step.goal().expect("an action has a goal");
        let is_linked = match &step.one_with {
            Some(twin) => match actions.binary_search_by(|other| other.path.cmp(twin)) {
                Ok(twin) => stage.link_slot(number, &goal, Slot::New(twin)),
                Err(_) => link_twin(root, &stage, number, &goal, twin),
            }
            .map_err(failed)?,
            None => false,
        };
        if is_linked {
            stage.finish(number).map_err(failed)?;
        } else if !step.path.is_outside() {
            or_lost(stage.make(number, &goal, store, root, &step.path), &goal, &mut lost)?;
        } else if let Some(digest) = goal.digest() {
            let read = store.read(&digest, &mut |_| Ok(()));
            let read = read.map_err(|error| not_brought_back(&step.path, error));
            or_lost(read, &goal, &mut lost)?;
        }
        counter.files(1);
    }
    Ok(lost)
}

/// Notes contents that the store has lost, and goes on; whether they were there.
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

/// A file to be made by whatever thread has time.
struct ToMake<'a> {
    number: usize,
    step: &'a Step,
    mode: u32,
    contents: Vec<u8>,
}

/// Makes what can be made by several threads while this one reads the store: most of it is to wait for
/// the disk. Answers what is left to be made one by one.
fn make_at_once<'a>(
    root: &Root,
    store: &dyn Store,
    stage: &Stage,
    steps: &[(usize, &'a Step)],
    counter: Counter<'_>,
    lost: &mut BTreeSet<Digest>,
) -> Result<Vec<(usize, &'a Step)>, StageError> {
    const THREADS: usize = 8;
    /// Below this many files threads cost more than they save.
    const FEWEST: usize = 4;
    /// Larger files are written as they are read.
    const LARGEST: u64 = 1 << 20;
    if steps.len() < FEWEST || !root.has_unnamed_files() {
        return Ok(steps.to_vec());
    }
    let failed = |source| StageError::Disk { path: ".takeback".to_owned(), source };
    let left = Mutex::new(Vec::new());
    let leave = |number, step| {
        left.lock().unwrap_or_else(PoisonError::into_inner).push((number, step));
    };
    let (send, receive) = sync_channel::<ToMake<'a>>(THREADS);
    let receive = Mutex::new(receive);
    let work = || {
        let take = || receive.lock().unwrap_or_else(PoisonError::into_inner).recv();
        while let Ok(ToMake { number, step, mode, contents }) = take() {
            match stage.make_of(number, mode, &contents, root, &step.path) {
                Ok(()) => counter.files(1),
                // Made once more, alone: then it is said what is wrong.
                Err(_) => leave(number, step),
            }
        }
    };
    std::thread::scope(|scope| {
        let start = |_| Builder::new().spawn_scoped(scope, work).ok();
        let threads = (0..THREADS.min(steps.len() / 2)).map_while(start).count();
        // Dropped when this ends, however it does: then the threads end too.
        let send = send;
        for (number, step) in steps {
            match step.goal() {
                Some(goal @ Entry::File { digest, size, mode })
                    if threads > 0 && size <= LARGEST && !step.path.is_outside() =>
                {
                    let mut contents = Vec::new();
                    let read = store.read(&digest, &mut |part| {
                        contents.extend_from_slice(part);
                        Ok(())
                    });
                    let read = read.map_err(|error| not_brought_back(&step.path, error));
                    if !or_lost(read, &goal, lost)? {
                        continue;
                    }
                    disk::will_make_file().map_err(failed)?;
                    drop(send.send(ToMake { number: *number, step, mode, contents }));
                }
                _ => leave(*number, step),
            }
        }
        Ok(())
    })?;
    Ok(left.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// How many files [`stage`] counts.
pub(crate) fn to_stage(plan: &Plan) -> usize {
    plan.actions().filter(|step| step.needs_staging()).count()
}
