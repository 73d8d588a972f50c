//! A turn, in order: [`Host::prompt`], [`Host::on_prompt_recorded`], the agent's messages, and
//! [`Host::on_turn_end`], which starts what was waiting.

use serde_json::Value;
use takeback_agents::{ChatEvent, Checkpoint, PromptPoint, TurnResult, checkpoint_description};
use takeback_core::system_random;
use takeback_tui::{Activity, Item, Question, Tone};

use super::undo::RecallReason;
use super::{Host, Prompt};
use crate::commands::chat::worker::Job;
use crate::time::{clock, now};

impl Host {
    /// Sends a prompt; restarts the agent first if it has exited.
    pub(super) fn prompt(&mut self, text: &str) {
        if !self.agent.is_live() {
            self.say(Tone::Hint, "Restarting the agent.");
            return self.recall(self.agent.memory(), RecallReason::Prompt(text.to_owned()));
        }
        let message = new_message_id();
        match self.agent.prompt(&message, text) {
            Ok(()) => {
                let at = self.chat.transcript.len();
                self.prompts.push(Prompt { message, text: text.to_owned(), at });
                self.entered.push(text.to_owned());
                self.redos.clear();
                self.failure = None;
                self.chat.begin_turn(text, self.now());
            }
            Err(error) => {
                self.chat.editor.set_text(text);
                self.fail(&error.to_string());
            }
        }
    }

    pub(super) fn interrupt(&mut self) {
        if let Err(error) = self.agent.interrupt() {
            self.say(Tone::Failure, error.to_string());
        }
    }

    pub(super) fn on_agent(&mut self, message: ChatEvent) {
        let now = self.now();
        let transcript = &mut self.chat.transcript;
        // An agent may start by itself, when a background task has ended.
        if matches!(message, ChatEvent::Text(_) | ChatEvent::Tool { .. })
            && self.chat.activity == Activity::Idle
        {
            self.chat.activity = Activity::Turn(now);
        }
        match message {
            ChatEvent::Ready { .. } => {
                if !std::mem::replace(&mut self.started, true) {
                    self.become_idle();
                }
            }
            ChatEvent::PromptAccepted { message, session, point } => {
                self.on_prompt_recorded(&message, session, point);
            }
            ChatEvent::TurnBegin => self.chat.activity = Activity::Turn(now),
            ChatEvent::Text(text) => transcript.add_text(&text),
            ChatEvent::TextEnd => transcript.end_text(),
            ChatEvent::Tool { call, title } => {
                transcript.end_text();
                transcript.push(Item::Tool { call, title, end: None });
            }
            ChatEvent::ToolEnd { call, ok, line, changes } => {
                self.job(Job::ToolEnd { call, ok, line, changes });
            }
            ChatEvent::PermissionRequest(asked) => {
                let (request, title, detail) = (asked.request, asked.title, asked.detail);
                self.chat.ask(Question { request, title, detail }, now);
            }
            ChatEvent::TurnEnd(ending) => self.on_turn_end(ending),
            ChatEvent::NotRecorded(why) => {
                self.log_error(&format!("not recorded: {why}"));
                self.say(Tone::Warning, format!("not recorded: {why}"));
            }
            ChatEvent::Note(note) => self.say(Tone::Hint, note),
            ChatEvent::Ended(why) => self.on_exit(&why),
        }
    }

    /// The prompt's point is durable: lists it, and stores the conversation, so that the prompt can be
    /// restored even if this process is killed now.
    fn on_prompt_recorded(
        &mut self,
        message: &str,
        session: Option<String>,
        point: Option<PromptPoint>,
    ) {
        let text = self.prompts.iter().rev().find(|prompt| prompt.message == message);
        let text = text.map(|prompt| prompt.text.clone()).unwrap_or_default();
        // The log's own time, so that a damaged list can be refilled from the log.
        let time = point.map_or_else(now, |point| point.created_at);
        if let Some(metadata) = &mut self.metadata {
            let checkpoint = Checkpoint {
                id: message.to_owned(),
                timestamp: time,
                description: checkpoint_description(&Value::String(text), &clock(time)),
                session_id: session.unwrap_or_else(|| self.session.0.clone()),
            };
            if let Err(error) = metadata.capture(checkpoint) {
                self.log_error(&format!("metadata.json: {error}"));
                self.say(Tone::Warning, format!("could not write metadata.json: {error}"));
            }
        }
        self.save_session();
        self.job(Job::Count);
    }

    fn on_turn_end(&mut self, ending: TurnResult) {
        match ending {
            TurnResult::Done => {}
            TurnResult::Interrupted => {
                self.unqueue();
                self.say(Tone::Warning, "interrupted");
            }
            TurnResult::Failed(why) => {
                self.log_error(&format!("turn failed: {why}"));
                self.say(Tone::Failure, format!("The turn failed: {why}"));
                self.failure = Some(why);
            }
        }
        self.chat.end_turn();
        self.job(Job::Count);
        self.save_session();
        match self.waiting.take() {
            Some((job, _)) => self.begin(job),
            None => self.send_queued(),
        }
    }

    fn on_exit(&mut self, why: &str) {
        self.started = true;
        self.log_error(&format!("the agent has exited: {why}"));
        // If it exited during a turn, the end of the turn has given the reason.
        let text = match self.failure.take() {
            Some(failure) if failure == why => "The agent has exited.".to_owned(),
            _ => format!("The agent has exited: {why}"),
        };
        self.say(Tone::Failure, text);
        self.say(Tone::Hint, "Your next prompt starts it again.");
        self.on_turn_end(TurnResult::Done);
    }

    pub(super) fn send_queued(&mut self) {
        if let (Activity::Idle, Some(text)) = (self.chat.activity, self.chat.queued.pop_front()) {
            self.prompt(&text);
        }
    }

    /// Moves queued prompts back to the input: after an interrupt they may no longer fit.
    fn unqueue(&mut self) {
        let editor = &mut self.chat.editor;
        let mut lines: Vec<String> = self.chat.queued.drain(..).collect();
        if !lines.is_empty() {
            lines.extend(Some(editor.text().to_owned()).filter(|text| !text.is_empty()));
            editor.set_text(&lines.join("\n"));
        }
    }
}

fn new_message_id() -> String {
    let random = uuid::Uuid::from_u64_pair(system_random(), system_random());
    uuid::Builder::from_bytes(*random.as_bytes())
        .with_version(uuid::Version::Random)
        .with_variant(uuid::Variant::RFC4122)
        .into_uuid()
        .to_string()
}
