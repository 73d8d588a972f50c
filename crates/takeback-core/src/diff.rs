//! Which lines differ between two texts, chosen as git chooses them: for merges and for display.
//!
//! Which of several shortest diffs is found decides whether a merge conflicts, so agreement with
//! `git merge-file` rests on every rule here: which lines are left out of the search, how ties
//! between paths are broken, when a search is cut short, and where a movable hunk comes to rest.
//! imara-diff 0.2, a port of the same algorithm, is not used: it breaks ties another way, so its hunks
//! often are not git's, and it takes quadratic time where few kinds of lines repeat.

mod search;

use std::collections::HashMap;
use std::hash::Hash;
use std::iter::zip;
use std::ops::Range;

use self::search::{changed_lines, common_prefix, common_suffix, rough_sqrt};

/// Neighbouring lines that differ. Hunks are in order, at least one unchanged line apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Of the old text; empty: lines were only added.
    pub before: Range<usize>,
    /// Of the new text; empty: lines were only removed.
    pub after: Range<usize>,
}

/// How many diagonals a search may visit; 200 million take about a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effort(usize);

impl Effort {
    /// Of texts of 8 MiB only those reach it that are all in another order, or that are mostly lines
    /// of one character.
    pub(crate) const MERGE: Self = Self(1 << 29);
    /// A third of a second.
    const DISPLAY: Self = Self(1 << 26);
}

/// How one list of lines, or words, becomes another. What takes too long to compare is one hunk.
#[must_use]
pub fn diff<T: Eq + Hash>(before: &[T], after: &[T]) -> Vec<Hunk> {
    let mut numbers = HashMap::new();
    let mut number = |item| {
        let fresh = u32::try_from(numbers.len()).expect("texts for display have fewer lines");
        *numbers.entry(item).or_insert(fresh)
    };
    let before: Vec<u32> = before.iter().map(&mut number).collect();
    let after: Vec<u32> = after.iter().map(&mut number).collect();
    diff_numbers(&before, &after, Effort::DISPLAY)
        .unwrap_or_else(|| vec![one_hunk(&before, &after)])
}

/// Like [`diff`], of lines that are numbers already.
pub(crate) fn diff_of_numbers(before: &[u32], after: &[u32]) -> Vec<Hunk> {
    // The search makes tables as long as the highest number.
    let highest = before.iter().chain(after).max().map_or(0, |&line| line as usize);
    if highest / 8 > before.len() + after.len() {
        return diff(before, after);
    }
    diff_numbers(before, after, Effort::DISPLAY).unwrap_or_else(|| vec![one_hunk(before, after)])
}

/// All lines from the first that differs to the last.
fn one_hunk(before: &[u32], after: &[u32]) -> Hunk {
    let prefix = common_prefix(before, after);
    let suffix = common_suffix(&before[prefix..], &after[prefix..]);
    Hunk { before: prefix..before.len() - suffix, after: prefix..after.len() - suffix }
}

/// The same for lines as numbers that are equal where the lines are. `None`: it takes more than
/// `effort`.
pub(crate) fn diff_numbers(before: &[u32], after: &[u32], effort: Effort) -> Option<Vec<Hunk>> {
    let prefix = common_prefix(before, after);
    let suffix = common_suffix(&before[prefix..], &after[prefix..]);

    let mut removed = vec![false; before.len()];
    let mut added = vec![false; after.len()];
    let distinct = before.iter().chain(after).max().map_or(0, |&line| line as usize + 1);
    let in_before = occurrences(before, distinct);
    let in_after = occurrences(after, distinct);
    let old = Sample::new(before, prefix..before.len() - suffix, &in_after, &mut removed);
    let new = Sample::new(after, prefix..after.len() - suffix, &in_before, &mut added);
    let [in_old, in_new] = changed_lines(&old.lines, &new.lines, effort.0)?;
    zip(&old.positions, in_old).for_each(|(&line, changed)| removed[line] = changed);
    zip(&new.positions, in_new).for_each(|(&line, changed)| added[line] = changed);

    settle(before, &mut removed, &added);
    settle(after, &mut added, &removed);
    Some(hunks(&removed, &added))
}

fn occurrences(lines: &[u32], distinct: usize) -> Vec<u32> {
    let mut counts = vec![0; distinct];
    for &line in lines {
        counts[line as usize] += 1;
    }
    counts
}

