//! Draws the session on a screen of any size.

mod question;

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr as _;

use super::{Activity, Chat};
use crate::cut_text::fit;
use crate::keys::Moment;
use crate::safe_text::clean;
use crate::theme::Theme;

/// How many completions are shown.
const CANDIDATES_MAX: usize = 8;
const SPINNER: [&str; 8] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠇", "⠏", "⠉"];

impl Chat {
    /// Draws the session, or the menu if it is open.
    pub fn draw(&mut self, frame: &mut Frame<'_>, now: Moment) {
        draw(self, frame, now);
    }
}

fn draw(chat: &mut Chat, frame: &mut Frame<'_>, now: Moment) {
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
    let input = Input::new(chat, area);
    let room = usize::from(area.height).saturating_sub(input.lines.len());
    let question = question::min_height(chat, width);
    // Without a question, one line of activity and one of the transcript.
    let wanted = if question > 0 { question } else { 2 };
    let frames = match room.saturating_sub(wanted) {
        0 => 0,
        1 | 2 => 1,
        _ => 3,
    };
    let middle = middle_lines(chat, width, room - frames, now);
    let foot = u16::try_from(input.lines.len() + frames + middle.len()).unwrap_or(u16::MAX);
    let above = Rect { height: area.height.saturating_sub(foot), ..area };
    draw_transcript(chat, frame, above);

    let mut y = above.height;
    let row = |y: u16| Rect { x: 0, y, width: area.width, height: 1 };
    for line in middle {
        frame.render_widget(Paragraph::new(line), row(y));
        y += 1;
    }
    let rule = Paragraph::new("─".repeat(width)).style(theme.hint);
    if frames > 0 {
        frame.render_widget(&rule, row(y));
        y += 1;
    }
    input.draw(chat, frame, Rect { y, height: area.height - y, ..area });
    if frames > 1 {
        frame.render_widget(&rule, row(area.height - 2));
        frame.render_widget(Paragraph::new(status_line(chat, width, now)), row(area.height - 1));
    }
}

/// The visible rows of the input, around the cursor.
struct Input {
    lines: Vec<String>,
    /// Whether the first row is among them.
    from_start: bool,
    row: usize,
    column: usize,
}

impl Input {
    fn new(chat: &Chat, area: Rect) -> Self {
        let layout = chat.editor.layout(area.width.saturating_sub(2));
        let most = usize::from(area.height / 3).max(1);
        let first = (layout.row + 1).saturating_sub(most);
        Self {
            lines: layout.lines.into_iter().skip(first).take(most).collect(),
            from_start: first == 0,
            row: layout.row - first,
            column: layout.column,
        }
    }

    fn draw(&self, chat: &Chat, frame: &mut Frame<'_>, area: Rect) {
        let theme = &chat.theme;
        for (at, line) in (0..area.height).zip(&self.lines) {
            let mark = if at == 0 && self.from_start { "> " } else { "  " };
            let spans = vec![Span::styled(mark, theme.heading), Span::raw(line.clone())];
            let row = Rect { y: area.y + at, height: 1, ..area };
            frame.render_widget(Paragraph::new(Line::from(spans)), row);
        }
        if chat.editor.is_empty() {
            let hint = if chat.is_in_turn() {
                "esc interrupts"
            } else {
                "Type a prompt, or / for commands"
            };
            let at = Rect { x: area.x + 2, width: area.width - 2, height: 1, ..area };
            frame.render_widget(Paragraph::new(hint).style(theme.hint), at);
        }
        let column = u16::try_from(self.column + 2).unwrap_or(u16::MAX).min(area.width - 1);
        let row = u16::try_from(self.row).unwrap_or(0).min(area.height.saturating_sub(1));
        frame.set_cursor_position(Position::new(column, area.y + row));
    }
}

fn draw_transcript(chat: &mut Chat, frame: &mut Frame<'_>, area: Rect) {
    let lines = chat.transcript.window(area.width.into(), area.height.into());
    let missing = area.height.saturating_sub(u16::try_from(lines.len()).unwrap_or(u16::MAX));
    // A transcript that does not fill the screen is drawn at the top.
    let at_top = chat.transcript.lines_below() == 0 && missing > 0;
    frame.render_widget(Paragraph::new(lines), area);
    let below = chat.transcript.lines_below();
    if below > 0 && !at_top && area.height > 0 {
        let text = format!(" {below} more lines below, page down ");
        let wide = u16::try_from(text.width()).unwrap_or(u16::MAX).min(area.width);
        let at = Rect { x: area.width - wide, y: area.height - 1, width: wide, height: 1 };
        frame.render_widget(Paragraph::new(text).style(chat.theme.selected), at);
    }
}

