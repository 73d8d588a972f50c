//! Bisection: the first position at which something is bad, with as few tests as possible. Pure.
//!
//! Positions are numbered; at the first it is good, at the last it is bad. A position that cannot be tested
//! is skipped, and the one nearest to it is tested instead.

use std::collections::BTreeSet;
use std::ops::Range;

/// What a test says about a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is good here.
    Good,
    /// It is bad here.
    Bad,
    /// It cannot be tested here.
    Skip,
}

/// A search that is under way.
#[derive(Debug, Clone)]
pub struct Bisection {
    good: usize,
    bad: usize,
    skipped: BTreeSet<usize>,
}

impl Bisection {
    /// A search among `positions` (at least two). The first is taken to be good and the last to be bad.
    #[must_use]
    pub fn new(positions: usize) -> Self {
        Self { good: 0, bad: positions.saturating_sub(1), skipped: BTreeSet::new() }
    }

    /// The position to test next; `None`: the search is over.
    #[must_use]
    pub fn next(&self) -> Option<usize> {
        let middle = self.good + (self.bad - self.good) / 2;
        let open = |at: &usize| !self.skipped.contains(at);
        let below = (self.good + 1..=middle).rev().find(open);
        let above = (middle.max(self.good) + 1..self.bad).find(open);
        match (below, above) {
            (Some(below), Some(above)) if above - middle < middle - below => Some(above),
            (below, above) => below.or(above),
        }
    }

    /// Notes what the test at a position says.
    pub fn note(&mut self, at: usize, verdict: Verdict) {
        match verdict {
            Verdict::Good => self.good = self.good.max(at),
            Verdict::Bad => self.bad = self.bad.min(at),
            Verdict::Skip => drop(self.skipped.insert(at)),
        }
    }

    /// About how many tests are left.
    #[must_use]
    pub fn tests_left(&self) -> u32 {
        (self.bad - self.good).max(1).next_power_of_two().trailing_zeros()
    }

    /// From the last position known to be good to the first known to be bad. They are neighbours unless
    /// positions between them were skipped.
    #[must_use]
    pub fn found(&self) -> Range<usize> {
        self.good..self.bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches for `first_bad`; the tests it took, and what it found.
    fn search(positions: usize, first_bad: usize, cannot: &[usize]) -> (usize, Range<usize>) {
        let mut bisection = Bisection::new(positions);
        let mut tests = 0;
        while let Some(at) = bisection.next() {
            tests += 1;
            assert!(tests <= positions, "it ends");
            bisection.note(
                at,
                match at {
                    at if cannot.contains(&at) => Verdict::Skip,
                    at if at >= first_bad => Verdict::Bad,
                    _ => Verdict::Good,
                },
            );
        }
        (tests, bisection.found())
    }

    #[test]
    fn every_first_bad_position_is_found_in_a_logarithm_of_tests() {
        for positions in 2..200 {
            for first_bad in 1..positions {
                let (tests, found) = search(positions, first_bad, &[]);
                assert_eq!(found, first_bad - 1..first_bad, "of {positions}");
                assert!(1 << tests < 2 * positions, "{tests} tests for {positions}");
            }
        }
        let most = (1..=1000).map(|first_bad| search(1001, first_bad, &[]).0).max();
        assert_eq!(most, Some(10));
        // The first interval takes one test less, so that its beginning can be tested as well.
        assert_eq!(search(1001, 1, &[]).0, 9);
    }

    #[test]
    fn what_cannot_be_tested_is_passed_over() {
        assert_eq!(search(10, 5, &[4]).1, 3..5, "4 and 5 are both possible");
        assert_eq!(search(10, 5, &[7, 8]).1, 4..5);
        assert_eq!(search(4, 2, &[1, 2]).1, 0..3);
        assert_eq!(search(2, 1, &[]), (0, 0..1));
    }
}
