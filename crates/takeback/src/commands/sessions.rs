//! `sessions`, `session archive`, `session delete`.

use std::io::Write as _;

use takeback_core::retention::{
    CleanUpReport, archive_session, delete_session, rewinds_with_session,
};
use takeback_core::{Workspace, edit_distance, process};
use takeback_store::{Point, PointKind, Session, SessionId};

use super::cleanup::report;
use super::log::described;
use crate::answers;
use crate::args::{DeleteArgs, Options, SessionArgs, SessionCommand, SessionsArgs};
use crate::ask;
use crate::error::{CommandError, Kind};
use crate::place::{self, Place, Store};
use crate::progress;
use crate::screen::{HEADING, HINT, NAME, SUCCESS, Screen, WARNING, count, is_interactive, plain};
use crate::session_name::SessionNames;
use crate::stores;
use crate::table::{Cell, Overflow, Table};
use crate::time::{ago, now};

/// Whether a turn is open and the agent's process may be alive.
pub(crate) fn may_be_at_work(session: &Session) -> bool {
    session.open_turn.is_some() && session.owner.is_none_or(process::is_alive)
}

pub(crate) fn sessions(
    options: &Options,
    args: &SessionsArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let place = place::open_caught_up(options, Store::MustExist)?;
    if screen.json {
        screen.json(&list(&place.workspace, args.limit)?)?;
        return Ok(0);
    }
    let sessions = place.workspace.store.sessions()?;
    let points = place.workspace.store.points()?;
    let names = SessionNames::of(&sessions);
    // A subagent is listed with its parent session.
    let wholes = || sessions.iter().filter(|session| session.whole().is_none());
    let newest: Vec<&Session> = wholes().rev().take(args.limit).collect();
    if newest.is_empty() {
        writeln!(screen.out, "No sessions yet. {HINT}`takeback run -- CMD` starts one.{HINT:#}")?;
    }
    let time = now();
    let overflows =
        [Overflow::End(8), Overflow::All(1), Overflow::All(2), Overflow::All(3), Overflow::End(8)];
    let mut table = Table::new(0, overflows);
    for session in &newest {
        let mut state = match session {
            session if session.archived_at.is_some() => Cell::new(HINT, "archived"),
            session if may_be_at_work(session) => Cell::new(WARNING, "at work"),
            session if session.ended_at.is_some() => Cell::new(HINT, "ended"),
            _ => Cell::new(HINT, "idle"),
        };
        if let Some(model) = &session.model {
            state.push(HINT, format!(", {}", plain(model)));
        }
        table.rows.push([
            Cell::new(NAME, names.get(&session.id)),
            Cell::new(HINT, ago(session.started_at, time)),
            state,
            Cell::plain(count(point_count(session, &points), "point")),
            Cell::plain(plain(&first_of(session, &points).map_or_else(String::new, described))),
        ]);
    }
    screen.page()?;
    table.print(&mut screen.out)?;
    let all = wholes().count();
    if all > newest.len() {
        let older = all - newest.len();
        writeln!(screen.out, "{HINT}{older} older; -n shows more{HINT:#}")?;
    }
    Ok(0)
}

pub(crate) fn list(
    workspace: &Workspace,
    limit: usize,
) -> Result<answers::SessionsAnswer, CommandError> {
    let (sessions, points) = (workspace.store.sessions()?, workspace.store.points()?);
    let newest = sessions.iter().rev().take(limit);
    Ok(newest.map(|session| session_answer(session, &points)).collect())
}

fn session_answer(session: &Session, points: &[Point]) -> answers::Session {
    let first = first_of(session, points);
    answers::Session {
        id: session.id.0.clone(),
        agent: session.agent.clone(),
        model: session.model.clone(),
        parent: session.parent.as_ref().map(|parent| parent.0.clone()),
        started_at: answers::time(session.started_at),
        ended_at: session.ended_at.map(answers::time),
        archived_at: session.archived_at.map(answers::time),
        at_work: may_be_at_work(session),
        points: point_count(session, points),
        description: first.map_or_else(String::new, |point| point.description.clone()),
    }
}

