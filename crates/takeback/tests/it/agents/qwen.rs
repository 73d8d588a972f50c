//! Qwen Code.

use std::process::Command;

use serde_json::json;

use super::setup::AgentSetup;
use super::terminal::TerminalDriver;
use super::{AgentDriver, Conversation, calls};
use crate::pty::ESC;

static QWEN: AgentDriver = AgentDriver {
    kind: &takeback_agents::QWEN,
    configure: AgentSetup::init,
    command: |setup, conversation, prompt| {
        let mut command = program(setup);
        command.arg("--yolo");
        if conversation == Conversation::Continued {
            command.arg("--continue");
        }
        command.arg(prompt);
        command
    },
    write: |setup, path, text| {
        calls("write_file", &json!({"file_path": setup.absolute(path), "content": text}))
    },
    replace: |setup, path, line, with| {
        let path = setup.absolute(path);
        let edit = json!({"file_path": path, "old_string": line, "new_string": with});
        // It edits only files that it has read.
        [calls("read_file", &json!({"file_path": path})), calls("edit", &edit)].concat()
    },
    run: |command| calls("run_shell_command", &json!({"command": command, "is_background": false})),
    terminal: TerminalDriver {
        command: |setup| {
            let mut command = program(setup);
            command.args(["--approval-mode", "default"]);
            command
        },
        ready: "Type your message",
        question: "Allow execution",
        allow: "1",
        refuse_command: ESC,
        refuse_edit: ESC,
        stop: &[ESC],
        stopped: "cancelled",
    },
};

fn program(setup: &AgentSetup) -> Command {
    let mut command = setup.program();
    command
        .env("OPENAI_BASE_URL", format!("{}/v1", setup.model.url()))
        .env("OPENAI_API_KEY", "dummy")
        .env("OPENAI_MODEL", "scripted")
        .args(["--auth-type", "openai"]);
    command
}

scenarios! { QWEN =>
    a_session_is_taken_back_and_yours_stays,
    the_model_is_told_what_was_taken_back,
    a_stopped_command_is_taken_back,
    while_a_command_waits_the_changes_are_yours,
}
