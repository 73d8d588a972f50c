//! `hook`: records one event from an agent's hook.
//!
//! Never fails the agent and never keeps it waiting beyond its deadline. While recording works, it prints
//! nothing but a line for the agent's model after changes of its were taken back. Problems go to the log
//! file and to the session's heartbeat, where `doctor` finds them. If nothing at all can be recorded, the
//! agent also shows a notice, once per session.

mod context;
mod failure;
mod permission;
mod location;
mod deadline;

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

use self::context::Telling;
use self::deadline::{Task, record_within};
pub(super) use self::deadline::{background_command, describe_gap};
use self::failure::{Failure, Notice};
pub(super) use self::location::HookRun;
use self::location::{root_of_path, roots_of};
pub(super) use self::permission::watch_command;
use super::state::save::SESSION_VARIABLE;
use crate::args::{HookArgs, Options};
use crate::heartbeat::{Beat, FileRead, Heartbeat, NOT_UNDERSTOOD, leave};
use crate::installed_agents;
use crate::log_file::{Level, LogFile};
use crate::place::{self, environment};
use crate::progress;
use crate::settings::Settings;
use crate::stores;
use crate::time::now;
use crate::watchlist::Watchlist;
use crate::witness::{end_of, last_answer};

/// The largest accepted hook payload.
const LONGEST: u64 = takeback_ipc::LARGEST_MESSAGE as u64;
/// How long to wait for it.
const INPUT_PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn hook(options: &Options, args: &HookArgs) -> u8 {
    let begun = Instant::now();
    progress::hide();
    let outcome = match place::home(options) {
        Ok(home) => {
            let outcome = from_stdin(&home, args, begun).unwrap_or_else(HookOutcome::refused);
            log(&home, args, &outcome);
            outcome
        }
        Err(error) => HookOutcome::refused(error.line()),
    };
    if let Err(why) = &outcome.recorded
        && options.verbose
    {
        anstream::eprintln!("takeback hook: {why}");
    }
    let output = agent_named(&args.agent).and_then(|agent| {
        agent.hook_output(&outcome.event, outcome.notice.as_deref(), outcome.context.as_deref())
    });
    if let Some(output) = output {
        // If the agent does not read the notice, `doctor` still reports the problem.
        drop(writeln!(std::io::stdout(), "{output}"));
    }
    0
}

fn log(home: &Path, args: &HookArgs, outcome: &HookOutcome) {
    let failed = outcome.recorded.as_ref().err();
    // The notice to the user says the same.
    let notice =
        outcome.notice.as_ref().filter(|text| failed.is_none_or(|why| !text.contains(why)));
    if failed.is_none() && notice.is_none() {
        return;
    }
    let log = LogFile::of_hooks(home, |name| environment(name)?.into_string().ok());
    for text in failed.into_iter().chain(notice) {
        log.add(now(), Level::Error, &format!("{}: {text}", args.agent));
    }
}

fn from_stdin(home: &Path, args: &HookArgs, begun: Instant) -> Result<HookOutcome, String> {
    let payload = read_input()?;
    let agent = agent_named(&args.agent)
        .ok_or_else(|| format!("unknown agent; known agents: {}", agent_names()))?;
    // The current folder may be gone; most payloads name the agent's folder.
    let folder = std::env::current_dir().ok();
    let input = HookInput {
        agent,
        payload: &payload,
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
    Ok(record_hook(home, &input))
}

/// Reads the payload, with a timeout: an agent may never close standard input.
fn read_input() -> Result<Vec<u8>, String> {
    let (sender, receiver) = channel();
    let read = || -> io::Result<Vec<u8>> {
        let mut payload = Vec::new();
        io::stdin().lock().take(LONGEST).read_to_end(&mut payload)?;
        Ok(payload)
    };
    // After the timeout, the result is dropped.
    if Builder::new().spawn(move || drop(sender.send(read()))).is_err() {
        return read().map_err(|error| format!("standard input: {error}"));
    }
    match receiver.recv_timeout(INPUT_PATIENCE) {
        Ok(payload) => payload.map_err(|error| format!("standard input: {error}")),
        Err(_) => Err("standard input did not end".to_owned()),
    }
}

/// Who records the agent's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorder {
    Hook,
    /// The command that started the agent: `run` or `chat`.
    Other,
}

/// One hook run: its payload and the agent behind it.
pub(crate) struct HookInput<'a> {
    pub(crate) agent: &'static AgentKind,
    pub(crate) payload: &'a [u8],
    /// The event that the command line names.
    pub(crate) event: Option<&'a str>,
    /// The agent's folder, if the payload does not name it.
    pub(crate) folder: Option<&'a Path>,
    pub(crate) run: HookRun,
    /// When the agent started waiting.
    pub(crate) begun: Instant,
    pub(crate) recorder: Recorder,
    /// Set by a server that watches files.
    pub(crate) watchlist: Option<&'a Arc<Watchlist>>,
}

