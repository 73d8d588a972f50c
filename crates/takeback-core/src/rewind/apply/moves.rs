//! The moves of a single step: place, replace, remove. Each can be done again after a crash at any
//! moment.
//!
//! Hazards that the order within each move is there for:
//! - Another program may save the file at any moment. A look followed by a rename can lose that save, so
//!   what was displaced is looked at afterwards, in the stage, where no other program writes.
//! - A crash may come after any call. The slots `new-n` and `old-n` then say how far the step had come:
//!   the goal in `new-n` is not placed yet; anything else in it was displaced by an exchange; `old-n` was
//!   moved away.
//! - A file may never exist nowhere. Only what the store has, or what exists under another name, is ever
//!   discarded from a slot.

use std::io;

use takeback_store::{Entry, Store};

use super::{Stages, conflict, link_twin};
use crate::rewind::receipt::StepOutcome;
use crate::worktree::fingerprint::{Fingerprint, stat};
use crate::worktree::look::LookResult;
use crate::worktree::write::{
    Slot, is_unsupported, make_folder, remove_empty_folder, set_file_mode,
};

impl Stages<'_> {
    /// Puts a file or link in its place.
    pub(super) fn put(&self, at: usize, store: &dyn Store) -> io::Result<StepOutcome> {
        let action = &self.actions[at];
        let (root, stage) = self.site(at);
        let present = self.present(at)?;
        if present == action.goal {
            return self.settle_displaced(at);
        }
        let moved_away = stage.look(Slot::Old(action.number))?.entry;
        // Nothing at the path, as expected: it was empty before, its folder was removed to make room, or
        // this step (before a crash, or without exchange) has moved the old file to `old-n`.
        let cleared = present == Entry::Absent
            && (action.step.present.is_dir()
                || moved_away != Entry::Absent
                || action.step.present == Entry::Absent);
        if present != action.step.present && !cleared {
            return Ok(conflict());
        }
        let folder = self.parent(at)?;
        let name = action.path.file_name();
        // Set in place: the file stays the same file for programs that have it open.
        if action.step.is_mode_only() && !cleared {
            set_file_mode(&folder, name, action.goal.mode().unwrap_or(0o600))?;
            return Ok(StepOutcome::Done);
        }
        let LookResult { entry: staged, fingerprint } = stage.look(Slot::New(action.number))?;
        if staged != action.goal {
            // Not made yet (outside the workspace), lost in a power cut, or no longer the goal.
            match staged {
                Entry::Absent => {}
                // Displaced by an exchange that was then taken back. The store has it.
                staged if staged == action.step.present => {
                    stage.discard(Slot::New(action.number))?;
                }
                // Another program saved the file that this is a hard link to.
                _ if self.is_twin(at, fingerprint) => stage.discard(Slot::New(action.number))?,
                // A save that an exchange displaced before a crash. It must not be overwritten.
                _ => return Ok(conflict()),
            }
            let is_linked = match &action.step.one_with {
                Some(twin) => link_twin(root, stage, action.number, &action.goal, twin)?,
                None => false,
            };
            if is_linked {
                stage.finish(action.number)?;
            } else {
                let made = stage.make(action.number, &action.goal, store, root, &action.path);
                made.map_err(io::Error::other)?;
            }
        }
        if cleared {
            // Saved between the look and the move: the save returns to its place.
            if moved_away != Entry::Absent && moved_away != action.step.present {
                return self.put_back(at);
            }
            return self.place(at);
        }
        if root.can_exchange() {
            match stage.exchange(Slot::New(action.number), &folder, name) {
                Ok(()) => return self.settle_displaced(at),
                // Another program removed the file after the look.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(conflict()),
                Err(error) if is_unsupported(&error) => root.without_exchange(),
                Err(error) => return Err(error),
            }
        }
        // Without exchange nothing is at the path for a moment; a crash then leaves the file in `old-n`.
        match self.remove(at)? {
            StepOutcome::Done => self.place(at),
            other => Ok(other),
        }
    }

    /// Whether a file in the stage is a hard link to the file that the step's goal is linked with.
    fn is_twin(&self, at: usize, fingerprint: Option<Fingerprint>) -> bool {
        let (root, _) = self.site(at);
        let Some(twin) = &self.actions[at].step.one_with else { return false };
        let seen = root.parent_of(twin).and_then(|folder| stat(folder, twin.file_name()));
        let inode = seen.ok().flatten().map(|seen| seen.fingerprint.inode);
        inode.is_some() && inode == fingerprint.map(|print| print.inode)
    }

    /// Places the goal where nothing is. Never replaces.
    fn place(&self, at: usize) -> io::Result<StepOutcome> {
        let action = &self.actions[at];
        let (_, stage) = self.site(at);
        match stage.place(Slot::New(action.number), self.parent(at)?, action.path.file_name()) {
            // Another program saved a file there in the meantime: it stays.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(conflict()),
            Err(error) => {
                // The path must not stay empty.
                if stage.look(Slot::Old(action.number))?.entry != Entry::Absent {
                    self.put_back(at)?;
                }
                Err(error)
            }
            Ok(()) => Ok(StepOutcome::Done),
        }
    }

    /// The goal is in place: checks that what it displaced is what the plan saw. If another program had
    /// saved the file just before, that save returns to its place.
    pub(super) fn settle_displaced(&self, at: usize) -> io::Result<StepOutcome> {
        let action = &self.actions[at];
        let (_, stage) = self.site(at);
        let (new, old) = (Slot::New(action.number), Slot::Old(action.number));
        let name = action.path.file_name();
        let displaced = stage.look(new)?.entry;
        if !action.knows(&displaced) {
            stage.exchange(new, self.parent(at)?, name)?;
            return Ok(conflict());
        }
        // `old-n` is filled by a move without exchange, perhaps before a crash.
        if action.knows(&stage.look(old)?.entry) {
            return Ok(StepOutcome::Done);
        }
        if action.goal != Entry::Absent && !action.goal.is_dir() {
            // The goal has to leave its place before `old-n` can return to it.
            if displaced != Entry::Absent {
                stage.discard(new)?;
            }
            stage.take_away(new, self.parent(at)?, name)?;
            if stage.look(new)?.entry != action.goal {
                // Saved twice: the later save stays, the earlier one is kept in the stage.
                stage.place(new, self.parent(at)?, name)?;
                return Ok(conflict());
            }
        }
        self.put_back(at)
    }

    /// Moves a file or link into the stage. It is unlinked only after the receipt.
    pub(super) fn remove(&self, at: usize) -> io::Result<StepOutcome> {
        let action = &self.actions[at];
        let (_, stage) = self.site(at);
        let slot = Slot::Old(action.number);
        if stage.look(slot)?.entry == Entry::Absent {
            match self.present(at)? {
                Entry::Absent => return Ok(StepOutcome::Done),
                present if present != action.step.present => return Ok(conflict()),
                _ => stage.take_away(slot, self.parent(at)?, action.path.file_name())?,
            }
        }
        // Looked at only now that it is in the stage: before the move another program could still save it.
        if stage.look(slot)?.entry == action.step.present {
            Ok(StepOutcome::Done)
        } else {
            self.put_back(at)
        }
    }

    /// Returns to its place what another program saved before it was moved away.
    fn put_back(&self, at: usize) -> io::Result<StepOutcome> {
        let action = &self.actions[at];
        let (_, stage) = self.site(at);
        match stage.place(Slot::Old(action.number), self.parent(at)?, action.path.file_name()) {
            // The path is taken again: both saves exist, this one in the stage.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(conflict()),
        }
    }

    pub(super) fn make_folder(&self, at: usize) -> io::Result<StepOutcome> {
        let action = &self.actions[at];
        if self.present(at)?.is_dir() {
            return Ok(StepOutcome::Done);
        }
        match make_folder(
            self.parent(at)?,
            action.path.file_name(),
            action.goal.mode().unwrap_or(0o755),
        ) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(conflict()),
            Err(error) => Err(error),
            Ok(()) => Ok(StepOutcome::Done),
        }
    }

    pub(super) fn remove_folder(&self, at: usize) -> io::Result<StepOutcome> {
        let action = &self.actions[at];
        let present = self.present(at)?;
        if present == Entry::Absent || present == action.goal {
            return Ok(StepOutcome::Done);
        }
        // Never recursive: the kernel refuses a folder into which another program has put something.
        match remove_empty_folder(self.parent(at)?, action.path.file_name()) {
            Ok(()) => Ok(StepOutcome::Done),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(StepOutcome::Done),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => match action.goal {
                Entry::Absent => Ok(StepOutcome::Kept("something else is in it".to_owned())),
                _ => Ok(conflict()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(conflict()),
            Err(error) => Err(error),
        }
    }
}
