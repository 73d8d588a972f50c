//! Lines that a plan should take back and that another author has changed since.

use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::merge::{MergedText, Overlap};

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

impl LineConflict {
    /// Sets the line to where its text is in a version of the file in which more lines differ: the place
    /// nearest to the one it has.
    pub(super) fn find_in(&mut self, text: &[u8]) {
        let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        let mine: Vec<&[u8]> = self.mine.0.split_inclusive(|&byte| byte == b'\n').collect();
        let places = lines.windows(mine.len().max(1)).enumerate();
        let same = places.filter(|(_, some)| !mine.is_empty() && **some == *mine);
        let nearest = same.map(|(at, _)| at + 1).min_by_key(|line| line.abs_diff(self.line));
        self.line = nearest.unwrap_or(self.line);
    }
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
pub(super) struct FileOverlaps(Vec<Overlap>);

impl FileOverlaps {
    /// Adds those of the next merge, and moves the others to where that merge put them.
    pub(super) fn add(&mut self, merged: &MergedText) {
        let mut kept = std::mem::take(&mut self.0);
        kept.retain_mut(|old| {
            old.lines = moved(&old.lines, &merged.regions);
            // The older run knows better what was there before.
            !merged.overlaps.iter().any(|new| meet(&new.lines, &old.lines))
        });
        kept.extend(merged.overlaps.iter().cloned());
        kept.sort_by_key(|overlap| overlap.lines.start);
        self.0 = kept;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// With what is at these lines now; between conflict markers, what was there.
    pub(super) fn of_text(self, text: &[u8], policy: ConflictPolicy) -> Vec<LineConflict> {
        let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').collect();
        let conflict = |overlap: Overlap| LineConflict {
            line: overlap.lines.start + 1,
            count: overlap.lines.len(),
            mine: LineText(match policy {
                ConflictPolicy::Markers => overlap.ours,
                _ => lines[overlap.lines].concat(),
            }),
            before: LineText(overlap.theirs),
        };
        self.0.into_iter().map(conflict).collect()
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
        assert_eq!(overlaps.0, [overlap(2..4, "new\n")]);
        // An older run had changed the same lines.
        overlaps.add(&merged(vec![[2..4, 2..4]], vec![overlap(2..4, "old\n")]));
        assert_eq!(overlaps.0, [overlap(2..4, "old\n")]);
        let text = b"1\n2\n3\n4\n5\n";
        let [conflict] =
            overlaps.of_text(text, ConflictPolicy::Keep).try_into().expect("there is one");
        assert_eq!((conflict.line, conflict.count), (3, 2));
        assert_eq!(conflict.mine, LineText(b"3\n4\n".to_vec()));
        assert_eq!(conflict.before, LineText(b"old\n".to_vec()));
    }

    #[test]
    fn text_that_is_not_utf8_comes_back_from_json() {
        for bytes in [&b"plain\n"[..], b"\xff\xfe\n", b""] {
            let json = serde_json::to_string(&LineText(bytes.to_vec())).unwrap();
            assert_eq!(serde_json::from_str::<LineText>(&json).unwrap().0, bytes, "{json}");
        }
    }
}
