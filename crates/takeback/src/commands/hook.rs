//! `hook`: one event that an agent's hook was given, recorded.
//!
//! Never fails the agent, never keeps it waiting beyond its deadline, prints nothing as long as it
//! records. What went wrong is in the log file and in the session's heartbeat, where `doctor` finds it.
//! What keeps everything out of the log is also told the user, once a session, where the agent shows it.

mod failure;
mod permission;
mod whereabouts;
mod within;

use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::Builder;
use std::time::{Duration, Instant};

use takeback_agents::hook::{
    HearError, Heard, News, Plugged, Teller, allowed_in, event_of, hear, message_to, touches,
    transcript_of,
};
use takeback_agents::install::home_of;
use takeback_core::deferred::is_any as is_deferred;
use takeback_core::{AgentEvent, Outcome, Touches, process};
use takeback_store::Timestamp;

use self::failure::{Failure, Notice};
pub(super) use self::permission::watch_command;
pub(super) use self::whereabouts::HookRun;
use self::whereabouts::{root_of_path, roots_of};
use self::within::{Task, within};
pub(super) use self::within::{lacking, meanwhile};
use super::state::save::SESSION_VARIABLE;
use crate::args::{HookArgs, Options};
use crate::heartbeat::{Beat, Heartbeat, NOT_UNDERSTOOD, leave};
use crate::log_file::{Level, LogFile};
use crate::place::{self, environment};
use crate::plugs;
use crate::progress;
use crate::settings::Settings;
use crate::stores;
use crate::time::now;
use crate::watchlist::Watchlist;
use crate::witness::end_of;

/// What a hook is given is no longer than this.
const LONGEST: u64 = takeback_ipc::LARGEST_MESSAGE as u64;
/// And there within this time.
const INPUT_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn hook(options: &Options, args: &HookArgs) -> u8 {
    let begun = Instant::now();
    progress::hide();
    let taken = match place::home(options) {
        Ok(home) => {
            let taken = from_stdin(&home, args, begun).unwrap_or_else(Taken::refused);
            log(&home, args, &taken);
            taken
        }
        Err(error) => Taken::refused(error.line()),
    };
    if let Err(why) = &taken.recorded
        && options.verbose
    {
        anstream::eprintln!("takeback hook: {why}");
    }
    let agent = Plugged::named(&args.agent);
    if let Some(answer) = agent.zip(taken.notice).and_then(|(to, text)| message_to(to, &text)) {
        // An agent that does not listen is told by `doctor`.
        drop(writeln!(std::io::stdout(), "{answer}"));
    }
    0
}

fn log(home: &Path, args: &HookArgs, taken: &Taken) {
    let failed = taken.recorded.as_ref().err();
    // What the user is told of a failure says the same.
    let told = taken.notice.as_ref().filter(|told| failed.is_none_or(|why| !told.contains(why)));
    if failed.is_none() && told.is_none() {
        return;
    }
    let log = LogFile::of_hooks(home, |name| environment(name)?.into_string().ok());
    for text in failed.into_iter().chain(told) {
        log.add(now(), Level::Error, &format!("{}: {text}", args.agent));
    }
}

fn from_stdin(home: &Path, args: &HookArgs, begun: Instant) -> Result<Taken, String> {
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
        run: HookRun::of_this_process(),
        begun,
        recorder: match environment(SESSION_VARIABLE) {
            Some(_) => Recorder::Other,
            None => Recorder::Hook,
        },
        watchlist: None,
    };
    Ok(take(home, &happening))
}

/// An agent that never says that this was all is not waited for.
fn read_input() -> Result<Vec<u8>, String> {
    let (say, said) = channel();
    let read = || -> io::Result<Vec<u8>> {
        let mut given = Vec::new();
        io::stdin().lock().take(LONGEST).read_to_end(&mut given)?;
        Ok(given)
    };
    // When time is up, the answer is dropped.
    if Builder::new().spawn(move || drop(say.send(read()))).is_err() {
        return read().map_err(|error| format!("standard input: {error}"));
    }
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
    pub(crate) run: HookRun,
    /// Since when the agent waits.
    pub(crate) begun: Instant,
    pub(crate) recorder: Recorder,
    /// Of a server that watches.
    pub(crate) watchlist: Option<&'a Arc<Watchlist>>,
}

