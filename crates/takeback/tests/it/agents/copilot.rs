//! Copilot CLI. Hooks of the user run always, those of a project only in a folder that is trusted.

use std::process::Command;
use std::time::Duration;
use takeback_agents::{AgentKind, COPILOT};

use serde_json::{Value, json};

use super::desk::Desk;
use super::stories;
use super::terminal::Seated;
use super::{Conversation, Driven, absolute, calls, is_taken_back_and_yours_stays};
use crate::chat::seat::{ENTER, ESC};

struct Copilot;

impl Driven for Copilot {
    const AGENT: &'static AgentKind = &COPILOT;

    fn settle(desk: &Desk) {
        desk.init(Self::AGENT);
    }

    fn ask(desk: &Desk, conversation: Conversation, prompt: &str) -> Command {
        let mut command = program(desk);
        command.args(["--allow-all-tools", "-p", prompt]);
        if conversation == Conversation::Goes {
            command.arg("--continue");
        }
        command
    }

    fn write(desk: &Desk, path: &str, text: &str) -> Vec<Value> {
        let mut says = Vec::new();
        // The tool makes no folders.
        if let Some((folder, _)) = path.rsplit_once('/') {
            says.extend(Self::run(&format!("mkdir -p {folder}")));
        }
        says.extend(calls("create", &json!({"path": absolute(desk, path), "file_text": text})));
        says
    }

    fn replace(desk: &Desk, path: &str, line: &str, with: &str) -> Vec<Value> {
        let path = absolute(desk, path);
        calls("edit", &json!({"path": path, "old_str": line, "new_str": with}))
    }

    fn run(command: &str) -> Vec<Value> {
        calls("bash", &json!({"command": command, "description": "a command"}))
    }
}

impl Seated for Copilot {
    const TAKES_A_PROMPT: &'static str = "? help";
    const ASKS: &'static str = "Do you want";
    const ALLOW: &'static str = ENTER;
    const REFUSE: [&'static str; 2] = [ESC, ESC];
    const STOP: &'static [&'static str] = &[ESC, ESC];
    const STOPPED: &'static str = "cancelled";

    fn sit(desk: &Desk) -> Command {
        let work = desk.user.work().canonicalize().expect("it is there");
        let settings = json!({"trustedFolders": [work], "banner": "never", "appTipShown": true});
        desk.settle(".copilot/config.json", &settings.to_string());
        program(desk)
    }
}

fn program(desk: &Desk) -> Command {
    let mut command = desk.program();
    command
        .env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", desk.model.url()))
        .env("COPILOT_MODEL", "scripted")
        .env("COPILOT_OFFLINE", "true");
    command
}

#[test]
fn a_session_of_copilot_is_taken_back_and_yours_stays() {
    is_taken_back_and_yours_stays::<Copilot>();
}

#[test]
fn a_command_that_you_refuse_wrote_nothing() {
    stories::a_refused_command_wrote_nothing::<Copilot>(Duration::ZERO);
}

#[test]
fn an_edit_that_you_refuse_wrote_nothing() {
    stories::a_refused_edit_wrote_nothing::<Copilot>();
}

#[test]
fn a_command_that_you_stop_is_taken_back() {
    stories::a_stopped_command_is_taken_back::<Copilot>();
}

#[test]
fn after_a_stop_the_conversation_goes_on() {
    stories::after_a_stop_the_conversation_goes_on::<Copilot>();
}

#[test]
fn while_a_command_waits_for_you_the_changes_are_yours() {
    stories::while_a_command_waits_the_changes_are_yours::<Copilot>();
}
