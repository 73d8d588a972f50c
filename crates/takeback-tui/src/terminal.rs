//! The terminal itself: the one place here that touches it.
//!
//! [`Terminal::enter`] takes it over: raw mode, the alternate screen, pasted text marked as such. From
//! then on what comes from it is sent to the caller by threads of its own. However the terminal is left,
//! by dropping it, by a panic or because a signal made the program end in order, it is as it was before.

mod modes;
mod output;
mod reader;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use output::Output;
use ratatui::Frame;
use ratatui::backend::CrosstermBackend;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::iterator::{Handle, Signals};

/// A terminal that was taken over, until this is dropped. One at a time.
pub struct Terminal {
    screen: ratatui::Terminal<CrosstermBackend<Output>>,
    muted: Arc<AtomicBool>,
    /// The program was stopped meanwhile, and a shell had the terminal.
    stale: Arc<AtomicBool>,
    /// Closed to stop the reader.
    stop: Option<io::PipeWriter>,
    signals: Handle,
    threads: Vec<JoinHandle<()>>,
    _taken: modes::Taken,
}

/// What comes from the terminal, or about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalEvent {
    /// For a [`crate::keys::Decoder`].
    Bytes(Vec<u8>),
    /// Time to draw again: another size, or the program goes on after it was stopped.
    Resized,
    /// SIGTERM, SIGHUP or SIGINT: time to end in order.
    Signal(i32),
    /// Nothing more will come.
    Closed,
}

type Send = Arc<Mutex<dyn Fn(TerminalEvent) + std::marker::Send>>;

impl Terminal {
    /// Fails, with everything as it was, if standard input or output is no terminal.
    ///
    /// `send` is called from other threads and must not wait: [`Drop`] waits for it.
    pub fn enter(send: impl Fn(TerminalEvent) + std::marker::Send + 'static) -> io::Result<Self> {
        let taken = modes::take()?;
        let output = Output::default();
        let muted = output.muted();
        let screen = ratatui::Terminal::new(CrosstermBackend::new(output))?;
        let send: Send = Arc::new(Mutex::new(send));
        let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGWINCH, SIGCONT])?;
        let handle = signals.handle();
        let (stopped, stop) = io::pipe()?;
        let mut terminal = Self {
            screen,
            muted,
            stale: Arc::new(AtomicBool::new(false)),
            stop: Some(stop),
            signals: handle,
            threads: Vec::new(),
            _taken: taken,
        };
        let to = Arc::clone(&send);
        terminal.threads.push(
            thread::Builder::new()
                .name("terminal".to_owned())
                .spawn(move || reader::read(&stopped, |event| tell(&to, event)))?,
        );
        let stale = Arc::clone(&terminal.stale);
        let hear = move || {
            for signal in signals.forever() {
                stale.fetch_or(signal == SIGCONT, Ordering::Relaxed);
                let event = match signal {
                    SIGWINCH | SIGCONT => TerminalEvent::Resized,
                    _ => TerminalEvent::Signal(signal),
                };
                tell(&send, event);
            }
        };
        terminal.threads.push(thread::Builder::new().name("signals".to_owned()).spawn(hear)?);
        Ok(terminal)
    }

    /// Draws a whole frame; what is the same as before is not sent. The terminal shows it at once where
    /// it can (synchronized updates).
    pub fn draw(&mut self, view: impl FnOnce(&mut Frame)) -> io::Result<()> {
        if self.stale.swap(false, Ordering::Relaxed) {
            modes::take_again()?;
            // Not `clear`, which asks the terminal where the cursor is and reads the answer from under
            // our reader.
            let size = self.screen.size()?;
            self.screen.resize(size.into())?;
        }
        crossterm::queue!(self.screen.backend_mut(), crossterm::terminal::BeginSynchronizedUpdate)?;
        self.screen.draw(view)?;
        crossterm::execute!(self.screen.backend_mut(), crossterm::terminal::EndSynchronizedUpdate)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.muted.store(true, Ordering::Relaxed);
        drop(self.stop.take());
        self.signals.close();
        for thread in self.threads.drain(..) {
            // A reader that panicked has nothing more to read.
            drop(thread.join());
        }
    }
}

fn tell(send: &Send, event: TerminalEvent) {
    if matches!(event, TerminalEvent::Closed | TerminalEvent::Signal(SIGHUP)) {
        modes::gone();
    }
    send.lock().unwrap_or_else(PoisonError::into_inner)(event);
}
