//! What was said and done, as lines of a width: only what is looked at is wrapped, and only once.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr as _;

use crate::clean::clean;
use crate::fit::fit;
use crate::menu::{DiffLine, LineKind};
use crate::theme::Theme;
use crate::wrap::wrap;

/// How many lines of a diff are shown while it is folded.
const FOLDED: usize = 4;

#[derive(Debug)]
pub struct Transcript {
    items: Vec<Shown>,
    theme: Theme,
    /// Whether what the agent says next belongs to what it said last.
    open_text: bool,
    /// Whether diffs are shown whole.
    unfolded: bool,
    /// How many lines lie below the window; 0 follows what comes.
    below: usize,
    /// The width and height of the last look.
    width: usize,
    height: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    Person(String),
    /// As it comes: more is added to the last one.
    Agent(String),
    Tool {
        call: String,
        title: String,
        end: Option<ToolEnd>,
    },
    Diff(Vec<DiffLine>),
    Word(Tone, String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolEnd {
    pub ok: bool,
    /// What came of it, in one line.
    pub line: String,
    pub insertions: usize,
    pub deletions: usize,
    pub diff: Vec<DiffLine>,
}

/// How something is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Hint,
    Good,
    Care,
    Bad,
}

/// An item with its lines, as far as they were asked for.
#[derive(Debug)]
struct Shown {
    item: Item,
    lines: Vec<Line<'static>>,
    /// For which width.
    width: usize,
    /// Whether the item is other than when it was wrapped.
    stale: bool,
    /// Of a text that grows: how much of it is wrapped for good, and into how many lines.
    settled: (usize, usize),
}

impl Transcript {
    #[must_use]
    pub fn new(theme: Theme) -> Self {
        Self { items: Vec::new(), theme, open_text: false, unfolded: false, below: 0, width: 0, height: 0 }
    }

    pub fn push(&mut self, item: Item) {
        let (lines, settled) = (Vec::new(), (0, 0));
        self.items.push(Shown { item, lines, width: 0, stale: true, settled });
        self.grown(self.items.len() - 1, 0);
    }

    pub fn say(&mut self, tone: Tone, text: impl Into<String>) {
        self.push(Item::Word(tone, text.into()));
    }

    /// More of what the agent says.
    pub fn add_text(&mut self, more: &str) {
        if !(self.open_text
            && matches!(self.items.last(), Some(Shown { item: Item::Agent(_), .. })))
        {
            self.push(Item::Agent(String::new()));
            self.open_text = true;
        }
        let at = self.items.len() - 1;
        let before = self.items[at].lines.len();
        if let Item::Agent(text) = &mut self.items[at].item {
            text.push_str(more);
        }
        self.items[at].stale = true;
        self.grown(at, before);
    }

    /// The text is complete: what comes next is a paragraph of its own.
    pub fn end_text(&mut self) {
        let Some(Shown { item: Item::Agent(text), stale, settled, .. }) = self.items.last_mut()
        else {
            return;
        };
        text.truncate(text.trim_end().len());
        (*stale, *settled) = (true, (0, 0));
        if text.is_empty() {
            self.items.pop();
        } else {
            self.open_text = false;
        }
    }

    pub fn end_tool(&mut self, of: &str, how: ToolEnd) {
        let is_it =
            |shown: &Shown| matches!(&shown.item, Item::Tool { call, end: None, .. } if call == of);
        let Some(at) = self.items.iter().rposition(is_it) else { return };
        let before = self.items[at].lines.len();
        if let Item::Tool { end, .. } = &mut self.items[at].item {
            *end = Some(how);
        }
        self.items[at].stale = true;
        self.grown(at, before);
    }

    pub fn clear(&mut self) {
        *self = Self { unfolded: self.unfolded, ..Self::new(self.theme) };
    }

    /// Keeps the first `len` items: what was said after them is taken back.
    pub fn truncate(&mut self, len: usize) {
        self.items.truncate(len);
        self.below = 0;
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().map(|shown| &shown.item)
    }

    pub fn fold_or_unfold(&mut self) {
        self.unfolded = !self.unfolded;
        for shown in &mut self.items {
            if matches!(shown.item, Item::Tool { .. }) {
                shown.stale = true;
            }
        }
    }

    pub fn scroll_up(&mut self, lines: usize) {
        self.below = self.below.saturating_add(lines);
    }

    pub fn scroll_down(&mut self, lines: usize) {
        self.below = self.below.saturating_sub(lines);
    }

    /// As many lines as are seen at once, but for two that are seen again.
    #[must_use]
    pub fn page(&self) -> usize {
        self.height.saturating_sub(2).max(1)
    }

    #[must_use]
    pub fn lines_below(&self) -> usize {
        self.below
    }

