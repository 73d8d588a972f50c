//! State that the host can read while the driver is busy.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::conversation::Conversation;
use super::permission::PendingCall;
use crate::chat_agent::AgentError;

#[derive(Default)]
pub(super) struct SharedState(Mutex<State>);

#[derive(Default)]
struct State {
    /// `None`: it has ended, or was never started.
    pid: Option<u32>,
    end_reason: String,
    busy: bool,
    conversation: Conversation,
    session: Option<String>,
    announced: Option<String>,
    requests: HashMap<String, PendingCall>,
}

impl SharedState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set_started(&self, pid: u32) {
        self.state().pid = Some(pid);
    }

    pub(super) fn set_ended(&self, why: &str) {
        let mut state = self.state();
        state.pid = None;
        why.clone_into(&mut state.end_reason);
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.state().pid
    }

    /// Fails if there is no process.
    pub(super) fn check_live(&self) -> Result<(), AgentError> {
        let state = self.state();
        state.pid.map(drop).ok_or_else(|| AgentError::Ended(state.end_reason.clone()))
    }

    /// Fails if a turn is open.
    pub(super) fn check_idle(&self) -> Result<(), AgentError> {
        if self.state().busy { Err(AgentError::Busy) } else { Ok(()) }
    }

    /// Opens a turn, unless one is open.
    pub(super) fn begin_turn(&self) -> Result<(), AgentError> {
        let mut state = self.state();
        if state.pid.is_none() {
            return Err(AgentError::Ended(state.end_reason.clone()));
        }
        if std::mem::replace(&mut state.busy, true) { Err(AgentError::Busy) } else { Ok(()) }
    }

    pub(super) fn set_busy(&self) {
        self.state().busy = true;
    }

    pub(super) fn set_idle(&self) {
        self.state().busy = false;
    }

    pub(super) fn conversation<R>(&self, of: impl FnOnce(&mut Conversation) -> R) -> R {
        of(&mut self.state().conversation)
    }

    /// The program's current id of the session.
    pub(super) fn session(&self) -> Option<String> {
        self.state().session.clone()
    }

    pub(super) fn set_session(&self, session: Option<String>) {
        if session.is_some() {
            self.state().session = session;
        }
    }

    /// Whether this session id is new to the host; marks it as announced.
    pub(super) fn announce_session(&self, session: Option<&str>) -> bool {
        let mut state = self.state();
        let is_new = state.announced.as_deref() != session;
        state.announced = session.map(str::to_owned);
        is_new
    }

    pub(super) fn add_request(&self, request: &str, call: PendingCall) {
        self.state().requests.insert(request.to_owned(), call);
    }

    pub(super) fn has_request(&self, request: &str) -> bool {
        self.state().requests.contains_key(request)
    }

    pub(super) fn take_request(&self, request: &str) -> Option<PendingCall> {
        self.state().requests.remove(request)
    }

    pub(super) fn clear_requests(&self) {
        self.state().requests.clear();
    }
}
