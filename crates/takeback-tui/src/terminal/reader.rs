//! Reads standard input until it is told to stop.

use super::TerminalEvent;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::os::fd::AsFd;

/// Ends when the other end of `stop` is closed, or at the end of input. Unread bytes are left for the next
/// reader.
pub(super) fn read(stop: &impl AsFd, send: impl Fn(TerminalEvent)) {
    let stdin = rustix::stdio::stdin();
    let mut bytes = [0; 4096];
    loop {
        let mut polled = [PollFd::new(&stdin, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
        match poll(&mut polled, None) {
            Ok(_) if !polled[1].revents().is_empty() => return,
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return send(TerminalEvent::Closed),
        }
        match rustix::io::read(stdin, &mut bytes) {
            Ok(0) => return send(TerminalEvent::Closed),
            Ok(length) => send(TerminalEvent::Bytes(bytes[..length].to_vec())),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return send(TerminalEvent::Closed),
        }
    }
}
