//! Rows of the log on the screen.

use std::collections::HashSet;
use std::io::Write;

use anstyle::Style;
use takeback_core::Workspace;
use takeback_core::exchange::original_name;
use takeback_core::history::{Count, Lines, LogRow, OperationRow, PointRow, TakenBack, Tally};
use takeback_core::rewind::title_of;
use takeback_store::{
    Entry, Point, PointId, PointKind, PointQuery, RewindHeader, RewindKind, Store, StoreError,
};

use super::answer::head_move;
use super::graph::lanes;
use super::names;
use crate::error::CommandError;
use crate::screen::{FAILURE, HINT, NAME, SUCCESS, WARNING, count, plain, shorten};
use crate::session_name::SessionNames;
use crate::table::{Cell, Overflow, Table};
use crate::time::{ago, clock, now};

/// One line per row.
pub(crate) fn print(
    workspace: &Workspace,
    rows: &[LogRow],
    with_graph: bool,
    out: &mut dyn Write,
) -> Result<(), CommandError> {
    let (store, names) = (&*workspace.store, names(workspace)?);
    let with_state = workspace.states.points()?;
    let time = now();
    let overflows = [
        Overflow::Nothing,
        Overflow::Nothing,
        Overflow::All(2),
        Overflow::All(3),
        Overflow::End(20),
        Overflow::All(1),
        Overflow::All(4),
    ];
    let lanes = if with_graph { lanes(rows) } else { vec![String::new(); rows.len()] };
    let mut table = Table::new(0, overflows);
    for (row, lane) in rows.iter().zip(lanes) {
        let lane = Cell::new(HINT, lane);
        table.rows.push(match row {
            LogRow::Point(row) => [
                lane,
                Cell::new(NAME, short(row.point.id)),
                Cell::new(HINT, ago(row.point.created_at, time)),
                Cell::plain(session_label(&row.point, &names)),
                Cell::plain(title(&row.point)),
                point_changes(row, store, &with_state)?,
                git_move(row),
            ],
            LogRow::Operation(row) => [
                lane,
                Cell::new(HINT, short(row.operation.id)),
                Cell::new(HINT, ago(row.operation.created_at, time)),
                Cell::new(HINT, "you"),
                Cell::new(HINT, operation_title(store, &row.operation)?),
                operation_changes(row, store)?,
                Cell::default(),
            ],
        });
    }
    table.print(out)?;
    Ok(())
}

/// The digits of an id that are shown.
fn short(id: impl std::fmt::Display) -> String {
    id.to_string()[..8].to_owned()
}

/// The display name of a point's session.
pub(crate) fn session_label(point: &Point, names: &SessionNames) -> String {
    const IMPORTED: &str = " (imported)";
    match &point.session {
        _ if point.kind == PointKind::Safety => "safety".to_owned(),
        None => "by hand".to_owned(),
        Some(session) => match original_name(session) {
            // Two cut names might look the same.
            None => match names.shortened(session) {
                Some(name) => name.to_owned(),
                None => shorten(&plain(&session.0), 16),
            },
            Some("") => format!("by hand{IMPORTED}"),
            // All sessions of one import have ids that begin alike.
            Some(name) => shorten(&plain(name), 10) + IMPORTED,
        },
    }
}

/// The display name of a point.
pub(crate) fn title(point: &Point) -> String {
    let description = match point.description.as_str() {
        "" => format!("Checkpoint at {}", clock(point.created_at)),
        _ => plain(&described(point)),
    };
    match &point.label {
        Some(label) if *label != point.description => format!("[{}] {description}", plain(label)),
        Some(label) => format!("[{}]", plain(label)),
        None if point.pinned => format!("(pinned) {description}"),
        None => description,
    }
}

/// A point's description, with `…` where the prompt was cut.
pub(crate) fn described(point: &Point) -> String {
    /// The length that [`takeback_core::record::describe`] cuts to.
    const MOST: usize = 80;
    let cut = point.kind == PointKind::Prompt && point.description.chars().count() == MOST;
    format!("{}{}", point.description, if cut { "…" } else { "" })
}

/// What an operation did, in a few words.
pub(crate) fn operation_title(
    store: &dyn Store,
    operation: &RewindHeader,
) -> Result<String, StoreError> {
    Ok(match operation.kind {
        RewindKind::Rewind { point } => {
            let found = store.find_points(PointQuery::Id(point))?.pop();
            let what = found.map_or_else(|| "a dropped point".to_owned(), |point| title(&point));
            format!("rewind to {} {what}", short(point))
        }
        RewindKind::Undo { of } => {
            let what = store.rewind_headers()?.into_iter().find(|other| other.id == of);
            let what = what.map_or("rewind", |other| kind_name(other.kind));
            format!("undo of {what} {}", short(of))
        }
        RewindKind::Redo { of } => format!("redo: undo {} taken back", short(of)),
        kind => {
            let safety_point = store.find_points(PointQuery::Id(operation.safety_point))?.pop();
            let title = safety_point.as_ref().and_then(title_of);
            title.map_or_else(|| kind_name(kind).to_owned(), plain)
        }
    })
}

