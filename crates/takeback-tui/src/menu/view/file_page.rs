//! Draws the answer to a question about a file.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::super::file_page::{FilePage, QuestionKind};
use super::preview::wrapped;
use super::{Areas, keys_that_fit, put, put_all};
use crate::cut_text::{fit, fit_end};
use crate::theme::Theme;

pub(super) fn draw(page: &mut FilePage, buffer: &mut Buffer, areas: Areas, theme: &Theme) {
    let Areas { title, body, foot } = areas;
    let (width, height) = (usize::from(body.width), usize::from(body.height));
    let question = page.question();
    let (word, line) = match question.kind {
        QuestionKind::Blame => ("blame", String::new()),
        QuestionKind::History => ("history", String::new()),
        QuestionKind::Why(line) => ("why", format!(":{line}")),
    };
    let room = width.saturating_sub(word.len() + 1 + line.len());
    let heading = format!("{word} {}{line}", fit_end(&question.path, room));
    put(buffer, title, 0, &Line::styled(heading, theme.heading));
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
                let is_note =
                    page.question().kind == QuestionKind::Blame && at >= answer.file_lines;
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
