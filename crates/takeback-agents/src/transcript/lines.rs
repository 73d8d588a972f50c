//! Records of a transcript that hold a text, found without parsing the other lines.

use memchr::{memchr, memmem, memrchr};
use serde::de::DeserializeOwned;

/// The records in lines that hold `needle`, newest first, each with all that follows its line. Other
/// lines are skipped: a transcript may begin in the middle of one.
pub(crate) fn records_with<'t, T: DeserializeOwned>(
    transcript: &'t [u8],
    needle: &str,
) -> impl Iterator<Item = (T, &'t [u8])> + use<'t, T> {
    lines_with(transcript, needle)
        .filter_map(|line| Some((serde_json::from_slice(line.text).ok()?, line.rest)))
}

/// A line, and all that follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line<'t> {
    text: &'t [u8],
    rest: &'t [u8],
}

fn lines_with<'t>(transcript: &'t [u8], needle: &str) -> impl Iterator<Item = Line<'t>> + use<'t> {
    let mut found: Vec<Line<'t>> = Vec::new();
    let mut from = 0;
    while let Some(at) = memmem::find(&transcript[from..], needle.as_bytes()) {
        let at = from + at;
        let start = memrchr(b'\n', &transcript[..at]).map_or(0, |newline| newline + 1);
        let end = memchr(b'\n', &transcript[at..]).map_or(transcript.len(), |length| at + length);
        let rest = transcript.get(end + 1..).unwrap_or_default();
        found.push(Line { text: &transcript[start..end], rest });
        from = (end + 1).min(transcript.len());
    }
    found.into_iter().rev()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found<'t>(transcript: &'t str, needle: &str) -> Vec<(&'t str, &'t str)> {
        let text = |bytes| std::str::from_utf8(bytes).unwrap();
        lines_with(transcript.as_bytes(), needle)
            .map(|line| (text(line.text), text(line.rest)))
            .collect()
    }

    #[test]
    fn the_newest_comes_first_and_each_once() {
        let found_x = found("half x\nb\nx and x\nlast x", "x");
        assert_eq!(
            found_x,
            [("last x", ""), ("x and x", "last x"), ("half x", "b\nx and x\nlast x")]
        );
        assert_eq!(found("a\nb\n", "b"), [("b", "")]);
        assert_eq!(found("a\nb\n", "x"), []);
        assert_eq!(found("", "x"), []);
    }
}