/// The lines of one text that the search looks at.
struct Sample {
    lines: Vec<u32>,
    positions: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MatchCount {
    None,
    Few,
    Many,
}

impl Sample {
    /// Leaves out, and marks as changed, what has no match in the other text, and frequent lines
    /// (blank ones, braces) that are almost alone among such lines.
    fn new(lines: &[u32], range: Range<usize>, others: &[u32], changed: &mut [bool]) -> Self {
        let frequent = rough_sqrt(lines.len()).min(1024);
        let matches: Vec<MatchCount> = lines[range.clone()]
            .iter()
            .map(|&line| match others[line as usize] {
                0 => MatchCount::None,
                n if n < frequent => MatchCount::Few,
                _ => MatchCount::Many,
            })
            .collect();
        let mut sample = Self { lines: Vec::new(), positions: Vec::new() };
        for (i, position) in range.enumerate() {
            let keep = match matches[i] {
                MatchCount::None => false,
                MatchCount::Few => true,
                MatchCount::Many => !is_stray(&matches, i),
            };
            if keep {
                sample.lines.push(lines[position]);
                sample.positions.push(position);
            } else {
                changed[position] = true;
            }
        }
        sample
    }
}

fn is_stray(matches: &[MatchCount], at: usize) -> bool {
    const WINDOW: usize = 100;
    let up = &matches[at.saturating_sub(WINDOW)..at];
    let down = &matches[at + 1..matches.len().min(at + 1 + WINDOW)];
    let (lonely_up, frequent_up) = tally(up.iter().rev());
    if lonely_up == 0 {
        return false;
    }
    let (lonely_down, frequent_down) = tally(down.iter());
    lonely_down > 0 && lonely_up + lonely_down > 3 * (frequent_up + frequent_down + 2)
}

/// How many lines have no match and how many have many, up to the first that has few.
fn tally<'a>(matches: impl Iterator<Item = &'a MatchCount>) -> (usize, usize) {
    matches.take_while(|&&found| found != MatchCount::Few).fold((0, 0), |(none, many), &found| {
        if found == MatchCount::None { (none + 1, many) } else { (none, many + 1) }
    })
}

/// Moves each run of changed lines that could just as well be higher or lower: next to the lowest run of
/// the opposite text it can meet, else as low as possible. Runs that meet on the way become one.
fn settle(lines: &[u32], changed: &mut [bool], opposite: &[bool]) {
    let mut run = 0..run_end(changed, 0);
    let mut other = 0..run_end(opposite, 0);
    loop {
        if !run.is_empty() {
            let mut meets;
            loop {
                let length = run.len();
                while slide_up(lines, changed, &mut run) {
                    other = run_above(opposite, &other);
                }
                meets = !other.is_empty();
                while slide_down(lines, changed, &mut run) {
                    other = run_below(opposite, &other);
                    meets |= !other.is_empty();
                }
                if run.len() == length {
                    break;
                }
            }
            while meets && other.is_empty() && slide_up(lines, changed, &mut run) {
                other = run_above(opposite, &other);
            }
        }
        if run.end == changed.len() {
            break;
        }
        run = run_below(changed, &run);
        other = run_below(opposite, &other);
    }
}

fn slide_up(lines: &[u32], changed: &mut [bool], run: &mut Range<usize>) -> bool {
    if run.start == 0 || lines[run.start - 1] != lines[run.end - 1] {
        return false;
    }
    changed[run.start - 1] = true;
    changed[run.end - 1] = false;
    *run = run_start(changed, run.start - 1)..run.end - 1;
    true
}

fn slide_down(lines: &[u32], changed: &mut [bool], run: &mut Range<usize>) -> bool {
    if run.end == lines.len() || lines[run.start] != lines[run.end] {
        return false;
    }
    changed[run.start] = false;
    changed[run.end] = true;
    *run = run.start + 1..run_end(changed, run.end + 1);
    true
}

/// The possibly empty run of changed lines on the far side of the unchanged line above a run.
fn run_above(changed: &[bool], run: &Range<usize>) -> Range<usize> {
    let end = run.start - 1;
    run_start(changed, end)..end
}

fn run_below(changed: &[bool], run: &Range<usize>) -> Range<usize> {
    let start = run.end + 1;
    start..run_end(changed, start)
}

fn run_start(changed: &[bool], end: usize) -> usize {
    end - changed[..end].iter().rev().take_while(|&&changed| changed).count()
}

fn run_end(changed: &[bool], start: usize) -> usize {
    start + changed[start..].iter().take_while(|&&changed| changed).count()
}