impl HookInput<'_> {
    /// `edits`: whether the event is about a call that names the files it writes.
    fn source(&self, hook_event: &HookEvent, now: Timestamp, edits: bool) -> HookSource {
        let sent = hook_event.timestamp.or(self.run.at).filter(|at| *at <= now).unwrap_or(now);
        let late = Duration::from_millis((now.0 - sent.0).unsigned_abs());
        let formatter = edits
            && matches!(hook_event.kind, HookEventKind::AfterTool(..))
            && installed_agents::has_formatter(self.agent, hook_event.cwd.as_deref());
        HookSource { late, formatter, ..HookSource::new(self.agent, self.run.agent) }
    }

    /// Adds how long a call ran since the user allowed it, for agents that do not report this.
    fn add_run_time(&self, hook_event: &HookEvent, event: &mut AgentEvent, now: Timestamp) {
        let AgentEvent::AfterTool { report, .. } = event else { return };
        let (HookEventKind::AfterTool(call, _), None) = (&hook_event.kind, report.ran_for) else {
            return;
        };
        let transcript = &self.agent.transcript;
        let Some(allowed_at) = transcript.allowed_at else { return };
        let allowed = self
            .transcript_of(hook_event)
            .and_then(|path| end_of(&path))
            .and_then(|end| allowed_at(&end, &call.id))
            .filter(|at| *at <= now);
        report.ran_for = allowed.map(|at| Duration::from_millis((now.0 - at.0).unsigned_abs()));
    }

    /// Adds the model that answered, for agents whose payloads do not name it. Only when an answer is
    /// complete: an agent waits for a hook, and reading costs time.
    fn add_model(&self, hook_event: &HookEvent, event: &mut AgentEvent) {
        let transcript = &self.agent.transcript;
        let Some(model_in) = transcript.model else { return };
        let model = match event {
            AgentEvent::TurnEnd { model, .. } => model,
            // A subagent's only turn ends with its session.
            AgentEvent::SessionEnd { model, .. } if hook_event.subagent.is_some() => model,
            _ => return,
        };
        if model.is_some() {
            return;
        }
        let whole = self.transcript_of(hook_event);
        let path = match &hook_event.subagent {
            Some(part) => {
                whole.and_then(|whole| transcript.subagent_path.and_then(|path| path(&whole, part)))
            }
            None => whole,
        };
        *model = path.and_then(|path| last_answer(&path)).and_then(|end| model_in(&end));
    }

    /// The transcript of the session.
    fn transcript_of(&self, hook_event: &HookEvent) -> Option<PathBuf> {
        let own = || {
            let homes = installed_agents::homes().ok()?;
            let path = self.agent.transcript.path?;
            path(&self.agent.home.path(&homes), &hook_event.session)
        };
        hook_event.transcript.clone().or_else(own)
    }

    /// An interrupted command whose processes still run counts as running in the background.
    fn with_background_outcome(
        &self,
        event: AgentEvent,
        root: &Path,
        now: Timestamp,
    ) -> AgentEvent {
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

/// The result of a hook run.
pub(crate) struct HookOutcome {
    /// An error names what the log is missing.
    pub(crate) recorded: Result<(), String>,
    /// A message for the agent to show.
    notice: Option<String>,
    /// A line for the agent's model to read.
    pub(crate) context: Option<String>,
    /// The agent's name for the event; empty if unknown.
    event: String,
}

impl HookOutcome {
    fn refused(why: String) -> Self {
        Self { recorded: Err(why), notice: None, context: None, event: String::new() }
    }
}

/// Records the event, and writes a heartbeat in any case.
pub(crate) fn record_hook(home: &Path, input: &HookInput<'_>) -> HookOutcome {
    let (agent, time) = (input.agent, now());
    let mut hook_event = match agent.parse(input.payload, input.event) {
        Ok(hook_event) => hook_event,
        Err(another @ PayloadError::OtherAgent { .. }) => {
            return HookOutcome::refused(error_chain(&another));
        }
        Err(error) => {
            let why = error_chain(&error);
            let beat = Beat { problem: Some(why.clone()), ..Beat::default() };
            leave(home, agent.name, NOT_UNDERSTOOD, time, &beat);
            return HookOutcome::refused(why);
        }
    };
    hook_event.cwd = hook_event.cwd.or_else(|| input.folder.map(Path::to_owned));
    let known = Heartbeat::of(home, agent.name, &hook_event.session);
    let mut beat = Beat {
        event: hook_event.event.clone(),
        transcript: hook_event.transcript.clone(),
        is_orphan: hook_event.is_fork.then_some(true),
        ..Beat::default()
    };
    let is_new =
        |notice: &Notice| known.as_ref().is_none_or(|known| !known.was_told(notice.cause.name()));
    let outcome = match input.recorder {
        Recorder::Hook => record_event(home, input, (&hook_event, time), known.as_ref(), &mut beat),
        Recorder::Other => Ok(RecordingOutcome::default()),
    };
    let (recorded, notice, context) = match outcome {
        Ok(RecordingOutcome { lacking, notice, context }) => {
            (lacking.map_or(Ok(()), Err), notice.filter(is_new), context)
        }
        Err(failure) => {
            let notice = Notice::of_failure(&failure).filter(is_new);
            let notice = notice.filter(|notice| !failure.was_told(notice.cause));
            beat.refused_by = failure.refused_by();
            failure.note(time);
            (Err(failure.what), notice, None)
        }
    };
    beat.problem = recorded.as_ref().err().cloned();
    beat.notice = notice.as_ref().map(|notice| notice.cause.name());
    leave(home, agent.name, &hook_event.session, time, &beat);
    let notice = notice.map(|notice| notice.text);
    HookOutcome { recorded, notice, context, event: hook_event.event }
}

/// An event that is in the log or in the inbox.
#[derive(Default)]
struct RecordingOutcome {
    /// What the log is missing.
    lacking: Option<String>,
    notice: Option<Notice>,
    /// A line for the agent's model to read.
    context: Option<String>,
}

fn record_event(
    home: &Path,
    input: &HookInput<'_>,
    (hook_event, time): (&HookEvent, Timestamp),
    known: Option<&Heartbeat>,
    beat: &mut Beat,
) -> Result<RecordingOutcome, Failure> {
    let known_reads = known.map_or(&[][..], |known| &known.reads);
    let (known, learnt, is_orphan) = known
        .map(|known| (known.roots.clone(), known.learnt.clone(), known.is_orphan))
        .unwrap_or_default();
    let roots = roots_of(home, hook_event, &known)?;
    let call_start = permission::track(home, input.agent, &input.run, hook_event, time);
    let mut in_log = RecordingOutcome::default();
    // A git worktree may have been deleted since.
    let there = |root: &&PathBuf| root.is_dir() || roots.first() == Some(*root);
    for root in roots.iter().filter(there) {
        let settings = Settings::load(root, home).map_err(|error| error.line())?;
        let edited = edited(&settings, hook_event);
        let source = input.source(hook_event, time, edited.is_some());
        let event = to_agent_event(&settings.tools(), source, hook_event)
            .filter(|_| settings.is_enabled())
            .and_then(|event| restrict_to_root(root, &roots, event, edited.as_deref()));
        let Some(mut event) = event else {
            beat.reads = files_read(&settings, input, hook_event, time);
            continue;
        };
        if let Some(start) = call_start {
            start.add_to(&mut event, time);
        }
        // An edit names the paths to look at; anything else needs a scan.
        let is_quick = edited.is_some() || matches!(event, AgentEvent::SessionStart { .. });
        let mut patience = if is_quick { settings.hook_deadline() } else { settings.scan_budget() };
        // Another process may be recording an earlier event: wait for as long as a scan may take.
        if Inbox::of(&stores::store_of(root, home)).has_claimed().is_ok_and(|claimed| claimed) {
            patience += settings.scan_budget();
        }
        let until = input.begun + patience;
        let (home, root) = (home.to_owned(), root.clone());
        let (hook_event, learnt) = (hook_event.clone(), learnt.clone());
        let watchlist = input.watchlist.cloned();
        let mut event = input.with_background_outcome(event, &root, time);
        input.add_run_time(&hook_event, &mut event, time);
        input.add_model(&hook_event, &mut event);
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
            telling: telling(&settings, input, known_reads),
        };
        let done = record_within(until, task)
            .map_err(|failure| Failure { missed: Some((store, session)), ..failure })?;
        beat.roots.push(root);
        beat.recorded = true;
        beat.learnt = done.learnt;
        if done.has_parent {
            beat.is_orphan = Some(false);
        }
        in_log.lacking = in_log.lacking.or(done.lacking);
        in_log.context = in_log.context.or(done.context);
        in_log.notice = in_log.notice.or(done.gone.as_ref().map(Notice::of_loss));
    }
    Ok(in_log)
}

