//! Finds agents that are working while files are taken back or written.

use std::collections::HashMap;

use takeback_core::process;
use takeback_core::rewind::{RewindRequest, Target};
use takeback_store::{Call, CallState, Session, SessionId, Store, StoreError, Timestamp};

use crate::answers;
use crate::commands::receipt::Tense;
use crate::session_name::SessionNames;
use crate::time::{ago, now};

/// An agent with an event within this time counts as working.
const RECENT_MS: i64 = 10_000;

/// A session that is working, and how that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ActiveSession {
    session: SessionId,
    /// The tool of an open call, if the agent's process is alive.
    tool: Option<String>,
    last_event: Timestamp,
}

/// Empty if an agent rolls back its own state: that is part of its work. An undo or redo only returns to
/// what was there shortly before.
pub(crate) fn active_sessions(
    store: &dyn Store,
    request: &RewindRequest,
) -> Result<Vec<ActiveSession>, StoreError> {
    let is_checked = match request.target {
        Target::Point(_) | Target::Changes(_) | Target::Restore(_) | Target::Incoming(_) => true,
        Target::State(_) | Target::Undo | Target::Redo | Target::Operation(_) => false,
    };
    if request.rollback.is_some() || !is_checked {
        return Ok(Vec::new());
    }
    let since = Timestamp(now().0 - RECENT_MS);
    let calls = store.calls_since(since)?;
    let mut at_work = Vec::new();
    let sessions = store.sessions()?;
    // A subagent's work counts for its parent session.
    let wholes: HashMap<&SessionId, &SessionId> =
        sessions.iter().filter_map(|session| Some((&session.id, session.whole()?))).collect();
    for session in &sessions {
        if session.ended_at.is_none() && session.whole().is_none() {
            let whole = |call: &Call| wholes.get(&call.session).copied();
            let is_own = |call: &&Call| whole(call).unwrap_or(&call.session) == &session.id;
            let calls: Vec<&Call> = calls.iter().filter(is_own).collect();
            at_work.extend(of_session(store, session, &calls, since)?);
        }
    }
    Ok(at_work)
}

fn of_session(
    store: &dyn Store,
    session: &Session,
    calls: &[&Call],
    since: Timestamp,
) -> Result<Option<ActiveSession>, StoreError> {
    let is_alive = session.owner.map(process::is_alive);
    let turn = match session.open_turn {
        Some(turn) if is_alive != Some(false) => store.turn(turn)?,
        _ => None,
    };
    let open = calls.iter().find(|call| call.state == CallState::Open && is_alive == Some(true));
    let times = calls.iter().flat_map(|call| [Some(call.opened_at), call.closed_at]).flatten();
    let last_event = times.chain(turn.as_ref().map(|turn| turn.opened_at)).max();
    let is_recent = turn.is_some() && last_event.is_some_and(|last| last >= since);
    Ok(last_event.filter(|_| open.is_some() || is_recent).map(|last_event| ActiveSession {
        session: session.id.clone(),
        tool: open.map(|call| call.tool.clone()),
        last_event,
    }))
}

impl ActiveSession {
    pub(crate) fn describe(&self, names: &SessionNames, tense: Tense) -> String {
        let session = names.get(&self.session);
        let what = match (&self.tool, tense) {
            (Some(tool), Tense::Did) => format!("was at work ({tool} was running)"),
            (Some(tool), _) => format!("is at work ({tool} is running)"),
            (None, Tense::Did) => "may have been at work".to_owned(),
            (None, _) => format!("may be at work (last event {})", ago(self.last_event, now())),
        };
        format!("{session} {what}. What it writes afterwards is kept.")
    }

    pub(crate) fn answer(&self) -> answers::ActiveSession {
        answers::ActiveSession {
            session: self.session.0.clone(),
            tool: self.tool.clone(),
            last_event_at: answers::time(self.last_event),
        }
    }
}
