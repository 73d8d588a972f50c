//! Adds ids to a point: an agent reports the ids of one message one after the other.

use takeback_store::{Point, SessionId, StoreError, Write};

use crate::inbox::WaitFor;
use crate::lock::{Hold, Patience};
use crate::record::{RecordError, recorded_as};
use crate::workspace::Workspace;

/// Adds the ids `also` to the newest point of `session` that has the id `known`. Returns whether any was
/// new; it is durable then. Nothing is written if none was, or if there is no such point (its event may
/// still be in the inbox). The call waits for other processes no longer than recording an event does.
pub fn learn_ids(
    workspace: &mut Workspace,
    session: &SessionId,
    known: &str,
    also: &[String],
) -> Result<bool, RecordError> {
    let session = recorded_as(session);
    let patience = Patience::starting_now(workspace.limits.recorder_patience);
    if !workspace.inbox().wait_for(WaitFor::Session(&session), patience.left())? {
        return Err(RecordError::Locked);
    }
    let Some(_lock) = workspace.lock(Hold::Shared, patience.left())? else {
        return Err(RecordError::Locked);
    };
    workspace.store.set_busy_timeout(Some(patience.left_for_a_commit()))?;
    let learned = learn(workspace, &session, known, also);
    workspace.store.set_busy_timeout(None)?;
    learned
}

fn learn(
    workspace: &mut Workspace,
    session: &SessionId,
    known: &str,
    also: &[String],
) -> Result<bool, RecordError> {
    loop {
        let head = workspace.store.head()?;
        let points = workspace.store.points()?;
        let is_it = |point: &&Point| {
            point.session.as_ref() == Some(session)
                && point.message_ids.iter().any(|id| id == known)
        };
        let Some(mut point) = points.iter().rfind(is_it).cloned() else { return Ok(false) };
        let before = point.message_ids.len();
        for id in also {
            if !point.message_ids.contains(id) {
                point.message_ids.push(id.clone());
            }
        }
        if point.message_ids.len() == before {
            return Ok(false);
        }
        match workspace.store.commit(head, &[Write::Point(point)]) {
            Err(StoreError::Moved) => {}
            done => return Ok(done.map(|_| true)?),
        }
    }
}
