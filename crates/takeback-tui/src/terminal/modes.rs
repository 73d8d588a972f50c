//! The modes of the terminal: set on entry, restored on every way out.

use super::output::send;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread::{self, ThreadId};

/// Alternate screen, cleared, no cursor; bracketed paste; the wheel sends no arrow keys.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[H\x1b[?25l\x1b[?2004h\x1b[?1007s\x1b[?1007l";

/// The reverse. Some terminals saved whether the wheel sent arrow keys; for the others it is turned on, the
/// usual default.
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[?1007h\x1b[?1007r\x1b[?2004l\x1b[0m\x1b[?25h\x1b[?1049l";

/// The thread that holds the terminal.
static OWNER: Mutex<Option<ThreadId>> = Mutex::new(None);

/// Panics of other threads; printing them at once would write across the screen.
static DEFERRED_PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// True while the terminal is not ours: signals then have their default effect.
static DEFAULT_SIGNALS: AtomicBool = AtomicBool::new(false);

/// The same for SIGHUP, except once the terminal is closed: the program is then ending already, and the
/// kernel may send the signal a second time. That must not cut the end short.
static DEFAULT_HANG_UP: AtomicBool = AtomicBool::new(false);

static CLOSED: AtomicBool = AtomicBool::new(false);

/// Restores the terminal when dropped.
pub(super) struct Modes(());

impl Drop for Modes {
    fn drop(&mut self) {
        leave();
    }
}

pub(super) fn enter() -> io::Result<Modes> {
    let is_terminal = rustix::termios::isatty(rustix::stdio::stdin())
        && rustix::termios::isatty(rustix::stdio::stdout());
    if !is_terminal {
        let why = "standard input or output is not a terminal";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    {
        let mut owner = OWNER.lock().unwrap_or_else(PoisonError::into_inner);
        if owner.is_some() {
            let why = "this program already uses the terminal";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
        }
        crossterm::terminal::enable_raw_mode()?;
        *owner = Some(thread::current().id());
    }
    let modes = Modes(());
    install_panic_hook();
    install_signal_defaults()?;
    DEFAULT_SIGNALS.store(false, Ordering::SeqCst);
    DEFAULT_HANG_UP.store(false, Ordering::SeqCst);
    CLOSED.store(false, Ordering::SeqCst);
    // The theme chooses the styles. Otherwise crossterm reads NO_COLOR and drops bold and reverse too.
    crossterm::style::force_color_output(true);
    send(ENTER)?;
    Ok(modes)
}

/// Sets the modes again after a shell used the terminal.
pub(super) fn reenter() -> io::Result<()> {
    // crossterm still believes that raw mode is on.
    crossterm::terminal::disable_raw_mode()?;
    crossterm::terminal::enable_raw_mode()?;
    send(ENTER)
}

/// Notes that the terminal is gone.
pub(super) fn mark_closed() {
    CLOSED.store(true, Ordering::SeqCst);
}

/// Restores the terminal, once.
fn leave() {
    let owner = OWNER.lock().unwrap_or_else(PoisonError::into_inner).take();
    if owner.is_none() {
        return;
    }
    if send(LEAVE).is_err() || crossterm::terminal::disable_raw_mode().is_err() {
        mark_closed();
    }
    DEFAULT_SIGNALS.store(true, Ordering::SeqCst);
    DEFAULT_HANG_UP.store(!CLOSED.load(Ordering::SeqCst), Ordering::SeqCst);
    let deferred =
        std::mem::take(&mut *DEFERRED_PANICS.lock().unwrap_or_else(PoisonError::into_inner));
    for panic in deferred {
        // If standard error is gone too, there is nowhere left to print.
        drop(writeln!(io::stderr(), "{panic}"));
    }
}

/// A panic of the thread that holds the terminal restores it first; a panic of another thread is printed
/// once the terminal is restored.
fn install_panic_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let owner = *OWNER.lock().unwrap_or_else(PoisonError::into_inner);
            if owner.is_some_and(|owner| owner != thread::current().id()) {
                let mut deferred = DEFERRED_PANICS.lock().unwrap_or_else(PoisonError::into_inner);
                deferred.push(panic.to_string());
                return;
            }
            leave();
            before(panic);
        }));
    });
}

/// Once a signal had a handler, it has no effect after the handler is removed. These flags give it its
/// default effect again, so that signals still end the program after the terminal was left.
fn install_signal_defaults() -> io::Result<()> {
    static DONE: Mutex<bool> = Mutex::new(false);
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !*done {
        for (signal, by_default) in
            [(SIGTERM, &DEFAULT_SIGNALS), (SIGINT, &DEFAULT_SIGNALS), (SIGHUP, &DEFAULT_HANG_UP)]
        {
            signal_hook::flag::register_conditional_default(signal, by_default)?;
        }
        *done = true;
    }
    Ok(())
}
