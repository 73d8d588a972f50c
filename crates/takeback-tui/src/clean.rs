//! Text from outside, made harmless to show.

use std::borrow::Cow;

/// Prompts, file names and contents must not steer the terminal: a tab becomes four blanks, and every
/// other control character a sign that stands for it. So does what turns the direction of writing, which
/// could make a text look like another one. The answer is one line.
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            '\0'..='\x1f' => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
            '\x7f' => out.push('\u{2421}'),
            _ if steers(c) => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_replaced() {
        assert_eq!(
            clean("a\tb\x1b[2J\r\n\x7f\u{9b}31m\u{202e}"),
            "a    b␛[2J␍␊␡\u{fffd}31m\u{fffd}"
        );
    }

    #[test]
    fn harmless_text_is_not_copied() {
        assert!(matches!(clean("grün 中文 👩‍👩‍👧"), Cow::Borrowed(_)));
    }
}
