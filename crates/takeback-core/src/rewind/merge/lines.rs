//! Three-way merge of text, by lines of bytes: CRLF, a missing last newline and broken UTF-8 come
//! out as they went in. Where `git merge-file` is clean, so is this, with the same bytes. Where the
//! sides changed lines next to each other git has a conflict, since it merges branches. Here edits
//! follow one another and have known authors: both are applied (`separate.rs`).
//! What it refuses: binary contents, contents over [`MERGE_LIMIT`], large ones with so many changes
//! that finding them takes more than some seconds, and to write conflict markers.

use std::collections::HashMap;
use std::iter::zip;
use std::ops::Range;

use super::separate::{Replacement, separate};
use crate::diff::{Effort, Hunk, diff_numbers};

/// Contents above this, or binary ones (a NUL byte in the first 8000 bytes of any side), are never
/// merged.
pub const MERGE_LIMIT: usize = 8 << 20;

/// What becomes of a text when one side is taken out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextMerge {
    /// The merged text.
    Clean(Vec<u8>),
    /// Why the two sides cannot be merged, for display.
    Conflict(&'static str),
}

/// What becomes of lines that both sides changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlaps {
    /// They stay as in `ours`.
    #[default]
    Ours,
    /// They become those of `theirs`.
    Theirs,
    /// Both, between conflict markers.
    #[expect(missing_docs, reason = "the name says it: behind the marker of `theirs`")]
    Markers { theirs: &'static str },
}

/// A text of two sides, with the places where they overlap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedText {
    /// The text.
    pub text: Vec<u8>,
    /// The places, in order.
    pub overlaps: Vec<Overlap>,
    /// Every place of `ours` that the merge may have changed, and what is there now. In lines, in order.
    pub regions: Vec<[Range<usize>; 2]>,
}

/// Lines that both sides changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// Where they are in the merged text.
    pub lines: Range<usize>,
    /// What `ours` has there.
    pub ours: Vec<u8>,
    /// What `theirs` has there.
    pub theirs: Vec<u8>,
}

/// Takes the changes of both sides relative to `base`. Changes to the same lines conflict, and lines
/// added at the same place, unless both sides have the same text there. Changes that only touch are
/// both applied, unless repeated lines make it unclear which side changed which line.
///
/// Where one side equals `base` or the other side there is nothing to merge, so the answer is clean
/// for binary and large contents too. Swapping `ours` and `theirs` does not change the answer.
#[must_use]
pub fn merge_text(base: &[u8], ours: &[u8], theirs: &[u8]) -> TextMerge {
    match merge_lines(base, ours, theirs, Overlaps::Ours) {
        Ok(merged) if merged.overlaps.is_empty() => TextMerge::Clean(merged.text),
        Ok(_) => TextMerge::Conflict(SAME_LINES),
        Err(reason) => TextMerge::Conflict(reason),
    }
}

/// Why a text with overlaps is no clean merge.
pub(crate) const SAME_LINES: &str = "both changed the same lines";

/// As [`merge_text`], with an answer also where sides overlap. An error says why there is none.
pub fn merge_lines(
    base: &[u8],
    ours: &[u8],
    theirs: &[u8],
    overlaps: Overlaps,
) -> Result<MergedText, &'static str> {
    let whole =
        |text: &[u8]| MergedText { text: text.to_vec(), overlaps: Vec::new(), regions: Vec::new() };
    if ours == theirs || theirs == base {
        return Ok(whole(ours));
    }
    let sides = [base, ours, theirs];
    if ours == base {
        let lines =
            [ours, theirs].map(|text| 0..text.split_inclusive(|&byte| byte == b'\n').count());
        return Ok(MergedText { regions: vec![lines], ..whole(theirs) });
    }
    if sides.iter().any(|side| is_binary(side)) {
        return Err("binary");
    }
    if sides.iter().any(|side| side.len() > MERGE_LIMIT) {
        return Err("over 8 MiB");
    }

    let mut numbers = HashMap::new();
    let [base, ours, theirs] = sides.map(|side| Text::new(side, &mut numbers));
    let diff = |side: &Text| diff_numbers(&base.lines, &side.lines, Effort::MERGE);
    let Some((our_hunks, their_hunks)) =
        diff(&ours).and_then(|hunks| Some((hunks, diff(&theirs)?)))
    else {
        return Err("too many changes to compare");
    };
    let ours = Side { text: &ours, hunks: &our_hunks };
    let theirs = Side { text: &theirs, hunks: &their_hunks };
    weave(&base, &[ours, theirs], overlaps).ok_or(SAME_LINES)
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(8000)].contains(&0)
}

