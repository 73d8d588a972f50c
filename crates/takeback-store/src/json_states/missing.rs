//! Checkpoints whose files another program deleted.
//!
//! Every save has a number, from 1 without a gap, and its file carries it. The execution's file knows how
//! many there were and which of them were deleted on purpose: any other number that no file carries is
//! missing. The last save is not in that count until the next write of the execution; that it was done
//! is noted in the lock file of its step.
//!
//! What is not known: files that go together with the file of their execution, files that another program
//! wrote over, and what an execution lost before its file had such a list.

use std::collections::BTreeSet;

use super::JsonStates;
use super::book::{Book, Place, Removed};
use super::folder::{Found, Steps};
use crate::state::{CheckpointKey, Damage, ExecutionId, StateError};

/// Checkpoints of an execution that are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missing {
    count: usize,
    /// Those that others name as their parent, or that were a head.
    named: Vec<Place>,
}

impl Missing {
    /// By the checkpoints that can be read; `unread`: how many files cannot, or were set aside.
    pub(super) fn of(book: &Book, found: &[Found], unread: usize) -> Option<Self> {
        let removed = book.removed.as_ref()?;
        let entries: Vec<_> = found.iter().map(Found::entry).collect();
        let present: BTreeSet<u64> = entries.iter().map(|entry| entry.position).collect();
        let is_removed = |position: &u64| removed.iter().any(|one| one.position == *position);
        let gone = (1..=book.saves).filter(|at| !present.contains(at) && !is_removed(at)).count();
        // Another program may have written over one of ours.
        let foreign = entries.iter().filter(|entry| entry.position == 0).count();
        let unread = unread + foreign;
        let count = gone.checked_sub(unread).filter(|count| *count > 0)?;
        let mut named: BTreeSet<Place> = entries.iter().filter_map(|entry| entry.parent).collect();
        named.extend(book.lines.values().filter_map(|line| line.head));
        named.retain(|place| {
            let is_there = entries.iter().any(|entry| entry.place == *place);
            !is_there && removed.iter().all(|one| one.place != *place)
        });
        // With files that cannot be read, these may be the ones.
        let named = if unread == 0 { named.into_iter().collect() } else { Vec::new() };
        Some(Self { count, named })
    }

    /// As many as the names of the files alone show.
    pub(super) fn by_count(book: &Book, checkpoints: u64, unread: usize) -> Option<Self> {
        let removed = book.removed.as_ref()?.len() as u64;
        let there = checkpoints + removed + unread as u64;
        let count = book.saves.checked_sub(there).filter(|count| *count > 0)?;
        Some(Self { count: usize::try_from(count).unwrap_or(usize::MAX), named: Vec::new() })
    }

    /// For a list of what cannot be read: one for each that has a name, one for the others.
    pub(super) fn damaged(&self, execution: &ExecutionId) -> Vec<Damage> {
        let named = self.named.iter().take(self.count).map(|(step, attempt)| {
            let key =
                CheckpointKey { execution: execution.clone(), step: *step, attempt: *attempt };
            Damage { what: key.id().to_string(), why: GONE.to_owned() }
        });
        let mut damaged: Vec<Damage> = named.collect();
        let others = self.count - damaged.len();
        if others > 0 {
            let what = match others {
                1 => format!("a checkpoint of execution {execution}"),
                others => format!("{others} checkpoints of execution {execution}"),
            };
            damaged.push(Damage { what, why: GONE.to_owned() });
        }
        damaged
    }
}

const GONE: &str = "its file is gone, and no command of Takeback deleted it";

/// How many files were set aside.
pub(super) fn asides_of(steps: &Steps) -> usize {
    steps.values().map(|files| files.aside.len()).sum()
}

/// How many files were set aside, or cannot be read.
fn unread(steps: &Steps, found: &[Found]) -> usize {
    let paths = steps.values().flat_map(|files| files.paths(true));
    // One that has two names is found once.
    let read = |path: &std::path::PathBuf| found.iter().any(|one| one.path == *path);
    let second_names = steps.iter().filter(|(step, files)| {
        files.newest.as_ref().is_some_and(|newest| {
            let of_step = found.iter().find(|one| one.path == *newest && one.kept.step == **step);
            of_step.is_some_and(|one| files.older.contains_key(&one.attempt))
        })
    });
    asides_of(steps) + paths.filter(|path| !read(path)).count().saturating_sub(second_names.count())
}

impl JsonStates {
    /// Whether there are fewer files than there must be, by their names.
    pub(super) fn lacks_files(&self, book: &Book, steps: &Steps) -> bool {
        Missing::by_count(book, self.count(steps), asides_of(steps)).is_some()
    }

    /// What is missing of an execution, by all of its files.
    pub(super) fn missing(
        &self,
        execution: &ExecutionId,
        book: &Book,
        steps: &Steps,
    ) -> Result<Vec<Damage>, StateError> {
        let found = self.readable(execution, steps, book)?;
        let missing = Missing::of(book, &found, unread(steps, &found));
        Ok(missing.map_or_else(Vec::new, |missing| missing.damaged(execution)))
    }
}

impl JsonStates {
    /// What [`Self::check`](crate::state::States::check) says of an execution's files that are gone.
    pub(super) fn missing_files(
        &self,
        part: &str,
        steps: &Steps,
    ) -> Result<Vec<String>, StateError> {
        let Ok(Some(execution)) = self.execution_of(part, steps) else { return Ok(Vec::new()) };
        let told = self.reading(&execution, &mut |book| match book {
            Some(book) => {
                let steps = self.steps(&execution)?;
                let missing = self.missing(&execution, book, &steps)?;
                Ok(missing
                    .into_iter()
                    .map(|Damage { what, why }| format!("{what}: {why}"))
                    .collect())
            }
            None => Ok(self.without_book(&execution, steps)?.into_iter().collect()),
        });
        match told {
            // Named by others already.
            Err(StateError::Damaged { .. } | StateError::Newer { .. }) => Ok(Vec::new()),
            told => told,
        }
    }

    /// A checkpoint of ours is never written without the file of its execution.
    fn without_book(
        &self,
        execution: &ExecutionId,
        steps: &Steps,
    ) -> Result<Option<String>, StateError> {
        let path = self.book_path(execution)?;
        let is_ours = |path: &std::path::PathBuf| {
            let kept = self.kept(path, super::folder::Aside::Never).ok().flatten();
            kept.is_some_and(|kept| kept.own.is_some())
        };
        let has_ours = steps.values().flat_map(|files| files.paths(true)).any(is_ours);
        let is_known = super::folder::is_there(&path)
            || super::folder::is_there(&super::folder::aside_path(&path, 1));
        Ok((has_ours && !is_known).then(|| {
            format!("{} is gone: retries and effects of {execution} are lost", path.display())
        }))
    }
}

impl Removed {
    pub(super) fn of(found: &Found) -> Option<Self> {
        let position = found.kept.own?.position;
        Some(Self { position, place: (found.kept.step, found.attempt) })
    }
}
