//! `log`: the points, newest first, with the changes after each.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use takeback_core::Workspace;
use takeback_core::exchange::{original_name, same_timeline};
use takeback_core::history::by_path;
use takeback_store::{
    Change, Entry, Point, PointBasis, PointFilter, PointId, PointKind, PointQuery, Seq, SessionId,
    StoreError, WorkPath,
};

use super::cleanup::enforce_point_cap;
use super::filediff::{FileDiff, Lines, between};
use super::sessions::find_session;
use crate::answers;
use crate::args::{LogArgs, Options};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::screen::{FAILURE, HINT, NAME, SUCCESS, Screen, WARNING, count, plain, shorten};
use crate::session_name::SessionNames;
use crate::table::{Cell, Overflow, Table};
use crate::time::{ago, clock, now};

pub(crate) fn log(
    options: &Options,
    args: &LogArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_caught_up(options, Store::MustExist)?;
    enforce_point_cap(&mut place);
    let PointList { points, session, all } = list(&place.workspace, args)?;
    if screen.json {
        let points: answers::LogAnswer = points.into_iter().map(|(_, answer)| answer).collect();
        screen.json(&points)?;
        return Ok(0);
    }
    screen.page()?;
    let names = SessionNames::of(&place.workspace.store.sessions()?);
    print(&mut screen.out, &points, &names)?;
    match &session {
        None if all == 0 => {
            writeln!(screen.out, "No points yet. {HINT}`takeback checkpoint` makes one.{HINT:#}")?;
        }
        Some(session) if all == 0 => {
            writeln!(screen.out, "{} has no points.", plain(&session.0))?;
        }
        _ if all > points.len() => {
            let older = if points.is_empty() { "not shown" } else { "older" };
            writeln!(screen.out, "{HINT}{} {older}; -n shows more{HINT:#}", all - points.len())?;
        }
        _ => {}
    }
    Ok(0)
}

/// The requested points.
pub(crate) struct PointList {
    /// Newest first.
    pub(crate) points: Vec<(Point, answers::Point)>,
    /// The only session to list.
    session: Option<SessionId>,
    /// How many there are without the limit.
    all: usize,
}

pub(crate) fn list(workspace: &Workspace, args: &LogArgs) -> Result<PointList, CommandError> {
    let store = &*workspace.store;
    let session = args.session.as_ref().map(|name| find_session(workspace, name)).transpose()?;
    let kinds = if args.all { PointFilter::All } else { PointFilter::WithoutSafety };
    // Without a session, the newest points also contain the next point of each listed one.
    let (listed, all) = match &session {
        None => {
            let newest = PointQuery::Newest { filter: kinds, most: args.limit };
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
    // Read once: there may be many points, with many changes after the oldest.
    let oldest = shown.iter().map(|(point, _)| point.seq).min();
    let changes = oldest.map_or(Ok(Vec::new()), |oldest| store.changes_after(oldest))?;
    let with_state = workspace.states.points()?;
    let still_unread = store.unreadable()?;
    let mut points = Vec::new();
    for (point, next) in &shown {
        let unreadable = unreadable_at(&changes, &still_unread, point.seq);
        let changes = within(&changes, point.seq, *next);
        let answer = point_answer(store, point, changes, &with_state)?;
        points.push(((*point).clone(), answers::Point { unreadable, ..answer }));
    }
    Ok(PointList { points, session, all })
}

/// How many paths could not be read when a point was made. `changes`: those after the point, or more;
/// `still_unread`: paths that still cannot be read.
pub(crate) fn unreadable_at(changes: &[Change], still_unread: &[WorkPath], at: Seq) -> usize {
    let mut first: HashMap<&WorkPath, bool> = HashMap::new();
    for change in within(changes, at, None) {
        first.entry(&change.path).or_insert_with(|| change.before.is_unreadable());
    }
    let later = first.values().filter(|unreadable| **unreadable).count();
    later + still_unread.iter().filter(|path| !first.contains_key(path)).count()
}

/// Where the changes listed for `point` end.
fn next_of(point: &Point, later: &[Point]) -> Option<Seq> {
    later.iter().find(|next| same_timeline(point, next)).map(|next| next.seq)
}

/// The part of `changes`, oldest first, after `from` and up to `to`, inclusive.
pub(crate) fn within(changes: &[Change], from: Seq, to: Option<Seq>) -> &[Change] {
    let first = changes.partition_point(|change| change.seq <= from);
    let end = to.map_or(changes.len(), |to| changes.partition_point(|change| change.seq <= to));
    &changes[first..end.max(first)]
}

/// One line per point.
pub(crate) fn print(
    out: &mut dyn Write,
    points: &[(Point, answers::Point)],
    names: &SessionNames,
) -> io::Result<()> {
    let time = now();
    let overflows = [
        Overflow::Nothing,
        Overflow::All(1),
        Overflow::All(3),
        Overflow::End(20),
        Overflow::All(2),
    ];
    let mut table = Table::new(0, overflows);
    for (point, answer) in points {
        table.rows.push([
            Cell::new(NAME, &answer.id.0[..8]),
            Cell::new(HINT, ago(point.created_at, time)),
            Cell::plain(session_label(point, names)),
            Cell::plain(title(point)),
            changes(answer),
        ]);
    }
    table.print(out)
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

fn changes(point: &answers::Point) -> Cell {
    let mut cell = match (point.files_changed, point.not_captured + point.unreadable) {
        (0, 0) => Cell::new(HINT, "–"),
        (files, _) => Cell::plain(count(files, "file")),
    };
    if point.insertions > 0 {
        cell.push(SUCCESS, format!(" +{}", point.insertions));
    }
    if point.deletions > 0 {
        cell.push(FAILURE, format!(" -{}", point.deletions));
    }
    if point.not_captured > 0 {
        cell.push(WARNING, format!(" {} not captured", point.not_captured));
    }
    if point.unreadable > 0 {
        cell.push(WARNING, format!(" {} not read", point.unreadable));
    }
    if point.has_state {
        cell.push(NAME, " state");
    }
    cell
}

/// A point with the changes between it and the next one.
pub(crate) fn point_answer(
    store: &dyn takeback_store::Store,
    point: &Point,
    changes: &[Change],
    with_state: &HashSet<PointId>,
) -> Result<answers::Point, StoreError> {
    let not_captured =
        changes.iter().filter(|change| matches!(change.after, Entry::NotCaptured { .. })).count();
    let diffs: Vec<FileDiff> = between(&by_path(changes.to_vec()), None);
    let mut total = Lines::default();
    for diff in &diffs {
        // A point with damaged contents is still listed, and can be restored as far as it is intact.
        if let Some(lines) = diff.lines(store)? {
            total.insertions += lines.insertions;
            total.deletions += lines.deletions;
        }
    }
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
        files_changed: diffs.iter().filter(|diff| !diff.is_folder()).count(),
        insertions: total.insertions,
        deletions: total.deletions,
        not_captured,
        unreadable: 0,
        has_state: with_state.contains(&point.id),
        basis: match point.basis {
            PointBasis::Scan => answers::PointBasis::Scan,
            PointBasis::Watch => answers::PointBasis::Watch,
        },
    })
}
