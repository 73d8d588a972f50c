//! Where the cursor can go: all places are in bytes, between graphemes.

use crate::clean::clean;
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};
use unicode_width::UnicodeWidthStr;

/// `at` itself, or the next place after it.
pub(super) fn boundary_from(text: &str, at: usize) -> usize {
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(false) => right(text, at),
        _ => at,
    }
}

pub(super) fn left(text: &str, at: usize) -> usize {
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0)
}

pub(super) fn right(text: &str, at: usize) -> usize {
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    cursor.next_boundary(text, 0).ok().flatten().unwrap_or(text.len())
}

pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

pub(super) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end)
}

pub(super) fn word_left(text: &str, at: usize) -> usize {
    let gap = back_while(text, at, |grapheme| !is_word(grapheme));
    back_while(text, gap, is_word)
}

pub(super) fn word_right(text: &str, at: usize) -> usize {
    let gap = forth_while(text, at, |grapheme| !is_word(grapheme));
    forth_while(text, gap, is_word)
}

/// As shells delete a word: up to a blank.
pub(super) fn blank_left(text: &str, at: usize) -> usize {
    let gap = back_while(text, at, is_blank);
    back_while(text, gap, |grapheme| !is_blank(grapheme))
}

/// The same column in the line above, or as far as that goes.
pub(super) fn above(text: &str, at: usize) -> Option<usize> {
    let start = line_start(text, at);
    let end = start.checked_sub(1)?;
    Some(at_column(text, line_start(text, end), shown_width(&text[start..at])))
}

pub(super) fn below(text: &str, at: usize) -> Option<usize> {
    let end = line_end(text, at);
    (end < text.len())
        .then(|| at_column(text, end + 1, shown_width(&text[line_start(text, at)..at])))
}

fn at_column(text: &str, start: usize, column: usize) -> usize {
    let line = &text[start..line_end(text, start)];
    let mut width = 0;
    for (at, grapheme) in line.grapheme_indices(true) {
        width += shown_width(grapheme);
        if width > column {
            return start + at;
        }
    }
    start + line.len()
}

fn back_while(text: &str, mut at: usize, is: impl Fn(&str) -> bool) -> usize {
    while at > 0 {
        let before = left(text, at);
        if !is(&text[before..at]) {
            break;
        }
        at = before;
    }
    at
}

fn forth_while(text: &str, mut at: usize, is: impl Fn(&str) -> bool) -> usize {
    while at < text.len() {
        let after = right(text, at);
        if !is(&text[at..after]) {
            break;
        }
        at = after;
    }
    at
}

fn is_word(grapheme: &str) -> bool {
    grapheme.chars().next().is_some_and(|c| c.is_alphanumeric() || c == '_')
}

fn is_blank(grapheme: &str) -> bool {
    grapheme.chars().all(char::is_whitespace)
}

fn shown_width(text: &str) -> usize {
    clean(text).width()
}
