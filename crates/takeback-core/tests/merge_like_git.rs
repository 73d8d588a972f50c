//! Merges of random documents. If the installed `git merge-file` merges them, the result is the same.
//! If it does not, they conflict here too, except where changes of the two sides only touch: then both
//! are applied.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::ops::{Range, RangeInclusive};

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use takeback_core::rewind::merge::{TextMerge, merge_text};

#[path = "merge_like_git/git.rs"]
mod git;
#[path = "merge_like_git/owners.rs"]
mod owners;

use git::{Hunk, lines};

#[test]
fn small_documents_merge_like_git() {
    agrees_with_git(runs(), small_case());
}

/// Long enough for every rule that only long texts meet: lines counted as frequent, searches that
/// give up on the shortest path.
#[test]
fn large_documents_merge_like_git() {
    agrees_with_git(runs().div_ceil(10), large_case());
}

fn runs() -> u32 {
    #[expect(clippy::disallowed_methods, reason = "how long a test runs is no setting of Takeback")]
    let runs = std::env::var("TAKEBACK_TEST_RUNS");
    runs.map_or(300, |runs| runs.parse().expect("TAKEBACK_TEST_RUNS is a number"))
}

fn check<T: fmt::Debug>(
    cases: u32,
    strategy: impl Strategy<Value = T>,
    test: impl Fn(T) -> Result<(), TestCaseError>,
) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    if let Err(failure) = TestRunner::new(config).run(&strategy, test) {
        panic!("{failure}");
    }
}

fn agrees_with_git(cases: u32, strategy: impl Strategy<Value = Case>) {
    let (clean, separated, conflicts) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let count = |kind: &Cell<u32>| kind.set(kind.get() + 1);
    check(cases, strategy, |Case { base, ours, theirs }| {
        let merged = merge_text(&base, &ours, &theirs);
        prop_assert_eq!(&merge_text(&base, &theirs, &ours), &merged, "sides swapped");
        match (git::merge_file(&base, &ours, &theirs), merged) {
            (Some(git), TextMerge::Clean(text)) => {
                prop_assert_eq!(Text(&text), Text(&git));
                keeps_lines(&text, &base, &ours, &theirs)?;
                count(&clean);
            }
            (None, TextMerge::Clean(text)) => {
                let [ours_changed, theirs_changed] =
                    [&ours, &theirs].map(|side| git::hunks(&base, side));
                let expected = apply(&base, [&ours_changed, &theirs_changed]);
                prop_assert_eq!(Some(Text(&text)), expected.as_deref().map(Text));
                keeps_lines(&text, &base, &ours, &theirs)?;
                count(&separated);
            }
            (None, TextMerge::Conflict(reason)) => {
                prop_assert_eq!(reason, "both changed the same lines");
                count(&conflicts);
            }
            (Some(git), TextMerge::Conflict(reason)) => {
                prop_assert!(false, "conflict ({reason}), git merges to {:?}", Text(&git));
            }
        }
        Ok(())
    });
    let [clean, separated, conflicts] = [clean, separated, conflicts].map(Cell::into_inner);
    assert!(
        clean.min(conflicts) >= cases / 10 && separated >= cases / 100,
        "{clean} clean, {separated} separated, {conflicts} conflicts: the documents have become dull"
    );
}

/// The base with the changes of both sides, or nothing if two changes overlap. Where changes touch or
/// overlap and both sides make the same text of these lines, it is taken once.
fn apply(base: &[u8], sides: [&[Hunk]; 2]) -> Option<Vec<u8>> {
    let base: Vec<&[u8]> = lines(base).collect();
    let mut both = sides.concat();
    both.sort_by_key(|hunk| (hunk.lines.start, hunk.lines.end));
    let mut regions: Vec<Range<usize>> = vec![];
    for Hunk { lines, .. } in &both {
        match regions.last_mut() {
            Some(last) if lines.start <= last.end => last.end = last.end.max(lines.end),
            _ => regions.push(lines.clone()),
        }
    }
    let mut text = Vec::new();
    let mut copied = 0;
    for region in regions {
        text.extend(base[copied..region.start].concat());
        let [ours, theirs] = sides.map(|side| apply_within(&region, &base, side));
        text.extend(if ours == theirs { ours? } else { apply_within(&region, &base, &both)? });
        copied = region.end;
    }
    text.extend(base[copied..].concat());
    Some(text)
}

