//! Recording: an event comes in; changes with their authors, and perhaps a point, go into the log.
//!
//! This file conducts, in five phases:
//!
//! 1. `admit`: wait for earlier events of the session, lock the workspace, drain the inbox;
//! 2. `observe`: look at the paths of an edit, or scan the tree;
//! 3. `decide`: which session, turn, call and point the event opens or closes;
//! 4. `attribute`: the author of each change;
//! 5. `commit`: one commit of everything.
//!
//! Several processes record at once. A commit names the head that it was made for; if another process
//! was faster, the observation catches up with the new head and phases 3 to 5 run again. An event for which
//! there is no time waits in the [inbox](crate::inbox).

mod admit;
mod author;
mod commit;
mod count;
mod decide;
mod gaps;
mod observation;
mod observe;
mod outcome;
mod trust;

use takeback_store::{PointId, PointKind, SessionId, StoreError, Timestamp, TurnId, WorkPath};

pub(crate) use self::admit::drain_inbox;
use self::admit::{admit, admit_command, budget, lock_shared, may_be_queued, pass_barrier, push};
pub use self::admit::{record_late_events, wait_for_session};
use self::author::attribute;
use self::commit::commit;
pub use self::count::bytes_left_to_read;
pub use self::decide::describe;
use self::decide::{Cause, LogView, NewIds, NewPoint, decide};
use self::observation::Observation;
use self::observe::{SessionCalls, observe, observe_paths, observe_tree, observe_whole_tree};
pub use self::outcome::{Admission, RecordError, RecordOutcome, ScanReport};
use self::trust::Writers;
use crate::ends::{LearnedEnd, learn_ends};
use crate::event::{AgentEvent, CallTargets};
use crate::exchange::imported::import_of;
use crate::inbox::{InboxEvent, QueuedEvent};
use crate::workspace::Workspace;
use crate::worktree::budget::Budget;
use crate::worktree::scan::ScanError;
pub use crate::worktree::scan::{Unreadable, UnreadableKind};

/// As [`record`], but an event that needs a scan of about `from_files` files or more is only queued, if
/// the agent reports another event before it writes: the scan runs while the agent's model thinks. The
/// session's next event waits for it (see [`crate::inbox`]).
pub fn record_or_queue(
    workspace: &mut Workspace,
    event: &AgentEvent,
    from_files: u64,
) -> Result<Admission, RecordError> {
    let event = event.clone().renamed(recorded_as(event.session()));
    if !may_be_queued(workspace, &event, from_files)? {
        return record(workspace, &event).map(Admission::Recorded);
    }
    let time = (workspace.ambient.now)();
    let needs_scan = pass_barrier(workspace, &event).and_then(|()| {
        workspace.store.set_busy_timeout(Some(workspace.limits.recorder_patience))?;
        Ok(SessionCalls::read(workspace, &event)?.need_scan(&event))
    });
    let admission = match needs_scan {
        Ok(true) => {
            let queued = workspace.inbox().claim(InboxEvent { time, event });
            queued.map(Admission::Queued).map_err(RecordError::from)
        }
        Ok(false) => return record(workspace, &event).map(Admission::Recorded),
        Err(error) => {
            or_push(workspace, Err(error), InboxEvent { time, event }).map(Admission::Recorded)
        }
    };
    workspace.store.set_busy_timeout(None)?;
    admission
}

/// Records an event. Whatever the outcome reports is durable.
///
/// An agent waits at most `recorder_patience` for other processes, `scan_budget` and its overrun for a
/// scan, and `barrier_patience` for a scan that its session already has under way. After that the event
/// goes into the inbox and is late: when it is recorded, the tree of its moment can no longer be read.
///
/// A session whose name looks like an import is recorded as `agent-…`.
pub fn record(workspace: &mut Workspace, event: &AgentEvent) -> Result<RecordOutcome, RecordError> {
    let event = event.clone().renamed(recorded_as(event.session()));
    let time = (workspace.ambient.now)();
    // `permit` holds the workspace's lock until the event is recorded.
    let recorded = admit(workspace, &event).and_then(|permit| {
        let arrival = Arrival { event: &event, time, punctuality: Punctuality::OnTime };
        record_arrival(workspace, &arrival, permit.budget)
    });
    // First of all, so that no error can keep the event out of both the log and the inbox.
    let recorded = or_push(workspace, recorded, InboxEvent { time, event });
    workspace.store.set_busy_timeout(None)?;
    recorded
}

