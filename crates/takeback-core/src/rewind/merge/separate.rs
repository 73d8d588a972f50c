//! Separates changes of two sides that touch in the base. In: the hunks of one region. Out: what each of
//! them puts where, in the order of the base. Refuses hunks that overlap, and hunks that
//! repeated lines make unclear: a conflict is better than a line that is lost, doubled or misplaced.

use std::collections::HashSet;
use std::iter::zip;
use std::ops::Range;

use super::lines::{Side, Text};
use crate::diff::Hunk;

/// Lines of the base, by number, and the text they become.
pub(super) struct Replacement<'a> {
    pub(super) lines: Range<usize>,
    pub(super) text: &'a [u8],
}

/// The replacements in a region, or nothing if it is a conflict. `here` has the numbers of each side's
/// hunks in the region. Swapping the sides does not change the answer.
pub(super) fn separate<'a>(
    base: &Text,
    sides: &[Side<'a>; 2],
    here: [Range<usize>; 2],
) -> Option<Vec<Replacement<'a>>> {
    let mut changes: Vec<Change> = zip(sides, here)
        .flat_map(|(side, here)| here.map(|at| Change::new(base, side, at)))
        .collect();
    // An insertion comes before a range that begins at its place, and after one that ends there.
    changes.sort_by_key(|change| (change.hunk.before.start, change.hunk.before.end));
    let clash = |pair: &[Change]| {
        let [first, second] = [&pair[0], &pair[1]];
        overlap(first, second) || unclear(first, second) || both_add_a_line(first, second)
    };
    (!changes.windows(2).any(clash)).then(|| {
        let replacement = |change: &Change<'a>| Replacement {
            lines: change.hunk.before.clone(),
            text: change.text.slice(change.hunk.after.clone()),
        };
        changes.iter().map(replacement).collect()
    })
}

/// A hunk, and by how many lines it can slide: between equal lines a diff finds it at one of several
/// places that are as good.
struct Change<'a> {
    text: &'a Text<'a>,
    hunk: &'a Hunk,
    up: usize,
    down: usize,
}

impl<'a> Change<'a> {
    /// Only a hunk that just adds or just removes lines can slide, and not past others of its side.
    fn new(base: &Text, side: &Side<'a>, at: usize) -> Self {
        let hunk = &side.hunks[at];
        let (lines, run) = match (hunk.before.is_empty(), hunk.after.is_empty()) {
            (false, false) => return Self { text: side.text, hunk, up: 0, down: 0 },
            (true, _) => (&side.text.lines, &hunk.after),
            (_, true) => (&base.lines, &hunk.before),
        };
        let above = at.checked_sub(1).map_or(0, |above| side.hunks[above].before.end);
        let below = side.hunks.get(at + 1).map_or(base.lines.len(), |below| below.before.start);
        let up = (1..=hunk.before.start - above)
            .take_while(|by| lines[run.start - by] == lines[run.end - by])
            .count();
        let down = (0..below - hunk.before.end)
            .take_while(|by| lines[run.start + by] == lines[run.end + by])
            .count();
        Self { text: side.text, hunk, up, down }
    }

    fn added(&self) -> &[u32] {
        &self.text.lines[self.hunk.after.clone()]
    }
}

/// Two hunks in order share a line, or one adds lines inside the other's range.
fn overlap(first: &Change, second: &Change) -> bool {
    second.hunk.before.start < first.hunk.before.end
}

/// Whether sliding leaves open what both sides did:
/// - Did both remove the same line? The agent made `x x` of `x`, then a person made `P x` of that. If
///   the person replaced the agent's `x`, the other one has to stay; if not, it has to go.
/// - Which change comes first? The agent made `x x` of `x`, then a person added a line between:
///   `x P x`. Without the agent's line that is `x P` or `P x`. The order of lines that both sides
///   added at one place is not known either.
fn unclear(first: &Change, second: &Change) -> bool {
    let [upper, lower] = [first, second].map(|change| &change.hunk.before);
    if upper.is_empty() || lower.is_empty() {
        lower.end - second.up <= upper.start + first.down
    } else {
        lower.start - second.up < upper.end + first.down
    }
}

/// A person may have restored a line that the agent had removed, next to what the agent wrote instead.
/// Applying both hunks would give that line twice. Blank lines do no harm.
fn both_add_a_line(first: &Change, second: &Change) -> bool {
    let lines: HashSet<&u32> = first.added().iter().collect();
    zip(second.hunk.after.clone(), second.added()).any(|(at, line)| {
        lines.contains(line) && !second.text.slice(at..at + 1).trim_ascii().is_empty()
    })
}
