//! `cleanup`: deletes expired points and reclaims disk space. Commands that record also do this once a day.

mod home;

use std::io::Write as _;
use std::process::Stdio;

use takeback_core::retention::{
    self, CleanUpPreview, CleanUpReport, Clock, ClockTrouble, Occasion, clean_up, is_due,
    is_over_size_limit, would_drop,
};

use takeback_core::index_in;
use takeback_store::{SessionId, disk};

use self::home::{HomeCleanedUp, fit_home};
use super::disk_limits;
use super::hook::background_command;

use crate::answers;
use crate::args::{CleanupArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Place, Store};
use crate::progress;
use crate::screen::{HINT, SUCCESS, Screen, WARNING, bytes, count, plain};
use crate::stores;
use crate::time::moment;

pub(crate) fn cleanup(
    options: &Options,
    args: &CleanupArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = open(options)?;
    if args.only_too_many {
        enforce_point_cap(&mut place);
        return Ok(0);
    }
    let policy = place.settings.retention();
    let clock = if args.trust_clock { Clock::Trusted } else { Clock::Doubted };
    if args.dry_run {
        let CleanUpPreview { points, sessions, stopped } =
            would_drop(&place.workspace, &policy, clock)?;
        if let Some(trouble) = stopped {
            return Err(clock_error(trouble));
        }
        if screen.json {
            screen.json(&answers::CleanupPreview {
                points: points.iter().map(answers::Id::new).collect(),
                sessions: answers::names(&sessions),
            })?;
        } else if points.is_empty() && sessions.is_empty() {
            writeln!(screen.out, "{HINT}Nothing to expire.{HINT:#}")?;
        } else {
            let (points, sessions) = (points.len(), sessions.len());
            let sessions = count(sessions, "session");
            writeln!(screen.out, "{} and {sessions} would be deleted.", count(points, "point"))?;
        }
        return Ok(0);
    }
    let done = clean_up_now(&mut place, options, clock)?;
    let home = fit_home(&mut place, options, clock)?;
    if screen.json {
        let home = home.as_ref().map(home_answer);
        screen.json(&answers::CleanupAnswer { home, ..answer(&done) })?;
        return Ok(0);
    }
    report(&done, screen)?;
    if let Some(home) = home.filter(|_| !screen.quiet) {
        for (root, done) in &home.workspaces {
            let root = plain(&root.to_string_lossy());
            writeln!(screen.out, "{}  {HINT}in {root}{HINT:#}", sentence(done))?;
        }
        if home.left.is_over() {
            writeln!(screen.out, "{WARNING}{}{WARNING:#}", capital(&home.left.words()))?;
        }
    }
    Ok(0)
}

