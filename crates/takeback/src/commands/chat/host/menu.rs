//! Opens the rewind menu, and carries out what it returns.

use takeback_tui::{Menu, MenuAction, MenuCoverage, MenuOptions, MenuScope, Tone};

use super::{Direction, Host};
use crate::commands::chat::restore::RestoreJob;
use crate::commands::chat::worker::{Job, MenuRows, MenuTrigger};

impl Host {
    /// Opens the menu, at the point that `open` names.
    pub(super) fn open_menu(&mut self, open: Option<String>, trigger: MenuTrigger) {
        if self.is_recording() {
            self.job(Job::Rows { open, trigger });
        } else {
            self.say(Tone::Warning, "Checkpoint feature not enabled");
        }
    }

    pub(super) fn show_menu(&mut self, rows: MenuRows) {
        let MenuRows { trigger, points, operations, mut executions, can_undo, open } = rows;
        // Without a prompt, this session's own steps lead nowhere.
        if points.is_empty() {
            executions.retain(|row| row.execution != self.session.0);
        }
        if points.is_empty() && executions.is_empty() {
            return self.say(Tone::Warning, trigger.empty_message());
        }
        let options = MenuOptions {
            keep: self.keep,
            scope: MenuScope::Session,
            conversation: true,
            can_undo,
            coverage: MenuCoverage::Session,
        };
        let mut menu = Menu::new(points, executions, options).with_operations(operations);
        let action = match (open, trigger) {
            (None, _) => MenuAction::Stay,
            (Some(id), MenuTrigger::Revert) => menu.open_turn(&id),
            (Some(id), _) => menu.open(&id),
        };
        self.chat.menu = Some(menu);
        self.on_menu(action);
    }

    pub(super) fn on_menu(&mut self, action: MenuAction) {
        match action {
            MenuAction::Stay => {}
            MenuAction::Cancel => self.say(Tone::Hint, "Exited checkpoint selection."),
            MenuAction::Preview(request) => self.job(Job::Preview(request)),
            MenuAction::Ask(question) => self.job(Job::Ask(question)),
            MenuAction::Restore(choice) => {
                let messages = self.prompts.iter().map(|prompt| prompt.message.clone()).collect();
                // The agent can only restore a whole prompt and all that followed.
                let with_agent = choice.coverage != MenuCoverage::Turn;
                self.begin(Job::Restore(RestoreJob { choice, with_agent, messages }));
            }
            MenuAction::RestoreExecution(execution) => self.begin(Job::RestoreExecution(execution)),
            MenuAction::Undo => self.reverse(Direction::Undo),
        }
    }
}
