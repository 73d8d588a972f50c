//! A restore, in order: [`Host::begin`] stops the turn and starts the job, the worker restores (see
//! `chat/restore.rs`), and [`Host::on_restored`] shows the result.

use takeback_core::rewind::Receipt;
use takeback_store::RewindId;
use takeback_tui::{Activity, Answer, MenuCoverage, Question, RestoreScope, Tone};

use super::Host;
use super::undo::RewindStep;
use crate::commands::chat::restore::{
    ConversationCut, RestoreError, RestoreJob, RestoreOutcome, describe_failure,
};
use crate::commands::chat::worker::{Action, Job, MenuTrigger, receipt_text};
use crate::log_file::Level;
use crate::time::now;

/// How long a job waits for the turn to end, in milliseconds.
const PATIENCE_MS: u64 = 15_000;

/// The request id of the offer to restore without the agent.
pub(super) const OFFER: &str = "takeback-own-copy";

impl Host {
    /// Starts a job that changes files or the conversation. If a turn is running, it is interrupted and
    /// the job waits for its end.
    pub(super) fn begin(&mut self, job: Job) {
        let now = self.now();
        if self.chat.is_in_turn() {
            self.interrupt();
            self.chat.activity = Activity::Stopping(now);
            self.waiting = Some((job, now));
        } else {
            self.chat.activity = Activity::Working(now);
            self.job(job);
        }
    }

    pub(super) fn give_up_waiting(&mut self) {
        let now = self.now();
        if self.waiting.take_if(|(_, since)| now.since(*since) > PATIENCE_MS).is_some() {
            self.restore_failed("the turn did not end; nothing was changed");
        }
    }

    pub(super) fn on_restored(
        &mut self,
        job: RestoreJob,
        result: Result<RestoreOutcome, RestoreError>,
    ) {
        let outcome = match result {
            Ok(outcome) => outcome,
            Err(error) => {
                self.restore_failed(&error.to_string());
                if matches!(error, RestoreError::NoQuery) {
                    self.offer_own_copies(job);
                }
                return self.become_idle();
            }
        };
        self.add_step(outcome.cut, outcome.receipt.as_ref());
        self.say_receipt(outcome.receipt.as_ref());
        for note in outcome.notes {
            self.say(Tone::Hint, note);
        }
        let point = &job.choice.point;
        match outcome.failure {
            None => {
                self.log.add(now(), Level::Info, &format!("restored to checkpoint {point}"));
                let what = match job.choice.coverage {
                    MenuCoverage::Turn => "Took back this turn alone",
                    _ => "Restored to checkpoint",
                };
                self.say(Tone::Success, format!("{what}: {}", outcome.description));
            }
            Some(why) => {
                self.restore_failed(&why);
                let kept = |receipt: &Receipt| {
                    !receipt.conflicts.is_empty() || !receipt.ambiguous.is_empty()
                };
                if let Some(receipt) = &outcome.receipt {
                    self.say_next_step(receipt);
                }
                if outcome.receipt.as_ref().is_some_and(kept) {
                    let point = point.get(..8).unwrap_or(point);
                    let text =
                        format!("`takeback rewind {point} --exact` undoes your changes too.");
                    self.say(Tone::Hint, text);
                }
            }
        }
        self.finish_change();
    }

    /// What the user named is no point: a path, a call or a range.
    pub(super) fn act_on(&mut self, name: String, trigger: MenuTrigger) {
        self.begin(Job::Act(match trigger {
            MenuTrigger::Revert => Action::Revert(name),
            _ => Action::Restore(name),
        }));
    }

    pub(super) fn on_acted(&mut self, result: Result<Receipt, String>) {
        match result {
            Ok(receipt) => {
                self.add_step(None, Some(&receipt));
                self.say_receipt(Some(&receipt));
                if receipt.success && receipt.rewind.is_some() {
                    self.say(Tone::Success, "Done. Verified on disk. /undo takes it back.");
                } else if receipt.success {
                    self.say(Tone::Plain, "No file had to change.");
                } else {
                    self.restore_failed(&describe_failure(&receipt));
                    self.say_next_step(&receipt);
                }
            }
            Err(why) => self.fail(&why),
        }
        self.finish_change();
    }

    /// What to do about conflicts.
    fn say_next_step(&mut self, receipt: &Receipt) {
        if receipt.rewind.is_some() && !receipt.conflicts.is_empty() {
            let text =
                "/resolve lists the conflicts; /resolve mine and /resolve before settle them.";
            self.say(Tone::Hint, text);
        }
    }

    pub(super) fn on_restored_execution(
        &mut self,
        execution: &str,
        result: Result<Receipt, String>,
    ) {
        match result {
            Ok(receipt) => {
                self.add_step(None, Some(&receipt));
                self.say_receipt(Some(&receipt));
                if receipt.success {
                    self.say(Tone::Success, format!("Restored to checkpoint: {execution}"));
                } else {
                    self.restore_failed("state and files are restored together or not at all");
                }
            }
            Err(why) => self.restore_failed(&why),
        }
        self.finish_change();
    }

    /// The agent has exited: asks whether to restore the files without it.
    fn offer_own_copies(&mut self, mut job: RestoreJob) {
        job.with_agent = false;
        job.choice.scope = RestoreScope::Files;
        self.offer = Some(job);
        let question = Question {
            request: OFFER.to_owned(),
            title: "restoring files only, from Takeback's own copy".to_owned(),
            detail: "The agent has exited; its conversation stays as it is.".to_owned(),
        };
        self.chat.ask(question, self.now());
    }

    pub(super) fn answer_offer(&mut self, answer: Answer) {
        let job = self.offer.take();
        if let (Some(job), Answer::Yes | Answer::Always) = (job, answer) {
            self.begin(Job::Restore(job));
        }
    }

    fn restore_failed(&mut self, why: &str) {
        self.log_error(&format!("restore failed: {why}"));
        self.say(Tone::Failure, format!("Restore failed: {why}"));
    }

    fn say_receipt(&mut self, receipt: Option<&Receipt>) {
        let text = receipt.map(receipt_text).unwrap_or_default();
        if !text.is_empty() {
            self.say(Tone::Hint, text);
        }
    }

    /// Makes the restore undoable. If the conversation was cut, removes its end from the screen and puts
    /// the prompt back into the input.
    fn add_step(&mut self, cut: Option<ConversationCut>, receipt: Option<&Receipt>) {
        let rewinds: Vec<RewindId> =
            receipt.and_then(|receipt| receipt.rewind).into_iter().collect();
        let cut = cut.and_then(|cut| {
            let at = self.prompts.iter().position(|prompt| prompt.message == cut.message)?;
            Some((at, cut.before))
        });
        if rewinds.is_empty() && cut.is_none() {
            return;
        }
        let mut step = RewindStep { rewinds, conversation: None, prompt: String::new() };
        if let Some((at, memory)) = cut {
            step.conversation = Some(self.conversation_view(memory));
            let first = self.prompts[at].clone();
            self.prompts.truncate(at);
            self.chat.transcript.truncate(first.at);
            self.put_back(&first.text);
            step.prompt = first.text;
        }
        self.undos.push(step);
        self.redos.clear();
    }

    /// Puts a prompt into the input, before any text that the user typed there.
    fn put_back(&mut self, prompt: &str) {
        let editor = &mut self.chat.editor;
        let is_ours = |step: &RewindStep| step.prompt == editor.text();
        if editor.is_empty() || self.undos.last().is_some_and(is_ours) {
            editor.set_text(prompt);
        } else {
            editor.set_text(&format!("{prompt}\n{}", editor.text()));
        }
    }
}
