//! Executions under their lock. Finishes what a crashed writer left undone before anything else
//! happens.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde_json::Value;

use super::file::{self, FileError, FileLock, io_error};
use super::folder::{
    CHECKPOINTS, DamagePolicy, EXECUTIONS, FoundCheckpoint, Steps, aside_path, asides, exists,
    is_same_file,
};
use super::list::LOOKS;
use super::manifest::{Entry, Manifest};
use super::{JsonStates, file_name};
use crate::disk;
use crate::state::{
    CheckpointId, Damage, ExecutionId, ExpectedHead, NewCheckpoint, Record, StateError,
};

impl JsonStates {
    pub(super) fn manifest_path(&self, execution: &ExecutionId) -> Result<PathBuf, StateError> {
        let name = format!("{}.json", file_name::file_name_part(execution.as_str()));
        Ok(self.folder(EXECUTIONS)?.join(name))
    }

    /// Locks an execution against all other writers.
    pub(super) fn lock_execution(&self, execution: &ExecutionId) -> Result<FileLock, StateError> {
        self.make_folder(EXECUTIONS)?;
        self.make_folder(CHECKPOINTS)?;
        file::lock(&self.manifest_path(execution)?, self.lock_timeout)
    }

    pub(super) fn manifest_at(
        &self,
        path: &Path,
        aside: DamagePolicy,
    ) -> Result<Option<Manifest>, StateError> {
        self.read(path, aside, &|bytes| {
            let mut fields = file::fields(bytes)?;
            fields.remove("format");
            let manifest: Manifest = serde_json::from_value(Value::Object(fields))
                .map_err(|error| FileError::Damaged(error.to_string()))?;
            let name =
                format!("{}.json", file_name::file_name_part(manifest.execution_id.as_str()));
            match path.file_name().is_some_and(|found| *found == *name) {
                true => Ok(manifest),
                false => Err(FileError::Damaged("it is not what its name says".to_owned())),
            }
        })
    }

    pub(super) fn write_manifest(&self, manifest: &mut Manifest) -> Result<(), StateError> {
        manifest.revision += 1;
        let path = self.manifest_path(&manifest.execution_id)?;
        let Value::Object(fields) = serde_json::to_value(&*manifest).expect("it is plain data")
        else {
            unreachable!("it has fields");
        };
        disk::replace_private_file_durably(&path, &file::text(fields))
            .map_err(io_error(&path, "writing it"))
    }

    /// The manifest of an execution after finishing interrupted work. The caller must hold the
    /// lock.
    pub(super) fn load_settled(
        &self,
        execution: &ExecutionId,
    ) -> Result<Option<Manifest>, StateError> {
        let Some(mut manifest) =
            self.manifest_at(&self.manifest_path(execution)?, DamagePolicy::SetAsideUnderLock)?
        else {
            return self.rebuilt(
                execution,
                &self.steps(execution)?,
                DamagePolicy::SetAsideUnderLock,
            );
        };
        if manifest.deleted {
            self.finish_deletion(execution)?;
            return Ok(None);
        }
        self.resolve(&mut manifest)?;
        if manifest.unsettled {
            self.settle(&mut manifest)?;
        }
        Ok(Some(manifest))
    }

    /// Runs `read` on a consistent state of an execution, with its manifest if there is one.
    /// Retries if a writer interferes, then takes the lock.
    pub(super) fn read_consistently<T>(
        &self,
        execution: &ExecutionId,
        read: &mut dyn FnMut(Option<&Manifest>) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        let path = self.manifest_path(execution)?;
        for _ in 0..LOOKS {
            let stamp = stamp(&path);
            let manifest = self.manifest_at(&path, DamagePolicy::LockAndSetAside)?;
            let revision = manifest.as_ref().map(|manifest| manifest.revision);
            let manifest = match manifest {
                Some(manifest) if manifest.deleted || manifest.unsettled => {
                    let _held = self.lock_execution(execution)?;
                    self.load_settled(execution)?;
                    continue;
                }
                Some(mut manifest) => {
                    self.resolve(&mut manifest)?;
                    Some(manifest).filter(|manifest| !manifest.is_blank())
                }
                None => None,
            };
            let answer = read(manifest.as_ref());
            let present = self
                .manifest_at(&path, DamagePolicy::LockAndSetAside)?
                .map(|manifest| manifest.revision);
            // The revision alone is not enough: a deleted and recreated execution starts over at 1.
            if present == revision && self::stamp(&path) == stamp {
                return answer;
            }
        }
        let _held = self.lock_execution(execution)?;
        let manifest = self.load_settled(execution)?;
        read(manifest.as_ref().filter(|manifest| exists(&path) && !manifest.is_blank()))
    }