/// An event that was admitted.
struct Arrival<'e> {
    event: &'e AgentEvent,
    time: Timestamp,
    punctuality: Punctuality,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Punctuality {
    OnTime,
    /// The session waits until the event is recorded, unless a late event shows that it could not wait.
    Queued,
    /// What an edit overwrote was not read in time and cannot be read now.
    Late,
}

impl Arrival<'_> {
    /// Whether the session may have gone on before the tree was observed. To be asked after the
    /// observation: an agent that cannot wait pushes its next event before it writes.
    fn is_late(&self, workspace: &Workspace) -> Result<bool, StoreError> {
        match self.punctuality {
            Punctuality::OnTime => Ok(false),
            Punctuality::Queued => workspace.inbox().has_late_of(self.event.session()),
            Punctuality::Late => Ok(true),
        }
    }
}

/// Phases 2 to 5, for a caller that holds the lock.
fn record_arrival(
    workspace: &mut Workspace,
    arrival: &Arrival<'_>,
    budget: Budget,
) -> Result<RecordOutcome, RecordError> {
    if let AgentEvent::BeforeTool { touches: CallTargets::Nothing, .. } = arrival.event {
        return Ok(RecordOutcome::nothing(workspace.store.head()?.seq));
    }
    let calls = SessionCalls::read(workspace, arrival.event)?;
    let observation = observe(workspace, arrival, &calls, budget)?;
    let ids = NewIds {
        turn: TurnId((workspace.ambient.random)()),
        point: PointId((workspace.ambient.random)()),
    };
    let is_late = arrival.is_late(workspace)?;
    let cause = Cause::Event { arrival, calls: &calls, ids, is_late };
    record_observation(workspace, observation, &cause, &calls.ends)
}

/// Phases 3 to 5. `ends`: ends of calls that no event reported.
fn record_observation(
    workspace: &mut Workspace,
    mut observation: Observation,
    cause: &Cause<'_>,
    ends: &[LearnedEnd],
) -> Result<RecordOutcome, RecordError> {
    let learned_at = if ends.is_empty() { Timestamp(0) } else { (workspace.ambient.now)() };
    loop {
        let head = workspace.store.head()?;
        observation.catch_up(workspace, head)?;
        let log = LogView::read(&*workspace.store, ends, learned_at)?;
        let mut decision = decide(cause, &log, observation.is_scan())?;
        let authored = attribute(workspace, &observation, head, &mut decision)?;
        let committed = commit(workspace, head, &observation, decision, authored)?;
        if let Some((head, outcome)) = committed {
            observation.save_index(workspace, head);
            return Ok(outcome);
        }
        // Another process committed first: again, on its head.
    }
}

/// Puts an event that could not be recorded in time into the inbox.
fn or_push(
    workspace: &Workspace,
    recorded: Result<RecordOutcome, RecordError>,
    event: InboxEvent,
) -> Result<RecordOutcome, RecordError> {
    match recorded {
        Err(error) if error.is_temporary() => {
            let unfinished = matches!(error, RecordError::Scan(ScanError::OutOfTime));
            if unfinished {
                workspace.inbox().request_scan()?;
            }
            Ok(RecordOutcome { unfinished, ..push(workspace, event)? })
        }
        recorded => recorded,
    }
}

/// Records a queued event with the tree of its moment. If its session could not wait, the event counts
/// as late. If it cannot be recorded, it stays in the inbox.
pub fn record_queued(
    workspace: &mut Workspace,
    queued: QueuedEvent,
) -> Result<RecordOutcome, RecordError> {
    let InboxEvent { time, event } = &queued.event;
    let recorded = lock_shared(workspace, workspace.limits.rewind_patience).and_then(|_lock| {
        let budget = budget(workspace)?;
        let arrival = Arrival { event, time: *time, punctuality: Punctuality::Queued };
        record_arrival(workspace, &arrival, budget)
    });
    if matches!(recorded, Err(RecordError::Scan(ScanError::OutOfTime))) {
        workspace.inbox().request_scan()?;
    }
    let finished = if recorded.is_ok() { queued.remove() } else { queued.release() };
    finished?;
    recorded
}

/// The name of a session in the log. Imported changes have no author here, and an agent must not pass
/// its own work off as imported.
pub(crate) fn recorded_as(session: &SessionId) -> SessionId {
    match import_of(session) {
        Some(_) => SessionId(format!("agent-{session}")),
        None => session.clone(),
    }
}

