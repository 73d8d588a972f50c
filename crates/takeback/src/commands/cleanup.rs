//! `cleanup`: what is no longer kept goes. The same, once a day, when something is begun.

use std::io::Write as _;

use serde_json::json;
use takeback_core::retention::{
    CleanedUp, Clock, ClockTrouble, Occasion, WouldDrop, clean_up, is_due, would_drop,
};

use crate::args::{CleanupArgs, Options};
use crate::error::{CommandError, Kind};
use crate::place::{self, Place, Store};
use crate::progress;
use crate::screen::{CARE, GOOD, HINT, Screen, bytes, count};
use crate::stores;
use crate::time::iso;
use crate::wire::{self, Json};

pub(crate) fn cleanup(
    options: &Options,
    args: &CleanupArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_mended(options, Store::MustExist)?;
    let policy = place.settings.retention();
    let clock = if args.trust_clock { Clock::Trusted } else { Clock::Doubted };
    if args.dry_run {
        let WouldDrop { points, sessions, stopped } = would_drop(&place.workspace, &policy, clock)?;
        if let Some(trouble) = stopped {
            return Err(doubted(trouble));
        }
        if screen.json {
            screen.json(&json!({ "points": points, "sessions": sessions }))?;
        } else if points.is_empty() && sessions.is_empty() {
            writeln!(screen.out, "{HINT}No point is too old or too many.{HINT:#}")?;
        } else {
            let (points, sessions) = (points.len(), sessions.len());
            let sessions = count(sessions, "session");
            writeln!(screen.out, "{} and {sessions} would go.", count(points, "point"))?;
        }
        return Ok(0);
    }
    told(&clean_up_now(&mut place, options, clock)?, screen)
}

/// As `cleanup` without options; refused if the clock is in doubt.
pub(crate) fn clean_up_now(
    place: &mut Place,
    options: &Options,
    clock: Clock,
) -> Result<CleanedUp, CommandError> {
    let policy = place.settings.retention();
    let spinner = progress::spinner("Cleaning up");
    let done = clean_up(&mut place.workspace, &policy, Occasion::OnDemand, clock);
    drop(spinner);
    let done = done?;
    stores::remove_sessions(&done.sessions, &place::home(options)?)?;
    match done.stopped {
        Some(trouble) => Err(doubted(trouble)),
        None => Ok(done),
    }
}

/// Says what was removed; the exit code.
pub(crate) fn told(done: &CleanedUp, screen: &mut Screen) -> Result<u8, CommandError> {
    if let Some(trouble) = done.stopped {
        return Err(doubted(trouble));
    }
    if screen.json {
        screen.json(&to_json(done)?)?;
    } else if !screen.quiet {
        writeln!(screen.out, "{}", sentence(done))?;
    }
    Ok(0)
}

pub(crate) fn to_json(done: &CleanedUp) -> Result<Json, CommandError> {
    Ok(wire::json(&json!({
        "points": done.points,
        "sessions": done.sessions,
        "changes": done.changes,
        "freedBytes": done.freed,
    }))?)
}

fn doubted(trouble: ClockTrouble) -> CommandError {
    CommandError::new(Kind::Error, clock_trouble(trouble))
        .hint("Set the clock right; or, if it is right, use --trust-clock.")
}

fn sentence(done: &CleanedUp) -> String {
    let freed = bytes(done.freed);
    if done.points == 0 && done.sessions.is_empty() {
        return format!("No point is too old or too many.  {HINT}{freed} given back{HINT:#}");
    }
    let mut gone = vec![count(done.points, "point")];
    if !done.sessions.is_empty() {
        gone.push(count(done.sessions.len(), "session"));
    }
    let gone = gone.join(" and ");
    format!("{GOOD}Removed{GOOD:#} {gone}  {HINT}{freed} given back{HINT:#}")
}

fn clock_trouble(trouble: ClockTrouble) -> String {
    match trouble {
        ClockTrouble::WentBack { last, now } => format!(
            "nothing was cleaned up: the clock went back (it is {}, and something happened at {})",
            iso(now),
            iso(last)
        ),
        ClockTrouble::Jumped { last, now } => format!(
            "nothing was cleaned up: the clock seems to have jumped (from {} to {}, with nothing in \
             between)",
            iso(last),
            iso(now)
        ),
    }
}

/// Once a day, when something is begun. Whatever goes wrong is said and stops nobody.
pub(crate) fn when_due(place: &mut Place, options: &Options) {
    let policy = place.settings.retention();
    let workspace = &mut place.workspace;
    let done = match is_due(workspace) {
        Ok(false) => return,
        Ok(true) => {
            let _spinner = progress::spinner("Cleaning up");
            clean_up(workspace, &policy, Occasion::AtStart, Clock::Doubted)
                .map_err(CommandError::from)
                .and_then(|done| {
                    stores::remove_sessions(&done.sessions, &place::home(options)?)?;
                    Ok(done)
                })
        }
        Err(error) => Err(error.into()),
    };
    let said = match done {
        Ok(CleanedUp { stopped: Some(trouble), .. }) => {
            format!("{}; see `takeback cleanup`", clock_trouble(trouble))
        }
        Ok(done) if done.points == 0 && done.sessions.is_empty() => return,
        Ok(_) if options.quiet => return,
        Ok(done) => sentence(&done),
        Err(CommandError { kind: Kind::Locked, .. }) => return,
        Err(error) => format!("nothing was cleaned up: {}", error.source),
    };
    let mut err = anstream::stderr().lock();
    // With standard error gone there is nobody left to tell.
    drop(writeln!(err, "{CARE}takeback:{CARE:#} {said}"));
}
