//! Claude Code, with its own hooks and without `chat`.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::setup::AgentSetup;
use super::terminal::TerminalDriver;
use super::{AgentDriver, Conversation, calls};
use crate::pty::ESC;

pub(super) static CLAUDE: AgentDriver = AgentDriver {
    kind: &takeback_agents::CLAUDE,
    configure: AgentSetup::init,
    command: |setup, conversation, prompt| {
        let mut command = program(setup);
        command.args(["--permission-mode", "acceptEdits", "--allowedTools", "Bash"]);
        if conversation == Conversation::Continued {
            command.arg("--continue");
        }
        command.args(["-p", prompt]);
        command
    },
    write: |setup, path, text| {
        calls("Write", &json!({"file_path": setup.absolute(path), "content": text}))
    },
    replace: |setup, path, line, with| {
        let path = setup.absolute(path);
        let input = json!({"file_path": path, "old_string": line, "new_string": with});
        // It edits only files that it has read.
        [calls("Read", &json!({"file_path": path})), calls("Edit", &input)].concat()
    },
    run: |command| calls("Bash", &json!({"command": command, "description": "run it"})),
    terminal: TerminalDriver {
        command: |setup| {
            setup.write_home(".claude.json", &completed_onboarding(setup).to_string());
            interactive(setup)
        },
        ready: "? for shortcuts",
        question: "Do you want to",
        allow: "1",
        refuse_command: ESC,
        refuse_edit: "3",
        stop: &[ESC],
        stopped: "What should Claude do",
    },
};

const FOLDER: &str = "CLAUDE_CONFIG_DIR";

/// Settings and transcripts in another folder than `~/.claude`, which only the program and `init` know.
static IN_OTHER_FOLDER: AgentDriver = AgentDriver {
    configure: |setup| {
        let mut init = setup.user.command(&["init", "--agent", "claude", "-y"]);
        init.env(FOLDER, setup.user.home().join("elsewhere"));
        let answer = setup.user.answer_of(init, "");
        assert_eq!(answer.code, 0, "{answer:?}");
    },
    terminal: TerminalDriver {
        command: |setup| {
            setup.write_home("elsewhere/.claude.json", &completed_onboarding(setup).to_string());
            let mut command = interactive(setup);
            command.env(FOLDER, setup.user.home().join("elsewhere"));
            command
        },
        ..CLAUDE.terminal
    },
    ..CLAUDE
};

/// The program's own file: the first questions are answered, the folder is trusted.
fn completed_onboarding(setup: &AgentSetup) -> Value {
    let work = setup.user.work().canonicalize().expect("it is there").display().to_string();
    json!({
        "hasCompletedOnboarding": true,
        "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
        "projects": {work: {"hasTrustDialogAccepted": true}},
    })
}

fn interactive(setup: &AgentSetup) -> Command {
    let mut command = program(setup);
    command.args(["--permission-mode", "default"]);
    command
}

fn program(setup: &AgentSetup) -> Command {
    let mut command = setup.program();
    command.env("ANTHROPIC_BASE_URL", setup.model.url()).env("ANTHROPIC_API_KEY", "dummy");
    let quiet = [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_TELEMETRY",
        "DISABLE_AUTOUPDATER",
        "DISABLE_ERROR_REPORTING",
    ];
    command.envs(quiet.map(|name| (name, "1")));
    command
}

/// Adds the user's own hook to those of `takeback`: a command after each edit.
fn add_formatter(setup: &AgentSetup, folder: &str, command: &str) {
    let path = format!("{folder}/settings.json");
    let settings = std::fs::read(setup.user.home().join(&path)).expect("there are settings");
    let mut settings: Value = serde_json::from_slice(&settings).expect("they are JSON");
    let hook = json!({"matcher": "Edit|Write", "hooks": [{"type": "command", "command": command}]});
    settings["hooks"]["PostToolUse"].as_array_mut().expect("there are hooks").push(hook);
    setup.write_home(&path, &settings.to_string());
}

fn run_in_background(command: &str) -> Vec<Value> {
    calls("Bash", &json!({"command": command, "description": "s", "run_in_background": true}))
}

fn subagent_in_background(prompt: &str) -> Vec<Value> {
    let input = json!({
        "description": "hired", "prompt": prompt, "subagent_type": "general-purpose",
        "run_in_background": true,
    });
    calls("Agent", &input)
}

scenarios! { CLAUDE =>
    a_session_is_taken_back_and_yours_stays,
    the_model_is_told_what_was_taken_back,
    a_refused_command_wrote_nothing(Duration::ZERO),
    a_deleted_store_is_shown,
    a_refused_edit_wrote_nothing,
    a_stopped_command_is_taken_back,
    after_a_stop_the_conversation_continues,
    while_a_command_waits_the_changes_are_yours,
    a_formatters_work_is_taken_back(|setup, command| add_formatter(setup, ".claude", command)),
    later_than_a_formatter_the_changes_are_yours(|setup, command| {
        add_formatter(setup, ".claude", command);
    }),
    while_a_server_runs_the_changes_are_yours(run_in_background),
    a_subagent_that_outlives_the_turn_is_taken_back(subagent_in_background),
}

mod in_other_folder {
    use super::{IN_OTHER_FOLDER, add_formatter};

    scenarios! { IN_OTHER_FOLDER =>
        a_refused_edit_wrote_nothing,
        a_formatters_work_is_taken_back(|setup, command| add_formatter(setup, "elsewhere", command)),
    }
}
