//! Lines that a plan should take back and that another author has changed since.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::merge::{MergedText, Overlap};
use crate::diff::diff;

/// What becomes of lines that a plan should take back and that another author has changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ConflictPolicy {
    /// They stay; the other lines of the file are taken back.
    #[default]
    Keep,
    /// A file with such lines stays as a whole.
    File,
    /// They are taken back too.
    Take,
    /// Both versions are written, between conflict markers.
    Markers,
}

/// Lines that two authors changed, in a file that a plan is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineConflict {
    /// The number of the first line in the file as the plan leaves it, from 1.
    pub line: usize,
    /// How many lines are there.
    pub count: usize,
    /// What is there now.
    pub mine: LineText,
    /// What would be there if they were taken back too.
    pub before: LineText,
}

/// Lines of text, byte by byte. As JSON it is a string, or base64 if it is not UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LineText(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum WireText {
    Text(String),
    Bytes { base64: String },
}

impl Serialize for LineText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => WireText::Bytes { base64: STANDARD.encode(&self.0) }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for LineText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match WireText::deserialize(deserializer)? {
            WireText::Text(text) => text.into_bytes(),
            WireText::Bytes { base64 } => {
                STANDARD.decode(base64).map_err(serde::de::Error::custom)?
            }
        }))
    }
}

/// The overlaps of a file from which several runs of changes are taken out, one after the other.
#[derive(Debug, Default)]
pub(super) struct FileOverlaps {
    /// In the text as the last merge made it.
    places: Vec<Overlap>,
    /// What each merge may have changed, as [`MergedText::regions`].
    merges: Vec<Vec<[Range<usize>; 2]>>,
}

impl FileOverlaps {
    /// Adds those of the next merge, and moves the others to where that merge put them.
    pub(super) fn add(&mut self, merged: &MergedText) {
        let mut kept = std::mem::take(&mut self.places);
        kept.retain_mut(|old| {
            old.lines = moved(&old.lines, &merged.regions);
            // The older run knows better what was there before.
            !merged.overlaps.iter().any(|new| meet(&new.lines, &old.lines))
        });
        kept.extend(merged.overlaps.iter().cloned());
        kept.sort_by_key(|overlap| overlap.lines.start);
        self.places = kept;
        self.merges.push(merged.regions.clone());
    }

