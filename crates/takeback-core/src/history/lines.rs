//! Where each line of a text came from, followed over the versions of one file. Pure.
//!
//! A line is its content without surrounding white space: who only moves or indents a line does not become
//! its author. A line of a new version has, in this order, the origin of
//!
//! 1. the same version of the file, if the whole text was seen before (a stash that was popped, a branch
//!    that was switched back);
//! 2. the line of the previous version that a diff pairs it with;
//! 3. a line that the same change removed, here or in another file (moved);
//! 4. a line of an earlier version (brought back by a merge, a cherry-pick, a rewind);
//! 5. the change itself.
//!
//! Lines without words (braces, blank lines) have too many twins to be recognised alone: they follow their
//! neighbours.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use takeback_store::Digest;

use crate::diff::diff;

/// How many earlier versions of one file are searched for lines that come back.
const VERSIONS_SEARCHED: usize = 3;

/// Neighbouring lines that a change removed, each with its origin.
pub(crate) type RemovedRun<O> = Vec<(Vec<u8>, O)>;

/// The lines of one file over time.
#[derive(Debug)]
pub(crate) struct LineOrigins<O> {
    numbers: HashMap<Box<[u8]>, u32>,
    /// By number: whether the line has words.
    has_words: Vec<bool>,
    versions: Vec<Version<O>>,
    /// Versions by the digest of their text; the newest of equal ones.
    by_digest: HashMap<Digest, usize>,
    /// The versions that have a line, by its number, oldest first.
    with_line: HashMap<u32, Vec<usize>>,
    current: Option<usize>,
}

#[derive(Debug, Clone)]
struct Version<O> {
    lines: Vec<u32>,
    origins: Vec<O>,
}

impl<O> Default for LineOrigins<O> {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            has_words: Vec::new(),
            versions: Vec::new(),
            by_digest: HashMap::new(),
            with_line: HashMap::new(),
            current: None,
        }
    }
}

impl<O: Clone> LineOrigins<O> {
    /// The origins of the current lines; empty while the file is absent or not text.
    pub(crate) fn origins(&self) -> &[O] {
        self.current.map_or(&[], |at| &self.versions[at].origins)
    }

    /// The file is gone, or is not text any more. Its lines may come back.
    pub(crate) fn remove(&mut self) {
        self.current = None;
    }

    /// Goes back to a version that was seen before. `false`: there is none with this digest.
    pub(crate) fn resume(&mut self, digest: &Digest) -> bool {
        let seen = self.by_digest.get(digest).copied();
        self.current = seen.or(self.current);
        seen.is_some()
    }

    /// A new version; `origin` is that of a new line, by its number from 0. `removed`: what the same
    /// change removed elsewhere.
    pub(crate) fn add(
        &mut self,
        digest: Digest,
        text: &[u8],
        origin: impl Fn(u32) -> O,
        removed: &[RemovedRun<O>],
    ) {
        if self.resume(&digest) {
            return;
        }
        let lines: Vec<u32> = split_lines(text).map(|line| self.number(line)).collect();
        let mut found: Vec<Option<O>> = vec![None; lines.len()];
        if let Some(current) = self.current {
            self.pair_with(current, &lines, &mut found);
        }
        self.find_moved(&lines, &mut found, removed);
        // What is still there does not come back: that is a copy.
        let present = self.current.map_or(&[][..], |current| &self.versions[current].lines);
        let present: HashSet<u32> = present.iter().copied().collect();
        for _ in 0..VERSIONS_SEARCHED {
            let Some(earlier) = self.version_with_most(&lines, &found, &present) else { break };
            let old = &self.versions[earlier];
            let all = old.lines.iter().copied().zip(old.origins.iter().cloned());
            self.take_runs(&all.collect::<Vec<_>>(), &present, &lines, &mut found);
        }
        let origins = (0..).zip(found).map(|(at, one)| one.unwrap_or_else(|| origin(at))).collect();
        let at = self.versions.len();
        for &line in &lines {
            if self.has_words[line as usize] {
                let with_line = self.with_line.entry(line).or_default();
                if with_line.last() != Some(&at) {
                    with_line.push(at);
                }
            }
        }
        self.versions.push(Version { lines, origins });
        self.by_digest.insert(digest, at);
        self.current = Some(at);
    }

    /// The current lines that are not in `next`, with their origins: another file may have them then.
    pub(crate) fn removed_by(&mut self, next: &[u8]) -> Vec<RemovedRun<O>> {
        let Some(current) = self.current else { return Vec::new() };
        let next: Vec<u32> = split_lines(next).map(|line| self.number(line)).collect();
        let Version { lines, origins } = &self.versions[current];
        let mut texts: Vec<&[u8]> = vec![&[]; self.has_words.len()];
        self.numbers.iter().for_each(|(line, number)| texts[*number as usize] = line);
        let hunks = diff(lines, &next);
        let run = |range: Range<usize>| -> RemovedRun<O> {
            range.map(|at| (texts[lines[at] as usize].to_vec(), origins[at].clone())).collect()
        };
        hunks.into_iter().map(|hunk| run(hunk.before)).filter(|run| !run.is_empty()).collect()
    }

