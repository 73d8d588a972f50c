//! Lists checkpoints and executions, together with what is damaged or missing.

use super::folder::{CHECKPOINTS, DamagePolicy, EXECUTIONS, Steps};
use super::manifest::Manifest;
use super::missing_files::{MissingCheckpoints, asides_of};
use super::{JsonStates, damaged, file_name, only_main};
use crate::state::{
    BranchName, Execution, ExecutionId, Executions, ListQuery, ListScope, Page, Record, StateError,
    Status, StepIndex,
};

/// How often a reader retries while other processes write, before it takes the lock.
pub(super) const LOOKS: u32 = 8;

impl JsonStates {
    pub(super) fn list_checkpoints(&self, query: &ListQuery<'_>) -> Result<Page, StateError> {
        let execution = query.execution;
        self.read_consistently(execution, &mut |manifest| {
            let mut steps = self.steps(execution)?;
            if let ListScope::Branch(branch) = query.scope
                && (manifest.is_some() || !steps.is_empty())
            {
                only_main(execution, branch)?;
            }
            let mut page = self.page(query, manifest, &steps)?;
            // A save links the newest attempt under its number and then reuses the short name. A
            // checkpoint listed before the first step and read after the second would be missing,
            // so list again until the names are stable.
            for _ in 0..LOOKS {
                let present = self.steps(execution)?;
                if present == steps {
                    break;
                }
                steps = present;
                let before = page.damaged;
                page = self.page(query, manifest, &steps)?;
                // The reason is known only from the read that set the file aside: keep it.
                for damaged in &mut page.damaged {
                    if let Some(known) = before.iter().find(|known| known.what == damaged.what) {
                        *damaged = known.clone();
                    }
                }
            }
            // File names are enough to see whether anything is missing.
            if let Some(manifest) = manifest.filter(|_| query.after.is_none())
                && self.lacks_files(manifest, &steps)
            {
                page.damaged.extend(self.missing(execution, manifest, &steps)?);
            }
            Ok(page)
        })
    }

    /// Skips a step whose newest attempt is damaged.
    pub(super) fn find_last_success(
        &self,
        execution: &ExecutionId,
        branch: Option<&BranchName>,
        before: Option<StepIndex>,
    ) -> Result<Option<Record>, StateError> {
        self.read_consistently(execution, &mut |manifest| {
            let steps = self.steps(execution)?;
            if manifest.is_some() || !steps.is_empty() {
                only_main(execution, branch)?;
            }
            let before = before.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
            for (_, files) in steps.range((std::ops::Bound::Unbounded, before)).rev() {
                for path in files.paths(false) {
                    let found = match self.found(
                        execution,
                        path,
                        manifest,
                        DamagePolicy::LockAndSetAside,
                    ) {
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
            let looked = self.read_consistently(&execution, &mut |manifest| {
                let Some(mut manifest) = self.or_rebuild(&execution, manifest, Some(&files))?
                else {
                    return Ok(None);
                };
                let mut damaged = Vec::new();
                let before = manifest.clone();
                let head =
                    self.load_head(&mut manifest, DamagePolicy::LockAndSetAside, &mut damaged);
                Ok(Some((head, damaged, before)))
            });
            let (head, passed_over, manifest) = match looked {
                Ok(Some(looked)) => looked,
                Ok(None) => continue,
                Err(error) => {
                    all.damaged.push(damaged(error)?);
                    continue;
                }
            };
            // A damaged file was renamed since: list again.
            let files = match passed_over.is_empty() {
                true => files,
                false => self.steps(&execution)?,
            };
            let checkpoints = self.count(&files);
            let missing = MissingCheckpoints::by_count(&manifest, checkpoints, asides_of(&files));
            all.damaged.extend(missing.iter().flat_map(|missing| missing.damaged(&execution)));
            let session = manifest.session;
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
            // The modification time is the time of the save: files are renamed later, but never
            // rewritten.
            listed.push(((Self::last_write(&files), time), execution));
        }
        for folder in [CHECKPOINTS, EXECUTIONS] {
            for path in self.names(folder)? {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let aside = self.set_aside_before(folder, name);
                let is_listed = all.damaged.iter().any(|damaged| damaged.what == aside.what);
                if file_name::original(name).is_some() && !is_listed {
                    all.damaged.push(aside);
                }
            }
        }
        listed.sort_by(|(a, _), (b, _)| b.cmp(a));
        all.executions = listed.into_iter().map(|(_, execution)| execution).collect();
        Ok(all)
    }

    /// The records in these files that match a query.
    fn page(
        &self,
        query: &ListQuery<'_>,
        manifest: Option<&Manifest>,
        steps: &Steps,
    ) -> Result<Page, StateError> {
        let mut page = Page::default();
        let from = query.after.map_or(StepIndex(0), |(step, _)| step);
        for (step, files) in steps.range(from..) {
            let mut found = Vec::new();
            for path in files.paths(query.scope == ListScope::All) {
                match self.found(query.execution, path, manifest, DamagePolicy::LockAndSetAside) {
                    Ok(one) => found.extend(one),
                    Err(error) => page.damaged.push(damaged(error)?),
                }
            }
            page.damaged
                .extend(files.aside.iter().map(|name| self.set_aside_before(CHECKPOINTS, name)));
            found.sort_by_key(|found| (found.attempt, !found.is_newest));
            // An interrupted save leaves the newest attempt with two names.
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
