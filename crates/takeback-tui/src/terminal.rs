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
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGWINCH};
use signal_hook::iterator::{Handle, Signals};

/// A terminal that was taken over, until this is dropped. One at a time.
pub struct Terminal {
    screen: ratatui::Terminal<CrosstermBackend<Output>>,
    muted: Arc<AtomicBool>,
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
    /// Time to draw again.
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
        let mut signals = Signals::new([SIGTERM, SIGHUP, SIGINT, SIGWINCH])?;
        let handle = signals.handle();
        let (stopped, stop) = io::pipe()?;
        let mut terminal = Self {
            screen,
            muted,
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
        terminal.threads.push(thread::Builder::new().name("signals".to_owned()).spawn(
            move || {
                for signal in signals.forever() {
                    let resized = signal == SIGWINCH;
                    let event = TerminalEvent::Signal(signal);
                    tell(&send, if resized { TerminalEvent::Resized } else { event });
                }
            },
        )?);
        Ok(terminal)
    }

    /// Draws a whole frame; what is the same as before is not sent. The terminal shows it at once where
    /// it can (synchronized updates).
    pub fn draw(&mut self, view: impl FnOnce(&mut Frame)) -> io::Result<()> {
        crossterm::queue!(self.screen.backend_mut(), crossterm::terminal::BeginSynchronizedUpdate)?;
        self.screen.draw(view)?;
        crossterm::execute!(self.screen.backend_mut(), crossterm::terminal::EndSynchronizedUpdate)
    }

    /// Forgets what the terminal shows, so that the next [`Self::draw`] sends everything.
    pub fn redraw(&mut self) -> io::Result<()> {
        self.screen.clear()
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
