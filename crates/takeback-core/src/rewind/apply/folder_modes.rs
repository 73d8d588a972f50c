//! Modes of folders: those that their owner may not write to are unlocked before anything else, and all
//! get their final modes when everything in them is done.

use std::collections::HashMap;
use std::io;

use takeback_store::{Entry, WorkPath};

use super::{PlanRun, conflict, plain_error};
use crate::rewind::plan::UnlockedFolder;
use crate::rewind::receipt::{Problem, StepOutcome};
use crate::worktree::Root;
use crate::worktree::look::{Bytes, look};
use crate::worktree::root::is_no_folder;
use crate::worktree::write::set_folder_mode;

impl<'a> PlanRun<'a> {
    /// Makes the folders that will be written to writable for their owner. One that belongs to another
    /// user stays as it is: the steps in it report the error.
    pub(super) fn unlock(&self) {
        let root = self.sites[0].root();
        for UnlockedFolder { path, mode } in self.unlocked {
            if mode_of(root, path).is_ok_and(|now| now == Some(*mode)) {
                drop(set_mode_of(root, path, mode | 0o700));
            }
        }
    }

    /// Deepest first: a folder's own mode may block access to those in it. Folders that not even their
    /// owner can read afterwards come last, when everything in them has been verified.
    pub(in crate::rewind) fn set_folder_modes(&mut self, deep: &[usize], which: ModePass) {
        let is_of =
            |mode: Option<u32>| is_closed(mode.unwrap_or(0o755)) == (which == ModePass::Closed);
        let folders: Vec<usize> = deep
            .iter()
            .copied()
            .filter(|at| self.actions[*at].goal.is_dir() && is_of(self.actions[*at].goal.mode()))
            .collect();
        let steps: HashMap<&'a WorkPath, usize> =
            folders.iter().map(|at| (&self.actions[*at].step.path, *at)).collect();
        let unlocked = self.unlocked.iter();
        let mut to_restore: Vec<&UnlockedFolder> =
            unlocked.filter(|folder| is_of(Some(folder.mode))).collect();
        to_restore.sort_by_key(|folder| folder.path.depth());
        for at in folders {
            let depth = self.actions[at].path.depth();
            while let Some(folder) = to_restore.pop_if(|folder| folder.path.depth() > depth) {
                self.restore_mode(folder, steps.get(&folder.path));
            }
            self.act(at, Self::set_folder_mode);
        }
        while let Some(folder) = to_restore.pop() {
            self.restore_mode(folder, steps.get(&folder.path));
        }
    }

    fn set_folder_mode(&self, at: usize) -> io::Result<StepOutcome> {
        let action = &self.actions[at];
        let present = self.present(at)?;
        if !present.is_dir() {
            return Ok(conflict());
        }
        if present != action.goal {
            let mode = action.goal.mode().unwrap_or(0o755);
            set_folder_mode(self.parent(at)?, action.path.file_name(), mode)?;
        }
        if is_closed(action.goal.mode().unwrap_or(0o755)) && self.present(at)? != action.goal {
            return Ok(conflict());
        }
        Ok(StepOutcome::Done)
    }

    /// Restores the mode of an unlocked folder, unless its own step or another program has set another one.
    fn restore_mode(&mut self, folder: &UnlockedFolder, step: Option<&usize>) {
        let UnlockedFolder { path, .. } = folder;
        if step.is_some_and(|at| self.actions[*at].outcome == Some(StepOutcome::Done)) {
            return;
        }
        // A step of its own may have given it its original mode in another way.
        if step.is_none() && self.is_given_a_mode(path) {
            return;
        }
        self.left_open.extend(restore_mode(self.sites[0].root(), folder));
    }

    /// Whether a finished step sets the mode of a folder.
    fn is_given_a_mode(&self, path: &WorkPath) -> bool {
        let mut actions = self.actions.iter();
        actions.any(|action| {
            action.step.path == *path
                && action.goal.is_dir()
                && action.outcome == Some(StepOutcome::Done)
        })
    }
}

/// Which folders get their modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::rewind) enum ModePass {
    /// Those that their owner can read afterwards.
    Readable,
    Closed,
}

/// Whether not even its owner can read a folder and what is in it.
pub(crate) fn is_closed(mode: u32) -> bool {
    mode & 0o500 != 0o500
}

/// Restores the modes of folders that were made readable, deepest first; returns what went wrong.
pub(crate) fn restore_modes(root: &Root, unlocked: &[UnlockedFolder]) -> Vec<Problem> {
    let mut unlocked: Vec<&UnlockedFolder> = unlocked.iter().collect();
    unlocked.sort_by_key(|folder| std::cmp::Reverse(folder.path.depth()));
    unlocked.into_iter().filter_map(|folder| restore_mode(root, folder)).collect()
}

/// Makes a folder accessible for its owner.
pub(crate) fn open(root: &Root, folder: &UnlockedFolder) -> io::Result<()> {
    set_mode_of(root, &folder.path, folder.mode | 0o700)
}

fn restore_mode(root: &Root, UnlockedFolder { path, mode }: &UnlockedFolder) -> Option<Problem> {
    let restored = match mode_of(root, path) {
        Ok(Some(now)) if now == mode | 0o700 => set_mode_of(root, path, *mode),
        looked => looked.map(|_| ()),
    };
    restored.err().map(|error| Problem { path: path.clone(), error: plain_error(&error) })
}

/// `None`: there is no folder.
fn mode_of(root: &Root, path: &WorkPath) -> io::Result<Option<u32>> {
    let folder = match root.parent_of(path) {
        Err(error) if is_no_folder(&error) => return Ok(None),
        opened => opened?,
    };
    match look(folder, path.file_name(), &mut Bytes::Hash)?.entry {
        Entry::Dir { mode } => Ok(Some(mode)),
        _ => Ok(None),
    }
}

fn set_mode_of(root: &Root, path: &WorkPath, mode: u32) -> io::Result<()> {
    set_folder_mode(root.parent_of(path)?, path.file_name(), mode)
}
