//! Makes a session known to the log before its first event.
//!
//! Every hook is a process of its own that knows nothing of earlier ones, so it asks the store whether the
//! session exists and who owns it.

use takeback_core::record::RecordError;
use takeback_core::{AgentEvent, Workspace, process, record, wait_for_session};
use takeback_store::{CallState, Session, SessionId};

use super::events::subagent_session;
use super::{HookEvent, HookEventKind, HookSource};

/// Records the start of the session of `hook_event`, if the session is new or continues in another process.
/// The event itself is recorded after this.
pub fn introduce_session(
    workspace: &mut Workspace,
    source: HookSource,
    hook_event: &HookEvent,
) -> Result<(), RecordError> {
    // The event is the start of the session.
    if hook_event.kind == HookEventKind::SessionStart && hook_event.forked_from.is_none() {
        return Ok(());
    }
    let whole = SessionId(hook_event.session.clone());
    let sessions = workspace.store.sessions()?;
    let is_current =
        |id: &SessionId| sessions.iter().any(|known| known.id == *id && still_owns(source, known));
    if !is_current(&whole) {
        record(workspace, &source.session_start(whole.clone(), None, None))?;
    }
    if let Some(part) = subagent_session(hook_event).filter(|part| !is_current(part)) {
        record(workspace, &source.session_start(part, Some(whole), None))?;
    }
    Ok(())
}

fn still_owns(source: HookSource, session: &Session) -> bool {
    let owner = session.owner;
    session.agent.is_some()
        && (source.process.is_none()
            || owner == source.process
            || owner.is_some_and(process::is_alive))
}

/// Whether `hook_event` ends something in the background that is no running call. The end of a subagent is
/// reported like that of a command, but its calls were recorded already. `event`: what
/// [`to_agent_event`](super::to_agent_event) made of it.
pub fn ends_nothing(
    workspace: &Workspace,
    hook_event: &HookEvent,
    event: &AgentEvent,
) -> Result<bool, RecordError> {
    if !matches!(hook_event.kind, HookEventKind::BackgroundEnded { .. }) {
        return Ok(false);
    }
    let AgentEvent::AfterTool { session, call, .. } = event else { return Ok(true) };
    // The event that moved the call to the background may not be recorded yet.
    wait_for_session(workspace, session)?;
    let call = workspace.store.call(session, call)?;
    Ok(call.is_none_or(|call| call.state != CallState::Background))
}
