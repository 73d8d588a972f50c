//! Putting back what a native restore wrote, before the plan's own steps.
//!
//! It uses the rewind's stage and the moves of a step: a native path has the slots behind those of the
//! actions, by its position in the plan. What is displaced stays in its slot until the rewind is closed.

use takeback_store::{Entry, RewindId, Store};

use super::{Action, CHANGED_WHILE_RUNNING, PlanRun, SiteRoot, Slot, StageSite};
use crate::progress::Counter;
use crate::rewind::native::{NativePath, entry_at};
use crate::rewind::plan::{Plan, Step, Verdict};
use crate::rewind::receipt::Note;
use crate::worktree::Root;
use crate::worktree::write::{Stage, StageError};

/// After a native restore: every native path that is neither what it was nor the plan's goal gets its old
/// entry back. If that fails, the plan's own steps report a conflict.
pub(in crate::rewind) fn put_back_native(
    root: &Root,
    store: &dyn Store,
    plan: &Plan,
    id: RewindId,
) -> Result<(), StageError> {
    let stage = Stage::open_promised(root, id)?;
    let unrestored_native_paths =
        plan.native_paths.iter().enumerate().filter_map(|(at, native)| {
            let now = entry_at(root, &native.path);
            let goal = goal_of(plan, native);
            let will_be_folder = now.is_dir() && goal.as_ref().is_some_and(Entry::is_dir);
            let is_known = now == native.present || Some(&now) == goal.as_ref() || will_be_folder;
            (!is_known).then(|| (at, back_to(native, now)))
        });
    put_back(root, store, plan, stage, &unrestored_native_paths.collect::<Vec<_>>());
    Ok(())
}

/// After a crash: what the native restore wrote cannot be distinguished from a later save, so it is left.
/// Only paths that [`put_back_native`] had emptied and not filled again are finished.
pub(in crate::rewind) fn resume_native(
    root: &Root,
    store: &dyn Store,
    plan: &Plan,
    id: RewindId,
) -> Result<(), StageError> {
    if plan.native_paths.is_empty() {
        return Ok(());
    }
    let stage = Stage::open_promised(root, id)?;
    let actions: Vec<&Step> = plan.actions().collect();
    let first = actions.len();
    let emptied = plan.native_paths.iter().enumerate().filter_map(|(at, native)| {
        let moved_away = stage.look(Slot::Old(first + at)).ok()?.entry;
        // If the step's own slot is filled, the step has emptied the path later.
        let step = actions.binary_search_by(|step| step.path.cmp(&native.path));
        let step_began = match step {
            Ok(step) => stage.look(Slot::Old(step)).ok()?.entry != Entry::Absent,
            Err(_) => false,
        };
        let is_emptied = moved_away != Entry::Absent
            && !step_began
            && matches!(native.present, Entry::File { .. } | Entry::Symlink { .. })
            && goal_of(plan, native) != Some(Entry::Absent)
            && entry_at(root, &native.path) == Entry::Absent;
        is_emptied.then(|| (at, back_to(native, moved_away)))
    });
    let emptied: Vec<(usize, Step)> = emptied.collect();
    put_back(root, store, plan, stage, &emptied);
    Ok(())
}

fn goal_of(plan: &Plan, native: &NativePath) -> Option<Entry> {
    let step = plan.steps.binary_search_by(|step| step.path.cmp(&native.path)).ok()?;
    plan.steps[step].goal()
}

fn back_to(native: &NativePath, now: Entry) -> Step {
    let verdict = match &native.present {
        Entry::Absent => Verdict::Delete,
        to => Verdict::Restore { to: to.clone() },
    };
    Step::new(native.path.clone(), now, verdict)
}

fn put_back(root: &Root, store: &dyn Store, plan: &Plan, stage: Stage, steps: &[(usize, Step)]) {
    if steps.is_empty() {
        return;
    }
    let first = plan.actions().count();
    let actions = steps.iter().map(|(at, step)| Action {
        step,
        goal: step.goal().expect("it has a verdict that does something"),
        number: first + at,
        site: 0,
        path: step.path.clone(),
        outcome: None,
    });
    let mut run = PlanRun {
        actions: actions.collect(),
        unlocked: &plan.unlocked,
        left_open: Vec::new(),
        native: &[],
        sites: vec![StageSite { root: SiteRoot::Workspace(root), stage }],
    };
    run.apply(store, Counter::disabled());
    run.verify(Counter::disabled());
}

impl PlanRun<'_> {
    /// The native paths without a step of their own that are not as they were.
    pub(in crate::rewind) fn unrestored_native_paths(&self) -> Vec<Note> {
        let root = self.sites[0].root();
        let has_step = |native: &NativePath| {
            self.actions.binary_search_by(|action| action.step.path.cmp(&native.path)).is_ok()
        };
        let unplanned = self.native.iter().filter(|native| !has_step(native));
        unplanned
            .filter(|native| entry_at(root, &native.path) != native.present)
            .map(|native| Note {
                path: native.path.clone(),
                reason: CHANGED_WHILE_RUNNING.to_owned(),
            })
            .collect()
    }

    /// Empties the slots of the native paths. What a native restore wrote is nearly always an earlier
    /// version, which is in the store, or an empty file. Anything else may be a file that the user saved: it
    /// stays and is returned.
    pub(super) fn clear_native(&self, store: &dyn Store) -> Vec<Note> {
        let (root, stage) = (self.sites[0].root(), &self.sites[0].stage);
        let mut kept = Vec::new();
        for (at, native) in self.native.iter().enumerate() {
            let number = self.actions.len() + at;
            for slot in [Slot::Part(number), Slot::New(number), Slot::Old(number)] {
                let cleared = stage.look(slot).and_then(|looked| match looked.entry {
                    Entry::Absent => Ok(true),
                    entry
                        if matches!(slot, Slot::Part(_))
                            || matches!(entry, Entry::File { size: 0, .. })
                            || entry == native.present
                            || entry.digest().is_some_and(|it| store.has(&it).unwrap_or(false))
                            || entry == entry_at(root, &native.path) =>
                    {
                        stage.discard(slot).map(|()| true)
                    }
                    _ => Ok(false),
                });
                let what = match cleared {
                    Ok(true) => continue,
                    Ok(false) => "the contents after the agent's own restore are kept as",
                    Err(_) => "could not be removed:",
                };
                let reason = format!("{what} {}", stage.place_of(slot));
                kept.push(Note { path: native.path.clone(), reason });
            }
        }
        kept
    }
}
