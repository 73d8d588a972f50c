//! The interactive session on a screen of any size.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr as _;

use crate::chat::{Activity, Chat, Question, Status};
use crate::clean::clean;
use crate::fit::fit;
use crate::keys::Moment;
use crate::theme::Theme;
use crate::wrap::wrap;

/// Rows that candidates, a question or a long input may take of the screen.
const MOST_CANDIDATES: usize = 8;
const MOST_DETAIL: usize = 8;
const SPINNER: [&str; 8] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠇", "⠏", "⠉"];

pub fn draw(chat: &mut Chat, frame: &mut Frame<'_>, now: Moment) {
    let area = frame.area();
    if area.width < 4 || area.height < 4 {
        return;
    }
    if let Some(menu) = &mut chat.menu {
        menu.draw(frame, area, &chat.theme);
        return;
    }
    let width = usize::from(area.width);
    let theme = chat.theme;
    chat.editor.set_width(area.width.saturating_sub(2));
    let input = chat.editor.layout(area.width.saturating_sub(2));
    let most_input = usize::from(area.height / 3).max(1);
    let first_row = (input.row + 1).saturating_sub(most_input);
    let rows: Vec<&String> = input.lines.iter().skip(first_row).take(most_input).collect();
    let between = between(chat, width, now);
    let foot =
        u16::try_from(rows.len() + 3 + between.len()).unwrap_or(u16::MAX).min(area.height - 1);

    let above = Rect { height: area.height - foot, ..area };
    let lines = chat.transcript.window(width, usize::from(above.height));
    let missing = above.height.saturating_sub(u16::try_from(lines.len()).unwrap_or(u16::MAX));
    // What is short stands at the top until it fills the screen.
    let at_top = chat.transcript.lines_below() == 0 && missing > 0;
    frame.render_widget(Paragraph::new(lines), above);
    let below = chat.transcript.lines_below();
    if below > 0 && !at_top {
        let said = format!(" {below} more lines below, page down ");
        let wide = u16::try_from(said.width()).unwrap_or(u16::MAX).min(area.width);
        let at = Rect {
            x: area.width - wide,
            y: above.height.saturating_sub(1),
            width: wide,
            height: 1,
        };
        frame.render_widget(Paragraph::new(said).style(theme.selected), at);
    }

    let mut y = above.height;
    let row = |y: u16| Rect { x: 0, y, width: area.width, height: 1 };
    for line in between {
        frame.render_widget(Paragraph::new(line), row(y));
        y += 1;
    }
    frame.render_widget(Paragraph::new("─".repeat(width)).style(theme.hint), row(y));
    y += 1;
    let input_top = y;
    for (at, line) in rows.iter().enumerate() {
        let mark = if at == 0 && first_row == 0 { "> " } else { "  " };
        let spans = vec![Span::styled(mark, theme.strong), Span::raw((*line).clone())];
        frame.render_widget(Paragraph::new(Line::from(spans)), row(y));
        y += 1;
    }
    if chat.editor.is_empty() {
        let hint =
            if chat.is_in_turn() { "esc interrupts" } else { "say what to do, / for commands" };
        let at = Rect { x: 2, width: area.width - 2, ..row(input_top) };
        frame.render_widget(Paragraph::new(hint).style(theme.hint), at);
    }
    frame.render_widget(Paragraph::new("─".repeat(width)).style(theme.hint), row(y));
    y += 1;
    if y < area.height {
        frame.render_widget(Paragraph::new(status(&chat.status, width, &theme)), row(y));
    }
    let column = u16::try_from(input.column + 2).unwrap_or(u16::MAX).min(area.width - 1);
    let line = u16::try_from(input.row - first_row).unwrap_or(0);
    frame.set_cursor_position(Position::new(column, (input_top + line).min(area.height - 1)));
}

