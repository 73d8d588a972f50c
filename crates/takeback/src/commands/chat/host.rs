//! The session's loop: keys, what the agent says and what was done go in; the screen comes out.

pub(super) mod back;
mod slash;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use serde_json::Value;
use takeback_agents::metadata::{Checkpoint, Metadata, description};
use takeback_agents::talk::{Agent, Decision, Ending, PromptPoint, Said};
use takeback_store::SessionId;
use takeback_tui::chat::{Activity, Answer, Chat, Effect, Question};
use takeback_tui::keys::{Decoder, Moment, Press};
use takeback_tui::menu::{Menu, MenuOptions, Outcome, Scope};
use takeback_tui::terminal::{Terminal, TerminalEvent};
use takeback_tui::transcript::{Item, Tone};
use takeback_tui::view;

use self::back::{Recalling, Way, Went};
use super::Happening;
use super::restore::Choice;
use super::session::{Kept, Line};
use super::work::{Asked, Done, Job};
use crate::commands::menu::Picks;
use crate::error::CommandError;
use crate::log_file::{Level, LogFile};
use crate::place::random;
use crate::time::{clock, now};

/// The spinner moves this often, and what streams in is drawn this often at most.
const TICK: Duration = Duration::from_millis(120);
const FRAME: Duration = Duration::from_millis(16);
/// The request by which the own copies are offered when the agent is gone.
const OWN_COPY: &str = "takeback-own-copy";

pub(super) struct Host {
    pub(super) chat: Chat,
    pub(super) agent: Arc<dyn Agent>,
    pub(super) session: SessionId,
    pub(super) jobs: Sender<Job>,
    pub(super) metadata: Option<Metadata>,
    pub(super) keep: usize,
    pub(super) log: LogFile,
    /// Those that the conversation has, also from before it was continued.
    pub(super) prompts: Vec<Prompt>,
    /// Those that were given to the agent here, also if a rewind has cut them.
    pub(super) entered: Vec<String>,
    /// What is to be done when the turn has ended.
    waiting: Option<(Job, Moment)>,
    /// The times that somebody went back here, the last one last; and those that were taken back.
    undos: Vec<Went>,
    redos: Vec<Went>,
    /// What is done once the agent has another conversation.
    recalling: Option<Recalling>,
    /// Going back without the agent, which was offered.
    offered: Option<Choice>,
    /// Whether the agent has been there.
    started: bool,
    began: Instant,
    left: bool,
    /// By which it was ended.
    pub(super) signal: Option<i32>,
}

/// A prompt of this conversation.
#[derive(Debug, Clone)]
pub(super) struct Prompt {
    pub(super) message: String,
    pub(super) text: String,
    /// How many items the transcript had before it.
    pub(super) at: usize,
}