    /// Adds a run that is taken out as a whole.
    pub(super) fn add_change(&mut self, from: &[u8], to: &[u8]) {
        let lines = |text| <[u8]>::split_inclusive(text, |&byte| byte == b'\n').collect();
        let (before, after): (Vec<&[u8]>, Vec<&[u8]>) = (lines(from), lines(to));
        let hunks = diff(&before, &after).into_iter();
        let regions = hunks.map(|hunk| [hunk.before, hunk.after]).collect();
        self.add(&MergedText { text: Vec::new(), overlaps: Vec::new(), regions });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// In the text before the first merge: the file stays as it is, for these lines.
    pub(super) fn of_first_text(self, text: &[u8]) -> Vec<LineConflict> {
        let Self { mut places, merges } = self;
        for place in &mut places {
            for regions in merges.iter().rev() {
                place.lines = moved_back(&place.lines, regions);
            }
        }
        let places = Self { places, merges: Vec::new() };
        places.of_text(text, ConflictPolicy::File)
    }

    /// With what is at these lines now; between conflict markers, what was there.
    pub(super) fn of_text(self, text: &[u8], policy: ConflictPolicy) -> Vec<LineConflict> {
        let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        let conflict = |overlap: Overlap| LineConflict {
            line: overlap.lines.start + 1,
            count: overlap.lines.len(),
            mine: LineText(match policy {
                ConflictPolicy::Markers => overlap.ours,
                _ => lines.get(overlap.lines).unwrap_or_default().concat(),
            }),
            before: LineText(overlap.theirs),
        };
        self.places.into_iter().map(conflict).collect()
    }
}

/// Whether two places share a line, or one of them, where no line is left, is at the other.
fn meet(one: &Range<usize>, other: &Range<usize>) -> bool {
    match one.is_empty() || other.is_empty() {
        true => one.start <= other.end && other.start <= one.end,
        false => one.start < other.end && other.start < one.end,
    }
}

/// Where lines are after a merge that changed these regions.
fn moved(lines: &Range<usize>, regions: &[[Range<usize>; 2]]) -> Range<usize> {
    let mut now = lines.clone();
    for [before, after] in regions {
        if before.end <= lines.start {
            now.start = after.end + (lines.start - before.end);
        } else if before.start < lines.start {
            now.start = after.start;
        }
        if before.end <= lines.end {
            now.end = after.end + (lines.end - before.end);
        } else if before.start < lines.end {
            now.end = after.end;
        }
    }
    now.start..now.end.max(now.start)
}

/// Where lines were before a merge that changed these regions. A region that they share a line with belongs
/// to them as a whole.
fn moved_back(lines: &Range<usize>, regions: &[[Range<usize>; 2]]) -> Range<usize> {
    let shared = || regions.iter().filter(|[_, after]| meet(after, lines));
    let start = shared().map(|[_, after]| after.start).fold(lines.start, usize::min);
    let end = shared().map(|[_, after]| after.end).fold(lines.end, usize::max);
    let mut was = start..end;
    for [before, after] in regions {
        if meet(after, lines) {
            was.end = before.end + (end - after.end);
            if after.start == start {
                was.start = before.start;
            }
        } else if after.end <= start {
            was = before.end + (start - after.end)..before.end + (end - after.end);
        }
    }
    was
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(regions: Vec<[Range<usize>; 2]>, overlaps: Vec<Overlap>) -> MergedText {
        MergedText { text: Vec::new(), overlaps, regions }
    }

    fn overlap(lines: Range<usize>, theirs: &str) -> Overlap {
        Overlap { lines, ours: b"ours\n".to_vec(), theirs: theirs.into() }
    }

    #[test]
    fn later_merges_move_the_lines_of_earlier_ones() {
        let mut overlaps = FileOverlaps::default();
        overlaps.add(&merged(vec![[4..6, 4..6]], vec![overlap(4..6, "new\n")]));
        // Three lines above become one, and two are added below.
        overlaps.add(&merged(vec![[0..3, 0..1], [8..8, 6..8]], Vec::new()));
        assert_eq!(overlaps.places, [overlap(2..4, "new\n")]);
        // An older run had changed the same lines.
        overlaps.add(&merged(vec![[2..4, 2..4]], vec![overlap(2..4, "old\n")]));
        assert_eq!(overlaps.places, [overlap(2..4, "old\n")]);
        let text = b"1\n2\n3\n4\n5\n";
        let [conflict] =
            overlaps.of_text(text, ConflictPolicy::Keep).try_into().expect("there is one");
        assert_eq!((conflict.line, conflict.count), (3, 2));
        assert_eq!(conflict.mine, LineText(b"3\n4\n".to_vec()));
        assert_eq!(conflict.before, LineText(b"old\n".to_vec()));
    }

    #[test]
    fn a_file_that_stays_has_its_conflicts_where_they_are() {
        let text = b"1\nmine\n3\n4\n5\n6\n";
        for (first, second, expected) in [
            // Two lines above become one, and the lines meet only in the second merge.
            (vec![[2..4, 2..3]], vec![[4..5, 4..5]], (6, b"6\n".to_vec())),
            // What the first merge removed is in the way of the second.
            (vec![[1..3, 1..1]], vec![[1..1, 1..1]], (2, b"mine\n3\n".to_vec())),
            (vec![[4..4, 4..6]], vec![[1..2, 1..2]], (2, b"mine\n".to_vec())),
        ] {
            let mut overlaps = FileOverlaps::default();
            overlaps.add(&merged(first, Vec::new()));
            let place = overlap(second[0][1].clone(), "old\n");
            overlaps.add(&merged(second, vec![place]));
            let [conflict] = overlaps.of_first_text(text).try_into().expect("there is one");
            assert_eq!((conflict.line, conflict.mine.0), expected);
        }
    }

    #[test]
    fn text_that_is_not_utf8_comes_back_from_json() {
        for bytes in [&b"plain\n"[..], b"\xff\xfe\n", b""] {
            let json = serde_json::to_string(&LineText(bytes.to_vec())).unwrap();
            assert_eq!(serde_json::from_str::<LineText>(&json).unwrap().0, bytes, "{json}");
        }
    }
}
