//! What a rewind did, read back from the disk: success is reported only for what the disk confirms.
//!
//! [`PlanRun::verify`] makes the steps durable and reads every path back. [`Receipt::new`] sorts the outcomes.

mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::{Deserialize, Serialize};
use takeback_store::state::{BranchName, ExecutionId};
use takeback_store::{
    Entry, Evidence, IN_PART, NotCapturedReason, PointId, RewindId, RewindKind, RewindRecord,
    WorkPath,
};

use self::wire::file_path;
use super::apply::folder_modes::ModePass;
use super::apply::{PlanRun, StageLeftovers, is_of_folder, look_at_all, plain_error};
use super::conflict::LineConflict;
use super::plan::first_seen::FirstSighting;
use super::plan::{Plan, Step, Verdict, dropped_bits};
use super::preview::restored_point;
use super::state_move::StateMove;
use crate::progress::Counter;
use crate::worktree::index::folder_of;
use crate::worktree::root::{Access, is_no_folder};
use crate::worktree::write::{Slot, sync_all};

/// The outcome of each path, or the planned outcome in a preview. As JSON it can be read back exactly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Everything planned is on disk, and nothing that was requested had to be left.
    pub success: bool,
    /// Its id. None in a preview, and if nothing was done.
    pub rewind: Option<RewindId>,
    /// The restored point; none for an undo or redo.
    pub point: Option<PointId>,
    /// Whether it brought changes in from a fork: then files were written, not restored.
    pub adopts: bool,
    /// The point before the rewind. None in a preview.
    pub safety_point: Option<PointId>,
    /// Files that have the point's contents again.
    pub restored_files: Vec<WorkPath>,
    /// Files that were removed.
    pub deleted_files: Vec<WorkPath>,
    /// Files of which only the agent's part was taken out.
    pub merged_files: Vec<Note>,
    /// Paths that stay because they are not the agent's, or were not requested.
    pub kept_files: Vec<Note>,
    /// New names in ignored folders, and names that were not covered at the point: they stay.
    pub first_seen: Vec<FirstSighting>,
    /// Paths that stay because restoring them would destroy another author's work.
    pub conflicts: Vec<Note>,
    /// The lines of conflicts, by path: those that stay, or that stand between conflict markers.
    pub conflict_lines: Vec<FileConflicts>,
    /// Paths that stay because their author is unclear.
    pub ambiguous: Vec<Note>,
    /// Paths that stay because the store does not have their earlier contents.
    pub not_captured: Vec<Note>,
    /// For each requested path that an agent changed: how the author is known.
    pub evidence: Vec<PathEvidence>,
    /// What was not restored with a file; and where unknown bytes that the agent's own restore left are
    /// kept now.
    pub notes: Vec<Note>,
    /// Paths that could not be restored, although they should have been.
    pub errors: Vec<Problem>,
    /// The agent's state that moved with the files.
    pub state: Option<StateReceipt>,
}

/// The outcome for an agent's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateReceipt {
    /// The execution.
    pub execution: ExecutionId,
    /// The branch.
    pub branch: BranchName,
    /// The head of the branch afterwards, if known.
    pub checkpoint: Option<String>,
    /// Whether the branch has another head now.
    pub moved: bool,
    /// It was not moved: the agent has continued since.
    pub stays: bool,
    /// Why it could not be moved.
    pub error: Option<String>,
}

/// A path and why it was left, or what was done with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The path.
    #[serde(flatten, with = "file_path")]
    pub path: WorkPath,
    /// The reason, for display.
    pub reason: String,
}

/// The lines of a file that another author changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileConflicts {
    /// The path.
    #[serde(flatten, with = "file_path")]
    pub path: WorkPath,
    /// The places, in order.
    pub lines: Vec<LineConflict>,
}

/// A path and the least certain evidence among its requested changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathEvidence {
    /// The path.
    #[serde(flatten, with = "file_path")]
    pub path: WorkPath,
    /// How its author is known.
    pub evidence: Evidence,
}

/// A path and what went wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// The path.
    #[serde(flatten, with = "file_path")]
    pub path: WorkPath,
    /// What went wrong.
    pub error: String,
}

/// The outcome of one action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepOutcome {
    /// It is on disk.
    Done,
    /// Done, but the disk did not confirm it.
    Unconfirmed(String),
    /// Another program changed it while the rewind ran.
    Conflict(String),
    /// The path stays, for this reason.
    Kept(String),
    /// It could not be done.
    Error(String),
}

impl StepOutcome {
    /// Whether the goal is in place, confirmed by the disk or not.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        matches!(self, Self::Done | Self::Unconfirmed(_))
    }
}

