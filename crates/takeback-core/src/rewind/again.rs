//! Which rewind an undo or a redo is about.

use serde_json::Value;
use takeback_store::{RewindId, RewindKind, RewindRecord, RewindState, disk};

use super::journal::RewindError;
use super::plan::Plan;
use super::state_move::StateMove;
use crate::workspace::Workspace;

/// The rewinds that changed something: only these can be taken back.
pub(super) fn effective(workspace: &Workspace) -> Result<Vec<RewindRecord>, RewindError> {
    let mut rewinds = Vec::new();
    for record in workspace.store.rewinds()? {
        let receipt =
            record.receipt.as_deref().and_then(|json| serde_json::from_str::<Value>(json).ok());
        let did = |receipt: &Value| {
            ["restoredFiles", "deletedFiles", "mergedFiles"]
                .iter()
                .any(|list| receipt[list].as_array().is_some_and(|paths| !paths.is_empty()))
        };
        if record.state == RewindState::Open
            || is_without_contents(&record)
            || receipt.as_ref().is_some_and(did)
            || StateMove::without(&*workspace.states, &record)?.is_some_and(|one| one.is_move())
        {
            rewinds.push(record);
        }
    }
    Ok(rewinds)
}

/// The receipt of a rewind whose plan, files and safety point went with a deleted session.
const SESSION_DELETED: &str = r#"{"sessionDeleted":true}"#;

/// What is left of a rewind when a session is deleted whose work it held: that there was one, so that an
/// undo can say why there is nothing to take back, and does not take back an older one.
pub(crate) fn without_contents(rewind: &RewindRecord) -> RewindRecord {
    let (plan, receipt) = (String::new(), Some(SESSION_DELETED.to_owned()));
    RewindRecord { plan, receipt, ..*rewind }
}

pub(super) fn is_without_contents(rewind: &RewindRecord) -> bool {
    rewind.receipt.as_deref() == Some(SESSION_DELETED)
}

/// The newest rewind that is not taken back.
pub(super) fn undoable(rewinds: &[RewindRecord]) -> Option<&RewindRecord> {
    rewinds.iter().rev().find(|record| {
        matches!(record.kind, RewindKind::Rewind { .. }) && !is_taken_back(rewinds, record.id)
    })
}

/// The newest undo that is not taken back, and that no rewind came after.
pub(super) fn redoable(rewinds: &[RewindRecord]) -> Option<&RewindRecord> {
    let standing = undoable(rewinds).map(|record| record.id);
    let since = rewinds.iter().rev().take_while(|record| Some(record.id) != standing);
    since.into_iter().find(|record| match record.kind {
        // What was turned back because not all of it could be done is not done again in part.
        RewindKind::Undo { .. } => !is_taken_back(rewinds, record.id) && !turns_back(record),
        RewindKind::Rewind { .. } | RewindKind::Redo { .. } => false,
    })
}

/// What an undo or redo is about, if it is all there; else why there is nothing.
pub(super) fn left_of<'r>(
    found: Option<&'r RewindRecord>,
    rewinds: &[RewindRecord],
    nothing: RewindError,
) -> Result<&'r RewindRecord, RewindError> {
    match found {
        Some(rewind) if !is_without_contents(rewind) => Ok(rewind),
        None if !rewinds.iter().any(is_without_contents) => Err(nothing),
        _ => Err(RewindError::SessionDeleted),
    }
}

/// Whether an undo or redo of `id` stands, itself not taken back. One that failed for some files does
/// not count: it can be repeated.
fn is_taken_back(rewinds: &[RewindRecord], id: RewindId) -> bool {
    rewinds.iter().any(|record| match record.kind {
        RewindKind::Undo { of } | RewindKind::Redo { of } => {
            of == id && !has_failed(record) && !is_taken_back(rewinds, record.id)
        }
        RewindKind::Rewind { .. } => false,
    })
}

/// Whether something went wrong with a file. Files that were left on purpose are no failure.
fn has_failed(record: &RewindRecord) -> bool {
    let receipt = record.receipt.as_deref().and_then(|json| serde_json::from_str(json).ok());
    receipt.is_some_and(|receipt: Value| {
        receipt["errors"].as_array().is_some_and(|errors| !errors.is_empty())
    })
}

/// Whether an undo only brought back what was done of a rewind that had to be all or nothing.
fn turns_back(record: &RewindRecord) -> bool {
    serde_json::from_str::<Plan>(&record.plan).is_ok_and(|plan| plan.turns_back)
}

/// Holds the rewind that was the newest when one after it found nothing to do.
const FILE: &str = "rewound-nothing";

/// Notes that a rewind changed nothing. The next undo is not meant for the rewind before it.
pub(super) fn note_nothing(workspace: &Workspace, newest: Option<&RewindRecord>) {
    if let Some(newest) = newest {
        let text = newest.id.to_string();
        // Without the note, the preview of an undo still shows what it takes back.
        drop(disk::replace_private_file(&workspace.store_dir.join(FILE), text.as_bytes()));
    }
}

/// Whether a rewind after `newest` changed nothing, and no undo was told so.
pub(super) fn did_nothing_since(workspace: &Workspace, newest: RewindId) -> bool {
    let noted = std::fs::read_to_string(workspace.store_dir.join(FILE));
    noted.is_ok_and(|noted| noted == newest.to_string())
}

pub(super) fn forget_nothing(workspace: &Workspace) {
    let file = workspace.store_dir.join(FILE);
    if file.exists() {
        // One that stays is told once more.
        drop(disk::remove_store_file(&file));
    }
}