/// A content cut into lines, each line with its terminator.
pub(super) struct Text<'a> {
    bytes: &'a [u8],
    /// The lines as numbers, the same for equal lines of all sides.
    pub(super) lines: Vec<u32>,
    /// Where each line begins, and where the last one ends.
    starts: Vec<usize>,
}

impl<'a> Text<'a> {
    fn new(bytes: &'a [u8], numbers: &mut HashMap<&'a [u8], u32>) -> Self {
        let mut text = Self { bytes, lines: Vec::new(), starts: vec![0] };
        let mut end = 0;
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let fresh = u32::try_from(numbers.len()).expect("three times 8 MiB have fewer lines");
            text.lines.push(*numbers.entry(line).or_insert(fresh));
            end += line.len();
            text.starts.push(end);
        }
        text
    }

    pub(super) fn slice(&self, lines: Range<usize>) -> &'a [u8] {
        &self.bytes[self.starts[lines.start]..self.starts[lines.end]]
    }
}

/// One side and its changes to the base.
pub(super) struct Side<'a> {
    pub(super) text: &'a Text<'a>,
    pub(super) hunks: &'a [Hunk],
}

/// The merged text, or nothing if lines would be glued together.
fn weave(base: &Text, sides: &[Side; 2], overlaps: Overlaps) -> Option<MergedText> {
    let mut merged = Woven::default();
    let mut found = MergedText { text: Vec::new(), overlaps: Vec::new(), regions: Vec::new() };
    let mut copied = 0;
    let mut next = [0; 2];
    while let Some(region) = next_region(sides, next) {
        next = [region.hunks[0].end, region.hunks[1].end];
        merged.append(base.slice(copied..region.lines.start))?;
        copied = region.lines.end;
        let [ours, theirs] =
            [0, 1].map(|side| lines_of(&sides[side], &region, &region.hunks[side]));
        let before = merged.lines;
        match same_text(sides, &region) {
            Some(text) => merged.append(text)?,
            None => match separate(base, sides, region.hunks.clone()) {
                Some(replacements) => {
                    let mut at = region.lines.start;
                    for Replacement { lines, text } in replacements {
                        merged.append(base.slice(at..lines.start))?;
                        merged.append(text)?;
                        at = lines.end;
                    }
                    merged.append(base.slice(at..region.lines.end))?;
                }
                None => {
                    let texts = [sides[0].text.slice(ours.clone()), sides[1].text.slice(theirs)];
                    merged.append_overlap(texts, overlaps)?;
                    let lines = before..merged.lines;
                    let [ours, theirs] = texts.map(<[u8]>::to_vec);
                    found.overlaps.push(Overlap { lines, ours, theirs });
                }
            },
        }
        found.regions.push([ours, before..merged.lines]);
    }
    merged.append(base.slice(copied..base.lines.len()))?;
    Some(MergedText { text: merged.text, ..found })
}

/// The text that is being merged.
#[derive(Default)]
struct Woven {
    text: Vec<u8>,
    lines: usize,
}

impl Woven {
    /// Nothing if this would make one line of two. That happens where one side's last line has no
    /// newline and the other side added lines behind it.
    fn append(&mut self, lines: &[u8]) -> Option<()> {
        let glues = !lines.is_empty() && self.text.last().is_some_and(|&byte| byte != b'\n');
        (!glues).then(|| {
            self.text.extend_from_slice(lines);
            self.lines += lines.split_inclusive(|&byte| byte == b'\n').count();
        })
    }