    /// Finds out whether the pending save happened: its file exists, is damaged, or was noted in
    /// the lock file.
    fn resolve(&self, manifest: &mut Manifest) -> Result<(), StateError> {
        let Some(saving) = manifest.saving.take() else {
            return Ok(());
        };
        let path = self.own_path(&manifest.execution_id, saving.step, None)?;
        let was_set_aside = || asides(&path) > saving.asides;
        let is_done = match saving.replaces {
            false => exists(&path) || was_set_aside(),
            true => match self.kept(&path, DamagePolicy::Leave) {
                Ok(Some(kept)) => kept.own.is_some_and(|own| own.position == saving.position),
                Ok(None) => was_set_aside(),
                Err(StateError::Damaged { .. } | StateError::Newer { .. }) => true,
                Err(error) => return Err(error),
            },
        };
        // Another program may have deleted its file since; the note still proves the save.
        if is_done || file::noted_save(&path) == Some(saving.position) {
            manifest.finish_save(saving);
        }
        Ok(())
    }

    /// Every readable checkpoint. Sets nothing aside.
    pub(super) fn readable(
        &self,
        execution: &ExecutionId,
        steps: &Steps,
        manifest: &Manifest,
    ) -> Result<Vec<FoundCheckpoint>, StateError> {
        match self.all(execution, steps, Some(manifest), DamagePolicy::Leave) {
            // Files in a newer format cannot be counted: report nothing as missing.
            Err(StateError::Newer { .. }) => Ok(Vec::new()),
            all => all,
        }
    }

    /// Rebuilds a missing manifest from the checkpoints; `None` if there is nothing of the
    /// execution.
    fn rebuilt(
        &self,
        execution: &ExecutionId,
        steps: &Steps,
        aside: DamagePolicy,
    ) -> Result<Option<Manifest>, StateError> {
        let path = self.manifest_path(execution)?;
        let lost: Vec<_> = (1..=asides(&path)).map(|number| aside_path(&path, number)).collect();
        if steps.is_empty() && lost.is_empty() {
            return Ok(None);
        }
        let entries: Vec<_> =
            self.all(execution, steps, None, aside)?.iter().map(FoundCheckpoint::entry).collect();
        let mut manifest = Manifest::rebuilt(execution, &entries);
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().display().to_string();
        manifest.lost = lost.iter().map(name).collect();
        Ok(Some(manifest))
    }

    pub(super) fn or_rebuild(
        &self,
        execution: &ExecutionId,
        manifest: Option<&Manifest>,
        steps: Option<&Steps>,
    ) -> Result<Option<Manifest>, StateError> {
        match (manifest, steps) {
            (Some(manifest), _) => Ok(Some(manifest.clone())),
            (None, Some(steps)) => self.rebuilt(execution, steps, DamagePolicy::LockAndSetAside),
            (None, None) => {
                self.rebuilt(execution, &self.steps(execution)?, DamagePolicy::LockAndSetAside)
            }
        }
    }

