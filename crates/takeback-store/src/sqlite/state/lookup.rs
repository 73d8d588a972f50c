//! Finds executions, branches and checkpoints by their public names.

use rusqlite::Connection;

use super::rows::{self, BranchRow, ExecutionRow, Lineage, StepRow};
use crate::state::{
    Attempt, BranchName, CheckpointId, Damage, ExecutionId, ListQuery, ListScope, Page, Record,
    StateError, StepIndex,
};

pub(super) fn known(db: &Connection, id: &ExecutionId) -> rows::Result<ExecutionRow> {
    rows::execution(db, id)?.ok_or_else(|| StateError::NoExecution(id.clone()).into())
}

pub(super) fn branch_of(
    db: &Connection,
    id: &ExecutionId,
    execution: &ExecutionRow,
    branch: Option<&BranchName>,
) -> rows::Result<BranchRow> {
    match branch {
        None => rows::branch(db, execution.branch),
        Some(name) => rows::branch_named(db, execution.id, name)?.ok_or_else(|| {
            StateError::NoBranch { execution: id.clone(), branch: name.clone() }.into()
        }),
    }
}

/// The first of `attempts` (newest first) that is on a lineage.
pub(super) fn newest_on<'a>(lineage: &Lineage, attempts: &'a [StepRow]) -> Option<&'a StepRow> {
    attempts.iter().find(|row| lineage.has(row))
}

/// The row with this id, and whether it is the newest attempt on the current branch.
pub(super) fn named(
    db: &Connection,
    execution: &ExecutionRow,
    id: &CheckpointId,
) -> rows::Result<Option<(StepRow, bool)>> {
    let attempts = rows::attempts(db, execution.id, id.step)?;
    if attempts.is_empty() {
        return Ok(None);
    }
    let current = Lineage::of(db, rows::branch(db, execution.branch)?.line)?;
    let newest = newest_on(&current, &attempts).map(|row| row.id);
    let row = match id.attempt {
        Some(attempt) => attempts.into_iter().find(|row| row.attempt == attempt),
        None => attempts.into_iter().find(|row| Some(row.id) == newest),
    };
    Ok(row.map(|row| {
        let is_newest = Some(row.id) == newest;
        (row, is_newest)
    }))
}

/// The public record of the row with this number.
pub(super) fn record_at(
    db: &Connection,
    id: &ExecutionId,
    execution: &ExecutionRow,
    step: i64,
) -> rows::Result<Option<Record>> {
    let Some(row) = rows::step(db, step)? else { return Ok(None) };
    let key = CheckpointId { execution: id.clone(), step: row.step, attempt: Some(row.attempt) };
    match named(db, execution, &key)? {
        Some((row, is_newest)) => rows::record(db, id, row, is_newest).map(Some),
        None => Ok(None),
    }
}

pub(super) fn list(db: &Connection, query: &ListQuery<'_>) -> rows::Result<Page> {
    let id = query.execution;
    let Some(execution) = rows::execution(db, id)? else { return Ok(Page::default()) };
    let current = Lineage::of(db, rows::branch(db, execution.branch)?.line)?;
    let wanted = match query.scope {
        ListScope::Branch(branch) => {
            Some(Lineage::of(db, branch_of(db, id, &execution, branch)?.line)?)
        }
        ListScope::All => None,
    };
    // Collect all attempts of a step before choosing the newest. Start one step earlier than asked
    // for, or an older attempt of that step would be taken for the newest.
    let start = query.after.and_then(|(step, _)| step.0.checked_sub(1));
    let start = start.map(|step| (StepIndex(step), Attempt::LAST));
    let limit = query.limit.unwrap_or(usize::MAX);
    let mut page = Page::default();
    let mut attempts: Vec<StepRow> = Vec::new();
    let mut flush = |attempts: &mut Vec<StepRow>| -> rows::Result<bool> {
        let newest = attempts.iter().rev().find(|row| current.has(row)).map(|row| row.id);
        let chosen: Vec<StepRow> = match &wanted {
            Some(wanted) => {
                attempts.drain(..).rev().find(|row| wanted.has(row)).into_iter().collect()
            }
            None => std::mem::take(attempts),
        };
        attempts.clear();
        for row in chosen {
            if query.after.is_some_and(|after| (row.step, row.attempt) <= after) {
                continue;
            }
            if page.records.len() == limit {
                page.more = true;
                return Ok(false);
            }
            let is_newest = Some(row.id) == newest;
            page.records.push(rows::record(db, id, row, is_newest)?);
        }
        Ok(true)
    };
    let mut go_on = true;
    let mut damaged = Vec::new();
    rows::each_step_after(db, execution.id, start, &mut |row| {
        let row = match row {
            Err(rows::RowError::State(StateError::Damaged { what, why })) => {
                damaged.push(Damage { what, why });
                return Ok(true);
            }
            row => row?,
        };
        if attempts.last().is_some_and(|last| last.step != row.step) {
            go_on = flush(&mut attempts)?;
        }
        attempts.push(row);
        Ok(go_on)
    })?;
    if go_on {
        flush(&mut attempts)?;
    }
    page.damaged = damaged;
    Ok(page)
}