/// Folders held open to be made durable together. The more at once, the fewer waits for the disk; this is
/// half of what a process may usually have open.
const SYNCED_AT_ONCE: usize = 512;

impl PlanRun<'_> {
    /// Makes what was done durable, reads it back, and returns the outcome of each action.
    pub(super) fn verify(&mut self, counter: Counter<'_>) -> Vec<StepOutcome> {
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
                match self.root_of(*site).folder(folder, Access::Read) {
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
        let (_, stage) = self.site(at);
        Ok(action.outcome.as_ref().is_some_and(StepOutcome::is_in_place)
            && self.present(at)? == action.goal
            && action.knows(&stage.look(Slot::New(action.number))?.entry)
            && action.knows(&stage.look(Slot::Old(action.number))?.entry))
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
}

/// What became of a merged file.
const TAKEN_OUT: &str = "only the agent's part is taken out";
const MERGED_IN: &str = "the fork's changes are added to yours";

/// Why a file that is changed has conflicts all the same.
fn conflict_reason(step: &Step) -> String {
    let is_marked = step.cancels.first() != Some(&IN_PART) && !step.cancels.is_empty();
    match step.lines.len() {
        places if is_marked => format!("conflict markers in {places} {}", plural(places)),
        places => format!("both changed the same lines in {places} {}: yours stay", plural(places)),
    }
}

fn plural(places: usize) -> &'static str {
    if places == 1 { "place" } else { "places" }
}

/// The text for a file of which only the conflict is settled.
const SETTLED: &str = "settled: it stays as it is";
/// The same for an undo of that.
const REOPENED: &str = "its conflict is open again: it stays as it is";

/// The text for a file that is in place and not confirmed by the disk.
pub const UNCONFIRMED: &str = "in place, but the disk did not confirm it";

impl Receipt {
    /// `outcomes`: of the plan's actions, in their order; none in a preview.
    #[must_use]
    pub fn new(plan: &Plan, outcomes: Option<&[StepOutcome]>) -> Self {
        let mut receipt = Self { adopts: plan.adopts, ..Self::default() };
        let mut outcomes = outcomes.map(|outcomes| outcomes.iter());
        for step in &plan.steps {
            let path = step.path.clone();
            let note = |reason: &str| Note { path: step.path.clone(), reason: reason.to_owned() };
            let outcome = match (&mut outcomes, step.goal()) {
                (Some(outcomes), Some(_)) => outcomes.next().cloned().unwrap_or(StepOutcome::Done),
                _ => StepOutcome::Done,
            };
            // `add_unconfirmed` reports it, once the other outcomes are known.
            let outcome = if outcome.is_in_place() { StepOutcome::Done } else { outcome };
            if let (StepOutcome::Done, Some(bits)) = (&outcome, dropped_bits(step)) {
                receipt.notes.push(note(&format!("comes back without its {bits}")));
            }
            if outcome == StepOutcome::Done && step.linked_elsewhere {
                receipt.notes.push(note("another hard link to it keeps the changed contents"));
            }
            if let Some(evidence) = step.evidence {
                receipt.evidence.push(PathEvidence { path: step.path.clone(), evidence });
            }
            receipt.ambiguous.extend(step.unclear.as_deref().map(note));
            if outcome == StepOutcome::Done && !step.lines.is_empty() {
                receipt
                    .conflict_lines
                    .push(FileConflicts { path: step.path.clone(), lines: step.lines.clone() });
                if step.goal().is_some() {
                    receipt.conflicts.push(note(&conflict_reason(step)));
                }
            }
            match (outcome, &step.verdict) {
                (StepOutcome::Conflict(reason), _) => receipt.conflicts.push(note(&reason)),
                (StepOutcome::Kept(reason), _) => receipt.kept_files.push(note(&reason)),
                (StepOutcome::Error(error) | StepOutcome::Unconfirmed(error), _) => {
                    receipt.errors.push(Problem { path, error });
                }
                (StepOutcome::Done, _) if step.is_settled_as_it_is() => {
                    receipt.kept_files.push(note(SETTLED));
                }
                (StepOutcome::Done, Verdict::Restore { .. }) => receipt.restored_files.push(path),
                (StepOutcome::Done, Verdict::Delete) => receipt.deleted_files.push(path),
                (StepOutcome::Done, Verdict::Merge { .. }) => {
                    let how = if plan.adopts { MERGED_IN } else { TAKEN_OUT };
                    receipt.merged_files.push(note(how));
                }
                (StepOutcome::Done, Verdict::Keep { reason }) => {
                    receipt.kept_files.push(note(reason));
                }
                (StepOutcome::Done, Verdict::Conflict { reason }) => {
                    receipt.conflicts.push(note(reason));
                }
                (StepOutcome::Done, Verdict::Ambiguous { reason }) => {
                    receipt.ambiguous.push(note(reason));
                }
                (StepOutcome::Done, Verdict::NotCaptured { reason }) => {
                    receipt.not_captured.push(note(reason));
                }
            }
        }
        receipt.success = receipt.conflicts.is_empty()
            && receipt.ambiguous.is_empty()
            && receipt.not_captured.is_empty()
            && receipt.errors.is_empty();
        receipt.first_seen.clone_from(&plan.first_seen);
        receipt.state = plan.state.as_ref().map(StateMove::receipt);
        receipt
    }

