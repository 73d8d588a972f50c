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

use std::collections::HashMap;
use std::ops::Range;

use memchr::{memchr, memrchr};
use takeback_store::Digest;

use crate::diff::diff_of_numbers;

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
    /// By number: the versions that have the line.
    versions_with: Vec<Presence>,
    versions: Vec<Version<O>>,
    /// Versions by the digest of their text; the newest of equal ones.
    by_digest: HashMap<Digest, usize>,
    current: Option<usize>,
    /// A version and its text: most of the next text is the same, and need not be looked up line by line.
    last_text: Option<(usize, Vec<u8>)>,
}

#[derive(Debug, Clone)]
struct Version<O> {
    lines: Vec<u32>,
    origins: Vec<O>,
}

/// The versions that have a line: spans of neighbours, oldest first.
#[derive(Debug, Clone, Default)]
struct Presence {
    earlier: Vec<Range<usize>>,
    last: Range<usize>,
}

impl Presence {
    fn add(&mut self, version: usize) {
        if self.last.end == version && !self.last.is_empty() {
            self.last.end += 1;
        } else if !self.last.contains(&version) {
            let last = std::mem::replace(&mut self.last, version..version + 1);
            if !last.is_empty() {
                self.earlier.push(last);
            }
        }
    }

    fn versions(&self) -> impl Iterator<Item = usize> + '_ {
        self.earlier.iter().chain([&self.last]).flat_map(Range::clone)
    }
}

/// A text whose lines do not all have an origin yet.
#[derive(Debug)]
pub(crate) struct OpenVersion<O> {
    digest: Digest,
    lines: Vec<u32>,
    found: Vec<Option<O>>,
}

impl<O> Default for LineOrigins<O> {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            has_words: Vec::new(),
            versions_with: Vec::new(),
            versions: Vec::new(),
            by_digest: HashMap::new(),
            current: None,
            last_text: None,
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

    /// Begins a new version: its lines get the origins of those that the current version has. `None`: the
    /// version was seen before, and is current now.
    pub(crate) fn begin(&mut self, digest: Digest, text: &[u8]) -> Option<OpenVersion<O>> {
        if self.resume(&digest) {
            return None;
        }
        let lines = self.number_all(text);
        let mut found: Vec<Option<O>> = vec![None; lines.len()];
        if let Some(current) = self.current {
            self.pair_with(current, &lines, &mut found);
        }
        self.last_text = Some((self.versions.len(), text.to_vec()));
        Some(OpenVersion { digest, lines, found })
    }