    fn append_overlap(&mut self, [ours, theirs]: [&[u8]; 2], overlaps: Overlaps) -> Option<()> {
        let name = match overlaps {
            Overlaps::Ours => return self.append(ours),
            Overlaps::Theirs => return self.append(theirs),
            Overlaps::Markers { theirs } => theirs,
        };
        let end = format!(">>>>>>> {name}\n");
        for part in [&b"<<<<<<< now\n"[..], ours, b"=======\n", theirs, end.as_bytes()] {
            self.append(part)?;
            if !part.is_empty() && !part.ends_with(b"\n") {
                self.text.push(b'\n');
            }
        }
        Some(())
    }
}

/// The lines of a side in a region.
fn lines_of(side: &Side, region: &Region, hunks: &Range<usize>) -> Range<usize> {
    // A side that is as the base here has been moved by its hunks above.
    let moved = |hunk: Option<&Hunk>, line: usize| match hunk {
        Some(hunk) => hunk.after.end + (line - hunk.before.end),
        None => line,
    };
    match side.hunks[hunks.clone()].first() {
        Some(first) => {
            let start = first.after.start - (first.before.start - region.lines.start);
            start..moved(side.hunks[..hunks.end].last(), region.lines.end)
        }
        None => {
            let above = side.hunks[..hunks.start].last();
            moved(above, region.lines.start)..moved(above, region.lines.end)
        }
    }
}

/// Lines of the base that were changed, and each side's hunks in them: a run of hunks of either side
/// that overlap or touch.
struct Region {
    lines: Range<usize>,
    hunks: [Range<usize>; 2],
}

/// The first region at or after the `next` hunk of each side.
fn next_region(sides: &[Side; 2], next: [usize; 2]) -> Option<Region> {
    let heads = zip(sides, next).filter_map(|(side, next)| side.hunks.get(next));
    let first = heads.min_by_key(|hunk| hunk.before.start)?;
    let mut lines = first.before.clone();
    let mut ends = next;
    while let Some((side, end)) = zip(sides, &mut ends).find(|(side, end)| {
        side.hunks.get(**end).is_some_and(|hunk| hunk.before.start <= lines.end)
    }) {
        lines.end = lines.end.max(side.hunks[*end].before.end);
        *end += 1;
    }
    Some(Region { lines, hunks: [next[0]..ends[0], next[1]..ends[1]] })
}

