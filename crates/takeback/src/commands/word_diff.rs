//! Which words of changed lines differ.
//!
//! Input: the removed and the added lines of one part of a diff. Output: each line split into parts that
//! differ and parts that do not. Lines that are too long to compare or have too little in common stay one
//! part.

use takeback_core::diff;

/// Pairs of words that may be compared for one part of a diff.
const MOST_AT_ONCE: usize = 2_000_000;

/// Pairs of words that may still be compared in one file.
#[derive(Debug)]
pub(crate) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self(10 * MOST_AT_ONCE)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    pub(crate) text: &'a [u8],
    pub(crate) differs: bool,
}

/// A line, in parts.
pub(crate) type Parts<'a> = Vec<Part<'a>>;

/// Splits the old and new lines into parts: line by line if they are similar, else all lines together.
pub(crate) fn compare<'a>(
    old: &[&'a [u8]],
    new: &[&'a [u8]],
    budget: &mut Budget,
) -> (Vec<Parts<'a>>, Vec<Parts<'a>>) {
    let mut alike = true;
    let (mut old_parts, mut new_parts) = (Vec::new(), Vec::new());
    for (old, new) in old.iter().zip(new) {
        let (old, new) = together(&[old], &[new], budget);
        alike &= old.iter().chain(&new).any(|parts| parts.len() > 1);
        old_parts.extend(old);
        new_parts.extend(new);
    }
    let words = |lines: &[&[u8]]| lines.iter().map(|line| words(line).count()).sum::<usize>();
    if alike || words(old).saturating_mul(words(new)) > MOST_AT_ONCE {
        old_parts.extend(whole(&old[old_parts.len()..]));
        new_parts.extend(whole(&new[new_parts.len()..]));
        return (old_parts, new_parts);
    }
    together(old, new, budget)
}

fn together<'a>(
    old: &[&'a [u8]],
    new: &[&'a [u8]],
    budget: &mut Budget,
) -> (Vec<Parts<'a>>, Vec<Parts<'a>>) {
    let (old_words, new_words) = (all_words(old), all_words(new));
    let pairs = old_words.len().saturating_mul(new_words.len());
    if pairs > MOST_AT_ONCE || pairs > budget.0 {
        return (whole(old), whole(new));
    }
    budget.0 -= pairs;
    let mut old_same = vec![true; old_words.len()];
    let mut new_same = vec![true; new_words.len()];
    for hunk in diff(&old_words, &new_words) {
        old_same[hunk.before].fill(false);
        new_same[hunk.after].fill(false);
    }
    (in_parts(old, &old_same), in_parts(new, &new_same))
}

fn whole<'a>(lines: &[&'a [u8]]) -> Vec<Parts<'a>> {
    lines.iter().map(|line| vec![Part { text: line, differs: false }]).collect()
}

fn all_words<'a>(lines: &[&'a [u8]]) -> Vec<&'a [u8]> {
    lines.iter().flat_map(|line| words(line)).collect()
}

/// Words, runs of spaces, and single other characters.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.chunk_by(|a, b| kind(*a) == kind(*b) && kind(*a) != Kind::Other)
}

#[derive(PartialEq, Eq)]
enum Kind {
    Word,
    Blank,
    Other,
}

fn kind(byte: u8) -> Kind {
    match byte {
        b' ' | b'\t' => Kind::Blank,
        // Never split a multi-byte character.
        b'_' | 0x80.. => Kind::Word,
        byte if byte.is_ascii_alphanumeric() => Kind::Word,
        _ => Kind::Other,
    }
}

fn is_blank(word: &[u8]) -> bool {
    word.iter().all(u8::is_ascii_whitespace)
}

/// `same`: for every word of all lines, whether the other side has it, too.
fn in_parts<'a>(lines: &[&'a [u8]], same: &[bool]) -> Vec<Parts<'a>> {
    let mut rest = same;
    let mut all = Vec::with_capacity(lines.len());
    for line in lines {
        let words: Vec<&[u8]> = words(line).collect();
        let (same, later) = rest.split_at(words.len());
        rest = later;
        all.push(line_in_parts(line, &words, same));
    }
    all
}

