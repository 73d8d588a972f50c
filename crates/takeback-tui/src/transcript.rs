//! The transcript: everything said and done in a session, wrapped for the screen.
//!
//! Only visible items are wrapped, and each only once per width.

mod wrapped_item;

use ratatui::text::Line;

use self::wrapped_item::WrappedItem;
use crate::diff::DiffLine;
use crate::theme::Theme;

/// The items of a session, and the window on them that is visible.
#[derive(Debug)]
pub struct Transcript {
    items: Vec<WrappedItem>,
    theme: Theme,
    /// Whether the agent's next text continues the last item.
    text_is_open: bool,
    /// Whether diffs are shown in full.
    unfolded: bool,
    /// How many lines are below the window; 0 follows new lines.
    below: usize,
    /// The size of the last window.
    width: usize,
    height: usize,
}

/// Something said or done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// The user's prompt.
    Prompt(String),
    /// The agent's text.
    Text(String),
    /// A tool call.
    Tool {
        /// The call's id.
        call: String,
        /// What it does, in one line.
        title: String,
        /// Its result, once it has ended.
        end: Option<ToolEnd>,
    },
    /// A diff that the user asked for.
    Diff(Vec<DiffLine>),
    /// A message of Takeback itself.
    Message(Tone, String),
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolEnd {
    /// Whether it succeeded.
    pub ok: bool,
    /// The result in one line.
    pub line: String,
    /// Lines added to files.
    pub insertions: usize,
    /// Lines removed from files.
    pub deletions: usize,
    /// How the files changed.
    pub diff: Vec<DiffLine>,
}

/// The style of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Normal text.
    Plain,
    /// Secondary.
    Hint,
    /// Something succeeded.
    Success,
    /// Needs attention, but is no error.
    Warning,
    /// Something failed.
    Failure,
}

impl Transcript {
    /// An empty transcript.
    #[must_use]
    pub fn new(theme: Theme) -> Self {
        Self {
            items: Vec::new(),
            theme,
            text_is_open: false,
            unfolded: false,
            below: 0,
            width: 0,
            height: 0,
        }
    }

    /// Adds an item.
    pub fn push(&mut self, item: Item) {
        self.items.push(WrappedItem::new(item));
        self.keep_position(self.items.len() - 1, 0);
    }

    /// Adds a message.
    pub fn say(&mut self, tone: Tone, text: impl Into<String>) {
        self.push(Item::Message(tone, text.into()));
    }

    /// Appends to the agent's text.
    pub fn add_text(&mut self, more: &str) {
        let continues = self.text_is_open
            && matches!(self.items.last(), Some(WrappedItem { item: Item::Text(_), .. }));
        if !continues {
            self.push(Item::Text(String::new()));
            self.text_is_open = true;
        }
        self.change(self.items.len() - 1, |item| {
            if let Item::Text(text) = item {
                text.push_str(more);
            }
        });
    }

    /// Ends the agent's text: the next one is a new item.
    pub fn end_text(&mut self) {
        let Some(last) = self.items.last_mut() else { return };
        let Item::Text(text) = &mut last.item else { return };
        text.truncate(text.trim_end().len());
        if text.is_empty() {
            self.items.pop();
        } else {
            last.rewrap();
            self.text_is_open = false;
        }
    }

    /// Sets the result of a tool call.
    pub fn end_tool(&mut self, ended: &str, result: ToolEnd) {
        let is_open = |wrapped: &WrappedItem| matches!(&wrapped.item, Item::Tool { call, end: None, .. } if call == ended);
        let Some(at) = self.items.iter().rposition(is_open) else { return };
        self.change(at, |item| {
            if let Item::Tool { end, .. } = item {
                *end = Some(result);
            }
        });
    }

    /// Removes every item.
    pub fn clear(&mut self) {
        *self = Self { unfolded: self.unfolded, ..Self::new(self.theme) };
    }

    /// Keeps the first `len` items.
    pub fn truncate(&mut self, len: usize) {
        self.items.truncate(len);
        self.below = 0;
    }

    /// The number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there is no item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The items, oldest first.
    pub fn items(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().map(|wrapped| &wrapped.item)
    }

    /// Shows diffs in full, or shortened again.
    pub fn toggle_fold(&mut self) {
        self.unfolded = !self.unfolded;
        for wrapped in &mut self.items {
            if matches!(wrapped.item, Item::Tool { .. }) {
                wrapped.stale = true;
            }
        }
    }

    /// Moves the window towards older lines.
    pub fn scroll_up(&mut self, lines: usize) {
        self.below = self.below.saturating_add(lines);
    }

    /// Moves the window towards newer lines.
    pub fn scroll_down(&mut self, lines: usize) {
        self.below = self.below.saturating_sub(lines);
    }

