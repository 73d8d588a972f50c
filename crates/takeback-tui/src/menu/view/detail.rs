//! Draws the second stage: files with ticks, the diff of the selected one, and the choices.

use super::super::detail::Detail;
use super::super::{Menu, MenuCoverage, Preview, RowId};
use super::preview::{self, FileColumns, wrapped};
use super::{Areas, keys_that_fit, put, put_all, split};
use crate::cut_text::fit;
use crate::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

pub(super) fn draw(
    menu: &Menu,
    detail: &mut Detail,
    buffer: &mut Buffer,
    areas: Areas,
    theme: &Theme,
) {
    let Areas { title, mut body, foot } = areas;
    let width = usize::from(body.width);
    put(buffer, title, 0, &Line::styled("Checkpoints", theme.heading));
    let request = detail.request();
    let result = menu.previews.get(&request);

    let choices = choice_lines(detail, menu, width, theme);
    let height = u16::try_from(choices.len()).unwrap_or(u16::MAX).min(body.height / 2);
    let bottom = Rect { y: body.bottom() - height, height, ..body };
    body.height -= height;
    put_all(buffer, bottom, &choices);

    let mut above = preview::head(menu, &request, width, theme);
    above.truncate(usize::from(body.height / 2).max(1));
    put_all(buffer, body, &above);
    let used = u16::try_from(above.len()).unwrap_or(u16::MAX).min(body.height);
    body = Rect { y: body.y + used, height: body.height - used, ..body };

    if let Some(Ok(preview)) = result {
        draw_files(detail, preview, buffer, body, theme);
    }
    put(buffer, foot, 0, &foot_line(detail, foot.width.into(), theme));
}

fn draw_files(
    detail: &mut Detail,
    preview: &Preview,
    buffer: &mut Buffer,
    body: Rect,
    theme: &Theme,
) {
    let wanted = u16::try_from(preview.files.len()).unwrap_or(u16::MAX);
    let (files, diff) = split(body, wanted, buffer, theme);
    let height = usize::from(files.height);
    let columns = FileColumns::new(preview, files.width.into());
    let selected = detail.file().min(preview.files.len().saturating_sub(1));
    let top = (selected + 1).saturating_sub(height);
    for (row, (at, file)) in
        (0..files.height).zip(preview.files.iter().enumerate().skip(top).take(height))
    {
        let mark = if at == selected { ">" } else { " " };
        let tick = match (detail.has_tick(file), detail.is_ticked(file)) {
            _ if !detail.has_ticks() => "",
            (true, true) => "[x] ",
            (true, false) => "[ ] ",
            (false, _) => "    ",
        };
        let head = format!("{mark} {tick}");
        let line = columns.line(file, detail.mark_of(file), &head, theme);
        put(buffer, files, row, &line);
        if at == selected {
            let whole = Rect { y: files.y + row, height: 1, ..files };
            buffer.set_style(whole, theme.selected);
        }
    }
    let Some(area) = diff else { return };
    let Some(file) = preview.files.get(selected) else { return };
    let width = usize::from(area.width);
    let mut lines = Vec::new();
    if let Some(reason) = &file.reason {
        lines.extend(wrapped(reason, width, theme.warning));
    }
    let room = usize::from(area.height).saturating_sub(lines.len());
    detail.page = room.saturating_sub(1).max(1);
    detail.scroll = detail.scroll.min(file.diff.len().saturating_sub(room));
    let visible = file.diff.iter().skip(detail.scroll).take(room);
    lines.extend(visible.map(|line| line.to_line(0, width, theme)));
    put_all(buffer, area, &lines);
}

fn choice_lines(detail: &Detail, menu: &Menu, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(selected) = detail.choice() else { return Vec::new() };
    let preview = menu.previews.get(&detail.request());
    let question = match (detail.row(), detail.coverage()) {
        (RowId::Point(_), MenuCoverage::Turn) => "Take back this turn alone?",
        (RowId::Point(_), _) => "Restore what?",
        (RowId::Execution(_), _) => "Restore state and files?",
    };
    let conflicts = match preview.and_then(|preview| preview.as_ref().ok()).map(Preview::conflicts)
    {
        None | Some(0) => String::new(),
        Some(1) => "1 conflict will stay. ".to_owned(),
        Some(n) => format!("{n} conflicts will stay. "),
    };
    let question = Line::from(vec![
        Span::styled(conflicts, theme.failure),
        Span::styled(question, theme.heading),
    ]);
    let mut lines = vec![Line::styled("─".repeat(width), theme.hint), question];
    for choice in detail.choices(preview) {
        let mark = if choice == selected { "> " } else { "  " };
        let words = format!("{mark}{}  ", choice.title());
        let gap =
            " ".repeat(width.saturating_sub(words.width() + 1).min(28 - words.width().min(28)));
        let style = if choice == selected { theme.selected } else { ratatui::style::Style::new() };
        lines.push(Line::from(vec![
            Span::styled(words + &gap, style),
            Span::styled(choice.key().to_string(), theme.hint),
        ]));
    }
    lines
}

fn foot_line(detail: &Detail, width: usize, theme: &Theme) -> Line<'static> {
    if let Some(notice) = detail.notice() {
        return Line::styled(fit(notice, width), theme.warning);
    }
    let keys: &[&str] = match detail.choice() {
        Some(_) => &["enter restore", "esc back"],
        None if !detail.has_ticks() => &[
            "enter continue",
            "esc back",
            "b blame",
            "H history",
            "? keys",
            "pgdn diff",
            "c contents",
            "s stats",
            "B bisect",
        ],
        None if !detail.can_mark() => &[
            "enter continue",
            "esc back",
            "space tick",
            "b blame",
            "H history",
            "? keys",
            "a all",
            "pgdn diff",
            "c contents",
            "s stats",
            "B bisect",
            "S whose changes",
            "R turn alone",
        ],
        None => &[
            "enter continue",
            "esc back",
            "space tick",
            "t take",
            "m mine",
            "b blame",
            "H history",
            "? keys",
            "a all",
            "pgdn diff",
            "c contents",
            "s stats",
            "B bisect",
            "S whose changes",
            "R turn alone",
        ],
    };
    Line::styled(keys_that_fit(keys, width), theme.hint)
}