fn home_answer(home: &HomeCleanedUp) -> answers::HomeCleanup {
    let workspaces = home.workspaces.iter().map(|(root, done)| answers::HomeCleanupWorkspace {
        root: answers::place(root),
        points: done.points,
        freed_bytes: done.freed,
    });
    let disk_limits::Home { limit, used, of_gone } = home.left;
    let workspaces = workspaces.collect();
    answers::HomeCleanup { limit, bytes: used, gone_bytes: of_gone, workspaces }
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Even opening a store takes some disk space. If there is none, deletes the index to make room: it can be
/// rebuilt.
fn open(options: &Options) -> Result<Place, CommandError> {
    /// The size of the files that SQLite creates next to a database, with some margin.
    const ROOM: u64 = 1 << 20;
    let opened = place::open_recovered(options, Store::MustExist);
    let location = place::locate(options)?;
    let folder = stores::store_of(&location.root, &location.home);
    let has_room =
        rustix::fs::statvfs(&folder).is_ok_and(|disk| disk.f_bavail * disk.f_frsize > ROOM);
    if opened.is_ok() || has_room || disk::remove_store_file(&index_in(&folder)).is_err() {
        return opened;
    }
    place::open_recovered(options, Store::MustExist)
}

/// Like `cleanup` without options; fails if the clock looks wrong.
pub(crate) fn clean_up_now(
    place: &mut Place,
    options: &Options,
    clock: Clock,
) -> Result<CleanUpReport, CommandError> {
    let policy = place.settings.retention();
    let spinner = progress::spinner("Cleaning up");
    let done = clean_up(&mut place.workspace, &policy, Occasion::OnDemand, clock);
    drop(spinner);
    let done = done?;
    stores::remove_sessions(&done.sessions, &place::home(options)?)?;
    match done.stopped {
        Some(trouble) => Err(clock_error(trouble)),
        None => Ok(done),
    }
}

/// Prints what was removed and returns the exit code.
pub(crate) fn report(done: &CleanUpReport, screen: &mut Screen) -> Result<u8, CommandError> {
    if let Some(trouble) = done.stopped {
        return Err(clock_error(trouble));
    }
    if screen.json {
        screen.json(&answer(done))?;
    } else if !screen.quiet {
        writeln!(screen.out, "{}", sentence(done))?;
        if let Some(over) = &done.over {
            writeln!(screen.out, "{WARNING}{}{WARNING:#}", capital(&disk_limits::words(over)))?;
        }
    }
    Ok(0)
}

pub(crate) fn answer(done: &CleanUpReport) -> answers::CleanupAnswer {
    answers::CleanupAnswer {
        points: done.points,
        sessions: answers::names(&done.sessions),
        changes: done.changes,
        freed_bytes: done.freed,
        over: done.over.as_ref().map(disk_limits::answer),
        home: None,
    }
}

fn clock_error(trouble: ClockTrouble) -> CommandError {
    CommandError::new(Kind::Error, clock_trouble(trouble))
        .hint("Correct the clock or, if it is right, pass --trust-clock.")
}

fn sentence(done: &CleanUpReport) -> String {
    let freed = bytes(done.freed);
    if done.points == 0 && done.sessions.is_empty() {
        return format!("Nothing to expire.  {HINT}reclaimed {freed}{HINT:#}");
    }
    let mut gone = vec![count(done.points, "point")];
    if !done.sessions.is_empty() {
        gone.push(count(done.sessions.len(), "session"));
    }
    let gone = gone.join(" and ");
    format!("{SUCCESS}Removed{SUCCESS:#} {gone}  {HINT}reclaimed {freed}{HINT:#}")
}

fn clock_trouble(trouble: ClockTrouble) -> String {
    match trouble {
        ClockTrouble::WentBack { last, now } => format!(
            "nothing was cleaned up: the clock went back (it is {}, but the last activity was at {})",
            moment(now),
            moment(last)
        ),
        ClockTrouble::Jumped { last, now } => format!(
            "nothing was cleaned up: the clock seems to have jumped (from {} to {}, with nothing in \
             between)",
            moment(last),
            moment(now)
        ),
    }
}

/// Drops the points beyond `pointsPerSession`. A failure is ignored: the next command that lists points tries
/// again.
pub(crate) fn enforce_point_cap(place: &mut Place) {
    let policy = place.settings.retention();
    drop(retention::enforce_point_limit(&mut place.workspace, &policy));
}

/// Like [`enforce_point_cap`], but in a background process, so that no agent waits. Only starts one if the
/// session has too many points.
pub(crate) fn enforce_point_cap_in_background(place: &Place, session: &SessionId) {
    let (store, policy) = (&*place.workspace.store, place.settings.retention());
    if !retention::has_too_many_points(store, &policy, session).is_ok_and(|crowded| crowded) {
        return;
    }
    let started = background_command(&place.home).and_then(|mut command| {
        command.arg("-C").arg(place.workspace.root.path());
        command.args(["cleanup", "-q", "--only-too-many"]).stdin(Stdio::null()).spawn()
    });
    // If it cannot be started, the next command that lists points drops them.
    drop(started);
}

/// Cleans up once a day, or when the store has become too large. An error is reported but does not stop the
/// command.
pub(crate) fn clean_up_if_due(place: &mut Place, options: &Options) {
    let notice = match clean_up_due(place, options) {
        Ok(None) => return,
        Ok(Some(CleanUpReport { stopped: Some(trouble), .. })) => {
            format!("{}; see `takeback cleanup`", clock_trouble(trouble))
        }
        Ok(Some(done)) if done.points == 0 && done.sessions.is_empty() => return,
        Ok(_) if options.quiet => return,
        Ok(Some(done)) => sentence(&done),
        Err(CommandError { kind: Kind::Locked, .. }) => return,
        Err(error) => format!("nothing was cleaned up: {}", error.source),
    };
    let mut err = anstream::stderr().lock();
    // Standard error is closed; there is nowhere left to report this.
    drop(writeln!(err, "{WARNING}takeback:{WARNING:#} {notice}"));
}

fn clean_up_due(
    place: &mut Place,
    options: &Options,
) -> Result<Option<CleanUpReport>, CommandError> {
    let policy = place.settings.retention();
    if !is_due(&place.workspace)? && !is_over_size_limit(&place.workspace, &policy)? {
        return Ok(None);
    }
    let _spinner = progress::spinner("Cleaning up");
    let done = clean_up(&mut place.workspace, &policy, Occasion::AtStart, Clock::Doubted)?;
    stores::remove_sessions(&done.sessions, &place::home(options)?)?;
    if done.stopped.is_none() {
        fit_home(place, options, Clock::Doubted)?;
    }
    Ok(Some(done))
}
