//! After a crash: an open journal is finished, a stage that this store made and never promised is
//! cleared away. Any other stage that no record names is left alone.

use takeback_store::{RewindId, RewindRecord, RewindState, Store, StoreError, WorkPath, Write};

use super::apply::{open_stages, settle_further};
use super::journal::{RewindError, finish};
use super::opened::{close_again, only_opens};
use super::plan::Plan;
use super::receipt::{Problem, Receipt};
use crate::lock::Hold;
use crate::purge;
use crate::record::drain_spool;
use crate::workspace::Workspace;
use crate::worktree::Root;
use crate::worktree::write::{clear_stage, is_nobodys, remove_marks, remove_own_folder, stages};

/// What was mended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Rewinds that had been promised and are finished now.
    pub finished: Vec<Receipt>,
    /// Stages that were made for a rewind that was never promised.
    pub cleared: Vec<RewindId>,
    /// Stages that were left alone: another store's, or with what somebody saved in it, or no folder.
    pub left: Vec<RewindId>,
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

/// Whether [`recover`] has something to do, without waiting for a lock: an open journal, or a stage
/// that is left and not somebody else's.
pub fn needs_recovery(workspace: &Workspace) -> Result<bool, RewindError> {
    let store = &*workspace.store;
    if !store.open_rewinds()?.is_empty() || purge::is_unfinished(workspace) {
        return Ok(true);
    }
    let mark = workspace.mark();
    let staged = stages(&workspace.root)
        .map_err(|source| RewindError::Stages { id: RewindId(0), source })?;
    for id in staged {
        if store.rewind(id)?.is_some() || is_nobodys(&workspace.root, id, &mark) {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(crate) fn recover_locked(workspace: &mut Workspace) -> Result<Recovered, RewindError> {
    let mut recovered = Recovered::default();
    purge::finish(workspace)?;
    let now = (workspace.ambient.now)();
    // One after another: to finish one may finish others.
    while let Some(record) = first_open(&*workspace.store)? {
        let receipt = match promised(&record) {
            // It had only begun to look.
            Ok(plan) if only_opens(&plan) => {
                let errors = close_again(workspace, &plan, &record)?;
                if errors.is_empty() {
                    continue;
                }
                Receipt { rewind: Some(record.id), errors, ..Receipt::default() }
            }
            Ok(plan) => {
                settle_further(&workspace.root, &*workspace.store, &plan, record.id)
                    .map_err(|source| RewindError::Waiting { source })?;
                finish(workspace, &plan, record, now)?
            }
            Err(error) => give_up(&workspace.root, &mut *workspace.store, record, &error)?,
        };
        recovered.finished.push(receipt);
    }
    let mark = workspace.mark();
    let staged = stages(&workspace.root)
        .map_err(|source| RewindError::Stages { id: RewindId(0), source })?;
    // A stage that cannot go stands in nobody's way.
    for id in staged {
        match workspace.store.rewind(id)? {
            // Stopped between the receipt and the cleaning up. What cannot go has been named there.
            Some(record) => {
                if let Ok(plan) = promised(&record)
                    && let Ok(staged) = open_stages(&workspace.root, &plan, id)
                {
                    staged.clean_up(&*workspace.store);
                }
            }
            None => match clear_stage(&workspace.root, id, &mark) {
                Ok(true) => recovered.cleared.push(id),
                Ok(false) | Err(_) => recovered.left.push(id),
            },
        }
    }
    drop(remove_own_folder(&workspace.root));
    Ok(recovered)
}

fn first_open(store: &dyn Store) -> Result<Option<RewindRecord>, StoreError> {
    Ok(store.open_rewinds()?.into_iter().next())
}

/// Closes a journal that says nothing, so that it does not stand in the way of every later rewind.
/// Its stage may hold the user's bytes and stays; the safety point is as good as ever.
fn give_up(
    root: &Root,
    store: &mut dyn Store,
    mut record: RewindRecord,
    error: &serde_json::Error,
) -> Result<Receipt, RewindError> {
    // If that fails, the rewind had not begun: whoever begins it removes the mark first.
    drop(remove_marks(root, record.id));
    let receipt = Receipt {
        rewind: Some(record.id),
        safety_point: Some(record.safety_point),
        errors: vec![Problem {
            path: WorkPath::new(format!(".takeback/stage-{}", record.id)).expect("a plain path"),
            error: format!("the plan of this interrupted rewind cannot be read ({error})"),
        }],
        ..Receipt::default()
    };
    record.state = RewindState::Done;
    record.receipt = serde_json::to_string(&receipt).ok();
    loop {
        let head = store.head()?;
        match store.commit(head, &[Write::Rewind(record.clone())]) {
            Err(StoreError::Moved) => {}
            done => {
                done?;
                return Ok(receipt);
            }
        }
    }
}

fn promised(record: &RewindRecord) -> Result<Plan, serde_json::Error> {
    serde_json::from_str(&record.plan)
}
