//! State that the host can read while the driver is busy.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::conversation::Conversation;
use super::permission::Asked;
use crate::chat_agent::AgentError;

#[derive(Default)]
pub(super) struct Shared(Mutex<State>);

#[derive(Default)]
struct State {
    /// `None`: it has ended, or was never started.
    pid: Option<u32>,
    gone: String,
    busy: bool,
    conversation: Conversation,
    session: Option<String>,
    announced: Option<String>,
    asked: HashMap<String, Asked>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn started(&self, pid: u32) {
        self.state().pid = Some(pid);
    }

    pub(super) fn ended(&self, why: &str) {
        let mut state = self.state();
        state.pid = None;
        why.clone_into(&mut state.gone);
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.state().pid
    }

    /// Fails if there is no process.
    pub(super) fn live(&self) -> Result<(), AgentError> {
        let state = self.state();
        state.pid.map(drop).ok_or_else(|| AgentError::Gone(state.gone.clone()))
    }

    /// Fails if a turn is open.
    pub(super) fn is_idle(&self) -> Result<(), AgentError> {
        if self.state().busy { Err(AgentError::Busy) } else { Ok(()) }
    }

    /// Opens a turn, unless one is open.
    pub(super) fn begin(&self) -> Result<(), AgentError> {
        let mut state = self.state();
        if state.pid.is_none() {
            return Err(AgentError::Gone(state.gone.clone()));
        }
        if std::mem::replace(&mut state.busy, true) { Err(AgentError::Busy) } else { Ok(()) }
    }

    pub(super) fn busy(&self) {
        self.state().busy = true;
    }

    pub(super) fn idle(&self) {
        self.state().busy = false;
    }

    pub(super) fn conversation<R>(&self, of: impl FnOnce(&mut Conversation) -> R) -> R {
        of(&mut self.state().conversation)
    }

    /// The program's current id of the session.
    pub(super) fn session(&self) -> Option<String> {
        self.state().session.clone()
    }

    pub(super) fn called(&self, session: Option<String>) {
        if session.is_some() {
            self.state().session = session;
        }
    }

    /// Whether this session id is new to the host; marks it as announced.
    pub(super) fn is_news(&self, session: Option<&str>) -> bool {
        let mut state = self.state();
        let is_news = state.announced.as_deref() != session;
        state.announced = session.map(str::to_owned);
        is_news
    }

    pub(super) fn asks(&self, request: &str, asked: Asked) {
        self.state().asked.insert(request.to_owned(), asked);
    }

    pub(super) fn is_asked(&self, request: &str) -> bool {
        self.state().asked.contains_key(request)
    }

    pub(super) fn answered(&self, request: &str) -> Option<Asked> {
        self.state().asked.remove(request)
    }

    pub(super) fn forget_asked(&self) {
        self.state().asked.clear();
    }
}
