//! `show`: one point, and what was changed after it, by whom.

use std::collections::HashSet;
use std::io::{self, Write};

use anstyle::Style;
use serde::Serialize;
use serde_json::{Value, json};
use takeback_core::Workspace;
use takeback_core::exchange::{is_detour, same_story};
use takeback_core::history::{PathHistory, by_path, settle};
use takeback_core::record::describe;
use takeback_store::{
    Author, CallId, CallKind, Change, Correction, Entry, Evidence, Point, PointKind, PointQuery,
    Seq, SessionId, StoreError, Turn, Vouched,
};

use super::filediff::FileDiff;
use super::log::{Told, tell, title, unreadable_at};
use crate::args::{Options, ShowArgs};
use crate::error::CommandError;
use crate::place::{self, Store};
use crate::point::named_in;
use crate::screen::{HINT, NAME, STRONG, Screen, name, plain, width, wrap};
use crate::session_name::SessionNames;
use crate::table::{Cell, Give, Table};
use crate::time::{ago, clock, iso, now};
use crate::wire::WirePath;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToldChange<'a> {
    seq: u64,
    #[serde(flatten)]
    path: WirePath,
    before: &'a Entry,
    after: &'a Entry,
    author: &'a Author,
    /// Of an agent's: how that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<Evidence>,
    /// What the person said of its author.
    #[serde(skip_serializing_if = "Option::is_none")]
    correction: Option<&'a Correction>,
    time: String,
}

pub(crate) fn show(
    options: &Options,
    args: &ShowArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let place = place::open_caught_up(options, Store::MustExist)?;
    let store = &*place.workspace.store;
    let time = now();
    let shown = look_at(&place.workspace, &args.point)?;
    if screen.json {
        screen.json(&shown.to_json()?)?;
        return Ok(0);
    }
    let Shown { point, told, prompt, changes, .. } = shown;
    let point = &point;
    screen.page()?;
    let out = &mut screen.out;
    for line in wrap(&title(point), width()) {
        writeln!(out, "{STRONG}{line}{STRONG:#}")?;
    }
    detail(out, "point", NAME, &told.id)?;
    let made = format!("{} ({})", clock(point.created_at), ago(point.created_at, time));
    detail(out, "made", PLAIN, &made)?;
    if let Some(session) = &told.session {
        detail(out, "session", PLAIN, &plain(session))?;
    }
    for message in &point.message_ids {
        detail(out, "message", PLAIN, &plain(message))?;
    }
    if let Some(prompt) = prompt.filter(|prompt| *prompt != point.description) {
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
        let vouched = match point.vouched {
            Vouched::Scan => "by a look at the files",
            Vouched::Watch => "by the watcher, since the last look at all files",
        };
        detail(out, "known", PLAIN, vouched)?;
    }
    writeln!(out)?;
    let names = SessionNames::of(&store.sessions()?);
    let mut histories = by_path(changes);
    histories.iter_mut().for_each(skip_first_sight);
    histories.retain(|history| !is_detour(history));
    if histories.is_empty() {
        writeln!(out, "{HINT}Nothing was changed after it.{HINT:#}")?;
    }
    let mut table = Table::new(2, [Give::Start(12), Give::End(10), Give::End(10)]);
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

/// A path outside the workspace is first looked at when a call names it. What it was before is not
/// known, so that is no change, and has no author.
fn skip_first_sight(history: &mut PathHistory) {
    if history.changes.len() > 1 && *history.at_start() == Entry::Unknown {
        history.changes.remove(0);
    }
}

/// A point, and what was changed between it and the next.
pub(crate) struct Shown {
    point: Point,
    told: Told,
    /// All of the prompt, if the point was made by one and it is known.
    prompt: Option<String>,
    changes: Vec<Change>,
    /// The calls that made them, once each.
    calls: Vec<ToldCall>,
}

#[derive(Serialize)]
struct ToldCall {
    session: SessionId,
    id: CallId,
    tool: String,
    /// Of a shell call.
    command: Option<String>,
}

pub(crate) fn look_at(workspace: &Workspace, name: &str) -> Result<Shown, CommandError> {
    let store = &*workspace.store;
    let point = named_in(store, name)?;
    let next = next_of(store, &point)?;
    let mut changes = store.changes_after(point.seq)?;
    let unreadable = unreadable_at(&changes, &store.unreadable()?, point.seq);
    changes.retain(|change| next.is_none_or(|next| change.seq <= next));
    settle(store, &mut changes)?;
    let told = tell(store, &point, &changes, &workspace.states.points()?)?;
    let told = Told { unreadable, ..told };
    let prompt = whole_prompt(store, &point, &changes)?;
    let calls = calls_of(store, &changes)?;
    Ok(Shown { point, told, prompt, changes, calls })
}

/// Where the next point of the same story is, if there is one.
fn next_of(store: &dyn takeback_store::Store, point: &Point) -> Result<Option<Seq>, StoreError> {
    let mut most = 16;
    loop {
        let later = store.find_points(PointQuery::From { seq: point.seq, most })?;
        let all = later.len() < most;
        let next = later
            .iter()
            .filter(|other| other.kind != PointKind::Safety && other.id != point.id)
            .filter(|other| same_story(point, other))
            .find(|other| other.created_at > point.created_at)
            .map(|other| other.seq);
        if next.is_some() || all {
            return Ok(next);
        }
        most *= 4;
    }
}

impl Shown {
    pub(crate) fn to_json(&self) -> Result<Value, CommandError> {
        let changes: Vec<ToldChange<'_>> = self
            .changes
            .iter()
            .map(|change| ToldChange {
                seq: change.seq.0,
                path: (&change.path).into(),
                before: &change.before,
                after: &change.after,
                author: &change.author,
                evidence: (!change.author.sessions().is_empty()).then_some(change.evidence),
                correction: change.correction.as_ref(),
                time: iso(change.time),
            })
            .collect();
        let mut value = serde_json::to_value(&self.told)?;
        value["prompt"] = json!(self.prompt);
        value["git"] = json!(self.point.git);
        value["calls"] = json!(self.calls);
        value["changes"] = json!(changes);
        Ok(value)
    }
}

/// The calls that the authors of changes name.
fn calls_of(
    store: &dyn takeback_store::Store,
    changes: &[Change],
) -> Result<Vec<ToldCall>, StoreError> {
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
        let (session, id, tool) = (session.clone(), call.clone(), tool.clone());
        calls.push(ToldCall { session, id, tool, command });
    }
    Ok(calls)
}

/// The whole prompt of a point; the point itself has only the beginning.
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

/// A line of what something is, and more if it is long.
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
                _ if change.correction.is_some() => format!("{session} (you said so)"),
                Evidence::Named => format!("{session} with {tool}"),
                Evidence::AfterEdit => format!("{session} right after {tool}"),
                // `takeback run`: the session is the command.
                Evidence::Window if tool == "run" => format!("while {session} ran"),
                Evidence::Window => format!("{session} while {tool} ran"),
                Evidence::OpenWindow => format!("unclear: you, or {session} after {tool} began"),
            }
        }
        Author::Human if change.correction.is_some() => "you (you said so)".to_owned(),
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