    /// Every readable checkpoint, each once even if it has two names.
    fn all(
        &self,
        execution: &ExecutionId,
        steps: &Steps,
        manifest: Option<&Manifest>,
        aside: DamagePolicy,
    ) -> Result<Vec<FoundCheckpoint>, StateError> {
        let mut all = Vec::new();
        for files in steps.values() {
            let mut of_step: Vec<FoundCheckpoint> = Vec::new();
            for path in files.paths(true) {
                match self.found(execution, path, manifest, aside) {
                    Ok(Some(found)) if of_step.iter().all(|one| one.attempt != found.attempt) => {
                        of_step.push(found);
                    }
                    Ok(_) | Err(StateError::Damaged { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            all.append(&mut of_step);
        }
        Ok(all)
    }

    pub(super) fn exists(&self, execution: &ExecutionId) -> Result<bool, StateError> {
        let path = self.manifest_path(execution)?;
        Ok(exists(&path) || exists(&aside_path(&path, 1)) || !self.steps(execution)?.is_empty())
    }

    /// The head of the current line. A damaged or missing head is skipped as if it had been
    /// deleted, and the heads in `manifest` are updated to what is left. Damage is added to `note`.
    pub(super) fn load_head(
        &self,
        manifest: &mut Manifest,
        aside: DamagePolicy,
        note: &mut Vec<Damage>,
    ) -> Result<Option<Record>, StateError> {
        let mut at_head = |manifest: &Manifest| {
            let Some((step, attempt)) = manifest.head() else {
                return Ok(None);
            };
            let execution = manifest.execution_id.clone();
            let id = CheckpointId { execution, step, attempt: Some(attempt) };
            match self.find_stored(&id, Some(manifest), aside) {
                Ok(found) => Ok(found.map(|found| found.split().0)),
                Err(StateError::Damaged { what, why }) => {
                    note.push(Damage { what, why });
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        };
        let record = at_head(manifest)?;
        if record.is_some() || manifest.head().is_none() {
            return Ok(record);
        }
        let execution = manifest.execution_id.clone();
        let all = self.all(&execution, &self.steps(&execution)?, Some(manifest), aside)?;
        let entries: Vec<Entry> = all.iter().map(FoundCheckpoint::entry).collect();
        manifest.mend_heads(&entries);
        at_head(manifest)
    }

    pub(super) fn check_parent(
        &self,
        new: &NewCheckpoint<'_>,
        manifest: &Manifest,
    ) -> Result<(), StateError> {
        let execution = new.execution;
        let id = CheckpointId { execution: execution.clone(), step: new.step, attempt: None };
        let expected = match new.expect {
            ExpectedHead::Anything => return Ok(()),
            ExpectedHead::Newest(None) => None,
            ExpectedHead::Newest(Some(parent)) => {
                let found = match parent.execution == *execution {
                    true => {
                        self.find_stored(parent, Some(manifest), DamagePolicy::SetAsideUnderLock)?
                    }
                    false => None,
                };
                let Some(found) = found else {
                    return Err(StateError::MissingParent { id, parent: parent.clone() });
                };
                Some((found.kept.step, found.attempt))
            }
        };
        let head = manifest.head();
        if head == expected {
            return Ok(());
        }
        let name = |(step, attempt)| CheckpointId {
            execution: execution.clone(),
            step,
            attempt: Some(attempt),
        };
        Err(StateError::Conflict {
            id,
            parent: new.expect.parent().cloned(),
            branch: crate::state::BranchName::main(),
            head: head.map(name),
        })
    }

    /// Fails while a damaged manifest is set aside: the effects in it are unknown, and one of them
    /// may have happened.
    pub(super) fn check_lost(&self, manifest: &Manifest) -> Result<(), StateError> {
        let folder = self.folder(EXECUTIONS)?;
        for name in &manifest.lost {
            let path = folder.join(name);
            if exists(&path) {
                return Err(StateError::Damaged {
                    what: path.display().to_string(),
                    why: format!("the effects of {} are in it", manifest.execution_id),
                });
            }
        }
        Ok(())
    }

    /// Gives the newest attempt its numbered name too, so that the short name can be reused.
    pub(super) fn link_under_number(&self, found: &FoundCheckpoint) -> Result<(), StateError> {
        let to = self.own_path(&found.kept.execution, found.kept.step, Some(found.attempt))?;
        if self.link(&found.path, &to)? {
            self.sync(&to)?;
        }
        Ok(())
    }

    /// Links `from` as `to`; returns whether the name is new. If something else has that name, it
    /// is set aside, unless it is another checkpoint: that is an error.
    fn link(&self, from: &Path, to: &Path) -> Result<bool, StateError> {
        if is_same_file(from, to) {
            return Ok(false);
        }
        match self.kept(to, DamagePolicy::SetAsideUnderLock) {
            Ok(None) | Err(StateError::Damaged { .. }) => {}
            // An interrupted save on a file system without hard links made a copy.
            Ok(Some(kept))
                if Some(&kept) == self.kept(from, DamagePolicy::SetAsideUnderLock)?.as_ref() =>
            {
                return Ok(false);
            }
            Ok(Some(_)) => {
                return Err(StateError::Damaged {
                    what: to.display().to_string(),
                    why: "it has the number of another".to_owned(),
                });
            }
            Err(error) => return Err(error),
        }
        let folder = self.folder(CHECKPOINTS)?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&folder, flags, Mode::empty());
        let opened =
            opened.map_err(|error| io_error(&folder, "using it as a folder")(error.into()))?;
        let name = |path: &Path| path.file_name().unwrap_or_default().as_encoded_bytes().to_vec();
        match disk::link(&opened, &name(from), &opened, &name(to)) {
            Ok(()) => Ok(true),
            // Not every file system has hard links: copy instead.
            Err(_) => {
                let Some(Ok(bytes)) = file::bytes(from)? else {
                    return Ok(false);
                };
                disk::replace_private_file_durably(to, &bytes)
                    .map_err(io_error(to, "writing it"))?;
                Ok(true)
            }
        }
    }

    /// Renames files to match the current line, and gives every line an existing head. After each
    /// step every checkpoint still has a name, so this can be interrupted and repeated at any
    /// point.
    pub(super) fn settle(&self, manifest: &mut Manifest) -> Result<(), StateError> {
        let execution = manifest.execution_id.clone();
        let steps = self.steps(&execution)?;
        let all = self.all(&execution, &steps, Some(manifest), DamagePolicy::SetAsideUnderLock)?;
        let entries: Vec<Entry> = all.iter().map(FoundCheckpoint::entry).collect();
        let wanted = manifest.newest_on(manifest.line, &entries);
        let is_wanted =
            |found: &&FoundCheckpoint| wanted.get(&found.kept.step) == Some(&found.attempt);
        for found in all.iter().filter(|found| found.is_newest && !is_wanted(found)) {
            let to = self.own_path(&execution, found.kept.step, Some(found.attempt))?;
            self.link(&found.path, &to)?;
        }
        let folder = self.own_path(&execution, crate::state::StepIndex(0), None)?;
        // The numbered names are durable before any short name is removed or reused.
        self.sync(&folder)?;
        let foreign = all.iter().filter(|found| found.kept.own.is_none() && is_wanted(found));
        let foreign = foreign.map(|found| (found.kept.step.0, found.attempt)).collect();
        if manifest.foreign != foreign {
            manifest.foreign = foreign;
            self.write_manifest(manifest)?;
        }
        for found in &all {
            let newest = self.own_path(&execution, found.kept.step, None)?;
            let number = self.own_path(&execution, found.kept.step, Some(found.attempt))?;
            match (found.is_newest, is_wanted(&found)) {
                (true, false) => {
                    // The wanted attempt may have taken the name already.
                    if !wanted.contains_key(&found.kept.step) || found.path != newest {
                        file::remove(&found.path)?;
                    }
                }
                (false, true) => disk::rename_private_file(&found.path, &newest)
                    .map_err(io_error(&newest, "renaming it"))?,
                // The numbered file is a different file, left by an interrupted save: keep it.
                (true, true) if exists(&number) && !is_same_file(&number, &newest) => {}
                (true, true) => {
                    file::remove(&number)?;
                }
                (false, false) => {}
            }
        }
        self.sync(&folder)?;
        manifest.mend_heads(&entries);
        manifest.unsettled = false;
        self.write_manifest(manifest)
    }

    /// Removes every file of an execution, the manifest last: while it exists, the next use
    /// continues the deletion.
    pub(super) fn finish_deletion(&self, execution: &ExecutionId) -> Result<(), StateError> {
        let part = file_name::file_name_part(execution.as_str());
        let original = |name: &str| -> String {
            let name = name.strip_suffix(".lock").unwrap_or(name);
            let name = match name.strip_suffix(".new").and_then(|name| name.rsplit_once('.')) {
                Some((name, _process)) => name,
                None => name,
            };
            file_name::original(name).unwrap_or(name).to_owned()
        };
        for path in self.names(CHECKPOINTS)? {
            let name = path.file_name().and_then(|name| name.to_str()).map(original);
            let named = name.and_then(|name| file_name::parse(&name));
            if named.is_some_and(|named| named.part == part) {
                file::remove(&path)?;
            }
        }
        self.sync(&self.folder(CHECKPOINTS)?.join("all"))?;
        let manifest = self.manifest_path(execution)?;
        let lock = file::lock_path(&manifest);
        for path in self.names(EXECUTIONS)? {
            let name = path.file_name().and_then(|name| name.to_str()).map(original);
            let is_its = name.is_some_and(|name| name == format!("{part}.json"));
            if is_its && path != manifest && path != lock {
                file::remove(&path)?;
            }
        }
        file::remove(&manifest)?;
        self.sync(&manifest)?;
        file::remove(&lock)?;
        Ok(())
    }
}

/// Identifies one version of a file, even if the next one has the same contents.
fn stamp(path: &Path) -> Option<(u64, i64, i64)> {
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec()))
}
