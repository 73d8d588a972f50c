//! Shortens what a model is shown, and says how much was left out.

use std::collections::VecDeque;

/// The maximum number of characters of one result.
pub(crate) const MOST: usize = 30_000;

/// How many of them are from the start: the end of an output says more.
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

/// The start and the end of an output of any length: enough for [`shorten`].
#[derive(Default)]
pub(super) struct BoundedOutput {
    first: Vec<u8>,
    last: VecDeque<u8>,
    left_out: usize,
}

impl BoundedOutput {
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
    fn a_long_text_keeps_its_start_and_its_end() {
        let short = "é".repeat(MOST);
        assert_eq!(shorten(&short), short);
        let long = format!("{}{}", "a".repeat(20_000), "é".repeat(20_001));
        let expected =
            format!("{}\n[10001 characters left out]\n{}", "a".repeat(10_000), "é".repeat(20_000));
        assert_eq!(shorten(&long), expected);
    }

    #[test]
    fn a_long_output_needs_limited_memory() {
        let mut output = BoundedOutput::default();
        for number in 0..100_000 {
            output.push(format!("line {number}\n").as_bytes());
        }
        assert!(output.first.len() + output.last.len() <= 2 * BoundedOutput::EACH);
        let text = output.text();
        assert!(text.starts_with("line 0\nline 1\n") && text.ends_with("\nline 99999\n"));
        assert!(text.contains("left out]"));
    }
}
