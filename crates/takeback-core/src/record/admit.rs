//! The first phase of recording: waits for the events that come before this one and records late ones. An
//! event that cannot wait that long goes into the inbox.

use std::time::Duration;

use takeback_store::{NotCapturedReason, Point, PointKind, Seq, SessionId, StoreError};

use super::observe::{named_paths, resolve_all};
use super::{Arrival, Punctuality, RecordError, RecordOutcome, describe, record_arrival};
use crate::event::AgentEvent;
use crate::inbox::{InboxEvent, WaitFor};
use crate::lock::{Hold, Lock, Patience};
use crate::workspace::Workspace;
use crate::worktree::budget::Budget;

/// Permission to record an event, and the time there is for it.
pub(super) struct RecordPermit {
    _lock: Lock,
    pub(super) budget: Budget,
}

/// Admits an agent's event once everything that must precede it is in the log.
pub(super) fn admit(
    workspace: &mut Workspace,
    event: &AgentEvent,
) -> Result<RecordPermit, RecordError> {
    pass_barrier(workspace, event)?;
    let patience = Patience::starting_now(workspace.limits.recorder_patience);
    let lock = lock_shared(workspace, patience.left())?;
    let budget = budget(workspace)?;
    workspace.store.set_busy_timeout(Some(patience.left_for_a_commit()))?;
    drain(workspace, patience.left(), budget)?;
    workspace.store.set_busy_timeout(Some(patience.left_for_a_commit()))?;
    Ok(RecordPermit { _lock: lock, budget })
}

/// As [`admit`], for a command, which has no deadline.
pub(super) fn admit_command(
    workspace: &mut Workspace,
    patience: Duration,
) -> Result<Lock, RecordError> {
    let lock = lock_shared(workspace, patience)?;
    drain_inbox(workspace)?;
    Ok(lock)
}

pub(super) fn lock_shared(workspace: &Workspace, patience: Duration) -> Result<Lock, RecordError> {
    workspace.lock(Hold::Shared, patience)?.ok_or(RecordError::Locked)
}

/// Waits for the claimed events that must be recorded before this one.
pub(super) fn pass_barrier(workspace: &Workspace, event: &AgentEvent) -> Result<(), RecordError> {
    let is_past = wait_for_session(workspace, event.session())?;
    if is_past { Ok(()) } else { Err(RecordError::Locked) }
}

/// Waits until the log has every event that `session` has reported. `false`: time ran out.
pub fn wait_for_session(workspace: &Workspace, session: &SessionId) -> Result<bool, StoreError> {
    let session = super::recorded_as(session);
    workspace.inbox().wait_for(WaitFor::Session(&session), workspace.limits.barrier_patience)
}

/// The time for a scan that an event starts now. The first scan of a tree makes a change of every name;
/// writing them takes as long as finding them, and a background scan reads the rest.
pub(super) fn budget(workspace: &Workspace) -> Result<Budget, StoreError> {
    Ok(match workspace.store.last_scan()? {
        Some(_) => workspace.limits.budget(),
        None => workspace.limits.first_budget(),
    })
}

/// Keeps an event in the inbox. What it is about to overwrite is not captured.
pub(super) fn push(workspace: &Workspace, event: InboxEvent) -> Result<RecordOutcome, RecordError> {
    let named = resolve_all(workspace, named_paths(&event.event)).into_iter();
    let not_captured = named.map(|path| (path, NotCapturedReason::Deadline)).collect();
    workspace.inbox().push(event)?;
    let seq = match workspace.store.head() {
        // The event is safe in the inbox, even if the head cannot be read now.
        Err(StoreError::Busy { .. }) => Seq(0),
        head => head?.seq,
    };
    Ok(RecordOutcome { not_captured, late: true, ..RecordOutcome::nothing(seq) })
}

/// Records the late events if no other process is in the way. Returns how many events are still not in
/// the log. With an empty inbox it only lists the folder.
///
/// Waits only for claimed events, which another process is recording.
pub fn record_late_events(workspace: &mut Workspace) -> Result<usize, RecordError> {
    let inbox = workspace.inbox();
    if inbox.is_empty()? {
        return Ok(0);
    }
    inbox.wait_for(WaitFor::All, workspace.limits.rewind_patience)?;
    if !inbox.is_empty()?
        && let Some(_lock) = workspace.lock(Hold::Shared, Duration::ZERO)?
    {
        match drain(workspace, Duration::ZERO, Budget::UNLIMITED) {
            Ok(_) | Err(RecordError::Locked | RecordError::Store(StoreError::Busy { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(inbox.len()?)
}

/// Records the late events, for a caller that holds the workspace lock. Returns how many there were.
pub(crate) fn drain_inbox(workspace: &mut Workspace) -> Result<usize, RecordError> {
    drain(workspace, workspace.limits.rewind_patience, Budget::UNLIMITED)
}

/// As [`drain_inbox`], with a deadline: events for which there is no time stay in the inbox.
fn drain(
    workspace: &mut Workspace,
    patience: Duration,
    budget: Budget,
) -> Result<usize, RecordError> {
    let inbox = workspace.inbox();
    inbox
        .drain(patience, |event| record_late(workspace, &event, budget))?
        .ok_or(RecordError::Locked)
}

/// After a crash a late event may be in the log already. Recording it again changes nothing, except that it
/// would make its point or open its call a second time.
fn record_late(
    workspace: &mut Workspace,
    late: &InboxEvent,
    budget: Budget,
) -> Result<(), RecordError> {
    let InboxEvent { time, event } = late;
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
    let arrival = Arrival { event, time: *time, punctuality: Punctuality::Late };
    record_arrival(workspace, &arrival, budget).map(drop)
}

/// Whether an event may be answered before the tree has been scanned for it: the tree has about
/// `from_files` files or more, the agent reports something else before it writes, and nothing is late.
pub(super) fn may_be_queued(
    workspace: &Workspace,
    event: &AgentEvent,
    from_files: u64,
) -> Result<bool, StoreError> {
    // Only the process that watches a tree learns what changed, and it does not scan all of it.
    let is_watched = workspace.watched.is_some();
    Ok(!is_watched
        && is_followed_by_another(event)
        && is_large(workspace, from_files)
        && !workspace.inbox().has_late()?)
}

fn is_followed_by_another(event: &AgentEvent) -> bool {
    match event {
        AgentEvent::SessionStart { .. }
        | AgentEvent::Prompt { .. }
        | AgentEvent::AfterTool { .. }
        | AgentEvent::TurnEnd { .. }
        | AgentEvent::SessionEnd { .. } => true,
        AgentEvent::BeforeTool { .. } | AgentEvent::Step { .. } => false,
    }
}

/// By the size of the index. Without one this is the first scan, which may take any time.
fn is_large(workspace: &Workspace, from_files: u64) -> bool {
    const BYTES_OF_A_FILE: u64 = 100;
    std::fs::metadata(workspace.index_file())
        .is_ok_and(|index| index.len() / BYTES_OF_A_FILE >= from_files)
}
