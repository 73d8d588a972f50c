//! One agent: is it here, are its hooks in place, have they run.

use std::path::PathBuf;

use serde_json::{Value, json};
use takeback_agents::hook::{Plugged, wanted};
use takeback_agents::install::{Found, Homes, Scope, file_of, find};
use takeback_store::Timestamp;

use super::cause::{Cause, cause, changed_since, likely};
use super::files;
use super::problems::add_problems;
use super::session::{Session, modified, newest};
use super::version::version;
use super::{Health, Told};
use crate::heartbeat::{Heartbeat, NOT_UNDERSTOOD};
use crate::installed::Installed;
use crate::place::{Here, shown};
use crate::plugs;
use crate::screen::plain;
use crate::time::{ago, iso};

pub(super) struct Site<'a> {
    pub(super) homes: &'a Homes,
    pub(super) here: &'a Here,
    /// The newest first.
    pub(super) beats: &'a [Heartbeat],
    pub(super) now: Timestamp,
}

impl Site<'_> {
    fn beats_of(&self, agent: Plugged) -> impl Iterator<Item = &Heartbeat> {
        self.beats.iter().filter(move |beat| beat.agent == agent.name())
    }
}

/// What was found out about an agent.
pub(super) struct Checkup {
    agent: Plugged,
    program: Option<PathBuf>,
    version: Option<String>,
    places: Vec<Place>,
    fired: Option<Heartbeat>,
    session: Option<Session>,
    pub(super) told: Told,
}

/// A settings file in which hooks of Takeback's can stand.
pub(super) struct Place {
    pub(super) scope: Scope,
    pub(super) file: PathBuf,
    /// Links followed.
    pub(super) real: PathBuf,
    /// Since when they are there, as far as that is known.
    since: Option<Timestamp>,
    pub(super) found: Result<Found, String>,
}

impl Checkup {
    pub(super) fn of(agent: Plugged, site: &Site<'_>) -> Self {
        let program = plugs::program_of(agent);
        let version = program.as_deref().and_then(version);
        let places: Vec<Place> = [Scope::User, Scope::Project]
            .into_iter()
            .filter_map(|scope| Place::of(agent, scope, site))
            .collect();
        let fired = site.beats_of(agent).find(|beat| beat.session != NOT_UNDERSTOOD).cloned();
        let session = newest(agent, site.homes);
        let told = Told::new(Health::None, "");
        let mut checkup = Self { agent, program, version, places, fired, session, told };
        checkup.told = checkup.verdict(site);
        if checkup.places.iter().any(Place::has_hooks) {
            checkup.told = add_problems(checkup.told, site.beats_of(agent), site.now);
        }
        checkup
    }

    fn verdict(&self, site: &Site<'_>) -> Told {
        let title = match &self.version {
            Some(version) => format!("{} {version}", self.agent.title()),
            None => self.agent.title().to_owned(),
        };
        let init = "`takeback init` puts them in.";
        if let Some(place) = self.places.iter().find(|place| place.found.is_err()) {
            let why = place.found.as_ref().err().cloned().unwrap_or_default();
            let what = format!("{title}: {} cannot be read: {why}", shown(&place.file));
            return Told::new(Health::Care, what).next("Mend it there.");
        }
        let with_hooks: Vec<&Place> =
            self.places.iter().filter(|place| place.has_hooks()).collect();
        let Some(place) = with_hooks.first() else {
            return match plugs::is_here(self.agent, site.homes) {
                true => Told::new(Health::Care, format!("{title}: no hooks")).next(init),
                false => Told::new(Health::None, format!("{title}: not installed")),
            };
        };
        let file = shown(&place.file);
        if let Some(program) = with_hooks.iter().find_map(|place| place.gone()) {
            let what = format!("{title}: the hooks in {file} run {program}, which is not there");
            return Told::new(Health::Broken, plain(&what)).next("`takeback init` mends them.");
        }
        let cause = cause(self.agent, &with_hooks, site.homes, &site.here.root);
        if let Some(session) = self.silent(&with_hooks, site) {
            let (id, when) = (plain(&session.id), ago(session.began, site.now));
            let what = format!("{title}: hooks did not run in session {id} ({when})");
            let root = &site.here.root;
            let is_other = changed_since(self.agent, &with_hooks, site.homes, root, session.last);
            if cause.is_none() && is_other {
                let what = format!("{what}; settings were changed since");
                return Told::new(Health::Care, what)
                    .next("The next session shows whether they run.");
            }
            let Cause { why, next } = cause.unwrap_or_else(|| likely(self.agent, &with_hooks));
            return Told::new(Health::Broken, format!("{what}: {why}")).next(next);
        }
        if let Some(Cause { why, next }) = cause {
            let what = format!("{title}: hooks in {file} will not run: {why}");
            return Told::new(Health::Care, what).next(next);
        }
        let missing = with_hooks.iter().map(|place| place.missing()).min().unwrap_or_default();
        if missing > 0 {
            let all = wanted(self.agent).len();
            let what = format!("{title}: {} of {all} hooks in {file}", all - missing);
            return Told::new(Health::Care, what).next("`takeback init` completes them.");
        }
        match &self.fired {
            None => Told::new(
                Health::Good,
                format!("{title}: hooks in {file}, no session since they were put in"),
            ),
            Some(beat) => {
                let events: u64 = beat.events.values().sum();
                let when = ago(beat.last_at, site.now);
                let session = plain(&beat.session);
                let what = format!("{title}: hooks ran {when} ({events} in session {session})");
                Told::new(Health::Good, what)
            }
        }
    }

