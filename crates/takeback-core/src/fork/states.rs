//! The state of agents at a point, copied into the fork's own store, where it can be resumed.

use std::collections::BTreeSet;

use takeback_store::state::{
    CheckpointKey, ExecutionId, ExpectedHead, ListQuery, ListScope, NewCheckpoint, NewEffect,
    Record,
};
use takeback_store::{PointId, StateError, States};

/// Copies every execution that has a checkpoint at the point: that checkpoint, those it follows, and the effects
/// declared up to its step, so that they are not repeated. Returns the executions.
///
/// Copied checkpoints have no point: the fork's log begins later. An execution that `to` has is left as it is.
pub fn copy_states(
    from: &dyn States,
    to: &dyn States,
    point: PointId,
) -> Result<Vec<ExecutionId>, StateError> {
    if !from.points()?.contains(&point) {
        return Ok(Vec::new());
    }
    let known: BTreeSet<String> =
        to.executions()?.executions.iter().map(|one| one.id.to_string()).collect();
    let mut copied = Vec::new();
    for execution in from.executions()?.executions {
        let query =
            ListQuery { execution: &execution.id, scope: ListScope::All, after: None, limit: None };
        let records = from.list(&query)?.records;
        let Some(last) = records.iter().rfind(|record| record.point == Some(point)) else {
            continue;
        };
        if !known.contains(execution.id.as_str()) {
            for record in chain(&records, last) {
                copy(from, to, record)?;
            }
            copy_effects(from, to, &last.key)?;
        }
        copied.push(execution.id);
    }
    Ok(copied)
}

/// The checkpoints from the first to `last`, each followed by the next.
fn chain<'r>(records: &'r [Record], last: &'r Record) -> Vec<&'r Record> {
    let mut chain = vec![last];
    let mut at = last;
    while let Some((step, attempt)) = at.parent {
        let is_parent = |record: &&Record| (record.key.step, record.key.attempt) == (step, attempt);
        // Deleted, or damaged: what follows can be resumed without it.
        let Some(parent) = records.iter().find(is_parent) else { break };
        if chain.len() > records.len() {
            break;
        }
        chain.push(parent);
        at = parent;
    }
    chain.reverse();
    chain
}

fn copy(from: &dyn States, to: &dyn States, record: &Record) -> Result<(), StateError> {
    let id = record.key.id();
    let checkpoint = from.load(&id)?.ok_or(StateError::NotFound { id })?;
    to.save(&NewCheckpoint {
        execution: &record.key.execution,
        branch: None,
        step: record.key.step,
        attempt: None,
        step_name: &record.step_name,
        time: record.time,
        status: record.status,
        error: record.error.as_deref(),
        values: &checkpoint.values,
        expect: ExpectedHead::Anything,
        point: None,
        session: None,
    })
    .map(drop)
}

fn copy_effects(
    from: &dyn States,
    to: &dyn States,
    upto: &CheckpointKey,
) -> Result<(), StateError> {
    let execution = &upto.execution;
    for effect in from.effects(execution)? {
        if effect.step.is_some_and(|step| step > upto.step) {
            continue;
        }
        to.declare_effect(&NewEffect {
            execution,
            key: &effect.key,
            step: effect.step,
            intent: &effect.intent,
            time: effect.intended_at,
        })?;
        if let Some((receipt, time)) = &effect.receipt {
            to.confirm_effect(execution, &effect.key, receipt, *time)?;
        }
    }
    Ok(())
}
