//! What reaches a turn from outside while it runs: that it is to end, and what was decided.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::chat_agent::Decision;

#[derive(Default)]
pub(crate) struct Signals {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Default)]
struct Now {
    is_busy: bool,
    is_interrupted: bool,
    is_closed: bool,
    asked: Option<String>,
    decision: Option<Decision>,
}

impl Signals {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the agent for a turn, or for something else that no turn may meet. `false`: it is taken.
    pub(crate) fn begin(&self) -> bool {
        let mut now = self.now();
        if now.is_busy {
            return false;
        }
        (now.is_busy, now.is_interrupted) = (true, now.is_closed);
        true
    }

    pub(crate) fn end(&self) {
        self.now().is_busy = false;
    }

    pub(crate) fn interrupt(&self) {
        let mut now = self.now();
        now.is_interrupted |= now.is_busy;
        drop(now);
        self.changed.notify_all();
    }

    /// Ends what runs, and whatever is begun afterwards.
    pub(crate) fn close(&self) {
        let mut now = self.now();
        (now.is_closed, now.is_interrupted) = (true, true);
        drop(now);
        self.changed.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.now().is_closed
    }

    pub(crate) fn is_interrupted(&self) -> bool {
        self.now().is_interrupted
    }

    /// Waits; whether it was to the end.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.now(), time, |now| !now.is_interrupted);
        let (now, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !now.is_interrupted
    }

    /// From here on a decision on `request` is taken. Before anybody hears of it.
    pub(crate) fn ask(&self, request: &str) {
        let mut now = self.now();
        (now.asked, now.decision) = (Some(request.to_owned()), None);
    }

    /// Whether that was asked.
    pub(crate) fn decide(&self, request: &str, decision: Decision) -> bool {
        let mut now = self.now();
        if now.asked.as_deref() != Some(request) {
            return false;
        }
        (now.asked, now.decision) = (None, Some(decision));
        drop(now);
        self.changed.notify_all();
        true
    }

    /// Waits for the decision that was asked for; `None`: the turn is to end.
    pub(crate) fn decision(&self) -> Option<Decision> {
        let waited = self
            .changed
            .wait_while(self.now(), |now| now.decision.is_none() && !now.is_interrupted);
        let mut now = waited.unwrap_or_else(PoisonError::into_inner);
        now.asked = None;
        now.decision.take()
    }
}
