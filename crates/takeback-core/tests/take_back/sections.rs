//! The model: a file is a list of sections between lines that never change. A change is taken out
//! section by section: what a section has become since decides whether that is possible.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Sections of a file.
pub(crate) const SECTIONS: usize = 5;

/// A version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Version {
    Absent,
    File { sections: Vec<String>, mode: u32 },
}

impl Version {
    pub(crate) fn text(&self) -> String {
        let Self::File { sections, .. } = self else { panic!("there is no file") };
        let mut text = String::new();
        for (at, section) in sections.iter().enumerate() {
            write!(text, "-- {at} --\n{section}").unwrap();
        }
        text + "-- end --\n"
    }

    /// Nothing if it is not a list of sections any more.
    pub(crate) fn parse(text: &str, mode: u32) -> Option<Self> {
        let mut rest = text.strip_prefix("-- 0 --\n")?;
        let mut sections = Vec::new();
        for at in 1..=SECTIONS {
            let mark = if at == SECTIONS { "-- end --\n".into() } else { format!("-- {at} --\n") };
            let (section, below) = rest.split_once(&mark)?;
            sections.push(section.to_owned());
            rest = below;
        }
        rest.is_empty().then_some(Self::File { sections, mode })
    }

    /// The number of the first line of a section, from 1.
    pub(crate) fn line_of(&self, section: usize) -> usize {
        let Self::File { sections, .. } = self else { panic!("there is no file") };
        sections[..section].iter().map(|one| one.lines().count() + 1).sum::<usize>() + 2
    }
}

/// Who made a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    Person,
    Turn(usize),
    Operation(usize),
}

/// A change of one file.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) by: By,
    pub(crate) before: Version,
    pub(crate) after: Version,
    /// The changes that it took back, by number; `in_part`: something of them is still there.
    pub(crate) cancels: Vec<usize>,
    pub(crate) in_part: bool,
}

/// What has to become of a file, section by section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expected {
    /// Nothing that is asked for is in it.
    Untouched,
    /// This, whatever else.
    Whole(Version),
    /// It stays, and that is a conflict.
    Conflict,
    /// A section each.
    Sections { sections: Vec<Section>, mode: u32 },
}

/// What has to become of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) text: String,
    /// Not all of it could be taken out, which is a conflict: this was there before.
    pub(crate) instead: Option<String>,
}

/// The history of one file.
#[derive(Debug, Clone)]
pub(crate) struct FileModel {
    pub(crate) changes: Vec<Change>,
    pub(crate) now: Version,
}

impl FileModel {
    pub(crate) fn change(&mut self, by: By, after: Version) {
        self.record(by, after, Vec::new(), false);
    }

    pub(crate) fn record(&mut self, by: By, after: Version, cancels: Vec<usize>, in_part: bool) {
        if after != self.now {
            let before = std::mem::replace(&mut self.now, after.clone());
            self.changes.push(Change { by, before, after, cancels, in_part });
        }
    }

    /// The changes that are taken back by an operation that is itself in effect.
    fn dead(&self) -> BTreeSet<usize> {
        let mut dead = BTreeSet::new();
        for (at, change) in self.changes.iter().enumerate().rev() {
            if dead.contains(&at) {
                continue;
            }
            let is_operation =
                |of: &&usize| matches!(self.changes[**of].by, By::Operation(_)) || !change.in_part;
            dead.extend(change.cancels.iter().filter(is_operation));
        }
        dead
    }

    /// The changes by these authors that are in effect, oldest first.
    pub(crate) fn live(&self, asked: impl Fn(By) -> bool) -> Vec<usize> {
        let dead = self.dead();
        let all = 0..self.changes.len();
        all.filter(|at| asked(self.changes[*at].by) && !dead.contains(at)).collect()
    }

    /// Neighbouring ones of these changes, as one: nothing that is in effect came between.
    fn runs(&self, changes: &[usize]) -> Vec<(usize, usize)> {
        let dead = self.dead();
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for at in changes {
            match runs.last_mut() {
                Some((_, last)) if (*last + 1..*at).all(|between| dead.contains(&between)) => {
                    *last = *at;
                }
                _ => runs.push((*at, *at)),
            }
        }
        runs
    }

    /// What the file becomes without these changes.
    pub(crate) fn without(&self, changes: &[usize]) -> Expected {
        let mut whole = Expected::Untouched;
        let mut file = self.now.clone();
        let mut conflicts = BTreeMap::new();
        for (first, last) in self.runs(changes).into_iter().rev() {
            match without(&self.changes[first].before, &self.changes[last].after, &file) {
                None => return Expected::Conflict,
                Some((next, overlaps)) => {
                    conflicts.extend(overlaps);
                    file = next.clone();
                    whole = Expected::Whole(next);
                }
            }
        }
        match (whole, file) {
            (Expected::Whole(_), Version::File { sections, mode }) => {
                let sections = sections.into_iter().enumerate();
                let sections =
                    sections.map(|(at, text)| Section { text, instead: conflicts.remove(&at) });
                Expected::Sections { sections: sections.collect(), mode }
            }
            (whole, _) => whole,
        }
    }
}

/// A version without one change, and the sections where that is not possible. `None`: it is about the
/// whole file.
fn without(
    before: &Version,
    after: &Version,
    now: &Version,
) -> Option<(Version, Vec<(usize, String)>)> {
    if now == after || now == before {
        return Some((before.clone(), Vec::new()));
    }
    let (
        Version::File { sections: before, mode: mode_before },
        Version::File { sections: after, mode: mode_after },
        Version::File { sections: now, mode: mode_now },
    ) = (before, after, now)
    else {
        return None;
    };
    let pick = |before: &u32, after: &u32, now: &u32| match () {
        () if now == after || now == before => Some(*before),
        () => (before == after).then_some(*now),
    };
    let mode = pick(mode_before, mode_after, mode_now)?;
    let mut overlaps = Vec::new();
    let mut sections = now.clone();
    for at in 0..SECTIONS {
        if before[at] == after[at] || now[at] == before[at] {
            continue;
        }
        if now[at] == after[at] {
            sections[at].clone_from(&before[at]);
        } else {
            overlaps.push((at, before[at].clone()));
        }
    }
    Some((Version::File { sections, mode }, overlaps))
}
