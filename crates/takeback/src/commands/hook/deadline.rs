//! Records an event within the time that an agent may be kept waiting.
//!
//! A thread records; the main thread waits for it until the deadline. An event that is not recorded by then
//! goes into the inbox and is late: the contents before its edit are missing, and contents read later are
//! never taken for them.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Instant;

use takeback_agents::{HookEvent, HookEventKind, HookSource, ends_nothing, introduce_session};
use takeback_core::record::RecordError;
use takeback_core::retention::{is_due, is_over_size_limit};
use takeback_core::{
    self as core, Admission, AgentEvent, Inbox, InboxEvent, QueuedEvent, Workspace, learn_ids,
    record, record_or_queue, record_queued,
};
use takeback_store::{PointQuery, SessionId, StoreError, Timestamp};

use super::context::Telling;
use super::failure::Failure;
use crate::commands::cleanup::enforce_point_cap_in_background;
use crate::commands::unreadable;
use crate::marker::LostHistory;
use crate::place::{self, Place, Store};
use crate::stores;
use crate::watchlist::Watchlist;
use crate::witness::end_of;

/// An event to record, and where.
pub(super) struct Task {
    pub(super) home: PathBuf,
    pub(super) root: PathBuf,
    pub(super) source: HookSource,
    pub(super) hook_event: HookEvent,
    pub(super) event: AgentEvent,
    /// When it happened.
    pub(super) time: Timestamp,
    /// The last prompt whose other ids are known.
    pub(super) learnt: Option<String>,
    /// The session is a fork of a session that is not known yet.
    pub(super) is_orphan: bool,
    pub(super) watchlist: Option<Arc<Watchlist>>,
    pub(super) telling: Telling,
}

#[derive(Default)]
pub(super) struct TaskOutcome {
    pub(super) learnt: Option<String>,
    /// The session's parent is known now.
    pub(super) has_parent: bool,
    /// What the log is missing.
    pub(super) lacking: Option<String>,
    /// The history that the workspace has lost.
    pub(super) gone: Option<LostHistory>,
    /// A line for the agent's model to read.
    pub(super) context: Option<String>,
}

/// Messages of the recording thread, in order.
enum RecorderMessage {
    EventOutcome(EventOutcome),
    Learnt(Option<String>),
}

/// The result of recording an event.
#[derive(Default)]
struct EventOutcome {
    lacking: Option<String>,
    has_parent: bool,
    gone: Option<LostHistory>,
    context: Option<String>,
}

struct Recording {
    /// `None`: another process records the event.
    place: Option<Place>,
    recorded: EventOutcome,
}

/// Records the event, or puts it into the inbox if that is not done by `until`.
///
/// The thread may still record the event after the deadline. The inbox keeps the event's time, so that
/// draining it skips events that are already in the log.
pub(super) fn record_within(until: Instant, task: Task) -> Result<TaskOutcome, Failure> {
    let left = || until.saturating_duration_since(Instant::now());
    let event = InboxEvent { time: task.time, event: task.event.clone() };
    let store_dir = stores::store_of(&task.root, &task.home);
    let known = task.learnt.clone();
    let (sender, receiver) = channel();
    if !left().is_zero() {
        // If no thread can be started, record without a deadline.
        let task = Arc::new(Mutex::new(Some((task, sender))));
        let run = {
            let task = Arc::clone(&task);
            move || {
                let task = task.lock().unwrap_or_else(PoisonError::into_inner).take();
                task.into_iter().for_each(|(task, sender)| task.run(&sender));
            }
        };
        if Builder::new().spawn(run.clone()).is_err() {
            run();
        }
    }
    let EventOutcome { lacking, has_parent, gone, context } = match receiver.recv_timeout(left()) {
        Ok(Ok(RecorderMessage::EventOutcome(recorded))) => recorded,
        Ok(Ok(RecorderMessage::Learnt(learnt))) => {
            return Ok(TaskOutcome { learnt, ..TaskOutcome::default() });
        }
        Ok(Err(why)) => return Err(why),
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            // A newer Takeback may not understand an event written by this one.
            if let Err(error @ StoreError::Newer { .. }) = stores::check_format(&store_dir) {
                return Err(RecordError::from(error).into());
            }
            Inbox::of(&store_dir).push(event).map_err(RecordError::from)?;
            let lacking =
                Some("the deadline passed before it was recorded; it is in the inbox".into());
            return Ok(TaskOutcome { learnt: known, lacking, ..TaskOutcome::default() });
        }
    };
    // What is learned too late is learned with the next event.
    let learnt = match receiver.recv_timeout(left()) {
        Ok(Ok(RecorderMessage::Learnt(learnt))) => learnt,
        _ => known,
    };
    Ok(TaskOutcome { learnt, has_parent, lacking, gone, context })
}