/// What a region becomes if only one side changed it, or both did in the same way.
fn same_text<'a>(sides: &[Side<'a>; 2], region: &Region) -> Option<&'a [u8]> {
    let mut same = None;
    for (side, here) in zip(sides, &region.hunks) {
        if here.is_empty() {
            continue;
        }
        let text = side.text.slice(lines_of(side, region, here));
        if same.replace(text).is_some_and(|other| other != text) {
            return None;
        }
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(text: impl AsRef<[u8]>) -> TextMerge {
        TextMerge::Clean(text.as_ref().to_vec())
    }

    const SAME_LINES: TextMerge = TextMerge::Conflict(super::SAME_LINES);

    #[test]
    fn by_example() {
        let cases: &[(&str, [&str; 3], TextMerge)] = &[
            ("beside", ["a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n"], clean("A\nb\nC\n")),
            ("next to", ["a\nb\nc\n", "A\nb\nc\n", "a\nB\nc\n"], clean("A\nB\nc\n")),
            ("over", ["a\nb\nc\n", "a\n1\nc\n", "a\n2\nc\n"], SAME_LINES),
            ("deleted and changed", ["a\nb\nc\n", "a\nc\n", "a\nB\nc\n"], SAME_LINES),
            ("added in one place", ["a\nb\n", "a\n1\nb\n", "a\n2\nb\n"], SAME_LINES),
            ("the same", ["a\nb\nc\nd\n", "a\nX\nc\nd\n", "a\nX\nc\nD\n"], clean("a\nX\nc\nD\n")),
            ("all the same", ["a\nb\n", "a\nX\n", "a\nX\n"], clean("a\nX\n")),
            ("both deleted", ["a\nb\nc\nd\n", "a\nc\nd\n", "a\nc\n"], clean("a\nc\n")),
            ("partly the same", ["a\nb\nc\n", "a\nX\nY\nc\n", "a\nX\nZ\nc\n"], SAME_LINES),
            (
                "CRLF",
                ["a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n"],
                clean("A\r\nb\r\nC\r\n"),
            ),
            ("CRLF to LF", ["a\r\nb\r\nc\r\n", "a\nb\nc\n", "a\r\nb\r\nC\r\n"], SAME_LINES),
            ("no newline at the end", ["a\nb\nc", "A\nb\nc", "a\nb\nC"], clean("A\nb\nC")),
            ("newline added at the end", ["a\nb\nc", "A\nb\nc", "a\nb\nc\n"], clean("A\nb\nc\n")),
            ("newline and line at the end", ["a\nb", "a\nb\n", "a\nb\nc\n"], SAME_LINES),
            ("emptied", ["a\nb\n", "", "a\nb\n"], clean("")),
            ("emptied and changed", ["a\nb\n", "", "a\nB\n"], SAME_LINES),
            ("both filled", ["", "a\n", "b\n"], SAME_LINES),
            ("both filled the same", ["", "a\n", "a\n"], clean("a\n")),
            ("empty", ["", "", ""], clean("")),
        ];
        for (name, [base, ours, theirs], expected) in cases {
            let [base, ours, theirs] = [base, ours, theirs].map(|text| text.as_bytes());
            assert_eq!(merge_text(base, ours, theirs), *expected, "{name}");
            assert_eq!(merge_text(base, theirs, ours), *expected, "{name}, sides swapped");
        }
    }

    /// Each case in the order of its edits: before the agent, after it, after the person. The agent's
    /// edit is taken out.
    #[test]
    fn next_to_the_agents_lines() {
        let cases: &[(&str, [&str; 3], TextMerge)] = &[
            ("line below added ones", ["a b", "a A1 A2 b", "a A1 A2 P b"], clean("a\nP\nb\n")),
            ("line above added ones", ["a b", "a A1 A2 b", "a P A1 A2 b"], clean("a\nP\nb\n")),
            ("line inside added ones", ["a b", "a A1 A2 b", "a A1 P A2 b"], SAME_LINES),
            ("lines around added ones", ["a b", "a A b", "a P A Q b"], clean("a\nP\nQ\nb\n")),
            ("below appended ones", ["a", "a A", "a A P"], clean("a\nP\n")),
            ("above prepended ones", ["a", "A a", "P A a"], clean("P\na\n")),
            ("changed, next one changed", ["1 2 3 4", "1 2 A 4", "1 2 A P"], clean("1\n2\n3\nP\n")),
            (
                "changed, one before changed",
                ["1 2 3 4", "1 2 A 4", "1 P A 4"],
                clean("1\nP\n3\n4\n"),
            ),
            ("changed, next one deleted", ["1 2 3", "A 2 3", "A 3"], clean("1\n3\n")),
            ("changed, line added below", ["1 2 3", "1 A 3", "1 A P 3"], clean("1\n2\nP\n3\n")),
            ("deleted, next one changed", ["1 2 3", "1 3", "1 P"], clean("1\n2\nP\n")),
            ("deleted, one before changed", ["1 2 3", "1 3", "P 3"], clean("P\n2\n3\n")),
            ("deleted, next one deleted", ["1 2 3", "1 3", "1"], clean("1\n2\n")),
            ("deleted, line added there", ["1 2 3", "1 3", "1 P 3"], SAME_LINES),
            ("deleted, lines around changed", ["1 2 3", "1 3", "P Q"], SAME_LINES),
            ("one of two equal lines changed", ["x", "x x", "P x"], SAME_LINES),
            ("added between equal lines", ["x", "x x", "x P x"], SAME_LINES),
            ("added behind equal lines", ["x", "x x", "x x P"], clean("x\nP\n")),
            ("put back above", ["a 1 2 b", "a A b", "a 1 2 A b"], SAME_LINES),
            ("put back in part below", ["a 1 2 b", "a A b", "a A 2 b"], SAME_LINES),
            ("every line by turns", ["1 2 3 4", "A 2 B 4", "A P B Q"], clean("1\nP\n3\nQ\n")),
        ];
        for (name, versions, expected) in cases {
            let [before, agents, persons] =
                versions.map(|text| text.replace(' ', "\n").into_bytes());
            let ended = [&before, &agents, &persons].map(|text| [text, &b"\n"[..]].concat());
            let [theirs, base, ours] = ended;
            assert_eq!(merge_text(&base, &ours, &theirs), *expected, "{name}");
            assert_eq!(merge_text(&base, &theirs, &ours), *expected, "{name}, sides swapped");
        }
    }

    /// A last line without a newline is another line than the same with one.
    #[test]
    fn lines_are_never_glued() {
        let cases: &[(&str, [&str; 3], TextMerge)] = &[
            ("below ones appended to an open end", ["a", "a\nA\n", "a\nA\nP\n"], SAME_LINES),
            ("below an open end", ["a\n", "a\nA", "a\nA\nP"], SAME_LINES),
            ("above an open end", ["a\nb", "a\nA", "a\nP\nA"], clean("a\nP\nb")),
            ("open end changed", ["a\nb\nc", "a\nA\nc", "a\nA\nP"], clean("a\nb\nP")),
            ("open end below", ["a\nb\n", "a\nA\n", "a\nA\nP"], clean("a\nb\nP")),
            ("open end closed, line below", ["a\nb", "A\nb", "A\nb\nP\n"], clean("a\nb\nP\n")),
            ("end opened, line below", ["a\nb", "a\nb\n", "a\nb\nP\n"], SAME_LINES),
        ];
        for (name, [theirs, base, ours], expected) in cases {
            let [base, ours, theirs] = [base, ours, theirs].map(|text| text.as_bytes());
            assert_eq!(merge_text(base, ours, theirs), *expected, "{name}");
            assert_eq!(merge_text(base, theirs, ours), *expected, "{name}, sides swapped");
        }
    }

    #[test]
    fn broken_utf8_is_kept() {
        let merged = merge_text(b"\xff\nb\n\xfe\n", b"\xff\nb\n\xfd\n", b"\xfc\nb\n\xfe\n");
        assert_eq!(merged, clean(b"\xfc\nb\n\xfd\n"));
    }

    #[test]
    fn binary_on_any_side() {
        let binary = b"a\nb\0\nc\n";
        let conflict = TextMerge::Conflict("binary");
        assert_eq!(merge_text(binary, b"1\n", b"2\n"), conflict);
        assert_eq!(merge_text(b"1\n", binary, b"2\n"), conflict);
        assert_eq!(merge_text(b"1\n", b"2\n", binary), conflict);
        assert_eq!(merge_text(binary, binary, b"2\n"), clean("2\n"));
        assert_eq!(merge_text(b"1\n", binary, binary), clean(binary));

        let late = |first: &str, nul_at: usize| {
            let mut text = first.as_bytes().to_vec();
            text.resize(nul_at, b'x');
            text.extend_from_slice(b"\0\nmiddle\nlast\n");
            text
        };
        let last_changed = |mut text: Vec<u8>| {
            text.truncate(text.len() - b"last\n".len());
            text
        };
        let at = |nul_at| {
            let base = late("a\nb\n", nul_at);
            merge_text(&base, &late("A\nb\n", nul_at), &last_changed(base.clone()))
        };
        assert_eq!(at(7999), conflict);
        assert_eq!(at(8000), clean(last_changed(late("A\nb\n", 8000))));
    }

    #[test]
    fn too_large_on_any_side() {
        let large = |size: usize, first: &str, last: &str| {
            let mut text = first.as_bytes().to_vec();
            text.resize(size - last.len() - 1, b'x');
            text.push(b'\n');
            text.extend_from_slice(last.as_bytes());
            text
        };
        let over = large(MERGE_LIMIT + 1, "a\n", "b\n");
        let conflict = TextMerge::Conflict("over 8 MiB");
        assert_eq!(merge_text(&over, b"1\n", b"2\n"), conflict);
        assert_eq!(merge_text(b"1\n", &over, b"2\n"), conflict);
        assert_eq!(merge_text(b"1\n", b"2\n", &over), conflict);
        assert_eq!(merge_text(&over, &over, b"2\n"), clean("2\n"));

        let [base, ours, theirs, both] =
            [("a\n", "b\n"), ("A\n", "b\n"), ("a\n", "B\n"), ("A\n", "B\n")]
                .map(|(first, last)| large(MERGE_LIMIT, first, last));
        assert_eq!(merge_text(&base, &ours, &theirs), clean(both));
    }
}