    /// The lines of a new version that can be recognised elsewhere and have no origin yet, without white
    /// space around them.
    pub(crate) fn open_lines<'t>(&self, version: &OpenVersion<O>, text: &'t [u8]) -> Vec<&'t [u8]> {
        let is_open =
            |at: usize| version.found[at].is_none() && self.has_words[version.lines[at] as usize];
        if !(0..version.lines.len()).any(is_open) {
            return Vec::new();
        }
        let lines = split_lines(text).enumerate();
        lines.filter(|(at, _)| is_open(*at)).map(|(_, line)| line.trim_ascii()).collect()
    }

    /// Ends a new version; `origin` is that of a new line, by its number from 0. `removed`: what the same
    /// change removed elsewhere.
    pub(crate) fn end(
        &mut self,
        version: OpenVersion<O>,
        removed: &[RemovedRun<O>],
        origin: impl Fn(u32) -> O,
    ) {
        let OpenVersion { digest, lines, mut found } = version;
        self.find_moved(&lines, &mut found, removed);
        self.find_returned(&lines, &mut found);
        let origins = (0..).zip(found).map(|(at, one)| one.unwrap_or_else(|| origin(at))).collect();
        let at = self.versions.len();
        for &line in &lines {
            self.versions_with[line as usize].add(at);
        }
        self.versions.push(Version { lines, origins });
        self.by_digest.insert(digest, at);
        self.current = Some(at);
    }

    /// The origins of the lines of a text that the file may have had between two versions; `None`: no
    /// version has the line.
    pub(crate) fn origins_of(&mut self, digest: &Digest, text: &[u8]) -> Vec<Option<O>> {
        if let Some(seen) = self.by_digest.get(digest) {
            return self.versions[*seen].origins.iter().cloned().map(Some).collect();
        }
        let lines: Vec<u32> = split_lines(text).map(|line| self.number(line)).collect();
        let mut found: Vec<Option<O>> = vec![None; lines.len()];
        let nearest = self.version_with_most(&lines, &found, &vec![false; self.has_words.len()]);
        if let Some(nearest) = nearest {
            self.pair_with(nearest, &lines, &mut found);
        }
        // As if the nearest version were the one before the text.
        let current = std::mem::replace(&mut self.current, nearest);
        self.find_returned(&lines, &mut found);
        self.current = current;
        found
    }

    /// The lines of a version that are not in `next`, with their origins: another file may have them then.
    /// Empty if the version was never seen.
    pub(crate) fn removed_between(&mut self, version: &Digest, next: &[u8]) -> Vec<RemovedRun<O>> {
        let Some(&version) = self.by_digest.get(version) else { return Vec::new() };
        let next: Vec<u32> = split_lines(next).map(|line| self.number(line)).collect();
        let Version { lines, origins } = &self.versions[version];
        let mut texts: Vec<&[u8]> = vec![&[]; self.has_words.len()];
        self.numbers.iter().for_each(|(line, number)| texts[*number as usize] = line);
        let hunks = diff_of_numbers(lines, &next);
        let run = |range: Range<usize>| -> RemovedRun<O> {
            range.map(|at| (texts[lines[at] as usize].to_vec(), origins[at].clone())).collect()
        };
        hunks.into_iter().map(|hunk| run(hunk.before)).filter(|run| !run.is_empty()).collect()
    }

    /// The numbers of all lines. Only those that the last text does not have at the same end are looked
    /// up: this is most of the time that a long history takes.
    fn number_all(&mut self, text: &[u8]) -> Vec<u32> {
        let Some((version, last)) = self.last_text.take() else {
            return split_lines(text).map(|line| self.number(line)).collect();
        };
        let (head, tail) = common_ends(&last, text);
        let count = |text: &[u8]| split_lines(text).count();
        let (first, rest) = (count(&text[..head]), count(&text[text.len() - tail..]));
        let known = &self.versions[version].lines;
        let mut lines = known[..first].to_vec();
        let end = known[known.len() - rest..].to_vec();
        lines.extend(split_lines(&text[head..text.len() - tail]).map(|line| self.number(line)));
        lines.extend(end);
        lines
    }

    fn number(&mut self, line: &[u8]) -> u32 {
        let line = line.trim_ascii();
        if let Some(&number) = self.numbers.get(line) {
            return number;
        }
        let number = u32::try_from(self.has_words.len()).expect("a text has fewer lines");
        self.numbers.insert(line.into(), number);
        self.has_words.push(has_words(line));
        self.versions_with.push(Presence::default());
        number
    }

    /// Pairs the lines with those of a version, by a diff; then finds the lines that moved within it.
    fn pair_with(&self, version: usize, lines: &[u32], found: &mut [Option<O>]) {
        let old = &self.versions[version];
        let hunks = diff_of_numbers(&old.lines, lines);
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
        self.take_runs(&gone, |_| false, lines, found);
    }

    fn find_moved(&mut self, lines: &[u32], found: &mut [Option<O>], removed: &[RemovedRun<O>]) {
        for run in removed {
            if found.iter().all(Option::is_some) {
                return;
            }
            let gone: Vec<(u32, O)> =
                run.iter().map(|(line, origin)| (self.number(line), origin.clone())).collect();
            self.take_runs(&gone, |_| false, lines, found);
        }
    }

    /// Gives lines without an origin that of an equal line of an earlier version.
    fn find_returned(&self, lines: &[u32], found: &mut [Option<O>]) {
        if found.iter().all(Option::is_some) {
            return;
        }
        // What is still there does not come back: that is a copy.
        let mut present = vec![false; self.has_words.len()];
        for &line in self.current.map_or(&[][..], |current| &self.versions[current].lines) {
            present[line as usize] = true;
        }
        for _ in 0..VERSIONS_SEARCHED {
            let Some(earlier) = self.version_with_most(lines, found, &present) else { break };
            let old = &self.versions[earlier];
            let all = old.lines.iter().copied().zip(old.origins.iter().cloned());
            let is_present = |line: u32| present[line as usize];
            self.take_runs(&all.collect::<Vec<_>>(), is_present, lines, found);
        }
    }

    /// Gives lines without an origin that of an equal removed line. Each removed line is used once: who
    /// copies a line is the author of the copy. A run does not begin at a line that is present.
    fn take_runs(
        &self,
        gone: &[(u32, O)],
        is_present: impl Fn(u32) -> bool,
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
            if found[start].is_some() || !self.has_words[line as usize] || is_present(line) {
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
        present: &[bool],
    ) -> Option<usize> {
        let mut votes: HashMap<usize, usize> = HashMap::new();
        let is_open = |line: u32, origin: &Option<O>| {
            origin.is_none() && !present[line as usize] && self.has_words[line as usize]
        };
        for (&line, _) in lines.iter().zip(found).filter(|(line, origin)| is_open(**line, origin)) {
            for version in self.versions_with[line as usize].versions() {
                *votes.entry(version).or_default() += 1;
            }
        }
        votes
            .into_iter()
            .max_by_key(|(version, votes)| (*votes, *version))
            .map(|(version, _)| version)
    }
}

