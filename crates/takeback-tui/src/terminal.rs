//! The terminal: the only module that touches it.
//!
//! [`Terminal::enter`] switches it to raw mode, the alternate screen and bracketed paste. Its threads
//! send input and signals to the caller. The terminal is restored when the value is dropped, also after
//! a panic or a signal that ends the program in order.

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

/// The terminal in raw mode, until this is dropped. Only one can exist at a time.
pub struct Terminal {
    screen: ratatui::Terminal<CrosstermBackend<Output>>,
    muted: Arc<AtomicBool>,
    /// Set after the program was stopped and continued: a shell used the terminal.
    stale: Arc<AtomicBool>,
    /// Closed to stop the reader.
    stop: Option<io::PipeWriter>,
    signals: Handle,
    threads: Vec<JoinHandle<()>>,
    _modes: modes::Modes,
}

/// Input from the terminal, or a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalEvent {
    /// Input, for a [`Decoder`](crate::Decoder).
    Bytes(Vec<u8>),
    /// Draw again: the size changed, or the program was continued after a stop.
    Resized,
    /// SIGTERM, SIGHUP or SIGINT: end in order.
    Signal(i32),
    /// There is no more input.
    Closed,
}

type EventSender = Arc<Mutex<dyn Fn(TerminalEvent) + Send>>;

impl Terminal {
    /// Fails, and changes nothing, if standard input or output is not a terminal.
    ///
    /// `send` is called from other threads and must not block: dropping the terminal waits for it.
    pub fn enter(send: impl Fn(TerminalEvent) + Send + 'static) -> io::Result<Self> {
        let modes = modes::enter()?;
        let output = Output::default();
        let muted = output.muted();
        let screen = ratatui::Terminal::new(CrosstermBackend::new(output))?;
        let send: EventSender = Arc::new(Mutex::new(send));
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
            _modes: modes,
        };
        let sender = Arc::clone(&send);
        terminal.threads.push(
            thread::Builder::new()
                .name("terminal".to_owned())
                .spawn(move || reader::read(&stopped, |event| forward(&sender, event)))?,
        );
        let stale = Arc::clone(&terminal.stale);
        let listen = move || {
            for signal in signals.forever() {
                stale.fetch_or(signal == SIGCONT, Ordering::Relaxed);
                let event = match signal {
                    SIGWINCH | SIGCONT => TerminalEvent::Resized,
                    _ => TerminalEvent::Signal(signal),
                };
                forward(&send, event);
            }
        };
        terminal.threads.push(thread::Builder::new().name("signals".to_owned()).spawn(listen)?);
        Ok(terminal)
    }

    /// Draws a frame and sends only what changed, as one synchronized update where the terminal supports
    /// it.
    pub fn draw(&mut self, view: impl FnOnce(&mut Frame)) -> io::Result<()> {
        if self.stale.swap(false, Ordering::Relaxed) {
            modes::reenter()?;
            // Not `clear`: it asks the terminal for the cursor position and would compete with our reader
            // for the reply.
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
            // A thread that panicked has nothing left to do.
            drop(thread.join());
        }
    }
}

fn forward(send: &EventSender, event: TerminalEvent) {
    if matches!(event, TerminalEvent::Closed | TerminalEvent::Signal(SIGHUP)) {
        modes::mark_closed();
    }
    send.lock().unwrap_or_else(PoisonError::into_inner)(event);
}
