//! The session's loop: keys, what the agent says and what was done go in; the screen comes out.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use serde_json::Value;
use takeback_agents::metadata::{Checkpoint, Metadata, description};
use takeback_agents::talk::{Agent, Decision, Ending, Said};
use takeback_core::rewind::Receipt;
use takeback_store::{RewindId, SessionId};
use takeback_tui::chat::{Activity, Answer, Chat, Effect, Question};
use takeback_tui::keys::{Decoder, Moment, Press};
use takeback_tui::menu::{ExecutionRow, Menu, MenuOptions, Outcome, What};
use takeback_tui::terminal::{Terminal, TerminalEvent};
use takeback_tui::transcript::{Item, Tone};
use takeback_tui::view;

use super::Happening;
use super::restore::{Choice, Cut, RestoreError, Restored};
use super::session::{Kept, Line};
use super::slash::{self, Verb};
use super::work::{Done, Job, receipt_text};
use crate::error::CommandError;
use crate::log_file::{Level, LogFile};
use crate::place::random;
use crate::time::{clock, now};

/// The spinner moves this often, and what streams in is drawn this often at most.
const TICK: Duration = Duration::from_millis(120);
const FRAME: Duration = Duration::from_millis(16);
/// How long a turn that is to end is waited for before something else is done.
const PATIENCE_MS: u64 = 15_000;
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
    pub(super) waiting: Option<(Job, Moment)>,
    /// Conversations that a rewind has cut, the last one last.
    pub(super) cuts: Vec<CutOff>,
    /// Going back without the agent, which was offered.
    pub(super) offered: Option<Choice>,
    pub(super) began: Instant,
    pub(super) left: bool,
}

/// A prompt of this conversation.
#[derive(Debug, Clone)]
pub(super) struct Prompt {
    pub(super) message: String,
    pub(super) text: String,
    /// How many items the transcript had before it.
    pub(super) at: usize,
}

/// A conversation before it was cut, to have it back.
pub(super) struct CutOff {
    rewind: Option<RewindId>,
    memory: Value,
    transcript: Vec<Item>,
    prompts: Vec<Prompt>,
    /// What was put back into the input line.
    prompt: String,
}

