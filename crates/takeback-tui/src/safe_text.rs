//! Makes untrusted text safe to print on a terminal.

use std::borrow::Cow;

/// The text as one line that cannot control the terminal.
///
/// A tab becomes four spaces, other control characters become their visible symbols. Characters that
/// change the writing direction are replaced too: they can make one text look like another.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\t' => out.push_str("    "),
            '\0'..='\x1f' => out.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}')),
            '\x7f' => out.push('\u{2421}'),
            _ if is_unsafe(c) => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    Cow::Owned(out)
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(
            clean("a\tb\x1b[2J\r\n\x7f\u{9b}31m\u{202e}"),
            "a    b␛[2J␍␊␡\u{fffd}31m\u{fffd}"
        );
    }

    #[test]
    fn safe_text_is_not_copied() {
        assert!(matches!(clean("grün 中文 👩‍👩‍👧"), Cow::Borrowed(_)));
    }
}
