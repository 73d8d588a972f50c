//! Which folders the second pass of a scan visits.

use std::collections::HashSet;
use std::sync::Arc;

use takeback_store::{Entry, WorkPath};

use super::first_pass::FirstPass;
use super::walk::{Part, Walk, visited};
use super::{Extent, parent};
use crate::worktree::index::KnownName;
use crate::worktree::root::{Access, is_no_folder};
use crate::worktree::scope::{OWN_FOLDER, Rules};

/// A folder to visit.
pub(super) struct Task {
    pub(super) path: Vec<u8>,
    /// The rules of its parent; none: look them up.
    pub(super) above: Option<Arc<Rules>>,
    /// It was absent at the last scan, and so was everything in it.
    pub(super) was_absent: bool,
    /// It is new in a folder that was unreadable for a while.
    pub(super) surfaced: bool,
    /// Its names are the known ones, and the first so many of them are unchanged.
    pub(super) same: Option<usize>,
}

impl Task {
    fn known(path: Vec<u8>, same: Option<usize>) -> Self {
        Self { path, above: None, was_absent: false, surfaced: false, same }
    }
}

impl Walk<'_> {
    /// The folders for the second pass.
    pub(super) fn tasks(&mut self, first: &FirstPass) -> Vec<Task> {
        let mut tasks: Vec<Task> = Vec::new();
        if !self.before.has_folder(b"") {
            tasks.push(Task::known(Vec::new(), None));
        }
        let moved = first.moved.iter();
        tasks.extend(moved.map(|moved| Task::known(moved.path.clone(), moved.same)));
        for path in &first.unlisted {
            if self.is_reached(path) && !self.is_own_and_gone(path) {
                tasks.push(Task::known(path.clone(), None));
            } else {
                self.unvisited.insert(path.clone());
            }
        }
        // Its parent is no longer a folder, or was never covered.
        let lost = first.lost.iter().chain(&first.unreadable);
        let lost = lost.filter(|path| !self.is_reached(path) || self.is_own_and_gone(path));
        let lost: Vec<Vec<u8>> = lost.cloned().collect();
        self.unvisited.extend(lost);
        let judged = match self.extent {
            _ if self.scope != self.before.scope => self.before.folders_with_skipped(),
            Extent::Whole => self.before.folders_with_room(self.options.precious_total_max),
            Extent::Folders(_) => Vec::new(),
        };
        let taken: HashSet<Vec<u8>> = tasks.iter().map(|task| task.path.clone()).collect();
        let judged = judged.into_iter().filter(|path| !taken.contains(*path));
        tasks.extend(judged.map(|path| Task::known(path.to_vec(), Some(0))));
        tasks
    }

    /// Whether a known folder and its parents are part of the workspace.
    pub(super) fn is_reached(&self, path: &[u8]) -> bool {
        let mut path = path;
        while !path.is_empty() && path != OWN_FOLDER {
            let Ok(folder) = WorkPath::new(path) else { return false };
            let is_folder = match self.before.known(&folder) {
                Some(KnownName::Entry { entry: Entry::Dir { .. }, .. }) => true,
                // It is in an unreadable folder.
                Some(known) => known.is_unreadable() && self.before.has_folder(path),
                None => false,
            };
            if !is_folder {
                return false;
            }
            path = parent(path);
        }
        true
    }

    /// Whether it is Takeback's own folder and is gone. It is not an entry, so comparing names does not
    /// find that.
    fn is_own_and_gone(&self, path: &[u8]) -> bool {
        path == OWN_FOLDER
            && self.root.folder(path, Access::Reach).is_err_and(|error| is_no_folder(&error))
    }

    /// Folders with names that were skipped by rules that have changed.
    pub(super) fn tasks_to_judge_again(&self, parts: &[Part]) -> Vec<Task> {
        let changed: Vec<&[u8]> =
            parts.iter().flat_map(|part| &part.judge_below).map(Vec::as_slice).collect();
        if changed.is_empty() {
            return Vec::new();
        }
        let visited: HashSet<&[u8]> = visited(parts).collect();
        let is_below = |path: &[u8]| {
            changed.iter().any(|above| {
                above.is_empty()
                    || path.strip_prefix(*above).is_some_and(|rest| rest.starts_with(b"/"))
            })
        };
        let folders = self.before.folders_with_skipped().into_iter();
        let folders = folders.filter(|path| !visited.contains(path) && is_below(path));
        folders
            .filter(|path| !self.unvisited.contains(*path))
            .map(|path| Task::known(path.to_vec(), Some(0)))
            .collect()
    }
}