fn kind_name(kind: RewindKind) -> &'static str {
    match kind {
        RewindKind::Rewind { .. } => "rewind",
        RewindKind::Undo { .. } => "undo",
        RewindKind::Redo { .. } => "redo",
        RewindKind::Revert { .. } => "revert",
        RewindKind::Restore { .. } => "restore",
        RewindKind::Adopt { .. } => "adopt",
        RewindKind::Resolve { .. } => "resolve",
    }
}

fn point_changes(
    row: &PointRow,
    store: &dyn Store,
    with_state: &HashSet<PointId>,
) -> Result<Cell, CommandError> {
    let lost = |entry: &Entry| matches!(entry, Entry::NotCaptured { .. });
    let not_captured = row.changes.iter().filter(|change| lost(&change.after)).count();
    let tally = &row.tally;
    let mut cell = party_cell(tally);
    if cell.is_empty() {
        // Folders, first sightings and imports: no party has a count.
        let files = row.diffs().iter().filter(|diff| !diff.is_folder()).count();
        cell = match (files, not_captured + row.unreadable) {
            (0, 0) => Cell::new(HINT, "–"),
            (files, _) => Cell::plain(count(files, "file")),
        };
        let mut lines = Lines::default();
        for diff in row.diffs() {
            lines += diff.lines(store)?.unwrap_or_default();
        }
        push_lines(&mut cell, Count { files, lines }, [SUCCESS, FAILURE]);
    }
    for (n, what) in [(not_captured, "not captured"), (row.unreadable, "not read")] {
        if n > 0 {
            cell.push(WARNING, format!(" {n} {what}"));
        }
    }
    if with_state.contains(&row.point.id) {
        cell.push(NAME, " state");
    }
    Ok(cell)
}

fn git_move(row: &PointRow) -> Cell {
    let git = row.git_moved.as_ref();
    let text = git.map(|git| format!("git: {}", plain(&head_move(git).describe())));
    text.map_or_else(Cell::default, |text| Cell::new(HINT, text))
}

/// The agent's counts, then those of others, then whether it was taken back.
pub(crate) fn party_cell(tally: &Tally) -> Cell {
    let mut cell = Cell::default();
    let none = Count::default();
    if tally.agent != none {
        cell.push(Style::new(), count(tally.agent.files, "file"));
        push_lines(&mut cell, tally.agent, [SUCCESS, FAILURE]);
    }
    for (party, counted) in [("you", tally.you), ("others", tally.others)] {
        if counted != none {
            let gap = if cell.is_empty() { "" } else { "  " };
            cell.push(HINT, format!("{gap}{party}"));
            match counted.lines {
                Lines { insertions: 0, deletions: 0 } => {
                    cell.push(HINT, format!(" {}", count(counted.files, "file")));
                }
                _ => push_lines(&mut cell, counted, [HINT, HINT]),
            }
        }
    }
    if tally.unclear != none {
        let gap = if cell.is_empty() { "" } else { "  " };
        cell.push(WARNING, format!("{gap}{} unclear", count(tally.unclear.files, "file")));
    }
    match tally.taken_back {
        TakenBack::No => {}
        TakenBack::Partly => cell.push(WARNING, "  partly taken back"),
        TakenBack::Yes => cell.push(WARNING, "  taken back"),
    }
    cell
}

fn push_lines(cell: &mut Cell, counted: Count, [added, removed]: [Style; 2]) {
    if counted.lines.insertions > 0 {
        cell.push(added, format!(" +{}", counted.lines.insertions));
    }
    if counted.lines.deletions > 0 {
        cell.push(removed, format!(" -{}", counted.lines.deletions));
    }
}

fn operation_changes(row: &OperationRow, store: &dyn Store) -> Result<Cell, CommandError> {
    let diffs = row.diffs();
    let mut counted = Count::default();
    for diff in diffs.iter().filter(|diff| !diff.is_folder()) {
        counted.files += 1;
        counted.lines += diff.lines(store)?.unwrap_or_default();
    }
    let files = match counted.files {
        0 => "no files".to_owned(),
        files => count(files, "file"),
    };
    let mut cell = Cell::new(HINT, files);
    push_lines(&mut cell, counted, [HINT, HINT]);
    match row.taken_back {
        TakenBack::No => {}
        TakenBack::Partly => cell.push(HINT, "  partly undone"),
        TakenBack::Yes => cell.push(HINT, "  undone"),
    }
    Ok(cell)
}
