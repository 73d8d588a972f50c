//! Past rewinds and points, as far as a target depends on them, and what is left of a rewind when the
//! session whose work it held is deleted.

use takeback_store::{PointQuery, RewindId, RewindRecord, RewindState, StoredPlan, disk};

use super::error::RewindError;
use super::journal;
use super::receipt::Receipt;
use super::request::Target;
use super::state_move::StateMove;
use super::target::{PastContents, PastPoint, PastRewind, TargetRecords, undoable};
use crate::workspace::Workspace;

/// Reads what the selection of a target depends on.
pub(super) fn records_for(
    workspace: &Workspace,
    target: &Target,
) -> Result<TargetRecords, RewindError> {
    let store = &*workspace.store;
    let mut records = TargetRecords::default();
    match target {
        Target::Point(id) | Target::Restore(id) => {
            let point = store.find_points(PointQuery::Id(*id))?.pop();
            records.point = point.map(|point| PastPoint { seq: point.seq, session: point.session });
            records.sessions = store.sessions()?;
        }
        Target::State(_) | Target::Changes(_) | Target::Incoming(_) => {}
        Target::Undo | Target::Redo | Target::Operation(_) => {
            records.rewinds = past_rewinds(workspace)?;
            records.idle_after = idle_after(workspace);
        }
    }
    Ok(records)
}

/// The rewinds that changed something, oldest first: only these can be taken back.
pub(super) fn past_rewinds(workspace: &Workspace) -> Result<Vec<PastRewind>, RewindError> {
    let mut rewinds = Vec::new();
    for record in workspace.store.rewinds()? {
        let contents = match is_erased(&record) {
            true => PastContents::Erased,
            false => PastContents::Kept,
        };
        let receipt = journal::receipt_of(&record);
        let has_effect = record.state == RewindState::Open
            || contents == PastContents::Erased
            || receipt.as_ref().is_some_and(Receipt::changed_files)
            || receipt.as_ref().is_some_and(Receipt::changed_conflicts)
            || StateMove::without(&*workspace.states, &record)?.is_some_and(|one| one.is_move());
        if has_effect {
            rewinds.push(PastRewind {
                id: record.id,
                kind: record.kind,
                began_at: record.began_at,
                safety_point: record.safety_point,
                contents,
                has_failed: receipt.is_some_and(|receipt| !receipt.errors.is_empty()),
                is_revert: journal::plan_header_of(&record).is_ok_and(|plan| plan.is_revert),
            });
        }
    }
    Ok(rewinds)
}

/// The receipt of a rewind whose plan, files and safety point were deleted with a session.
const ERASED: &str = r#"{"sessionDeleted":true}"#;

/// What remains of a rewind when a session whose work it held is deleted: the fact that it happened.
/// Without it, an undo would take back an older rewind instead of explaining why it cannot.
pub(crate) fn erased(rewind: &RewindRecord) -> RewindRecord {
    RewindRecord { plan: StoredPlan::default(), receipt: Some(ERASED.to_owned()), ..*rewind }
}

fn is_erased(rewind: &RewindRecord) -> bool {
    rewind.receipt.as_deref() == Some(ERASED)
}

/// Holds the id of the rewind that was the newest when a later one found nothing to do.
const IDLE_FILE: &str = "rewound-nothing";

/// Notes that a rewind changed nothing: the next undo must not take back the rewind before it.
pub(super) fn note_idle(workspace: &Workspace) -> Result<(), RewindError> {
    if let Some(newest) = undoable(&past_rewinds(workspace)?) {
        let text = newest.id.to_string();
        // Without the note, the preview of an undo still shows what it takes back.
        drop(disk::replace_private_file(&workspace.store_dir.join(IDLE_FILE), text.as_bytes()));
    }
    Ok(())
}

fn idle_after(workspace: &Workspace) -> Option<RewindId> {
    let noted = std::fs::read_to_string(workspace.store_dir.join(IDLE_FILE));
    noted.ok().and_then(|id| id.parse().ok())
}

/// Removes the note: an undo reported it, or a rewind changes something.
pub(super) fn clear_idle_note(workspace: &Workspace) {
    let file = workspace.store_dir.join(IDLE_FILE);
    if file.exists() {
        // If it stays, the next undo reports it once more.
        drop(disk::remove_store_file(&file));
    }
}
