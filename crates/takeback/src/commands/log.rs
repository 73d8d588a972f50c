//! `log`: the points, newest first, with what was changed after each.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use serde::Serialize;
use takeback_core::Workspace;
use takeback_core::exchange::{name_there, same_story};
use takeback_core::history::by_path;
use takeback_store::{
    Change, Entry, Point, PointId, PointKind, PointQuery, Seq, SessionId, Shown, StoreError,
    Vouched, WorkPath,
};

use super::cleanup::hold_cap;
use super::filediff::{FileDiff, Lines, between};
use super::sessions::find_session;
use crate::args::{LogArgs, Options};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{BAD, CARE, GOOD, HINT, NAME, Screen, count, plain, shorten};
use crate::session_name::SessionNames;
use crate::table::{Cell, Give, Table};
use crate::time::{ago, clock, iso, now};

/// A point as `log` tells it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Told {
    pub(crate) id: String,
    pub(crate) seq: Seq,
    pub(crate) kind: PointKind,
    pub(crate) session: Option<String>,
    pub(crate) message_ids: Vec<String>,
    pub(crate) description: String,
    pub(crate) label: Option<String>,
    pub(crate) pinned: bool,
    pub(crate) created_at: String,
    pub(crate) files_changed: usize,
    pub(crate) insertions: usize,
    pub(crate) deletions: usize,
    pub(crate) not_captured: usize,
    /// Paths of which the point does not know what stood there, since they could not be read.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) unreadable: usize,
    pub(crate) has_state: bool,
    pub(crate) vouched_by: Vouched,
}

pub(crate) fn log(
    options: &Options,
    args: &LogArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_caught_up(options, Store::MustExist)?;
    hold_cap(&mut place);
    let Listed { told, session, all } = list(&place.workspace, args)?;
    if screen.json {
        let told: Vec<&Told> = told.iter().map(|(_, told)| told).collect();
        screen.json(&told)?;
        return Ok(0);
    }
    screen.page()?;
    let names = SessionNames::of(&place.workspace.store.sessions()?);
    print(&mut screen.out, &told, &names)?;
    match &session {
        None if all == 0 => {
            writeln!(screen.out, "No points yet. {HINT}`takeback checkpoint` makes one.{HINT:#}")?;
        }
        Some(session) if all == 0 => {
            writeln!(screen.out, "{} has no points.", plain(&session.0))?;
        }
        _ if all > told.len() => {
            let older = if told.is_empty() { "not shown" } else { "older" };
            writeln!(screen.out, "{HINT}{} {older}; -n shows more{HINT:#}", all - told.len())?;
        }
        _ => {}
    }
    Ok(0)
}

/// The points that were asked for.
pub(crate) struct Listed {
    /// Newest first.
    pub(crate) told: Vec<(Point, Told)>,
    /// Whose they are to be.
    session: Option<SessionId>,
    /// How many there would be without a limit.
    all: usize,
}

pub(crate) fn list(workspace: &Workspace, args: &LogArgs) -> Result<Listed, CommandError> {
    let store = &*workspace.store;
    let session = args.session.as_ref().map(|name| find_session(workspace, name)).transpose()?;
    let kinds = if args.all { Shown::All } else { Shown::NoSafety };
    // Without a session those that come after the ones that are shown are shown too.
    let (listed, all) = match &session {
        None => {
            let newest = PointQuery::Newest { shown: kinds, most: args.limit };
            (store.find_points(newest)?, store.count_points(kinds)?)
        }
        Some(_) => {
            let mut points = store.points()?;
            points.retain(|point| kinds.includes(point));
            let all = points.iter().filter(|point| point.session == session).count();
            (points, all)
        }
    };
    let asked_for = listed
        .iter()
        .enumerate()
        .rev()
        .filter(|(_, point)| session.is_none() || point.session == session);
    let shown: Vec<(&Point, Option<Seq>)> = asked_for
        .take(args.limit)
        .map(|(at, point)| (point, next_of(point, &listed[at + 1..])))
        .collect();
    // Read once: there may be many points, and many changes after the oldest of them.
    let oldest = shown.iter().map(|(point, _)| point.seq).min();
    let changes = oldest.map_or(Ok(Vec::new()), |oldest| store.changes_after(oldest))?;
    let with_state = workspace.states.points()?;
    let still_unread = store.unreadable()?;
    let mut told = Vec::new();
    for (point, next) in &shown {
        let unreadable = unreadable_at(&changes, &still_unread, point.seq);
        let changes = within(&changes, point.seq, *next);
        let point_told = Told { unreadable, ..tell(store, point, changes, &with_state)? };
        told.push(((*point).clone(), point_told));
    }
    Ok(Listed { told, session, all })
}

