//! Names that were first seen after a moment: new ones in ignored folders, and ones that were not covered
//! before. Their author is unknown to a rewind; they stay, and the receipt says so.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use takeback_store::{Author, Entry, OuterFolders, PathRuns, WorkPath};

use super::DiskState;
use crate::history::PathHistory;

/// Names that were first seen after a moment, by the folder they are in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirstSighting {
    /// The outermost folder that is itself one of them, or else the folder that holds them. A file at the
    /// top of the workspace is listed itself.
    pub path: WorkPath,
    /// Whether `path` is a folder.
    pub folder: bool,
    /// How many files.
    pub names: usize,
}

/// Of every path changed since, those that were only seen for the first time.
pub(super) fn of_histories(histories: &[PathRuns], present: &DiskState) -> Vec<FirstSighting> {
    let now = |one: &PathRuns| present.entries.get(&one.path).unwrap_or(one.at_end()).clone();
    let came = histories.iter().filter(|one| is_first_sight(one.at_start(), &one.runs[0].author));
    let came: Vec<(&WorkPath, Entry)> = came.map(|one| (&one.path, now(one))).collect();
    fold(came.iter().map(|(path, entry)| (*path, entry)))
}

/// Of paths with their changes, those that were only seen for the first time.
#[must_use]
pub fn of_changes(histories: &[PathHistory]) -> Vec<FirstSighting> {
    let came = histories
        .iter()
        .filter(|one| is_first_sight(&one.changes[0].before, &one.changes[0].author));
    fold(came.map(|one| (&one.path, &one.changes[one.changes.len() - 1].after)))
}

fn is_first_sight(before: &Entry, author: &Author) -> bool {
    *before == Entry::Unknown && *author == Author::Human
}

/// Groups names by folder. Names that are gone are left out.
fn fold<'a>(came: impl Iterator<Item = (&'a WorkPath, &'a Entry)>) -> Vec<FirstSighting> {
    let (mut folders, mut files) = (BTreeSet::new(), Vec::new());
    for (path, entry) in came {
        match entry {
            Entry::Absent | Entry::Unknown => {}
            Entry::Dir { .. } => drop(folders.insert(path.clone())),
            _ => files.push(path),
        }
    }
    let mut seen: BTreeMap<WorkPath, FirstSighting> = BTreeMap::new();
    let mut count = |path: WorkPath, folder: bool, names: usize| {
        let first = FirstSighting { path: path.clone(), folder, names: 0 };
        seen.entry(path).or_insert(first).names += names;
    };
    let mut outermost = OuterFolders::among(&folders);
    for folder in &folders {
        if outermost.above(folder).is_none() {
            count(folder.clone(), true, 0);
        }
    }
    for file in files {
        match outermost.above(file).or_else(|| file.parent()) {
            Some(folder) => count(folder, true, 1),
            None => count(file.clone(), false, 1),
        }
    }
    seen.into_values().collect()
}
