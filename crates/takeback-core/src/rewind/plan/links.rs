//! Hard links: names that were one file become one file again.

use takeback_store::{Entry, WorkPath};

use super::{Plan, Present};

/// Only names that will have the same bytes and mode: nobody's save is lost by it. A name that stays
/// as it is takes the others in; else the first one that comes does.
pub(super) fn keep_links(plan: &mut Plan, present: &Present) {
    for names in &present.linked {
        for (at, follower) in names.iter().enumerate() {
            let Some(step) = place(plan, follower).filter(|at| plan.steps[*at].needs_staging())
            else {
                continue;
            };
            let goal = plan.steps[step].goal();
            let stays = |name: &&WorkPath| {
                place(plan, name).is_none_or(|at| plan.steps[at].goal().is_none())
                    && present.entries.get(*name) == goal.as_ref()
            };
            let comes = |name: &&WorkPath| {
                place(plan, name).is_some_and(|at| {
                    plan.steps[at].needs_staging() && plan.steps[at].goal() == goal
                })
            };
            let is_file = matches!(goal, Some(Entry::File { .. }));
            let anchor = names.iter().find(stays).or_else(|| names[..at].iter().find(comes));
            plan.steps[step].one_with = anchor.filter(|_| is_file).cloned();
        }
    }
}

fn place(plan: &Plan, path: &WorkPath) -> Option<usize> {
    plan.steps.binary_search_by(|step| step.path.cmp(path)).ok()
}
