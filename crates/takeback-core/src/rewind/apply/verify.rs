//! Reading everything back: success is reported only for what the disk confirms.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use takeback_store::NotCapturedReason;

use super::folder_modes::ModePass;
use super::{Entry, Slot, Stages, StepOutcome, is_of_folder, look_at_all, plain_error};
use crate::progress::Counter;
use crate::worktree::index::folder_of;
use crate::worktree::root::{Access, is_no_folder};
use crate::worktree::write::sync_all;

/// Folders held open to be made durable together. The more at once, the fewer waits for the disk; this is
/// half of what a process may usually have open.
const SYNCED_AT_ONCE: usize = 512;

impl Stages<'_> {
    /// Makes what was done durable, reads it back, and returns the outcome of each action.
    pub(in crate::rewind) fn verify(&mut self, counter: Counter<'_>) -> Vec<StepOutcome> {
        // Sync first, so that a step that reads back as done is also durable.
        self.sync_folders();
        self.read_back(counter);
        // Last: not even their owner can look into these afterwards.
        let deep = self.deepest_first();
        self.set_folder_modes(&deep, ModePass::Closed);
        self.accept_late_failures();
        let outcomes = self.actions.iter().map(|action| action.outcome.clone());
        outcomes.map(|outcome| outcome.unwrap_or(StepOutcome::Done)).collect()
    }

    /// Makes durable what was done. If that fails, the step stays done but is not confirmed.
    fn sync_folders(&mut self) {
        let folders: BTreeSet<(usize, &[u8])> = self
            .actions
            .iter()
            .filter(|action| action.outcome == Some(StepOutcome::Done))
            .map(|action| (action.site, folder_of(&action.path)))
            .chain(self.unlocked.iter().map(|folder| (0, folder.path.as_bytes())))
            .collect();
        let folders: Vec<(usize, &[u8])> = folders.into_iter().collect();
        let mut failed: BTreeMap<(usize, Vec<u8>), String> = BTreeMap::new();
        for some in folders.chunks(SYNCED_AT_ONCE) {
            let mut opened = Vec::new();
            let mut names = Vec::new();
            for (site, folder) in some {
                match self.sites[*site].root().folder(folder, Access::Read) {
                    Ok(open) => {
                        opened.push(open);
                        names.push((*site, folder.to_vec()));
                    }
                    // Removed by this very plan, or become something else.
                    Err(error) if is_no_folder(&error) => {}
                    Err(error) => {
                        failed.insert((*site, folder.to_vec()), plain_error(&error));
                    }
                }
            }
            for (name, synced) in names.into_iter().zip(sync_all(&opened)) {
                failed.extend(synced.err().map(|error| (name, plain_error(&error))));
            }
        }
        if failed.is_empty() {
            return;
        }
        for action in
            self.actions.iter_mut().filter(|action| action.outcome == Some(StepOutcome::Done))
        {
            if let Some(why) = failed.get(&(action.site, folder_of(&action.path).to_vec())) {
                action.outcome = Some(StepOutcome::Unconfirmed(why.clone()));
            }
        }
    }

    /// A step that failed although its goal is in place has happened: the receipt and the log must say so.
    fn accept_late_failures(&mut self) {
        for at in 0..self.actions.len() {
            let action = &self.actions[at];
            let Some(StepOutcome::Error(why)) = &action.outcome else { continue };
            let why = why.clone();
            let is_placed = action.goal != action.step.present
                && self.present(at).is_ok_and(|present| present == self.actions[at].goal);
            if is_placed {
                self.actions[at].outcome = Some(StepOutcome::Unconfirmed(why));
            }
        }
    }

    /// Reads everything back. Also looks at what was displaced once more: a program that had the old
    /// file open may have written to it since.
    fn read_back(&mut self, counter: Counter<'_>) {
        let as_planned =
            look_at_all(self.actions.len(), |at| self.is_as_planned(at).unwrap_or(false));
        for (at, as_planned) in as_planned.into_iter().enumerate() {
            counter.files(u64::from(!is_of_folder(self.actions[at].step)));
            let was = self.actions[at].outcome.clone();
            let Some(was) = was.filter(|outcome| !as_planned && outcome.is_in_place()) else {
                continue;
            };
            let outcome = match self.present(at) {
                Ok(present) if present == self.actions[at].goal => self.settle_displaced(at),
                Ok(Entry::NotCaptured { reason: reason @ NotCapturedReason::Unreadable }) => {
                    Ok(StepOutcome::Unconfirmed(reason.describe().to_owned()))
                }
                Ok(_) => {
                    Ok(StepOutcome::Conflict("it was changed right after the rewind".to_owned()))
                }
                // It was placed; it only cannot be read back now.
                Err(error) => Ok(StepOutcome::Unconfirmed(plain_error(&error))),
            };
            self.actions[at].outcome = Some(match outcome {
                Ok(StepOutcome::Done) => was,
                Ok(outcome) => outcome,
                Err(error) => StepOutcome::Error(plain_error(&error)),
            });
        }
    }

    /// Whether a step is done, and what it displaced is what the plan knew.
    fn is_as_planned(&self, at: usize) -> io::Result<bool> {
        let action = &self.actions[at];
        let stage = &self.sites[action.site].stage;
        Ok(action.outcome.as_ref().is_some_and(StepOutcome::is_in_place)
            && self.present(at)? == action.goal
            && action.knows(&stage.look(Slot::New(action.number))?.entry)
            && action.knows(&stage.look(Slot::Old(action.number))?.entry))
    }
}
