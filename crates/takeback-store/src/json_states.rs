//! Agents' states as JSON files that people and other programs can read. Each checkpoint and
//! document is one file, `{category}/{key}.json`, in the layout of existing programs.
//!
//! ```text
//! checkpoint/ckpt-{execution}-{step}.json        the newest attempt on the current line
//! checkpoint/ckpt-{execution}-{step}.a{K}.json   every other attempt
//! conversation|history|session|config/{key}.json documents, unchanged
//! execution/{execution}.json                     lines, retries, effects
//! ```
//!
//! Keys are encoded so that they cannot leave their folder ([`file_name`]). Every file is replaced
//! as a whole, durably. Writes of several files are ordered so that, after a crash, the next use
//! either finishes them or finds them not begun. Writers hold the locks of the execution and of the
//! file, `{file}.json.lock`; readers hold none. A lock file is removed together with its file, and
//! only then. A damaged file is renamed to `….json.damaged-N` and reported, and stays until its
//! execution is deleted. Files written by other programs lack Takeback's own fields; they are read
//! without them.
//!
//! There is one branch, `main`: [`States::fork`] fails with [`StateError::Unsupported`].

mod manifest;
mod documents;
mod file;
mod folder;
mod list;
mod missing_files;
mod file_name;
mod record;
mod save;
mod recovery;

pub use file_name::file_name_part;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use self::folder::{CHECKPOINTS, DamagePolicy, EXECUTIONS};
use self::manifest::{DeletedCheckpoint, Manifest, StoredEffect, StoredMove, StoredReceipt};
use self::record::check_depth;
use crate::id::{PointId, SessionId, Timestamp};
use crate::state::{
    BranchName, Category, Checkpoint, CheckpointId, CheckpointKey, Damage, DocumentKey, Effect,
    ExecutionId, Executions, Head, HeadMove, IntentOutcome, LineId, ListQuery, MoveOutcome, MoveTo,
    NewCheckpoint, NewEffect, Page, Record, SaveOutcome, StateError, States, StepIndex,
};

const STORE: &str = "JSON files";

/// Agents' states in a folder of JSON files. Nothing is created in it before something is saved.
#[derive(Debug, Clone)]
pub struct JsonStates {
    dir: PathBuf,
    /// How long to wait for a lock before failing with [`StateError::Locked`].
    pub lock_timeout: Duration,
}

impl JsonStates {
    /// States in the folder `dir`, which need not exist. Waits up to 5 s for a lock.
    #[must_use]
    pub fn at(dir: PathBuf) -> Self {
        Self { dir, lock_timeout: Duration::from_secs(5) }
    }
}

impl States for JsonStates {
    fn save(&self, new: &NewCheckpoint<'_>) -> Result<SaveOutcome, StateError> {
        self.save_checkpoint(new)
    }

    fn find(&self, id: &CheckpointId) -> Result<Option<Record>, StateError> {
        Ok(self.load(id)?.map(|checkpoint| checkpoint.record))
    }

    fn load(&self, id: &CheckpointId) -> Result<Option<Checkpoint>, StateError> {
        self.read_consistently(&id.execution, &mut |manifest| {
            let found = self.find_stored(id, manifest, DamagePolicy::LockAndSetAside)?;
            Ok(found.map(|found| {
                let (record, values) = found.split();
                Checkpoint { record, values }
            }))
        })
    }

    fn list(&self, query: &ListQuery<'_>) -> Result<Page, StateError> {
        self.list_checkpoints(query)
    }

    fn last_successful(
        &self,
        execution: &ExecutionId,
        branch: Option<&BranchName>,
        before: Option<StepIndex>,
    ) -> Result<Option<Record>, StateError> {
        self.find_last_success(execution, branch, before)
    }

    fn head(
        &self,
        execution: &ExecutionId,
        branch: Option<&BranchName>,
    ) -> Result<Option<Head>, StateError> {
        self.read_consistently(execution, &mut |manifest| {
            let Some(mut manifest) = self.or_rebuild(execution, manifest, None)? else {
                return Ok(None);
            };
            only_main(execution, branch)?;
            let record =
                self.load_head(&mut manifest, DamagePolicy::LockAndSetAside, &mut Vec::new())?;
            Ok(Some(Head { branch: BranchName::main(), line: manifest.line, record }))
        })
    }

