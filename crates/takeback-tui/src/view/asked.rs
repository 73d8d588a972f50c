//! A question, as much of it as there is room for, and the keys that answer it.

use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use crate::chat::{Chat, Question};
use crate::clean::clean;
use crate::fit::fit;
use crate::keys::Moment;
use crate::theme::Theme;
use crate::wrap::wrap;

const ALLOW: &str = "Allow ";

/// The first that fits is shown, else the last one.
const KEYS: [&str; 4] = [
    "y yes · a always in this session · n no · esc no, and stop",
    "y yes · a always · n no · esc stop",
    "y yes · n no",
    "y a n",
];
const KEYS_BEFORE_THE_END: [&str; 4] = [
    "n no · esc no, and stop · y and a wait for the last line",
    "n no · esc stop · ↓ first, then y, a",
    "n no · ↓ y",
    "n ↓",
];

/// With fewer rows than this, or than it has, a question takes those of the status line.
const FEW_ROWS: usize = 4;

/// How many rows the question that stands should have at least, with its keys; 0: there is none.
pub(super) fn least(chat: &mut Chat, width: usize) -> usize {
    match chat.questions.arrange(width, |question| lines_of(question, width)) {
        0 => 0,
        lines if lines <= FEW_ROWS => lines + 1,
        // One says how much more there is.
        _ => FEW_ROWS + 2,
    }
}

/// The question that stands, on no more rows than these; the keys are always among them.
pub(super) fn asked(chat: &mut Chat, width: usize, most: usize, now: Moment) -> Vec<Line<'static>> {
    let theme = chat.theme;
    let all = chat.questions.arrange(width, |question| lines_of(question, width));
    let fits = all < most;
    let rows = if fits { all } else { most.saturating_sub(2).max(1) };
    let part = chat.questions.show(rows, now);
    let (above, below) = (part.above, part.below);
    let mut lines: Vec<_> =
        part.lines.iter().enumerate().map(|(at, line)| styled(line, above + at, &theme)).collect();
    if !fits {
        lines.push(Line::styled(fit(&how_much_more(above, below), width), theme.care));
    }
    let keys = if chat.questions.is_read() { KEYS } else { KEYS_BEFORE_THE_END };
    let keys = keys.iter().find(|keys| keys.width() <= width).unwrap_or(&keys[3]);
    lines.push(Line::styled(fit(keys, width), theme.hint));
    lines
}

fn how_much_more(above: usize, below: usize) -> String {
    let (count, word, arrow) =
        if below > 0 { (below, "more", "↓") } else { (above, "earlier", "↑") };
    format!("  {count} {word} {}, {arrow}", if count == 1 { "line" } else { "lines" })
}

/// Nothing is cut. A title is one text, whatever stands in it.
fn lines_of(question: &Question, width: usize) -> Vec<String> {
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
            Span::styled(ALLOW, theme.care),
            Span::styled(title.to_owned(), theme.strong),
        ]),
        _ => Line::raw(line.to_owned()),
    }
}
