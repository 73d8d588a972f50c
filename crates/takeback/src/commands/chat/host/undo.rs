//! Undo and redo of the rewinds of this session: files through the store, the conversation from memory.
//!
//! In order: [`Host::reverse`] starts the job for the files, [`Host::on_reversed`] reports it and loads
//! the other conversation, [`Host::on_recalled`] shows that conversation.

use serde_json::Value;
use takeback_core::rewind::Receipt;
use takeback_store::RewindId;
use takeback_tui::{Activity, Item, Tone};

use super::{Host, Prompt};
use crate::commands::chat::restore::describe_failure;
use crate::commands::chat::worker::{Job, receipt_text};

/// A rewind or undo of this session, and what reverses it.
pub(super) struct RewindStep {
    /// Its ids in the store; empty if only the conversation changed.
    pub(super) rewinds: Vec<RewindId>,
    /// The conversation to bring back, if it changed.
    pub(super) conversation: Option<ConversationView>,
    /// The prompt that was put into the input.
    pub(super) prompt: String,
}

/// A conversation as the agent and the screen had it.
pub(super) struct ConversationView {
    memory: Value,
    transcript: Vec<Item>,
    prompts: Vec<Prompt>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands::chat) enum Direction {
    Undo,
    Redo,
}

/// Why the agent loads another conversation.
pub(super) enum RecallReason {
    /// An undo or redo; the messages are shown afterwards.
    Reverse(Direction, RewindStep, Vec<(Tone, String)>),
    /// `/clear`.
    Clear,
    /// It had exited, and gets this prompt.
    Prompt(String),
}

impl Direction {
    fn opposite(self) -> Self {
        match self {
            Self::Undo => Self::Redo,
            Self::Redo => Self::Undo,
        }
    }

    fn past(self) -> &'static str {
        match self {
            Self::Undo => "undone",
            Self::Redo => "redone",
        }
    }

    /// The messages about files.
    fn file_messages(self, receipt: &Receipt) -> Vec<(Tone, String)> {
        let text = receipt_text(receipt);
        // A receipt without entries has only its summary, which the last message replaces.
        let has_entries = receipt.rewind.is_some() || text.trim().contains('\n');
        let mut messages = Vec::new();
        if has_entries {
            messages.push((Tone::Hint, text));
        }
        messages.push(match (self, receipt.success, receipt.rewind) {
            (_, false, _) => {
                let (past, why) = (self.past(), describe_failure(receipt));
                (Tone::Failure, format!("Restore failed: not everything was {past}: {why}"))
            }
            (_, true, None) => (Tone::Plain, "No file had to change.".to_owned()),
            (Self::Undo, true, Some(_)) => (Tone::Success, "Undone. Verified on disk.".to_owned()),
            (Self::Redo, true, Some(_)) => (Tone::Success, "Redone. Verified on disk.".to_owned()),
        });
        messages
    }

    fn conversation_message(self) -> &'static str {
        match self {
            Self::Undo => "The conversation is back.",
            Self::Redo => "The conversation is as it was before the undo.",
        }
    }
}

impl Host {
    /// Undoes or redoes the last step of this session; without one, the last rewind in the store.
    pub(super) fn reverse(&mut self, direction: Direction) {
        match self.steps(direction).last() {
            None => self.begin(Job::Reverse(direction, Vec::new())),
            Some(step) if !step.rewinds.is_empty() => {
                let rewinds = step.rewinds.clone();
                self.begin(Job::Reverse(direction, rewinds));
            }
            Some(_) => {
                let Some(step) = self.steps(direction).pop() else { return };
                let memory = step.memory();
                self.recall = Some(RecallReason::Reverse(direction, step, Vec::new()));
                self.begin(Job::Recall(memory));
            }
        }
    }

