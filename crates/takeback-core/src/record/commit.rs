//! The last phase of recording: one commit with the observed changes and their authors, the session, turn
//! and call of the event, and perhaps a point.

use takeback_store::{
    Entry, Head, NotCapturedReason, Point, PointId, PointKind, PointQuery, Seq, SessionId, Store,
    StoreError, Write,
};

use super::author::AuthoredChanges;
use super::decide::{Decision, PointPosition};
use super::observation::Observation;
use super::{RecordError, RecordOutcome};
use crate::git::git_state;
use crate::workspace::Workspace;

/// Commits against `head`, and returns the new head. `None`: another process committed first.
pub(super) fn commit(
    workspace: &mut Workspace,
    head: Head,
    observation: &Observation,
    decision: Decision,
    authored: AuthoredChanges,
) -> Result<Option<(Head, RecordOutcome)>, RecordError> {
    let AuthoredChanges { changes: mut writes, completed, not_captured, background } = authored;
    let seq = Seq(head.seq.0 + writes.len() as u64);
    let mut recorded = RecordOutcome {
        changes: writes.len(),
        not_captured,
        unreadable: observation.unreadable.clone(),
        stats: observation.stats,
        ..RecordOutcome::nothing(seq)
    };
    let unread = Entry::NotCaptured { reason: NotCapturedReason::Deadline };
    recorded.unfinished =
        observation.is_scan() && observation.found.iter().any(|observed| observed.after == unread);
    if recorded.unfinished {
        workspace.inbox().request_scan()?;
    }
    writes.extend(completed.into_iter().map(Write::ReplaceChange));
    writes.extend(background);
    writes.extend(decision.writes);
    // A step that found no change since the session's last point needs no point of its own.
    let existing = match &decision.point {
        Some(point) if point.kind == PointKind::Step => {
            point_at(&*workspace.store, seq, point.session.as_ref())?
        }
        _ => decision.existing_point,
    };
    recorded.point = existing;
    if let Some(point) = decision.point.filter(|_| existing.is_none()) {
        recorded.point = Some(point.id);
        writes.push(Write::Point(Point {
            id: point.id,
            seq: match decision.position {
                PointPosition::BeforeChanges => head.seq,
                PointPosition::AfterChanges => seq,
            },
            session: point.session,
            kind: point.kind,
            description: point.description,
            label: point.label,
            pinned: false,
            created_at: decision.time,
            message_ids: point.message.into_iter().collect(),
            git: git_state(workspace.root.path()),
            basis: observation.basis(),
        }));
    }
    // The first scan is recorded even if it found nothing.
    if observation.is_scan() && (!writes.is_empty() || workspace.store.last_scan()?.is_none()) {
        writes.push(Write::ScanTime(decision.time));
    }
    if writes.is_empty() {
        return Ok(Some((head, recorded)));
    }
    match workspace.store.commit(head, &writes) {
        Ok(head) => Ok(Some((head, recorded))),
        Err(StoreError::Moved) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The newest point of a session, if it is at this position in the log.
fn point_at(
    store: &dyn Store,
    seq: Seq,
    session: Option<&SessionId>,
) -> Result<Option<PointId>, StoreError> {
    let points = store.find_points(PointQuery::At(seq))?;
    let listed =
        |point: &&Point| point.session.as_ref() == session && point.kind != PointKind::Safety;
    Ok(points.iter().rev().find(listed).map(|point| point.id))
}
