//! Gemini CLI.

use std::process::Command;

use serde_json::{Value, json};
use takeback_agents::hook::Plugged;

use super::desk::Desk;
use super::{Conversation, Driven, absolute, calls, is_taken_back_and_yours_stays};

struct Gemini;

impl Driven for Gemini {
    const AGENT: Plugged = Plugged::Gemini;

    fn settle(desk: &Desk) {
        let settings = json!({
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": false},
        });
        desk.settle(".gemini/settings.json", &settings.to_string());
        desk.init(Self::AGENT);
    }

    fn ask(desk: &Desk, conversation: Conversation, prompt: &str) -> Command {
        let mut command = desk.program();
        command.env("GOOGLE_GEMINI_BASE_URL", desk.model.url()).env("GEMINI_API_KEY", "dummy");
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

#[test]
fn a_session_of_gemini_is_taken_back_and_yours_stays() {
    is_taken_back_and_yours_stays::<Gemini>();
}
