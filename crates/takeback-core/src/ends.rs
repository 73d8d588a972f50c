//! Ends of calls that no event reported. Agents send no hook after Esc or a refusal; a [`CallEndSource`]
//! knows where else to look: in the agent's transcript, among the running processes.

use std::time::Duration;

use takeback_store::{Call, CallId, CallState, Session, SessionId, Timestamp};

use crate::workspace::Workspace;

/// The end of a call, learned from something other than its own event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LearnedEnd {
    /// The session of the call.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// How it ended.
    pub how: EndKind,
    /// `None`: at some unknown time before now.
    pub at: Option<Timestamp>,
    /// How long it ran, without the wait for the person's permission, if that is known.
    pub took: Option<Duration>,
}

/// How a call ended that no hook reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndKind {
    /// It ran to its end.
    Finished,
    /// The person stopped it.
    Interrupted,
    /// The person refused it: it never ran.
    Rejected,
    /// It is over; whether it ran or was refused is unknown.
    Unknown,
}

/// Finds ends of calls outside of the log.
pub trait CallEndSource: Send {
    /// Those of `calls`, all of them of `session`, that are known to be over.
    fn ends_of(&self, session: &Session, calls: &[Call]) -> Vec<LearnedEnd>;
}

/// The ends of `calls` that the workspace's [`CallEndSource`] knows.
pub(crate) fn learn_ends(
    workspace: &Workspace,
    calls: &[Call],
) -> Result<Vec<LearnedEnd>, takeback_store::StoreError> {
    let Some(call_end_source) = &workspace.call_end_source else { return Ok(Vec::new()) };
    let mut ends = Vec::new();
    let mut asked: Vec<&SessionId> = Vec::new();
    for call in calls {
        if asked.contains(&&call.session) {
            continue;
        }
        asked.push(&call.session);
        let own: Vec<Call> =
            calls.iter().filter(|other| other.session == call.session).cloned().collect();
        if let Some(session) = workspace.store.session(&call.session)? {
            ends.extend(call_end_source.ends_of(&session, &own));
        }
    }
    Ok(ends)
}

impl LearnedEnd {
    pub(crate) fn is_of(&self, call: &Call) -> bool {
        (&self.session, &self.call) == (&call.session, &call.id)
    }

    /// The call with its end; `now`: when it was learned.
    pub(crate) fn of(&self, call: &Call, now: Timestamp) -> Call {
        let state = match self.how {
            EndKind::Finished => CallState::Done,
            EndKind::Interrupted => CallState::Interrupted,
            EndKind::Rejected => CallState::Rejected,
            EndKind::Unknown => CallState::CutOff,
        };
        let at = self.at.filter(|at| *at >= call.opened_at && *at <= now).unwrap_or(now);
        let took = self.took.and_then(|took| i64::try_from(took.as_millis()).ok());
        let began_at = took.map(|took| Timestamp(at.0.saturating_sub(took)));
        let began_at = began_at.filter(|began| *began > call.opened_at);
        Call { state, began_at, closed_at: Some(at), ..call.clone() }
    }
}
