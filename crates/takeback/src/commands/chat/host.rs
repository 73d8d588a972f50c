//! The session's loop: takes events from the terminal, the agent and the worker, and draws the screen.
//!
//! What follows from an event is in the files of this folder: [`turn`] (prompts and the agent's
//! messages), [`menu`], [`restore`], [`undo`] and [`slash`].

mod menu;
mod restore;
mod slash;
mod turn;
mod undo;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use takeback_agents::{ChatAgent, Decision, Metadata};
use takeback_store::SessionId;
use takeback_tui::{
    Activity, Answer, Chat, Decoder, Effect, Item, Moment, Press, Terminal, TerminalEvent, Tone,
};

pub(super) use self::undo::Direction;
use self::undo::{RecallReason, RewindStep};
use super::Event;
use super::conversation::{Conversation, Line};
use super::restore::RestoreJob;
use super::worker::{Job, JobResult, MenuTrigger};
use crate::error::CommandError;
use crate::log_file::{Level, LogFile};
use crate::time::now;

/// How often the spinner moves.
const TICK: Duration = Duration::from_millis(120);
/// The shortest time between two frames.
const FRAME: Duration = Duration::from_millis(16);

pub(super) struct Host {
    pub(super) chat: Chat,
    pub(super) agent: Arc<dyn ChatAgent>,
    pub(super) session: SessionId,
    jobs: Sender<Job>,
    metadata: Option<Metadata>,
    keep: usize,
    log: LogFile,
    /// The prompts of the conversation, including those of earlier runs.
    pub(super) prompts: Vec<Prompt>,
    /// The prompts sent in this run, including those that a rewind removed.
    pub(super) entered: Vec<String>,
    /// A job that waits for the turn to end, and since when.
    waiting: Option<(Job, Moment)>,
    /// The rewinds of this run, the last one last; and those that were undone.
    undos: Vec<RewindStep>,
    redos: Vec<RewindStep>,
    /// Why the agent is loading another conversation.
    recall: Option<RecallReason>,
    /// A restore without the agent, which the user was offered.
    offer: Option<RestoreJob>,
    /// Why the last turn failed.
    failure: Option<String>,
    /// Whether the agent was ready once.
    started: bool,
    start: Instant,
    /// Set to leave the loop.
    exit: bool,
    /// The signal that ended the session.
    pub(super) signal: Option<i32>,
}

pub(super) struct HostOptions {
    pub(super) chat: Chat,
    pub(super) agent: Arc<dyn ChatAgent>,
    pub(super) session: SessionId,
    pub(super) jobs: Sender<Job>,
    /// `None` if nothing is recorded.
    pub(super) metadata: Option<Metadata>,
    /// `checkpointKeepCount`.
    pub(super) keep: usize,
    pub(super) log: LogFile,
}

/// A prompt of the conversation.
#[derive(Debug, Clone)]
pub(super) struct Prompt {
    message: String,
    text: String,
    /// Its index in the transcript.
    at: usize,
}

impl Host {
    pub(super) fn new(options: HostOptions) -> Self {
        let HostOptions { chat, agent, session, jobs, metadata, keep, log } = options;
        Self {
            chat,
            agent,
            session,
            jobs,
            metadata,
            keep,
            log,
            prompts: Vec::new(),
            entered: Vec::new(),
            waiting: None,
            undos: Vec::new(),
            redos: Vec::new(),
            recall: None,
            offer: None,
            failure: None,
            started: false,
            start: Instant::now(),
            exit: false,
            signal: None,
        }
    }

