//! Shortens text to a number of columns.

use crate::safe_text::clean;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// An emoji may consist of many characters; more than this many per column are not text.
const CHARACTERS_PER_COLUMN: usize = 16;

/// One line, cleaned, and cut with `…` if it is too wide.
pub(crate) fn fit(text: &str, width: usize) -> String {
    // A line may be megabytes long; only its start is read.
    let most = width.saturating_add(1).saturating_mul(CHARACTERS_PER_COLUMN);
    let head = text.char_indices().nth(most).map_or(text, |(at, _)| &text[..at]);
    let whole = head.len() == text.len();
    let text = clean(head);
    if whole && text.width() <= width {
        return text.into_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for grapheme in text.graphemes(true) {
        used += grapheme.width();
        if used >= width {
            break;
        }
        out.push_str(grapheme);
    }
    if width > 0 {
        out.push('…');
    }
    out
}

/// Like [`fit`], but keeps the end, which is the interesting part of a path.
pub(crate) fn fit_end(text: &str, width: usize) -> String {
    let text = clean(text);
    if text.width() <= width {
        return text.into_owned();
    }
    let mut from = text.len();
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true).rev() {
        used += grapheme.width();
        if used >= width {
            break;
        }
        from = at;
    }
    if width > 0 { format!("…{}", &text[from..]) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_shown() {
        assert_eq!(fit("abcdef", 6), "abcdef");
        assert_eq!(fit("abcdef", 5), "abcd…");
        assert_eq!(fit("中文字", 4), "中…");
        assert_eq!(fit("中文字", 5), "中文…");
        assert_eq!(fit("a\nb", 3), "a␊b");
        assert_eq!(fit("ab", 1), "…");
        assert_eq!(fit("ab", 0), "");
        assert_eq!(fit(&"ab".repeat(1_000_000), 4), "aba…");
        assert_eq!(fit(&"\u{301}".repeat(1_000), 4).chars().last(), Some('…'));
        assert_eq!(fit_end("src/deep/file.rs", 9), "…/file.rs");
        assert_eq!(fit_end("ab", 0), "");
    }
}