    fn has_line(&self, execution: &ExecutionId, line: LineId) -> Result<bool, StateError> {
        self.read_consistently(execution, &mut |manifest| {
            let manifest = self.or_rebuild(execution, manifest, None)?;
            Ok(manifest.is_some_and(|manifest| manifest.lines.contains_key(&line.0)))
        })
    }

    fn executions(&self) -> Result<Executions, StateError> {
        self.list_executions()
    }

    fn delete(&self, key: &CheckpointKey) -> Result<bool, StateError> {
        let execution = &key.execution;
        if !self.exists(execution)? {
            return Ok(false);
        }
        let _held = self.lock_execution(execution)?;
        let Some(mut manifest) = self.load_settled(execution)? else {
            return Ok(false);
        };
        let Some(found) =
            self.find_stored(&key.id(), Some(&manifest), DamagePolicy::SetAsideUnderLock)?
        else {
            return Ok(false);
        };
        let _file_held =
            file::lock(&self.current_path(execution, key.step, None)?, self.lock_timeout)?;
        // An attempt number is never reused: an id names one content for ever.
        manifest.note_attempt((key.step, key.attempt));
        if let (Some(removed), Some(one)) = (&mut manifest.removed, DeletedCheckpoint::of(&found)) {
            removed.push(one);
        }
        manifest.unsettled = true;
        self.write_manifest(&mut manifest)?;
        file::remove(&self.own_path(execution, key.step, Some(key.attempt))?)?;
        file::remove(&found.path)?;
        self.settle(&mut manifest)?;
        if !self.steps(execution)?.contains_key(&key.step) {
            file::remove(&file::lock_path(&self.own_path(execution, key.step, None)?))?;
        }
        Ok(true)
    }

    fn delete_execution(&self, execution: &ExecutionId) -> Result<bool, StateError> {
        if !self.exists(execution)? {
            return Ok(false);
        }
        let _held = self.lock_execution(execution)?;
        let mut manifest = match self.load_settled(execution) {
            Ok(Some(manifest)) => manifest,
            Ok(None) => return Ok(false),
            // A damaged execution can still be deleted.
            Err(StateError::Damaged { .. }) => Manifest::begin(execution),
            Err(error) => return Err(error),
        };
        // Announced before the first file is removed, so that an interrupted deletion is finished later.
        manifest.deleted = true;
        self.write_manifest(&mut manifest)?;
        self.finish_deletion(execution)?;
        Ok(true)
    }

    fn delete_of_session(&self, session: &SessionId) -> Result<usize, StateError> {
        let executions = self.executions()?.executions;
        let own =
            executions.into_iter().filter(|execution| execution.session.as_ref() == Some(session));
        let mut count = 0;
        for execution in own {
            count += usize::from(self.delete_execution(&execution.id)?);
        }
        Ok(count)
    }

    fn fork(&self, _from: &CheckpointKey, _name: &BranchName) -> Result<(), StateError> {
        Err(StateError::Unsupported { what: "forks", store: STORE })
    }

    fn switch(&self, execution: &ExecutionId, branch: &BranchName) -> Result<(), StateError> {
        if !self.exists(execution)? {
            return Err(StateError::NoExecution(execution.clone()));
        }
        only_main(execution, Some(branch))
    }

    fn move_head(&self, step: &HeadMove<'_>) -> Result<MoveOutcome, StateError> {
        let HeadMove { execution, branch, to, by } = *step;
        only_main(execution, branch)?;
        let unknown = || StateError::NoExecution(execution.clone());
        if !self.exists(execution)? {
            return Err(unknown());
        }
        let _held = self.lock_execution(execution)?;
        let mut manifest = self.load_settled(execution)?.ok_or_else(unknown)?;
        let moved = |from, to| MoveOutcome { branch: BranchName::main(), from, to };
        if let Some(done) = manifest.moves.iter().find(|done| Some(done.by) == by) {
            return Ok(moved(done.from, done.to));
        }
        let from = manifest.line;
        manifest.line = match to {
            MoveTo::Line(line) if manifest.lines.contains_key(&line.0) => line,
            MoveTo::Line(line) => {
                return Err(StateError::NoLine { execution: execution.clone(), line });
            }
            MoveTo::Checkpoint(key) => {
                let found = match key.execution == *execution {
                    true => self.find_stored(
                        &key.id(),
                        Some(&manifest),
                        DamagePolicy::SetAsideUnderLock,
                    )?,
                    false => None,
                };
                let found = found.ok_or_else(|| StateError::NotFound { id: key.id() })?;
                manifest.add_line(&found.entry())
            }
        };
        let to = manifest.line;
        manifest.moves.extend(by.map(|by| StoredMove { by, from, to }));
        manifest.unsettled = true;
        self.write_manifest(&mut manifest)?;
        self.settle(&mut manifest)?;
        Ok(moved(from, to))
    }