/// How many paths could not be read when a point was made. `changes`: those after it, or more;
/// `still_unread`: those that cannot be read by now.
pub(crate) fn unreadable_at(changes: &[Change], still_unread: &[WorkPath], at: Seq) -> usize {
    let mut first: HashMap<&WorkPath, bool> = HashMap::new();
    for change in within(changes, at, None) {
        first.entry(&change.path).or_insert_with(|| change.before.is_unreadable());
    }
    let later = first.values().filter(|unreadable| **unreadable).count();
    later + still_unread.iter().filter(|path| !first.contains_key(path)).count()
}

/// Up to where what was changed after `point` is told.
fn next_of(point: &Point, later: &[Point]) -> Option<Seq> {
    later.iter().find(|next| same_story(point, next)).map(|next| next.seq)
}

/// The part of `changes`, oldest first, that came after `from`, up to and with `to`.
pub(crate) fn within(changes: &[Change], from: Seq, to: Option<Seq>) -> &[Change] {
    let first = changes.partition_point(|change| change.seq <= from);
    let end = to.map_or(changes.len(), |to| changes.partition_point(|change| change.seq <= to));
    &changes[first..end.max(first)]
}

/// A line a point.
pub(crate) fn print(
    out: &mut dyn Write,
    told: &[(Point, Told)],
    names: &SessionNames,
) -> io::Result<()> {
    let time = now();
    let gives = [Give::Nothing, Give::All(1), Give::All(3), Give::End(20), Give::All(2)];
    let mut table = Table::new(0, gives);
    for (point, told) in told {
        table.rows.push([
            Cell::new(NAME, &told.id[..8]),
            Cell::new(HINT, ago(point.created_at, time)),
            Cell::plain(whose(point, names)),
            Cell::plain(title(point)),
            changes(told),
        ]);
    }
    table.print(out)
}

/// What a point's session is called on screen.
pub(crate) fn whose(point: &Point, names: &SessionNames) -> String {
    const IMPORTED: &str = " (imported)";
    match &point.session {
        _ if point.kind == PointKind::Safety => "safety".to_owned(),
        None => "by hand".to_owned(),
        Some(session) => match name_there(session) {
            // Cut, two of them might look the same.
            None => match names.shortened(session) {
                Some(name) => name.to_owned(),
                None => shorten(&plain(&session.0), 16),
            },
            Some("") => format!("by hand{IMPORTED}"),
            // The name that it has here begins like all others that came with it.
            Some(name) => shorten(&plain(name), 10) + IMPORTED,
        },
    }
}

/// What a point is called on screen.
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
    /// As much as [`takeback_core::record::describe`] keeps.
    const MOST: usize = 80;
    let cut = point.kind == PointKind::Prompt && point.description.chars().count() == MOST;
    format!("{}{}", point.description, if cut { "…" } else { "" })
}

fn changes(told: &Told) -> Cell {
    let mut cell = match (told.files_changed, told.not_captured + told.unreadable) {
        (0, 0) => Cell::new(HINT, "–"),
        (files, _) => Cell::plain(count(files, "file")),
    };
    if told.insertions > 0 {
        cell.push(GOOD, format!(" +{}", told.insertions));
    }
    if told.deletions > 0 {
        cell.push(BAD, format!(" -{}", told.deletions));
    }
    if told.not_captured > 0 {
        cell.push(CARE, format!(" {} not kept", told.not_captured));
    }
    if told.unreadable > 0 {
        cell.push(CARE, format!(" {} not read", told.unreadable));
    }
    if told.has_state {
        cell.push(NAME, " state");
    }
    cell
}

/// A point with what was changed between it and the next.
pub(crate) fn tell(
    store: &dyn takeback_store::Store,
    point: &Point,
    changes: &[Change],
    with_state: &HashSet<PointId>,
) -> Result<Told, StoreError> {
    let not_captured =
        changes.iter().filter(|change| matches!(change.after, Entry::NotCaptured { .. })).count();
    let diffs: Vec<FileDiff> = between(&by_path(changes.to_vec()), None);
    let mut total = Lines::default();
    for diff in &diffs {
        // With lost contents a point is listed all the same, and can be gone back to as far as it is
        // intact.
        if let Some(lines) = diff.lines(store)? {
            total.insertions += lines.insertions;
            total.deletions += lines.deletions;
        }
    }
    Ok(Told {
        id: point.id.to_string(),
        seq: point.seq,
        kind: point.kind,
        session: point.session.as_ref().map(|session| session.0.clone()),
        message_ids: point.message_ids.clone(),
        description: point.description.clone(),
        label: point.label.clone(),
        pinned: point.pinned,
        created_at: iso(point.created_at),
        files_changed: diffs.iter().filter(|diff| !diff.is_folder()).count(),
        insertions: total.insertions,
        deletions: total.deletions,
        not_captured,
        unreadable: 0,
        has_state: with_state.contains(&point.id),
        vouched_by: point.vouched,
    })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde hands it over")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}
