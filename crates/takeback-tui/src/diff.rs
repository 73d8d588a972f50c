//! A line of a diff, and how it is drawn.

use ratatui::style::Style;
use ratatui::text::Line;

use crate::cut_text::fit;
use crate::theme::Theme;

/// One line of a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// Added, removed, unchanged, or a heading.
    pub kind: LineKind,
    /// Without the `+` or `-` before it.
    pub text: String,
}

/// The kind of a [`DiffLine`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// Unchanged.
    Context,
    /// New in the newer version.
    Added,
    /// Only in the older version.
    Removed,
    /// `@@ … @@`, a file name, or a note such as "binary file".
    Heading,
}

impl DiffLine {
    /// One row of at most `width` columns, indented by `indent` more.
    pub(crate) fn to_line(&self, indent: usize, width: usize, theme: &Theme) -> Line<'static> {
        let (sign, style) = match self.kind {
            LineKind::Context => (" ", Style::new()),
            LineKind::Added => ("+", theme.added),
            LineKind::Removed => ("-", theme.removed),
            LineKind::Heading => ("", theme.hint),
        };
        let text = fit(&self.text, width.saturating_sub(sign.len()));
        Line::styled(format!("{}{sign}{text}", " ".repeat(indent)), style)
    }
}