fn apply_within(region: &Range<usize>, base: &[&[u8]], hunks: &[Hunk]) -> Option<Vec<u8>> {
    let here = |hunk: &&Hunk| hunk.lines.start >= region.start && hunk.lines.end <= region.end;
    let hunks: Vec<&Hunk> = hunks.iter().filter(here).collect();
    let overlap = |pair: &[&Hunk]| {
        let [first, second] = [&pair[0].lines, &pair[1].lines];
        second.start < first.end || first == second
    };
    if hunks.windows(2).any(overlap) {
        return None;
    }
    let mut text = Vec::new();
    let mut copied = region.start;
    for hunk in hunks {
        text.extend(base[copied..hunk.lines.start].concat());
        text.extend(&hunk.text);
        copied = hunk.lines.end;
    }
    text.extend(base[copied..region.end].concat());
    Some(text)
}

fn keeps_lines(
    merged: &[u8],
    base: &[u8],
    ours: &[u8],
    theirs: &[u8],
) -> Result<(), TestCaseError> {
    keeps_what_one_side_added(merged, base, ours, theirs)?;
    keeps_what_one_side_added(merged, base, theirs, ours)?;
    let [ours, theirs] = [ours, theirs].map(line_counts);
    let glued = lines(merged).find(|line| !ours.contains_key(line) && !theirs.contains_key(line));
    prop_assert_eq!(glued.map(Text), None, "a line that no side has");
    Ok(())
}

fn keeps_what_one_side_added(
    merged: &[u8],
    base: &[u8],
    side: &[u8],
    other: &[u8],
) -> Result<(), TestCaseError> {
    let [merged, base, side, other] = [merged, base, side, other].map(line_counts);
    for (line, count) in side {
        if !base.contains_key(line) && !other.contains_key(line) {
            prop_assert_eq!(merged.get(line), Some(&count), "copies of {:?}", Text(line));
        }
    }
    Ok(())
}

fn line_counts(text: &[u8]) -> HashMap<&[u8], usize> {
    let mut counts = HashMap::new();
    for line in lines(text) {
        *counts.entry(line).or_default() += 1;
    }
    counts
}

#[derive(Clone)]
struct Case {
    base: Vec<u8>,
    ours: Vec<u8>,
    theirs: Vec<u8>,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case")
            .field("base", &Text(&self.base))
            .field("ours", &Text(&self.ours))
            .field("theirs", &Text(&self.theirs))
            .finish()
    }
}

#[derive(PartialEq)]
struct Text<'a>(&'a [u8]);

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0.escape_ascii().to_string())
    }
}

/// Lines as numbers: first the ones that come up again and again, then all different ones.
type Line = u16;
const REPEATED: [&[u8]; 8] = [b"", b"}", b"    }", b"a", b"a\r", b"\xff\xfe", b"end", b"\t"];
const FIRST_OF_BASE: Line = 1_000;
const FIRST_ADDED: Line = 20_000;

struct Document {
    lines: Vec<Line>,
    crlf: bool,
    ends_in_newline: bool,
}

impl Document {
    fn bytes(&self) -> Vec<u8> {
        let newline: &[u8] = if self.crlf { b"\r\n" } else { b"\n" };
        let mut bytes = Vec::new();
        for &line in &self.lines {
            match REPEATED.get(usize::from(line)) {
                Some(text) => bytes.extend_from_slice(text),
                None => bytes.extend_from_slice(format!("line {line}").as_bytes()),
            }
            bytes.extend_from_slice(newline);
        }
        if !self.ends_in_newline && !bytes.is_empty() {
            bytes.truncate(bytes.len() - newline.len());
        }
        bytes
    }
}

#[derive(Debug, Clone)]
enum Edit {
    Insert(Index, Vec<Line>),
    Delete(Index, usize),
    Replace(Index, usize, Vec<Line>),
    Move(Index, usize, Index),
    Repeat(Index, usize),
}