    /// Who looks at older lines goes on seeing them although more come below.
    fn grown(&mut self, at: usize, before: usize) {
        if self.below > 0 && self.width > 0 {
            let (width, unfolded) = (self.width, self.unfolded);
            let after = self.items[at].lines_for(width, unfolded, &self.theme).len();
            self.below += after.saturating_sub(before);
        }
    }

    /// The lines of a window, the newest at its foot.
    pub fn window(&mut self, width: usize, height: usize) -> Vec<Line<'static>> {
        (self.width, self.height) = (width, height);
        let wanted = height + self.below;
        let mut found: Vec<&Shown> = Vec::new();
        let mut lines = 0;
        for shown in self.items.iter_mut().rev() {
            if lines >= wanted {
                break;
            }
            lines += shown.lines_for(width, self.unfolded, &self.theme).len();
            found.push(shown);
        }
        self.below = self.below.min(lines.saturating_sub(height));
        let skip = lines.saturating_sub(height + self.below);
        let all = found.into_iter().rev().flat_map(|shown| &shown.lines);
        all.skip(skip).take(height).cloned().collect()
    }
}

impl Shown {
    fn lines_for(&mut self, width: usize, unfolded: bool, theme: &Theme) -> &[Line<'static>] {
        if self.width == width && !self.stale {
            return &self.lines;
        }
        if self.width != width {
            self.settled = (0, 0);
        }
        match &self.item {
            Item::Agent(text) => {
                let (mut at, mut kept) = self.settled;
                self.lines.truncate(kept);
                for line in text[at..].split_inclusive('\n') {
                    let marks = if self.lines.is_empty() { ("● ", "  ") } else { ("  ", "  ") };
                    let words = line.trim_end_matches('\n');
                    self.lines.extend(marked(words, marks, Style::default(), theme.name, width));
                    if line.ends_with('\n') {
                        (at, kept) = (at + line.len(), self.lines.len());
                    }
                }
                self.settled = (at, kept);
            }
            Item::Person(text) => {
                self.lines = paragraphs(text, ("> ", "  "), theme.strong, theme.hint, width);
                self.lines.insert(0, Line::default());
            }
            Item::Word(tone, text) => {
                let style = style_of(*tone, theme);
                self.lines = paragraphs(text, ("", ""), style, style, width);
            }
            Item::Diff(lines) => {
                self.lines = lines.iter().map(|line| diff_line(line, width, theme)).collect();
            }
            Item::Tool { title, end, .. } => {
                self.lines = tool(title, end.as_ref(), unfolded, theme, width);
            }
        }
        (self.width, self.stale) = (width, false);
        &self.lines
    }
}

fn style_of(tone: Tone, theme: &Theme) -> Style {
    match tone {
        Tone::Plain => Style::default(),
        Tone::Hint => theme.hint,
        Tone::Good => theme.good,
        Tone::Care => theme.care,
        Tone::Bad => theme.bad,
    }
}

fn paragraphs(
    text: &str,
    marks: (&'static str, &'static str),
    style: Style,
    mark: Style,
    width: usize,
) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (at, line) in text.split('\n').enumerate() {
        let marks = if at == 0 { marks } else { (marks.1, marks.1) };
        lines.extend(marked(line, marks, style, mark, width));
    }
    lines
}

/// One line of text, wrapped, with a mark before the first and room for it before the others.
fn marked(
    line: &str,
    (first, others): (&'static str, &'static str),
    style: Style,
    mark: Style,
    width: usize,
) -> Vec<Line<'static>> {
    let room = width.saturating_sub(first.width());
    let wrapped = wrap(line, room);
    let lines = wrapped.into_iter().enumerate().map(|(at, part)| {
        let before = if at == 0 { first } else { others };
        Line::from(vec![Span::styled(before, mark), Span::styled(part, style)])
    });
    lines.collect()
}

/// The call, what came of it, and what it changed.
fn tool(
    title: &str,
    end: Option<&ToolEnd>,
    unfolded: bool,
    theme: &Theme,
    width: usize,
) -> Vec<Line<'static>> {
    let (mark, style) = match end {
        None => ("◌ ", theme.hint),
        Some(ToolEnd { ok: true, .. }) => ("◆ ", theme.good),
        Some(_) => ("◆ ", theme.bad),
    };
    let title = fit(title, width.saturating_sub(2));
    let mut lines =
        vec![Line::from(vec![Span::styled(mark, style), Span::styled(title, Style::default())])];
    let Some(end) = end else { return lines };
    let mut came_of_it = Vec::new();
    if end.insertions + end.deletions > 0 {
        came_of_it.push(Span::styled(format!("+{} ", end.insertions), theme.added));
        came_of_it.push(Span::styled(format!("-{} ", end.deletions), theme.removed));
    }
    let used: usize = came_of_it.iter().map(|span| span.content.width()).sum();
    let style = if end.ok { theme.hint } else { theme.bad };
    let said = fit(&end.line, width.saturating_sub(4 + used));
    came_of_it.push(Span::styled(said, style));
    came_of_it.insert(0, Span::styled("  └ ", theme.hint));
    if end.insertions + end.deletions > 0 || !end.line.is_empty() {
        lines.push(Line::from(came_of_it));
    }
    let most = if unfolded { usize::MAX } else { FOLDED };
    let room = width.saturating_sub(4);
    // Of what is folded, what changed: what stands around it says little.
    let says_something = |line: &&DiffLine| unfolded || line.kind != LineKind::Context;
    let shown: Vec<&DiffLine> = end.diff.iter().filter(says_something).take(most).collect();
    for line in &shown {
        lines.push(diff_line(line, room, theme));
    }
    if end.diff.len() > shown.len() && !unfolded {
        let left = end.diff.len() - shown.len();
        let word = if left == 1 { "line" } else { "lines" };
        let more = format!("    … {left} more {word}, ctrl-o shows them");
        lines.push(Line::from(Span::styled(fit(&more, width), theme.hint)));
    }
    lines
}

