//! `doctor`: checks that hooks run and the store is healthy. Changes nothing, except that `--acknowledge`
//! updates the markers of lost histories.

mod agent;
mod cause;
mod files;
mod problems;
mod session;
mod state;
mod version;

use std::io::Write as _;

use self::agent::Checkup;
use crate::answers::{self, Health};
use crate::args::{DoctorArgs, Options};
use crate::error::{CommandError, Kind};
use crate::heartbeat::heartbeats;
use crate::installed_agents;
use crate::marker::Markers;
use crate::place;
use crate::screen::{FAILURE, HEADING, HINT, SUCCESS, Screen, WARNING, width, wrap};
use crate::time::now;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) health: Health,
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) next: Vec<String>,
}

impl Finding {
    fn new(health: Health, what: impl Into<String>) -> Self {
        Self { health, what: what.into(), next: Vec::new() }
    }

    fn next(mut self, next: impl Into<String>) -> Self {
        self.next.push(next.into());
        self
    }

    fn answer(&self) -> answers::Check {
        let (what, next) = (self.what.clone(), self.next.clone());
        answers::Check { health: self.health, what, next }
    }
}

pub(crate) fn doctor(
    options: &Options,
    args: &DoctorArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let location = place::locate(options)?;
    if let Some(markers) = Markers::of_user().filter(|_| args.acknowledge) {
        markers.acknowledge(&location.home)?;
    }
    let homes = installed_agents::homes()?;
    let beats = heartbeats(&location.home);
    let context =
        agent::CheckupContext { homes: &homes, location: &location, beats: &beats, now: now() };
    let agents = Checkup::of_all(&context);
    let state = state::State::of(&location, &beats);
    let findings: Vec<&Finding> =
        agents.iter().map(|agent| &agent.finding).chain(&state.findings).collect();
    let broken = findings.iter().any(|finding| finding.health == Health::Broken);
    if screen.json {
        screen.json(&answers::DoctorAnswer {
            ok: !broken,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            home: answers::place(&location.home),
            home_bytes: state.home_bytes,
            agents: agents.iter().map(Checkup::answer).collect(),
            checks: state.findings.iter().map(Finding::answer).collect(),
        })?;
        return Ok(u8::from(broken));
    }
    if !screen.quiet {
        writeln!(screen.out, "{HEADING}takeback {}{HEADING:#}", env!("CARGO_PKG_VERSION"))?;
    }
    for finding in findings {
        let is_shown = match finding.health {
            Health::None => screen.verbose,
            Health::Good => !screen.quiet,
            Health::Warning | Health::Broken => true,
        };
        if is_shown {
            print(finding, screen)?;
        }
    }
    if agents.iter().all(|agent| agent.finding.health == Health::None) && !screen.quiet {
        print(&Finding::new(Health::None, "no supported agent is installed"), screen)?;
    }
    Ok(if broken { Kind::Error as u8 } else { 0 })
}

fn print(finding: &Finding, screen: &mut Screen) -> Result<(), CommandError> {
    let (style, mark) = match finding.health {
        Health::None => (HINT, '·'),
        Health::Good => (SUCCESS, '✓'),
        Health::Warning => (WARNING, '!'),
        Health::Broken => (FAILURE, '✗'),
    };
    let room = width().saturating_sub(4);
    for (at, line) in wrap(&finding.what, room).iter().enumerate() {
        if at == 0 {
            writeln!(screen.out, "{style}{mark}{style:#} {line}")?;
        } else {
            writeln!(screen.out, "  {line}")?;
        }
    }
    for line in finding.next.iter().flat_map(|next| wrap(next, room)) {
        writeln!(screen.out, "    {HINT}{line}{HINT:#}")?;
    }
    Ok(())
}