fn point_count(session: &Session, points: &[Point]) -> usize {
    own_of(session, points).filter(|point| point.kind != PointKind::Safety).count()
}

fn own_of<'a>(session: &Session, points: &'a [Point]) -> impl Iterator<Item = &'a Point> {
    points.iter().filter(|point| point.session.as_ref() == Some(&session.id))
}

fn first_of<'a>(session: &Session, points: &'a [Point]) -> Option<&'a Point> {
    own_of(session, points).next()
}

pub(crate) fn session(
    options: &Options,
    command: &SessionCommand,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    match command {
        SessionCommand::Archive(session) => archive(options, session, screen),
        SessionCommand::Delete(session) => delete(options, session, screen),
    }
}

fn archive(options: &Options, args: &SessionArgs, screen: &mut Screen) -> Result<u8, CommandError> {
    let mut place = place::open_caught_up(options, Store::MustExist)?;
    let id = find_session(&place.workspace, &args.session)?;
    archive_session(&mut place.workspace, &id)?;
    let days = place.settings.retention().archive_days;
    if screen.json {
        screen.json(&archived(&place, &id)?)?;
    } else if !screen.quiet {
        writeln!(
            screen.out,
            "{SUCCESS}Archived{SUCCESS:#} {NAME}{}{NAME:#}  {HINT}its data is deleted in {}, except labelled and pinned points{HINT:#}",
            plain(&id.0),
            count(days as usize, "day"),
        )?;
    }
    Ok(0)
}

pub(crate) fn archived(
    place: &Place,
    id: &SessionId,
) -> Result<answers::ArchiveAnswer, CommandError> {
    let session = place.workspace.store.session(id)?;
    Ok(answers::ArchiveAnswer {
        session: id.0.clone(),
        archived_at: session.and_then(|session| session.archived_at).map(answers::time),
        kept_days: place.settings.retention().archive_days.into(),
    })
}

fn delete(options: &Options, args: &DeleteArgs, screen: &mut Screen) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let id = find_session(&place.workspace, &args.session)?;
    let points = place.workspace.store.points()?;
    let own: Vec<&Point> = points.iter().filter(|p| p.session.as_ref() == Some(&id)).collect();
    let marked = own.iter().filter(|point| point.pinned || point.label.is_some()).count();
    if !args.yes && !args.dry_run && (!is_interactive() || screen.json) {
        return Err(ask::needs_confirmation("deletes points"));
    }
    let rewinds = rewinds_with_session(&*place.workspace.store, &id)?;
    if args.dry_run && screen.json {
        let (points, sessions) = (own.len(), vec![id.0]);
        screen.json(&answers::SessionDeletePreview { sessions, points, marked, rewinds })?;
        return Ok(0);
    }
    if !args.yes || args.dry_run {
        writeln!(screen.out, "{HEADING}Delete session {}{HEADING:#}\n", plain(&id.0))?;
        let marked = match marked {
            0 => String::new(),
            marked => format!(", {marked} of them labelled or pinned"),
        };
        writeln!(screen.out, "  {} would be deleted{marked}", count(own.len(), "point"))?;
        let executions = place.workspace.states.executions()?.executions;
        let states = executions.iter().filter(|one| one.session.as_ref() == Some(&id)).count();
        if states > 0 {
            let with = count(states, "execution");
            writeln!(screen.out, "  and {with} with all checkpoints")?;
        }
        if rewinds > 0 {
            let which = count(rewinds, "rewind");
            writeln!(screen.out, "  {which} could no longer be undone")?;
        }
        writeln!(screen.out, "  {HINT}files are not touched; this cannot be undone{HINT:#}")?;
        if args.dry_run {
            return Ok(0);
        }
        if !ask::confirmed(screen)? {
            writeln!(screen.out, "Nothing was changed.")?;
            return Ok(0);
        }
    }
    let code = report(&delete_now(&mut place, options, &id)?, screen)?;
    if rewinds > 0 && !screen.json && !screen.quiet {
        let which = count(rewinds, "rewind");
        writeln!(screen.out, "{HINT}{which} can no longer be undone.{HINT:#}")?;
    }
    Ok(code)
}

