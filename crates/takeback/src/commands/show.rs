//! `show`: one point and the changes after it, with their authors.

use std::collections::HashSet;
use std::io::{self, Write};

use anstyle::Style;
use takeback_core::Workspace;
use takeback_core::exchange::{is_detour, same_timeline};
use takeback_core::history::{PathHistory, by_path, settle};
use takeback_core::record::describe;
use takeback_store::{
    Author, CallKind, Change, Entry, Evidence, Point, PointBasis, PointKind, PointQuery, Seq,
    StoreError, Turn,
};

use super::filediff::FileDiff;
use super::log::{point_answer, title, unreadable_at};
use crate::answers;
use crate::args::{Options, ShowArgs};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::point::find_in;
use crate::screen::{HEADING, HINT, NAME, Screen, name, plain, width, wrap};
use crate::session_name::SessionNames;
use crate::table::{Cell, Overflow, Table};
use crate::time::{ago, clock, now};

pub(crate) fn show(
    options: &Options,
    args: &ShowArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let place = place::open_caught_up(options, Store::MustExist)?;
    let store = &*place.workspace.store;
    let time = now();
    let PointDetails { point, changes, answer } = details(&place.workspace, &args.point)?;
    if screen.json {
        screen.json(&answer)?;
        return Ok(0);
    }
    let point = &point;
    screen.page()?;
    let out = &mut screen.out;
    for line in wrap(&title(point), width()) {
        writeln!(out, "{HEADING}{line}{HEADING:#}")?;
    }
    detail(out, "point", NAME, &point.id.to_string())?;
    let made = format!("{} ({})", clock(point.created_at), ago(point.created_at, time));
    detail(out, "made", PLAIN, &made)?;
    if let Some(session) = &point.session {
        detail(out, "session", PLAIN, &plain(&session.0))?;
    }
    for message in &point.message_ids {
        detail(out, "message", PLAIN, &plain(message))?;
    }
    if let Some(prompt) = answer.prompt.filter(|prompt| *prompt != point.description) {
        for (at, line) in prompt.lines().enumerate() {
            detail(out, if at == 0 { "prompt" } else { "" }, PLAIN, &plain(line))?;
        }
    }
    if let Some(git) = &point.git {
        let branch = git.branch.as_deref().unwrap_or("detached");
        let head = git.head.as_deref().map_or("no commit", |head| head.get(..12).unwrap_or(head));
        detail(out, "git", PLAIN, &format!("{} {}", plain(branch), plain(head)))?;
    }
    if screen.verbose {
        let vouched = match point.basis {
            PointBasis::Scan => "by a scan",
            PointBasis::Watch => "by the watcher, since the last full scan",
        };
        detail(out, "known", PLAIN, vouched)?;
    }
    writeln!(out)?;
    let names = SessionNames::of(&store.sessions()?);
    let mut histories = by_path(changes);
    histories.iter_mut().for_each(skip_first_sight);
    histories.retain(|history| !is_detour(history));
    if histories.is_empty() {
        writeln!(out, "{HINT}Nothing changed after it.{HINT:#}")?;
    }
    let mut table = Table::new(2, [Overflow::Start(12), Overflow::End(10), Overflow::End(10)]);
    for history in histories {
        let diff = FileDiff {
            path: history.path.clone(),
            before: history.at_start().clone(),
            after: history.at_end().clone(),
        };
        let changed = history.changes.iter().filter(|change| change.before != Entry::Unknown);
        let mut authors: Vec<String> = changed.map(|change| author(change, &names)).collect();
        authors.dedup();
        let what = match &diff.before {
            Entry::Unknown => "first seen".to_owned(),
            _ => diff.what(),
        };
        table.rows.push([
            Cell::plain(name(&diff.path)),
            Cell::new(HINT, what),
            Cell::plain(authors.join(", then ")),
        ]);
    }
    table.print(out)?;
    Ok(0)
}

/// A path outside the workspace is first read when a call names it. Its earlier contents are unknown, so that
/// is not a change and has no author.
fn skip_first_sight(history: &mut PathHistory) {
    if history.changes.len() > 1 && *history.at_start() == Entry::Unknown {
        history.changes.remove(0);
    }
}

/// A point and the changes between it and the next one.
pub(crate) struct PointDetails {
    point: Point,
    changes: Vec<Change>,
    pub(crate) answer: answers::ShowAnswer,
}

pub(crate) fn details(workspace: &Workspace, name: &str) -> Result<PointDetails, CommandError> {
    let store = &*workspace.store;
    let point = find_in(store, name)?;
    let next = next_of(store, &point)?;
    let mut changes = store.changes_after(point.seq)?;
    let unreadable = unreadable_at(&changes, &store.unreadable()?, point.seq);
    changes.retain(|change| next.is_none_or(|next| change.seq <= next));
    settle(store, &mut changes)?;
    let answer = point_answer(store, &point, &changes, &workspace.states.points()?)?;
    let answer = answers::ShowAnswer {
        point: answers::Point { unreadable, ..answer },
        prompt: whole_prompt(store, &point, &changes)?,
        git: point.git.clone().map(|git| answers::GitState { head: git.head, branch: git.branch }),
        changes: changes.iter().map(answers::change).collect(),
        calls: calls_of(store, &changes)?,
    };
    Ok(PointDetails { point, changes, answer })
}

