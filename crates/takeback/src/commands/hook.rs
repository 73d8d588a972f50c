//! `hook`: one event that an agent's hook was given, recorded.
//!
//! Never fails the agent, never keeps it waiting beyond its deadline, says nothing: what went wrong is
//! in the log file and in the session's heartbeat, where `doctor` finds it.

mod whereabouts;
mod within;

use std::error::Error;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use takeback_agents::hook::{HearError, Heard, News, Plugged, Teller, event_of, hear, touches};
use takeback_core::deferred::is_any as is_deferred;
use takeback_core::{AgentEvent, Touches};
use takeback_store::{Process, Timestamp};

use self::whereabouts::{agent_process, root_of_path, roots_of};
pub(super) use self::within::lacking;
use self::within::{Task, within};
use super::state::save::SESSION_VARIABLE;
use crate::args::{HookArgs, Options};
use crate::heartbeat::{Beat, Heartbeat, NOT_UNDERSTOOD, leave};
use crate::log_file::{Level, LogFile};
use crate::place::{self, environment};
use crate::progress;
use crate::settings::Settings;
use crate::stores;
use crate::time::now;
use crate::watchlist::Watchlist;

/// What a hook is given is no longer than this.
const LONGEST: u64 = 64 << 20;
/// And there within this time.
const INPUT_PATIENCE: Duration = Duration::from_secs(5);

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
    let given = read_input()?;
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
        watchlist: None,
    };
    take(home, &happening)
}

/// An agent that never says that this was all is not waited for.
fn read_input() -> Result<Vec<u8>, String> {
    let (say, said) = channel();
    std::thread::spawn(move || {
        let mut given = Vec::new();
        let read = std::io::stdin().lock().take(LONGEST).read_to_end(&mut given);
        // Nobody listens any more when time is up.
        drop(say.send(read.map(|_| given)));
    });
    match said.recv_timeout(INPUT_PATIENCE) {
        Ok(given) => given.map_err(|error| format!("standard input: {error}")),
        Err(_) => Err("standard input did not end".to_owned()),
    }
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
    /// Of a server that watches.
    pub(crate) watchlist: Option<&'a Arc<Watchlist>>,
}

/// Records it, and leaves a heartbeat, whatever else happens.
pub(crate) fn take(home: &Path, happening: &Happening<'_>) -> Result<(), String> {
    let (agent, time) = (happening.agent, now());
    let mut heard = match hear(agent, happening.given, happening.event) {
        Ok(heard) => heard,
        Err(another @ HearError::Another { .. }) => return Err(whole(&another)),
        Err(error) => {
            let why = whole(&error);
            let beat = Beat { problem: Some(why.clone()), ..Beat::default() };
            leave(home, agent.name(), NOT_UNDERSTOOD, time, &beat);
            return Err(why);
        }
    };
    heard.cwd = heard.cwd.or_else(|| happening.folder.map(Path::to_owned));
    let mut beat = Beat { event: heard.event.clone(), ..Beat::default() };
    let taken = match happening.recorder {
        Recorder::Hook => into_log(home, happening, &heard, time, &mut beat),
        Recorder::Other => Ok(()),
    };
    beat.problem = taken.as_ref().err().cloned();
    leave(home, agent.name(), &heard.session, time, &beat);
    taken
}

fn into_log(
    home: &Path,
    happening: &Happening<'_>,
    heard: &Heard,
    time: Timestamp,
    beat: &mut Beat,
) -> Result<(), String> {
    let known = Heartbeat::of(home, happening.agent.name(), &heard.session);
    let (known, learnt) = known.map(|known| (known.roots, known.learnt)).unwrap_or_default();
    let roots = roots_of(home, heard, &known)?;
    let teller = Teller { agent: happening.agent, process: happening.agent_process };
    let mut lacking = None;
    // A worktree may be gone again.
    let there = |root: &&PathBuf| root.is_dir() || roots.first() == Some(*root);
    for root in roots.iter().filter(there) {
        let settings = Settings::load(root, home).map_err(|error| error.line())?;
        let edited = edited(&settings, heard);
        let event = event_of(&settings.tools(), teller, heard)
            .filter(|_| settings.is_enabled())
            .and_then(|event| at(root, &roots, event, edited.as_deref()));
        let Some(event) = event else { continue };
        // An edit names what is to be looked at, anything else is a scan.
        let is_quick = edited.is_some() || matches!(event, AgentEvent::SessionStart { .. });
        let mut patience = if is_quick { settings.hook_deadline() } else { settings.scan_budget() };
        // What the session has under way is waited for as long as a look at the tree may take.
        if is_deferred(&stores::store_of(root, home)) {
            patience += settings.scan_budget();
        }
        let until = happening.begun + patience;
        let (home, root) = (home.to_owned(), root.clone());
        let (heard, learnt) = (heard.clone(), learnt.clone());
        let watchlist = happening.watchlist.cloned();
        let task = Task { home, root: root.clone(), teller, heard, event, time, learnt, watchlist };
        let done = within(until, task)?;
        beat.roots.push(root);
        beat.recorded = true;
        beat.learnt = done.learnt;
        lacking = lacking.or(done.lacking);
    }
    lacking.map_or(Ok(()), Err)
}

/// What of an event concerns one of the workspaces: of an edit, the files that lie there.
fn at(
    root: &Path,
    roots: &[PathBuf],
    mut event: AgentEvent,
    edited: Option<&[PathBuf]>,
) -> Option<AgentEvent> {
    let lies_here = |path: &PathBuf| root_of_path(roots, path).is_some_and(|it| it == root);
    if edited.is_some_and(|paths| !paths.iter().any(lies_here)) {
        return None;
    }
    if let AgentEvent::BeforeTool { touches: Touches::Paths(paths), .. } = &mut event {
        paths.retain(lies_here);
    }
    Some(event)
}

/// The files that a call names, if it writes no others.
fn edited(settings: &Settings, heard: &Heard) -> Option<Vec<PathBuf>> {
    let (News::Before(call) | News::After(call, _)) = &heard.news else { return None };
    let cwd = heard.cwd.as_deref();
    match touches(&settings.tools(), &call.tool, &call.input, cwd) {
        Touches::Paths(paths) => Some(paths),
        Touches::Anything { .. } | Touches::Nothing => None,
    }
}

/// An error and what is behind it, in one line.
pub(super) fn whole(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(cause) = behind {
        text = format!("{text}: {cause}");
        behind = cause.source();
    }
    text
}
