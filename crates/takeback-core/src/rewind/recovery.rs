//! What recovery does with what a crash left: an open journal is finished, or closed if its plan cannot be read;
//! a stage that no journal needs is cleared.

use takeback_store::{RewindId, RewindRecord, Timestamp, WorkPath};

use super::apply::{PlanRun, resume_native};
use super::error::RewindError;
use super::receipt::{Problem, Receipt};
use super::{closed_folders, finish, journal};
use crate::purge;
use crate::workspace::Workspace;
use crate::worktree::write::{clear_stage, is_unclaimed, remove_marks, remove_own_folder, stages};

/// What [`super::recover`] repaired.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecoveryReport {
    /// Rewinds that had been promised and are finished now.
    pub finished: Vec<Receipt>,
    /// Stages that were made for a rewind that was never promised.
    pub cleared: Vec<RewindId>,
    /// Stages that were left alone: another store's, or with a file saved in them, or not a folder.
    pub left: Vec<RewindId>,
    /// Late events that were recorded first.
    pub drained: usize,
}

/// Whether [`super::recover`] has something to do, without waiting for a lock: an open journal, or a
/// stage of this store.
pub fn needs_recovery(workspace: &Workspace) -> Result<bool, RewindError> {
    let store = &*workspace.store;
    if !store.open_rewinds()?.is_empty() || purge::is_unfinished(workspace) {
        return Ok(true);
    }
    let mark = workspace.mark();
    for id in existing_stages(workspace)? {
        if store.rewind(id)?.is_some() || is_unclaimed(&workspace.root, id, &mark) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Finishes an open journal. `None`: there was nothing to report.
pub(super) fn finish_journal(
    workspace: &mut Workspace,
    record: RewindRecord,
    now: Timestamp,
) -> Result<Option<Receipt>, RewindError> {
    let plan = match journal::plan_of(&record) {
        Ok(plan) => plan,
        Err(error) => return give_up(workspace, record, &error).map(Some),
    };
    if closed_folders::only_closes(&plan) {
        let errors = closed_folders::close_promised(workspace, &plan, &record)?;
        let receipt = Receipt { rewind: Some(record.id), errors, ..Receipt::default() };
        return Ok(Some(receipt).filter(|receipt| !receipt.errors.is_empty()));
    }
    resume_native(&workspace.root, &*workspace.store, &plan, record.id)
        .map_err(|source| RewindError::Unfinished { source })?;
    finish(workspace, &plan, record, now).map(Some)
}

/// Clears the stages of rewinds that are closed or were never promised. One that cannot be cleared
/// blocks nothing.
pub(super) fn clear_stages(
    workspace: &Workspace,
    report: &mut RecoveryReport,
) -> Result<(), RewindError> {
    let mark = workspace.mark();
    for id in existing_stages(workspace)? {
        match workspace.store.rewind(id)? {
            // Stopped between the receipt and the clearing. The receipt names what cannot be removed.
            Some(record) => {
                if let Ok(plan) = journal::plan_of(&record)
                    && let Ok(run) = PlanRun::open(&workspace.root, &plan, id)
                {
                    run.clear(&*workspace.store);
                }
            }
            None => match clear_stage(&workspace.root, id, &mark) {
                Ok(true) => report.cleared.push(id),
                Ok(false) | Err(_) => report.left.push(id),
            },
        }
    }
    drop(remove_own_folder(&workspace.root));
    Ok(())
}

fn existing_stages(workspace: &Workspace) -> Result<Vec<RewindId>, RewindError> {
    stages(&workspace.root).map_err(|source| RewindError::Stages { source })
}

/// Closes a journal whose plan cannot be read, so that it does not block every later rewind. Its stage may
/// hold the user's bytes and stays; the safety point can still be restored.
fn give_up(
    workspace: &mut Workspace,
    mut record: RewindRecord,
    error: &serde_json::Error,
) -> Result<Receipt, RewindError> {
    // If that fails, the rewind had not begun: applying it removes the mark first.
    drop(remove_marks(&workspace.root, record.id));
    let receipt = Receipt {
        rewind: Some(record.id),
        safety_point: Some(record.safety_point),
        errors: vec![Problem {
            path: WorkPath::new(format!(".takeback/stage-{}", record.id)).expect("a plain path"),
            error: format!("the plan of this interrupted rewind cannot be read ({error})"),
        }],
        ..Receipt::default()
    };
    record.receipt = serde_json::to_string(&receipt).ok();
    journal::close_without_changes(&mut *workspace.store, record)?;
    Ok(receipt)
}