fn hunks(removed: &[bool], added: &[bool]) -> Vec<Hunk> {
    let mut hunks = Vec::new();
    let mut before = 0..run_end(removed, 0);
    let mut after = 0..run_end(added, 0);
    loop {
        if !before.is_empty() || !after.is_empty() {
            hunks.push(Hunk { before: before.clone(), after: after.clone() });
        }
        if before.end == removed.len() {
            return hunks;
        }
        before = run_below(removed, &before);
        after = run_below(added, &after);
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::io::Write as _;
    use std::process::Command;

    use proptest::prelude::*;
    use proptest::sample::Index;
    use proptest::test_runner::{Config, TestRunner};
    use tempfile::NamedTempFile;

    use super::*;

    fn hunks_of(before: &[u32], after: &[u32]) -> Vec<Hunk> {
        diff_numbers(before, after, Effort::MERGE).unwrap()
    }

    #[test]
    fn hunks_slide_down_and_next_to_each_other() {
        let hunk = |before, after| vec![Hunk { before, after }];
        assert_eq!(hunks_of(&[], &[]), vec![]);
        assert_eq!(hunks_of(&[1, 2], &[1, 2]), vec![]);
        assert_eq!(hunks_of(&[], &[1, 2]), hunk(0..0, 0..2));
        assert_eq!(hunks_of(&[1, 2], &[]), hunk(0..2, 0..0));
        assert_eq!(hunks_of(&[1, 2, 3], &[1, 4, 3]), hunk(1..2, 1..2));
        assert_eq!(hunks_of(&[1, 2, 3], &[1, 2, 1, 2, 3]), hunk(2..2, 2..4));
        assert_eq!(hunks_of(&[1, 1, 1, 2], &[1, 1, 2]), hunk(2..3, 2..2));
        assert_eq!(hunks_of(&[9, 1, 1, 2], &[1, 1, 1, 2]), hunk(0..1, 0..1));
    }

    #[test]
    fn what_takes_too_long_is_one_hunk() {
        let before: Vec<u32> = (0..500).collect();
        let after: Vec<u32> = [0].into_iter().chain((1..499).rev()).chain([499]).collect();
        assert_eq!(diff_numbers(&before, &after, Effort(1_000)), None);
        assert_eq!(one_hunk(&before, &after), Hunk { before: 1..499, after: 1..499 });
    }

    #[test]
    fn same_hunks_as_git() {
        #[expect(clippy::disallowed_methods, reason = "how long a test runs is no setting")]
        let runs = std::env::var("TAKEBACK_TEST_RUNS");
        let cases = runs.map_or(300, |runs| runs.parse().expect("TAKEBACK_TEST_RUNS is a number"));
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let checked = TestRunner::new(config).run(&texts(), |(before, after)| {
            prop_assert_eq!(hunks_of(&before, &after), git_diff(&before, &after));
            Ok(())
        });
        if let Err(failure) = checked {
            panic!("{failure}");
        }
    }

    /// A text of lines that are each of a few kinds or all different, and the same text edited.
    fn texts() -> impl Strategy<Value = (Vec<u32>, Vec<u32>)> {
        let size = prop_oneof![
            (0..40usize, 2..6usize),
            (40..400usize, 2..40usize),
            (400..4000usize, 2..600usize)
        ];
        (size, 1..40u32, 0.0..=1.0).prop_flat_map(|((length, edits), kinds, repeated)| {
            let line = (prop::bool::weighted(repeated), 0..kinds, 100..10_000u32)
                .prop_map(|(repeated, kind, other)| if repeated { kind } else { other });
            let few = prop::collection::vec(line.clone(), 0..6);
            let new = prop_oneof![9 => few, 1 => prop::collection::vec(line.clone(), 20..60)];
            let edit = (any::<Index>(), 0..6usize, new);
            (prop::collection::vec(line, length), prop::collection::vec(edit, 0..edits)).prop_map(
                |(before, edits)| {
                    let mut after = before.clone();
                    for (at, removed, added) in edits {
                        let start = at.index(after.len() + 1);
                        let end = after.len().min(start + removed);
                        after.splice(start..end, added);
                    }
                    (before, after)
                },
            )
        })
    }

    fn git_diff(before: &[u32], after: &[u32]) -> Vec<Hunk> {
        let [old, new] = [before, after].map(|lines| {
            let mut text = String::new();
            lines.iter().for_each(|line| writeln!(text, "{line}").unwrap());
            let mut file = NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file.into_temp_path()
        });
        let output = Command::new("git")
            .args(["diff", "--no-index", "--diff-algorithm=myers", "--no-indent-heuristic"])
            .args(["--no-ext-diff", "--no-textconv", "--no-color", "--unified=1000000"])
            .args([&old, &new])
            .output()
            .expect("git is installed");
        assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
        let output = String::from_utf8(output.stdout).unwrap();

        let mut removed = Vec::new();
        let mut added = Vec::new();
        for line in output.lines().skip_while(|line| !line.starts_with("@@")).skip(1) {
            match line.as_bytes()[0] {
                b'-' => removed.push(true),
                b'+' => added.push(true),
                _ => {
                    removed.push(false);
                    added.push(false);
                }
            }
        }
        hunks(&removed, &added)
    }
}
