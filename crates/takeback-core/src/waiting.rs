//! What waits to be recorded, recorded before somebody looks at the log: a point that waits is one that
//! nobody can go back to.

use std::time::Duration;

use takeback_store::StoreError;

use crate::deferred::{self, Whose};
use crate::lock::Hold;
use crate::record::{RecordError, drain_spool};
use crate::spool;
use crate::workspace::Workspace;

/// Records what waits, if nobody is in the way. Answers how many events still wait. Without any, it
/// looks for two files and a folder and does nothing else.
///
/// Waits for nobody, except for those who are at an event already: that is soon over.
pub fn record_waiting(workspace: &mut Workspace) -> Result<usize, RecordError> {
    if number(workspace)? == 0 {
        return Ok(0);
    }
    workspace.is_past(Whose::Everybodys, workspace.limits.rewind_patience)?;
    let waiting = number(workspace)?;
    if waiting == 0 {
        return Ok(0);
    }
    let Some(_lock) = workspace.lock_only(Hold::Shared, Duration::ZERO)? else {
        return Ok(waiting);
    };
    let patience = std::mem::replace(&mut workspace.limits.rewind_patience, Duration::ZERO);
    let drained = drain_spool(workspace);
    workspace.limits.rewind_patience = patience;
    match drained {
        Ok(_) => number(workspace),
        Err(RecordError::Locked | RecordError::Store(StoreError::Busy { .. })) => number(workspace),
        Err(error) => Err(error),
    }
}

fn number(workspace: &Workspace) -> Result<usize, RecordError> {
    let path = &workspace.store_dir;
    let number = || Ok(deferred::number(path)? + spool::waiting(path)?);
    number().map_err(|source| RecordError::Spool { path: path.clone(), source })
}
