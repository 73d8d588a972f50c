//! An agent in its own terminal, and the person who types prompts, answers dialogs and stops calls.

use std::process::Command;
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;
use serde_json::Value;

use super::setup::AgentSetup;
use crate::pty::{ENTER, Terminal};

const COLUMNS: u16 = 140;
const ROWS: u16 = 45;

/// What does not appear within this time is missing.
const PATIENCE: Duration = Duration::from_secs(60);

/// What an agent shows in its terminal, and which keys it takes.
#[derive(Clone, Copy)]
pub(super) struct TerminalDriver {
    /// The program as a person starts it; it asks before each call.
    pub(super) command: fn(&AgentSetup) -> Command,
    /// Shown once a prompt can be typed.
    pub(super) ready: &'static str,
    /// Shown while the agent asks for permission, and only then.
    pub(super) question: &'static str,
    pub(super) allow: &'static str,
    pub(super) refuse_command: &'static str,
    pub(super) refuse_edit: &'static str,
    /// The keys that stop a running turn.
    pub(super) stop: &'static [&'static str],
    /// Shown once a turn was stopped.
    pub(super) stopped: &'static str,
}

/// A person at an agent's terminal.
pub(super) struct Person<'s> {
    setup: &'s AgentSetup,
    pub(super) terminal: Terminal,
}

impl<'s> Person<'s> {
    /// Starts the agent, and waits until it takes a prompt.
    pub(super) fn at(setup: &'s AgentSetup) -> Self {
        let driver = &setup.driver.terminal;
        let command = pty_command(&(driver.command)(setup));
        let mut terminal = Terminal::start(command, COLUMNS, ROWS);
        terminal.sees(driver.ready);
        Self { setup, terminal }
    }

    /// Types a prompt, which the model answers with these messages.
    pub(super) fn prompts(&mut self, text: &str, answers: &[Vec<Value>]) {
        let script = self.setup.user.home().join("script.json");
        std::fs::write(&script, Value::Array(answers.concat()).to_string()).expect("a script");
        // A program may take a burst of keys for a paste, and an Enter in it for a part of the text.
        self.terminal.types(&format!("{text}. <<LABFILE {} FILE>>", script.display()));
        self.terminal.sees("FILE>>").look(Duration::from_millis(300)).types(ENTER);
    }

    /// Waits for the dialog about something, and allows the call. The caller waits for the result: the next
    /// dialog may follow at once.
    pub(super) fn allows(&mut self, about: &str) {
        self.answers(about, self.setup.driver.terminal.allow);
    }

    /// Waits for the dialog about a command, and refuses it.
    pub(super) fn refuses_command(&mut self, about: &str) {
        self.answers(about, self.setup.driver.terminal.refuse_command);
        self.terminal.sees_no(self.setup.driver.terminal.question);
    }

    /// Waits for the dialog about an edit, and refuses it.
    pub(super) fn refuses_edit(&mut self, about: &str) {
        self.answers(about, self.setup.driver.terminal.refuse_edit);
        self.terminal.sees_no(self.setup.driver.terminal.question);
    }

    /// Waits for the dialog about something.
    pub(super) fn sees_question(&mut self, about: &str) {
        let question = self.setup.driver.terminal.question;
        self.terminal.sees_that(&format!("{question} {about}"), |screen| {
            screen.contains(question) && screen.contains(about)
        });
    }

    fn answers(&mut self, about: &str, key: &str) {
        self.sees_question(about);
        // The program may attribute keys that arrive with the dialog to what was typed before it.
        self.terminal.look(Duration::from_millis(500)).types(key);
    }

    /// Stops the turn.
    pub(super) fn stops(&mut self) {
        for key in self.setup.driver.terminal.stop {
            self.terminal.types(key).look(Duration::from_millis(200));
        }
        self.terminal.sees(self.setup.driver.terminal.stopped);
    }

    /// Waits for a file, while reading the terminal.
    #[track_caller]
    pub(super) fn finds(&mut self, path: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.setup.user.exists(path) {
            assert!(Instant::now() < until, "no {path}:\n{}", self.terminal.shown());
            self.terminal.look(Duration::from_millis(20));
        }
    }

    /// Lets time pass, while reading the terminal.
    pub(super) fn waits(&mut self, time: Duration) {
        self.terminal.look(time);
    }
}

fn pty_command(command: &Command) -> CommandBuilder {
    let mut builder = CommandBuilder::new(command.get_program());
    builder.args(command.get_args());
    builder.env_clear();
    builder.env("TERM", "xterm-256color");
    builder.env("LANG", "C.UTF-8");
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            builder.env(name, value);
        }
    }
    if let Some(folder) = command.get_current_dir() {
        builder.cwd(folder);
    }
    builder
}