/// What stands between the transcript and the input: what is asked, what goes on, what waits, what a
/// slash may become.
fn between(chat: &Chat, width: usize, now: Moment) -> Vec<Line<'static>> {
    let theme = &chat.theme;
    let mut lines = Vec::new();
    if let Some(question) = chat.questions.front() {
        lines.extend(asked(question, width, theme));
    } else {
        lines.extend(going_on(chat.activity, now, theme));
    }
    for waiting in &chat.queued {
        let line = format!("  next: {}", clean(waiting).replace('\n', " "));
        lines.push(Line::styled(fit(&line, width), theme.hint));
    }
    let candidates = chat.candidates();
    for (name, command) in candidates.iter().take(MOST_CANDIDATES) {
        let usage = format!("/{name} {}", command.arguments);
        let usage = format!("  {:<22}", usage.trim_end());
        let room = width.saturating_sub(usage.width() + 1);
        lines.push(Line::from(vec![
            Span::styled(usage, theme.name),
            Span::styled(format!(" {}", fit(command.help, room)), theme.hint),
        ]));
    }
    if candidates.len() > MOST_CANDIDATES {
        let more = format!("  … {} more", candidates.len() - MOST_CANDIDATES);
        lines.push(Line::styled(more, theme.hint));
    }
    lines
}

fn asked(question: &Question, width: usize, theme: &Theme) -> Vec<Line<'static>> {
    let title = fit(&question.title, width.saturating_sub(8));
    let mut lines = vec![Line::from(vec![
        Span::styled("Allow ", theme.care),
        Span::styled(title, theme.strong),
        Span::styled("?", theme.care),
    ])];
    let detail: Vec<&str> = question.detail.lines().collect();
    for line in detail.iter().take(MOST_DETAIL) {
        lines.push(Line::from(format!("  {}", fit(line, width.saturating_sub(2)))));
    }
    if detail.len() > MOST_DETAIL {
        let more = format!("  … {} more lines", detail.len() - MOST_DETAIL);
        lines.push(Line::styled(more, theme.hint));
    }
    for line in wrap("y yes · a always in this session · n no · esc no, and stop", width) {
        lines.push(Line::styled(line, theme.hint));
    }
    lines
}

fn going_on(activity: Activity, now: Moment, theme: &Theme) -> Option<Line<'static>> {
    let (word, since) = match activity {
        Activity::Idle => return None,
        Activity::Turn(since) => ("working", since),
        Activity::Ending(since) => ("stopping", since),
        Activity::Working(since) => ("one moment", since),
    };
    let passed = now.0.saturating_sub(since.0);
    let turn = usize::try_from(passed / 120).unwrap_or(0) % SPINNER.len();
    let seconds = if passed >= 3000 { format!(" {} s", passed / 1000) } else { String::new() };
    Some(Line::styled(format!("{} {word}{seconds}", SPINNER[turn]), theme.hint))
}

/// As much as fits, the most important first.
fn status(status: &Status, width: usize, theme: &Theme) -> Line<'static> {
    let changed = match status.files {
        0 => "no files changed".to_owned(),
        files => counted(files, status.lines),
    };
    let points = match status.points {
        None => "not recorded".to_owned(),
        Some(1) => "1 point".to_owned(),
        Some(points) => format!("{points} points"),
    };
    let parts: [(String, Style, u8); 5] = [
        (clean(&status.agent).into_owned(), theme.name, 0),
        (clean(&status.session).into_owned(), theme.hint, 4),
        (points, Style::default(), 1),
        (changed, Style::default(), 2),
        (clean(&status.hint).into_owned(), theme.hint, 3),
    ];
    let mut shown: Vec<bool> = vec![false; parts.len()];
    let mut used = 0;
    for rank in 0..5 {
        if let Some(at) = parts.iter().position(|part| part.2 == rank) {
            let wide = parts[at].0.width() + if used > 0 { 3 } else { 0 };
            if used + wide <= width && !parts[at].0.is_empty() {
                used += wide;
                shown[at] = true;
            }
        }
    }
    let mut spans = Vec::new();
    for ((text, style, _), shown) in parts.into_iter().zip(shown) {
        if shown {
            if !spans.is_empty() {
                spans.push(Span::styled(" · ", theme.hint));
            }
            spans.push(Span::styled(text, style));
        }
    }
    Line::from(spans)
}

/// `2 files +10 -3`.
pub(crate) fn counted(files: usize, lines: Option<(usize, usize)>) -> String {
    let word = if files == 1 { "file" } else { "files" };
    match lines {
        Some((came, went)) => format!("{files} {word} +{came} -{went}"),
        None => format!("{files} {word}"),
    }
}
