//! Rewind: from a request to a receipt. This file shows the order; the modules do the work.
//!
//! `lock -> recover -> select -> look -> plan -> stage -> promise -> apply -> verify -> close -> clear`, as in
//! `docs/design/journal.md`. A preview stops after the plan. Undo, redo and rollback differ in what is
//! selected. Recovery enters at *apply* with the plan of an open journal.

mod apply;
mod chosen;
pub(crate) mod closed_folders;
mod conflict;
mod corrections;
mod damage;
mod error;
mod follow_up;
pub(crate) mod history;
mod hunks;
mod journal;
pub mod merge;
mod native;
mod path_filter;
mod plan;
mod present;
mod preview;
mod receipt;
mod recovery;
mod request;
mod resolve;
mod revert;
mod safety_point;
mod scope;
mod stage;
mod state_move;
pub(crate) mod target;
mod windows;

use std::collections::BTreeSet;

use takeback_store::{Digest, PointId, RewindKind, RewindRecord, RewindState, Timestamp};

use self::apply::folder_modes::restore_modes;
use self::apply::{PlanRun, file_count};
use self::journal::PlanOutcome;
use self::plan::PlanOptions;
use self::present::StoreSources;
use self::target::Selection;
use crate::lock::{Hold, Lock};
use crate::progress::Work;
use crate::purge;
use crate::record::drain_inbox;
use crate::workspace::Workspace;

pub use self::conflict::{ConflictPolicy, LineConflict, LineText};
pub use self::error::RewindError;
pub use self::follow_up::{
    CrossedCommit, FollowUp, GitFollowUp, GitStatus, InstallHint, InstallReason,
};
pub use self::hunks::FileHunks;
pub use self::journal::title_of;
pub use self::native::{NativeOutcome, NativePath, NativeRestore, NativeSkip};
pub use self::path_filter::PathFilter;
pub use self::plan::first_seen::{self, FirstSighting};
pub(crate) use self::plan::stream::{for_each_step, read_plan, write_plan};
pub use self::plan::{Plan, Step, UnlockedFolder, Verdict};
pub use self::preview::Preview;
pub use self::receipt::{
    FileConflicts, Note, PathEvidence, Problem, Receipt, StateReceipt, StepOutcome, UNCONFIRMED,
};
pub use self::recovery::{RecoveryReport, needs_recovery};
pub use self::request::{
    AmbiguousPolicy, ChosenChanges, Exactness, Incoming, IncomingChange, RewindRequest,
    RewindScope, Target,
};
pub use self::resolve::{Choice, OpenConflict, open_conflicts};
pub use self::scope::{Coverage, Covered};
pub use self::state_move::{Files, Rollback, StateGoal, StateMove, Terms};
use self::windows::windows;
pub use self::windows::{Window, windows_of};

/// What a rewind would do now. Changes nothing but the log, which gets the changes that were not recorded
/// yet.
pub fn preview(workspace: &mut Workspace, request: &RewindRequest) -> Result<Preview, RewindError> {
    let _lock = lock(workspace, Hold::Shared)?;
    drain_inbox(workspace)?;
    let preview = look_and_plan(workspace, request, &BTreeSet::new())?;
    let lost = damage::find(&preview.plan, &*workspace.store)?;
    if lost.is_empty() { Ok(preview) } else { look_and_plan(workspace, request, &lost) }
}

/// Rewinds. If `shown` is given and this would do anything else, it does nothing and returns
/// [`RewindError::Changed`].
pub fn rewind(
    workspace: &mut Workspace,
    request: &RewindRequest,
    shown: Option<&Preview>,
) -> Result<Receipt, RewindError> {
    run(workspace, request, shown, None).map(|(receipt, _)| receipt)
}

/// As [`rewind`], with the agent's own restore between the promise and the first step. Whatever that does
/// or fails to do at the paths it named, the result is the same.
///
/// A file that the user saves at one of these paths while the native restore runs cannot be distinguished
/// from what that wrote: it is put back too, and stays in the stage if the store does not have it.
pub fn rewind_with(
    workspace: &mut Workspace,
    request: &RewindRequest,
    shown: Option<&Preview>,
    native: &mut NativeRestore<'_>,
) -> Result<(Receipt, NativeOutcome), RewindError> {
    run(workspace, request, shown, Some(native))
}

/// Finishes what a crash interrupted. Commands call it before they change anything; hooks never do.
pub fn recover(workspace: &mut Workspace) -> Result<RecoveryReport, RewindError> {
    let _lock = lock(workspace, Hold::Exclusive)?;
    let mut report = recover_locked(workspace)?;
    report.drained = drain_inbox(workspace)?;
    Ok(report)
}

