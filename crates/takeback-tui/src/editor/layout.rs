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
    rows(text, cursor, width).0
}

/// Which row, seen from the one that the cursor is in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    Above,
    Below,
}

/// The same column in the next row, or as far as that goes; `None` if there is no such row.
pub(super) fn in_next_row(text: &str, cursor: usize, width: u16, next: Next) -> Option<usize> {
    let (layout, starts) = rows(text, cursor, width);
    let row = match next {
        Next::Above => layout.row.checked_sub(1)?,
        Next::Below => layout.row + 1,
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
    // Behind the last character of a row that is full the cursor would stand in the one after it.
    Some(if row + 1 < starts.len() { last } else { end })
}

/// The layout, and where in the text each row begins.
fn rows(text: &str, cursor: usize, width: u16) -> (Layout, Vec<usize>) {
    let width = usize::from(width.max(1));
    let mut out = Layout { lines: vec![String::new()], row: 0, column: 0 };
    let mut starts = vec![0];
    let mut column = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        let shown = clean(grapheme);
        let shown = if shown.width() > width { TOO_WIDE } else { &shown };
        let line_end = grapheme == "\n";
        // A line that is full leaves no cell for the cursor, which then stands in a row of its own.
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
