//! The journal: a plan that was promised, until its receipt is in the log.
//!
//! Three commits concern it: the promise, before anything on disk is changed; the close, with the changes
//! that were made and the receipt; or its removal, if nothing was done. Between promise and close any
//! command that finds it open finishes it.

use takeback_store::{
    Author, Change, Evidence, Head, Point, PointBasis, PointId, PointKind, RewindId, RewindKind,
    RewindRecord, RewindState, Seq, Store, StoreError, Timestamp, Write,
};

use super::corrections;
use super::error::RewindError;
use super::history::clear_idle_note;
use super::plan::stream::{read_plan, write_plan};
use super::plan::{Plan, PlanHeader};
use super::preview::Preview;
use super::receipt::{Receipt, StepOutcome};
use super::state_move::StateMove;
use crate::git::git_state;
use crate::workspace::Workspace;

/// Commits the plan, durably, together with a safety point of the moment before. If the rewind has
/// already promised to close folders again, this takes the place of that promise.
pub(super) fn promise(
    workspace: &mut Workspace,
    preview: &Preview,
    id: RewindId,
) -> Result<RewindRecord, RewindError> {
    clear_idle_note(workspace);
    // The close writes where these are found. If that is damaged, nothing on disk may change.
    let head = workspace.store.head()?;
    workspace.store.rewind_changes_after(head.seq)?;
    let safety_point = match workspace.opened.promise {
        Some((_, safety_point)) => safety_point,
        None => PointId((workspace.ambient.random)()),
    };
    let now = (workspace.ambient.now)();
    let plan =
        write_plan(&preview.plan).map_err(|source| RewindError::UnwritablePlan { id, source })?;
    let mut record = RewindRecord {
        id,
        kind: preview.kind,
        state: RewindState::Open,
        began_at: Seq(0),
        safety_point,
        created_at: now,
        plan,
        receipt: None,
    };
    let description = describe(preview);
    let git = git_state(workspace.root.path());
    commit(&mut *workspace.store, |head| {
        record.began_at = head.seq;
        let point = Point {
            id: safety_point,
            seq: head.seq,
            session: None,
            kind: PointKind::Safety,
            description: description.clone(),
            label: None,
            pinned: false,
            created_at: now,
            message_ids: Vec::new(),
            git: git.clone(),
            basis: PointBasis::Scan,
        };
        let mut writes = vec![Write::Point(point), Write::Rewind(record.clone())];
        writes.extend(corrections::writes(&preview.plan.corrections));
        writes
    })?;
    Ok(record)
}

/// How the description of a safety point begins.
const BEFORE_THE: &str = "before the ";

/// What an operation is called in the log, by the description of its safety point.
#[must_use]
pub fn title_of(safety_point: &Point) -> Option<&str> {
    safety_point.description.strip_prefix(BEFORE_THE)
}

fn describe(preview: &Preview) -> String {
    match preview.kind {
        _ if preview.title.is_some() => {
            format!("{BEFORE_THE}{}", preview.title.as_deref().unwrap_or_default())
        }
        RewindKind::Rewind { .. } if preview.plan.state.is_some() => {
            let state = preview.plan.state.as_ref().map(StateMove::receipt);
            let to = state.and_then(|state| state.checkpoint).unwrap_or_default();
            format!("before the rollback to {to}")
        }
        RewindKind::Rewind { point } => format!("before the rewind to {point}"),
        RewindKind::Undo { of } => format!("before the undo of {of}"),
        RewindKind::Redo { of } => format!("before the redo of {of}"),
        RewindKind::Revert { point } => format!("before the revert of {point}"),
        RewindKind::Restore { point } => format!("before the restore from {point}"),
        RewindKind::Adopt { .. } => "before the adopt of a fork".to_owned(),
        RewindKind::Resolve { of } => format!("before the resolve of {of}"),
    }
}

/// What became of a promised plan.
pub(super) struct PlanOutcome<'a> {
    pub(super) plan: &'a Plan,
    /// One for each of the plan's actions, in their order.
    pub(super) outcomes: &'a [StepOutcome],
    pub(super) receipt: &'a Receipt,
    pub(super) time: Timestamp,
}

/// Commits a change for each step that is in place, and the record with its receipt. The record stays
/// open if its state says so: then the plan has to be reverted.
pub(super) fn close(
    store: &mut dyn Store,
    mut record: RewindRecord,
    done: &PlanOutcome<'_>,
) -> Result<(), RewindError> {
    record.receipt = Some(
        serde_json::to_string(done.receipt)
            .map_err(|source| RewindError::DamagedPlan { id: record.id, source })?,
    );
    let closed = commit(store, |head| {
        let mut seq = head.seq;
        let actions = done.plan.actions().zip(done.outcomes);
        let in_place = actions.filter(|(_, outcome)| outcome.is_in_place());
        let changes = in_place.map(|(step, _)| {
            seq = seq.next();
            Write::Change(Change {
                seq,
                path: step.path.clone(),
                before: step.present.clone(),
                after: step.goal().expect("an action has a goal"),
                author: Author::Rewind { id: record.id },
                evidence: Evidence::Named,
                time: done.time,
                changed_at: None,
                correction: None,
                cancels: step.cancels.clone(),
            })
        });
        let mut writes: Vec<Write> = changes.collect();
        writes.push(Write::Rewind(record.clone()));
        writes
    });
    closed.map_err(|source| RewindError::NotClosed {
        receipt: Box::new(done.receipt.clone()),
        source,
    })
}

/// Closes a record to which no change belongs: its plan was reverted, or cannot be read.
pub(super) fn close_without_changes(
    store: &mut dyn Store,
    record: RewindRecord,
) -> Result<(), StoreError> {
    let record = RewindRecord { state: RewindState::Done, ..record };
    commit(store, |_| vec![Write::Rewind(record.clone())])
}

/// Removes a journal of which nothing was done, with its safety point.
pub(super) fn remove(store: &mut dyn Store, record: &RewindRecord) -> Result<(), StoreError> {
    let drops = [Write::DropRewind(record.id), Write::DropPoint(record.safety_point)];
    commit(store, |_| drops.to_vec())
}

/// The oldest open journal.
pub(super) fn first_open(store: &dyn Store) -> Result<Option<RewindRecord>, StoreError> {
    Ok(store.open_rewinds()?.into_iter().next())
}

/// The plan that a rewind promised.
pub(super) fn plan_of(record: &RewindRecord) -> Result<Plan, serde_json::Error> {
    read_plan(&record.plan)
}

/// The same without its steps.
pub(super) fn plan_header_of(record: &RewindRecord) -> Result<PlanHeader, serde_json::Error> {
    read_plan(&record.plan)
}

/// The receipt of a rewind that is done; `None` also if it cannot be read.
pub(super) fn receipt_of(record: &RewindRecord) -> Option<Receipt> {
    serde_json::from_str(record.receipt.as_deref()?).ok()
}

/// Commits against the head, and retries while other processes move it.
pub(super) fn commit(
    store: &mut dyn Store,
    mut writes: impl FnMut(Head) -> Vec<Write>,
) -> Result<(), StoreError> {
    loop {
        let head = store.head()?;
        match store.commit(head, &writes(head)) {
            Err(StoreError::Moved) => {}
            done => return done.map(drop),
        }
    }
}
