//! Single hunks of a file: what it becomes if only some of them are taken back.

use crate::diff::{Hunk, diff};

/// How a file differs from an earlier version of it.
#[derive(Debug, Clone)]
pub struct FileHunks<'a> {
    now: Vec<&'a [u8]>,
    then: Vec<&'a [u8]>,
    hunks: Vec<Hunk>,
}

impl<'a> FileHunks<'a> {
    /// Compares two versions, line by line.
    #[must_use]
    pub fn new(now: &'a [u8], then: &'a [u8]) -> Self {
        let lines = |text: &'a [u8]| text.split_inclusive(|&byte| byte == b'\n').collect();
        let (now, then): (Vec<&[u8]>, Vec<&[u8]>) = (lines(now), lines(then));
        let hunks = diff(&now, &then);
        Self { now, then, hunks }
    }

    /// The hunks, in order: from the file as it is to the file as it was.
    #[must_use]
    pub fn hunks(&self) -> &[Hunk] {
        &self.hunks
    }

    /// The lines now.
    #[must_use]
    pub fn now(&self) -> &[&'a [u8]] {
        &self.now
    }

    /// The lines then.
    #[must_use]
    pub fn then(&self) -> &[&'a [u8]] {
        &self.then
    }

    /// The file with these hunks as they were, by their numbers from 0, and the others as they are.
    #[must_use]
    pub fn take_back(&self, chosen: impl Fn(usize) -> bool) -> Vec<u8> {
        let mut text = Vec::new();
        let mut copied = 0;
        for (at, hunk) in self.hunks.iter().enumerate() {
            text.extend(self.now[copied..hunk.before.start].concat());
            text.extend(match chosen(at) {
                true => self.then[hunk.after.clone()].concat(),
                false => self.now[hunk.before.clone()].concat(),
            });
            copied = hunk.before.end;
        }
        text.extend(self.now[copied..].concat());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_chosen_hunks_go_back() {
        let now = b"A\nb\nC\nd\nnew\n";
        let then = b"a\nb\nc\nd\n";
        let hunks = FileHunks::new(now, then);
        assert_eq!(hunks.hunks().len(), 3);
        let with = |chosen: &[usize]| {
            String::from_utf8(hunks.take_back(|at| chosen.contains(&at))).unwrap()
        };
        assert_eq!(with(&[]).as_bytes(), now);
        assert_eq!(with(&[0, 1, 2]).as_bytes(), then);
        assert_eq!(with(&[1]), "A\nb\nc\nd\nnew\n");
        assert_eq!(with(&[0, 2]), "a\nb\nC\nd\n");
    }

    #[test]
    fn the_last_line_may_have_no_end() {
        for (now, then) in [("a", "a\nb"), ("a\nb", "x\na"), ("a\n", "a"), ("", "a"), ("a", "")] {
            let hunks = FileHunks::new(now.as_bytes(), then.as_bytes());
            assert_eq!(hunks.take_back(|_| true), then.as_bytes());
            assert_eq!(hunks.take_back(|_| false), now.as_bytes());
        }
    }
}
