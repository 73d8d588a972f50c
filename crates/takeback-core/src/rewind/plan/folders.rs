//! The folders of a plan: a restored entry needs its folders, and a removed folder must be empty.

use std::collections::{BTreeMap, HashSet};

use takeback_store::{Entry, WorkPath};

use super::{DiskState, Plan, Step, UnlockedFolder, Verdict};
use crate::worktree::scope::OWN_FOLDER;

/// Makes the plan possible: a restored entry needs its folders, and a folder is removed only if empty.
pub(super) fn make_room(plan: &mut Plan, present: &DiskState) {
    add_missing_folders(plan, present);
    keep_full_folders(plan, present);
}

fn add_missing_folders(plan: &mut Plan, present: &DiskState) {
    let mut place: BTreeMap<WorkPath, usize> =
        plan.steps.iter().enumerate().map(|(at, step)| (step.path.clone(), at)).collect();
    // Folders that exist or are planned, and so are their parents.
    let mut ready: HashSet<WorkPath> = HashSet::new();
    for at in 0..plan.steps.len() {
        let step = &plan.steps[at];
        if step.path.is_outside() || step.goal().is_none_or(|goal| goal == Entry::Absent) {
            continue;
        }
        let unsure = step.path.ancestors().take_while(|folder| !ready.contains(folder));
        let folders: Vec<WorkPath> = unsure.collect();
        let there = |plan: &Plan, folder: &WorkPath, planned: Option<&usize>| {
            let goal = planned.and_then(|at| plan.steps[*at].goal());
            goal.or_else(|| present.entries.get(folder).cloned()).unwrap_or(Entry::Absent)
        };
        let is_in_the_way = |folder: &WorkPath| {
            !matches!(there(plan, folder, place.get(folder)), Entry::Dir { .. } | Entry::Absent)
        };
        if folders.iter().any(is_in_the_way) {
            let reason = "something else is where its folder was".to_owned();
            plan.steps[at].verdict = Verdict::Conflict { reason };
            plan.steps[at].cancels.clear();
            continue;
        }
        ready.extend(folders.iter().cloned());
        // Takeback's own folder exists while anything is placed: the stage is in it.
        for folder in folders.into_iter().filter(|folder| folder.as_bytes() != OWN_FOLDER) {
            let planned = place.get(&folder).copied();
            if there(plan, &folder, planned.as_ref()).is_dir() {
                continue;
            }
            let mode = present.former_modes.get(&folder).copied().unwrap_or(0o755);
            let verdict = Verdict::Restore { to: Entry::Dir { mode } };
            match planned {
                Some(at) if plan.steps[at].present.is_dir() => {
                    plan.steps[at].verdict = Verdict::Keep { reason: NOT_EMPTY.to_owned() };
                    plan.steps[at].cancels.clear();
                }
                Some(at) => {
                    let step = &mut plan.steps[at];
                    if step.goal().is_none() {
                        // The conflict was about another entry: nothing of that is taken back.
                        step.cancels.clear();
                        step.lines.clear();
                        step.instead = None;
                    }
                    step.verdict = verdict;
                }
                None => {
                    place.insert(folder.clone(), plan.steps.len());
                    plan.steps.push(Step::new(folder, Entry::Absent, verdict));
                }
            }
        }
    }
}

const NOT_EMPTY: &str = "something else is in it";

/// Deepest first: an entry that stays keeps its folder and the folders above it.
fn keep_full_folders(plan: &mut Plan, present: &DiskState) {
    let place: BTreeMap<WorkPath, usize> =
        plan.steps.iter().enumerate().map(|(at, step)| (step.path.clone(), at)).collect();
    let mut folders: Vec<usize> = (0..plan.steps.len())
        .filter(|at| {
            let step = &plan.steps[*at];
            step.present.is_dir() && step.goal().is_some_and(|goal| !goal.is_dir())
        })
        .collect();
    folders.sort_by_cached_key(|at| std::cmp::Reverse(plan.steps[*at].path.depth()));
    for at in folders {
        let stays = |name: &WorkPath| {
            let goal = place.get(name).and_then(|at| plan.steps[*at].goal());
            goal.is_none_or(|goal| goal != Entry::Absent)
        };
        if present.unread.contains(&plan.steps[at].path) {
            let reason = "what is in it could not be read".to_owned();
            plan.steps[at].verdict = Verdict::NotCaptured { reason };
            plan.steps[at].cancels.clear();
            continue;
        }
        let names = present.names.get(&plan.steps[at].path).map(Vec::as_slice).unwrap_or_default();
        if names.iter().any(stays) {
            let step = &mut plan.steps[at];
            step.verdict = match step.goal() {
                Some(Entry::Absent) => Verdict::Keep { reason: NOT_EMPTY.to_owned() },
                _ => {
                    Verdict::Conflict { reason: "the folder in its place is not empty".to_owned() }
                }
            };
            step.cancels.clear();
        }
    }
}

/// Finds the folders in which something is created, removed or replaced, and that their owner may not
/// write to.
pub(super) fn unlock_folders(plan: &mut Plan, present: &DiskState) {
    const WRITE: u32 = 0o700;
    const SEARCH: u32 = 0o100;
    let mut unlocked = BTreeMap::new();
    let mut searched: HashSet<WorkPath> = HashSet::new();
    for step in plan.actions() {
        let in_place = step.is_mode_only()
            || (step.present.is_dir() && step.goal().is_some_and(|goal| goal.is_dir()));
        if step.path.is_outside() || in_place {
            continue;
        }
        let mut check = |folder: WorkPath, needed: u32| {
            if let Some(Entry::Dir { mode }) = present.entries.get(&folder)
                && mode & needed != needed
            {
                unlocked.insert(folder, *mode);
            }
        };
        if let Some(folder) = step.path.parent() {
            check(folder, WRITE);
        }
        for folder in step.path.ancestors() {
            if !searched.insert(folder.clone()) {
                break;
            }
            check(folder, SEARCH);
        }
    }
    plan.unlocked =
        unlocked.into_iter().map(|(path, mode)| UnlockedFolder { path, mode }).collect();
}
