//! Going back and forth: what is begun, what came of it, and what the screen shows then.

use serde_json::Value;
use takeback_core::rewind::Receipt;
use takeback_store::RewindId;
use takeback_tui::chat::{Activity, Question};
use takeback_tui::keys::Moment;
use takeback_tui::menu::What;
use takeback_tui::transcript::{Item, Tone};

use super::{Host, OWN_COPY, Prompt};
use crate::commands::chat::restore::{Choice, Cut, RestoreError, Restored, why_not_whole};
use crate::commands::chat::session::{Kept, Line};
use crate::commands::chat::work::{Job, receipt_text};
use crate::log_file::Level;
use crate::time::now;

/// How long a turn that is to end is waited for before something else is done.
const PATIENCE_MS: u64 = 15_000;

/// A conversation, to have it back.
pub(super) struct Conversation {
    memory: Value,
    transcript: Vec<Item>,
    prompts: Vec<Prompt>,
}

/// One time that somebody went back, or forth again, and what takes that back.
pub(super) struct Went {
    /// What the store knows it by; none if only the conversation went.
    rewinds: Vec<RewindId>,
    /// The conversation on the other side, if it went along.
    other: Option<Conversation>,
    /// The prompt that was put into the input line.
    prompt: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands::chat) enum Way {
    Undo,
    Redo,
}

/// Why the agent is given another conversation.
pub(super) enum Recalling {
    /// To take back that somebody went; and what is said when that is done.
    Again(Way, Went, Vec<(Tone, String)>),
    /// A new one begins.
    Anew,
    /// It had ended, and this is to be said to it.
    ToSay(String),
}

impl Way {
    fn other(self) -> Self {
        match self {
            Self::Undo => Self::Redo,
            Self::Redo => Self::Undo,
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Undo => "undone",
            Self::Redo => "redone",
        }
    }

    /// What is said of files.
    fn said(self, receipt: &Receipt) -> Vec<(Tone, String)> {
        let text = receipt_text(receipt);
        // Of a receipt that lists nothing only the sum is left.
        let lists = receipt.rewind.is_some() || text.trim().contains('\n');
        let mut said: Vec<(Tone, String)> =
            lists.then_some((Tone::Hint, text)).into_iter().collect();
        said.push(match (self, receipt.success, receipt.rewind) {
            (_, false, _) => {
                let (done, why) = (self.done(), why_not_whole(receipt));
                (Tone::Bad, format!("Restore failed: not all of it was {done}: {why}"))
            }
            (_, true, None) => (Tone::Plain, "No file had to change.".to_owned()),
            (Self::Undo, true, Some(_)) => (Tone::Good, "Undone. Checked on disk.".to_owned()),
            (Self::Redo, true, Some(_)) => (Tone::Good, "Redone. Checked on disk.".to_owned()),
        });
        said
    }

    /// What is said once the conversation has gone along.
    fn said_of_conversation(self) -> &'static str {
        match self {
            Self::Undo => "The conversation is back.",
            Self::Redo => "The conversation is as it was before the undo.",
        }
    }
}