    /// `own`: whether it was the last step of this session.
    pub(super) fn on_reversed(
        &mut self,
        direction: Direction,
        receipt: Result<Receipt, String>,
        own: bool,
    ) {
        let receipt = match receipt {
            Ok(receipt) => receipt,
            Err(why) => {
                self.become_idle();
                return self.fail(&why);
            }
        };
        let mut messages = direction.file_messages(&receipt);
        if let Some((_, why)) = messages.iter().find(|(tone, _)| *tone == Tone::Failure) {
            self.log_error(why);
        }
        if !own && receipt.rewind.is_some() {
            // Only the session that rewound knows the conversation of that time.
            let past = direction.past();
            let note = format!("Only files were {past}; the conversation stays as it is.");
            messages.push((Tone::Hint, note));
        }
        let step = if own { self.steps(direction).pop() } else { None };
        if let Some(mut step) = step {
            match receipt.rewind {
                Some(rewind) => step.rewinds.push(rewind),
                // No file changed, so none will when this is reversed.
                None => step.rewinds.clear(),
            }
            if step.conversation.is_some() {
                let memory = step.memory();
                return self.recall(memory, RecallReason::Reverse(direction, step, messages));
            }
            if !step.rewinds.is_empty() {
                self.steps(direction.opposite()).push(step);
            }
        }
        self.say_all(messages);
        self.finish_change();
    }

    /// Makes the agent load another conversation.
    pub(super) fn recall(&mut self, memory: Value, reason: RecallReason) {
        self.recall = Some(reason);
        self.chat.activity = Activity::Working(self.now());
        self.job(Job::Recall(memory));
    }

    /// The agent has loaded the conversation. `result`: its memory before.
    pub(super) fn on_recalled(&mut self, result: Result<Value, String>) {
        self.chat.activity = Activity::Idle;
        match (self.recall.take(), result) {
            (Some(RecallReason::Reverse(direction, step, messages)), Ok(before)) => {
                let step = self.swap_conversation(direction, step, before);
                self.say_all(messages);
                self.say(Tone::Success, direction.conversation_message());
                self.steps(direction.opposite()).push(step);
            }
            (Some(RecallReason::Reverse(direction, mut step, messages)), Err(why)) => {
                self.say_all(messages);
                self.fail(&format!("the conversation was not changed: {why}"));
                // Files are done; the conversation can be tried again.
                step.rewinds.clear();
                self.steps(direction).push(step);
            }
            (Some(RecallReason::Clear), Ok(_)) => {
                self.chat.transcript.clear();
                self.prompts.clear();
                self.say(Tone::Hint, "A new conversation. Files and points stay.");
            }
            (Some(RecallReason::Prompt(text)), Ok(_)) => return self.prompt(&text),
            (Some(RecallReason::Prompt(text)), Err(why)) => {
                self.chat.editor.set_text(&text);
                self.fail(&why);
            }
            (_, Err(why)) => self.fail(&why),
            (None, Ok(_)) => {}
        }
        self.finish_change();
    }

    /// Shows the step's conversation; the step gets the one that was on the screen.
    fn swap_conversation(
        &mut self,
        direction: Direction,
        mut step: RewindStep,
        memory: Value,
    ) -> RewindStep {
        if let Some(other) = step.conversation.take() {
            step.conversation = Some(self.conversation_view(memory));
            self.chat.transcript.clear();
            for item in other.transcript {
                self.chat.transcript.push(item);
            }
            self.prompts = other.prompts;
        }
        let editor = &mut self.chat.editor;
        match direction {
            Direction::Undo if editor.text() == step.prompt => editor.set_text(""),
            Direction::Redo if editor.is_empty() => editor.set_text(&step.prompt),
            Direction::Undo | Direction::Redo => {}
        }
        step
    }

    pub(super) fn conversation_view(&self, memory: Value) -> ConversationView {
        let transcript = self.chat.transcript.items().cloned().collect();
        ConversationView { memory, transcript, prompts: self.prompts.clone() }
    }

    fn steps(&mut self, direction: Direction) -> &mut Vec<RewindStep> {
        match direction {
            Direction::Undo => &mut self.undos,
            Direction::Redo => &mut self.redos,
        }
    }

    fn say_all(&mut self, messages: Vec<(Tone, String)>) {
        for (tone, text) in messages {
            self.say(tone, text);
        }
    }
}

impl RewindStep {
    fn memory(&self) -> Value {
        self.conversation.as_ref().map_or(Value::Null, |view| view.memory.clone())
    }
}
