//! Collects a frame and writes it in one piece.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Unlike a `BufWriter`, it drops unflushed bytes: after a panic, half a frame must not reach the restored
/// screen.
#[derive(Default)]
pub(super) struct Output {
    pending: Vec<u8>,
    muted: Arc<AtomicBool>,
}

impl Output {
    /// Set it to true to discard all output. ratatui shows the cursor when it is dropped, and panics if the
    /// terminal is gone by then.
    pub(super) fn muted(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.muted)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.pending);
        if self.muted.load(Ordering::Relaxed) { Ok(()) } else { send(&bytes) }
    }
}

/// Writes to standard output, even if another program made it non-blocking.
pub(super) fn send(mut bytes: &[u8]) -> io::Result<()> {
    let stdout = rustix::stdio::stdout();
    while !bytes.is_empty() {
        match rustix::io::write(stdout, bytes) {
            Ok(length) => bytes = &bytes[length..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => match poll(&mut [PollFd::new(&stdout, PollFlags::OUT)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
