//! Claude Code, with its own hooks and without `chat`.

use std::process::Command;

use serde_json::{Value, json};
use takeback_agents::hook::Plugged;

use super::desk::Desk;
use super::{Conversation, Driven, absolute, calls, is_taken_back_and_yours_stays};

struct Claude;

impl Driven for Claude {
    const AGENT: Plugged = Plugged::Claude;

    fn settle(desk: &Desk) {
        desk.init(Self::AGENT);
    }

    fn ask(desk: &Desk, conversation: Conversation, prompt: &str) -> Command {
        let mut command = desk.program();
        command.env("ANTHROPIC_BASE_URL", desk.model.url()).env("ANTHROPIC_API_KEY", "dummy");
        let quiet = [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_TELEMETRY",
            "DISABLE_AUTOUPDATER",
            "DISABLE_ERROR_REPORTING",
        ];
        command.envs(quiet.map(|name| (name, "1")));
        command.args(["--permission-mode", "acceptEdits", "--allowedTools", "Bash"]);
        if conversation == Conversation::Goes {
            command.arg("--continue");
        }
        command.args(["-p", prompt]);
        command
    }

    fn write(desk: &Desk, path: &str, text: &str) -> Vec<Value> {
        calls("Write", &json!({"file_path": absolute(desk, path), "content": text}))
    }

    /// It edits only what it has read.
    fn replace(desk: &Desk, path: &str, line: &str, with: &str) -> Vec<Value> {
        let path = absolute(desk, path);
        let input = json!({"file_path": path, "old_string": line, "new_string": with});
        [calls("Read", &json!({"file_path": path})), calls("Edit", &input)].concat()
    }

    fn run(command: &str) -> Vec<Value> {
        calls("Bash", &json!({"command": command, "description": "run it"}))
    }
}

#[test]
fn a_session_of_claude_code_is_taken_back_and_yours_stays() {
    is_taken_back_and_yours_stays::<Claude>();
}