/// At most `most` lines between the transcript and the input: a question or the activity, then queued
/// prompts and completions. A question has priority.
fn middle_lines(chat: &mut Chat, width: usize, most: usize, now: Moment) -> Vec<Line<'static>> {
    let mut others = queue_lines(chat, width);
    others.extend(candidate_lines(chat, width));
    let mut lines = Vec::new();
    let question = question::min_height(chat, width);
    if question > 0 {
        others.truncate(most.saturating_sub(question));
        lines.extend(question::lines(chat, width, most - others.len(), now));
    } else {
        lines.extend(activity_line(chat.activity, now, &chat.theme));
    }
    lines.extend(others);
    lines.truncate(most);
    lines
}

fn queue_lines(chat: &Chat, width: usize) -> Vec<Line<'static>> {
    let line = |prompt: &String| {
        let line = format!("  next: {}", clean(prompt).replace('\n', " "));
        Line::styled(fit(&line, width), chat.theme.hint)
    };
    chat.queued.iter().map(line).collect()
}

fn candidate_lines(chat: &Chat, width: usize) -> Vec<Line<'static>> {
    let theme = &chat.theme;
    let mut lines = Vec::new();
    let candidates = chat.candidates();
    for (name, command) in candidates.iter().take(CANDIDATES_MAX) {
        let usage = format!("/{name} {}", command.arguments);
        let usage = format!("  {:<22}", usage.trim_end());
        let room = width.saturating_sub(usage.width() + 1);
        lines.push(Line::from(vec![
            Span::styled(usage, theme.name),
            Span::styled(format!(" {}", fit(command.help, room)), theme.hint),
        ]));
    }
    if candidates.len() > CANDIDATES_MAX {
        let more = format!("  … {} more", candidates.len() - CANDIDATES_MAX);
        lines.push(Line::styled(more, theme.hint));
    }
    lines
}

fn activity_line(activity: Activity, now: Moment, theme: &Theme) -> Option<Line<'static>> {
    let (word, since) = match activity {
        Activity::Idle => return None,
        Activity::Turn(since) => ("working", since),
        Activity::Stopping(since) => ("stopping", since),
        Activity::Working(since) => ("one moment", since),
    };
    let passed = now.0.saturating_sub(since.0);
    let turn = usize::try_from(passed / 120).unwrap_or(0) % SPINNER.len();
    let seconds = if passed >= 3000 { format!(" {} s", passed / 1000) } else { String::new() };
    Some(Line::styled(format!("{} {word}{seconds}", SPINNER[turn]), theme.hint))
}

/// The facts that fit, chosen by rank.
fn status_line(chat: &Chat, width: usize, now: Moment) -> Line<'static> {
    let (status, theme) = (&chat.status, &chat.theme);
    // The hint about the rewind key comes before everything else.
    let (hint, hint_rank) = match chat.rewind_hint(now) {
        Some(hint) => (hint, 0),
        None => (clean(&status.hint).into_owned(), 4),
    };
    let changed = match status.files {
        0 => "no files changed".to_owned(),
        files => format_counts(files, status.lines),
    };
    let points = match status.points {
        None => "not recorded".to_owned(),
        Some(1) => "1 point".to_owned(),
        Some(points) => format!("{points} points"),
    };
    let parts: [(String, Style, u8); 5] = [
        (clean(&status.agent).into_owned(), theme.name, 1),
        (clean(&status.session).into_owned(), theme.hint, 5),
        (points, Style::default(), 2),
        (changed, Style::default(), 3),
        (hint, theme.hint, hint_rank),
    ];
    let mut fits: Vec<bool> = vec![false; parts.len()];
    let mut used = 0;
    for rank in 0..=5 {
        if let Some(at) = parts.iter().position(|part| part.2 == rank) {
            let wide = parts[at].0.width() + if used > 0 { 3 } else { 0 };
            if used + wide <= width && !parts[at].0.is_empty() {
                used += wide;
                fits[at] = true;
            }
        }
    }
    let mut spans = Vec::new();
    for ((text, style, _), fits) in parts.into_iter().zip(fits) {
        if fits {
            if !spans.is_empty() {
                spans.push(Span::styled(" · ", theme.hint));
            }
            spans.push(Span::styled(text, style));
        }
    }
    Line::from(spans)
}

/// `2 files +10 -3`.
pub(crate) fn format_counts(files: usize, lines: Option<(usize, usize)>) -> String {
    let word = if files == 1 { "file" } else { "files" };
    match lines {
        Some((added, removed)) => format!("{files} {word} +{added} -{removed}"),
        None => format!("{files} {word}"),
    }
}
