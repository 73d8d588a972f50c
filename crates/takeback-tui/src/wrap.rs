//! Wraps text at word boundaries, and never inside a character.

use crate::safe_text::clean;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// The cleaned text in lines of at most `width` columns. Long words are broken; empty lines stay.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    text.split('\n').flat_map(|line| wrap_line(&clean(line), width.max(1))).collect()
}

fn wrap_line(text: &str, width: usize) -> Vec<String> {
    if text.width() <= width {
        return vec![text.to_owned()];
    }
    let mut lines = Vec::new();
    let (mut line, mut used) = (String::new(), 0);
    for word in words(text) {
        let wide = word.width();
        if used + wide > width && used > 0 {
            lines.push(std::mem::take(&mut line).trim_end().to_owned());
            used = 0;
            if word.trim().is_empty() {
                continue;
            }
        }
        if used + wide <= width {
            line.push_str(word);
            used += wide;
            continue;
        }
        for part in word.graphemes(true) {
            if used + part.width() > width && used > 0 {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push_str(part);
            used += part.width();
        }
    }
    lines.push(line);
    lines
}

/// Words and the spaces between them, as separate items.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let other = |c: char| c.is_whitespace() != first.is_whitespace();
        let (word, after) = rest.split_at(rest.find(other).unwrap_or(rest.len()));
        rest = after;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("with notes.", 10), ["with", "notes."]);
        assert_eq!(wrap("", 7), [""]);
        assert_eq!(wrap("a\n\nb", 3), ["a", "", "b"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap("漢字漢字", 5), ["漢字", "漢字"]);
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_no_letter_is_lost(text in "[a-z 漢é👍-]{0,80}", width in 2_usize..30) {
            let lines = wrap(&text, width);
            for line in &lines {
                prop_assert!(line.trim_end().width() <= width, "{line:?} in {lines:?}");
            }
            let letters = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }
}