fn diff_line(line: &DiffLine, room: usize, theme: &Theme) -> Line<'static> {
    let (sign, style) = match line.kind {
        LineKind::Added => ("+", theme.added),
        LineKind::Removed => ("-", theme.removed),
        LineKind::Context => (" ", Style::default()),
        LineKind::Heading => ("", theme.hint),
    };
    let text = fit(&format!("{sign}{}", clean(&line.text)), room);
    Line::from(vec![Span::raw("    "), Span::styled(text, style)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(lines: &[Line<'_>]) -> Vec<String> {
        lines
            .iter()
            .map(|line| line.spans.iter().map(|span| span.content.as_ref()).collect())
            .collect()
    }

    fn transcript() -> Transcript {
        Transcript::new(Theme::plain())
    }

    #[test]
    fn text_that_comes_in_pieces_is_one_paragraph() {
        let mut shown = transcript();
        for piece in ["I make ", "util", "s.ts.\n\nDone", ".\n"] {
            shown.add_text(piece);
            shown.window(20, 10);
        }
        shown.end_text();
        shown.add_text("Next.");
        assert_eq!(text(&shown.window(20, 10)), ["● I make utils.ts.", "  ", "  Done.", "● Next."]);
    }

    #[test]
    fn whoever_looks_at_older_lines_goes_on_seeing_them() {
        let mut shown = transcript();
        for n in 0..50 {
            shown.say(Tone::Plain, format!("line {n}"));
        }
        assert_eq!(text(&shown.window(20, 2)), ["line 48", "line 49"]);
        shown.scroll_up(10);
        assert_eq!(text(&shown.window(20, 2)), ["line 38", "line 39"]);
        shown.say(Tone::Plain, "line 50\nand more");
        assert_eq!(text(&shown.window(20, 2)), ["line 38", "line 39"]);
        shown.scroll_up(1000);
        assert_eq!(text(&shown.window(20, 2)), ["line 0", "line 1"]);
        shown.scroll_down(usize::MAX);
        assert_eq!(text(&shown.window(20, 2)), ["line 50", "and more"]);
    }

    #[test]
    fn another_width_wraps_anew() {
        let mut shown = transcript();
        shown.add_text("one two three\nfour");
        assert_eq!(text(&shown.window(40, 9)), ["● one two three", "  four"]);
        assert_eq!(text(&shown.window(9, 9)), ["● one two", "  three", "  four"]);
        shown.add_text(" five");
        assert_eq!(text(&shown.window(40, 9)), ["● one two three", "  four five"]);
    }

    #[test]
    fn a_diff_is_folded_until_it_is_asked_for() {
        let mut shown = transcript();
        shown.push(Item::Tool { call: "1".into(), title: "Write a.ts".into(), end: None });
        assert_eq!(text(&shown.window(40, 9)), ["◌ Write a.ts"]);
        let diff =
            (0..6).map(|n| DiffLine { kind: LineKind::Added, text: format!("line {n}") }).collect();
        let end = ToolEnd { ok: true, line: "written".into(), insertions: 6, deletions: 0, diff };
        shown.end_tool("1", end);
        assert_eq!(
            text(&shown.window(40, 9)),
            [
                "◆ Write a.ts",
                "  └ +6 -0 written",
                "    +line 0",
                "    +line 1",
                "    +line 2",
                "    +line 3",
                "    … 2 more lines, ctrl-o shows them",
            ]
        );
        shown.fold_or_unfold();
        assert_eq!(text(&shown.window(40, 9)).len(), 8);
    }

    #[test]
    fn what_comes_from_outside_does_not_steer_the_terminal() {
        let mut shown = transcript();
        shown.push(Item::Person("a\x1b[2Jb".into()));
        shown.add_text("c\x1b]0;title\x07");
        shown.push(Item::Tool { call: "1".into(), title: "$ \x1bc".into(), end: None });
        for line in text(&shown.window(40, 9)) {
            assert!(!line.contains(char::is_control), "{line:?}");
        }
    }
}