    fn number(&mut self, line: &[u8]) -> u32 {
        let line = line.trim_ascii();
        if let Some(&number) = self.numbers.get(line) {
            return number;
        }
        let number = u32::try_from(self.has_words.len()).expect("a text has fewer lines");
        self.numbers.insert(line.into(), number);
        self.has_words.push(has_words(line));
        number
    }

    /// Pairs the lines with those of a version, by a diff; then finds the lines that moved within it.
    fn pair_with(&self, version: usize, lines: &[u32], found: &mut [Option<O>]) {
        let old = &self.versions[version];
        let hunks = diff(&old.lines, lines);
        let mut at = (0, 0);
        for hunk in &hunks {
            for (old_at, new_at) in (at.0..hunk.before.start).zip(at.1..) {
                found[new_at] = Some(old.origins[old_at].clone());
            }
            at = (hunk.before.end, hunk.after.end);
        }
        for (old_at, new_at) in (at.0..old.lines.len()).zip(at.1..) {
            found[new_at] = Some(old.origins[old_at].clone());
        }
        let gone: Vec<(u32, O)> = hunks
            .iter()
            .flat_map(|hunk| hunk.before.clone())
            .map(|at| (old.lines[at], old.origins[at].clone()))
            .collect();
        self.take_runs(&gone, &HashSet::new(), lines, found);
    }

    fn find_moved(&mut self, lines: &[u32], found: &mut [Option<O>], removed: &[RemovedRun<O>]) {
        for run in removed {
            if found.iter().all(Option::is_some) {
                return;
            }
            let gone: Vec<(u32, O)> =
                run.iter().map(|(line, origin)| (self.number(line), origin.clone())).collect();
            self.take_runs(&gone, &HashSet::new(), lines, found);
        }
    }

    /// Gives lines without an origin that of an equal removed line. Each removed line is used once: who
    /// copies a line is the author of the copy. A run does not begin at a line that is `present`.
    fn take_runs(
        &self,
        gone: &[(u32, O)],
        present: &HashSet<u32>,
        lines: &[u32],
        found: &mut [Option<O>],
    ) {
        let mut places: HashMap<u32, Vec<usize>> = HashMap::new();
        for (at, (line, _)) in gone.iter().enumerate().rev() {
            places.entry(*line).or_default().push(at);
        }
        let mut is_used = vec![false; gone.len()];
        for start in 0..lines.len() {
            let line = lines[start];
            if found[start].is_some() || !self.has_words[line as usize] || present.contains(&line) {
                continue;
            }
            let Some(places) = places.get_mut(&line) else { continue };
            let Some(from) = places.iter().rposition(|at| !is_used[*at]) else { continue };
            let from = places.remove(from);
            // Its neighbours as well: lines without words are recognised only this way.
            let up = (1..=start.min(from)).take_while(|step| {
                let (new, old) = (start - step, from - step);
                found[new].is_none() && !is_used[old] && gone[old].0 == lines[new]
            });
            let up = up.count();
            let down = (0..(lines.len() - start).min(gone.len() - from)).take_while(|step| {
                let (new, old) = (start + step, from + step);
                found[new].is_none() && !is_used[old] && gone[old].0 == lines[new]
            });
            let down = down.count();
            for (new, old) in (start - up..start + down).zip(from - up..) {
                is_used[old] = true;
                found[new] = Some(gone[old].1.clone());
            }
        }
    }

    /// The version that has most of the lines without an origin, the newest of equal ones.
    fn version_with_most(
        &self,
        lines: &[u32],
        found: &[Option<O>],
        present: &HashSet<u32>,
    ) -> Option<usize> {
        let mut votes: HashMap<usize, usize> = HashMap::new();
        let is_open = |line: &u32, origin: &Option<O>| origin.is_none() && !present.contains(line);
        for (line, _) in lines.iter().zip(found).filter(|(line, origin)| is_open(line, origin)) {
            for version in self.with_line.get(line).into_iter().flatten() {
                *votes.entry(*version).or_default() += 1;
            }
        }
        votes
            .into_iter()
            .max_by_key(|(version, votes)| (*votes, *version))
            .map(|(version, _)| version)
    }
}

/// The lines of a text without their ends.
pub(crate) fn split_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// Whether a line can be recognised elsewhere.
pub(crate) fn has_words(line: &[u8]) -> bool {
    line.iter().filter(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii()).count() >= 2
}
