//! Keeps what a model is shown short, and says when something was left out.

use std::collections::VecDeque;

/// How many characters a model gets of one result.
pub(crate) const MOST: usize = 30_000;

/// The end of an output tells more than its beginning.
const FIRST: usize = 10_000;

/// The beginning and the end of a text, if it is too long.
pub(crate) fn shorten(text: &str) -> String {
    let characters = text.chars().count();
    if characters <= MOST {
        return text.to_owned();
    }
    let at = |number: usize| text.char_indices().nth(number).map_or(text.len(), |(at, _)| at);
    let (end, begin) = (at(FIRST), at(characters - (MOST - FIRST)));
    let left_out = characters - MOST;
    format!("{}\n[{left_out} characters left out]\n{}", &text[..end], &text[begin..])
}

/// What is remembered of an output that may be endless: enough for [`shorten`].
#[derive(Default)]
pub(super) struct Kept {
    first: Vec<u8>,
    last: VecDeque<u8>,
    left_out: usize,
}

impl Kept {
    /// More than [`MOST`] characters of four bytes.
    const EACH: usize = 128 << 10;

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let room = Self::EACH - self.first.len();
        let (first, rest) = bytes.split_at(bytes.len().min(room));
        self.first.extend_from_slice(first);
        self.last.extend(rest);
        let over = self.last.len().saturating_sub(Self::EACH);
        self.last.drain(..over);
        self.left_out += over;
    }

    pub(super) fn text(&self) -> String {
        let mut bytes = self.first.clone();
        if self.left_out > 0 {
            bytes.extend_from_slice(format!("\n[{} bytes left out]\n", self.left_out).as_bytes());
        }
        bytes.extend(&self.last);
        shorten(&String::from_utf8_lossy(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_beginning_and_its_end_and_says_what_is_missing() {
        let short = "é".repeat(MOST);
        assert_eq!(shorten(&short), short);
        let long = format!("{}{}", "a".repeat(20_000), "é".repeat(20_001));
        let expected =
            format!("{}\n[10001 characters left out]\n{}", "a".repeat(10_000), "é".repeat(20_000));
        assert_eq!(shorten(&long), expected);
    }

    #[test]
    fn an_endless_output_needs_no_endless_memory() {
        let mut kept = Kept::default();
        for number in 0..100_000 {
            kept.push(format!("line {number}\n").as_bytes());
        }
        assert!(kept.first.len() + kept.last.len() <= 2 * Kept::EACH);
        let text = kept.text();
        assert!(text.starts_with("line 0\nline 1\n") && text.ends_with("\nline 99999\n"));
        assert!(text.contains("left out]"));
    }
}
