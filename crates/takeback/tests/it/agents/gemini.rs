//! Gemini CLI.

use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::setup::AgentSetup;
use super::terminal::TerminalDriver;
use super::{AgentDriver, Conversation, calls};
use crate::pty::ESC;

pub(super) static GEMINI: AgentDriver = AgentDriver {
    kind: &takeback_agents::GEMINI,
    configure: |setup| {
        let settings = json!({
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": false},
        });
        setup.write_home(".gemini/settings.json", &settings.to_string());
        setup.init();
    },
    command: |setup, conversation, prompt| {
        let mut command = program(setup);
        command.args(["--yolo", "--skip-trust"]);
        if conversation == Conversation::Continued {
            command.args(["--resume", "latest"]);
        }
        command.args(["-p", prompt]);
        command
    },
    write: |setup, path, text| {
        calls("write_file", &json!({"file_path": setup.absolute(path), "content": text}))
    },
    replace: |_, path, line, with| {
        let input = json!({
            "file_path": path, "old_string": line, "new_string": with, "instruction": "replace it",
        });
        calls("replace", &input)
    },
    run: |command| calls("run_shell_command", &json!({"command": command})),
    terminal: TerminalDriver {
        command: |setup| {
            let mut command = program(setup);
            command.arg("--skip-trust");
            command
        },
        ready: "Type your message",
        question: "Allow",
        allow: "1",
        refuse_command: ESC,
        refuse_edit: ESC,
        stop: &[ESC],
        stopped: "cancelled",
    },
};

fn program(setup: &AgentSetup) -> Command {
    let mut command = setup.program();
    command.env("GOOGLE_GEMINI_BASE_URL", setup.model.url()).env("GEMINI_API_KEY", "dummy");
    command
}

scenarios! { GEMINI =>
    a_session_is_taken_back_and_yours_stays,
    the_model_is_told_what_was_taken_back,
    a_refused_command_wrote_nothing(Duration::ZERO),
    a_deleted_store_is_shown,
    a_refused_edit_wrote_nothing,
    a_stopped_command_is_taken_back,
    while_a_command_waits_the_changes_are_yours,
}
