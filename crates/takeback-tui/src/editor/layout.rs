//! Lays out the input at a width.

use crate::safe_text::clean;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The input as it is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// At least one; none is wider than the width or has control characters.
    pub lines: Vec<String>,
    /// The row of the cursor.
    pub row: usize,
    /// The column of the cursor, less than the width.
    pub column: usize,
}

/// Replaces a grapheme that is wider than the width.
const TOO_WIDE: &str = "?";

pub(super) fn lay_out(text: &str, cursor: usize, width: u16) -> Layout {
    rows(text, cursor, width).0
}

/// Where the cursor moves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// The same column in the row above or below, or the end of that row; `None` if there is no such row.
pub(super) fn move_row(text: &str, cursor: usize, width: u16, to: Direction) -> Option<usize> {
    let (layout, starts) = rows(text, cursor, width);
    let row = match to {
        Direction::Up => layout.row.checked_sub(1)?,
        Direction::Down => layout.row + 1,
    };
    let start = *starts.get(row)?;
    let end = starts.get(row + 1).copied().unwrap_or(text.len());
    let mut column = 0;
    let mut last = start;
    for (at, grapheme) in text[start..end].grapheme_indices(true) {
        last = start + at;
        column += clean(grapheme).width();
        if grapheme == "\n" || column > layout.column {
            return Some(last);
        }
    }
    // After the last character of a full row, the cursor would be in the following row.
    Some(if row + 1 < starts.len() { last } else { end })
}

/// The layout, and the offset at which each row starts.
fn rows(text: &str, cursor: usize, width: u16) -> (Layout, Vec<usize>) {
    let width = usize::from(width.max(1));
    let mut out = Layout { lines: vec![String::new()], row: 0, column: 0 };
    let mut starts = vec![0];
    let mut column = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        let shown = clean(grapheme);
        let shown = if shown.width() > width { TOO_WIDE } else { &shown };
        let line_end = grapheme == "\n";
        // A full line has no cell left for the cursor, which gets a row of its own.
        let full = column >= width && (!line_end || at == cursor);
        if full || (!line_end && column + shown.width() > width) {
            out.lines.push(String::new());
            starts.push(at);
            column = 0;
        }
        if at == cursor {
            (out.row, out.column) = (out.lines.len() - 1, column);
        }
        if line_end {
            out.lines.push(String::new());
            starts.push(at + 1);
            column = 0;
        } else if let Some(line) = out.lines.last_mut() {
            line.push_str(shown);
            column += shown.width();
        }
    }
    if cursor >= text.len() {
        if column >= width {
            out.lines.push(String::new());
            starts.push(text.len());
            column = 0;
        }
        (out.row, out.column) = (out.lines.len() - 1, column);
    }
    (out, starts)
}
