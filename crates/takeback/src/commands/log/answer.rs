//! Rows of the log as JSON.

use std::collections::HashSet;

use takeback_core::history::{Count, FileDiff, LogRow, OperationRow, PointRow, TakenBack, Tally};
use takeback_core::{HeadMove, Workspace, git_state as read_git_state};
use takeback_store::{Change, Entry, Point, PointBasis, PointId, PointKind, RewindKind, Store};

use super::rows::operation_title;
use crate::answers;
use crate::commands::filediff::Lines;
use crate::error::CommandError;

/// A point with the changes between it and the next one.
pub(crate) fn point_answer(
    workspace: &Workspace,
    point: Point,
) -> Result<answers::Point, CommandError> {
    let git_now = read_git_state(workspace.root.path());
    let row = LogRow::Point(Box::new(PointRow::of(&*workspace.store, point, git_now.as_ref())?));
    row_answer(workspace, &row, &workspace.states.points()?)
}

pub(crate) fn row_answer(
    workspace: &Workspace,
    row: &LogRow,
    with_state: &HashSet<PointId>,
) -> Result<answers::Point, CommandError> {
    let store = &*workspace.store;
    match row {
        LogRow::Point(row) => {
            let answer = point(store, row)?;
            let has_state = with_state.contains(&row.point.id);
            Ok(answers::Point { has_state, ..answer })
        }
        LogRow::Operation(row) => operation(store, row),
    }
}

fn point(store: &dyn Store, row: &PointRow) -> Result<answers::Point, CommandError> {
    let PointRow { point, changes, tally, unreadable, git_moved } = row;
    let (files, lines) = totals(&row.diffs(), store)?;
    Ok(answers::Point {
        id: answers::Id::new(point.id),
        seq: point.seq.0,
        kind: match point.kind {
            PointKind::Prompt => answers::PointKind::Prompt,
            PointKind::Manual => answers::PointKind::Manual,
            PointKind::Step => answers::PointKind::Step,
            PointKind::Safety => answers::PointKind::Safety,
        },
        session: point.session.as_ref().map(|session| session.0.clone()),
        message_ids: point.message_ids.clone(),
        description: point.description.clone(),
        label: point.label.clone(),
        pinned: point.pinned,
        created_at: answers::time(point.created_at),
        files_changed: files,
        insertions: lines.insertions,
        deletions: lines.deletions,
        not_captured: not_captured(changes),
        unreadable: *unreadable,
        has_state: false,
        basis: match point.basis {
            PointBasis::Scan => answers::PointBasis::Scan,
            PointBasis::Watch => answers::PointBasis::Watch,
        },
        by_author: by_author(tally),
        taken_back: taken_back(tally.taken_back),
        of: None,
        git_moved: git_moved.as_ref().map(head_move),
    })
}

fn operation(store: &dyn Store, row: &OperationRow) -> Result<answers::Point, CommandError> {
    let OperationRow { operation, changes, taken_back: undone } = row;
    let (files, lines) = totals(&row.diffs(), store)?;
    let (kind, of) = match operation.kind {
        RewindKind::Rewind { point } => (answers::PointKind::Rewind, answers::Id::new(point)),
        RewindKind::Undo { of } => (answers::PointKind::Undo, answers::Id::new(of)),
        RewindKind::Redo { of } => (answers::PointKind::Redo, answers::Id::new(of)),
        RewindKind::Revert { point } => (answers::PointKind::Revert, answers::Id::new(point)),
        RewindKind::Restore { point } => (answers::PointKind::Restore, answers::Id::new(point)),
        RewindKind::Adopt { point } => (answers::PointKind::Adopt, answers::Id::new(point)),
        RewindKind::Resolve { of } => (answers::PointKind::Resolve, answers::Id::new(of)),
    };
    Ok(answers::Point {
        id: answers::Id::new(operation.id),
        seq: operation.began_at.0,
        kind,
        session: None,
        message_ids: Vec::new(),
        description: operation_title(store, operation)?,
        label: None,
        pinned: false,
        created_at: answers::time(operation.created_at),
        files_changed: files,
        insertions: lines.insertions,
        deletions: lines.deletions,
        not_captured: not_captured(changes),
        unreadable: 0,
        has_state: false,
        basis: answers::PointBasis::Scan,
        by_author: answers::ByAuthor::default(),
        taken_back: taken_back(*undone),
        of: Some(of),
        git_moved: None,
    })
}

fn totals(diffs: &[FileDiff], store: &dyn Store) -> Result<(usize, Lines), CommandError> {
    let mut total = Lines::default();
    for diff in diffs {
        // A point with damaged contents is still listed, and can be restored as far as it is intact.
        if let Some(lines) = diff.lines(store)? {
            total += lines;
        }
    }
    Ok((diffs.iter().filter(|diff| !diff.is_folder()).count(), total))
}

fn not_captured(changes: &[Change]) -> usize {
    changes.iter().filter(|change| matches!(change.after, Entry::NotCaptured { .. })).count()
}

/// The counts of each party.
pub(crate) fn by_author(tally: &Tally) -> answers::ByAuthor {
    let Tally { agent, you, others, unclear, taken_back: _ } = tally;
    let count = |count: &Count| answers::ChangeCount {
        files: count.files,
        insertions: count.lines.insertions,
        deletions: count.lines.deletions,
    };
    answers::ByAuthor {
        agent: count(agent),
        you: count(you),
        others: count(others),
        unclear: count(unclear),
    }
}

pub(crate) fn taken_back(taken_back: TakenBack) -> answers::TakenBack {
    match taken_back {
        TakenBack::No => answers::TakenBack::No,
        TakenBack::Partly => answers::TakenBack::Partly,
        TakenBack::Yes => answers::TakenBack::Yes,
    }
}

/// How HEAD moved.
pub(crate) fn head_move(moved: &HeadMove) -> answers::HeadMove {
    let HeadMove { before, after } = moved.clone();
    answers::HeadMove { before: git_state(before), after: git_state(after) }
}

pub(crate) fn git_state(git: takeback_store::GitState) -> answers::GitState {
    answers::GitState { head: git.head, branch: git.branch }
}