    /// The height of the window, less two lines that stay visible.
    #[must_use]
    pub fn page(&self) -> usize {
        self.height.saturating_sub(2).max(1)
    }

    /// How many lines are below the window.
    #[must_use]
    pub fn lines_below(&self) -> usize {
        self.below
    }

    /// The visible lines of a window of this size.
    pub fn window(&mut self, width: usize, height: usize) -> Vec<Line<'static>> {
        (self.width, self.height) = (width, height);
        let wanted = height + self.below;
        let mut visible: Vec<&WrappedItem> = Vec::new();
        let mut lines = 0;
        for wrapped in self.items.iter_mut().rev() {
            if lines >= wanted {
                break;
            }
            lines += wrapped.wrap(width, self.unfolded, &self.theme);
            visible.push(wrapped);
        }
        self.below = self.below.min(lines.saturating_sub(height));
        let skip = lines.saturating_sub(height + self.below);
        let all = visible.into_iter().rev().flat_map(|wrapped| &wrapped.lines);
        all.skip(skip).take(height).cloned().collect()
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&mut Item)) {
        let before = self.items[at].lines.len();
        change(&mut self.items[at].item);
        self.items[at].stale = true;
        self.keep_position(at, before);
    }

    /// If older lines are visible, keeps them in place although the item at `at` has grown.
    fn keep_position(&mut self, at: usize, before: usize) {
        if self.below > 0 && self.width > 0 {
            let after = self.items[at].wrap(self.width, self.unfolded, &self.theme);
            self.below += after.saturating_sub(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::LineKind;

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
    fn pieces_of_text_form_one_item() {
        let mut transcript = transcript();
        for piece in ["I make ", "util", "s.ts.\n\nDone", ".\n"] {
            transcript.add_text(piece);
            transcript.window(20, 10);
        }
        transcript.end_text();
        transcript.add_text("Next.");
        assert_eq!(
            text(&transcript.window(20, 10)),
            ["● I make utils.ts.", "  ", "  Done.", "● Next."]
        );
    }

    #[test]
    fn older_lines_stay_in_place_when_new_ones_arrive() {
        let mut transcript = transcript();
        for n in 0..50 {
            transcript.say(Tone::Plain, format!("line {n}"));
        }
        assert_eq!(text(&transcript.window(20, 2)), ["line 48", "line 49"]);
        transcript.scroll_up(10);
        assert_eq!(text(&transcript.window(20, 2)), ["line 38", "line 39"]);
        transcript.say(Tone::Plain, "line 50\nand more");
        assert_eq!(text(&transcript.window(20, 2)), ["line 38", "line 39"]);
        transcript.scroll_up(1000);
        assert_eq!(text(&transcript.window(20, 2)), ["line 0", "line 1"]);
        transcript.scroll_down(usize::MAX);
        assert_eq!(text(&transcript.window(20, 2)), ["line 50", "and more"]);
    }

    #[test]
    fn another_width_wraps_anew() {
        let mut transcript = transcript();
        transcript.add_text("one two three\nfour");
        assert_eq!(text(&transcript.window(40, 9)), ["● one two three", "  four"]);
        assert_eq!(text(&transcript.window(9, 9)), ["● one two", "  three", "  four"]);
        transcript.add_text(" five");
        assert_eq!(text(&transcript.window(40, 9)), ["● one two three", "  four five"]);
    }

    #[test]
    fn a_diff_is_shortened_until_it_is_unfolded() {
        let mut transcript = transcript();
        transcript.push(Item::Tool { call: "1".into(), title: "Write a.ts".into(), end: None });
        assert_eq!(text(&transcript.window(40, 9)), ["◌ Write a.ts"]);
        let diff =
            (0..6).map(|n| DiffLine { kind: LineKind::Added, text: format!("line {n}") }).collect();
        let end = ToolEnd { ok: true, line: "written".into(), insertions: 6, deletions: 0, diff };
        transcript.end_tool("1", end);
        assert_eq!(
            text(&transcript.window(40, 9)),
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
        transcript.toggle_fold();
        assert_eq!(text(&transcript.window(40, 9)).len(), 8);
    }

    #[test]
    fn untrusted_text_cannot_control_the_terminal() {
        let mut transcript = transcript();
        transcript.push(Item::Prompt("a\x1b[2Jb".into()));
        transcript.add_text("c\x1b]0;title\x07");
        transcript.push(Item::Tool { call: "1".into(), title: "$ \x1bc".into(), end: None });
        for line in text(&transcript.window(40, 9)) {
            assert!(!line.contains(char::is_control), "{line:?}");
        }
    }
}
