//! Saves a checkpoint. The manifest announces the save before the checkpoint's file is replaced, so
//! a crash in between can be detected.

use super::file::{self, io_error};
use super::folder::{self, DamagePolicy};
use super::manifest::{Manifest, PendingSave};
use super::record::{OwnFields, StoredCheckpoint};
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
        let known = self.load_settled(execution)?;
        only_main(execution, new.branch)?;
        let path = self.current_path(execution, step, None)?;
        let file_held = file::lock(&path, self.lock_timeout)?;
        let mut manifest = known.unwrap_or_else(|| Manifest::begin(execution));
        match self.load_head(&mut manifest, DamagePolicy::SetAsideUnderLock, &mut Vec::new()) {
            // A head in a newer format exists although it cannot be read; a checkpoint can follow
            // it.
            Ok(_) | Err(StateError::Newer { .. }) => {}
            Err(error) => return Err(error),
        }

        let newest =
            match self.newest(execution, step, Some(&manifest), DamagePolicy::SetAsideUnderLock) {
                // It was set aside, so this save is a new attempt.
                Err(StateError::Damaged { .. }) => None,
                newest => newest?,
            };
        if let Some(found) = &newest
            && new.attempt.is_none_or(|attempt| attempt == found.attempt)
            && is_same(&found.kept, new)
            && self.follows(&found.kept, new, &manifest)?
        {
            let (record, _) = newest.expect("it was looked at").split();
            return Ok(SaveOutcome { record, is_new: false });
        }
        if let Some(attempt) = new.attempt {
            let key = CheckpointKey { execution: execution.clone(), step, attempt };
            match self.find_stored(&key.id(), Some(&manifest), DamagePolicy::SetAsideUnderLock)? {
                Some(found)
                    if is_same(&found.kept, new)
                        && self.follows(&found.kept, new, &manifest)? =>
                {
                    return Ok(SaveOutcome { record: found.split().0, is_new: false });
                }
                Some(_) => return Err(StateError::Taken { key }),
                None => {}
            }
        }
        self.check_parent(new, &manifest)?;

        let attempt = match new.attempt {
            Some(attempt) => attempt,
            None => self
                .highest(execution, step, &manifest, newest.as_ref())?
                .map_or(Attempt::FIRST, Attempt::next),
        };
        let kept = StoredCheckpoint {
            execution: execution.clone(),
            step,
            own: Some(OwnFields { attempt, line: manifest.line, position: manifest.saves + 1 }),
            branch: BranchName::main(),
            parent: manifest.head(),
            step_name: new.step_name.to_owned(),
            time: new.time,
            status: new.status,
            error: new.error.map(ToOwned::to_owned),
            point: new.point,
            values: new.values.clone(),
        };
        let text = file::text(kept.fields()?);
        let own = self.own_path(execution, step, None)?;
        manifest.saving = Some(PendingSave {
            step,
            attempt,
            position: manifest.saves + 1,
            session: new.session.cloned(),
            succeeds: new.status == Status::Success,
            replaces: newest.is_some(),
            asides: folder::asides(&own),
        });
        self.write_manifest(&mut manifest)?;
        if let Some(found) = &newest {
            self.link_under_number(found)?;
        }
        disk::replace_private_file_durably(&own, &text).map_err(io_error(&own, "writing it"))?;
        if path != own {
            // The old file had a name that another program gave it; it has its numbered name by
            // now.
            file::remove(&path)?;
        } else {
            file_held.note_saved(manifest.saves + 1);
        }
        Ok(SaveOutcome { record: kept.record(attempt, true).0, is_new: true })
    }

    /// Whether a stored checkpoint has the parent that `new` expects.
    fn follows(
        &self,
        kept: &StoredCheckpoint,
        new: &NewCheckpoint<'_>,
        manifest: &Manifest,
    ) -> Result<bool, StateError> {
        let Some(parent) = new.expect.parent() else {
            return Ok(!new.expect.is_first() || kept.parent.is_none());
        };
        let found = match parent.execution == *new.execution {
            true => self.find_stored(parent, Some(manifest), DamagePolicy::SetAsideUnderLock)?,
            false => None,
        };
        Ok(found.is_none_or(|found| kept.parent == Some((found.kept.step, found.attempt))))
    }
}

/// Whether a stored checkpoint has the same content as `new`, apart from the time.
fn is_same(kept: &StoredCheckpoint, new: &NewCheckpoint<'_>) -> bool {
    kept.step_name == new.step_name
        && kept.status == new.status
        && kept.error.as_deref() == new.error
        && kept.point == new.point
        && kept.values == *new.values
}
