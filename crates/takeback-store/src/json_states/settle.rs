//! An execution under its lock: what a writer that was cut off left is finished before anything else.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use serde_json::Value;

use super::book::{Book, Entry};
use super::file::{self, Held, Unusable, io_error};
use super::folder::{
    Aside, CHECKPOINTS, EXECUTIONS, Found, Steps, aside_path, asides, is_same_file, is_there,
};
use super::list::LOOKS;
use super::{JsonStates, name};
use crate::disk;
use crate::state::{
    CheckpointId, Damage, ExecutionId, ExpectedHead, NewCheckpoint, Record, StateError,
};

impl JsonStates {
    pub(super) fn book_path(&self, execution: &ExecutionId) -> Result<PathBuf, StateError> {
        let name = format!("{}.json", name::part_of(execution.as_str()));
        Ok(self.folder(EXECUTIONS)?.join(name))
    }

    /// Holds off every other writer of an execution.
    pub(super) fn lock_execution(&self, execution: &ExecutionId) -> Result<Held, StateError> {
        self.make_folder(EXECUTIONS)?;
        self.make_folder(CHECKPOINTS)?;
        file::lock(&self.book_path(execution)?, self.patience)
    }

    pub(super) fn book_at(&self, path: &Path, aside: Aside) -> Result<Option<Book>, StateError> {
        self.read(path, aside, &|bytes| {
            let mut fields = file::fields(bytes)?;
            fields.remove("format");
            let book: Book = serde_json::from_value(Value::Object(fields))
                .map_err(|error| Unusable::Damaged(error.to_string()))?;
            let name = format!("{}.json", name::part_of(book.execution_id.as_str()));
            match path.file_name().is_some_and(|found| *found == *name) {
                true => Ok(book),
                false => Err(Unusable::Damaged("it is not what its name says".to_owned())),
            }
        })
    }

    pub(super) fn write_book(&self, book: &mut Book) -> Result<(), StateError> {
        book.revision += 1;
        let path = self.book_path(&book.execution_id)?;
        let Value::Object(fields) = serde_json::to_value(&*book).expect("it is plain data") else {
            unreachable!("it has fields");
        };
        disk::replace_private_file_durably(&path, &file::text(fields))
            .map_err(io_error(&path, "write it"))
    }

    /// The book of an execution whose lock is held, with nothing left to finish.
    pub(super) fn working(&self, execution: &ExecutionId) -> Result<Option<Book>, StateError> {
        let Some(mut book) = self.book_at(&self.book_path(execution)?, Aside::Holding)? else {
            return self.rebuilt(execution, &self.steps(execution)?, Aside::Holding);
        };
        if book.deleted {
            self.finish_deletion(execution)?;
            return Ok(None);
        }
        self.resolve(&mut book)?;
        if book.unsettled {
            self.settle(&mut book)?;
        }
        Ok(Some(book))
    }

    /// Runs `read` on an execution as it was at one moment. It gets the book, if there is one.
    pub(super) fn reading<T>(
        &self,
        execution: &ExecutionId,
        read: &mut dyn FnMut(Option<&Book>) -> Result<T, StateError>,
    ) -> Result<T, StateError> {
        let path = self.book_path(execution)?;
        for _ in 0..LOOKS {
            let stamp = stamp(&path);
            let book = self.book_at(&path, Aside::Locking)?;
            let revision = book.as_ref().map(|book| book.revision);
            let book = match book {
                Some(book) if book.deleted || book.unsettled => {
                    let _held = self.lock_execution(execution)?;
                    self.working(execution)?;
                    continue;
                }
                Some(mut book) => {
                    self.resolve(&mut book)?;
                    Some(book).filter(|book| !book.is_blank())
                }
                None => None,
            };
            let answer = read(book.as_ref());
            let present = self.book_at(&path, Aside::Locking)?.map(|book| book.revision);
            if present == revision && self::stamp(&path) == stamp {
                return answer;
            }
        }
        let _held = self.lock_execution(execution)?;
        let book = self.working(execution)?;
        read(book.as_ref().filter(|book| is_there(&path) && !book.is_blank()))
    }

    /// Whether the last save was done: its file is there, is damaged, or was noted.
    fn resolve(&self, book: &mut Book) -> Result<(), StateError> {
        let Some(saving) = book.saving.take() else {
            return Ok(());
        };
        let path = self.canonical(&book.execution_id, saving.step, None)?;
        let was_set_aside = || asides(&path) > saving.asides;
        let is_done = match saving.replaces {
            false => is_there(&path) || was_set_aside(),
            true => match self.kept(&path, Aside::Never) {
                Ok(Some(kept)) => kept.own.is_some_and(|own| own.position == saving.position),
                Ok(None) => was_set_aside(),
                Err(StateError::Damaged { .. } | StateError::Newer { .. }) => true,
                Err(error) => return Err(error),
            },
        };
        // Its file may have been deleted since.
        if is_done || file::noted_save(&path) == Some(saving.position) {
            book.has_saved(saving);
        }
        Ok(())
    }

