//! Draws the answer to a question.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use unicode_width::UnicodeWidthStr as _;

use super::super::RowId;
use super::super::question_page::{MenuQuestion, QuestionPage};
use super::preview::wrapped;
use super::{Areas, keys_that_fit, put, put_all};
use crate::cut_text::{fit, fit_end};
use crate::theme::Theme;

pub(super) fn draw(page: &mut QuestionPage, buffer: &mut Buffer, areas: Areas, theme: &Theme) {
    let Areas { title, body, foot } = areas;
    let (width, height) = (usize::from(body.width), usize::from(body.height));
    put(buffer, title, 0, &Line::styled(heading(page.question(), width), theme.heading));
    let keys: &[&str] = match page.has_selection() {
        true => &["w why this line", "esc back", "↑ ↓ line", "pgup pgdn page", "? keys"],
        false => &["esc back", "↑ ↓ scroll", "pgup pgdn page", "? keys"],
    };
    put(buffer, foot, 0, &Line::styled(keys_that_fit(keys, foot.width.into()), theme.hint));
    page.page = height.max(1);
    let selected = page.has_selection().then_some(page.row);
    page.top = match selected {
        Some(row) => page.top.clamp(page.end_of(row).saturating_sub(page.page).min(row), row),
        None => page.row,
    };
    let top = page.top;
    match page.answer() {
        None => put(buffer, body, 0, &Line::styled("loading…", theme.hint)),
        Some(Err(why)) => put_all(buffer, body, &wrapped(why, width, theme.failure)),
        Some(Ok(answer)) => {
            let rows = answer.text.iter().enumerate().skip(top).take(height);
            for (row, (at, text)) in (0..body.height).zip(rows) {
                let is_note = page.is_blame() && at >= answer.file_lines;
                let style = if is_note { theme.hint } else { Style::new() };
                put(buffer, body, row, &Line::styled(fit(text, width), style));
                if selected == Some(at) {
                    let whole = Rect { y: body.y + row, height: 1, ..body };
                    buffer.set_style(whole, theme.selected);
                }
            }
        }
    }
}

fn heading(question: &MenuQuestion, width: usize) -> String {
    let (words, subject, line) = match question {
        MenuQuestion::Blame { path } => ("blame ".to_owned(), path.as_str(), String::new()),
        MenuQuestion::History { path } => ("history ".to_owned(), path.as_str(), String::new()),
        MenuQuestion::Why { path, line } => ("why ".to_owned(), path.as_str(), format!(":{line}")),
        MenuQuestion::Cat { row, path } => {
            (format!("cat {}:", fit(short(row), width / 2)), path.as_str(), String::new())
        }
        MenuQuestion::Stats { row } => ("stats since ".to_owned(), short(row), String::new()),
        MenuQuestion::Bisect { row } => ("bisect since ".to_owned(), short(row), String::new()),
    };
    let room = width.saturating_sub(words.width() + line.len());
    format!("{words}{}{line}", fit_end(subject, room))
}

/// The beginning of a point's id, or the name of an execution.
fn short(row: &RowId) -> &str {
    match row {
        RowId::Point(id) => id.get(..8).unwrap_or(id),
        RowId::Execution(name) => name,
    }
}
