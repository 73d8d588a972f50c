//! `stats`: who wrote how much, and what is left of it.

use std::io::Write as _;

use takeback_core::Workspace;
use takeback_core::history::{Contribution, Stats, settle, stats as count};
use takeback_store::{Change, Point, PointKind, PointQuery, Seq, Session, Timestamp};

use super::log::{moment, title};
use crate::answers;
use crate::args::{Options, StatsArgs};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::point::find_in;
use crate::screen::{FAILURE, HEADING, HINT, NAME, SUCCESS, Screen, count as counted, plain};
use crate::session_name::SessionNames;
use crate::table::{Cell, Overflow, Table};

pub(crate) fn stats(
    options: &Options,
    args: &StatsArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    takeback_core::look_around(&mut place.workspace)?;
    let workspace = &place.workspace;
    let stats = counted_in(workspace, args.range.as_deref(), args.since.as_deref())?;
    let sessions = workspace.store.sessions()?;
    if screen.json {
        screen.json(&answer(&stats, &sessions))?;
        return Ok(0);
    }
    screen.page()?;
    print(&stats, &sessions, screen)
}

/// Counts the range `A..B`, `A..`, `..B`, or what was written since a time.
pub(crate) fn counted_in(
    workspace: &Workspace,
    range: Option<&str>,
    since: Option<&str>,
) -> Result<Stats, CommandError> {
    let store = &*workspace.store;
    let (from, to) = match range {
        None => (None, None),
        Some(range) => {
            let (from, to) = range.split_once("..").ok_or_else(|| {
                CommandError::new(Kind::Usage, format!("{} is not a range", plain(range)))
                    .hint("Write two points with two dots between, as in @~5..@, or one: @~5..")
            })?;
            let seq = |name: &str| -> Result<Option<Seq>, CommandError> {
                (!name.is_empty()).then(|| Ok(find_in(store, name)?.seq)).transpose()
            };
            (seq(from)?, seq(to)?)
        }
    };
    count_between(workspace, from, to, since.map(moment).transpose()?)
}

/// Counts what was written between two positions of the log, and not before `since`.
pub(crate) fn count_between(
    workspace: &Workspace,
    from: Option<Seq>,
    to: Option<Seq>,
    since: Option<Timestamp>,
) -> Result<Stats, CommandError> {
    let store = &*workspace.store;
    let from = from.unwrap_or(Seq(0));
    let mut changes = match to {
        Some(to) => store.changes_between(from, to)?,
        None => store.changes_after(from)?,
    };
    let since = since.unwrap_or(Timestamp(i64::MIN));
    changes.retain(|change: &Change| change.time >= since);
    settle(store, &mut changes)?;
    let is_in = |point: &&Point| point.seq >= from && to.is_none_or(|to| point.seq < to);
    let mut points = store.find_points(PointQuery::From { seq: from, most: usize::MAX })?;
    points.retain(|point| is_in(&point) && point.kind == PointKind::Prompt);
    Ok(count(store, &changes, &points)?)
}

pub(crate) fn answer(stats: &Stats, sessions: &[Session]) -> answers::StatsAnswer {
    let session = |(id, written): &(takeback_store::SessionId, Contribution)| {
        let record = sessions.iter().find(|session| session.id == *id);
        answers::SessionStats {
            session: id.0.clone(),
            agent: record.and_then(|session| session.agent.clone()),
            model: record.and_then(|session| session.model.clone()),
            written: written_answer(*written),
        }
    };
    let prompt = |(point, written): &(Point, Contribution)| answers::PromptStats {
        point: answers::Id::new(point.id),
        session: point.session.as_ref().map(|session| session.0.clone()),
        description: point.description.clone(),
        written: written_answer(*written),
    };
    let model = |(model, written): &(Option<String>, Contribution)| answers::ModelStats {
        model: model.clone(),
        written: written_answer(*written),
    };
    answers::StatsAnswer {
        agents: written_answer(stats.agents),
        you: written_answer(stats.you),
        unclear: written_answer(stats.unclear),
        unknown: written_answer(stats.unknown),
        sessions: stats.sessions.iter().map(session).collect(),
        models: stats.models.iter().map(model).collect(),
        prompts: stats.prompts.iter().map(prompt).collect(),
        not_followed: stats.not_followed.iter().map(|path| answers::path(path).file_path).collect(),
    }
}

fn written_answer(written: Contribution) -> answers::Contribution {
    let Contribution { count, left } = written;
    let count = answers::ChangeCount {
        files: count.files,
        insertions: count.lines.insertions,
        deletions: count.lines.deletions,
    };
    answers::Contribution { count, left }
}

pub(crate) fn print(
    stats: &Stats,
    sessions: &[Session],
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let names = SessionNames::of(sessions);
    let out = &mut screen.out;
    let none = Contribution::default();
    let all = [stats.agents, stats.you, stats.unclear, stats.unknown];
    if all.iter().all(|written| *written == none) {
        writeln!(out, "Nothing was written.")?;
        return Ok(0);
    }
    let mut table =
        Table::new(0, [Overflow::End(16), Overflow::All(1), Overflow::Nothing, Overflow::All(2)]);
    let mut row = |indent: &str, who: String, written: Contribution| {
        let Contribution { count, left } = written;
        let mut lines = Cell::new(SUCCESS, format!("+{}", count.lines.insertions));
        lines.push(FAILURE, format!(" -{}", count.lines.deletions));
        table.rows.push([
            Cell::plain(format!("{indent}{who}")),
            Cell::plain(counted(count.files, "file")),
            lines,
            Cell::new(HINT, format!("{left} of them left")),
        ]);
    };
    row("", "agents".to_owned(), stats.agents);
    for (session, written) in &stats.sessions {
        row("  ", names.get(session), *written);
    }
    // Without any name there is nothing to tell apart.
    if stats.models.iter().any(|(model, _)| model.is_some()) {
        for (model, written) in &stats.models {
            let model = model.as_deref().map_or_else(|| "model unknown".to_owned(), plain);
            row("  ", model, *written);
        }
    }
    row("", "you".to_owned(), stats.you);
    for (who, written) in [("unclear", stats.unclear), ("deleted sessions", stats.unknown)] {
        if written != none {
            row("", who.to_owned(), written);
        }
    }
    table.print(out)?;
    if !stats.prompts.is_empty() {
        writeln!(out, "\n{HEADING}By prompt{HEADING:#}")?;
        let mut table = Table::new(
            0,
            [Overflow::Nothing, Overflow::End(20), Overflow::Nothing, Overflow::All(1)],
        );
        for (point, Contribution { count, left }) in &stats.prompts {
            let mut lines = Cell::new(SUCCESS, format!("+{}", count.lines.insertions));
            lines.push(FAILURE, format!(" -{}", count.lines.deletions));
            table.rows.push([
                Cell::new(NAME, &point.id.to_string()[..8]),
                Cell::plain(title(point)),
                lines,
                Cell::new(HINT, format!("{left} left")),
            ]);
        }
        table.print(out)?;
    }
    if !stats.not_followed.is_empty() {
        let files = counted(stats.not_followed.len(), "file");
        writeln!(
            out,
            "{HINT}What is left of {files} is not known: not text, too large, or lost.{HINT:#}"
        )?;
    }
    Ok(0)
}
