//! A look at the tree while the agent's model thinks.
//!
//! After most of what agents tell they write nothing before they have told something else: the model
//! has to answer first. Where the tree is large, such an event is only kept ([`record_or_defer`]), the
//! agent has its answer, and another process looks and records ([`record_deferred`]). What comes after it
//! waits: see [`crate::deferred`].

use takeback_store::{SessionId, StoreError};

use super::late::spool;
use super::{
    OwnCalls, Punctuality, RecordError, Recorded, budget, is_spool_empty, may_write_anything,
    pass_barrier, record, record_at, recorded_as, want_the_rest,
};
use crate::deferred::{Deferred, Whose, is_one};
use crate::event::AgentEvent;
use crate::lock::Hold;
use crate::spool::{self, Spooled};
use crate::workspace::Workspace;
use crate::worktree::scan::ScanError;

/// Where an event was put.
#[derive(Debug)]
pub enum Put {
    Recorded(Recorded),
    /// It is kept, and [`record_deferred`] is to be called with it, here or in another process.
    Deferred(Deferred),
}

/// As [`record`], but an event for which a tree of `from_files` files or more has to be looked at is
/// deferred, if the agent will tell something else before it writes. How many files there are is
/// guessed.
pub fn record_or_defer(
    workspace: &mut Workspace,
    event: &AgentEvent,
    from_files: u64,
) -> Result<Put, RecordError> {
    let event = event.clone().renamed(recorded_as(event.session()));
    // A tree that is watched is not looked at as a whole, and only this process is told what happened.
    let is_watched = workspace.watched.is_some();
    if is_watched
        || !is_last_word(&event)
        || !is_large(workspace, from_files)
        || !is_spool_empty(workspace)?
    {
        return record(workspace, &event).map(Put::Recorded);
    }
    let time = (workspace.ambient.now)();
    let is_worth_it = pass_barrier(workspace, &event).and_then(|()| {
        workspace.store.set_patience(Some(workspace.limits.recorder_patience))?;
        needs_tree(workspace, &event).map_err(RecordError::from)
    });
    workspace.store.set_patience(None)?;
    match is_worth_it {
        Ok(true) => {}
        Ok(false) => return record(workspace, &event).map(Put::Recorded),
        Err(error) if error.can_wait() => {
            return spool(workspace, Spooled { time, event }).map(Put::Recorded);
        }
        Err(error) => return Err(error),
    }
    let id = (workspace.ambient.random)();
    Deferred::new(&workspace.store_dir, id, Spooled { time, event })
        .map(Put::Deferred)
        .map_err(|source| RecordError::Spool { path: workspace.store_dir.clone(), source })
}

/// Looks at the tree for an event and records it, as it was when the agent told it. If its session
/// could not wait, it is recorded as one that came late. If it cannot be recorded, it stays
/// for whoever is next.
pub fn record_deferred(
    workspace: &mut Workspace,
    deferred: Deferred,
) -> Result<Recorded, RecordError> {
    let recorded = record_one(workspace, &deferred.spooled);
    if matches!(recorded, Err(RecordError::Scan(ScanError::OutOfTime))) {
        want_the_rest(workspace)?;
    }
    let left = if recorded.is_ok() { deferred.done() } else { deferred.leave() };
    left.map_err(|source| RecordError::Spool { path: workspace.store_dir.clone(), source })?;
    recorded
}

fn record_one(workspace: &mut Workspace, spooled: &Spooled) -> Result<Recorded, RecordError> {
    let Some(_lock) = workspace.lock_only(Hold::Shared, workspace.limits.rewind_patience)? else {
        return Err(RecordError::Locked);
    };
    let budget = budget(workspace)?;
    record_at(workspace, &spooled.event, spooled.time, Punctuality::Deferred, budget)
}

/// For whoever asks the log about a session before an event of it: whether it holds by now what the
/// session has told.
pub fn wait_for_deferred(workspace: &Workspace, session: &SessionId) -> Result<bool, StoreError> {
    workspace.is_past(Whose::Of(&recorded_as(session)), workspace.limits.barrier_patience)
}

/// Whether a session has put events into the spool, behind one that is deferred: it may have written
/// what they tell of.
pub(super) fn has_gone_on(workspace: &Workspace, session: &SessionId) -> Result<bool, RecordError> {
    let path = &workspace.store_dir;
    spool::waiting_of(path, |event| is_one(event.session(), session))
        .map(|waiting| waiting > 0)
        .map_err(|source| RecordError::Spool { path: path.clone(), source })
}

/// Whether the agent writes nothing after this before it tells something else.
fn is_last_word(event: &AgentEvent) -> bool {
    match event {
        AgentEvent::SessionStart { .. }
        | AgentEvent::Prompt { .. }
        | AgentEvent::AfterTool { .. }
        | AgentEvent::TurnEnd { .. }
        | AgentEvent::SessionEnd { .. } => true,
        AgentEvent::BeforeTool { .. } | AgentEvent::Step { .. } => false,
    }
}

fn needs_tree(workspace: &Workspace, event: &AgentEvent) -> Result<bool, StoreError> {
    let own = OwnCalls::of(workspace, event)?;
    Ok(match event {
        AgentEvent::SessionStart { .. } => own.anything || !own.named.is_empty(),
        AgentEvent::AfterTool { session, call, .. } => {
            let ended = workspace.store.call(session, call)?;
            own.anything || may_write_anything(ended.map(|call| call.kind).as_ref())
        }
        _ => true,
    })
}

/// By the size of the index: without one, this is the first look, and nobody knows how long it takes.
fn is_large(workspace: &Workspace, from_files: u64) -> bool {
    const BYTES_OF_A_FILE: u64 = 100;
    std::fs::metadata(workspace.index_file())
        .is_ok_and(|index| index.len() / BYTES_OF_A_FILE >= from_files)
}
