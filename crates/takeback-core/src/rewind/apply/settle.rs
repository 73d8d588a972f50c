//! What a helper wrote is put back to what stood there, before the plan's own steps.
//!
//! It happens in the rewind's stage, with the steps' own moves: a named path has the slots behind
//! those of the actions, by its place among the named. What it displaces stays in its slot until the
//! rewind is closed.

use takeback_store::{Entry, RewindId, Store};

use super::{Job, MEANWHILE, Note, Site, SiteRoot, Slot, Staged};
use crate::progress::Counter;
use crate::rewind::helper::{Named, stands_at};
use crate::rewind::plan::{Plan, Step, Verdict};
use crate::worktree::Root;
use crate::worktree::write::{Stage, StageError};

/// After the helper: every named path whose entry is neither what stood there nor the plan's goal
/// becomes what stood there. One that cannot be is left for the plan's own steps to find.
pub(crate) fn settle(
    root: &Root,
    store: &dyn Store,
    plan: &Plan,
    id: RewindId,
) -> Result<(), StageError> {
    let stage = Stage::open_promised(root, id)?;
    let strayed = plan.named.iter().enumerate().filter_map(|(at, named)| {
        let now = stands_at(root, &named.path);
        let goal = goal_of(plan, named);
        let will_be_folder = now.is_dir() && goal.as_ref().is_some_and(Entry::is_dir);
        let is_known = now == named.present || Some(&now) == goal.as_ref() || will_be_folder;
        (!is_known).then(|| (at, back_to(named, now)))
    });
    put_back(root, store, plan, stage, &strayed.collect::<Vec<_>>());
    Ok(())
}

/// After a crash, when nobody can tell a helper's writing from a later save: only where [`settle`]
/// had moved something away and not yet put anything in its place.
pub(crate) fn settle_further(
    root: &Root,
    store: &dyn Store,
    plan: &Plan,
    id: RewindId,
) -> Result<(), StageError> {
    if plan.named.is_empty() {
        return Ok(());
    }
    let stage = Stage::open_promised(root, id)?;
    let actions: Vec<&Step> = plan.actions().collect();
    let first = actions.len();
    let emptied = plan.named.iter().enumerate().filter_map(|(at, named)| {
        let moved_away = stage.look(Slot::Old(first + at)).ok()?.entry;
        // Then it was the step that emptied the path, later.
        let step = actions.binary_search_by(|step| step.path.cmp(&named.path));
        let step_began = match step {
            Ok(step) => stage.look(Slot::Old(step)).ok()?.entry != Entry::Absent,
            Err(_) => false,
        };
        let is_emptied = moved_away != Entry::Absent
            && !step_began
            && matches!(named.present, Entry::File { .. } | Entry::Symlink { .. })
            && goal_of(plan, named) != Some(Entry::Absent)
            && stands_at(root, &named.path) == Entry::Absent;
        is_emptied.then(|| (at, back_to(named, moved_away)))
    });
    let emptied: Vec<(usize, Step)> = emptied.collect();
    put_back(root, store, plan, stage, &emptied);
    Ok(())
}

fn goal_of(plan: &Plan, named: &Named) -> Option<Entry> {
    let step = plan.steps.binary_search_by(|step| step.path.cmp(&named.path)).ok()?;
    plan.steps[step].goal()
}

fn back_to(named: &Named, now: Entry) -> Step {
    let verdict = match &named.present {
        Entry::Absent => Verdict::Delete,
        to => Verdict::Restore { to: to.clone() },
    };
    Step::new(named.path.clone(), now, verdict)
}

fn put_back(root: &Root, store: &dyn Store, plan: &Plan, stage: Stage, steps: &[(usize, Step)]) {
    if steps.is_empty() {
        return;
    }
    let first = plan.actions().count();
    let jobs = steps.iter().map(|(at, step)| Job {
        step,
        goal: step.goal().expect("it has a verdict that does something"),
        number: first + at,
        site: 0,
        path: step.path.clone(),
        fate: None,
    });
    let mut staged = Staged {
        jobs: jobs.collect(),
        unlocked: &plan.unlocked,
        left_open: Vec::new(),
        named: &[],
        sites: vec![Site { root: SiteRoot::Workspace(root), stage }],
    };
    staged.apply(store, Counter::nobodys());
}

impl Staged<'_> {
    /// The named paths that no step has and that are not as they were.
    pub(crate) fn strayed(&self) -> Vec<Note> {
        let root = self.sites[0].root();
        let has_step = |named: &Named| {
            self.jobs.binary_search_by(|job| job.step.path.cmp(&named.path)).is_ok()
        };
        let unplanned = self.named.iter().filter(|named| !has_step(named));
        unplanned
            .filter(|named| stands_at(root, &named.path) != named.present)
            .map(|named| Note { path: named.path.clone(), reason: MEANWHILE.to_owned() })
            .collect()
    }

    /// Empties the slots of the named paths. What the helper wrote is nearly always an earlier
    /// version, and in the store, or cut off at nothing; anything else may be somebody's save, stays, and is answered.
    pub(super) fn clear_named(&self, store: &dyn Store) -> Vec<Note> {
        let (root, stage) = (self.sites[0].root(), &self.sites[0].stage);
        let mut kept = Vec::new();
        for (at, named) in self.named.iter().enumerate() {
            let number = self.jobs.len() + at;
            for slot in [Slot::Part(number), Slot::New(number), Slot::Old(number)] {
                let cleared = stage.look(slot).and_then(|looked| match looked.entry {
                    Entry::Absent => Ok(true),
                    entry
                        if matches!(slot, Slot::Part(_))
                            || matches!(entry, Entry::File { size: 0, .. })
                            || entry == named.present
                            || entry.digest().is_some_and(|it| store.has(&it).unwrap_or(false))
                            || entry == stands_at(root, &named.path) =>
                    {
                        stage.discard(slot).map(|()| true)
                    }
                    _ => Ok(false),
                });
                let what = match cleared {
                    Ok(true) => continue,
                    Ok(false) => "what stood there after the agent's own restore is kept as",
                    Err(_) => "this could not be cleared away:",
                };
                let reason = format!("{what} {}", stage.place_of(slot));
                kept.push(Note { path: named.path.clone(), reason });
            }
        }
        kept
    }
}
