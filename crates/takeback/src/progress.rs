//! What takes long shows how far it is: on standard error, if that is a terminal, after half a
//! second. With no patience at all, everything is shown at least once.

use std::any::Any;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use takeback_core::progress::{Progress, Watch, Work};

use crate::place::environment;
use crate::screen::{bytes, count};

/// What is done sooner shows nothing, in milliseconds, unless the environment says otherwise.
const PATIENCE: u64 = 500;
const PATIENCE_NAME: &str = "TAKEBACK_PROGRESS_AFTER_MS";
const TICK: Duration = Duration::from_millis(100);

static HIDDEN: AtomicBool = AtomicBool::new(false);

/// Nothing is shown from here on: `--quiet`, `--json`.
pub(crate) fn hide() {
    HIDDEN.store(true, Ordering::Relaxed);
}

fn is_seen() -> bool {
    !HIDDEN.load(Ordering::Relaxed) && io::stderr().is_terminal()
}

/// For the library's work; `None` if nobody would see it.
pub(crate) fn watch() -> Option<Watch> {
    is_seen().then(|| -> Watch { Box::new(|work, progress| bar(work, progress)) })
}

fn bar(work: Work, progress: &Arc<Progress>) -> Box<dyn Any> {
    let progress = Arc::clone(progress);
    let (what, template) = match work {
        Work::Scan => ("Reading files", "{spinner} {prefix} {msg} {elapsed}"),
        Work::Stage => ("Making ready", BAR),
        Work::Apply => ("Putting in place", BAR),
    };
    Box::new(Shown::new(what, template, move |bar| {
        if progress.of() == 0 {
            let files = usize::try_from(progress.files()).unwrap_or(usize::MAX);
            bar.set_message(format!("{}, {}", count(files, "file"), bytes(progress.bytes())));
            bar.tick();
        } else {
            bar.set_length(progress.of());
            bar.set_position(progress.files());
        }
    }))
}

const BAR: &str = "{spinner} {prefix} {wide_bar} {percent:>3}% {elapsed}";

/// For work of which nobody knows how far it is. Gone when it is dropped.
pub(crate) fn spinner(what: &'static str) -> Option<Shown> {
    is_seen().then(|| Shown::new(what, "{spinner} {prefix} {elapsed}", ProgressBar::tick))
}

/// A line on the terminal, drawn by a thread of its own. Dropping it clears the line.
pub(crate) struct Shown {
    thread: Option<JoinHandle<()>>,
    done: Option<Sender<()>>,
}

impl Shown {
    fn new(
        what: &'static str,
        template: &'static str,
        update: impl Fn(&ProgressBar) + Send + 'static,
    ) -> Self {
        let (done, wait) = channel();
        let thread = std::thread::spawn(move || draw(what, template, update, &wait));
        Self { thread: Some(thread), done: Some(done) }
    }
}

fn draw(what: &'static str, template: &str, update: impl Fn(&ProgressBar), wait: &Receiver<()>) {
    let over = |patience| wait.recv_timeout(patience) != Err(RecvTimeoutError::Timeout);
    let said = environment(PATIENCE_NAME).and_then(|ms| ms.to_str()?.parse().ok());
    let patience = Duration::from_millis(said.unwrap_or(PATIENCE));
    if !patience.is_zero() && over(patience) {
        return;
    }
    let style = ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
        .progress_chars("━╸ ");
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
        .with_style(style)
        .with_prefix(what)
        .with_elapsed(patience);
    loop {
        update(&bar);
        if over(TICK) {
            break;
        }
    }
    bar.finish_and_clear();
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.done = None;
        // A thread that panicked has drawn nothing that needs clearing.
        drop(self.thread.take().map(JoinHandle::join));
    }
}