fn run(
    workspace: &mut Workspace,
    request: &RewindRequest,
    shown: Option<&Preview>,
    native: Option<&mut NativeRestore<'_>>,
) -> Result<(Receipt, NativeOutcome), RewindError> {
    let _lock = lock(workspace, Hold::Exclusive)?;
    let done = run_locked(workspace, request, shown, native);
    let problems = closed_folders::close(workspace)?;
    done.map(|(mut receipt, native)| {
        receipt.add_errors(problems);
        (receipt, native)
    })
}

fn run_locked(
    workspace: &mut Workspace,
    request: &RewindRequest,
    shown: Option<&Preview>,
    mut native: Option<&mut NativeRestore<'_>>,
) -> Result<(Receipt, NativeOutcome), RewindError> {
    let not_run = NativeOutcome::Skipped(NativeSkip::NothingToDo);
    let mut lost = shown.map(|shown| shown.lost.clone()).unwrap_or_default();
    loop {
        recover_locked(workspace)?;
        drain_inbox(workspace)?;
        let mut preview = look_and_plan(workspace, request, &lost)?;
        if shown.is_some_and(|shown| damage::differ(shown, &preview)) {
            return Err(RewindError::Changed(Box::new(preview)));
        }
        while !preview.plan.opens.is_empty() {
            closed_folders::open(workspace, &preview)?;
            preview = look_and_plan(workspace, request, &lost)?;
        }
        if preview.is_refused() {
            return Ok((preview.receipt().refused(), not_run));
        }
        if preview.plan.does_nothing() {
            corrections::remember(&mut *workspace.store, &preview.plan.corrections)?;
            if preview.kind.is_undoable() {
                history::note_idle(workspace)?;
            }
            return Ok((preview.receipt(), not_run));
        }
        let may_run = native::prepare(workspace, request, &mut preview.plan, native.as_deref())?;
        match begin(workspace, &preview)? {
            Start::Promised(record) => {
                let outcome = match (may_run, &mut native) {
                    (Ok(()), Some(native)) => {
                        native::run(workspace, &preview.plan, record.id, native)?
                    }
                    (Ok(()), None) => not_run,
                    (Err(skip), _) => NativeOutcome::Skipped(skip),
                };
                let now = record.created_at;
                return Ok((finish(workspace, &preview.plan, record, now)?, outcome));
            }
            Start::Lost(more) => {
                lost.extend(more);
                closed_folders::close(workspace)?;
            }
        }
    }
}

/// select -> look -> plan.
fn look_and_plan(
    workspace: &mut Workspace,
    request: &RewindRequest,
    lost: &BTreeSet<Digest>,
) -> Result<Preview, RewindError> {
    if let Target::State(point) = request.target {
        let kind = RewindKind::Rewind { point: point.unwrap_or(PointId(0)) };
        request.rollback.as_ref().ok_or(RewindError::NoState)?;
        let state = state_move::select(workspace, request, kind)?;
        let plan = Plan { state, ..Plan::default() };
        let title = request.title.clone();
        let coverage = Coverage::default();
        return Ok(Preview {
            plan,
            kind,
            title,
            coverage,
            windows: Vec::new(),
            lost: lost.clone(),
        });
    }
    let selection = select(workspace, request)?;
    let inputs = present::look(workspace, request, &selection)?;
    let options = PlanOptions {
        aim: selection.aim,
        ambiguous: request.ambiguous,
        conflicts: request.conflicts,
        points: inputs.points,
        discard: request.discard.clone(),
        outside: request.outside,
        open_lines: request.open_lines(),
        lost: lost.clone(),
    };
    let sources = StoreSources(&*workspace.store);
    let mut plan = plan::plan(&inputs.histories, &inputs.disk, &options, &sources)?;
    plan.is_full_scan = inputs.is_full_scan;
    plan.adopts = matches!(selection.kind, RewindKind::Adopt { .. });
    plan.corrections = inputs.corrections;
    safety_point::keep_uncovered(&mut plan, &inputs.uncovered, &inputs.disk);
    present::mark_links_elsewhere(workspace, &mut plan)?;
    closed_folders::find(workspace, &mut plan);
    plan.state = state_move::select(workspace, request, selection.kind)?;
    let windows = windows(&*workspace.store, &plan)?;
    let coverage = scope::coverage(&options.aim, &inputs.histories);
    let (kind, title) = (selection.kind, request.title.clone());
    Ok(Preview { plan, kind, title, coverage, windows, lost: options.lost })
}

