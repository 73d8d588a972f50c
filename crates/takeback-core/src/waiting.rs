//! What waits in the spool, recorded before somebody looks at the log: a point that waits is one that
//! nobody can go back to.

use std::time::Duration;

use takeback_store::StoreError;

use crate::lock::Hold;
use crate::record::{RecordError, drain_spool};
use crate::spool;
use crate::workspace::Workspace;

/// Records what waits, if nobody is in the way, and waits for nobody. Answers how many events still
/// wait. Without any, it looks for two files and does nothing else.
pub fn record_waiting(workspace: &mut Workspace) -> Result<usize, RecordError> {
    let waiting = number(workspace)?;
    if waiting == 0 {
        return Ok(0);
    }
    let Some(_lock) = workspace.lock(Hold::Shared, Duration::ZERO)? else {
        return Ok(waiting);
    };
    let patience = std::mem::replace(&mut workspace.limits.rewind_patience, Duration::ZERO);
    let drained = drain_spool(workspace);
    workspace.limits.rewind_patience = patience;
    match drained {
        Ok(_) => Ok(0),
        Err(RecordError::Locked | RecordError::Store(StoreError::Busy { .. })) => number(workspace),
        Err(error) => Err(error),
    }
}

fn number(workspace: &Workspace) -> Result<usize, RecordError> {
    spool::waiting(&workspace.store_dir)
        .map_err(|source| RecordError::Spool { path: workspace.store_dir.clone(), source })
}