impl Happening<'_> {
    /// `edits`: whether it is about a call that names what it writes.
    fn teller(&self, heard: &Heard, now: Timestamp, edits: bool) -> Teller {
        let sent = heard.timestamp.or(self.run.at).filter(|at| *at <= now).unwrap_or(now);
        let late = Duration::from_millis((now.0 - sent.0).unsigned_abs());
        let formatter = edits
            && matches!(heard.news, News::After(..))
            && plugs::has_formatter(self.agent, heard.cwd.as_deref());
        Teller { late, formatter, ..Teller::new(self.agent, self.run.agent) }
    }

    /// How long a call ran, of agents that do not say so: since the person allowed it.
    fn since_allowed(&self, heard: &Heard, event: &mut AgentEvent, now: Timestamp) {
        let AgentEvent::AfterTool { report, .. } = event else { return };
        let (News::After(call, _), None) = (&heard.news, report.ran_for) else { return };
        let own = || {
            let homes = plugs::homes().ok()?;
            transcript_of(self.agent, &home_of(self.agent, &homes), &heard.session)
        };
        // The others say it themselves, or never.
        let is_asked = matches!(self.agent, Plugged::Codex | Plugged::Copilot);
        let path = heard.transcript.clone().filter(|_| is_asked).or_else(own);
        let allowed = path
            .and_then(|path| end_of(&path))
            .and_then(|end| allowed_in(self.agent, &end, &call.id))
            .filter(|at| *at <= now);
        report.ran_for = allowed.map(|at| Duration::from_millis((now.0 - at.0).unsigned_abs()));
    }

    /// An interrupted command of which something still runs is not over.
    fn unless_it_goes_on(&self, event: AgentEvent, root: &Path, now: Timestamp) -> AgentEvent {
        match (event, self.run.agent) {
            (
                AgentEvent::AfterTool { session, call, outcome: Outcome::Interrupted, report },
                Some(agent),
            ) => {
                let ran_for = report.ran_for.unwrap_or_default();
                let began = now.0.saturating_sub_unsigned(millis(ran_for));
                let goes_on = report.ran_for.is_some()
                    && process::has_running(agent, Timestamp(began), self.run.at, root);
                let outcome = if goes_on { Outcome::Background } else { Outcome::Interrupted };
                AgentEvent::AfterTool { session, call, outcome, report }
            }
            (event, _) => event,
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// What became of an event.
pub(crate) struct Taken {
    /// Or what is not in the log as it should be.
    pub(crate) recorded: Result<(), String>,
    /// What the user is told at once.
    notice: Option<String>,
}

impl Taken {
    fn refused(why: String) -> Self {
        Self { recorded: Err(why), notice: None }
    }
}

/// Records it, and leaves a heartbeat, whatever else happens.
pub(crate) fn take(home: &Path, happening: &Happening<'_>) -> Taken {
    let (agent, time) = (happening.agent, now());
    let mut heard = match hear(agent, happening.given, happening.event) {
        Ok(heard) => heard,
        Err(another @ HearError::Another { .. }) => return Taken::refused(whole(&another)),
        Err(error) => {
            let why = whole(&error);
            let beat = Beat { problem: Some(why.clone()), ..Beat::default() };
            leave(home, agent.name(), NOT_UNDERSTOOD, time, &beat);
            return Taken::refused(why);
        }
    };
    heard.cwd = heard.cwd.or_else(|| happening.folder.map(Path::to_owned));
    let known = Heartbeat::of(home, agent.name(), &heard.session);
    let mut beat = Beat {
        event: heard.event.clone(),
        transcript: heard.transcript.clone(),
        is_orphan: heard.is_fork.then_some(true),
        ..Beat::default()
    };
    let is_new =
        |notice: &Notice| known.as_ref().is_none_or(|known| !known.was_told(notice.cause.name()));
    let taken = match happening.recorder {
        Recorder::Hook => into_log(home, happening, &heard, time, known.as_ref(), &mut beat),
        Recorder::Other => Ok(InLog::default()),
    };
    let (recorded, notice) = match taken {
        Ok(InLog { lacking, notice }) => (lacking.map_or(Ok(()), Err), notice.filter(is_new)),
        Err(failure) => {
            let notice = Notice::of_failure(&failure).filter(is_new);
            let notice = notice.filter(|notice| !failure.was_told(notice.cause));
            beat.refused_by = failure.refused_by();
            failure.note(time);
            (Err(failure.what), notice)
        }
    };
    beat.problem = recorded.as_ref().err().cloned();
    beat.told = notice.as_ref().map(|notice| notice.cause.name());
    leave(home, agent.name(), &heard.session, time, &beat);
    Taken { recorded, notice: notice.map(|notice| notice.text) }
}

/// An event that is in the log, or will be.
#[derive(Default)]
struct InLog {
    /// What is not as it should be.
    lacking: Option<String>,
    notice: Option<Notice>,
}

fn into_log(
    home: &Path,
    happening: &Happening<'_>,
    heard: &Heard,
    time: Timestamp,
    known: Option<&Heartbeat>,
    beat: &mut Beat,
) -> Result<InLog, Failure> {
    let (known, learnt, is_orphan) = known
        .map(|known| (known.roots.clone(), known.learnt.clone(), known.is_orphan))
        .unwrap_or_default();
    let roots = roots_of(home, heard, &known)?;
    let call_start = permission::heed(home, happening.agent, &happening.run, heard, time);
    let mut in_log = InLog::default();
    // A worktree may be gone again.
    let there = |root: &&PathBuf| root.is_dir() || roots.first() == Some(*root);
    for root in roots.iter().filter(there) {
        let settings = Settings::load(root, home).map_err(|error| error.line())?;
        let edited = edited(&settings, heard);
        let teller = happening.teller(heard, time, edited.is_some());
        let event = event_of(&settings.tools(), teller, heard)
            .filter(|_| settings.is_enabled())
            .and_then(|event| at(root, &roots, event, edited.as_deref()));
        let Some(mut event) = event else { continue };
        if let Some(start) = call_start {
            start.add_to(&mut event, time);
        }
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
        let mut event = happening.unless_it_goes_on(event, &root, time);
        happening.since_allowed(&heard, &mut event, time);
        let store = stores::store_of(&root, &home);
        let session = event.session().clone();
        let task = Task {
            home,
            root: root.clone(),
            teller,
            heard,
            event,
            time,
            learnt,
            is_orphan,
            watchlist,
        };
        let done = within(until, task)
            .map_err(|failure| Failure { missed: Some((store, session)), ..failure })?;
        beat.roots.push(root);
        beat.recorded = true;
        beat.learnt = done.learnt;
        if done.has_parent {
            beat.is_orphan = Some(false);
        }
        in_log.lacking = in_log.lacking.or(done.lacking);
        in_log.notice = in_log.notice.or(done.gone.as_ref().map(Notice::of_loss));
    }
    Ok(in_log)
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
