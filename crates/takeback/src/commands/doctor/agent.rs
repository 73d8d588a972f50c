//! One agent: whether it is installed, has hooks, and has run them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use takeback_agents::{
    AGENTS, AgentKind, Homes, HookProblem, HookScope, HooksInFile, find_hooks, settings_refusal,
};
use takeback_store::Timestamp;

use super::Finding;
use super::cause::{cause, changed_since, likely};
use super::files;
use super::problems::add_problems;
use super::session::{Session, modified, newest};
use super::version::{is_older, versions};
use crate::answers::{self, Health, HookFileState};
use crate::heartbeat::{Heartbeat, NOT_UNDERSTOOD};
use crate::install_record::InstallRecord;
use crate::installed_agents;
use crate::place::{Location, tilde_path};
use crate::screen::plain;
use crate::time::ago;

pub(super) struct CheckupContext<'a> {
    pub(super) homes: &'a Homes,
    pub(super) location: &'a Location,
    /// Newest first.
    pub(super) beats: &'a [Heartbeat],
    pub(super) now: Timestamp,
}

impl CheckupContext<'_> {
    fn beats_of(&self, agent: &'static AgentKind) -> impl Iterator<Item = &Heartbeat> {
        self.beats.iter().filter(move |beat| beat.agent == agent.name)
    }
}

/// What was found about an agent.
pub(super) struct Checkup {
    agent: &'static AgentKind,
    program: Option<PathBuf>,
    version: Option<String>,
    places: Vec<SettingsFile>,
    fired: Option<Heartbeat>,
    session: Option<Session>,
    pub(super) finding: Finding,
}

/// A settings file that can hold Takeback's hooks.
pub(super) struct SettingsFile {
    pub(super) scope: HookScope,
    pub(super) file: PathBuf,
    /// Links followed.
    pub(super) real: PathBuf,
    /// When they were installed, if known.
    since: Option<Timestamp>,
    pub(super) found: Result<HooksInFile, String>,
    /// Why the agent cannot read the file.
    refused: Option<String>,
}

impl Checkup {
    /// Checks every agent.
    pub(super) fn of_all(context: &CheckupContext<'_>) -> Vec<Self> {
        let mut all: Vec<Self> = AGENTS.iter().map(|agent| Self::begin(agent, context)).collect();
        let other =
            |place: &SettingsFile| place.programs().filter_map(|it| other_copy(&it)).collect();
        let others =
            all.iter().flat_map(|it| &it.places).flat_map(|it| -> Vec<PathBuf> { other(it) });
        let programs = all.iter().filter_map(|it| it.program.clone());
        let programs: BTreeSet<PathBuf> = programs.chain(others).collect();
        let versions = versions(programs.into_iter());
        all.iter_mut().for_each(|checkup| checkup.finish(context, &versions));
        all
    }

    /// Everything except the versions, for which programs must be run.
    fn begin(agent: &'static AgentKind, context: &CheckupContext<'_>) -> Self {
        let program = installed_agents::program_of(agent);
        let places: Vec<SettingsFile> = [HookScope::User, HookScope::Project]
            .into_iter()
            .filter_map(|scope| SettingsFile::of(agent, scope, context))
            .collect();
        let fired = context.beats_of(agent).find(|beat| beat.session != NOT_UNDERSTOOD).cloned();
        let session = newest(agent, context.homes);
        let finding = Finding::new(Health::None, "");
        Self { agent, program, version: None, places, fired, session, finding }
    }

    fn finish(&mut self, context: &CheckupContext<'_>, versions: &BTreeMap<PathBuf, String>) {
        self.version = self.program.as_ref().and_then(|program| versions.get(program)).cloned();
        let mut finding = self.verdict(context, versions);
        if self.places.iter().any(SettingsFile::has_hooks) {
            finding = add_problems(finding, context.beats_of(self.agent), context.now);
        }
        self.finding = finding;
    }

