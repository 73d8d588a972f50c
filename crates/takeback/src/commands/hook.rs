//! `hook`: one event that an agent's hook was given, recorded.
//!
//! Never fails the agent, never keeps it waiting beyond its deadline, says nothing: what went wrong is
//! in the log file and in the session's heartbeat, where `doctor` finds it.

mod whereabouts;
mod within;

use std::error::Error;
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use takeback_agents::hook::{Heard, News, Plugged, Teller, event_of, hear, touches};
use takeback_core::{AgentEvent, Touches};
use takeback_store::Process;

use self::whereabouts::{agent_process, root_of};
use self::within::{Task, within};
use super::state::save::SESSION_VARIABLE;
use crate::args::{HookArgs, Options};
use crate::heartbeat::Heartbeat;
use crate::log_file::{Level, LogFile};
use crate::place::{self, environment};
use crate::progress;
use crate::settings::Settings;
use crate::time::now;

/// What a hook is given is no longer than this.
const LONGEST: u64 = 64 << 20;

pub(crate) fn hook(options: &Options, args: &HookArgs) -> u8 {
    let begun = Instant::now();
    progress::hide();
    let took = place::home(options).map_err(|error| error.line()).and_then(|home| {
        let log = LogFile::of_hooks(&home, |name| environment(name)?.into_string().ok());
        let took = from_stdin(&home, args, begun);
        if let Err(why) = &took {
            log.add(now(), Level::Error, &format!("{}: {why}", args.agent));
        }
        took
    });
    if let Err(why) = took
        && options.verbose
    {
        anstream::eprintln!("takeback hook: {why}");
    }
    0
}

fn from_stdin(home: &Path, args: &HookArgs, begun: Instant) -> Result<(), String> {
    let mut given = Vec::new();
    let read = std::io::stdin().lock().take(LONGEST).read_to_end(&mut given);
    read.map_err(|error| format!("standard input: {error}"))?;
    let agent = Plugged::named(&args.agent).ok_or_else(|| {
        let known: Vec<&str> = Plugged::ALL.iter().map(|agent| agent.name()).collect();
        format!("there is no agent of this name; known: {}", known.join(", "))
    })?;
    // It may be gone; most agents say themselves where they work.
    let folder = std::env::current_dir().ok();
    let happening = Happening {
        agent,
        given: &given,
        event: args.event.as_deref(),
        folder: folder.as_deref(),
        agent_process: agent_process(),
        begun,
        recorder: match environment(SESSION_VARIABLE) {
            Some(_) => Recorder::Other,
            None => Recorder::Hook,
        },
    };
    take(home, &happening)
}

/// Who puts the agent's doings into the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorder {
    Hook,
    /// Whoever started the agent does already: `run`, or `chat`.
    Other,
}

/// What a hook was given, and by whom.
pub(crate) struct Happening<'a> {
    pub(crate) agent: Plugged,
    pub(crate) given: &'a [u8],
    /// What the command line says that it is.
    pub(crate) event: Option<&'a str>,
    /// Where the agent works, if it does not say so.
    pub(crate) folder: Option<&'a Path>,
    pub(crate) agent_process: Option<Process>,
    /// Since when the agent waits.
    pub(crate) begun: Instant,
    pub(crate) recorder: Recorder,
}

/// Records it, and leaves a heartbeat, whatever else happens.
pub(crate) fn take(home: &Path, happening: &Happening<'_>) -> Result<(), String> {
    let agent = happening.agent;
    let mut heard = hear(agent, happening.given, happening.event).map_err(|error| whole(&error))?;
    heard.cwd = heard.cwd.or_else(|| happening.folder.map(Path::to_owned));
    let mut beat = Heartbeat::of(home, agent.name(), &heard.session, now());
    beat.beat(&heard.event, now());
    let taken = match happening.recorder {
        Recorder::Hook => into_log(home, happening, &heard, &mut beat),
        Recorder::Other => Ok(()),
    };
    if let Err(why) = &taken {
        beat.went_wrong(why.clone(), now());
    }
    let saved = beat.save(home).map_err(|error| format!("{}: {error}", home.display()));
    taken.and(saved)
}

fn into_log(
    home: &Path,
    happening: &Happening<'_>,
    heard: &Heard,
    beat: &mut Heartbeat,
) -> Result<(), String> {
    let root = root_of(home, heard, beat.root.as_deref())?;
    let settings = Settings::load(&root, home).map_err(|error| error.line())?;
    if !settings.is_enabled() {
        return Ok(());
    }
    let teller = Teller { agent: happening.agent, process: happening.agent_process };
    let Some(event) = event_of(&settings.tools(), teller, heard) else { return Ok(()) };
    let patience = patience(&settings, &event, heard);
    let (home, learnt) = (home.to_owned(), beat.learnt.clone());
    let task = Task { home, root: root.clone(), teller, heard: heard.clone(), event, learnt };
    let done = within(happening.begun + patience, patience, task)?;
    beat.root.get_or_insert(root);
    beat.recorded += 1;
    beat.learnt = done.learnt;
    match done.lacking {
        Some(why) => Err(why),
        None => Ok(()),
    }
}

/// How long the agent may be kept waiting: an edit names what is to be looked at, anything else is a
/// scan.
fn patience(settings: &Settings, event: &AgentEvent, heard: &Heard) -> Duration {
    let is_edit = match (event, &heard.news) {
        (AgentEvent::BeforeTool { touches: Touches::Paths(_), .. }, _)
        | (AgentEvent::SessionStart { .. }, _) => true,
        (_, News::After(call, _)) => {
            let touches = touches(&settings.tools(), &call.tool, &call.input, None);
            matches!(touches, Touches::Paths(_))
        }
        _ => false,
    };
    if is_edit { settings.hook_deadline() } else { settings.scan_budget() }
}

/// An error and what is behind it, in one line.
fn whole(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(cause) = behind {
        text = format!("{text}: {cause}");
        behind = cause.source();
    }
    text
}
