//! How the terminal is set, and that it is set back.

use super::output::send;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::thread::{self, ThreadId};

/// The alternate screen, cleared, without a cursor; pasted text in brackets; the wheel sends no arrows.
const TAKE: &[u8] = b"\x1b[?1049h\x1b[2J\x1b[H\x1b[?25l\x1b[?2004h\x1b[?1007s\x1b[?1007l";

/// The reverse. Whether the wheel sent arrows before, some terminals have saved; most of the others
/// have it on.
const GIVE_BACK: &[u8] = b"\x1b[?2026l\x1b[?1007h\x1b[?1007r\x1b[?2004l\x1b[0m\x1b[?25h\x1b[?1049l";

/// Whose the terminal is at the moment.
static OWNER: Mutex<Option<ThreadId>> = Mutex::new(None);

/// Panics of other threads, which would have been written across the screen.
static UNTOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// True while the terminal is not ours and a signal does what it does by default.
static BY_DEFAULT: AtomicBool = AtomicBool::new(false);

/// The same for SIGHUP, but not once the terminal is gone: the end of the program is under way then. The
/// kernel may send the signal twice, and after the last byte was read; that must not cut the end short.
static HANG_UP_BY_DEFAULT: AtomicBool = AtomicBool::new(false);

static GONE: AtomicBool = AtomicBool::new(false);

/// The terminal is given back when this is dropped.
pub(super) struct Taken(());

impl Drop for Taken {
    fn drop(&mut self) {
        give_back();
    }
}

pub(super) fn take() -> io::Result<Taken> {
    let is_terminal = rustix::termios::isatty(rustix::stdio::stdin())
        && rustix::termios::isatty(rustix::stdio::stdout());
    if !is_terminal {
        let why = "standard input or output is no terminal";
        return Err(io::Error::new(io::ErrorKind::Unsupported, why));
    }
    {
        let mut owner = OWNER.lock().unwrap_or_else(PoisonError::into_inner);
        if owner.is_some() {
            let why = "the terminal is in use by this program already";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
        }
        crossterm::terminal::enable_raw_mode()?;
        *owner = Some(thread::current().id());
    }
    let taken = Taken(());
    stand_in_for_panics();
    stand_in_for_signals()?;
    BY_DEFAULT.store(false, Ordering::SeqCst);
    HANG_UP_BY_DEFAULT.store(false, Ordering::SeqCst);
    GONE.store(false, Ordering::SeqCst);
    // Which styles there are, the theme says. Left to itself crossterm would look at the environment,
    // and write what takes bold and reverse away with the colours.
    crossterm::style::force_color_output(true);
    send(TAKE)?;
    Ok(taken)
}

/// After a shell had it: sets everything as [`take`] does.
pub(super) fn take_again() -> io::Result<()> {
    // It believes that raw mode is on until it is told otherwise.
    crossterm::terminal::disable_raw_mode()?;
    crossterm::terminal::enable_raw_mode()?;
    send(TAKE)
}

/// There is no terminal any more.
pub(super) fn gone() {
    GONE.store(true, Ordering::SeqCst);
}

/// Once, whoever asks.
fn give_back() {
    let owner = OWNER.lock().unwrap_or_else(PoisonError::into_inner).take();
    if owner.is_none() {
        return;
    }
    if send(GIVE_BACK).is_err() || crossterm::terminal::disable_raw_mode().is_err() {
        gone();
    }
    BY_DEFAULT.store(true, Ordering::SeqCst);
    HANG_UP_BY_DEFAULT.store(!GONE.load(Ordering::SeqCst), Ordering::SeqCst);
    let untold = std::mem::take(&mut *UNTOLD.lock().unwrap_or_else(PoisonError::into_inner));
    for panic in untold {
        // With standard error gone too there is nobody to tell.
        drop(writeln!(io::stderr(), "{panic}"));
    }
}

/// A panic of the thread that has the terminal gives it back before it is told; one of another thread is
/// told when the terminal has been given back.
fn stand_in_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let owner = *OWNER.lock().unwrap_or_else(PoisonError::into_inner);
            if owner.is_some_and(|owner| owner != thread::current().id()) {
                let mut untold = UNTOLD.lock().unwrap_or_else(PoisonError::into_inner);
                untold.push(panic.to_string());
                return;
            }
            give_back();
            before(panic);
        }));
    });
}

/// Where signals were listened to once, they do nothing when nobody listens any more; what follows the
/// terminal in the same process must still be possible to end.
fn stand_in_for_signals() -> io::Result<()> {
    static DONE: Mutex<bool> = Mutex::new(false);
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !*done {
        for (signal, by_default) in
            [(SIGTERM, &BY_DEFAULT), (SIGINT, &BY_DEFAULT), (SIGHUP, &HANG_UP_BY_DEFAULT)]
        {
            signal_hook::flag::register_conditional_default(signal, by_default)?;
        }
        *done = true;
    }
    Ok(())
}