    fn verdict(
        &self,
        context: &CheckupContext<'_>,
        versions: &BTreeMap<PathBuf, String>,
    ) -> Finding {
        let title = match &self.version {
            Some(version) => format!("{} {version}", self.agent.title),
            None => self.agent.title.to_owned(),
        };
        let init = "`takeback init` installs them.";
        if let Some(place) = self.places.iter().find(|place| place.found.is_err()) {
            let why = place.found.as_ref().err().cloned().unwrap_or_default();
            let what = format!("{title}: {} cannot be read: {why}", tilde_path(&place.file));
            return Finding::new(Health::Warning, what).next("Fix the file.");
        }
        if let Some((place, why)) =
            self.places.iter().find_map(|it| Some((it, it.refused.as_ref()?)))
        {
            let file = tilde_path(&place.file);
            let health = if place.has_hooks() { Health::Broken } else { Health::Warning };
            let what = format!("{title}: {file} is not read: {why}");
            return Finding::new(health, plain(&what))
                .next(format!("Make {file} plain JSON, without comments and trailing commas."));
        }
        let with_hooks: Vec<&SettingsFile> =
            self.places.iter().filter(|place| place.has_hooks()).collect();
        let Some(place) = with_hooks.first() else {
            return match installed_agents::is_here(self.agent, context.homes) {
                true => Finding::new(Health::Warning, format!("{title}: no hooks")).next(init),
                false => Finding::new(Health::None, format!("{title}: not installed")),
            };
        };
        let file = tilde_path(&place.file);
        if let Some(program) = with_hooks.iter().find_map(|place| place.gone()) {
            let what = format!("{title}: the hooks in {file} run {program}, which does not exist");
            return Finding::new(Health::Broken, plain(&what)).next("`takeback init` fixes them.");
        }
        if let Some((program, version)) = with_hooks.iter().find_map(|it| it.older(versions)) {
            let (program, own) = (tilde_path(&program), env!("CARGO_PKG_VERSION"));
            let what = format!(
                "{title}: the hooks in {file} run {program}, which is takeback {version}, older than \
                 this one ({own})"
            );
            return Finding::new(Health::Broken, plain(&what))
                .next("Update that one, or put this one's folder before it on PATH.");
        }
        let cause = cause(self.agent, &with_hooks, context.homes, &context.location.root);
        if let Some(session) = self.silent(&with_hooks, context) {
            let (id, when) = (plain(&session.id), ago(session.began, context.now));
            let what = format!("{title}: hooks did not run in session {id} ({when})");
            let root = &context.location.root;
            let is_other =
                changed_since(self.agent, &with_hooks, context.homes, root, session.last);
            if cause.is_none() && is_other {
                let what = format!("{what}; settings were changed since");
                return Finding::new(Health::Warning, what)
                    .next("The next session shows whether they run.");
            }
            let HookProblem { why, next } =
                cause.unwrap_or_else(|| likely(self.agent, &with_hooks));
            return Finding::new(Health::Broken, format!("{what}: {why}")).next(next);
        }
        if let Some(HookProblem { why, next }) = cause {
            let what = format!("{title}: hooks in {file} will not run: {why}");
            return Finding::new(Health::Warning, what).next(next);
        }
        let missing = with_hooks.iter().map(|place| place.missing()).min().unwrap_or_default();
        if missing > 0 {
            let all = self.agent.hooks.len();
            let what = format!("{title}: {} of {all} hooks in {file}", all - missing);
            return Finding::new(Health::Warning, what).next("`takeback init` completes them.");
        }
        match &self.fired {
            None => Finding::new(
                Health::Good,
                format!("{title}: hooks in {file}, no session since they were installed"),
            ),
            // The agent's PATH may lead to another copy than this shell's.
            Some(beat) if ran_older(beat) => {
                let (version, own) = (plain(&beat.version), env!("CARGO_PKG_VERSION"));
                let when = ago(beat.last_at, context.now);
                let what = format!(
                    "{title}: hooks ran {when} with takeback {version}, older than this one ({own})"
                );
                Finding::new(Health::Broken, what)
                    .next("Look for another takeback on the agent's PATH.")
            }
            Some(beat) => {
                let events: u64 = beat.events.values().sum();
                let when = ago(beat.last_at, context.now);
                let session = plain(&beat.session);
                let what = format!("{title}: hooks ran {when} ({events} in session {session})");
                Finding::new(Health::Good, what)
            }
        }
    }

    /// A session that began after the hooks were installed and ran none of them.
    fn silent(&self, places: &[&SettingsFile], context: &CheckupContext<'_>) -> Option<&Session> {
        let session = self.session.as_ref()?;
        let since = places.iter().filter_map(|place| place.since).min()?;
        let ran = context.beats_of(self.agent).any(|beat| match beat.session.as_str() {
            // Its session is unknown: it may be this one.
            NOT_UNDERSTOOD => beat.last_at > session.began,
            id => id == session.id || beat.last_at > session.last,
        });
        (!ran && session.began > since).then_some(session)
    }

