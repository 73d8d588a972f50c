//! A bounded queue of messages to one client, in order.
//!
//! A sender waits while the queue is full; a thread of the connection writes. If a write fails (on
//! a socket also by its write timeout), the client counts as gone and no sender waits any more.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use crate::frame::Framing;
use crate::rpc::notification;

/// The client is gone.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client is gone")]
pub struct DisconnectedError;

/// The sending end. Any thread may hold one.
#[derive(Debug, Clone)]
pub struct Outlet {
    shared: Arc<SharedQueue>,
}

#[derive(Debug)]
struct SharedQueue {
    queue: Mutex<Queue>,
    changed: Condvar,
    most: usize,
}

#[derive(Debug)]
struct Queue {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    framing: Framing,
    /// Accepts no more messages; those in the queue are still written.
    ended: bool,
    /// A write failed.
    gone: bool,
}

impl Outlet {
    /// `most`: bytes that may wait in the queue. A single message may be longer.
    pub(crate) fn new(most: usize) -> Self {
        let queue = Queue {
            waiting: VecDeque::new(),
            bytes: 0,
            framing: Framing::Lines,
            ended: false,
            gone: false,
        };
        let shared = SharedQueue { queue: Mutex::new(queue), changed: Condvar::new(), most };
        Self { shared: Arc::new(shared) }
    }

    /// Sends a notification. Waits while the queue is full.
    pub fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), DisconnectedError> {
        self.send(&notification(method, params))
    }

    /// Whether messages no longer reach the client.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        let queue = self.queue();
        queue.gone || queue.ended
    }

    pub(crate) fn send(&self, text: &str) -> Result<(), DisconnectedError> {
        let mut queue = self.queue();
        let message = queue.framing.framed(text);
        while !(queue.gone
            || queue.ended
            || queue.waiting.is_empty()
            || queue.bytes + message.len() <= self.shared.most)
        {
            queue = self.shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if queue.gone || queue.ended {
            return Err(DisconnectedError);
        }
        queue.bytes += message.len();
        queue.waiting.push_back(message);
        self.shared.changed.notify_all();
        Ok(())
    }

    pub(crate) fn set_framing(&self, framing: Framing) {
        self.queue().framing = framing;
    }

    /// The writer ends once the queue is empty.
    pub(crate) fn end(&self) {
        self.queue().ended = true;
        self.shared.changed.notify_all();
    }

    /// Writes messages until the queue is ended and empty, or a write fails.
    pub(crate) fn write_to(&self, mut writer: impl Write) -> io::Result<()> {
        loop {
            let message = {
                let mut queue = self.queue();
                loop {
                    if let Some(message) = queue.waiting.pop_front() {
                        break message;
                    }
                    if queue.ended {
                        return Ok(());
                    }
                    queue = self.shared.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
            };
            let written = writer.write_all(&message).and_then(|()| writer.flush());
            let mut queue = self.queue();
            queue.bytes -= message.len();
            if written.is_err() {
                queue.gone = true;
                queue.waiting.clear();
            }
            drop(queue);
            self.shared.changed.notify_all();
            written?;
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
