//! Draws a question, as much of it as fits, and the keys that answer it.

use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::super::{Chat, Question};
use crate::cut_text::fit;
use crate::keys::Moment;
use crate::safe_text::clean;
use crate::theme::Theme;
use crate::wrap::wrap;

const ALLOW: &str = "Allow ";

/// The first that fits is shown, else the last.
const KEYS: [&str; 4] = [
    "y yes · a always in this session · n no · esc no, and stop",
    "y yes · a always · n no · esc stop",
    "y yes · n no",
    "y a n",
];
const KEYS_UNREAD: [&str; 4] = [
    "↓ to the last line to allow · n no · esc no, and stop",
    "n no · esc stop · ↓ first, then y, a",
    "n no · ↓ y",
    "n ↓",
];

/// With less room than this for its lines, a question replaces the status line.
const FEW_ROWS: usize = 4;

/// How many rows the question needs at least, with its keys; 0 if there is none.
pub(super) fn min_height(chat: &mut Chat, width: usize) -> usize {
    match chat.questions.arrange(width, |question| wrap_question(question, width)) {
        0 => 0,
        lines if lines <= FEW_ROWS => lines + 1,
        // One row for the keys, one for how many lines are hidden.
        _ => FEW_ROWS + 2,
    }
}

/// The question in at most `most` rows; its keys are always among them.
pub(super) fn lines(chat: &mut Chat, width: usize, most: usize, now: Moment) -> Vec<Line<'static>> {
    let theme = chat.theme;
    let all = chat.questions.arrange(width, |question| wrap_question(question, width));
    let fits = all < most;
    let rows = if fits { all } else { most.saturating_sub(2).max(1) };
    let visible = chat.questions.show(rows, now);
    let (above, below) = (visible.above, visible.below);
    let mut lines: Vec<_> = visible
        .lines
        .iter()
        .enumerate()
        .map(|(at, line)| styled(line, above + at, &theme))
        .collect();
    if !fits {
        lines.push(Line::styled(fit(&hidden_lines(above, below), width), theme.warning));
    }
    let keys = if chat.questions.is_read() { KEYS } else { KEYS_UNREAD };
    let keys = keys.iter().find(|keys| keys.width() <= width).unwrap_or(&keys[3]);
    lines.push(Line::styled(fit(keys, width), theme.hint));
    lines
}

fn hidden_lines(above: usize, below: usize) -> String {
    let (count, word, arrow) =
        if below > 0 { (below, "more", "↓") } else { (above, "earlier", "↑") };
    format!("  {count} {word} {}, {arrow}", if count == 1 { "line" } else { "lines" })
}

/// Nothing is cut. The title is one paragraph, even if it has line breaks.
fn wrap_question(question: &Question, width: usize) -> Vec<String> {
    let room = width.saturating_sub(2);
    let mut lines = wrap(&format!("{ALLOW}{}?", clean(&question.title)), room);
    for line in lines.iter_mut().skip(1) {
        line.insert_str(0, "  ");
    }
    let detail = question.detail.lines().flat_map(|line| wrap(line, room));
    lines.extend(detail.map(|line| format!("  {line}")));
    lines
}

fn styled(line: &str, at: usize, theme: &Theme) -> Line<'static> {
    match line.strip_prefix(ALLOW) {
        Some(title) if at == 0 => Line::from(vec![
            Span::styled(ALLOW, theme.warning),
            Span::styled(title.to_owned(), theme.heading),
        ]),
        _ => Line::raw(line.to_owned()),
    }
}