fn select(workspace: &Workspace, request: &RewindRequest) -> Result<Selection, RewindError> {
    let records = history::records_for(workspace, &request.target)?;
    let selected = target::select(request, &records);
    if let Err(RewindError::RewoundNothing) = selected {
        // Reported once; the next undo takes back the rewind before it.
        history::clear_idle_note(workspace);
    }
    selected
}

enum Start {
    Promised(RewindRecord),
    /// The store has lost these contents: there must be a plan without them.
    Lost(BTreeSet<Digest>),
}

/// stage -> promise.
fn begin(workspace: &mut Workspace, preview: &Preview) -> Result<Start, RewindError> {
    let id = closed_folders::promised_id(workspace);
    let lost = stage::stage(workspace, preview, id)?;
    if !lost.is_empty() {
        return Ok(Start::Lost(lost));
    }
    let promised = journal::promise(workspace, preview, id);
    match &promised {
        // From here on this plan closes the folders that were opened for it.
        Ok(_) => workspace.opened.promise = None,
        Err(_) => stage::discard(workspace, id),
    }
    promised.map(Start::Promised)
}

/// Everything after the promise. A plan that is all or nothing and could not be done completely is
/// reverted; its journal stays open until then, so that a recovery continues with that.
fn finish(
    workspace: &mut Workspace,
    plan: &Plan,
    record: RewindRecord,
    now: Timestamp,
) -> Result<Receipt, RewindError> {
    if record.receipt.is_some() {
        let receipt = Receipt::of_interrupted(&record, plan);
        return revert::revert(workspace, plan, record, receipt);
    }
    let id = record.id;
    let receipt = apply_and_close(workspace, plan, record, now)?;
    match workspace.store.rewind(id)?.filter(|record| record.state == RewindState::Open) {
        Some(record) => revert::revert(workspace, plan, record, receipt),
        None => Ok(receipt),
    }
}

/// apply -> verify -> close -> clear.
fn apply_and_close(
    workspace: &mut Workspace,
    plan: &Plan,
    mut record: RewindRecord,
    now: Timestamp,
) -> Result<Receipt, RewindError> {
    let work = workspace.ambient.begin(Work::Apply, file_count(plan));
    let store = &mut *workspace.store;
    let mut plan_run = None;
    let mut outcomes = Vec::new();
    // A plan for a state alone has no stage.
    if !plan.leaves_files() {
        let opened = PlanRun::open(&workspace.root, plan, record.id);
        let opened = plan_run.insert(opened.map_err(|source| RewindError::Unfinished { source })?);
        opened.apply(store, work.counter());
        outcomes = opened.verify(work.counter());
    }
    let mut receipt = Receipt::of_rewind(&record, plan, &outcomes);
    match &plan_run {
        Some(opened) => receipt.add_conflicts(opened.unrestored_native_paths()),
        None => receipt.add_errors(restore_modes(&workspace.root, &plan.unlocked)),
    }
    // Before the journal is closed: a recovery that finds it open moves the head if this did not.
    state_move::apply(&*workspace.states, plan, record.id, &mut receipt);
    // After that: files that are in place let the head move, confirmed by the disk or not.
    receipt.add_unconfirmed(plan, &outcomes);
    record.state = state_move::state_after(plan, &receipt);
    let done = PlanOutcome { plan, outcomes: &outcomes, receipt: &receipt, time: now };
    journal::close(store, record, &done)?;
    if let Some(opened) = plan_run {
        receipt.add_leftovers(opened.clear(store));
    }
    Ok(receipt)
}

/// Finishes open journals, then clears stages that no open journal needs.
pub(crate) fn recover_locked(workspace: &mut Workspace) -> Result<RecoveryReport, RewindError> {
    let mut report = RecoveryReport::default();
    purge::finish(workspace)?;
    let now = (workspace.ambient.now)();
    // Read again after each: finishing one may finish others.
    while let Some(record) = journal::first_open(&*workspace.store)? {
        report.finished.extend(recovery::finish_journal(workspace, record, now)?);
    }
    recovery::clear_stages(workspace, &mut report)?;
    Ok(report)
}

fn lock(workspace: &Workspace, hold: Hold) -> Result<Lock, RewindError> {
    workspace.lock(hold, workspace.limits.rewind_patience)?.ok_or(RewindError::Locked)
}
