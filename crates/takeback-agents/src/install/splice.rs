//! Adds elements to the text of a list or an object, and removes them. Every other byte stays as it is.
//!
//! Removing is the inverse of appending: the blanks before the element are removed with it, and commas
//! are as before.

use std::ops::Range;

/// The byte ranges of a list or an object (brackets included) and of its elements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Container {
    pub(super) range: Range<usize>,
    pub(super) elements: Vec<Range<usize>>,
}

/// The line ends and indentation of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) newline: &'static str,
    /// One step of indentation.
    pub(super) step: String,
}

impl Layout {
    /// `top`: the outermost object.
    pub(super) fn of(text: &str, top: Option<&Container>) -> Self {
        let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let first = top.and_then(|top| top.elements.first());
        let step = first.and_then(|first| own_line(text, first.start)).filter(|s| !s.is_empty());
        Self { newline, step: step.unwrap_or("  ").to_owned() }
    }
}

/// Appends an element. `element` returns its text, given the indentation of its first line.
pub(super) fn append(
    text: &str,
    container: &Container,
    layout: &Layout,
    element: &dyn Fn(&str) -> String,
) -> String {
    let inside = container.range.start + 1..container.range.end - 1;
    let last = container.elements.last().map_or(inside.start, |last| last.end);
    let pieces = between(text, last..inside.end);
    let comma = pieces.iter().find(|piece| piece.is_comma);
    let mut at = comma.map_or(last, |comma| comma.range.end);
    for comment in pieces.iter().filter(|piece| !piece.is_comma) {
        if comment.range.start < at {
            continue;
        }
        if container.elements.is_empty() || !text[at..comment.range.start].contains('\n') {
            at = comment.range.end;
        }
    }
    let outer = line_indent(text, container.range.start);
    let first = container.elements.first().and_then(|first| own_line(text, first.start));
    let indent = first.map_or_else(|| format!("{outer}{}", layout.step), str::to_owned);
    let mut result = text[..last].to_owned();
    if comma.is_none() && !container.elements.is_empty() {
        result.push(',');
    }
    result.push_str(&text[last..at]);
    result.push_str(&format!("{}{indent}{}", layout.newline, element(&indent)));
    if comma.is_some() {
        result.push(',');
    }
    // `remove` closes brackets that hold only blanks.
    let was_blank = container.elements.is_empty() && pieces.is_empty();
    if was_blank && !text[at..inside.end].contains('\n') {
        result.push_str(&format!("{}{outer}", layout.newline));
    }
    result.push_str(&text[at..]);
    result
}

/// Removes the element of this number. Comments next to it stay.
pub(super) fn remove(text: &str, container: &Container, number: usize) -> String {
    let inside = container.range.start + 1..container.range.end - 1;
    let gone = &container.elements[number];
    let before = number.checked_sub(1).map(|before| container.elements[before].end);
    let after = container.elements.get(number + 1).map_or(inside.end, |after| after.start);
    let left = between(text, before.unwrap_or(inside.start)..gone.start);
    let right = between(text, gone.end..after);
    let from = left.last().map_or(before.unwrap_or(inside.start), |piece| piece.range.end);
    let comma_of = |pieces: &[Piece]| {
        pieces.iter().find(|piece| piece.is_comma).map(|comma| comma.range.clone())
    };
    // Its own comma is removed with it; for the last element, the comma before it.
    let comma = comma_of(&right).or_else(|| comma_of(&left));
    let mut cuts: Vec<Range<usize>> = comma.into_iter().chain(Some(from..gone.end)).collect();
    cuts.sort_by_key(|cut| cut.start);
    let mut kept = String::new();
    let mut at = 0;
    for cut in &cuts {
        kept.push_str(&text[at..cut.start]);
        at = cut.end;
    }
    let end = inside.end - cuts.iter().map(Range::len).sum::<usize>();
    kept.push_str(&text[at..]);
    if kept[inside.start..end].trim().is_empty() {
        kept.replace_range(inside.start..end, "");
    }
    kept
}

/// A comma or a comment.
struct Piece {
    range: Range<usize>,
    is_comma: bool,
}

/// The commas and comments in a range between elements.
fn between(text: &str, range: Range<usize>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let rest = &text[at..range.end];
        let (length, is_comma) = if rest.starts_with("//") {
            (rest.find(['\n', '\r']).unwrap_or(rest.len()), false)
        } else if rest.starts_with("/*") {
            (rest.find("*/").map_or(rest.len(), |end| end + 2), false)
        } else if rest.starts_with(',') {
            (1, true)
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
            continue;
        };
        pieces.push(Piece { range: at..at + length, is_comma });
        at += length;
    }
    pieces
}

/// The indentation of the line at this offset.
fn line_indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let blanks = text[start..at].find(|c| c != ' ' && c != '\t');
    &text[start..blanks.map_or(at, |blanks| start + blanks)]
}

/// Like [`line_indent`], if only blanks precede this offset on its line.
fn own_line(text: &str, at: usize) -> Option<&str> {
    let indent = line_indent(text, at);
    let start = text[..at].rfind('\n')? + 1;
    (start + indent.len() == at).then_some(indent)
}
