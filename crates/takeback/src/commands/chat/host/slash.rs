//! Runs slash commands.

use clap::ValueEnum as _;
use serde_json::Value;
use takeback_tui::Tone;

use super::undo::RecallReason;
use super::{Direction, Host};
use crate::args::Side;
use crate::commands::chat::slash::{self, Verb};
use crate::commands::chat::worker::{Action, Job, MenuTrigger};

impl Host {
    pub(super) fn run_slash(&mut self, line: &str) {
        let (verb, argument) = match slash::parse(line) {
            Ok(parsed) => parsed,
            Err(why) => return self.fail(&why),
        };
        let argument = argument.map(str::to_owned);
        match (verb, argument) {
            (Verb::Checkpoint, Some(label)) if self.is_recording() => {
                self.job(Job::Checkpoint(label));
            }
            (Verb::Revert | Verb::Resolve, _)
            | (Verb::Checkpoint | Verb::Rewind | Verb::Restore, Some(_))
                if !self.is_recording() =>
            {
                self.say(Tone::Warning, "Checkpoint feature not enabled");
            }
            (Verb::Rewind | Verb::Restore, Some(id)) if id.starts_with("ckpt-") => {
                self.begin(Job::RestoreExecution(id));
            }
            (Verb::Checkpoint | Verb::Rewind, point) => self.open_menu(point, MenuTrigger::Slash),
            (Verb::Restore, point) => self.open_menu(point, MenuTrigger::Restore),
            (Verb::Revert, turn) => self.open_menu(turn, MenuTrigger::Revert),
            (Verb::Resolve, None) => self.job(Job::Conflicts),
            (Verb::Resolve, Some(side)) => match Side::from_str(&side, true) {
                Ok(side) => self.begin(Job::Act(Action::Resolve(side))),
                Err(_unknown) => self.fail("/resolve takes mine or before"),
            },
            (Verb::Undo, _) => self.reverse(Direction::Undo),
            (Verb::Redo, _) => self.reverse(Direction::Redo),
            (Verb::Diff, _) => self.job(Job::Diff),
            (Verb::Points, _) => self.job(Job::Points),
            (Verb::Show, point) => self.job(Job::Show(point)),
            (Verb::Blame, Some(path)) => self.job(Job::Blame(path)),
            (Verb::Why, Some(line)) => self.job(Job::Why(line)),
            (Verb::History, Some(path)) => self.job(Job::History(path)),
            (Verb::Stats, _) => self.job(Job::Stats),
            (Verb::Status, _) => self.job(Job::Status),
            (Verb::Save, name) => {
                let conversation = Box::new(self.conversation());
                self.job(Job::Save { name, conversation });
            }
            (Verb::Load, Some(name)) => self.begin(Job::Load(name)),
            (Verb::Conversations, _) => self.job(Job::Conversations),
            (Verb::Delete, Some(name)) => self.job(Job::Delete(name)),
            (Verb::Export, Some(file)) => self.job(Job::Export(file)),
            (Verb::Import, Some(file)) => self.job(Job::Import(file)),
            (Verb::Clear, _) => self.clear(),
            (Verb::Exit, _) => self.exit = true,
            (
                Verb::Help
                | Verb::Load
                | Verb::Delete
                | Verb::Export
                | Verb::Import
                | Verb::Blame
                | Verb::Why
                | Verb::History,
                _,
            ) => {
                self.help();
            }
        }
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
            "esc interrupts · esc esc rewinds · alt-enter new line · tab completes · page up/down scrolls · \
             ctrl-o unfolds diffs · ctrl-d exits",
        );
    }

    fn clear(&mut self) {
        if self.chat.is_in_turn() {
            return self.fail("a turn is running; press esc to stop it");
        }
        self.recall(Value::Null, RecallReason::Clear);
    }
}
