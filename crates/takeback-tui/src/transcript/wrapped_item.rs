//! An item of the transcript and its lines at one width.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use super::{Item, Tone, ToolEnd};
use crate::cut_text::fit;
use crate::diff::{DiffLine, LineKind};
use crate::theme::Theme;
use crate::wrap::wrap;

/// How many lines of a folded diff are shown.
const FOLDED_LINES: usize = 4;

/// The indentation of a diff.
const INDENT: usize = 4;

#[derive(Debug)]
pub(super) struct WrappedItem {
    pub(super) item: Item,
    /// Valid for `width`, unless stale.
    pub(super) lines: Vec<Line<'static>>,
    width: usize,
    /// Whether the item changed since it was wrapped.
    pub(super) stale: bool,
    /// Of a text that grows: how many bytes will not change any more, and how many lines they are.
    settled: (usize, usize),
}

/// What precedes the first line of a paragraph, and the others.
#[derive(Clone, Copy)]
struct Marker {
    first: &'static str,
    others: &'static str,
    style: Style,
}

impl WrappedItem {
    pub(super) fn new(item: Item) -> Self {
        Self { item, lines: Vec::new(), width: 0, stale: true, settled: (0, 0) }
    }

    /// Makes the next [`Self::wrap`] start from the beginning.
    pub(super) fn rewrap(&mut self) {
        (self.stale, self.settled) = (true, (0, 0));
    }

    /// Wraps the item if necessary; the number of its lines.
    pub(super) fn wrap(&mut self, width: usize, unfolded: bool, theme: &Theme) -> usize {
        if self.width == width && !self.stale {
            return self.lines.len();
        }
        if self.width != width {
            self.settled = (0, 0);
        }
        match &self.item {
            Item::Text(text) => {
                let (mut at, mut settled) = self.settled;
                self.lines.truncate(settled);
                for line in text[at..].split_inclusive('\n') {
                    let first = if self.lines.is_empty() { "● " } else { "  " };
                    let marker = Marker { first, others: "  ", style: theme.name };
                    let text = line.trim_end_matches('\n');
                    self.lines.extend(wrap_line(text, marker, Style::default(), width));
                    if line.ends_with('\n') {
                        (at, settled) = (at + line.len(), self.lines.len());
                    }
                }
                self.settled = (at, settled);
            }
            Item::Prompt(text) => {
                let marker = Marker { first: "> ", others: "  ", style: theme.hint };
                self.lines = wrap_text(text, marker, theme.heading, width);
                self.lines.insert(0, Line::default());
            }
            Item::Message(tone, text) => {
                let style = tone_style(*tone, theme);
                let marker = Marker { first: "", others: "", style };
                self.lines = wrap_text(text, marker, style, width);
            }
            Item::Diff(diff) => {
                let width = width.saturating_sub(INDENT);
                self.lines = diff.iter().map(|line| line.to_line(INDENT, width, theme)).collect();
            }
            Item::Tool { title, end, .. } => {
                self.lines = tool_lines(title, end.as_ref(), unfolded, theme, width);
            }
        }
        (self.width, self.stale) = (width, false);
        self.lines.len()
    }
}

fn tone_style(tone: Tone, theme: &Theme) -> Style {
    match tone {
        Tone::Plain => Style::default(),
        Tone::Hint => theme.hint,
        Tone::Success => theme.success,
        Tone::Warning => theme.warning,
        Tone::Failure => theme.failure,
    }
}

fn wrap_text(text: &str, marker: Marker, style: Style, width: usize) -> Vec<Line<'static>> {
    let lines = text.split('\n').enumerate();
    let marker_at = |at| if at == 0 { marker } else { Marker { first: marker.others, ..marker } };
    lines.flat_map(|(at, line)| wrap_line(line, marker_at(at), style, width)).collect()
}

fn wrap_line(line: &str, marker: Marker, style: Style, width: usize) -> Vec<Line<'static>> {
    let wrapped = wrap(line, width.saturating_sub(marker.first.width()));
    let lines = wrapped.into_iter().enumerate().map(|(at, part)| {
        let before = if at == 0 { marker.first } else { marker.others };
        Line::from(vec![Span::styled(before, marker.style), Span::styled(part, style)])
    });
    lines.collect()
}

/// A tool call, its result, and what it changed.
fn tool_lines(
    title: &str,
    end: Option<&ToolEnd>,
    unfolded: bool,
    theme: &Theme,
    width: usize,
) -> Vec<Line<'static>> {
    let (mark, style) = match end {
        None => ("◌ ", theme.hint),
        Some(ToolEnd { ok: true, .. }) => ("◆ ", theme.success),
        Some(_) => ("◆ ", theme.failure),
    };
    let title = fit(title, width.saturating_sub(2));
    let mut lines = vec![Line::from(vec![Span::styled(mark, style), Span::raw(title)])];
    let Some(end) = end else { return lines };
    lines.extend(result_line(end, theme, width));
    // A folded diff has only the changed lines: context says little without its surroundings.
    let is_visible = |line: &&DiffLine| unfolded || line.kind != LineKind::Context;
    let most = if unfolded { usize::MAX } else { FOLDED_LINES };
    let visible: Vec<&DiffLine> = end.diff.iter().filter(is_visible).take(most).collect();
    let room = width.saturating_sub(INDENT);
    lines.extend(visible.iter().map(|line| line.to_line(INDENT, room, theme)));
    if end.diff.len() > visible.len() && !unfolded {
        let hidden = end.diff.len() - visible.len();
        let word = if hidden == 1 { "line" } else { "lines" };
        let more = format!("    … {hidden} more {word}, ctrl-o shows them");
        lines.push(Line::from(Span::styled(fit(&more, width), theme.hint)));
    }
    lines
}

/// `└ +12 -3 updated`.
fn result_line(end: &ToolEnd, theme: &Theme, width: usize) -> Option<Line<'static>> {
    let mut spans = vec![Span::styled("  └ ", theme.hint)];
    if end.insertions + end.deletions > 0 {
        spans.push(Span::styled(format!("+{} ", end.insertions), theme.added));
        spans.push(Span::styled(format!("-{} ", end.deletions), theme.removed));
    } else if end.line.is_empty() {
        return None;
    }
    let used: usize = spans.iter().map(Span::width).sum();
    let style = if end.ok { theme.hint } else { theme.failure };
    spans.push(Span::styled(fit(&end.line, width.saturating_sub(used)), style));
    Some(Line::from(spans))
}
