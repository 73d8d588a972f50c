//! Hard links: names that were one file become one file again.

use std::collections::{HashMap, hash_map};

use takeback_store::{Entry, WorkPath};

use super::{Plan, Present};

/// Only names that will have the same bytes and mode: nobody's save is lost by it. A name that stays
/// as it is takes the others in; else the first one that comes does.
pub(super) fn keep_links(plan: &mut Plan, present: &Present) {
    for names in &present.linked {
        let mut anchors: HashMap<Entry, &WorkPath> = HashMap::new();
        for name in names.iter().rev() {
            let stays = place(plan, name).is_none_or(|at| plan.steps[at].goal().is_none());
            if let Some(entry) = present.entries.get(name).filter(|_| stays) {
                anchors.insert(entry.clone(), name);
            }
        }
        for name in names {
            let Some(at) = place(plan, name).filter(|at| plan.steps[*at].needs_staging()) else {
                continue;
            };
            let Some(goal @ Entry::File { .. }) = plan.steps[at].goal() else { continue };
            match anchors.entry(goal) {
                hash_map::Entry::Occupied(anchor) => {
                    plan.steps[at].one_with = Some((*anchor.get()).clone());
                }
                hash_map::Entry::Vacant(first) => drop(first.insert(name)),
            }
        }
    }
}

fn place(plan: &Plan, path: &WorkPath) -> Option<usize> {
    plan.steps.binary_search_by(|step| step.path.cmp(path)).ok()
}
