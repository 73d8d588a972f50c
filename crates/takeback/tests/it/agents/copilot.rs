//! Copilot CLI. It always runs the user's hooks, but a project's only in a trusted folder.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::setup::AgentSetup;
use super::terminal::TerminalDriver;
use super::{AgentDriver, Conversation, calls};
use crate::pty::{ENTER, ESC};

static COPILOT: AgentDriver = AgentDriver {
    kind: &takeback_agents::COPILOT,
    configure: AgentSetup::init,
    command: |setup, conversation, prompt| {
        let mut command = program(setup);
        command.args(["--allow-all-tools", "-p", prompt]);
        if conversation == Conversation::Continued {
            command.arg("--continue");
        }
        command
    },
    write: |setup, path, text| {
        let create = calls("create", &json!({"path": setup.absolute(path), "file_text": text}));
        // The tool creates no folders.
        match path.rsplit_once('/') {
            Some((folder, _)) => [bash(&format!("mkdir -p {folder}")), create].concat(),
            None => create,
        }
    },
    replace: |setup, path, line, with| {
        let path = setup.absolute(path);
        calls("edit", &json!({"path": path, "old_str": line, "new_str": with}))
    },
    run: bash,
    terminal: TerminalDriver {
        command: |setup| {
            let work = setup.user.work().canonicalize().expect("it is there");
            let settings =
                json!({"trustedFolders": [work], "banner": "never", "appTipShown": true});
            setup.write_home(".copilot/config.json", &settings.to_string());
            program(setup)
        },
        ready: "? help",
        question: "Do you want",
        allow: ENTER,
        refuse_command: ESC,
        refuse_edit: ESC,
        stop: &[ESC, ESC],
        stopped: "cancelled",
    },
};

fn bash(command: &str) -> Vec<Value> {
    calls("bash", &json!({"command": command, "description": "a command"}))
}

fn program(setup: &AgentSetup) -> Command {
    let mut command = setup.program();
    command
        .env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", setup.model.url()))
        .env("COPILOT_MODEL", "scripted")
        .env("COPILOT_OFFLINE", "true");
    command
}

scenarios! { COPILOT =>
    a_session_is_taken_back_and_yours_stays,
    the_model_is_told_what_was_taken_back,
    the_model_is_warned_before_it_overwrites,
    a_refused_command_wrote_nothing(Duration::ZERO),
    a_refused_edit_wrote_nothing,
    a_stopped_command_is_taken_back,
    after_a_stop_the_conversation_continues,
    while_a_command_waits_the_changes_are_yours,
}