    fn count_retry(
        &self,
        execution: &ExecutionId,
        step: StepIndex,
        most: u32,
    ) -> Result<u32, StateError> {
        let unknown = || StateError::NoExecution(execution.clone());
        if !self.exists(execution)? {
            return Err(unknown());
        }
        let _held = self.lock_execution(execution)?;
        let mut manifest = self.load_settled(execution)?.ok_or_else(unknown)?;
        let count = manifest.retries.get(&step.0).copied().unwrap_or(0);
        if count >= most {
            let execution = execution.clone();
            return Err(StateError::RetriesExhausted { execution, step, count });
        }
        manifest.retries.insert(step.0, count + 1);
        self.write_manifest(&mut manifest)?;
        Ok(count + 1)
    }

    fn declare_effect(&self, new: &NewEffect<'_>) -> Result<IntentOutcome, StateError> {
        check_depth("intent", new.intent)?;
        let _held = self.lock_execution(new.execution)?;
        let manifest = self.load_settled(new.execution)?;
        let mut manifest = manifest.unwrap_or_else(|| Manifest::begin(new.execution));
        self.check_lost(&manifest)?;
        if let Some(effect) = manifest.effects.iter().find(|effect| effect.key == new.key) {
            return Ok(IntentOutcome { effect: effect.effect(), is_new: false });
        }
        let kept = StoredEffect {
            key: new.key.to_owned(),
            step: new.step,
            intent: new.intent.clone(),
            intended_at: new.time,
            receipt: None,
        };
        let effect = kept.effect();
        manifest.effects.push(kept);
        self.write_manifest(&mut manifest)?;
        Ok(IntentOutcome { effect, is_new: true })
    }

    fn confirm_effect(
        &self,
        execution: &ExecutionId,
        key: &str,
        receipt: &Value,
        time: Timestamp,
    ) -> Result<(), StateError> {
        check_depth("receipt", receipt)?;
        let missing = || StateError::NoIntent { execution: execution.clone(), key: key.to_owned() };
        if !self.exists(execution)? {
            return Err(missing());
        }
        let _held = self.lock_execution(execution)?;
        let mut manifest = self.load_settled(execution)?.ok_or_else(missing)?;
        self.check_lost(&manifest)?;
        let effect =
            manifest.effects.iter_mut().find(|effect| effect.key == key).ok_or_else(missing)?;
        if effect.receipt.is_some() {
            return Ok(());
        }
        effect.receipt = Some(StoredReceipt { receipt: receipt.clone(), received_at: time });
        self.write_manifest(&mut manifest)
    }

    fn withdraw_effect(&self, execution: &ExecutionId, key: &str) -> Result<bool, StateError> {
        if !self.exists(execution)? {
            return Ok(false);
        }
        let _held = self.lock_execution(execution)?;
        let Some(mut manifest) = self.load_settled(execution)? else {
            return Ok(false);
        };
        self.check_lost(&manifest)?;
        let before = manifest.effects.len();
        manifest.effects.retain(|effect| effect.key != key || effect.receipt.is_some());
        let was_there = manifest.effects.len() < before;
        if was_there {
            self.write_manifest(&mut manifest)?;
        }
        Ok(was_there)
    }

    fn effects(&self, execution: &ExecutionId) -> Result<Vec<Effect>, StateError> {
        self.read_consistently(execution, &mut |manifest| {
            let Some(manifest) = self.or_rebuild(execution, manifest, None)? else {
                return Ok(Vec::new());
            };
            self.check_lost(&manifest)?;
            Ok(manifest.effects.iter().map(StoredEffect::effect).collect())
        })
    }

