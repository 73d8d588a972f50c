//! Cursor movements. Positions are byte offsets between graphemes.

use unicode_segmentation::GraphemeCursor;

/// The first grapheme boundary at or after `at`.
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
    let gap = forward_while(text, at, |grapheme| !is_word(grapheme));
    forward_while(text, gap, is_word)
}

/// The start of the blank-separated word, as shells define it.
pub(super) fn blank_left(text: &str, at: usize) -> usize {
    let gap = back_while(text, at, is_blank);
    back_while(text, gap, |grapheme| !is_blank(grapheme))
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

fn forward_while(text: &str, mut at: usize, is: impl Fn(&str) -> bool) -> usize {
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
