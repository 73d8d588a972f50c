//! Qwen Code.

use std::process::Command;
use takeback_agents::{AgentKind, QWEN};

use serde_json::{Value, json};

use super::desk::Desk;
use super::stories;
use super::terminal::Seated;
use super::{Conversation, Driven, absolute, calls, is_taken_back_and_yours_stays};
use crate::chat::seat::ESC;

struct Qwen;

impl Driven for Qwen {
    const AGENT: &'static AgentKind = &QWEN;

    fn settle(desk: &Desk) {
        desk.init(Self::AGENT);
    }

    fn ask(desk: &Desk, conversation: Conversation, prompt: &str) -> Command {
        let mut command = program(desk);
        command.arg("--yolo");
        if conversation == Conversation::Goes {
            command.arg("--continue");
        }
        command.arg(prompt);
        command
    }

    fn write(desk: &Desk, path: &str, text: &str) -> Vec<Value> {
        calls("write_file", &json!({"file_path": absolute(desk, path), "content": text}))
    }

    fn replace(desk: &Desk, path: &str, line: &str, with: &str) -> Vec<Value> {
        let path = absolute(desk, path);
        let edit = json!({"file_path": path, "old_string": line, "new_string": with});
        // It edits only what it has read.
        let mut says = calls("read_file", &json!({"file_path": path}));
        says.extend(calls("edit", &edit));
        says
    }

    fn run(command: &str) -> Vec<Value> {
        calls("run_shell_command", &json!({"command": command, "is_background": false}))
    }
}

impl Seated for Qwen {
    const TAKES_A_PROMPT: &'static str = "Type your message";
    const ASKS: &'static str = "Allow execution";
    const ALLOW: &'static str = "1";
    const REFUSE: [&'static str; 2] = [ESC, ESC];
    const STOP: &'static [&'static str] = &[ESC];
    const STOPPED: &'static str = "cancelled";

    fn sit(desk: &Desk) -> Command {
        let mut command = program(desk);
        command.args(["--approval-mode", "default"]);
        command
    }
}

fn program(desk: &Desk) -> Command {
    let mut command = desk.program();
    command
        .env("OPENAI_BASE_URL", format!("{}/v1", desk.model.url()))
        .env("OPENAI_API_KEY", "dummy")
        .env("OPENAI_MODEL", "scripted")
        .args(["--auth-type", "openai"]);
    command
}

#[test]
fn a_session_of_qwen_is_taken_back_and_yours_stays() {
    is_taken_back_and_yours_stays::<Qwen>();
}

#[test]
fn a_command_that_you_stop_is_taken_back() {
    stories::a_stopped_command_is_taken_back::<Qwen>();
}

#[test]
fn while_a_command_waits_for_you_the_changes_are_yours() {
    stories::while_a_command_waits_the_changes_are_yours::<Qwen>();
}
