//! Events that come too late, or that there was no time for: into the spool, and out of it again.

use std::time::Duration;

use takeback_store::{Lack, Point, PointKind, Seq, StoreError};

use super::{Punctuality, RecordError, Recorded, describe, record_at, resolved};
use crate::deferred;
use crate::event::{AgentEvent, Touches};
use crate::lock::{Hold, lock};
use crate::spool::{self, Spooled};
use crate::workspace::Workspace;
use crate::worktree::budget::Budget;

/// Keeps an event for whoever is next.
pub(super) fn spool(workspace: &Workspace, spooled: Spooled) -> Result<Recorded, RecordError> {
    spool::push(&workspace.store_dir, &spooled)
        .map_err(|source| RecordError::Spool { path: workspace.store_dir.clone(), source })?;
    let not_captured = match spooled.event {
        AgentEvent::BeforeTool {
            touches: Touches::Paths(paths) | Touches::Anything { paths, .. },
            ..
        } => resolved(workspace, &paths).into_iter().map(|path| (path, Lack::Deadline)).collect(),
        _ => Vec::new(),
    };
    let seq = match workspace.store.head() {
        // The event is kept: that nobody can tell the head just now is no reason to say otherwise.
        Err(StoreError::Busy { .. }) => Seq(0),
        head => head?.seq,
    };
    Ok(Recorded { not_captured, spooled: true, ..Recorded::nothing(seq) })
}

/// Records what waits in the spool, for a caller that holds the lock.
pub(crate) fn drain_spool(workspace: &mut Workspace) -> Result<usize, RecordError> {
    drain_within(workspace, workspace.limits.rewind_patience, Budget::UNLIMITED)
}

/// As [`drain_spool`], for an agent that waits: what there is no time for stays in the spool.
pub(super) fn drain_within(
    workspace: &mut Workspace,
    patience: Duration,
    budget: Budget,
) -> Result<usize, RecordError> {
    enum Failed {
        Spool(std::io::Error),
        Record(RecordError),
    }
    impl From<std::io::Error> for Failed {
        fn from(error: std::io::Error) -> Self {
            Self::Spool(error)
        }
    }
    let path = workspace.store_dir.clone();
    let orphans = drain_orphans(workspace, patience, budget)?;
    let drained =
        spool::drain(&path, patience, |spooled| match record_late(workspace, &spooled, budget) {
            Ok(()) => Ok(()),
            Err(error) => Err(Failed::Record(error)),
        });
    match drained {
        Ok(drained) => drained.map(|drained| orphans + drained).ok_or(RecordError::Locked),
        Err(Failed::Spool(source)) => Err(RecordError::Spool { path, source }),
        Err(Failed::Record(error)) => Err(error),
    }
}

/// Records what somebody died over who was to look at the tree for it. What is in the spool came after
/// it; as long as somebody is still at it, that has to wait.
fn drain_orphans(
    workspace: &mut Workspace,
    patience: Duration,
    budget: Budget,
) -> Result<usize, RecordError> {
    let path = workspace.store_dir.clone();
    let failed = |source| RecordError::Spool { path: path.clone(), source };
    if deferred::number(&path).map_err(failed)? == 0 {
        return Ok(0);
    }
    let beside = path.join("spool.lock");
    let Some(_alone) = lock(&beside, Hold::Exclusive, patience).map_err(failed)? else {
        return Err(RecordError::Locked);
    };
    let mut drained = 0;
    for orphan in deferred::orphans(&path).map_err(failed)? {
        record_late(workspace, &orphan.spooled, budget)?;
        orphan.done().map_err(failed)?;
        drained += 1;
    }
    let is_over = deferred::number(&path).map_err(failed)? == 0;
    if is_over || spool::is_empty(&path).map_err(failed)? {
        Ok(drained)
    } else {
        Err(RecordError::Locked)
    }
}

/// A crash may have kept an event in the spool that is in the log. To record it again does nothing,
/// except where it would make its point or open its call a second time.
fn record_late(
    workspace: &mut Workspace,
    spooled: &Spooled,
    budget: Budget,
) -> Result<(), RecordError> {
    let Spooled { time, event } = spooled;
    if let AgentEvent::BeforeTool { session, call, .. } = event {
        let known = workspace.store.call(session, call)?;
        if known.is_some_and(|known| known.opened_at == *time) {
            return Ok(());
        }
    }
    let described = match event {
        AgentEvent::Prompt { text, message, .. } => {
            Some((PointKind::Prompt, describe(text), message.as_ref()))
        }
        AgentEvent::Step { name, .. } => Some((PointKind::Step, describe(name), None)),
        _ => None,
    };
    if let Some((kind, description, message)) = described {
        let is_its = |point: &Point| {
            point.session.as_ref() == Some(event.session())
                && (point.created_at, point.kind) == (*time, kind)
                && point.description == description
                && message.is_none_or(|message| point.message_ids.contains(message))
        };
        if workspace.store.points()?.iter().any(is_its) {
            return Ok(());
        }
    }
    record_at(workspace, event, *time, Punctuality::Late, budget).map(drop)
}