    /// Every checkpoint that can be read. Nothing is set aside.
    pub(super) fn readable(
        &self,
        execution: &ExecutionId,
        steps: &Steps,
        book: &Book,
    ) -> Result<Vec<Found>, StateError> {
        match self.all(execution, steps, Some(book), Aside::Never) {
            // What is newer counts as there.
            Err(StateError::Newer { .. }) => Ok(Vec::new()),
            all => all,
        }
    }

    /// What can be known of an execution without its file; `None` if there is nothing of it.
    fn rebuilt(
        &self,
        execution: &ExecutionId,
        steps: &Steps,
        aside: Aside,
    ) -> Result<Option<Book>, StateError> {
        let path = self.book_path(execution)?;
        let lost: Vec<_> = (1..=asides(&path)).map(|number| aside_path(&path, number)).collect();
        if steps.is_empty() && lost.is_empty() {
            return Ok(None);
        }
        let entries: Vec<_> =
            self.all(execution, steps, None, aside)?.iter().map(Found::entry).collect();
        let mut book = Book::rebuilt(execution, &entries);
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().display().to_string();
        book.lost = lost.iter().map(name).collect();
        Ok(Some(book))
    }

    pub(super) fn or_rebuilt(
        &self,
        execution: &ExecutionId,
        book: Option<&Book>,
        steps: Option<&Steps>,
    ) -> Result<Option<Book>, StateError> {
        match (book, steps) {
            (Some(book), _) => Ok(Some(book.clone())),
            (None, Some(steps)) => self.rebuilt(execution, steps, Aside::Locking),
            (None, None) => self.rebuilt(execution, &self.steps(execution)?, Aside::Locking),
        }
    }

