//! An agent in its own terminal, and the person before it: types a prompt, answers dialogs, stops a call.

use std::process::Command;
use std::time::{Duration, Instant};

use portable_pty::CommandBuilder;
use serde_json::{Value, json};

use super::Driven;
use super::desk::Desk;
use crate::chat::seat::{ENTER, Seat};

const COLUMNS: u16 = 140;
const ROWS: u16 = 45;

/// How long something is waited for before it is called missing.
const PATIENCE: Duration = Duration::from_secs(60);

/// An agent whose terminal is known: what it shows, and which keys it takes.
pub(super) trait Seated: Driven {
    /// Shown once a prompt can be typed.
    const TAKES_A_PROMPT: &'static str;
    /// Shown while the agent asks for permission, and only then.
    const ASKS: &'static str;
    const ALLOW: &'static str;
    /// Refuses a command, and an edit.
    const REFUSE: [&'static str; 2];
    /// The keys that stop a running turn.
    const STOP: &'static [&'static str];
    /// Shown once a turn was stopped.
    const STOPPED: &'static str;

    /// The program as a person starts it, which asks before each call.
    fn sit(desk: &Desk) -> Command;
}

/// A person before an agent's terminal.
pub(super) struct Person<'d> {
    desk: &'d Desk,
    pub(super) seat: Seat,
}

impl<'d> Person<'d> {
    /// Starts the agent, and waits until it takes a prompt.
    pub(super) fn before<A: Seated>(desk: &'d Desk) -> Self {
        let mut seat = Seat::start(in_terminal(&A::sit(desk)), COLUMNS, ROWS);
        seat.sees(A::TAKES_A_PROMPT);
        Self { desk, seat }
    }

    /// Types a prompt, to which the model answers what `says` has.
    pub(super) fn asks(&mut self, what: &str, says: &[Value]) {
        let script = self.desk.user.home().join("script.json");
        std::fs::write(&script, Value::Array(says.to_vec()).to_string()).expect("a script");
        // A program may take what comes at once for a paste, and Enter for a part of it.
        self.seat.types(&format!("{what}. <<LABFILE {} FILE>>", script.display()));
        self.seat.sees("FILE>>").look(Duration::from_millis(300)).types(ENTER);
    }

    /// Waits for the dialog about something, and allows the call. What comes of it is for the caller to
    /// wait for: the next dialog may be there at once.
    pub(super) fn allows<A: Seated>(&mut self, about: &str) {
        self.answers::<A>(about, A::ALLOW);
    }

    /// Waits for the dialog about something, and refuses the command.
    pub(super) fn refuses_command<A: Seated>(&mut self, about: &str) {
        self.answers::<A>(about, A::REFUSE[0]);
        self.seat.sees_no(A::ASKS);
    }

    /// Waits for the dialog about something, and refuses the edit.
    pub(super) fn refuses_edit<A: Seated>(&mut self, about: &str) {
        self.answers::<A>(about, A::REFUSE[1]);
        self.seat.sees_no(A::ASKS);
    }

    /// Waits for the dialog about something.
    pub(super) fn is_asked<A: Seated>(&mut self, about: &str) {
        self.seat.sees_that(&format!("{} {about}", A::ASKS), |screen| {
            screen.contains(A::ASKS) && screen.contains(about)
        });
    }

    fn answers<A: Seated>(&mut self, about: &str, key: &str) {
        self.is_asked::<A>(about);
        // Keys that come together with the dialog may be taken for what was typed before it.
        self.seat.look(Duration::from_millis(500)).types(key);
    }

    /// Stops the turn.
    pub(super) fn stops<A: Seated>(&mut self) {
        for key in A::STOP {
            self.seat.types(key).look(Duration::from_millis(200));
        }
        self.seat.sees(A::STOPPED);
    }

    /// Waits for a file, while the terminal goes on.
    #[track_caller]
    pub(super) fn finds(&mut self, path: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.desk.user.exists(path) {
            assert!(Instant::now() < until, "no {path}:\n{}", self.seat.shown());
            self.seat.look(Duration::from_millis(20));
        }
    }

    /// Lets time pass, while the terminal goes on.
    pub(super) fn waits(&mut self, time: Duration) {
        self.seat.look(time);
    }
}

fn in_terminal(command: &Command) -> CommandBuilder {
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

/// What `rewind` answered, in one value that can be compared.
pub(super) fn outcome(receipt: &Value) -> Value {
    let paths = |name: &str| {
        let notes = receipt[name].as_array().into_iter().flatten();
        let mut paths: Vec<&Value> =
            notes.map(|note| if note.is_string() { note } else { &note["filePath"] }).collect();
        paths.sort_by_key(|path| path.to_string());
        json!(paths)
    };
    json!({
        "success": receipt["success"],
        "restored": paths("restoredFiles"),
        "deleted": paths("deletedFiles"),
        "merged": paths("mergedFiles"),
        "kept": paths("keptFiles"),
        "conflicts": paths("conflicts"),
        "unclear": paths("ambiguous"),
        "missing": paths("notCaptured"),
    })
}