    /// The session that began after hooks were put in, and in which none of them ran.
    fn silent(&self, places: &[&Place], site: &Site<'_>) -> Option<&Session> {
        let session = self.session.as_ref()?;
        let since = places.iter().filter_map(|place| place.since).min()?;
        let ran = site.beats_of(self.agent).any(|beat| match beat.session.as_str() {
            // Whose it was is not known: perhaps this one's.
            NOT_UNDERSTOOD => beat.last_at > session.began,
            id => id == session.id || beat.last_at > session.last,
        });
        (!ran && session.began > since).then_some(session)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "agent": self.agent.name(),
            "health": self.told.health.name(),
            "what": self.told.what,
            "next": self.told.next,
            "program": self.program.as_ref().map(|program| program.to_string_lossy()),
            "version": self.version,
            "hooks": self.places.iter().map(|place| place.to_json(self.agent)).collect::<Vec<_>>(),
            "fired": self.fired.as_ref().map(|beat| json!({
                "session": beat.session,
                "root": beat.roots.first().map(|root| root.to_string_lossy()),
                "firstAt": iso(beat.first_at),
                "lastAt": iso(beat.last_at),
                "events": beat.events.values().sum::<u64>(),
                "recorded": beat.recorded,
                "problem": beat.problem.as_ref().map(|problem| &problem.what),
            })),
            "lastSession": self.session.as_ref().map(|session| json!({
                "session": session.id,
                "began": iso(session.began),
                "last": iso(session.last),
            })),
        })
    }
}

impl Place {
    fn of(agent: Plugged, scope: Scope, site: &Site<'_>) -> Option<Self> {
        let file = file_of(agent, scope, site.homes, &site.here.root);
        let real = std::fs::canonicalize(&file).ok()?;
        let found = files::read(&real).map_err(|error| error.to_string());
        let found = found.and_then(|bytes| find(agent, &bytes).map_err(|error| error.to_string()));
        let noted = Installed::of(&real, &site.here.home).map(|installed| installed.at);
        let since = noted.or_else(|| modified(&real));
        Some(Self { scope, file, real, since, found })
    }

    fn has_hooks(&self) -> bool {
        self.found.as_ref().is_ok_and(|found| !found.hooks.is_empty())
    }

    fn missing(&self) -> usize {
        self.found.as_ref().map_or(0, |found| found.missing.len())
    }

    /// A program that the hooks run, and that cannot be run.
    fn gone(&self) -> Option<String> {
        let found = self.found.as_ref().ok()?;
        let mut programs = found.hooks.iter().map(|hook| &hook.command.program);
        programs.find(|program| !plugs::runs(program)).cloned()
    }

    fn to_json(&self, agent: Plugged) -> Value {
        let found = self.found.as_ref().ok();
        let hooks = found.map_or(0, |found| found.hooks.len());
        let state = match found {
            None => "unreadable",
            Some(_) if hooks == 0 => "none",
            Some(_) if self.gone().is_some() => "broken",
            Some(found) if !found.missing.is_empty() => "partial",
            Some(_) => "complete",
        };
        json!({
            "scope": if self.scope == Scope::User { "user" } else { "project" },
            "file": self.file.to_string_lossy(),
            "state": state,
            "hooks": hooks,
            "wanted": wanted(agent).len(),
            "missing": found.map(|found| found.missing.clone()).unwrap_or_default(),
            "since": self.since.map(iso),
            "error": self.found.as_ref().err(),
        })
    }
}
