//! From a plan to a promise: what it places is made ready, then it is committed as a journal.

use std::collections::BTreeSet;

use takeback_store::{
    Digest, Point, PointId, PointKind, RewindId, RewindKind, RewindRecord, RewindState, Seq,
    StoreError, Vouched, Write,
};

use super::again;
use super::apply::{stage, to_stage};
use super::correct;
use super::journal::{Preview, RewindError};
use super::lost;
use super::state_move::StateMove;
use crate::git_state::git_state;
use crate::progress::Work;
use crate::workspace::Workspace;
use crate::worktree::write::clear_stage;

/// What came of making a plan ready.
pub(super) enum Begun {
    Promised(RewindRecord),
    /// Nothing: the store has lost these contents, and there must be a plan without them.
    Lost(BTreeSet<Digest>),
}

/// Makes ready what a plan places, and promises it.
pub(super) fn begin(workspace: &mut Workspace, ready: &Preview) -> Result<Begun, RewindError> {
    let id = match workspace.opened.promised {
        Some((id, _)) => id,
        None => RewindId((workspace.ambient.random)()),
    };
    for blob in &ready.plan.merged {
        workspace.store.put(blob.clone())?;
    }
    let mark = workspace.mark();
    let work = workspace.ambient.begin(Work::Stage, to_stage(&ready.plan));
    let counter = work.counter();
    let gone = lost::absent(&ready.plan, &*workspace.store)?;
    let gone: BTreeSet<Digest> = gone.difference(&ready.lost).copied().collect();
    let staged = if ready.plan.leaves_files() || !gone.is_empty() {
        Ok(gone)
    } else {
        stage(&workspace.root, &*workspace.store, &ready.plan, id, &mark, counter)
    };
    drop(work);
    let begun = staged.map_err(RewindError::from).and_then(|lost| match lost.is_empty() {
        true => promise(workspace, ready, id).map(|record| {
            // From here on the folders that were opened are closed by this plan.
            workspace.opened.promised = None;
            Begun::Promised(record)
        }),
        false => Ok(Begun::Lost(lost)),
    });
    if !matches!(begun, Ok(Begun::Promised(_))) {
        // What cannot be cleared away now, the next command clears.
        drop(clear_stage(&workspace.root, id, &mark));
    }
    begun
}

/// Commits the plan, durably, together with a point of the moment before. One that promised only to
/// make folders readable is replaced.
pub(super) fn promise(
    workspace: &mut Workspace,
    ready: &Preview,
    id: RewindId,
) -> Result<RewindRecord, RewindError> {
    again::forget_nothing(workspace);
    let safety_point = match workspace.opened.promised {
        Some((_, safety_point)) => safety_point,
        None => PointId((workspace.ambient.random)()),
    };
    let now = (workspace.ambient.now)();
    let plan = serde_json::to_string(&ready.plan)
        .map_err(|source| RewindError::DamagedPlan { id, source })?;
    let mut record = RewindRecord {
        id,
        kind: ready.kind,
        state: RewindState::Open,
        began_at: Seq(0),
        safety_point,
        created_at: now,
        plan,
        receipt: None,
    };
    loop {
        let head = workspace.store.head()?;
        record.began_at = head.seq;
        let point = Point {
            id: safety_point,
            seq: head.seq,
            session: None,
            kind: PointKind::Safety,
            description: match ready.kind {
                RewindKind::Rewind { .. } if ready.plan.state.is_some() => {
                    let state = ready.plan.state.as_ref().map(StateMove::receipt);
                    let to = state.and_then(|state| state.checkpoint).unwrap_or_default();
                    format!("before the rollback to {to}")
                }
                RewindKind::Rewind { point } => format!("before the rewind to {point}"),
                RewindKind::Undo { of } => format!("before the undo of {of}"),
                RewindKind::Redo { of } => format!("before the redo of {of}"),
            },
            label: None,
            pinned: false,
            created_at: now,
            message_ids: Vec::new(),
            git: git_state(workspace.root.path()),
            vouched: Vouched::Scan,
        };
        let mut writes = vec![Write::Point(point), Write::Rewind(record.clone())];
        writes.extend(correct::writes(&ready.plan.corrections));
        match workspace.store.commit(head, &writes) {
            Err(StoreError::Moved) => {}
            done => {
                done?;
                return Ok(record);
            }
        }
    }
}