/// Scans the tree and records changes that no event announced.
pub fn look_around(workspace: &mut Workspace) -> Result<ScanReport, RecordError> {
    let _lock = admit_command(workspace, workspace.limits.rewind_patience)?;
    scan_locked(workspace)
}

/// [`look_around`] for a question about one path, which only needs the scan if the path has changed: then
/// lines, or the file itself, may have come from anywhere in the tree.
pub fn look_around_if_changed(
    workspace: &mut Workspace,
    path: &WorkPath,
) -> Result<(), RecordError> {
    let _lock = admit_command(workspace, workspace.limits.rewind_patience)?;
    let limit = Some(workspace.limits.edit_capture_max);
    let seen = observe_paths(workspace, std::slice::from_ref(path), limit)?;
    if seen.found.is_empty() { Ok(()) } else { scan_locked(workspace).map(drop) }
}

/// Scans the tree after events of `sessions` were lost: the changes may be theirs, by unknown calls.
pub fn look_for_missed(
    workspace: &mut Workspace,
    sessions: &[SessionId],
) -> Result<RecordOutcome, RecordError> {
    let _lock = admit_command(workspace, workspace.limits.recorder_patience)?;
    let time = (workspace.ambient.now)();
    let ends = learn_ends(workspace, &workspace.store.live_calls()?)?;
    let observation = observe_tree(workspace, workspace.limits.budget(), Writers::Unreported)?;
    let cause = Cause::NoEvent { suspects: sessions.to_vec(), time };
    record_observation(workspace, observation, &cause, &ends)
}

/// [`look_around`] for a caller that holds the lock.
pub(crate) fn scan_locked(workspace: &mut Workspace) -> Result<ScanReport, RecordError> {
    let time = (workspace.ambient.now)();
    let ends = learn_ends(workspace, &workspace.store.live_calls()?)?;
    let observation = observe_whole_tree(workspace, Budget::UNLIMITED)?;
    let skipped = observation.skipped();
    let cause = Cause::NoEvent { suspects: Vec::new(), time };
    let recorded = record_observation(workspace, observation, &cause, &ends)?;
    Ok(ScanReport { recorded, skipped })
}

/// Reads what earlier scans had no time for, however long it takes, then records the late events. In
/// this order: while a process drains the inbox, every event has to go there.
pub fn finish_scan(workspace: &mut Workspace) -> Result<RecordOutcome, RecordError> {
    let _lock = lock_shared(workspace, workspace.limits.rewind_patience)?;
    let time = (workspace.ambient.now)();
    let observation = observe_whole_tree(workspace, Budget::UNLIMITED)?;
    // Calls of late events are not in the log yet; their changes must not count as the person's.
    let suspects = workspace.inbox().late_sessions()?.into_iter().collect();
    let cause = Cause::NoEvent { suspects, time };
    let recorded = record_observation(workspace, observation, &cause, &[])?;
    drain_inbox(workspace)?;
    Ok(recorded)
}

/// Looks at these paths only and records what differs, for a caller that holds the lock.
pub(crate) fn look_at_paths(
    workspace: &mut Workspace,
    paths: &[WorkPath],
) -> Result<RecordOutcome, RecordError> {
    let time = (workspace.ambient.now)();
    let observation = observe_paths(workspace, paths, None)?;
    let cause = Cause::NoEvent { suspects: Vec::new(), time };
    record_observation(workspace, observation, &cause, &[])
}

/// Makes a manual point: the tree as it is now, for all agents.
pub fn checkpoint(
    workspace: &mut Workspace,
    label: Option<&str>,
) -> Result<RecordOutcome, RecordError> {
    let _lock = admit_command(workspace, workspace.limits.rewind_patience)?;
    let time = (workspace.ambient.now)();
    let ends = learn_ends(workspace, &workspace.store.live_calls()?)?;
    let observation = observe_tree(workspace, Budget::UNLIMITED, Writers::Live)?;
    let point = NewPoint {
        id: PointId((workspace.ambient.random)()),
        kind: PointKind::Manual,
        session: None,
        description: label.unwrap_or_default().to_owned(),
        label: label.map(str::to_owned),
        message: None,
    };
    let cause = Cause::Checkpoint { point, time };
    record_observation(workspace, observation, &cause, &ends)
}
