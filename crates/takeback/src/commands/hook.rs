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

use takeback_agents::{
    AgentKind, HookEvent, HookEventKind, HookSource, PayloadError, agent_named, agent_names,
    call_targets, to_agent_event,
};
use takeback_core::{AgentEvent, CallTargets, Inbox, Outcome, process};
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
use crate::installed_agents;
use crate::log_file::{Level, LogFile};
use crate::place::{self, environment};
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
    let message = agent_named(&args.agent).and_then(|agent| agent.message);
    if let Some((message, text)) = message.zip(taken.notice) {
        let answer = message(&text);
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
    let agent = agent_named(&args.agent)
        .ok_or_else(|| format!("there is no agent of this name; known: {}", agent_names()))?;
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
    /// The command that started the agent does already: `run`, or `chat`.
    Other,
}

/// What a hook was given, and by whom.
pub(crate) struct Happening<'a> {
    pub(crate) agent: &'static AgentKind,
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
    fn source(&self, hook_event: &HookEvent, now: Timestamp, edits: bool) -> HookSource {
        let sent = hook_event.timestamp.or(self.run.at).filter(|at| *at <= now).unwrap_or(now);
        let late = Duration::from_millis((now.0 - sent.0).unsigned_abs());
        let formatter = edits
            && matches!(hook_event.kind, HookEventKind::AfterTool(..))
            && installed_agents::has_formatter(self.agent, hook_event.cwd.as_deref());
        HookSource { late, formatter, ..HookSource::new(self.agent, self.run.agent) }
    }

    /// How long a call ran, of agents that do not say so: since the person allowed it.
    fn since_allowed(&self, hook_event: &HookEvent, event: &mut AgentEvent, now: Timestamp) {
        let AgentEvent::AfterTool { report, .. } = event else { return };
        let (HookEventKind::AfterTool(call, _), None) = (&hook_event.kind, report.ran_for) else {
            return;
        };
        let transcript = &self.agent.transcript;
        let Some(allowed_at) = transcript.allowed_at else { return };
        let own = || {
            let homes = installed_agents::homes().ok()?;
            transcript.path?(&self.agent.home.path(&homes), &hook_event.session)
        };
        let path = hook_event.transcript.clone().or_else(own);
        let allowed = path
            .and_then(|path| end_of(&path))
            .and_then(|end| allowed_at(&end, &call.id))
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
    let mut hook_event = match agent.parse(happening.given, happening.event) {
        Ok(hook_event) => hook_event,
        Err(another @ PayloadError::OtherAgent { .. }) => return Taken::refused(whole(&another)),
        Err(error) => {
            let why = whole(&error);
            let beat = Beat { problem: Some(why.clone()), ..Beat::default() };
            leave(home, agent.name, NOT_UNDERSTOOD, time, &beat);
            return Taken::refused(why);
        }
    };
    hook_event.cwd = hook_event.cwd.or_else(|| happening.folder.map(Path::to_owned));
    let known = Heartbeat::of(home, agent.name, &hook_event.session);
    let mut beat = Beat {
        event: hook_event.event.clone(),
        transcript: hook_event.transcript.clone(),
        is_orphan: hook_event.is_fork.then_some(true),
        ..Beat::default()
    };
    let is_new =
        |notice: &Notice| known.as_ref().is_none_or(|known| !known.was_told(notice.cause.name()));
    let taken = match happening.recorder {
        Recorder::Hook => into_log(home, happening, &hook_event, time, known.as_ref(), &mut beat),
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
    leave(home, agent.name, &hook_event.session, time, &beat);
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
    hook_event: &HookEvent,
    time: Timestamp,
    known: Option<&Heartbeat>,
    beat: &mut Beat,
) -> Result<InLog, Failure> {
    let (known, learnt, is_orphan) = known
        .map(|known| (known.roots.clone(), known.learnt.clone(), known.is_orphan))
        .unwrap_or_default();
    let roots = roots_of(home, hook_event, &known)?;
    let call_start = permission::heed(home, happening.agent, &happening.run, hook_event, time);
    let mut in_log = InLog::default();
    // A worktree may be gone again.
    let there = |root: &&PathBuf| root.is_dir() || roots.first() == Some(*root);
    for root in roots.iter().filter(there) {
        let settings = Settings::load(root, home).map_err(|error| error.line())?;
        let edited = edited(&settings, hook_event);
        let source = happening.source(hook_event, time, edited.is_some());
        let event = to_agent_event(&settings.tools(), source, hook_event)
            .filter(|_| settings.is_enabled())
            .and_then(|event| at(root, &roots, event, edited.as_deref()));
        let Some(mut event) = event else { continue };
        if let Some(start) = call_start {
            start.add_to(&mut event, time);
        }
        // An edit names what is to be looked at, anything else is a scan.
        let is_quick = edited.is_some() || matches!(event, AgentEvent::SessionStart { .. });
        let mut patience = if is_quick { settings.hook_deadline() } else { settings.scan_budget() };
        // A claimed event of the session is waited for as long as a scan may take.
        if Inbox::of(&stores::store_of(root, home)).has_claimed().is_ok_and(|claimed| claimed) {
            patience += settings.scan_budget();
        }
        let until = happening.begun + patience;
        let (home, root) = (home.to_owned(), root.clone());
        let (hook_event, learnt) = (hook_event.clone(), learnt.clone());
        let watchlist = happening.watchlist.cloned();
        let mut event = happening.unless_it_goes_on(event, &root, time);
        happening.since_allowed(&hook_event, &mut event, time);
        let store = stores::store_of(&root, &home);
        let session = event.session().clone();
        let task = Task {
            home,
            root: root.clone(),
            source,
            hook_event,
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
    if let AgentEvent::BeforeTool { touches: CallTargets::Paths(paths), .. } = &mut event {
        paths.retain(lies_here);
    }
    Some(event)
}

/// The files that a call names, if it writes no others.
fn edited(settings: &Settings, hook_event: &HookEvent) -> Option<Vec<PathBuf>> {
    let (HookEventKind::BeforeTool(call) | HookEventKind::AfterTool(call, _)) = &hook_event.kind
    else {
        return None;
    };
    let cwd = hook_event.cwd.as_deref();
    match call_targets(&settings.tools(), &call.tool, &call.input, cwd) {
        CallTargets::Paths(paths) => Some(paths),
        CallTargets::Anything { .. } | CallTargets::Nothing => None,
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
