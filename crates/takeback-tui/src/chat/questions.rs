//! What the agent waits for, and how much of the first question has been on the screen.
//!
//! Nothing is allowed that could not be read: [`Questions::may_allow`] says no until the last line was
//! shown.

use std::collections::VecDeque;

use crate::keys::Key;

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
    pub(crate) fn push(&mut self, question: Question) {
        self.waiting.push_back(question);
    }

    pub(crate) fn first(&self) -> Option<&Question> {
        self.waiting.front()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Question> {
        self.waiting.iter()
    }

    /// Takes the first; the next one has not been seen.
    pub(crate) fn take(&mut self) -> Option<Question> {
        self.shown = Shown::default();
        self.waiting.pop_front()
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.shown = Shown::default();
    }

    /// Whether the first may be answered with anything but no.
    pub(crate) fn may_allow(&self) -> bool {
        self.shown.to_end
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
            *shown =
                Shown { width, lines: wrap(question), to_end: shown.to_end, ..Shown::default() };
        }
        shown.lines.len()
    }

    /// What of the arranged lines is seen on so many rows; it counts as seen.
    pub(crate) fn show(&mut self, rows: usize) -> Part<'_> {
        let shown = &mut self.shown;
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
        Key::Char('y') | Key::Enter => Some(Answer::Yes),
        Key::Char('a') => Some(Answer::Always),
        Key::Char('n') => Some(Answer::No),
        _ => None,
    }
}