impl Host {
    pub(super) fn new(
        chat: Chat,
        agent: Arc<dyn Agent>,
        session: SessionId,
        jobs: Sender<Job>,
        (metadata, keep): (Option<Metadata>, usize),
        log: LogFile,
    ) -> Self {
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
            recalling: None,
            offered: None,
            started: false,
            began: Instant::now(),
            left: false,
            signal: None,
        }
    }

    pub(super) fn run(
        &mut self,
        terminal: &mut Terminal,
        happenings: &Receiver<Happening>,
    ) -> Result<(), CommandError> {
        let mut keys = Decoder::new();
        let mut drawn = None::<Instant>;
        let mut stale = true;
        self.job(Job::Count);
        while !self.left {
            if stale && drawn.is_none_or(|at| at.elapsed() >= FRAME) {
                let now = self.now();
                terminal.draw(|frame| view::draw(&mut self.chat, frame, now))?;
                (stale, drawn) = (false, Some(Instant::now()));
            }
            let busy = self.chat.activity != Activity::Idle;
            let mut wait = if stale {
                FRAME
            } else if busy {
                TICK
            } else {
                Duration::from_secs(60)
            };
            if let Some(until) = keys.deadline() {
                wait = wait.min(Duration::from_millis(until.since(self.now())));
            }
            if let Some(until) = self.chat.hint_ends() {
                wait = wait.min(Duration::from_millis(until.since(self.now())));
            }
            match happenings.recv_timeout(wait) {
                Ok(happening) => {
                    self.take(happening, &mut keys);
                    // A burst is one picture.
                    while let Ok(next) = happenings.try_recv() {
                        self.take(next, &mut keys);
                        if drawn.is_some_and(|at| at.elapsed() > TICK) {
                            break;
                        }
                    }
                    stale = true;
                }
                Err(RecvTimeoutError::Timeout) => stale |= busy,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("the session was lost").into());
                }
            }
            let expired = keys.expire(self.now());
            stale |= !expired.is_empty() | self.chat.end_hint(self.now());
            self.press(expired);
            self.give_up_waiting();
        }
        Ok(())
    }

    pub(super) fn now(&self) -> Moment {
        Moment(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn job(&self, job: Job) {
        // A worker that is gone has said why.
        drop(self.jobs.send(job));
    }

    fn take(&mut self, happening: Happening, keys: &mut Decoder) {
        match happening {
            Happening::Terminal(TerminalEvent::Bytes(bytes)) => {
                let presses = keys.feed(&bytes, self.now());
                self.press(presses);
            }
            Happening::Terminal(TerminalEvent::Resized) => {}
            Happening::Terminal(TerminalEvent::Signal(signal)) => {
                (self.left, self.signal) = (true, Some(signal));
            }
            Happening::Terminal(TerminalEvent::Closed) => self.left = true,
            Happening::Said(said) => self.hear(said),
            Happening::Done(done) => self.done(*done),
        }
    }

    fn press(&mut self, presses: Vec<Press>) {
        for press in presses {
            for effect in self.chat.press(&press) {
                self.effect(effect);
            }
        }
    }

    fn effect(&mut self, effect: Effect) {
        match effect {
            Effect::Prompt(text) => self.prompt(&text),
            Effect::Slash(line) => self.slash(&line),
            Effect::Interrupt => {
                if let Err(error) = self.agent.interrupt() {
                    self.say(Tone::Bad, error.to_string());
                }
            }
            Effect::Answer(request, answer) => self.answer(&request, answer),
            Effect::OpenMenu => self.open_menu(None, Asked::Key),
            Effect::MenuLeft => self.say(Tone::Hint, "Exited checkpoint selection."),
            Effect::Look(id) => self.job(Job::Look(id)),
            // Its preview is made by nobody; the menu goes on looking.
            Effect::LookExecution(execution) => self.job(Job::LookExecution(execution)),
            Effect::Restore { id, what, paths, marks } => {
                let messages = self.prompts.iter().map(|prompt| prompt.message.clone()).collect();
                let picks = Picks { paths, marks };
                self.begin(Job::Restore(Choice { id, what, picks, with_agent: true, messages }));
            }
            Effect::RestoreExecution(execution) => self.begin(Job::RestoreExecution(execution)),
            Effect::Undo => self.again(Way::Undo),
            Effect::Leave => self.left = true,
        }
    }

    pub(super) fn note_error(&self, what: &str) {
        self.log.add(now(), Level::Error, what);
    }

    pub(super) fn say(&mut self, tone: Tone, text: impl Into<String>) {
        self.chat.transcript.say(tone, text);
    }

    pub(super) fn prompt(&mut self, text: &str) {
        if !self.agent.is_live() {
            self.say(Tone::Hint, "The agent is started again.");
            return self.recall(self.agent.memory(), Recalling::ToSay(text.to_owned()));
        }
        let message = uuid::Uuid::from_u64_pair(random(), random());
        let message = uuid::Builder::from_bytes(*message.as_bytes())
            .with_version(uuid::Version::Random)
            .with_variant(uuid::Variant::RFC4122)
            .into_uuid()
            .to_string();
        match self.agent.prompt(&message, text) {
            Ok(()) => {
                self.prompts.push(Prompt {
                    message,
                    text: text.to_owned(),
                    at: self.chat.transcript.len(),
                });
                self.entered.push(text.to_owned());
                self.redos.clear();
                self.chat.begin_turn(text, self.now());
            }
            Err(error) => {
                self.chat.editor.set_text(text);
                self.fail(&error.to_string());
            }
        }
    }

    /// One line, and the session goes on.
    pub(super) fn fail(&mut self, why: &str) {
        self.note_error(&format!("command failed: {why}"));
        self.say(Tone::Bad, format!("Command execution failed: {why}"));
    }

    pub(super) fn is_recording(&self) -> bool {
        self.chat.status.points.is_some()
    }

    fn answer(&mut self, request: &str, answer: Answer) {
        if request == OWN_COPY {
            let choice = self.offered.take();
            if let (Some(choice), Answer::Yes | Answer::Always) = (choice, answer) {
                self.begin(Job::Restore(choice));
            }
            return;
        }
        let decision = match answer {
            Answer::Yes => Decision::Allow,
            Answer::Always => Decision::AllowAlways,
            Answer::No => Decision::Deny("The user does not want this.".to_owned()),
        };
        if let Err(error) = self.agent.decide(request, decision) {
            self.say(Tone::Bad, error.to_string());
        }
    }

    fn hear(&mut self, said: Said) {
        let now = self.now();
        let transcript = &mut self.chat.transcript;
        // An agent may go on by itself, when something in the background has ended.
        if matches!(said, Said::Text(_) | Said::Tool { .. }) && self.chat.activity == Activity::Idle
        {
            self.chat.activity = Activity::Turn(now);
        }
        match said {
            Said::Ready { .. } => {
                if !std::mem::replace(&mut self.started, true) {
                    self.idle();
                }
            }
            Said::Prompted { message, session, point } => self.prompted(&message, session, point),
            Said::TurnBegin => self.chat.activity = Activity::Turn(now),
            Said::Text(text) => transcript.add_text(&text),
            Said::TextEnd => transcript.end_text(),
            Said::Tool { call, title } => {
                transcript.end_text();
                transcript.push(Item::Tool { call, title, end: None });
            }
            Said::ToolEnd { call, ok, line, changes } => {
                self.job(Job::ToolEnd { call, ok, line, changes });
            }
            Said::Asks(asked) => {
                let (request, title, detail) = (asked.request, asked.title, asked.detail);
                self.chat.ask(Question { request, title, detail }, now);
            }
            Said::TurnEnd(ending) => self.turn_ended(ending),
            Said::Unrecorded(why) => {
                self.note_error(&format!("not recorded: {why}"));
                self.say(Tone::Care, format!("not recorded: {why}"));
            }
            Said::Note(note) => self.say(Tone::Hint, note),
            Said::Gone(why) => {
                self.started = true;
                self.note_error(&format!("the agent has ended: {why}"));
                self.say(Tone::Bad, format!("The agent has ended: {why}"));
                self.turn_ended(Ending::Done);
            }
        }
    }

    fn prompted(&mut self, message: &str, session: Option<String>, point: Option<PromptPoint>) {
        let text = self.prompts.iter().rev().find(|prompt| prompt.message == message);
        let text = text.map(|prompt| prompt.text.clone()).unwrap_or_default();
        // The log's own time, so that a damaged list can be filled from there.
        let time = point.map_or_else(now, |point| point.created_at);
        let said = description(&Value::String(text), &clock(time));
        if let Some(metadata) = &mut self.metadata {
            let session = session.unwrap_or_else(|| self.session.0.clone());
            let id = message.to_owned();
            let checkpoint =
                Checkpoint { id, timestamp: time, description: said, session_id: session };
            if let Err(error) = metadata.capture(checkpoint) {
                self.note_error(&format!("metadata.json: {error}"));
                self.say(Tone::Care, format!("metadata.json could not be written: {error}"));
            }
        }
        // Whatever happens to this process now, the prompt can be gone back to.
        let kept = Box::new(self.kept());
        self.job(Job::Keep(kept));
        self.job(Job::Count);
    }

    fn turn_ended(&mut self, ending: Ending) {
        if ending == Ending::Interrupted {
            self.give_back_queued();
        }
        match ending {
            Ending::Done => {}
            Ending::Interrupted => self.say(Tone::Care, "interrupted"),
            Ending::Failed(why) => {
                self.note_error(&format!("turn failed: {why}"));
                self.say(Tone::Bad, why);
            }
        }
        self.chat.end_turn();
        self.job(Job::Count);
        let kept = Box::new(self.kept());
        self.job(Job::Keep(kept));
        match self.waiting.take() {
            Some((job, _)) => self.begin(job),
            None => self.say_what_waits(),
        }
    }

    pub(super) fn say_what_waits(&mut self) {
        if let (Activity::Idle, Some(text)) = (self.chat.activity, self.chat.queued.pop_front()) {
            self.prompt(&text);
        }
    }

    /// Who stops a turn decides anew about what was to follow it.
    fn give_back_queued(&mut self) {
        let editor = &mut self.chat.editor;
        let mut lines: Vec<String> = self.chat.queued.drain(..).collect();
        if !lines.is_empty() {
            lines.extend(Some(editor.text().to_owned()).filter(|text| !text.is_empty()));
            editor.set_text(&lines.join("\n"));
        }
    }

    /// The conversation as it is kept.
    pub(super) fn kept(&self) -> Kept {
        let message_at = |at: usize| {
            self.prompts.iter().find(|prompt| prompt.at == at).map(|prompt| prompt.message.as_str())
        };
        let items = self.chat.transcript.items().enumerate();
        let lines = items.filter_map(|(at, item)| Line::of(item, message_at(at))).collect();
        Kept::new(&self.session, self.agent.name(), self.agent.memory(), lines)
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Rows { asked, rows, mut executions, can_undo, open } => {
                // This session's own steps lead nowhere but here as long as there is no prompt.
                if rows.is_empty() {
                    executions.retain(|row| row.execution != self.session.0);
                }
                if rows.is_empty() && executions.is_empty() {
                    return self.say(Tone::Care, asked.nothing());
                }
                let options = MenuOptions {
                    keep: self.keep,
                    scope: Scope::Session,
                    conversation: true,
                    can_undo,
                    can_mark: true,
                };
                let mut menu = Menu::new(rows, executions, options);
                if let Some(Outcome::Look(id)) = open.map(|id| menu.open(&id)) {
                    self.job(Job::Look(id));
                }
                self.chat.menu = Some(menu);
            }
            Done::Look { id, preview } => {
                if let Some(menu) = &mut self.chat.menu {
                    menu.set_preview(&id, preview);
                }
            }
            Done::LookExecution { execution, preview } => {
                if let Some(menu) = &mut self.chat.menu {
                    menu.set_execution_preview(&execution, preview);
                }
            }
            Done::Restored { choice, restored } => self.restored(*choice, restored),
            Done::RestoredExecution { execution, restored } => {
                self.restored_execution(&execution, restored);
            }
            Done::Again { way, receipt, ours } => self.done_again(way, receipt, ours),
            Done::Counted { points, can_rewind, files, lines } => {
                let status = &mut self.chat.status;
                if status.points.is_some() {
                    status.points = Some(points);
                    status.can_rewind = can_rewind;
                }
                status.files = files;
                status.lines = lines.map(|lines| (lines.insertions, lines.deletions));
            }
            Done::ToolEnd { call, end } => {
                self.chat.transcript.end_tool(&call, end);
                self.job(Job::Count);
            }
            Done::Diff(lines) if lines.is_empty() => {
                self.say(Tone::Hint, "Nothing changed since the last prompt.");
            }
            Done::Diff(lines) => self.chat.transcript.push(Item::Diff(lines)),
            Done::Loaded(kept) => self.loaded(&kept),
            Done::Recalled(recalled) => self.recalled(recalled),
            Done::Said(Ok(text)) => {
                self.say(Tone::Plain, text);
                self.job(Job::Count);
            }
            Done::Said(Err(why)) => {
                self.idle();
                self.fail(&why);
            }
            Done::Trouble(why) => {
                self.note_error(&why);
                self.say(Tone::Care, why);
            }
        }
    }
}
