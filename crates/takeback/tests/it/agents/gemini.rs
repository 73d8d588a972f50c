//! Gemini CLI.

use std::process::Command;
use std::time::Duration;
use takeback_agents::{AgentKind, GEMINI};

use serde_json::{Value, json};

use super::desk::Desk;
use super::stories;
use super::terminal::Seated;
use super::{Conversation, Driven, absolute, calls, is_taken_back_and_yours_stays};
use crate::chat::seat::ESC;

struct Gemini;

impl Driven for Gemini {
    const AGENT: &'static AgentKind = &GEMINI;

    fn settle(desk: &Desk) {
        let settings = json!({
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": false},
        });
        desk.settle(".gemini/settings.json", &settings.to_string());
        desk.init(Self::AGENT);
    }

    fn ask(desk: &Desk, conversation: Conversation, prompt: &str) -> Command {
        let mut command = program(desk);
        command.args(["--yolo", "--skip-trust"]);
        if conversation == Conversation::Goes {
            command.args(["--resume", "latest"]);
        }
        command.args(["-p", prompt]);
        command
    }

    fn write(desk: &Desk, path: &str, text: &str) -> Vec<Value> {
        calls("write_file", &json!({"file_path": absolute(desk, path), "content": text}))
    }

    fn replace(_: &Desk, path: &str, line: &str, with: &str) -> Vec<Value> {
        let input = json!({
            "file_path": path, "old_string": line, "new_string": with, "instruction": "replace it",
        });
        calls("replace", &input)
    }

    fn run(command: &str) -> Vec<Value> {
        calls("run_shell_command", &json!({"command": command}))
    }
}

impl Seated for Gemini {
    const TAKES_A_PROMPT: &'static str = "Type your message";
    const ASKS: &'static str = "Allow";
    const ALLOW: &'static str = "1";
    const REFUSE: [&'static str; 2] = [ESC, ESC];
    const STOP: &'static [&'static str] = &[ESC];
    const STOPPED: &'static str = "cancelled";

    fn sit(desk: &Desk) -> Command {
        let mut command = program(desk);
        command.arg("--skip-trust");
        command
    }
}

fn program(desk: &Desk) -> Command {
    let mut command = desk.program();
    command.env("GOOGLE_GEMINI_BASE_URL", desk.model.url()).env("GEMINI_API_KEY", "dummy");
    command
}

#[test]
fn a_session_of_gemini_is_taken_back_and_yours_stays() {
    is_taken_back_and_yours_stays::<Gemini>();
}

#[test]
fn a_command_that_you_refuse_wrote_nothing() {
    stories::a_refused_command_wrote_nothing::<Gemini>(Duration::ZERO);
}

#[test]
fn a_deleted_store_is_shown() {
    stories::a_deleted_store_is_shown::<Gemini>();
}

#[test]
fn an_edit_that_you_refuse_wrote_nothing() {
    stories::a_refused_edit_wrote_nothing::<Gemini>();
}

#[test]
fn a_command_that_you_stop_is_taken_back() {
    stories::a_stopped_command_is_taken_back::<Gemini>();
}

#[test]
fn while_a_command_waits_the_changes_are_yours() {
    stories::while_a_command_waits_the_changes_are_yours::<Gemini>();
}