    /// Every checkpoint that can be read, each once.
    fn all(
        &self,
        execution: &ExecutionId,
        steps: &Steps,
        book: Option<&Book>,
        aside: Aside,
    ) -> Result<Vec<Found>, StateError> {
        let mut all = Vec::new();
        for files in steps.values() {
            let mut of_step: Vec<Found> = Vec::new();
            for path in files.paths(true) {
                match self.found(execution, path, book, aside) {
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

    pub(super) fn is_there(&self, execution: &ExecutionId) -> Result<bool, StateError> {
        let path = self.book_path(execution)?;
        Ok(is_there(&path) || is_there(&aside_path(&path, 1)) || !self.steps(execution)?.is_empty())
    }

    /// The checkpoint at which the current line stands. One that is damaged or gone is passed over, as
    /// if it had been deleted: the heads of `book` are then what is left. What is damaged is noted.
    pub(super) fn stand(
        &self,
        book: &mut Book,
        aside: Aside,
        note: &mut Vec<Damage>,
    ) -> Result<Option<Record>, StateError> {
        let mut at_head = |book: &Book| {
            let Some((step, attempt)) = book.head() else {
                return Ok(None);
            };
            let execution = book.execution_id.clone();
            let id = CheckpointId { execution, step, attempt: Some(attempt) };
            match self.find_kept(&id, Some(book), aside) {
                Ok(found) => Ok(found.map(|found| found.split().0)),
                Err(StateError::Damaged { what, why }) => {
                    note.push(Damage { what, why });
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        };
        let record = at_head(book)?;
        if record.is_some() || book.head().is_none() {
            return Ok(record);
        }
        let execution = book.execution_id.clone();
        let all = self.all(&execution, &self.steps(&execution)?, Some(book), aside)?;
        let entries: Vec<Entry> = all.iter().map(Found::entry).collect();
        book.mend_heads(&entries);
        at_head(book)
    }

    pub(super) fn check_parent(
        &self,
        new: &NewCheckpoint<'_>,
        book: &Book,
    ) -> Result<(), StateError> {
        let execution = new.execution;
        let id = CheckpointId { execution: execution.clone(), step: new.step, attempt: None };
        let expected = match new.expect {
            ExpectedHead::Anything => return Ok(()),
            ExpectedHead::Newest(None) => None,
            ExpectedHead::Newest(Some(parent)) => {
                let found = match parent.execution == *execution {
                    true => self.find_kept(parent, Some(book), Aside::Holding)?,
                    false => None,
                };
                let Some(found) = found else {
                    return Err(StateError::MissingParent { id, parent: parent.clone() });
                };
                Some((found.kept.step, found.attempt))
            }
        };
        let head = book.head();
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

    /// As long as a file with effects lies aside, nobody knows which there were.
    pub(super) fn check_lost(&self, book: &Book) -> Result<(), StateError> {
        let folder = self.folder(EXECUTIONS)?;
        for name in &book.lost {
            let path = folder.join(name);
            if is_there(&path) {
                return Err(StateError::Damaged {
                    what: path.display().to_string(),
                    why: format!("the effects of {} are in it", book.execution_id),
                });
            }
        }
        Ok(())
    }

    /// Gives the newest attempt its number as a second name, so that the first can be another's.
    pub(super) fn give_number(&self, found: &Found) -> Result<(), StateError> {
        let to = self.canonical(&found.kept.execution, found.kept.step, Some(found.attempt))?;
        if self.link(&found.path, &to)? {
            self.sync(&to)?;
        }
        Ok(())
    }

    /// Whether it had that name not yet. What has it and is something else is in the way: if it is no
    /// checkpoint, it is set aside.
    fn link(&self, from: &Path, to: &Path) -> Result<bool, StateError> {
        if is_same_file(from, to) {
            return Ok(false);
        }
        match self.kept(to, Aside::Holding) {
            Ok(None) | Err(StateError::Damaged { .. }) => {}
            // A save that was cut off, where files have no second names.
            Ok(Some(kept)) if Some(&kept) == self.kept(from, Aside::Holding)?.as_ref() => {
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
            opened.map_err(|error| io_error(&folder, "use it as a folder")(error.into()))?;
        let name = |path: &Path| path.file_name().unwrap_or_default().as_encoded_bytes().to_vec();
        match disk::link(&opened, &name(from), &opened, &name(to)) {
            Ok(()) => Ok(true),
            // Not every file system knows how.
            Err(_) => {
                let Some(Ok(bytes)) = file::bytes(from)? else {
                    return Ok(false);
                };
                disk::replace_private_file_durably(to, &bytes).map_err(io_error(to, "write it"))?;
                Ok(true)
            }
        }
    }

    /// Gives every file the name that the current line gives it, and every line a head that is there.
    /// Each step leaves every checkpoint under a name, so that it can be done again from any.
    pub(super) fn settle(&self, book: &mut Book) -> Result<(), StateError> {
        let execution = book.execution_id.clone();
        let steps = self.steps(&execution)?;
        let all = self.all(&execution, &steps, Some(book), Aside::Holding)?;
        let entries: Vec<Entry> = all.iter().map(Found::entry).collect();
        let wanted = book.newest_on(book.line, &entries);
        let is_wanted = |found: &&Found| wanted.get(&found.kept.step) == Some(&found.attempt);
        for found in all.iter().filter(|found| found.is_newest && !is_wanted(found)) {
            let to = self.canonical(&execution, found.kept.step, Some(found.attempt))?;
            self.link(&found.path, &to)?;
        }
        let folder = self.canonical(&execution, crate::state::StepIndex(0), None)?;
        self.sync(&folder)?;
        let foreign = all.iter().filter(|found| found.kept.own.is_none() && is_wanted(found));
        let foreign = foreign.map(|found| (found.kept.step.0, found.attempt)).collect();
        if book.foreign != foreign {
            book.foreign = foreign;
            self.write_book(book)?;
        }
        for found in &all {
            let newest = self.canonical(&execution, found.kept.step, None)?;
            let number = self.canonical(&execution, found.kept.step, Some(found.attempt))?;
            match (found.is_newest, is_wanted(&found)) {
                (true, false) => {
                    // What is wanted instead may have taken the name already.
                    if !wanted.contains_key(&found.kept.step) || found.path != newest {
                        file::remove(&found.path)?;
                    }
                }
                (false, true) => disk::rename_private_file(&found.path, &newest)
                    .map_err(io_error(&newest, "rename it"))?,
                // A number that was given, and a save that was then cut off.
                (true, true) if is_there(&number) && !is_same_file(&number, &newest) => {}
                (true, true) => {
                    file::remove(&number)?;
                }
                (false, false) => {}
            }
        }
        self.sync(&folder)?;
        book.mend_heads(&entries);
        book.unsettled = false;
        self.write_book(book)
    }

    /// Removes all that is an execution's, its book last: as long as that is there, this goes on.
    pub(super) fn finish_deletion(&self, execution: &ExecutionId) -> Result<(), StateError> {
        let part = name::part_of(execution.as_str());
        let original = |name: &str| -> String {
            let name = name.strip_suffix(".lock").unwrap_or(name);
            let name = match name.strip_suffix(".new").and_then(|name| name.rsplit_once('.')) {
                Some((name, _process)) => name,
                None => name,
            };
            name::original(name).unwrap_or(name).to_owned()
        };
        for path in self.names(CHECKPOINTS)? {
            let name = path.file_name().and_then(|name| name.to_str()).map(original);
            let named = name.and_then(|name| name::parse(&name));
            if named.is_some_and(|named| named.part == part) {
                file::remove(&path)?;
            }
        }
        self.sync(&self.folder(CHECKPOINTS)?.join("all"))?;
        let book = self.book_path(execution)?;
        let lock = file::lock_path(&book);
        for path in self.names(EXECUTIONS)? {
            let name = path.file_name().and_then(|name| name.to_str()).map(original);
            let is_its = name.is_some_and(|name| name == format!("{part}.json"));
            if is_its && path != book && path != lock {
                file::remove(&path)?;
            }
        }
        file::remove(&book)?;
        self.sync(&book)?;
        file::remove(&lock)?;
        Ok(())
    }
}

/// Tells one file of a name from the next, also where what is in them is alike.
fn stamp(path: &Path) -> Option<(u64, i64, i64)> {
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((found.ino(), found.mtime(), found.mtime_nsec()))
}