fn line_in_parts<'a>(line: &'a [u8], words: &[&'a [u8]], same: &[bool]) -> Parts<'a> {
    let solid = || words.iter().zip(same).filter(|(word, _)| !is_blank(word));
    let length: usize = solid().map(|(word, _)| word.len()).sum();
    let kept: usize = solid().filter(|(_, same)| **same).map(|(word, _)| word.len()).sum();
    // Marking every word of a new line would not help.
    if kept * 10 < length * 3 {
        return vec![Part { text: line, differs: false }];
    }
    let differs = |at: usize| {
        // Spaces between two differing words differ, too.
        let joins = at > 0 && at + 1 < words.len() && !same[at - 1] && !same[at + 1];
        !same[at] || (joins && is_blank(words[at]))
    };
    let mut parts: Parts<'a> = Vec::new();
    let mut from = 0;
    let mut to = 0;
    for (at, word) in words.iter().enumerate() {
        if at > 0 && differs(at) != differs(at - 1) {
            parts.push(Part { text: &line[from..to], differs: differs(at - 1) });
            from = to;
        }
        to += word.len();
    }
    if let Some(last) = words.len().checked_sub(1) {
        parts.push(Part { text: &line[from..to], differs: differs(last) });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What differs in [brackets].
    fn marked(old: &[&str], new: &[&str]) -> (Vec<String>, Vec<String>) {
        let old: Vec<&[u8]> = old.iter().map(|line| line.as_bytes()).collect();
        let new: Vec<&[u8]> = new.iter().map(|line| line.as_bytes()).collect();
        let (old, new) = compare(&old, &new, &mut Budget::default());
        let shown = |lines: Vec<Parts<'_>>| -> Vec<String> {
            let part = |part: &Part<'_>| {
                let text = String::from_utf8_lossy(part.text);
                if part.differs { format!("[{text}]") } else { text.into_owned() }
            };
            lines.iter().map(|parts| parts.iter().map(part).collect()).collect()
        };
        (shown(old), shown(new))
    }

    fn texts(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn words_that_differ_are_marked() {
        assert_eq!(
            marked(&["def total(items):"], &["def total(items, discount=0):"]),
            (texts(&["def total(items):"]), texts(&["def total(items[, discount=0]):"]))
        );
        assert_eq!(
            marked(&["the quick brown fox jumps"], &["the slow red fox jumps"]),
            (texts(&["the [quick brown] fox jumps"]), texts(&["the [slow red] fox jumps"]))
        );
        assert_eq!(
            marked(&["größe = 日本"], &["größe = 東京"]),
            (texts(&["größe = [日本]"]), texts(&["größe = [東京]"]))
        );
    }

    #[test]
    fn lines_that_came_after_are_all_new() {
        assert_eq!(
            marked(&["total = price * n;"], &["total = price * (n + 1);", "log(total);"]),
            (
                texts(&["total = price * n;"]),
                texts(&["total = price * [(]n[ + 1)];", "log(total);"])
            )
        );
    }

    #[test]
    fn lines_that_moved_are_compared_with_all() {
        assert_eq!(
            marked(&["let total = price * n;"], &["// a remark", "let total = price * count;"]),
            (
                texts(&["let total = price * [n];"]),
                texts(&["// a remark", "let total = price * [count];"])
            )
        );
    }

    #[test]
    fn lines_that_have_little_in_common_are_left_whole() {
        let (old, new) = (["fn main() {"], ["<html lang=en>"]);
        assert_eq!(marked(&old, &new), (texts(&old), texts(&new)));
    }

    #[test]
    fn many_lines_are_compared_one_by_one() {
        let old: Vec<String> = (0..2_000).map(|n| format!("let x{n} = old;")).collect();
        let new: Vec<String> = old.iter().map(|line| line.replace("old", "new")).collect();
        let old: Vec<&str> = old.iter().map(String::as_str).collect();
        let new: Vec<&str> = new.iter().map(String::as_str).collect();
        let (old, new) = marked(&old, &new);
        assert_eq!((&*old[1_999], &*new[7]), ("let x1999 = [old];", "let x7 = [new];"));
    }

    #[test]
    fn what_is_too_long_is_left_whole() {
        let old = "a b ".repeat(1_000);
        let new = "a c ".repeat(1_000);
        let (lines, _) = marked(&[&old], &[&new]);
        assert_eq!(lines, [old]);
        let mut budget = Budget(10);
        let (lines, _) = compare(&[b"one two three"], &[b"one 2 three"], &mut budget);
        assert_eq!(lines, [[Part { text: b"one two three", differs: false }]]);
        assert_eq!(budget.0, 10, "nothing was spent");
    }
}
