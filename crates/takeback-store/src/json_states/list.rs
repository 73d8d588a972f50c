//! Lists checkpoints and executions, together with what is damaged or missing.

use super::book::Book;
use super::folder::{Aside, CHECKPOINTS, EXECUTIONS, Steps};
use super::missing::{Missing, asides_of};
use super::{JsonStates, damaged, name, only_main};
use crate::state::{
    BranchName, Execution, ExecutionId, Executions, ListQuery, ListScope, Page, Record, StateError,
    Status, StepIndex,
};

/// How often a reader looks again when others write, before it makes them wait.
pub(super) const LOOKS: u32 = 8;

impl JsonStates {
    pub(super) fn list_checkpoints(&self, query: &ListQuery<'_>) -> Result<Page, StateError> {
        let execution = query.execution;
        self.reading(execution, &mut |book| {
            let mut steps = self.steps(execution)?;
            if let ListScope::Branch(branch) = query.scope
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
    pub(super) fn find_last_success(
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

    pub(super) fn list_executions(&self) -> Result<Executions, StateError> {
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
            for path in files.paths(query.scope == ListScope::All) {
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
