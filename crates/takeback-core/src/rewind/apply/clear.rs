//! Emptying the stages after the receipt. A slot is emptied only if its contents are known to exist elsewhere.
//!
//! Files are removed for good only in a stage, never at their place: here; in `native_paths.rs`, under the same
//! rule; in `apply.rs`, where a slot is made again or has to be free for a save to return; and in
//! `write/leftover_stages.rs`, from stages that hold no user's file.

use std::collections::BTreeSet;
use std::io;

use takeback_store::{Entry, Store, WorkPath};

use super::{Action, PlanRun, SiteRoot, Slot, StageSite, look_at_all, plain_error};
use crate::rewind::receipt::{Note, Problem};

/// What could not be cleared away.
#[derive(Debug, Default)]
pub(in crate::rewind) struct StageLeftovers {
    pub(in crate::rewind) problems: Vec<Problem>,
    /// Contents found where a native restore had written, and that exist nowhere else.
    pub(in crate::rewind) kept: Vec<Note>,
}

/// What is in a slot when the rewind is closed.
enum SlotContents {
    Nothing,
    /// The store has it, or it is at its place.
    Redundant,
    /// A file that another program saved, and the only copy.
    OnlyCopy,
}

impl PlanRun<'_> {
    /// What is in the slots of a step, and whether it may be removed.
    fn in_slots(&self, at: usize) -> [(Slot, io::Result<SlotContents>); 3] {
        let action = &self.actions[at];
        let stage = &self.sites[action.site].stage;
        [Slot::Part(action.number), Slot::New(action.number), Slot::Old(action.number)].map(
            |slot| {
                let contents = || -> io::Result<SlotContents> {
                    let entry = stage.look(slot)?.entry;
                    Ok(if entry == Entry::Absent {
                        SlotContents::Nothing
                    } else if matches!(slot, Slot::Part(_))
                        || action.knows(&entry)
                        || entry == self.present(at)?
                    {
                        SlotContents::Redundant
                    } else {
                        SlotContents::OnlyCopy
                    })
                };
                (slot, contents())
            },
        )
    }

    /// Empties and removes the stages. Contents that are in the store, at their place, or discarded by
    /// the user are removed; anything else stays and is reported.
    pub(in crate::rewind) fn clear(self, store: &dyn Store) -> StageLeftovers {
        let mut left = StageLeftovers { problems: Vec::new(), kept: self.clear_native(store) };
        let mut full = BTreeSet::new();
        if !left.kept.is_empty() {
            full.insert(0);
        }
        let mut not_cleared = |action: &Action<'_>, error: String| {
            full.insert(action.site);
            left.problems.push(Problem { path: action.step.path.clone(), error });
        };
        // Looked at once more after `verify`: a program that has a displaced file open may still write to it. All
        // slots are looked at before the first is removed: what is written between the two is lost, as it would
        // be if that program wrote to a deleted file.
        let mut redundant: Vec<Vec<(&Action<'_>, Slot)>> = vec![Vec::new(); self.sites.len()];
        let all_contents = look_at_all(self.actions.len(), |at| self.in_slots(at));
        for (action, slots) in self.actions.iter().zip(all_contents) {
            for (slot, contents) in slots {
                match contents {
                    Ok(SlotContents::Nothing) => {}
                    Ok(SlotContents::Redundant) => redundant[action.site].push((action, slot)),
                    Ok(SlotContents::OnlyCopy) => {
                        let place = self.sites[action.site].stage.place_of(slot);
                        let kept = "a version saved while the rewind ran is kept as";
                        not_cleared(action, format!("{kept} {place}"));
                    }
                    Err(error) => not_cleared(action, plain_error(&error)),
                }
            }
        }
        for (site, slots) in self.sites.iter().zip(redundant) {
            let names: Vec<Slot> = slots.iter().map(|(_, slot)| *slot).collect();
            for ((action, _), discarded) in slots.iter().zip(site.stage.discard_all(&names)) {
                if let Err(error) = discarded {
                    not_cleared(action, plain_error(&error));
                }
            }
        }
        let of_own_folder =
            |error: &io::Error| Problem { path: own_path(), error: plain_error(error) };
        // The workspace's stage last: while it exists, recovery looks for the others.
        for (at, site) in self.sites.into_iter().enumerate().rev() {
            let StageSite { root, stage } = site;
            if full.contains(&at) || (at == 0 && !left.problems.is_empty()) {
                // A power cut must not bring back the mark, which says that the stage holds no user's file.
                if let Err(error) = stage.sync() {
                    left.problems.push(of_own_folder(&error));
                }
                continue;
            }
            let root = match &root {
                SiteRoot::Workspace(root) => root,
                SiteRoot::Outside(root) => root,
            };
            if let Err(error) = stage.close(root) {
                left.problems.push(of_own_folder(&error));
            }
        }
        left.problems.extend(self.left_open);
        left
    }
}

fn own_path() -> WorkPath {
    WorkPath::new(".takeback").expect("a plain path")
}