impl Edit {
    fn apply(&self, lines: &mut Vec<Line>) {
        let range = |at: &Index, count: usize| {
            let start = at.index(lines.len() + 1);
            start..lines.len().min(start + count)
        };
        match self {
            Self::Insert(at, new) => {
                let at = range(at, 0);
                lines.splice(at, new.iter().copied());
            }
            Self::Delete(at, count) => {
                let gone = range(at, *count);
                lines.drain(gone);
            }
            Self::Replace(at, count, new) => {
                let old = range(at, *count);
                lines.splice(old, new.iter().copied());
            }
            Self::Move(from, count, to) => {
                let from = range(from, *count);
                let moved: Vec<Line> = lines.drain(from).collect();
                let to = to.index(lines.len() + 1);
                lines.splice(to..to, moved);
            }
            Self::Repeat(at, count) => {
                let range = range(at, *count);
                let again = lines[range.clone()].to_vec();
                lines.splice(range.end..range.end, again);
            }
        }
    }
}

fn edits(count: RangeInclusive<usize>, lines: usize) -> impl Strategy<Value = Vec<Edit>> {
    let line = prop_oneof![
        0..REPEATED.len() as Line,
        FIRST_OF_BASE..FIRST_OF_BASE + 50,
        FIRST_ADDED..Line::MAX,
    ];
    let new = prop::collection::vec(line, 1..=lines);
    let edit = prop_oneof![
        (any::<Index>(), new.clone()).prop_map(|(at, new)| Edit::Insert(at, new)),
        (any::<Index>(), 1..=lines).prop_map(|(at, count)| Edit::Delete(at, count)),
        (any::<Index>(), 1..=lines, new).prop_map(|(at, old, new)| Edit::Replace(at, old, new)),
        (any::<Index>(), 1..=lines, any::<Index>()).prop_map(|(at, n, to)| Edit::Move(at, n, to)),
        (any::<Index>(), 1..=lines).prop_map(|(at, count)| Edit::Repeat(at, count)),
    ];
    prop::collection::vec(edit, count)
}

/// `repeated` is the share of lines that come up again and again, `kinds` how many kinds of them.
fn base_lines(
    length: RangeInclusive<usize>,
    repeated: f64,
    kinds: usize,
) -> impl Strategy<Value = Vec<Line>> {
    let line = prop::option::weighted(repeated, 0..kinds as Line);
    prop::collection::vec(line, length).prop_map(|lines| {
        (FIRST_OF_BASE..).zip(lines).map(|(unique, line)| line.unwrap_or(unique)).collect()
    })
}

/// Both sides get `shared`; only then does each get its own edits.
fn case(
    base: impl Strategy<Value = Vec<Line>>,
    shared: impl Strategy<Value = Vec<Edit>>,
    ours: impl Strategy<Value = Vec<Edit>>,
    theirs: impl Strategy<Value = Vec<Edit>>,
) -> impl Strategy<Value = Case> {
    let ends = prop_oneof![
        4 => Just([true; 3]),
        1 => Just([false; 3]),
        1 => any::<[bool; 3]>(),
    ];
    (base, shared, ours, theirs, any::<bool>(), ends).prop_map(
        |(base, shared, ours, theirs, crlf, ends)| {
            let document = |edits: &[&[Edit]], ends_in_newline| {
                let mut lines = base.clone();
                edits.iter().copied().flatten().for_each(|edit| edit.apply(&mut lines));
                Document { lines, crlf, ends_in_newline }.bytes()
            };
            Case {
                base: document(&[], ends[0]),
                ours: document(&[&shared, &ours], ends[1]),
                theirs: document(&[&shared, &theirs], ends[2]),
            }
        },
    )
}

fn small_case() -> impl Strategy<Value = Case> {
    let base = (0.01..=0.99, 1..=REPEATED.len())
        .prop_flat_map(|(repeated, kinds)| base_lines(0..=60, repeated, kinds));
    let base = base.boxed();
    prop_oneof![
        case(base.clone(), edits(0..=2, 4), edits(1..=3, 4), edits(1..=3, 4)),
        case(base, edits(0..=2, 4), edits(1..=10, 6), probes()),
    ]
}

fn large_case() -> impl Strategy<Value = Case> {
    let base = (0.01..=0.99, 1..=REPEATED.len())
        .prop_flat_map(|(repeated, kinds)| base_lines(500..=3000, repeated, kinds));
    let base = base.boxed();
    prop_oneof![
        case(base.clone(), edits(0..=20, 20), edits(1..=3, 10), edits(1..=3, 10)),
        case(base, edits(0..=3, 6), edits(50..=600, 6), probes()),
    ]
}

/// A line or two. Merged with a side of many edits, they show which lines of that side count as
/// unchanged.
fn probes() -> impl Strategy<Value = Vec<Edit>> {
    edits(1..=2, 1)
}