impl Task {
    /// After the deadline the channel has no receiver.
    fn run(mut self, sender: &Sender<Result<RecorderMessage, Failure>>) {
        let recorded = match self.record() {
            Ok(Recording { place, recorded }) => {
                drop(sender.send(Ok(RecorderMessage::EventOutcome(recorded))));
                match place {
                    Some(mut place) => {
                        self.learn(&mut place.workspace).map(RecorderMessage::Learnt)
                    }
                    None => Ok(RecorderMessage::Learnt(self.learnt)),
                }
            }
            Err(why) => Err(why),
        };
        drop(sender.send(recorded));
    }

    fn record(&mut self) -> Result<Recording, Failure> {
        let mut place = place::open_at(&self.root, &self.home, Store::Create)?;
        if let Some(list) = &self.watchlist {
            list.watch(&mut place, &self.home);
        }
        let workspace = &mut place.workspace;
        workspace.limits = place.settings.agent_limits();
        // The event's own time, not the time of this thread: if the event is recorded here and put into the
        // inbox as well, draining the inbox recognises it by its time.
        let time = self.time;
        workspace.ambient.now = Box::new(move || time);
        // A queued event is not in the log yet, so its point has no ids to learn.
        if matches!(self.hook_event.kind, HookEventKind::TurnEnd | HookEventKind::SessionEnd)
            && let Ok(learnt) = self.learn(workspace)
        {
            self.learnt = learnt;
        }
        let has_parent = self.is_orphan && self.adopt(workspace)?;
        let from_files = place.settings.background_scan_files();
        let gone = place.gone.clone();
        let told = self.told_until(workspace);
        let lacking = match self.record_event(workspace, from_files)? {
            None => None,
            Some(Admission::Recorded(recorded)) => {
                describe_gap(&recorded).or(self.note_missing_start(workspace, &recorded)?)
            }
            Some(Admission::Queued(queued)) => {
                let lacking = self.record_in_background(workspace, queued)?;
                let (context, unread) = self.context(workspace, told);
                let lacking = place.missed.clone().or(lacking).or(unread);
                let recorded = EventOutcome { lacking, has_parent, gone, context };
                return Ok(Recording { place: None, recorded });
            }
        };
        let (context, unread) = self.context(workspace, told);
        self.finish_scan_in_background();
        let policy = place.settings.retention();
        if self.hook_event.kind == HookEventKind::SessionStart
            && (is_due(workspace).is_ok_and(|due| due)
                || is_over_size_limit(workspace, &policy).is_ok_and(|tight| tight))
        {
            self.clean_up_in_background();
        }
        if let AgentEvent::Prompt { session, .. } = &self.event {
            enforce_point_cap_in_background(&place, session);
        }
        let lacking = place.missed.clone().or(lacking).or(unread);
        let recorded = EventOutcome { lacking, has_parent, gone, context };
        Ok(Recording { place: Some(place), recorded })
    }

    /// `None`: the event adds nothing to the log.
    fn record_event(
        &self,
        workspace: &mut Workspace,
        from_files: u64,
    ) -> Result<Option<Admission>, RecordError> {
        if ends_nothing(workspace, &self.hook_event, &self.event)? {
            return Ok(None);
        }
        introduce_session(workspace, self.source, &self.hook_event)?;
        record_or_queue(workspace, &self.event, from_files).map(Some)
    }

    /// Reports the end of a call whose start is not in the log: what the call found is unknown.
    fn note_missing_start(
        &self,
        workspace: &Workspace,
        recorded: &core::RecordOutcome,
    ) -> Result<Option<String>, Failure> {
        let (AgentEvent::AfterTool { session, call, .. }, HookEventKind::AfterTool(tool_call, _)) =
            (&self.event, &self.hook_event.kind)
        else {
            return Ok(None);
        };
        let call = workspace.store.call(session, call).map_err(|error| Failure::of(&error))?;
        let is_unseen = call.is_none() && !recorded.late;
        Ok(is_unseen.then(|| {
            let tool = &tool_call.tool;
            format!(
                "the beginning of a call ({tool}) was not recorded; what changed until it ended is \
                 unclear"
            )
        }))
    }

