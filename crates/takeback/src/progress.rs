//! Shows the progress of long work on standard error after half a second, if that is a terminal. With a delay
//! of zero, everything is shown at least once.

use std::any::Any;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use takeback_core::{Progress, ProgressListener, Work};

use crate::place::environment;
use crate::screen::{bytes, count};

/// Work that takes less than this shows nothing, in milliseconds. The environment can override it.
const PATIENCE: u64 = 500;
const PATIENCE_NAME: &str = "TAKEBACK_PROGRESS_AFTER_MS";
const TICK: Duration = Duration::from_millis(100);

static HIDDEN: AtomicBool = AtomicBool::new(false);

/// Turns progress off, for `--quiet` and `--json`.
pub(crate) fn hide() {
    HIDDEN.store(true, Ordering::Relaxed);
}

fn is_seen() -> bool {
    !HIDDEN.load(Ordering::Relaxed) && io::stderr().is_terminal()
}

/// Progress of the library's work; `None` if standard error is not a terminal.
pub(crate) fn watch() -> Option<ProgressListener> {
    is_seen().then(|| -> ProgressListener { Box::new(|work, progress| bar(work, progress)) })
}

fn bar(work: Work, progress: &Arc<Progress>) -> Box<dyn Any> {
    let progress = Arc::clone(progress);
    let (what, template) = match work {
        Work::Count => ("Listing files", SPINNER),
        Work::Scan if progress.of_bytes() == 0 => ("Reading files", SPINNER),
        Work::Scan => ("Reading files", BAR_WITH_WORDS),
        Work::Stage => ("Preparing files", BAR),
        Work::Apply => ("Placing files", BAR),
        Work::Fork => ("Writing files", BAR),
    };
    Box::new(ProgressLine::new(what, template, move |bar| {
        let (read, of) = (progress.bytes(), progress.of_bytes());
        let (length, position) = match work {
            Work::Count | Work::Scan => (of, read),
            Work::Stage | Work::Apply | Work::Fork => (progress.of(), progress.files()),
        };
        if length > 0 {
            bar.set_length(length);
            bar.set_position(position.min(length));
        }
        if matches!(work, Work::Count | Work::Scan) {
            let files = usize::try_from(progress.files()).unwrap_or(usize::MAX);
            bar.set_message(pace(files, read, of, bar.elapsed()));
        }
        bar.tick();
    }))
}

/// How much was read, how fast, and the remaining time at that rate.
fn pace(files: usize, read: u64, of: u64, elapsed: Duration) -> String {
    let mut text = format!("{}, {}", count(files, "file"), bytes(read));
    let rate = u128::from(read) * 1000 / elapsed.as_millis().max(1);
    if elapsed < SETTLED || rate == 0 {
        return text;
    }
    text = format!("{text}, {}/s", bytes(u64::try_from(rate).unwrap_or(u64::MAX)));
    if of > read {
        let left = (u128::from(of - read) / rate).max(1);
        text = format!("{text}, about {left} s left");
    }
    text
}

/// Before this, the rate is not known well enough.
const SETTLED: Duration = Duration::from_millis(300);

const SPINNER: &str = "{spinner} {prefix} {msg} {elapsed}";
const BAR_WITH_WORDS: &str = "{spinner} {prefix} {wide_bar} {percent:>3}% {msg}";
const BAR: &str = "{spinner} {prefix} {wide_bar} {percent:>3}% {elapsed}";

/// A spinner for work of unknown length. Dropping it clears the line.
pub(crate) fn spinner(what: &'static str) -> Option<ProgressLine> {
    is_seen().then(|| ProgressLine::new(what, "{spinner} {prefix} {elapsed}", ProgressBar::tick))
}

/// A line on the terminal, drawn by a thread of its own. Dropping it clears the line.
pub(crate) struct ProgressLine {
    thread: Option<JoinHandle<()>>,
    done: Option<Sender<()>>,
}

impl ProgressLine {
    fn new(
        what: &'static str,
        template: &'static str,
        update: impl Fn(&ProgressBar) + Send + 'static,
    ) -> Self {
        let (done, wait) = channel();
        let draw = move || draw(what, template, update, &wait);
        // Without a thread nothing is drawn.
        Self { thread: std::thread::Builder::new().spawn(draw).ok(), done: Some(done) }
    }
}

fn draw(what: &'static str, template: &str, update: impl Fn(&ProgressBar), wait: &Receiver<()>) {
    let over = |patience| wait.recv_timeout(patience) != Err(RecvTimeoutError::Timeout);
    let patience = environment(PATIENCE_NAME).and_then(|ms| ms.to_str()?.parse().ok());
    let patience = Duration::from_millis(patience.unwrap_or(PATIENCE));
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

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.done = None;
        // A thread that panicked has drawn nothing that needs clearing.
        drop(self.thread.take().map(JoinHandle::join));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pace_and_what_is_left_are_told_once_they_can_be() {
        let second = Duration::from_secs(1);
        assert_eq!(pace(3, 2_000_000, 8_000_000, second / 10), "3 files, 2.0 MB");
        let expected = "3 files, 2.0 MB, 1.0 MB/s, about 6 s left";
        assert_eq!(pace(3, 2_000_000, 8_000_000, second * 2), expected);
        assert_eq!(pace(1, 2_000_000, 0, second * 2), "1 file, 2.0 MB, 1.0 MB/s");
        assert_eq!(pace(1, 2_000_000, 1_900_000, second * 2), "1 file, 2.0 MB, 1.0 MB/s");
        assert_eq!(pace(9, 0, 100, second * 2), "9 files, 0 B");
    }
}
