//! A text in so many columns.

use crate::clean::clean;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Lines as they are shown, and the cell of the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// At least one, none wider than asked for, without control characters.
    pub lines: Vec<String>,
    pub row: usize,
    /// Less than the width.
    pub column: usize,
}

/// A grapheme wider than all there is.
const TOO_WIDE: &str = "?";

pub(super) fn lay_out(text: &str, cursor: usize, width: u16) -> Layout {
    let width = usize::from(width.max(1));
    let mut out = Layout { lines: vec![String::new()], row: 0, column: 0 };
    let mut column = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        let shown = clean(grapheme);
        let shown = if shown.width() > width { TOO_WIDE } else { &shown };
        let line_end = grapheme == "\n";
        // A line that is full leaves no cell for the cursor, which then stands on the next one.
        if column >= width || (!line_end && column + shown.width() > width) {
            out.lines.push(String::new());
            column = 0;
        }
        if at == cursor {
            (out.row, out.column) = (out.lines.len() - 1, column);
        }
        if line_end {
            out.lines.push(String::new());
            column = 0;
        } else if let Some(line) = out.lines.last_mut() {
            line.push_str(shown);
            column += shown.width();
        }
    }
    if cursor >= text.len() {
        if column >= width {
            out.lines.push(String::new());
            column = 0;
        }
        (out.row, out.column) = (out.lines.len() - 1, column);
    }
    out
}