    /// Passes the event to a background process. The session's next event waits until that process is done.
    fn record_in_background(
        &self,
        workspace: &mut Workspace,
        queued: QueuedEvent,
    ) -> Result<Option<String>, Failure> {
        let start = || -> io::Result<Child> {
            let mut command = self.background_command()?;
            command
                .arg("finish-event")
                .arg(queued.name())
                .args(["--agent", self.source.agent.name]);
            command.arg(format!("--session={}", self.hook_event.session));
            command.stdin(Stdio::from(queued.file()?)).spawn()
        };
        match start() {
            Ok(mut child) => {
                // A server that outlives the child has to reap it.
                drop(Builder::new().spawn(move || child.wait()));
                Ok(None)
            }
            Err(_) => {
                let recorded = record_queued(workspace, queued);
                Ok(describe_gap(&recorded?))
            }
        }
    }

    /// Adds the agent's own message id to the prompt's point, once the transcript has it.
    fn learn(&self, workspace: &mut Workspace) -> Result<Option<String>, Failure> {
        let (Some(message_of), Some(transcript), Some(prompt)) = (
            self.source.agent.transcript.message,
            &self.hook_event.transcript,
            &self.hook_event.prompt,
        ) else {
            return Ok(self.learnt.clone());
        };
        if self.learnt.as_ref() == Some(prompt) {
            return Ok(self.learnt.clone());
        }
        let Some(message) = end_of(transcript).and_then(|end| message_of(&end, prompt)) else {
            return Ok(self.learnt.clone());
        };
        let session = SessionId(self.hook_event.session.clone());
        learn_ids(workspace, &session, prompt, &[message]).map_err(|error| Failure::of(&error))?;
        Ok(Some(prompt.clone()))
    }

    /// Sets the parent of a forked session, once the transcript names it. Returns whether it did.
    fn adopt(&self, workspace: &mut Workspace) -> Result<bool, Failure> {
        let (agent, own) = (self.source.agent, SessionId(self.hook_event.session.clone()));
        let transcript = self.hook_event.transcript.as_deref();
        let is_read = agent.transcript.parent.is_some() || agent.transcript.prompts.is_some();
        let Some(end) = transcript.filter(|_| is_read).and_then(end_of) else {
            return Ok(false);
        };
        let named = agent.transcript.parent.and_then(|parent| parent(&end, &own.0)).map(SessionId);
        // Copied messages keep their ids: the newest known one belongs to the parent.
        let copied = || -> Result<Option<SessionId>, StoreError> {
            let prompts = agent.transcript.prompts.map_or_else(Vec::new, |prompts| prompts(&end));
            for message in prompts.iter().rev() {
                let points = workspace.store.find_points(PointQuery::Name(message))?;
                let mut sessions = points.into_iter().filter_map(|point| point.session);
                if let Some(session) = sessions.find(|session| *session != own) {
                    return Ok(Some(session));
                }
            }
            Ok(None)
        };
        let parent = match named {
            Some(parent) => Some(parent),
            None => copied().map_err(|error| Failure::of(&error))?,
        };
        let Some(parent) = parent.filter(|parent| *parent != own) else { return Ok(false) };
        let event = AgentEvent::SessionStart {
            session: own,
            agent: Some(agent.name.to_owned()),
            parent: Some(parent),
            owner: self.source.process,
            model: None,
        };
        record(workspace, &event)?;
        Ok(true)
    }

    /// Starts a background scan if this or an earlier event left files to read and no process reads them.
    fn finish_scan_in_background(&self) {
        let inbox = Inbox::of(&stores::store_of(&self.root, &self.home));
        if inbox.wants_scan().is_ok_and(|wanted| wanted) {
            let started = self
                .background_command()
                .and_then(|mut command| command.arg("finish-event").stdin(Stdio::null()).spawn());
            // If it cannot be started, the next hook tries again.
            drop(started);
        }
    }

    /// In a background process, so that no agent waits.
    fn clean_up_in_background(&self) {
        let started = self
            .background_command()
            .and_then(|mut command| command.args(["cleanup", "-q"]).stdin(Stdio::null()).spawn());
        // If it cannot be started, the next command that a user runs cleans up.
        drop(started);
    }

    fn background_command(&self) -> io::Result<Command> {
        let mut command = background_command(&self.home)?;
        command.arg("-C").arg(&self.root);
        Ok(command)
    }
}

/// A command that runs this program in a process that outlives the hook.
pub(in crate::commands) fn background_command(home: &Path) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--home").arg(home).current_dir("/");
    // In its own process group: an agent may kill the group of its hook.
    command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    Ok(command)
}

pub(in crate::commands) fn describe_gap(recorded: &core::RecordOutcome) -> Option<String> {
    if recorded.late {
        return Some("the workspace was busy; it is in the inbox".to_owned());
    }
    let lines = unreadable::lines(recorded);
    let (what, path, why) = lines.first()?;
    let more = lines.len() - 1;
    let rest = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    let what = if *what == "not read" { "could not be read" } else { "not captured" };
    Some(format!("{what}: {path}{rest}: {why}"))
}
