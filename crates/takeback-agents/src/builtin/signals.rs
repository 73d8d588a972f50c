//! What other threads send to a running turn: an interrupt, and decisions.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::chat_agent::Decision;

#[derive(Default)]
pub(crate) struct Signals {
    state: Mutex<SignalState>,
    changed: Condvar,
}

#[derive(Default)]
struct SignalState {
    is_busy: bool,
    is_interrupted: bool,
    is_closed: bool,
    asked: Option<String>,
    decision: Option<Decision>,
}

impl Signals {
    fn state(&self) -> MutexGuard<'_, SignalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reserves the agent for a turn, or for work between turns. `false`: it is busy.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.state();
        if state.is_busy {
            return false;
        }
        (state.is_busy, state.is_interrupted) = (true, state.is_closed);
        true
    }

    pub(crate) fn end(&self) {
        self.state().is_busy = false;
    }

    pub(crate) fn interrupt(&self) {
        let mut state = self.state();
        state.is_interrupted |= state.is_busy;
        drop(state);
        self.changed.notify_all();
    }

    /// Interrupts the current turn, and every later one.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        (state.is_closed, state.is_interrupted) = (true, true);
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.state().is_interrupted
    }

    /// Waits; `false` if it was interrupted.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        let waited =
            self.changed.wait_timeout_while(self.state(), time, |state| !state.is_interrupted);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.is_interrupted
    }

    /// Accepts a decision on `request` from now on. Call this before the host is asked.
    pub(crate) fn ask(&self, request: &str) {
        let mut state = self.state();
        (state.asked, state.decision) = (Some(request.to_owned()), None);
    }

    /// `false`: no decision on `request` is expected.
    pub(crate) fn decide(&self, request: &str, decision: Decision) -> bool {
        let mut state = self.state();
        if state.asked.as_deref() != Some(request) {
            return false;
        }
        (state.asked, state.decision) = (None, Some(decision));
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Waits for the decision; `None` if the turn is interrupted.
    pub(crate) fn decision(&self) -> Option<Decision> {
        let waited = self
            .changed
            .wait_while(self.state(), |state| state.decision.is_none() && !state.is_interrupted);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        state.asked = None;
        state.decision.take()
    }
}
