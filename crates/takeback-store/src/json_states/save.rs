//! Saves a checkpoint: the execution's file names the save before the checkpoint's file is replaced.

use super::book::{Book, Saving};
use super::file::{self, io_error};
use super::folder::{self, Aside};
use super::record::{Kept, Own};
use super::{JsonStates, only_main};
use crate::disk;
use crate::state::{
    Attempt, BranchName, CheckpointKey, NewCheckpoint, SaveOutcome, StateError, Status,
};

impl JsonStates {
    pub(super) fn save_checkpoint(
        &self,
        new: &NewCheckpoint<'_>,
    ) -> Result<SaveOutcome, StateError> {
        let NewCheckpoint { execution, step, .. } = *new;
        let _held = self.lock_execution(execution)?;
        let known = self.working(execution)?;
        only_main(execution, new.branch)?;
        let path = self.place(execution, step, None)?;
        let file_held = file::lock(&path, self.patience)?;
        let mut book = known.unwrap_or_else(|| Book::begin(execution));
        match self.stand(&mut book, Aside::Holding, &mut Vec::new()) {
            // What cannot be read for that reason is there all the same, and can be followed.
            Ok(_) | Err(StateError::Newer { .. }) => {}
            Err(error) => return Err(error),
        }

        let newest = match self.newest(execution, step, Some(&book), Aside::Holding) {
            // It was set aside: what follows is another attempt.
            Err(StateError::Damaged { .. }) => None,
            newest => newest?,
        };
        if let Some(found) = &newest
            && new.attempt.is_none_or(|attempt| attempt == found.attempt)
            && is_same(&found.kept, new)
            && self.follows(&found.kept, new, &book)?
        {
            let (record, _) = newest.expect("it was looked at").split();
            return Ok(SaveOutcome { record, is_new: false });
        }
        if let Some(attempt) = new.attempt {
            let key = CheckpointKey { execution: execution.clone(), step, attempt };
            match self.find_kept(&key.id(), Some(&book), Aside::Holding)? {
                Some(found)
                    if is_same(&found.kept, new) && self.follows(&found.kept, new, &book)? =>
                {
                    return Ok(SaveOutcome { record: found.split().0, is_new: false });
                }
                Some(_) => return Err(StateError::Taken { key }),
                None => {}
            }
        }
        self.check_parent(new, &book)?;

        let attempt = match new.attempt {
            Some(attempt) => attempt,
            None => self
                .highest(execution, step, &book, newest.as_ref())?
                .map_or(Attempt::FIRST, Attempt::next),
        };
        let kept = Kept {
            execution: execution.clone(),
            step,
            own: Some(Own { attempt, line: book.line, position: book.saves + 1 }),
            branch: BranchName::main(),
            parent: book.head(),
            step_name: new.step_name.to_owned(),
            time: new.time,
            status: new.status,
            error: new.error.map(ToOwned::to_owned),
            point: new.point,
            values: new.values.clone(),
        };
        let text = file::text(kept.fields()?);
        let own = self.canonical(execution, step, None)?;
        book.saving = Some(Saving {
            step,
            attempt,
            position: book.saves + 1,
            session: new.session.cloned(),
            succeeds: new.status == Status::Success,
            replaces: newest.is_some(),
            asides: folder::asides(&own),
        });
        self.write_book(&mut book)?;
        if let Some(found) = &newest {
            self.give_number(found)?;
        }
        disk::replace_private_file_durably(&own, &text).map_err(io_error(&own, "write it"))?;
        if path != own {
            // It lay under a name that another program gave it, and has its number.
            file::remove(&path)?;
        } else {
            file_held.note_saved(book.saves + 1);
        }
        Ok(SaveOutcome { record: kept.record(attempt, true).0, is_new: true })
    }

    /// Whether a checkpoint comes after what another expects to follow.
    fn follows(
        &self,
        kept: &Kept,
        new: &NewCheckpoint<'_>,
        book: &Book,
    ) -> Result<bool, StateError> {
        let Some(parent) = new.expect.parent() else {
            return Ok(!new.expect.is_first() || kept.parent.is_none());
        };
        let found = match parent.execution == *new.execution {
            true => self.find_kept(parent, Some(book), Aside::Holding)?,
            false => None,
        };
        Ok(found.is_none_or(|found| kept.parent == Some((found.kept.step, found.attempt))))
    }
}

/// Whether a checkpoint is what is to be saved, whenever that was.
fn is_same(kept: &Kept, new: &NewCheckpoint<'_>) -> bool {
    kept.step_name == new.step_name
        && kept.status == new.status
        && kept.error.as_deref() == new.error
        && kept.point == new.point
        && kept.values == *new.values
}