/// The position of the next point of the same session, if there is one.
fn next_of(store: &dyn takeback_store::Store, point: &Point) -> Result<Option<Seq>, StoreError> {
    let mut most = 16;
    loop {
        let later = store.find_points(PointQuery::From { seq: point.seq, most })?;
        let all = later.len() < most;
        let next = later
            .iter()
            .filter(|other| other.kind != PointKind::Safety && other.id != point.id)
            .filter(|other| same_timeline(point, other))
            .find(|other| other.created_at > point.created_at)
            .map(|other| other.seq);
        if next.is_some() || all {
            return Ok(next);
        }
        most *= 4;
    }
}

/// The calls that the authors of changes name.
fn calls_of(
    store: &dyn takeback_store::Store,
    changes: &[Change],
) -> Result<Vec<answers::Call>, StoreError> {
    let mut seen = HashSet::new();
    let mut calls = Vec::new();
    for change in changes {
        let Author::Agent { session, call, tool, .. } = &change.author else { continue };
        if !seen.insert((session, call)) {
            continue;
        }
        let command = store.call(session, call)?.and_then(|call| match call.kind {
            CallKind::Shell { command, .. } => command,
            CallKind::Edit { .. } => None,
        });
        let (session, id) = (session.0.clone(), call.0.clone());
        calls.push(answers::Call { session, id, tool: tool.clone(), command });
    }
    Ok(calls)
}

/// The full prompt of a point; the point itself has only its beginning.
fn whole_prompt(
    store: &dyn takeback_store::Store,
    point: &Point,
    changes: &[Change],
) -> Result<Option<String>, StoreError> {
    let Some(session) = point.session.as_ref().filter(|_| point.kind == PointKind::Prompt) else {
        return Ok(None);
    };
    let of_point = |turn: &Turn| {
        let is_its = turn.opened_at == point.created_at
            || turn.message.as_ref().is_some_and(|message| point.message_ids.contains(message));
        turn.session == *session && is_its && describe(&turn.prompt) == point.description
    };
    let changed = changes.iter().filter_map(|change| match &change.author {
        Author::Agent { session: author, turn, .. } if author == session => Some(*turn),
        _ => None,
    });
    let under_way = store.session(session)?.and_then(|session| session.open_turn);
    for turn in under_way.into_iter().chain(changed.take(1)) {
        if let Some(turn) = store.turn(turn)?.filter(of_point) {
            return Ok(Some(turn.prompt.trim().to_owned()));
        }
    }
    let turn = store.turns()?.into_iter().find(of_point);
    Ok(turn.map(|turn| turn.prompt.trim().to_owned()))
}

pub(crate) const PLAIN: Style = Style::new();

/// Prints a labelled text, wrapped if it is long.
pub(crate) fn detail(
    out: &mut dyn Write,
    label: &str,
    style: Style,
    value: &str,
) -> io::Result<()> {
    const COLUMN: usize = 9;
    for (at, line) in wrap(value, width().saturating_sub(COLUMN)).iter().enumerate() {
        let label = if at == 0 { label } else { "" };
        writeln!(out, "{HINT}{label:<COLUMN$}{HINT:#}{style}{line}{style:#}")?;
    }
    Ok(())
}

fn author(change: &Change, names: &SessionNames) -> String {
    match &change.author {
        Author::Agent { session, tool, .. } => {
            let (session, tool) = (names.get(session), plain(tool));
            match change.evidence {
                _ if change.correction.is_some() => format!("{session} (corrected by you)"),
                Evidence::Named => format!("{session} with {tool}"),
                Evidence::AfterEdit => format!("{session} right after {tool}"),
                // `takeback run`: the session is the command.
                Evidence::Window if tool == "run" => format!("while {session} ran"),
                Evidence::Window => format!("{session} while {tool} ran"),
                Evidence::OpenWindow => format!("unclear: you, or {session} after {tool} began"),
            }
        }
        Author::Human if change.correction.is_some() => "you (corrected by you)".to_owned(),
        Author::Human => "you".to_owned(),
        Author::Ambiguous { sessions } => {
            let sessions: Vec<String> = sessions.iter().map(|session| names.get(session)).collect();
            format!("unclear: you or {}", sessions.join(", "))
        }
        Author::Rewind { .. } => "a rewind".to_owned(),
        Author::Deleted => "a deleted session".to_owned(),
        Author::Import => "an import".to_owned(),
    }
}