impl Host {
    /// What changes the conversation or files waits until the turn has ended.
    pub(super) fn begin(&mut self, job: Job) {
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

    pub(super) fn give_up_waiting(&mut self) {
        let late = |(_, since): &(Job, Moment)| self.now().since(*since) > PATIENCE_MS;
        if self.waiting.as_ref().is_some_and(late) {
            self.waiting = None;
            self.restore_failed("the turn did not end; nothing was changed");
        }
    }

    /// Takes back the last time that somebody went back here, or forth again: files, conversation, or both.
    pub(super) fn again(&mut self, way: Way) {
        let Some(went) = self.stack(way).last() else {
            // Nobody did in this session: the store knows of others.
            return self.begin(Job::Again(way, Vec::new()));
        };
        if !went.rewinds.is_empty() {
            let rewinds = went.rewinds.clone();
            return self.begin(Job::Again(way, rewinds));
        }
        if let Some(went) = self.stack(way).pop() {
            let memory = went.other.as_ref().map_or(Value::Null, |other| other.memory.clone());
            self.recalling = Some(Recalling::Again(way, went, Vec::new()));
            self.begin(Job::Recall(memory));
        }
    }

    fn stack(&mut self, way: Way) -> &mut Vec<Went> {
        match way {
            Way::Undo => &mut self.undos,
            Way::Redo => &mut self.redos,
        }
    }

    /// Gives the agent another conversation, which takes its time.
    pub(super) fn recall(&mut self, memory: Value, why: Recalling) {
        self.recalling = Some(why);
        self.chat.activity = Activity::Working(self.now());
        self.job(Job::Recall(memory));
    }

    /// The agent has another conversation; what it had before.
    pub(super) fn recalled(&mut self, recalled: Result<Value, String>) {
        self.chat.activity = Activity::Idle;
        match (self.recalling.take(), recalled) {
            (Some(Recalling::Again(way, went, said)), Ok(before)) => {
                self.went(way, went, before, said);
            }
            (Some(Recalling::Again(way, mut went, said)), Err(why)) => {
                self.say_all(said);
                self.fail(&format!("the conversation stays as it is: {why}"));
                // Files did; what is left can be tried again.
                went.rewinds.clear();
                self.stack(way).push(went);
            }
            (Some(Recalling::Anew), Ok(_)) => {
                self.chat.transcript.clear();
                self.prompts.clear();
                self.say(Tone::Hint, "A new conversation. Files and points stay.");
            }
            (Some(Recalling::ToSay(text)), Ok(_)) => return self.prompt(&text),
            (Some(Recalling::ToSay(text)), Err(why)) => {
                self.chat.editor.set_text(&text);
                self.fail(&why);
            }
            (_, Err(why)) => self.fail(&why),
            (None, Ok(_)) => {}
        }
        self.after_going_back();
    }

    /// The other conversation is shown, and the one that stood there can be had back.
    fn went(&mut self, way: Way, mut went: Went, memory: Value, said: Vec<(Tone, String)>) {
        if let Some(other) = went.other.take() {
            went.other = Some(self.conversation(memory));
            self.chat.transcript.clear();
            for item in other.transcript {
                self.chat.transcript.push(item);
            }
            self.prompts = other.prompts;
        }
        let editor = &mut self.chat.editor;
        match way {
            Way::Undo if editor.text() == went.prompt => editor.set_text(""),
            Way::Redo if editor.is_empty() => editor.set_text(&went.prompt),
            Way::Undo | Way::Redo => {}
        }
        self.say_all(said);
        self.say(Tone::Good, way.said_of_conversation());
        self.stack(way.other()).push(went);
    }

    fn conversation(&self, memory: Value) -> Conversation {
        let transcript = self.chat.transcript.items().cloned().collect();
        Conversation { memory, transcript, prompts: self.prompts.clone() }
    }

    fn say_all(&mut self, said: Vec<(Tone, String)>) {
        for (tone, said) in said {
            self.say(tone, said);
        }
    }

    /// What was begun is over.
    pub(super) fn idle(&mut self) {
        if let Activity::Working(_) = self.chat.activity {
            self.chat.activity = Activity::Idle;
        }
        self.say_what_waits();
    }

    pub(super) fn restore_failed(&mut self, why: &str) {
        self.note_error(&format!("restore failed: {why}"));
        self.say(Tone::Bad, format!("Restore failed: {why}"));
    }

    pub(super) fn restored(
        &mut self,
        mut choice: Choice,
        restored: Result<Restored, RestoreError>,
    ) {
        let restored = match restored {
            Ok(restored) => restored,
            Err(error) => {
                self.restore_failed(&error.to_string());
                if matches!(error, RestoreError::NoQuery) {
                    choice.with_agent = false;
                    choice.what = What::Files;
                    self.offered = Some(choice);
                    let question = Question {
                        request: OWN_COPY.to_owned(),
                        title: "files only, from Takeback's own copy".to_owned(),
                        detail: "The agent is gone; its conversation stays as it is.".to_owned(),
                    };
                    self.chat.ask(question, self.now());
                }
                return self.idle();
            }
        };
        self.note_going(restored.cut, restored.receipt.as_ref());
        self.tell_receipt(restored.receipt.as_ref());
        for note in restored.notes {
            self.say(Tone::Hint, note);
        }
        match restored.failed {
            None => {
                self.log.add(now(), Level::Info, &format!("restored to checkpoint {}", choice.id));
                self.say(Tone::Good, format!("Restored to checkpoint: {}", restored.description));
            }
            Some(why) => {
                self.restore_failed(&why);
                let stays = |receipt: &Receipt| {
                    !receipt.conflicts.is_empty() || !receipt.ambiguous.is_empty()
                };
                if restored.receipt.as_ref().is_some_and(stays) {
                    let point = choice.id.get(..8).unwrap_or(&choice.id);
                    self.say(
                        Tone::Hint,
                        format!("`takeback rewind {point} --exact` takes yours back too."),
                    );
                }
            }
        }
        self.after_going_back();
    }

    pub(super) fn tell_receipt(&mut self, receipt: Option<&Receipt>) {
        if let Some(receipt) = receipt {
            let text = receipt_text(receipt);
            if !text.is_empty() {
                self.say(Tone::Hint, text);
            }
        }
    }

    pub(super) fn after_going_back(&mut self) {
        self.idle();
        self.job(Job::Count);
        let kept = Box::new(self.kept());
        self.job(Job::Keep(kept));
    }

    /// What was said after the prompt goes from the screen, and the prompt comes back to the input.
    fn note_going(&mut self, cut: Option<Cut>, receipt: Option<&Receipt>) {
        let rewinds: Vec<RewindId> =
            receipt.and_then(|receipt| receipt.rewind).into_iter().collect();
        let found = cut.and_then(|cut| {
            let at = self.prompts.iter().position(|prompt| prompt.message == cut.message)?;
            Some((at, cut.before))
        });
        if rewinds.is_empty() && found.is_none() {
            return;
        }
        let mut went = Went { rewinds, other: None, prompt: String::new() };
        if let Some((at, memory)) = found {
            went.other = Some(self.conversation(memory));
            let first = self.prompts[at].clone();
            self.prompts.truncate(at);
            self.chat.transcript.truncate(first.at);
            self.put_back(&first.text);
            went.prompt = first.text;
        }
        self.undos.push(went);
        self.redos.clear();
    }

    /// Into the input line, before what somebody has begun to write there.
    fn put_back(&mut self, prompt: &str) {
        let editor = &mut self.chat.editor;
        let is_own = |went: &Went| went.prompt == editor.text();
        if editor.is_empty() || self.undos.last().is_some_and(is_own) {
            editor.set_text(prompt);
        } else {
            editor.set_text(&format!("{prompt}\n{}", editor.text()));
        }
    }

    pub(super) fn restored_execution(
        &mut self,
        execution: &str,
        restored: Result<Receipt, String>,
    ) {
        match restored {
            Ok(receipt) => {
                self.note_going(None, Some(&receipt));
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

    pub(super) fn done_again(&mut self, way: Way, receipt: Result<Receipt, String>, ours: bool) {
        let receipt = match receipt {
            Ok(receipt) => receipt,
            Err(why) => {
                self.idle();
                return self.fail(&why);
            }
        };
        let mut said = way.said(&receipt);
        if let Some((_, why)) = said.iter().find(|(tone, _)| *tone == Tone::Bad) {
            self.note_error(why);
        }
        let went = if ours { self.stack(way).pop() } else { None };
        if !ours && receipt.rewind.is_some() {
            // What the conversation was then, only the session that went back or forth knows.
            let done = way.done();
            let note = format!("Only files were {done}; the conversation stays as it is.");
            said.push((Tone::Hint, note));
        }
        if let Some(mut went) = went {
            match receipt.rewind {
                Some(rewind) => went.rewinds.push(rewind),
                // No file had to change, so none will when this is taken back.
                None => went.rewinds.clear(),
            }
            if let Some(other) = &went.other {
                return self.recall(other.memory.clone(), Recalling::Again(way, went, said));
            }
            // With neither files nor a conversation there is nothing to take back.
            if !went.rewinds.is_empty() {
                self.stack(way.other()).push(went);
            }
        }
        self.say_all(said);
        self.after_going_back();
    }

    pub(super) fn loaded(&mut self, kept: &Kept) {
        self.chat.transcript.clear();
        self.show(kept);
        self.say(Tone::Good, "Loaded. Files stay as they are.");
        self.after_going_back();
    }

    /// Shows a conversation that was kept.
    pub(in crate::commands::chat) fn show(&mut self, kept: &Kept) {
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
