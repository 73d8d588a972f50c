//! Hard links: names that were one file become one file again.

use std::collections::{HashMap, hash_map};

use takeback_store::{Entry, WorkPath};

use super::{DiskState, Plan};
use crate::worktree::fingerprint::links_of;
use crate::worktree::root::Root;

/// Only for names that will have the same bytes and mode, so no save is lost. The others are linked to a name
/// that stays as it is, else to the first one that is placed.
pub(super) fn keep_links(plan: &mut Plan, present: &DiskState) {
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
                    plan.steps[at].hard_link_of = Some((*anchor.get()).clone());
                }
                hash_map::Entry::Vacant(first) => drop(first.insert(name)),
            }
        }
    }
}

/// Marks the steps that separate a file from an unknown name: that name keeps the present contents.
/// `linked`: the names that are known to be one file.
pub(in crate::rewind) fn mark_links_elsewhere(
    plan: &mut Plan,
    linked: &[Vec<WorkPath>],
    root: &Root,
) {
    let replaced = |present: &Entry| matches!(present, Entry::File { .. });
    for step in &mut plan.steps {
        if !replaced(&step.present) || !step.needs_staging() || step.path.is_outside() {
            continue;
        }
        let known = linked.iter().find(|names| names.contains(&step.path)).map_or(1, Vec::len);
        let links = root.parent_of(&step.path).and_then(|at| links_of(at, step.path.file_name()));
        step.linked_elsewhere = links.is_ok_and(|links| links > known as u64);
    }
}

fn place(plan: &Plan, path: &WorkPath) -> Option<usize> {
    plan.steps.binary_search_by(|step| step.path.cmp(path)).ok()
}
