//! Agents' states as JSON files that people and other programs can read: one file for each checkpoint
//! and document, `{category}/{key}.json`, as the programs have them that this layout is from.
//!
//! ```text
//! checkpoint/ckpt-{execution}-{step}.json        the newest attempt on the current line
//! checkpoint/ckpt-{execution}-{step}.a{K}.json   every other attempt
//! conversation|history|session|config/{key}.json documents, as they were given
//! execution/{execution}.json                     lines, retries, effects
//! ```
//!
//! Keys are encoded so that they cannot leave their folder ([`name`]). Every file is replaced as a
//! whole, durably; a write that needs more than one is ordered so that the next use finishes it or
//! finds it not begun. Writers hold the lock of the execution and of the file, `{file}.json.lock`;
//! readers hold none. Lock files are removed together with what they are for, and only then. A file
//! that is damaged is renamed to `….json.damaged-N` and named in the answer, and stays until its
//! execution is deleted. Files of other programs, without what only ours have, are read as they are.
//!
//! There is one branch, `main`: [`States::fork`] is [`StateError::Unsupported`].

mod book;
mod documents;
mod file;
mod folder;
mod list;
mod missing;
mod name;
mod record;
mod save;
mod settle;

pub use name::part_of;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use self::book::{Book, KeptEffect, KeptMove, KeptReceipt, Removed};
use self::folder::{Aside, CHECKPOINTS, EXECUTIONS};
use self::record::check_depth;
use crate::id::{PointId, SessionId, Timestamp};
use crate::state::{
    BranchName, Category, Checkpoint, CheckpointId, CheckpointKey, Damage, DocumentKey, Effect,
    ExecutionId, Executions, Head, HeadMove, IntentOutcome, LineId, ListQuery, MoveOutcome, MoveTo,
    NewCheckpoint, NewEffect, Page, Record, SaveOutcome, StateError, States, StepIndex,
};

const STORE: &str = "JSON files";

/// A folder of JSON files. Nothing is made in it before something is kept.
#[derive(Debug, Clone)]
pub struct JsonStates {
    dir: PathBuf,
    /// How long to wait for a lock.
    pub patience: Duration,
}

