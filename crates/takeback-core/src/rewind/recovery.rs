//! Cleans up what a crash left besides open journals: stages, and journals that cannot be read.

use takeback_store::{RewindId, RewindRecord, WorkPath};

use super::apply::open_stages;
use super::error::RewindError;
use super::journal;
use super::receipt::{Problem, Receipt};
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
                    && let Ok(stages) = open_stages(&workspace.root, &plan, id)
                {
                    stages.clear(&*workspace.store);
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
    stages(&workspace.root).map_err(|source| RewindError::Stages { id: RewindId(0), source })
}

/// Closes a journal whose plan cannot be read, so that it does not block every later rewind. Its stage may
/// hold the user's bytes and stays; the safety point can still be restored.
pub(super) fn give_up(
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
