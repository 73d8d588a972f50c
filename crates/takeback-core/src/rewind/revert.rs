//! Reverts a rewind of files and state that had to be all or nothing and could not be done completely.
//!
//! The revert is an undo with a journal of its own, so a crash in the middle of it leaves two open journals.
//! Recovery continues with the undo that has begun, and closes the reverted rewind last.

use std::collections::BTreeSet;

use takeback_store::{RewindKind, RewindRecord, RewindState};

use super::error::RewindError;
use super::plan::Plan;
use super::receipt::Receipt;
use super::request::{RewindRequest, Target};
use super::state_move::StateMove;
use super::{Start, apply_and_close, begin, finish, journal, look_and_plan};
use crate::workspace::Workspace;

/// Takes back what was done of a rewind, and closes its journal without a change in the log.
pub(super) fn revert(
    workspace: &mut Workspace,
    plan: &Plan,
    record: RewindRecord,
    receipt: Receipt,
) -> Result<Receipt, RewindError> {
    let mut refused = receipt.refused();
    let undoes = |other: &RewindRecord| other.kind == (RewindKind::Undo { of: record.id });
    let begun = workspace.store.rewinds()?.into_iter().find(undoes);
    let undone = match begun {
        Some(undo) if undo.state == RewindState::Open => {
            let now = undo.created_at;
            match journal::plan_of(&undo) {
                Ok(planned) => Some(apply_and_close(workspace, &planned, undo, now)?),
                // The next recovery closes it.
                Err(_) => None,
            }
        }
        Some(_) => None,
        None => Some(undo(workspace, plan)?),
    };
    if let Some(undone) = undone {
        refused.conflicts.extend(undone.conflicts);
        refused.errors.extend(undone.errors);
    }
    journal::close_without_changes(&mut *workspace.store, record)?;
    Ok(refused)
}

/// The whole order once more, for an undo.
fn undo(workspace: &mut Workspace, plan: &Plan) -> Result<Receipt, RewindError> {
    let request = RewindRequest::new(Target::Undo);
    let mut lost = BTreeSet::new();
    loop {
        let mut back = look_and_plan(workspace, &request, &lost)?;
        // The process that made the promise may have moved the head before it was stopped.
        back.plan.state = plan.state.as_ref().map(StateMove::reversed);
        back.plan.is_revert = true;
        match begin(workspace, &back)? {
            Start::Promised(record) => {
                let now = record.created_at;
                return finish(workspace, &back.plan, record, now);
            }
            Start::Lost(more) => lost.extend(more),
        }
    }
}
