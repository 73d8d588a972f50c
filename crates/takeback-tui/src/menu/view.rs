//! Draws the menu: a title, then the list and the preview of the selected row or the second stage, then a
//! line of keys.

mod detail;
mod question_page;
mod help;
mod preview;
mod rows;

use super::{Menu, Tab};
use crate::cut_text::fit;
use crate::theme::Theme;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

/// From this width on, two panes are drawn side by side.
const SIDE_BY_SIDE: u16 = 110;

/// With fewer rows than this, there is only one pane.
const TWO_PANES: u16 = 8;

pub(super) fn draw(menu: &mut Menu, frame: &mut Frame, area: Rect, theme: &Theme) {
    let buffer = frame.buffer_mut();
    let area = area.intersection(buffer.area);
    ratatui::widgets::Widget::render(ratatui::widgets::Clear, area, buffer);
    if area.height < 3 || area.width < 8 {
        return;
    }
    let title = Rect { height: 1, ..area };
    let body = Rect { y: area.y + 1, height: area.height - 2, ..area };
    let foot = Rect { y: area.bottom() - 1, height: 1, ..area };
    if menu.help {
        put(buffer, title, 0, &Line::styled("Keys", theme.heading));
        help::draw(buffer, body, theme);
        put(buffer, foot, 0, &Line::styled("press any key to close", theme.hint));
        return;
    }
    if let Some(page) = menu.pages.last_mut() {
        question_page::draw(page, buffer, Areas { title, body, foot }, theme);
        return;
    }
    if let Some(mut open) = menu.detail.take() {
        detail::draw(menu, &mut open, buffer, Areas { title, body, foot }, theme);
        menu.detail = Some(open);
        return;
    }
    put(buffer, title, 0, &title_line(menu, theme));
    let (list, preview) = split(body, list_height(menu, body), buffer, theme);
    rows::draw(menu, buffer, list, theme);
    if let Some(area) = preview {
        put_all(buffer, area, &preview::lines(menu, area, theme));
    }
    put(buffer, foot, 0, &foot_line(menu, usize::from(foot.width), theme));
}

/// Where the parts of the menu are drawn.
#[derive(Clone, Copy)]
struct Areas {
    title: Rect,
    body: Rect,
    foot: Rect,
}

/// Two panes with a line between them: side by side on a wide screen, else the first on top with `height`
/// rows.
fn split(body: Rect, height: u16, buffer: &mut Buffer, theme: &Theme) -> (Rect, Option<Rect>) {
    if body.height < TWO_PANES {
        return (body, None);
    }
    if body.width >= SIDE_BY_SIDE {
        let width = body.width / 2;
        let line = body.x + width;
        for y in body.y..body.bottom() {
            buffer.set_string(line, y, "│", theme.hint);
        }
        let first = Rect { width: width - 1, ..body };
        let second = Rect { x: line + 2, width: body.right() - line - 2, ..body };
        return (first, Some(second));
    }
    let height = height.clamp(1, body.height / 2);
    let line = body.y + height;
    buffer.set_string(body.x, line, "─".repeat(body.width.into()), theme.hint);
    let first = Rect { height, ..body };
    let second = Rect { y: line + 1, height: body.bottom() - line - 1, ..body };
    (first, Some(second))
}

fn list_height(menu: &Menu, body: Rect) -> u16 {
    let list = menu.list();
    let empty = usize::from(list.len() == 0);
    u16::try_from(list.entries().len() + empty).unwrap_or(u16::MAX).min(body.height)
}

fn title_line(menu: &Menu, theme: &Theme) -> Line<'static> {
    let tab = |tab, word: &'static str| {
        if menu.tab == tab {
            Span::styled(format!("[{word}]"), theme.heading)
        } else {
            Span::styled(format!(" {word} "), theme.hint)
        }
    };
    Line::from(vec![
        Span::styled("Checkpoints", theme.heading),
        Span::raw("  "),
        tab(Tab::Points, "points"),
        tab(Tab::Executions, "executions"),
    ])
}

/// A notice, or the typed text, or the keys.
fn foot_line(menu: &Menu, width: usize, theme: &Theme) -> Line<'static> {
    let list = menu.list();
    if let Some(notice) = menu.notice.as_deref().or(list.notice()) {
        return Line::styled(fit(notice, width), theme.warning);
    }
    if let Some(filter) = list.filter() {
        let keys = "   esc closes the filter";
        let room = width.saturating_sub(keys.width() + 2);
        return Line::from(vec![
            Span::styled(format!("/{}", crate::cut_text::fit_end(filter, room)), theme.heading),
            Span::styled("▏", theme.heading),
            Span::styled(keys, theme.hint),
        ]);
    }
    if !list.typed().is_empty() {
        let keys = "   enter opens this row";
        return Line::from(vec![
            Span::styled(list.typed().to_owned(), theme.heading),
            Span::styled(keys, theme.hint),
        ]);
    }
    let mut keys = vec!["enter open", "esc cancel", "? keys", "/ filter", "tab other list"];
    if menu.options.can_undo {
        keys.insert(3, "u undo last rewind");
    }
    keys.extend(["s stats", "B bisect"]);
    if menu.tab == Tab::Points {
        keys.extend(["S whose changes", "R turn alone"]);
    }
    Line::styled(keys_that_fit(&keys, width), theme.hint)
}

/// As many keys as fit, the most important first; `?` lists them all.
fn keys_that_fit(keys: &[&str], width: usize) -> String {
    let mut out = String::new();
    for key in keys {
        let gap = if out.is_empty() { "" } else { "  " };
        if out.width() + gap.len() + key.width() > width {
            break;
        }
        out.push_str(gap);
        out.push_str(key);
    }
    out
}

/// Draws one line of a pane, cut at its edge.
fn put(buffer: &mut Buffer, area: Rect, row: u16, line: &Line) {
    if row < area.height {
        buffer.set_line(area.x, area.y + row, line, area.width);
    }
}

/// Draws as many lines as fit.
fn put_all(buffer: &mut Buffer, area: Rect, lines: &[Line]) {
    for (row, line) in (0..area.height).zip(lines) {
        put(buffer, area, row, line);
    }
}