    fn points(&self) -> Result<HashSet<PointId>, StateError> {
        let mut points = HashSet::new();
        for path in self.checkpoint_files()? {
            match self.kept(&path, DamagePolicy::Leave) {
                Ok(kept) => points.extend(kept.and_then(|kept| kept.point)),
                // A damaged checkpoint cannot be restored, so its point is not needed.
                Err(StateError::Damaged { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(points)
    }

    fn put_document(
        &self,
        category: Category,
        key: &DocumentKey,
        document: &Value,
    ) -> Result<(), StateError> {
        self.write_document(category, key, document)
    }

    fn document(&self, category: Category, key: &DocumentKey) -> Result<Option<Value>, StateError> {
        self.read_document(category, key)
    }

    fn documents(&self, category: Category) -> Result<Vec<DocumentKey>, StateError> {
        self.list_documents(category)
    }

    fn delete_document(&self, category: Category, key: &DocumentKey) -> Result<bool, StateError> {
        self.remove_document(category, key)
    }

    /// Removes the temporary files of writers that crashed.
    fn collect(&self) -> Result<(), StateError> {
        let folders = [CHECKPOINTS, EXECUTIONS].into_iter();
        for folder in folders.chain(Category::ALL.map(Category::name)) {
            for path in self.names(folder)? {
                let unfinished = path.to_str().and_then(|path| {
                    let (of, process) = path.strip_suffix(".new")?.rsplit_once('.')?;
                    process.bytes().all(|byte| byte.is_ascii_digit()).then_some(of)
                });
                let Some(of) = unfinished else { continue };
                // A writer holds the lock while its temporary file exists: a free lock means that
                // the writer is gone.
                match file::lock(Path::new(of), Duration::ZERO) {
                    Ok(_held) => drop(file::remove(&path)?),
                    Err(StateError::Locked { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// Reports files that were set aside until they are removed. Sets nothing aside itself.
    fn check(&self) -> Result<Vec<String>, StateError> {
        let mut found = Vec::new();
        let mut note = |looked: Result<(), StateError>| match looked {
            Err(error @ (StateError::Damaged { .. } | StateError::Newer { .. })) => {
                found.push(error.to_string());
                Ok(())
            }
            looked => looked,
        };
        for path in self.checkpoint_files()? {
            note(self.kept(&path, DamagePolicy::Leave).map(drop))?;
        }
        for path in self.files(EXECUTIONS)? {
            note(self.manifest_at(&path, DamagePolicy::Leave).map(drop))?;
        }
        for category in Category::ALL {
            for path in self.files(category.name())? {
                note(self.read_stored_document(&path, DamagePolicy::Leave).map(drop))?;
            }
        }
        for (part, files) in self.parts()? {
            found.extend(self.missing_files(&part, &files)?);
        }
        let folders = [CHECKPOINTS, EXECUTIONS].into_iter();
        for folder in folders.chain(Category::ALL.map(Category::name)) {
            for path in self.names(folder)? {
                let name = path.file_name().and_then(|name| name.to_str());
                if name.is_some_and(|name| file_name::original(name).is_some()) {
                    found.push(format!("{} was damaged and set aside", path.display()));
                }
            }
        }
        Ok(found)
    }
}

fn only_main(execution: &ExecutionId, branch: Option<&BranchName>) -> Result<(), StateError> {
    match branch.filter(|branch| **branch != BranchName::main()) {
        None => Ok(()),
        Some(branch) => {
            Err(StateError::NoBranch { execution: execution.clone(), branch: branch.clone() })
        }
    }
}

/// Turns an error about one unreadable file into a list item; any other error fails the list.
fn damaged(error: StateError) -> Result<Damage, StateError> {
    match error {
        StateError::Damaged { what, why } => Ok(Damage { what, why }),
        StateError::Newer { what, found, known } => Ok(Damage {
            what,
            why: format!("it has format {found}; this Takeback knows formats up to {known}"),
        }),
        error => Err(error),
    }
}

/// The file name without `.json`.
fn stem(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.strip_suffix(".json")
}