impl JsonStates {
    #[must_use]
    pub fn at(dir: PathBuf) -> Self {
        Self { dir, patience: Duration::from_secs(5) }
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
        self.reading(&id.execution, &mut |book| {
            let found = self.find_kept(id, book, Aside::Locking)?;
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
        self.reading(execution, &mut |book| {
            let Some(mut book) = self.or_rebuilt(execution, book, None)? else {
                return Ok(None);
            };
            only_main(execution, branch)?;
            let record = self.stand(&mut book, Aside::Locking, &mut Vec::new())?;
            Ok(Some(Head { branch: BranchName::main(), line: book.line, record }))
        })
    }

    fn has_line(&self, execution: &ExecutionId, line: LineId) -> Result<bool, StateError> {
        self.reading(execution, &mut |book| {
            let book = self.or_rebuilt(execution, book, None)?;
            Ok(book.is_some_and(|book| book.lines.contains_key(&line.0)))
        })
    }

    fn executions(&self) -> Result<Executions, StateError> {
        self.list_executions()
    }

    fn delete(&self, key: &CheckpointKey) -> Result<bool, StateError> {
        let execution = &key.execution;
        if !self.is_there(execution)? {
            return Ok(false);
        }
        let _held = self.lock_execution(execution)?;
        let Some(mut book) = self.working(execution)? else {
            return Ok(false);
        };
        let Some(found) = self.find_kept(&key.id(), Some(&book), Aside::Holding)? else {
            return Ok(false);
        };
        let _file_held = file::lock(&self.place(execution, key.step, None)?, self.patience)?;
        // Never given again: an id names one content for ever.
        book.note_attempt((key.step, key.attempt));
        if let (Some(removed), Some(one)) = (&mut book.removed, Removed::of(&found)) {
            removed.push(one);
        }
        book.unsettled = true;
        self.write_book(&mut book)?;
        file::remove(&self.canonical(execution, key.step, Some(key.attempt))?)?;
        file::remove(&found.path)?;
        self.settle(&mut book)?;
        if !self.steps(execution)?.contains_key(&key.step) {
            file::remove(&file::lock_path(&self.canonical(execution, key.step, None)?))?;
        }
        Ok(true)
    }

    fn delete_execution(&self, execution: &ExecutionId) -> Result<bool, StateError> {
        if !self.is_there(execution)? {
            return Ok(false);
        }
        let _held = self.lock_execution(execution)?;
        let mut book = match self.working(execution) {
            Ok(Some(book)) => book,
            Ok(None) => return Ok(false),
            // What cannot be read can be removed.
            Err(StateError::Damaged { .. }) => Book::begin(execution),
            Err(error) => return Err(error),
        };
        book.deleted = true;
        self.write_book(&mut book)?;
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
        Err(StateError::Unsupported { what: "a fork", store: STORE })
    }

    fn switch(&self, execution: &ExecutionId, branch: &BranchName) -> Result<(), StateError> {
        if !self.is_there(execution)? {
            return Err(StateError::NoExecution(execution.clone()));
        }
        only_main(execution, Some(branch))
    }

    fn move_head(&self, step: &HeadMove<'_>) -> Result<MoveOutcome, StateError> {
        let HeadMove { execution, branch, to, by } = *step;
        only_main(execution, branch)?;
        let unknown = || StateError::NoExecution(execution.clone());
        if !self.is_there(execution)? {
            return Err(unknown());
        }
        let _held = self.lock_execution(execution)?;
        let mut book = self.working(execution)?.ok_or_else(unknown)?;
        let moved = |from, to| MoveOutcome { branch: BranchName::main(), from, to };
        if let Some(done) = book.moves.iter().find(|done| Some(done.by) == by) {
            return Ok(moved(done.from, done.to));
        }
        let from = book.line;
        book.line = match to {
            MoveTo::Line(line) if book.lines.contains_key(&line.0) => line,
            MoveTo::Line(line) => {
                return Err(StateError::NoLine { execution: execution.clone(), line });
            }
            MoveTo::Checkpoint(key) => {
                let found = match key.execution == *execution {
                    true => self.find_kept(&key.id(), Some(&book), Aside::Holding)?,
                    false => None,
                };
                let found = found.ok_or_else(|| StateError::NotFound { id: key.id() })?;
                book.add_line(&found.entry())
            }
        };
        let to = book.line;
        book.moves.extend(by.map(|by| KeptMove { by, from, to }));
        book.unsettled = true;
        self.write_book(&mut book)?;
        self.settle(&mut book)?;
        Ok(moved(from, to))
    }

    fn count_retry(
        &self,
        execution: &ExecutionId,
        step: StepIndex,
        most: u32,
    ) -> Result<u32, StateError> {
        let unknown = || StateError::NoExecution(execution.clone());
        if !self.is_there(execution)? {
            return Err(unknown());
        }
        let _held = self.lock_execution(execution)?;
        let mut book = self.working(execution)?.ok_or_else(unknown)?;
        let count = book.retries.get(&step.0).copied().unwrap_or(0);
        if count >= most {
            let execution = execution.clone();
            return Err(StateError::RetriesExhausted { execution, step, count });
        }
        book.retries.insert(step.0, count + 1);
        self.write_book(&mut book)?;
        Ok(count + 1)
    }

    fn declare_effect(&self, new: &NewEffect<'_>) -> Result<IntentOutcome, StateError> {
        check_depth("intent", new.intent)?;
        let _held = self.lock_execution(new.execution)?;
        let book = self.working(new.execution)?;
        let mut book = book.unwrap_or_else(|| Book::begin(new.execution));
        self.check_lost(&book)?;
        if let Some(effect) = book.effects.iter().find(|effect| effect.key == new.key) {
            return Ok(IntentOutcome { effect: effect.effect(), is_new: false });
        }
        let kept = KeptEffect {
            key: new.key.to_owned(),
            step: new.step,
            intent: new.intent.clone(),
            intended_at: new.time,
            receipt: None,
        };
        let effect = kept.effect();
        book.effects.push(kept);
        self.write_book(&mut book)?;
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
        if !self.is_there(execution)? {
            return Err(missing());
        }
        let _held = self.lock_execution(execution)?;
        let mut book = self.working(execution)?.ok_or_else(missing)?;
        self.check_lost(&book)?;
        let effect =
            book.effects.iter_mut().find(|effect| effect.key == key).ok_or_else(missing)?;
        if effect.receipt.is_some() {
            return Ok(());
        }
        effect.receipt = Some(KeptReceipt { receipt: receipt.clone(), received_at: time });
        self.write_book(&mut book)
    }

    fn withdraw_effect(&self, execution: &ExecutionId, key: &str) -> Result<bool, StateError> {
        if !self.is_there(execution)? {
            return Ok(false);
        }
        let _held = self.lock_execution(execution)?;
        let Some(mut book) = self.working(execution)? else {
            return Ok(false);
        };
        self.check_lost(&book)?;
        let before = book.effects.len();
        book.effects.retain(|effect| effect.key != key || effect.receipt.is_some());
        let was_there = book.effects.len() < before;
        if was_there {
            self.write_book(&mut book)?;
        }
        Ok(was_there)
    }

    fn effects(&self, execution: &ExecutionId) -> Result<Vec<Effect>, StateError> {
        self.reading(execution, &mut |book| {
            let Some(book) = self.or_rebuilt(execution, book, None)? else {
                return Ok(Vec::new());
            };
            self.check_lost(&book)?;
            Ok(book.effects.iter().map(KeptEffect::effect).collect())
        })
    }

    fn points(&self) -> Result<HashSet<PointId>, StateError> {
        let mut points = HashSet::new();
        for path in self.checkpoint_files()? {
            match self.kept(&path, Aside::Never) {
                Ok(kept) => points.extend(kept.and_then(|kept| kept.point)),
                // Whatever point it carried, it can no longer be gone back to.
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

    /// Removes what writers left behind that did not finish.
    fn collect(&self) -> Result<(), StateError> {
        let folders = [CHECKPOINTS, EXECUTIONS].into_iter();
        for folder in folders.chain(Category::ALL.map(Category::name)) {
            for path in self.names(folder)? {
                let unfinished = path.to_str().and_then(|path| {
                    let (of, process) = path.strip_suffix(".new")?.rsplit_once('.')?;
                    process.bytes().all(|byte| byte.is_ascii_digit()).then_some(of)
                });
                let Some(of) = unfinished else { continue };
                // Whoever writes a file beside its place holds its lock.
                match file::lock(Path::new(of), Duration::ZERO) {
                    Ok(_held) => drop(file::remove(&path)?),
                    Err(StateError::Locked { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// What was set aside is named until it is removed. Nothing is set aside here.
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
            note(self.kept(&path, Aside::Never).map(drop))?;
        }
        for path in self.files(EXECUTIONS)? {
            note(self.book_at(&path, Aside::Never).map(drop))?;
        }
        for category in Category::ALL {
            for path in self.files(category.name())? {
                note(self.kept_document(&path, Aside::Never).map(drop))?;
            }
        }
        for (part, files) in self.parts()? {
            found.extend(self.missing_files(&part, &files)?);
        }
        let folders = [CHECKPOINTS, EXECUTIONS].into_iter();
        for folder in folders.chain(Category::ALL.map(Category::name)) {
            for path in self.names(folder)? {
                let name = path.file_name().and_then(|name| name.to_str());
                if name.is_some_and(|name| name::original(name).is_some()) {
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

/// What cannot be read, for a list; any other failure is the list's own.
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

/// The part of a file's name before `.json`.
fn stem(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.strip_suffix(".json")
}