/// How many bytes of whole lines two texts have in common at their beginnings, and how many of the rest at
/// their ends.
fn common_ends(a: &[u8], b: &[u8]) -> (usize, usize) {
    let same = common_length(a.chunks(CHUNK), b.chunks(CHUNK), |a, b| {
        a.iter().zip(b).take_while(|(a, b)| a == b).count()
    });
    let head = memrchr(b'\n', &a[..same]).map_or(0, |end| end + 1);
    let (a, b) = (&a[head..], &b[head..]);
    let same = common_length(a.rchunks(CHUNK), b.rchunks(CHUNK), |a, b| {
        a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
    });
    // The line at which they begin to be the same may have begun differently.
    let tail = &a[a.len() - same..];
    let is_all = same == a.len() && same == b.len();
    let start = if is_all { Some(0) } else { memchr(b'\n', tail).map(|end| end + 1) };
    (head, start.map_or(0, |start| same - start))
}

/// Texts are compared by so many bytes at once.
const CHUNK: usize = 256;

fn common_length<'t>(
    a: impl Iterator<Item = &'t [u8]>,
    b: impl Iterator<Item = &'t [u8]>,
    common: impl Fn(&[u8], &[u8]) -> usize,
) -> usize {
    let mut length = 0;
    for (a, b) in a.zip(b) {
        if a != b {
            return length + common(a, b);
        }
        length += a.len();
    }
    length
}

/// The lines of a text without their ends.
pub(crate) fn split_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// Whether a line can be recognised elsewhere.
pub(crate) fn has_words(line: &[u8]) -> bool {
    line.iter().filter(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii()).count() >= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_ends_are_whole_lines_and_do_not_overlap() {
        for (a, b, head, tail) in [
            ("", "", 0, 0),
            ("a\nb\n", "a\nb\n", 4, 0),
            ("a\nb\nc\n", "a\nx\nc\n", 2, 2),
            ("a\nbc\nd\n", "a\nxc\nd\n", 2, 2),
            ("a\n", "a\na\n", 2, 0),
            ("a\na\n", "a\n", 2, 0),
            ("a", "a\nb", 0, 0),
            ("a", "ab", 0, 0),
            ("b", "ab", 0, 0),
            ("x\nb", "y\nb", 0, 1),
            ("b\n", "a\nb\n", 0, 0),
        ] {
            assert_eq!(common_ends(a.as_bytes(), b.as_bytes()), (head, tail), "{a:?} {b:?}");
        }
        let (a, b) = (format!("{}x\n{}", "a\n".repeat(1_000), "b\n".repeat(1_000)), "c\n");
        let changed = a.replace('x', b);
        assert_eq!(common_ends(a.as_bytes(), changed.as_bytes()), (2_000, 2_000));
    }

    #[test]
    fn spans_of_versions_are_those_that_were_added() {
        let mut presence = Presence::default();
        for version in [0, 0, 1, 4, 4, 5, 9] {
            presence.add(version);
        }
        assert_eq!(presence.versions().collect::<Vec<_>>(), [0, 1, 4, 5, 9]);
    }
}
