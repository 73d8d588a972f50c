//! What the agent waits for, and how much of the first question has been on the screen.
//!
//! Nothing is allowed that could not be read: [`Questions::may_allow`] says no until the last line was
//! shown, and for a moment after a question came, so that who is writing does not answer it.

use std::collections::VecDeque;

use crate::keys::{Key, Moment};

/// Who writes does not see at once that a letter would be an answer.
const NOT_AT_ONCE_MS: u64 = 500;

/// Something that somebody has to allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub request: String,
    pub title: String,
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Yes,
    Always,
    No,
}

/// The oldest first; only that one is shown.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    waiting: VecDeque<Question>,
    shown: Shown,
}

/// What was drawn of the first question.
#[derive(Debug, Default)]
struct Shown {
    /// Since when it can be seen: it came to the front, and then was drawn.
    since: Moment,
    drawn: bool,
    /// Wrapped for this many columns.
    width: usize,
    lines: Vec<String>,
    /// The first line on the screen, and for how many there was room.
    top: usize,
    rows: usize,
    /// Whether the last line has been on the screen.
    to_end: bool,
}

/// The part of a question that has room.
pub(crate) struct Part<'a> {
    pub(crate) lines: &'a [String],
    pub(crate) above: usize,
    pub(crate) below: usize,
}

impl Questions {
    pub(crate) fn push(&mut self, question: Question, at: Moment) {
        if self.waiting.is_empty() {
            self.shown = Shown { since: at, ..Shown::default() };
        }
        self.waiting.push_back(question);
    }

    pub(crate) fn first(&self) -> Option<&Question> {
        self.waiting.front()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Question> {
        self.waiting.iter()
    }

    /// Takes the first; the next one comes to the front at this moment.
    pub(crate) fn take(&mut self, at: Moment) -> Option<Question> {
        self.shown = Shown { since: at, ..Shown::default() };
        self.waiting.pop_front()
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.shown = Shown::default();
    }

    /// Whether the last line of the first one has been on the screen.
    pub(crate) fn is_read(&self) -> bool {
        self.shown.to_end
    }

    /// Whether the first may be answered with anything but no.
    pub(crate) fn may_allow(&self, at: Moment) -> bool {
        self.is_read() && at.since(self.shown.since) >= NOT_AT_ONCE_MS
    }

    /// How many lines the first one has at this width; `wrap` makes them. At another width than before
    /// it begins at its first line again: as many lines from the top would be another text.
    pub(crate) fn arrange(
        &mut self,
        width: usize,
        wrap: impl FnOnce(&Question) -> Vec<String>,
    ) -> usize {
        let Some(question) = self.waiting.front() else { return 0 };
        let shown = &mut self.shown;
        if shown.width != width {
            (shown.width, shown.lines, shown.top) = (width, wrap(question), 0);
        }
        shown.lines.len()
    }

    /// What of the arranged lines is seen on so many rows; it counts as seen.
    pub(crate) fn show(&mut self, rows: usize, now: Moment) -> Part<'_> {
        let shown = &mut self.shown;
        if !std::mem::replace(&mut shown.drawn, true) {
            shown.since = shown.since.max(now);
        }
        shown.rows = rows;
        shown.top = shown.top.min(shown.lines.len().saturating_sub(rows));
        let end = (shown.top + rows).min(shown.lines.len());
        shown.to_end |= end == shown.lines.len();
        Part {
            lines: &shown.lines[shown.top..end],
            above: shown.top,
            below: shown.lines.len() - end,
        }
    }

    /// Whether the key has scrolled; it never does if there was room for all.
    pub(crate) fn scroll(&mut self, key: &Key) -> bool {
        let shown = &mut self.shown;
        if self.waiting.is_empty() || shown.lines.len() <= shown.rows {
            return false;
        }
        let page = shown.rows.saturating_sub(1).max(1);
        let last = shown.lines.len() - shown.rows;
        shown.top = match key {
            Key::Up => shown.top.saturating_sub(1),
            Key::Down => shown.top + 1,
            Key::PageUp => shown.top.saturating_sub(page),
            Key::PageDown => shown.top + page,
            _ => return false,
        }
        .min(last);
        true
    }
}

/// What a key says to a question.
pub(super) fn answer_of(key: &Key) -> Option<Answer> {
    match key {
        Key::Char('y') => Some(Answer::Yes),
        Key::Char('a') => Some(Answer::Always),
        Key::Char('n') => Some(Answer::No),
        _ => None,
    }
}