    pub(super) fn run(
        &mut self,
        terminal: &mut Terminal,
        events: &Receiver<Event>,
    ) -> Result<(), CommandError> {
        let mut keys = Decoder::new();
        let mut drawn = None::<Instant>;
        let mut stale = true;
        self.job(Job::Count);
        while !self.exit {
            if stale && drawn.is_none_or(|at| at.elapsed() >= FRAME) {
                let now = self.now();
                terminal.draw(|frame| self.chat.draw(frame, now))?;
                (stale, drawn) = (false, Some(Instant::now()));
            }
            let busy = self.chat.activity != Activity::Idle;
            match events.recv_timeout(self.next_wakeup(&keys, stale, busy)) {
                Ok(event) => {
                    self.on_event(event, &mut keys);
                    // A burst of events is drawn once.
                    while let Ok(next) = events.try_recv() {
                        self.on_event(next, &mut keys);
                        if drawn.is_some_and(|at| at.elapsed() > TICK) {
                            break;
                        }
                    }
                    stale = true;
                }
                Err(RecvTimeoutError::Timeout) => stale |= busy,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("every thread of the session has ended").into());
                }
            }
            let expired = keys.expire(self.now());
            stale |= !expired.is_empty() | self.chat.expire_hint(self.now());
            self.press(expired);
            self.give_up_waiting();
        }
        Ok(())
    }

    fn next_wakeup(&self, keys: &Decoder, stale: bool, busy: bool) -> Duration {
        let wait = match (stale, busy) {
            (true, _) => FRAME,
            (false, true) => TICK,
            (false, false) => Duration::from_secs(60),
        };
        let deadlines = [keys.deadline(), self.chat.hint_deadline()].into_iter().flatten();
        let until = |deadline: Moment| Duration::from_millis(deadline.since(self.now()));
        deadlines.map(until).fold(wait, Duration::min)
    }

    fn on_event(&mut self, event: Event, keys: &mut Decoder) {
        match event {
            Event::Terminal(TerminalEvent::Bytes(bytes)) => {
                let presses = keys.feed(&bytes, self.now());
                self.press(presses);
            }
            Event::Terminal(TerminalEvent::Resized) => {}
            Event::Terminal(TerminalEvent::Signal(signal)) => {
                (self.exit, self.signal) = (true, Some(signal));
            }
            Event::Terminal(TerminalEvent::Closed) => self.exit = true,
            Event::Agent(message) => self.on_agent(message),
            Event::Worker(result) => self.on_result(*result),
        }
    }

    fn press(&mut self, presses: Vec<Press>) {
        for press in presses {
            for effect in self.chat.press(&press) {
                self.on_effect(effect);
            }
        }
    }

    fn on_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Prompt(text) => self.prompt(&text),
            Effect::Slash(line) => self.run_slash(&line),
            Effect::Interrupt => self.interrupt(),
            Effect::Answer(request, answer) => self.answer(&request, answer),
            Effect::OpenMenu => self.open_menu(None, MenuTrigger::Key),
            Effect::Menu(action) => self.on_menu(action),
            Effect::Exit => self.exit = true,
        }
    }

    fn answer(&mut self, request: &str, answer: Answer) {
        if request == restore::OFFER {
            return self.answer_offer(answer);
        }
        let decision = match answer {
            Answer::Yes => Decision::Allow,
            Answer::Always => Decision::AllowAlways,
            Answer::No => Decision::Deny("The user denied this.".to_owned()),
        };
        if let Err(error) = self.agent.decide(request, decision) {
            self.say(Tone::Failure, error.to_string());
        }
    }

    fn on_result(&mut self, result: JobResult) {
        match result {
            JobResult::Rows(rows) => self.show_menu(*rows),
            JobResult::Preview { request, preview } => {
                if let Some(menu) = &mut self.chat.menu {
                    menu.set_preview(request, preview);
                }
            }
            JobResult::NotAPoint { name, trigger } => self.act_on(name, trigger),
            JobResult::Acted(result) => self.on_acted(result),
            JobResult::Answer { question, answer } => {
                if let Some(menu) = &mut self.chat.menu {
                    menu.set_answer(&question, answer);
                }
            }
            JobResult::Restored { job, result } => self.on_restored(*job, result),
            JobResult::RestoredExecution { execution, result } => {
                self.on_restored_execution(&execution, result);
            }
            JobResult::Reversed { direction, receipt, own } => {
                self.on_reversed(direction, receipt, own);
            }
            JobResult::Counts { points, can_rewind, files, lines } => {
                let status = &mut self.chat.status;
                if status.points.is_some() {
                    status.points = Some(points);
                    status.can_rewind = can_rewind;
                }
                status.files = files;
                status.lines = lines.map(|lines| (lines.insertions, lines.deletions));
            }
            JobResult::ToolEnd { call, end } => {
                self.chat.transcript.end_tool(&call, end);
                self.job(Job::Count);
            }
            JobResult::Diff(None) => {
                self.say(Tone::Hint, "/diff compares with your last prompt; there is none yet.");
            }
            JobResult::Diff(Some(lines)) if lines.is_empty() => {
                self.say(Tone::Hint, "Nothing changed since the last prompt.");
            }
            JobResult::Diff(Some(lines)) => self.chat.transcript.push(Item::Diff(lines)),
            JobResult::Loaded(conversation) => {
                self.chat.transcript.clear();
                self.show(&conversation);
                self.say(Tone::Success, "Loaded. Files stay as they are.");
                self.finish_change();
            }
            JobResult::Recalled(result) => self.on_recalled(result),
            JobResult::Message(Ok(text)) => {
                self.say(Tone::Plain, text);
                self.job(Job::Count);
            }
            JobResult::Message(Err(why)) => {
                self.become_idle();
                self.fail(&why);
            }
            JobResult::Failure(why) => {
                self.log_error(&why);
                self.say(Tone::Warning, why);
            }
        }
    }

    pub(super) fn now(&self) -> Moment {
        Moment(u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn job(&self, job: Job) {
        // A worker that has ended has reported why.
        drop(self.jobs.send(job));
    }

    pub(super) fn log_error(&self, what: &str) {
        self.log.add(now(), Level::Error, what);
    }

    pub(super) fn say(&mut self, tone: Tone, text: impl Into<String>) {
        self.chat.transcript.say(tone, text);
    }

    /// Reports a failed command in one line; the session goes on.
    fn fail(&mut self, why: &str) {
        self.log_error(&format!("command failed: {why}"));
        self.say(Tone::Failure, format!("Command execution failed: {why}"));
    }

    pub(super) fn is_recording(&self) -> bool {
        self.chat.status.points.is_some()
    }

    /// Ends [`Activity::Working`] and sends the next queued prompt.
    fn become_idle(&mut self) {
        if let Activity::Working(_) = self.chat.activity {
            self.chat.activity = Activity::Idle;
        }
        self.send_queued();
    }

    /// After files or the conversation changed.
    fn finish_change(&mut self) {
        self.become_idle();
        self.job(Job::Count);
        self.save_session();
    }

    /// Stores the conversation, for `--continue`.
    pub(super) fn save_session(&self) {
        self.job(Job::SaveSession(Box::new(self.conversation())));
    }

    fn conversation(&self) -> Conversation {
        let message_at = |at: usize| {
            self.prompts.iter().find(|prompt| prompt.at == at).map(|prompt| prompt.message.as_str())
        };
        let items = self.chat.transcript.items().enumerate();
        let lines = items.filter_map(|(at, item)| Line::from_item(item, message_at(at))).collect();
        Conversation::new(&self.session, self.agent.name(), self.agent.memory(), lines)
    }

    /// Shows a stored conversation.
    pub(super) fn show(&mut self, conversation: &Conversation) {
        self.prompts.clear();
        for line in &conversation.transcript {
            if let Line::Person { text, message: Some(message) } = line {
                let (message, text) = (message.clone(), text.clone());
                self.prompts.push(Prompt { message, text, at: self.chat.transcript.len() });
            }
            self.chat.transcript.push(line.to_item());
        }
    }
}
