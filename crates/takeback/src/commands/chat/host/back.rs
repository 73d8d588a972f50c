//! Going back and forth: what is begun, what came of it, and what the screen shows then.

use serde_json::Value;
use takeback_core::rewind::Receipt;
use takeback_store::RewindId;
use takeback_tui::chat::{Activity, Question};
use takeback_tui::keys::Moment;
use takeback_tui::menu::What;
use takeback_tui::transcript::{Item, Tone};

use super::{Host, OWN_COPY, Prompt};
use crate::commands::chat::restore::{Choice, Cut, RestoreError, Restored};
use crate::commands::chat::session::{Kept, Line};
use crate::commands::chat::work::{Job, receipt_text};
use crate::log_file::Level;
use crate::time::now;

/// How long a turn that is to end is waited for before something else is done.
const PATIENCE_MS: u64 = 15_000;

/// A conversation before it was cut, to have it back.
pub(super) struct CutOff {
    rewind: Option<RewindId>,
    memory: Value,
    transcript: Vec<Item>,
    prompts: Vec<Prompt>,
    /// What was put back into the input line.
    prompt: String,
    /// What is said when it is back.
    after: Vec<(Tone, String)>,
}

/// Why the agent is given another conversation.
pub(super) enum Recalling {
    /// A rewind was undone.
    Back(CutOff),
    /// A new one begins.
    Anew,
    /// It had ended, and this is to be said to it.
    ToSay(String),
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

    pub(super) fn undo(&mut self) {
        // A conversation that went back alone is in no rewind.
        match self.cuts.last() {
            Some(CutOff { rewind: None, .. }) if !self.chat.is_in_turn() => {
                if let Some(mut cut) = self.cuts.pop() {
                    self.recall(std::mem::take(&mut cut.memory), Recalling::Back(cut));
                }
            }
            _ => self.begin(Job::Undo),
        }
    }

    /// Gives the agent another conversation, which takes its time.
    pub(super) fn recall(&mut self, memory: Value, why: Recalling) {
        self.recalling = Some(why);
        self.chat.activity = Activity::Working(self.now());
        self.job(Job::Recall(memory));
    }

    pub(super) fn recalled(&mut self, recalled: Result<(), String>) {
        self.chat.activity = Activity::Idle;
        match (self.recalling.take(), recalled) {
            (Some(Recalling::Back(cut)), Ok(())) => self.bring_back(cut),
            (Some(Recalling::Anew), Ok(())) => {
                self.chat.transcript.clear();
                self.prompts.clear();
                self.say(Tone::Hint, "A new conversation. Files and points stay.");
            }
            (Some(Recalling::ToSay(text)), Ok(())) => return self.prompt(&text),
            (Some(Recalling::ToSay(text)), Err(why)) => {
                self.chat.editor.set_text(&text);
                self.fail(&why);
            }
            (_, Err(why)) => self.fail(&format!("the conversation did not come back: {why}")),
            (None, Ok(())) => {}
        }
        self.after_going_back();
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
    pub(super) fn cut(&mut self, cut: Cut, receipt: Option<&Receipt>) {
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
            after: Vec::new(),
        };
        self.cuts.push(before);
        self.prompts.truncate(at);
        self.chat.transcript.truncate(first.at);
        self.chat.editor.set_text(&first.text);
    }

    /// A conversation as it was before it was cut; the agent knows it again.
    pub(super) fn bring_back(&mut self, cut: CutOff) {
        self.chat.transcript.clear();
        for item in cut.transcript {
            self.chat.transcript.push(item);
        }
        self.prompts = cut.prompts;
        if self.chat.editor.text() == cut.prompt {
            self.chat.editor.set_text("");
        }
        for (tone, said) in cut.after {
            self.say(tone, said);
        }
        self.say(Tone::Good, "The conversation is back.");
    }

    pub(super) fn restored_execution(
        &mut self,
        execution: &str,
        restored: Result<Receipt, String>,
    ) {
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

    pub(super) fn done_again(
        &mut self,
        word: &'static str,
        receipt: Result<Receipt, String>,
        undone: Option<RewindId>,
    ) {
        let receipt = match receipt {
            Ok(receipt) => receipt,
            Err(why) => {
                self.idle();
                return self.fail(&why);
            }
        };
        let mut said = vec![(Tone::Hint, receipt_text(&receipt))];
        if receipt.success {
            said.push((Tone::Good, format!("{word}. Checked on disk.")));
        } else {
            let why = "Restore failed: not everything could be brought back";
            self.note_error(why);
            said.push((Tone::Bad, why.to_owned()));
        }
        if let Some(mut cut) = self.cuts.pop_if(|cut| undone.is_some() && cut.rewind == undone) {
            cut.after = said;
            return self.recall(std::mem::take(&mut cut.memory), Recalling::Back(cut));
        }
        for (tone, said) in said {
            self.say(tone, said);
        }
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
