//! A point learns what else it is known by: an agent tells the ids of one message bit by bit.

use takeback_store::{Point, SessionId, StoreError, Write};

use crate::inbox::WaitFor;
use crate::lock::{Hold, Patience};
use crate::record::{RecordError, recorded_as};
use crate::workspace::Workspace;

/// From now on the newest point of `session` that is known by `known` is known by each of `also` too.
/// Whether there was anything to learn; what was learned is durable. Nothing is written if there was
/// not, or if no such point is there (it may still wait in the inbox). Whoever asks waits for others no
/// longer than with an event.
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
