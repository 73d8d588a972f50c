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
//! There is one branch, `main`: [`StateStore::fork`] is [`StateError::Unsupported`].

mod book;
mod file;
mod folder;
mod missing;
mod name;
mod record;
mod settle;

pub use name::part_of;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use self::book::{Book, KeptEffect, KeptMove, KeptReceipt, Removed, Saving};
use self::file::io_error;
use self::folder::{Aside, CHECKPOINTS, EXECUTIONS, Steps};
use self::missing::{Missing, asides_of};
use self::record::{Kept, Own, check_depth};
use crate::disk;
use crate::id::{PointId, SessionId, Timestamp};
use crate::state::{
    Attempt, BranchName, Category, Checkpoint, CheckpointId, CheckpointKey, Damaged, DocumentKey,
    Effect, Execution, ExecutionId, Executions, Head, HeadMove, Intended, LineId, ListQuery,
    MoveTo, Moved, NewCheckpoint, NewEffect, Page, Record, Saved, StateError, StateStore, Status,
    StepIndex, Which,
};

const STORE: &str = "JSON files";
/// How often a reader looks again when others write, before it makes them wait.
const LOOKS: u32 = 8;

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

impl JsonStates {
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

impl StateStore for JsonStates {
    fn save(&self, new: &NewCheckpoint<'_>) -> Result<Saved, StateError> {
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
            return Ok(Saved { record, is_new: false });
        }
        if let Some(attempt) = new.attempt {
            let key = CheckpointKey { execution: execution.clone(), step, attempt };
            match self.find_kept(&key.id(), Some(&book), Aside::Holding)? {
                Some(found)
                    if is_same(&found.kept, new) && self.follows(&found.kept, new, &book)? =>
                {
                    return Ok(Saved { record: found.split().0, is_new: false });
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
        Ok(Saved { record: kept.record(attempt, true).0, is_new: true })
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
        let execution = query.execution;
        self.reading(execution, &mut |book| {
            let mut steps = self.steps(execution)?;
            if let Which::Branch(branch) = query.which
                && (book.is_some() || !steps.is_empty())
            {
                only_main(execution, branch)?;
            }
            let mut page = self.page(query, book, &steps)?;
            // A save gives a number to what was the newest, and that its name to another: one that is
            // seen from before the first and read after the second would be missing.
            for _ in 0..LOOKS {
                let present = self.steps(execution)?;
                if present == steps {
                    break;
                }
                steps = present;
                let before = page.damaged;
                page = self.page(query, book, &steps)?;
                // Why it was set aside is known to whoever did it.
                for damaged in &mut page.damaged {
                    if let Some(known) = before.iter().find(|known| known.what == damaged.what) {
                        *damaged = known.clone();
                    }
                }
            }
            // The names alone show whether to look.
            if let Some(book) = book.filter(|_| query.after.is_none())
                && self.lacks_files(book, &steps)
            {
                page.damaged.extend(self.missing(execution, book, &steps)?);
            }
            Ok(page)
        })
    }

    /// A newest attempt that is damaged is passed over, with its step.
    fn last_successful(
        &self,
        execution: &ExecutionId,
        branch: Option<&BranchName>,
        before: Option<StepIndex>,
    ) -> Result<Option<Record>, StateError> {
        self.reading(execution, &mut |book| {
            let steps = self.steps(execution)?;
            if book.is_some() || !steps.is_empty() {
                only_main(execution, branch)?;
            }
            let before = before.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
            for (_, files) in steps.range((std::ops::Bound::Unbounded, before)).rev() {
                for path in files.paths(false) {
                    let found = match self.found(execution, path, book, Aside::Locking) {
                        Err(StateError::Damaged { .. }) => None,
                        found => found?,
                    };
                    if let Some(found) = found.filter(|found| found.kept.status == Status::Success)
                    {
                        return Ok(Some(found.split().0));
                    }
                }
            }
            Ok(None)
        })
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
        let mut all = Executions::default();
        let mut listed = Vec::new();
        for (part, files) in self.parts()? {
            let execution = match self.execution_of(&part, &files) {
                Ok(Some(execution)) => execution,
                Ok(None) => continue,
                Err(error) => {
                    all.damaged.push(damaged(error)?);
                    continue;
                }
            };
            let told = self.reading(&execution, &mut |book| {
                let Some(mut book) = self.or_rebuilt(&execution, book, Some(&files))? else {
                    return Ok(None);
                };
                let mut damaged = Vec::new();
                let before = book.clone();
                let head = self.stand(&mut book, Aside::Locking, &mut damaged);
                Ok(Some((head, damaged, before)))
            });
            let (head, passed_over, book) = match told {
                Ok(Some(told)) => told,
                Ok(None) => continue,
                Err(error) => {
                    all.damaged.push(damaged(error)?);
                    continue;
                }
            };
            // One that was found damaged has another name since.
            let files = match passed_over.is_empty() {
                true => files,
                false => self.steps(&execution)?,
            };
            let checkpoints = self.count(&files);
            let missing = Missing::by_count(&book, checkpoints, asides_of(&files));
            all.damaged.extend(missing.iter().flat_map(|missing| missing.damaged(&execution)));
            let session = book.session;
            all.damaged.extend(passed_over);
            let head = match head {
                Ok(head) => head,
                Err(error) => {
                    all.damaged.push(damaged(error)?);
                    None
                }
            };
            let time = head.as_ref().map(|head| head.time);
            let branches = vec![BranchName::main()];
            let execution = Execution { id: execution, branches, session, checkpoints, head };
            // When a file was written is when its checkpoint was saved: names change later, bytes
            // never do.
            listed.push(((Self::last_write(&files), time), execution));
        }
        for folder in [CHECKPOINTS, EXECUTIONS] {
            for path in self.names(folder)? {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let aside = self.set_aside_before(folder, name);
                let is_told = all.damaged.iter().any(|damaged| damaged.what == aside.what);
                if name::original(name).is_some() && !is_told {
                    all.damaged.push(aside);
                }
            }
        }
        listed.sort_by(|(a, _), (b, _)| b.cmp(a));
        all.executions = listed.into_iter().map(|(_, execution)| execution).collect();
        Ok(all)
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

    fn move_head(&self, step: &HeadMove<'_>) -> Result<Moved, StateError> {
        let HeadMove { execution, branch, to, by } = *step;
        only_main(execution, branch)?;
        let unknown = || StateError::NoExecution(execution.clone());
        if !self.is_there(execution)? {
            return Err(unknown());
        }
        let _held = self.lock_execution(execution)?;
        let mut book = self.working(execution)?.ok_or_else(unknown)?;
        let moved = |from, to| Moved { branch: BranchName::main(), from, to };
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

    fn intend(&self, new: &NewEffect<'_>) -> Result<Intended, StateError> {
        check_depth("intent", new.intent)?;
        let _held = self.lock_execution(new.execution)?;
        let book = self.working(new.execution)?;
        let mut book = book.unwrap_or_else(|| Book::begin(new.execution));
        self.check_lost(&book)?;
        if let Some(effect) = book.effects.iter().find(|effect| effect.key == new.key) {
            return Ok(Intended { effect: effect.effect(), is_new: false });
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
        Ok(Intended { effect, is_new: true })
    }

    fn receive(
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

    fn withdraw(&self, execution: &ExecutionId, key: &str) -> Result<bool, StateError> {
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
        check_depth("document", document)?;
        let folder = self.make_folder(category.name())?;
        let part = name::part_of(key.as_str());
        let path = folder.join(format!("{part}.json"));
        let _held = file::lock(&path, self.patience)?;
        let text = if name::is_cut(&part) {
            let fields = json!({ "key": key.as_str(), "document": document });
            let Value::Object(fields) = fields else { unreachable!("it is one") };
            file::text(fields)
        } else {
            file::pretty(document)
        };
        disk::replace_private_file_durably(&path, &text).map_err(io_error(&path, "write it"))?;
        if let Some(unencoded) = unencoded_document(&folder, key) {
            file::remove(&unencoded)?;
        }
        Ok(())
    }

    fn document(&self, category: Category, key: &DocumentKey) -> Result<Option<Value>, StateError> {
        let Some(path) = self.document_path(category, key)? else {
            return Ok(None);
        };
        Ok(self.kept_document(&path, Aside::Locking)?.map(|(_, document)| document))
    }

    fn documents(&self, category: Category) -> Result<Vec<DocumentKey>, StateError> {
        let mut keys = Vec::new();
        for path in self.files(category.name())? {
            let Some(part) = stem(&path) else { continue };
            let key = if name::is_cut(part) {
                self.kept_document(&path, Aside::Locking)?.and_then(|(key, _)| key)
            } else {
                name::key_of(part)
            };
            keys.extend(key.and_then(|key| DocumentKey::new(key).ok()));
        }
        keys.sort();
        keys.dedup();
        Ok(keys)
    }

    fn delete_document(&self, category: Category, key: &DocumentKey) -> Result<bool, StateError> {
        let Some(path) = self.document_path(category, key)? else {
            return Ok(false);
        };
        if std::fs::symlink_metadata(&path).is_err() {
            return Ok(false);
        }
        let _held = file::lock(&path, self.patience)?;
        let was_there = file::remove(&path)?;
        self.sync(&path)?;
        file::remove(&file::lock_path(&path))?;
        Ok(was_there)
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

impl JsonStates {
    /// What a query wants of these files.
    fn page(
        &self,
        query: &ListQuery<'_>,
        book: Option<&Book>,
        steps: &Steps,
    ) -> Result<Page, StateError> {
        let mut page = Page::default();
        let from = query.after.map_or(StepIndex(0), |(step, _)| step);
        for (step, files) in steps.range(from..) {
            let mut found = Vec::new();
            for path in files.paths(query.which == Which::All) {
                match self.found(query.execution, path, book, Aside::Locking) {
                    Ok(one) => found.extend(one),
                    Err(error) => page.damaged.push(damaged(error)?),
                }
            }
            page.damaged
                .extend(files.aside.iter().map(|name| self.set_aside_before(CHECKPOINTS, name)));
            found.sort_by_key(|found| (found.attempt, !found.is_newest));
            // A number that was given, and a save that was then cut off.
            found.dedup_by_key(|found| found.attempt);
            found.retain(|found| Some((*step, found.attempt)) > query.after);
            for found in found {
                if query.limit.is_some_and(|limit| page.records.len() >= limit) {
                    page.more = true;
                    return Ok(page);
                }
                page.records.push(found.split().0);
            }
        }
        Ok(page)
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

fn only_main(execution: &ExecutionId, branch: Option<&BranchName>) -> Result<(), StateError> {
    match branch.filter(|branch| **branch != BranchName::main()) {
        None => Ok(()),
        Some(branch) => {
            Err(StateError::NoBranch { execution: execution.clone(), branch: branch.clone() })
        }
    }
}

/// What cannot be read, for a list; any other failure is the list's own.
fn damaged(error: StateError) -> Result<Damaged, StateError> {
    match error {
        StateError::Damaged { what, why } => Ok(Damaged { what, why }),
        StateError::Newer { what, found, known } => Ok(Damaged {
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

/// Where a program that encodes nothing would have put a document, if that is elsewhere.
fn unencoded_document(folder: &Path, key: &DocumentKey) -> Option<PathBuf> {
    let key = key.as_str();
    let is_own = !key.contains(['/', '\0', '%']) && key.len() <= 250;
    (is_own && name::part_of(key) != key).then(|| folder.join(format!("{key}.json")))
}