/// What the agent's model may be told, with these settings. `reads`: of its session.
fn telling(settings: &Settings, input: &HookInput<'_>, reads: &[FileRead]) -> Telling {
    let Some(context) = input.agent.context else { return Telling::default() };
    let warns = context.before_tool && settings.warns_on_overwrite();
    Telling { taken_back: settings.tells_agent(), overwrites: warns.then(|| reads.to_vec()) }
}

/// The files that a call has read, if that is of use.
fn files_read(
    settings: &Settings,
    input: &HookInput<'_>,
    hook_event: &HookEvent,
    time: Timestamp,
) -> Vec<FileRead> {
    if telling(settings, input, &[]).overwrites.is_none() {
        return Vec::new();
    }
    let session = hook_event.acting_session();
    let paths = input.agent.files_read(&settings.tools(), input.payload, input.event);
    let paths = paths.into_iter().map(|path| match &hook_event.cwd {
        Some(cwd) => cwd.join(path),
        None => path,
    });
    paths.map(|path| FileRead { path, session: session.clone(), at: time }).collect()
}

/// The part of an event that concerns one workspace: for an edit, only the files in it.
fn restrict_to_root(
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

/// The files that a call names, if it writes only those.
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

/// An error and its causes, in one line.
pub(super) fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(cause) = behind {
        text = format!("{text}: {cause}");
        behind = cause.source();
    }
    text
}