    /// The receipt of a promised rewind, before anything but its files is known.
    pub(super) fn of_rewind(record: &RewindRecord, plan: &Plan, outcomes: &[StepOutcome]) -> Self {
        Self {
            rewind: Some(record.id),
            point: restored_point(plan, record.kind),
            safety_point: Some(record.safety_point),
            ..Self::of_kind(plan, record.kind, Some(outcomes))
        }
    }

    /// As [`Receipt::new`], for an operation of this kind.
    pub(super) fn of_kind(plan: &Plan, kind: RewindKind, outcomes: Option<&[StepOutcome]>) -> Self {
        let mut receipt = Self::new(plan, outcomes);
        if let RewindKind::Undo { .. } = kind {
            let settled = receipt.kept_files.iter_mut().filter(|note| note.reason == SETTLED);
            settled.for_each(|note| REOPENED.clone_into(&mut note.reason));
        }
        receipt
    }

    /// How many files stay as they are, with their conflicts settled.
    #[must_use]
    pub fn settled(&self) -> usize {
        self.kept_files.iter().filter(|note| note.reason == SETTLED).count()
    }

    /// How many files stay as they are, with their conflicts open again.
    #[must_use]
    pub fn reopened(&self) -> usize {
        self.kept_files.iter().filter(|note| note.reason == REOPENED).count()
    }

    pub(super) fn changed_conflicts(&self) -> bool {
        self.settled() + self.reopened() > 0
    }

    /// The receipt of a rewind whose process ended after it was applied and before it was reverted.
    pub(super) fn of_interrupted(record: &RewindRecord, plan: &Plan) -> Self {
        Self {
            rewind: Some(record.id),
            safety_point: Some(record.safety_point),
            state: plan.state.as_ref().map(StateMove::receipt),
            ..Self::default()
        }
    }

    pub(super) fn add_errors(&mut self, problems: Vec<Problem>) {
        self.success &= problems.is_empty();
        self.errors.extend(problems);
    }

    /// Adds what the stages still hold.
    pub(super) fn add_leftovers(&mut self, leftovers: StageLeftovers) {
        self.add_errors(leftovers.problems);
        self.notes.extend(leftovers.kept);
    }

    pub(super) fn add_conflicts(&mut self, conflicts: Vec<Note>) {
        self.success &= conflicts.is_empty();
        self.conflicts.extend(conflicts);
    }

    /// Adds the steps that are done without the disk having confirmed it.
    pub(super) fn add_unconfirmed(&mut self, plan: &Plan, outcomes: &[StepOutcome]) {
        for (step, outcome) in plan.actions().zip(outcomes) {
            if let StepOutcome::Unconfirmed(why) = outcome {
                let error = format!("{UNCONFIRMED}: {why}");
                self.errors.push(Problem { path: step.path.clone(), error });
                self.success = false;
            }
        }
    }

    /// The receipt of a plan that was not started because not all of it can be done.
    #[must_use]
    pub fn refused(mut self) -> Self {
        self.restored_files.clear();
        self.deleted_files.clear();
        self.merged_files.clear();
        self.conflict_lines.clear();
        self.notes.clear();
        self.success = false;
        self
    }

    /// Whether every path is, or would be, as at the point: no other author's work is in the way.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.success && self.kept_files.is_empty()
    }

    /// Whether any file is (or would be) changed.
    #[must_use]
    pub fn changed_files(&self) -> bool {
        !(self.restored_files.is_empty()
            && self.deleted_files.is_empty()
            && self.merged_files.is_empty())
    }

    /// Whether any file, a conflict or an agent's state is (or would be) changed.
    #[must_use]
    pub fn changed_something(&self) -> bool {
        self.changed_files()
            || self.changed_conflicts()
            || self.state.as_ref().is_some_and(|state| state.moved)
    }
}