pub(crate) fn delete_now(
    place: &mut Place,
    options: &Options,
    id: &SessionId,
) -> Result<CleanUpReport, CommandError> {
    let spinner = progress::spinner("Deleting");
    let done = delete_session(&mut place.workspace, id);
    drop(spinner);
    let done = done?;
    stores::remove_sessions(&done.sessions, &place::home(options)?)?;
    Ok(done)
}

/// Finds a session by its id, a prefix of it, or its display name.
pub(crate) fn find_session(workspace: &Workspace, name: &str) -> Result<SessionId, CommandError> {
    let lists = "`takeback sessions` lists the sessions.";
    if name.is_empty() {
        return Err(CommandError::new(Kind::Usage, "the session's name is empty").hint(lists));
    }
    let sessions = workspace.store.sessions()?;
    let names = SessionNames::of(&sessions);
    let is_meant =
        |session: &&Session| session.id.0.starts_with(name) || names.means(name, session);
    let hits: Vec<_> = sessions.iter().filter(is_meant).collect();
    // A session's id is also a prefix of its subagents' ids.
    let is_whole_of_all = |one: &&&Session| {
        let is_part = |other: &&Session| other.id == one.id || other.whole() == Some(&one.id);
        hits.iter().all(is_part)
    };
    let exact = hits.iter().find(|session| session.id.0 == *name);
    let exact = exact.or_else(|| hits.iter().find(is_whole_of_all));
    match (exact, hits.as_slice()) {
        (Some(session), _) | (None, [session]) => Ok(session.id.clone()),
        (None, []) => {
            let meant = nearest(&sessions, name);
            let meant = meant.map_or_else(String::new, |id| format!("Did you mean {id}? "));
            let unknown = SessionNameError::NotFound { name: name.to_owned() };
            Err(CommandError::new(Kind::Error, unknown).hint(format!("{meant}{lists}")))
        }
        (None, several) => {
            let candidates = several.iter().map(|session| session.id.clone()).collect();
            let several = SessionNameError::Several { name: name.to_owned(), candidates };
            Err(CommandError::new(Kind::Error, several).hint("Use more characters of the id."))
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionNameError {
    #[error("there is no session {name}")]
    NotFound { name: String },
    #[error("there is no agent and no session {name}")]
    NoAuthor { name: String },
    #[error("{name} is ambiguous: {}", listed(candidates))]
    Several { name: String, candidates: Vec<SessionId> },
}

/// The candidates for a name, or the first few of many.
fn listed(candidates: &[SessionId]) -> String {
    const MOST: usize = 8;
    let names: Vec<&str> = candidates.iter().take(MOST).map(|id| id.0.as_str()).collect();
    match (names.as_slice(), candidates.len().saturating_sub(MOST)) {
        ([first @ .., last], 0) if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        (names, 0) => names.join(", "),
        (names, more) => format!("{} or {more} more", names.join(", ")),
    }
}

/// The session whose id is closest to `name`, if any is close.
fn nearest<'a>(sessions: &'a [Session], name: &str) -> Option<&'a SessionId> {
    const LONGEST: usize = 64;
    if name.len() > LONGEST {
        return None;
    }
    sessions
        .iter()
        .filter(|session| session.id.0.len() <= LONGEST)
        .map(|session| (edit_distance(&session.id.0, name), &session.id))
        .filter(|(distance, id)| *distance <= id.0.len().max(3) / 3)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, id)| id)
}
