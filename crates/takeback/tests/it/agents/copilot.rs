//! Copilot CLI. Hooks of the user run always, those of a project only in a folder that is trusted.

use std::process::Command;

use serde_json::{Value, json};
use takeback_agents::hook::Plugged;

use super::desk::Desk;
use super::{Conversation, Driven, absolute, calls, is_taken_back_and_yours_stays};

struct Copilot;

impl Driven for Copilot {
    const AGENT: Plugged = Plugged::Copilot;

    fn settle(desk: &Desk) {
        desk.init(Self::AGENT);
    }

    fn ask(desk: &Desk, conversation: Conversation, prompt: &str) -> Command {
        let mut command = desk.program();
        command
            .env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", desk.model.url()))
            .env("COPILOT_MODEL", "scripted")
            .env("COPILOT_OFFLINE", "true")
            .args(["--allow-all-tools", "-p", prompt]);
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

#[test]
fn a_session_of_copilot_is_taken_back_and_yours_stays() {
    is_taken_back_and_yours_stays::<Copilot>();
}
