//! After a crash: an open journal is finished, a stage nobody promised is cleared away.

use takeback_store::{RewindId, RewindRecord, RewindState};

use super::apply::{open_stages, stage};
use super::journal::{RewindError, fulfil};
use super::plan::Plan;
use super::receipt::Receipt;
use crate::lock::Hold;
use crate::record::drain_spool;
use crate::workspace::Workspace;
use crate::worktree::write::{clear_stage, stages};

/// What was mended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Rewinds that had been promised and are finished now.
    pub finished: Vec<Receipt>,
    /// Stages that were made for a rewind that was never promised.
    pub cleared: Vec<RewindId>,
    /// Events that waited in the spool.
    pub drained: usize,
}

/// Finishes what a crash interrupted. Commands call it before they change anything; hooks never do.
pub fn recover(workspace: &mut Workspace) -> Result<Recovered, RewindError> {
    let Some(_lock) = workspace.lock(Hold::Exclusive, workspace.limits.rewind_patience)? else {
        return Err(RewindError::Locked);
    };
    let mut recovered = recover_locked(workspace)?;
    recovered.drained = drain_spool(workspace)?;
    Ok(recovered)
}

/// Whether [`recover`] has something to do, without waiting for a lock.
pub fn needs_recovery(workspace: &Workspace) -> Result<bool, RewindError> {
    let open = workspace.store.rewinds()?.iter().any(|record| record.state == RewindState::Open);
    Ok(open)
}

pub(crate) fn recover_locked(workspace: &mut Workspace) -> Result<Recovered, RewindError> {
    let mut recovered = Recovered::default();
    let now = (workspace.ambient.now)();
    let rewinds = workspace.store.rewinds()?;
    for record in rewinds.into_iter().filter(|record| record.state == RewindState::Open) {
        let plan = promised(&record)?;
        let staged = stage(&workspace.root, &*workspace.store, &plan, record.id)?;
        let receipt = fulfil(&mut *workspace.store, &workspace.root, staged, &plan, record, now)?;
        recovered.finished.push(receipt);
    }
    let rewinds = workspace.store.rewinds()?;
    let failed = |id| move |source| RewindError::Stages { id, source };
    for id in stages(&workspace.root).map_err(failed(RewindId(0)))? {
        match rewinds.iter().find(|record| record.id == id) {
            // Stopped between the receipt and the cleaning up.
            Some(record) => {
                let plan = promised(record)?;
                open_stages(&workspace.root, &plan, id)?.clean_up(&workspace.root);
            }
            None => {
                clear_stage(&workspace.root, id).map_err(failed(id))?;
                recovered.cleared.push(id);
            }
        }
    }
    Ok(recovered)
}

fn promised(record: &RewindRecord) -> Result<Plan, RewindError> {
    serde_json::from_str(&record.plan)
        .map_err(|source| RewindError::DamagedPlan { id: record.id, source })
}