    pub(super) fn answer(&self) -> answers::AgentCheckup {
        answers::AgentCheckup {
            agent: self.agent.name.to_owned(),
            check: self.finding.answer(),
            program: self.program.as_deref().map(answers::place),
            version: self.version.clone(),
            hooks: self.places.iter().map(|place| place.answer(self.agent)).collect(),
            fired: self.fired.as_ref().map(|beat| answers::HookSession {
                session: beat.session.clone(),
                root: beat.roots.first().map(|root| answers::place(root)),
                first_at: answers::time(beat.first_at),
                last_at: answers::time(beat.last_at),
                events: beat.events.values().sum(),
                recorded: beat.recorded,
                problem: beat.problem.as_ref().map(|problem| problem.what.clone()),
            }),
            last_session: self.session.as_ref().map(|session| answers::LastSession {
                session: session.id.clone(),
                began: answers::time(session.began),
                last: answers::time(session.last),
            }),
        }
    }
}

/// The program that a command line runs, if it is another copy of Takeback.
fn other_copy(program: &str) -> Option<PathBuf> {
    let found = installed_agents::found(program)?;
    let real = |path: PathBuf| std::fs::canonicalize(path).ok();
    (real(found.clone()) != std::env::current_exe().ok().and_then(real)).then_some(found)
}

/// Whether an older Takeback ran after this one was installed.
fn ran_older(beat: &Heartbeat) -> bool {
    let since = std::env::current_exe().ok().and_then(|own| modified(&own));
    is_older(&beat.version, env!("CARGO_PKG_VERSION")) && since.is_some_and(|at| beat.last_at > at)
}

impl SettingsFile {
    fn of(agent: &AgentKind, scope: HookScope, context: &CheckupContext<'_>) -> Option<Self> {
        let file = agent.hooks_file(scope, context.homes, &context.location.root);
        let real = std::fs::canonicalize(&file).ok()?;
        let bytes = files::read(&real).map_err(|error| error.to_string());
        let refused = bytes.as_ref().ok().and_then(|bytes| settings_refusal(agent, bytes));
        let refused = refused.map(|error| error.to_string());
        let found =
            bytes.and_then(|bytes| find_hooks(agent, &bytes).map_err(|error| error.to_string()));
        let noted = InstallRecord::of(&real, &context.location.home).map(|installed| installed.at);
        let since = noted.or_else(|| modified(&real));
        Some(Self { scope, file, real, since, found, refused })
    }

    fn has_hooks(&self) -> bool {
        self.found.as_ref().is_ok_and(|found| !found.hooks.is_empty())
    }

    fn missing(&self) -> usize {
        self.found.as_ref().map_or(0, |found| found.missing.len())
    }

    /// The programs in the command lines of the hooks.
    fn programs(&self) -> impl Iterator<Item = String> {
        let hooks = self.found.iter().flat_map(|found| &found.hooks);
        let programs: BTreeSet<String> = hooks.map(|hook| hook.command.program.clone()).collect();
        programs.into_iter()
    }

    /// A program that the hooks name and that does not exist.
    fn gone(&self) -> Option<String> {
        self.programs().find(|program| !installed_agents::runs(program))
    }

    /// Another, older copy of Takeback that the hooks run, and its version.
    fn older(&self, versions: &BTreeMap<PathBuf, String>) -> Option<(PathBuf, String)> {
        let others = self.programs().filter_map(|program| other_copy(&program));
        let versions = others.filter_map(|it| versions.get_key_value(&it));
        let mut older = versions.filter(|(_, it)| is_older(it, env!("CARGO_PKG_VERSION")));
        older.next().map(|(program, version)| (program.clone(), version.clone()))
    }

    fn answer(&self, agent: &AgentKind) -> answers::HookFile {
        let found = self.found.as_ref().ok();
        let hooks = found.map_or(0, |found| found.hooks.len());
        let missing = found.map_or(&[][..], |found| found.missing.as_slice());
        let state = match found {
            None => HookFileState::Unreadable,
            Some(_) if self.refused.is_some() => HookFileState::Refused,
            Some(_) if hooks == 0 => HookFileState::None,
            Some(_) if self.gone().is_some() => HookFileState::Broken,
            Some(_) if !missing.is_empty() => HookFileState::Partial,
            Some(_) => HookFileState::Complete,
        };
        answers::HookFile {
            scope: answers::scope(self.scope),
            file: answers::place(&self.file),
            state,
            hooks,
            wanted: agent.hooks.len(),
            missing: missing.iter().map(ToString::to_string).collect(),
            since: self.since.map(answers::time),
            error: self.found.as_ref().err().or(self.refused.as_ref()).cloned(),
        }
    }
}
