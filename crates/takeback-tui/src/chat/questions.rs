//! The agent's open questions, and how much of the first one was visible.
//!
//! A question cannot be allowed unread: [`Questions::may_allow`] is false until its last line was drawn,
//! and for a moment after it appeared, so that a user who is typing does not answer it by accident.

use std::collections::VecDeque;

use crate::keys::{Key, Moment};

/// How long a new question ignores letters that would allow it.
const GRACE_MS: u64 = 500;

/// Something that the user must allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Identifies it in [`Effect::Answer`](super::Effect::Answer).
    pub request: String,
    /// What is asked, in one line.
    pub title: String,
    /// The whole command or edit.
    pub detail: String,
}

/// The user's answer to a [`Question`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Allow it.
    Yes,
    /// Allow it for the rest of the session.
    Always,
    /// Deny it.
    No,
}

/// Oldest first; only the first is view.
#[derive(Debug, Default)]
pub(super) struct Questions {
    waiting: VecDeque<Question>,
    view: QuestionView,
}

/// How the first question is drawn.
#[derive(Debug, Default)]
struct QuestionView {
    /// When it became the first, or was first drawn if that is later.
    since: Moment,
    drawn: bool,
    /// Its lines, wrapped at `width`.
    width: usize,
    lines: Vec<String>,
    /// The first visible line, and how many fit.
    top: usize,
    rows: usize,
    /// Whether the last line was visible.
    is_read: bool,
}

/// The visible part of a question.
pub(super) struct VisibleLines<'a> {
    pub(super) lines: &'a [String],
    /// How many lines are hidden above and below.
    pub(super) above: usize,
    pub(super) below: usize,
}

impl Questions {
    pub(super) fn push(&mut self, question: Question, at: Moment) {
        if self.waiting.is_empty() {
            self.view = QuestionView { since: at, ..QuestionView::default() };
        }
        self.waiting.push_back(question);
    }

    pub(super) fn first(&self) -> Option<&Question> {
        self.waiting.front()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Question> {
        self.waiting.iter()
    }

    /// Removes the first; the next one becomes the first at this moment.
    pub(super) fn take(&mut self, at: Moment) -> Option<Question> {
        self.view = QuestionView { since: at, ..QuestionView::default() };
        self.waiting.pop_front()
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.view = QuestionView::default();
    }

    /// Whether the last line of the first question was visible.
    pub(super) fn is_read(&self) -> bool {
        self.view.is_read
    }

    /// Whether the first may be allowed.
    pub(super) fn may_allow(&self, at: Moment) -> bool {
        self.is_read() && at.since(self.view.since) >= GRACE_MS
    }

    /// Wraps the first question with `wrap` and returns its number of lines. A new width scrolls back to
    /// the first line, since the same offset would be another text.
    pub(super) fn arrange(
        &mut self,
        width: usize,
        wrap: impl FnOnce(&Question) -> Vec<String>,
    ) -> usize {
        let Some(question) = self.waiting.front() else { return 0 };
        let view = &mut self.view;
        if view.width != width {
            (view.width, view.lines, view.top) = (width, wrap(question), 0);
        }
        view.lines.len()
    }

    /// The lines that are visible on this many rows; they count as read.
    pub(super) fn show(&mut self, rows: usize, now: Moment) -> VisibleLines<'_> {
        let view = &mut self.view;
        if !std::mem::replace(&mut view.drawn, true) {
            view.since = view.since.max(now);
        }
        view.rows = rows;
        view.top = view.top.min(view.lines.len().saturating_sub(rows));
        let end = (view.top + rows).min(view.lines.len());
        view.is_read |= end == view.lines.len();
        VisibleLines {
            lines: &view.lines[view.top..end],
            above: view.top,
            below: view.lines.len() - end,
        }
    }

    /// Whether the key scrolled; it does not if all lines are visible.
    pub(super) fn scroll(&mut self, key: &Key) -> bool {
        let view = &mut self.view;
        if self.waiting.is_empty() || view.lines.len() <= view.rows {
            return false;
        }
        let page = view.rows.saturating_sub(1).max(1);
        let last = view.lines.len() - view.rows;
        view.top = match key {
            Key::Up => view.top.saturating_sub(1),
            Key::Down => view.top + 1,
            Key::PageUp => view.top.saturating_sub(page),
            Key::PageDown => view.top + page,
            _ => return false,
        }
        .min(last);
        true
    }
}

/// The answer that a key gives.
pub(super) fn answer_of(key: &Key) -> Option<Answer> {
    match key {
        Key::Char('y') => Some(Answer::Yes),
        Key::Char('a') => Some(Answer::Always),
        Key::Char('n') => Some(Answer::No),
        _ => None,
    }
}