impl Host {
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
            stale |= !expired.is_empty();
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
            Happening::Terminal(TerminalEvent::Signal(_) | TerminalEvent::Closed) => {
                self.left = true;
            }
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
            Effect::OpenMenu => self.open_menu(None),
            Effect::MenuLeft => self.say(Tone::Hint, "Exited checkpoint selection."),
            Effect::Look(id) => self.job(Job::Look(id)),
            Effect::Restore { id, what, paths } => {
                let messages = self.prompts.iter().map(|prompt| prompt.message.clone()).collect();
                self.begin(Job::Restore(Choice { id, what, paths, with_agent: true, messages }));
            }
            Effect::RestoreExecution(execution) => self.begin(Job::RestoreExecution(execution)),
            Effect::Undo => self.undo(),
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
                self.chat.begin_turn(text, self.now());
            }
            Err(error) => {
                self.chat.editor.set_text(text);
                self.fail(&error.to_string());
            }
        }
    }

    /// One line, and the session goes on.
    fn fail(&mut self, why: &str) {
        self.note_error(&format!("command failed: {why}"));
        self.say(Tone::Bad, format!("Command execution failed: {why}"));
    }

    fn slash(&mut self, line: &str) {
        let (verb, argument) = match slash::parse(line) {
            Ok(parsed) => parsed,
            Err(why) => return self.fail(&why),
        };
        let argument = argument.map(str::to_owned);
        match (verb, argument) {
            (Verb::Checkpoint, Some(label)) if self.is_recording() => {
                self.job(Job::Checkpoint(label));
            }
            (Verb::Checkpoint | Verb::Rewind, Some(_)) if !self.is_recording() => {
                self.say(Tone::Care, "Checkpoint feature not enabled");
            }
            (Verb::Rewind, Some(id)) if id.starts_with("ckpt-") => {
                self.begin(Job::RestoreExecution(id));
            }
            (Verb::Checkpoint | Verb::Rewind, point) => self.open_menu(point),
            (Verb::Undo, _) => self.undo(),
            (Verb::Redo, _) => self.begin(Job::Redo),
            (Verb::Diff, _) => self.job(Job::Diff),
            (Verb::Points, _) => self.job(Job::Points),
            (Verb::Status, _) => self.job(Job::Status),
            (Verb::Save, name) => {
                let kept = Box::new(self.kept());
                self.job(Job::Save { name, kept });
            }
            (Verb::Load, Some(name)) => self.begin(Job::Load(name)),
            (Verb::Conversations, _) => self.job(Job::Conversations),
            (Verb::Delete, Some(name)) => self.job(Job::Delete(name)),
            (Verb::Export, Some(file)) => self.job(Job::Export(file)),
            (Verb::Import, Some(file)) => self.job(Job::Import(file)),
            (Verb::Clear, _) => self.clear(),
            (Verb::Exit, _) => self.left = true,
            (Verb::Help | Verb::Load | Verb::Delete | Verb::Export | Verb::Import, _) => {
                self.help();
            }
        }
    }

    fn is_recording(&self) -> bool {
        self.chat.status.points.is_some()
    }

    fn open_menu(&mut self, point: Option<String>) {
        if self.is_recording() {
            self.job(Job::Rows { open: point });
        } else {
            self.say(Tone::Care, "Checkpoint feature not enabled");
        }
    }

    /// What changes the conversation or files waits until the turn has ended.
    fn begin(&mut self, job: Job) {
        let now = self.now();
        if self.chat.is_in_turn() {
            if let Err(error) = self.agent.interrupt() {
                self.say(Tone::Bad, error.to_string());
            }
            self.chat.activity = Activity::Ending(now);
            self.waiting = Some((job, now));
        } else {
            self.chat.activity = Activity::Working(now);
            self.job(job);
        }
    }

    fn give_up_waiting(&mut self) {
        let late = |(_, since): &(Job, Moment)| self.now().since(*since) > PATIENCE_MS;
        if self.waiting.as_ref().is_some_and(late) {
            self.waiting = None;
            self.restore_failed("the turn did not end; nothing was changed");
        }
    }

    fn undo(&mut self) {
        // A conversation that went back alone is in no rewind.
        match self.cuts.last() {
            Some(CutOff { rewind: None, .. }) if !self.chat.is_in_turn() => {
                if let Some(cut) = self.cuts.pop() {
                    self.bring_back(cut);
                }
            }
            _ => self.begin(Job::Undo),
        }
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
        let transcript = &mut self.chat.transcript;
        match said {
            Said::Ready { .. } => {}
            Said::Prompted { message, session, .. } => self.prompted(&message, session),
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
                self.chat.questions.push_back(Question { request, title, detail });
            }
            Said::TurnEnd(ending) => self.turn_ended(ending),
            Said::Unrecorded(why) => {
                self.note_error(&format!("not recorded: {why}"));
                self.say(Tone::Care, format!("not recorded: {why}"));
            }
            Said::Note(note) => self.say(Tone::Hint, note),
            Said::Gone(why) => {
                self.note_error(&format!("the agent has ended: {why}"));
                self.say(Tone::Bad, format!("The agent has ended: {why}"));
                self.turn_ended(Ending::Done);
            }
        }
    }

    fn prompted(&mut self, message: &str, session: Option<String>) {
        let text = self.prompts.iter().rev().find(|prompt| prompt.message == message);
        let text = text.map(|prompt| prompt.text.clone()).unwrap_or_default();
        let time = now();
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
        let queued = self.chat.end_turn();
        self.job(Job::Count);
        let kept = Box::new(self.kept());
        self.job(Job::Keep(kept));
        if let Some((job, _)) = self.waiting.take() {
            if let Some(text) = queued {
                self.chat.queued.push_front(text);
            }
            self.begin(job);
        } else if let Some(text) = queued {
            if self.agent.is_live() {
                self.prompt(&text);
            } else {
                self.chat.editor.set_text(&text);
            }
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

    fn help(&mut self) {
        for command in slash::registry() {
            let aliases: Vec<String> =
                command.aliases.iter().map(|name| format!("/{name}")).collect();
            let also = if aliases.is_empty() {
                String::new()
            } else {
                format!(" ({})", aliases.join(", "))
            };
            self.say(Tone::Plain, format!("{:<24} {}{also}", command.usage(), command.help));
        }
        self.say(
            Tone::Hint,
            "esc interrupts · esc esc goes back · alt-enter a new line · tab completes · page up and down \
             scroll · ctrl-o unfolds diffs · ctrl-d leaves",
        );
    }

    fn clear(&mut self) {
        if self.chat.is_in_turn() {
            return self.fail("a turn is running; esc ends it");
        }
        match self.agent.load(&Value::Null) {
            Ok(()) => {
                self.chat.transcript.clear();
                self.prompts.clear();
                self.say(Tone::Hint, "A new conversation. Files and points stay.");
            }
            Err(error) => self.fail(&error.to_string()),
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Rows { rows, executions, can_undo, open } => {
                // This session's own steps lead nowhere but here as long as there is no prompt.
                let own = |row: &ExecutionRow| row.execution == self.session.0;
                if rows.is_empty() && executions.iter().all(own) {
                    return self.say(Tone::Care, "No checkpoints available");
                }
                let options = MenuOptions { keep: self.keep, conversation: true, can_undo };
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
            Done::Restored { choice, restored } => self.restored(choice, restored),
            Done::RestoredExecution { execution, restored } => {
                self.restored_execution(&execution, restored);
            }
            Done::Again { word, receipt, undone } => self.done_again(word, receipt, undone),
            Done::Counted { points, files, insertions, deletions } => {
                let status = &mut self.chat.status;
                if status.points.is_some() {
                    status.points = Some(points);
                }
                (status.files, status.insertions, status.deletions) =
                    (files, insertions, deletions);
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
            Done::Said(Ok(text)) => {
                self.say(Tone::Plain, text);
                self.job(Job::Count);
            }
            Done::Said(Err(why)) => {
                self.idle();
                self.fail(&why);
            }
            Done::Trouble(why) => self.fail(&why),
        }
    }

    /// What was begun is over.
    fn idle(&mut self) {
        if let Activity::Working(_) = self.chat.activity {
            self.chat.activity = Activity::Idle;
        }
        if let (Activity::Idle, Some(text)) = (self.chat.activity, self.chat.queued.pop_front()) {
            self.prompt(&text);
        }
    }

    fn restore_failed(&mut self, why: &str) {
        self.note_error(&format!("restore failed: {why}"));
        self.say(Tone::Bad, format!("Restore failed: {why}"));
    }

    fn restored(&mut self, mut choice: Choice, restored: Result<Restored, RestoreError>) {
        let restored = match restored {
            Ok(restored) => restored,
            Err(error) => {
                self.restore_failed(&error.to_string());
                if matches!(error, RestoreError::NoQuery) {
                    choice.with_agent = false;
                    choice.what = What::Files;
                    self.offered = Some(choice);
                    self.chat.questions.push_back(Question {
                        request: OWN_COPY.to_owned(),
                        title: "files only, from Takeback's own copy".to_owned(),
                        detail: "The agent is gone; its conversation stays as it is.".to_owned(),
                    });
                }
                return self.idle();
            }
        };
        if let Some(cut) = restored.cut {
            self.cut(cut, restored.receipt.as_ref());
        }
        self.tell_receipt(restored.receipt.as_ref());
        for note in restored.notes {
            self.say(Tone::Hint, note);
        }
        match restored.failed {
            None => {
                self.log.add(now(), Level::Info, &format!("restored to checkpoint {}", choice.id));
                self.say(Tone::Good, format!("Restored to checkpoint: {}", restored.description));
            }
            Some(why) => self.restore_failed(&why),
        }
        self.after_going_back();
    }

    fn tell_receipt(&mut self, receipt: Option<&Receipt>) {
        if let Some(receipt) = receipt {
            let text = receipt_text(receipt);
            if !text.is_empty() {
                self.say(Tone::Hint, text);
            }
        }
    }

    fn after_going_back(&mut self) {
        self.idle();
        self.job(Job::Count);
        let kept = Box::new(self.kept());
        self.job(Job::Keep(kept));
    }

    /// What was said after the prompt goes from the screen, and the prompt comes back to the input.
    fn cut(&mut self, cut: Cut, receipt: Option<&Receipt>) {
        let rewind = receipt.and_then(|receipt| receipt.rewind);
        let found = self.prompts.iter().position(|prompt| prompt.message == cut.message);
        let Some(at) = found else { return };
        let first = self.prompts[at].clone();
        let before = CutOff {
            rewind,
            memory: cut.before,
            transcript: self.chat.transcript.items().cloned().collect(),
            prompts: self.prompts.clone(),
            prompt: first.text.clone(),
        };
        self.cuts.push(before);
        self.prompts.truncate(at);
        self.chat.transcript.truncate(first.at);
        self.chat.editor.set_text(&first.text);
    }

    /// A conversation as it was before it was cut.
    fn bring_back(&mut self, cut: CutOff) {
        match self.agent.load(&cut.memory) {
            Ok(()) => {
                self.chat.transcript.clear();
                for item in cut.transcript {
                    self.chat.transcript.push(item);
                }
                self.prompts = cut.prompts;
                if self.chat.editor.text() == cut.prompt {
                    self.chat.editor.set_text("");
                }
                self.say(Tone::Good, "The conversation is back.");
            }
            Err(error) => {
                self.say(Tone::Bad, format!("the conversation did not come back: {error}"));
            }
        }
    }

    fn restored_execution(&mut self, execution: &str, restored: Result<Receipt, String>) {
        match restored {
            Ok(receipt) => {
                self.tell_receipt(Some(&receipt));
                if receipt.success {
                    self.say(Tone::Good, format!("Restored to checkpoint: {execution}"));
                } else {
                    self.restore_failed("state and files go back together, or not at all");
                }
            }
            Err(why) => self.restore_failed(&why),
        }
        self.after_going_back();
    }

    fn done_again(
        &mut self,
        word: &'static str,
        receipt: Result<Receipt, String>,
        undone: Option<RewindId>,
    ) {
        match receipt {
            Ok(receipt) => {
                if let Some(cut) = self.cuts.pop_if(|cut| undone.is_some() && cut.rewind == undone)
                {
                    self.bring_back(cut);
                }
                self.tell_receipt(Some(&receipt));
                if receipt.success {
                    self.say(Tone::Good, format!("{word}. Checked on disk."));
                } else {
                    self.restore_failed("not everything could be brought back");
                }
            }
            Err(why) => self.fail(&why),
        }
        self.after_going_back();
    }

    fn loaded(&mut self, kept: &Kept) {
        self.chat.transcript.clear();
        self.show(kept);
        self.say(Tone::Good, "Loaded. Files stay as they are.");
        self.after_going_back();
    }

    /// Shows a conversation that was kept.
    pub(super) fn show(&mut self, kept: &Kept) {
        self.prompts.clear();
        for line in &kept.transcript {
            if let Line::Person { text, message: Some(message) } = line {
                let (message, text) = (message.clone(), text.clone());
                self.prompts.push(Prompt { message, text, at: self.chat.transcript.len() });
            }
            self.chat.transcript.push(line.to_item());
        }
    }
}
