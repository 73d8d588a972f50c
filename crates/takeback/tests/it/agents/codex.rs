//! Codex. Its newest models have one tool, which runs a program that calls all others; older models call
//! them one by one. Its hooks run only once the user has trusted them, or with a flag.

use serde_json::{Value, json};

use super::scenarios::A_MOMENT;
use super::setup::AgentSetup;
use super::terminal::TerminalDriver;
use super::{AgentDriver, Conversation, calls};
use crate::pty::ESC;

pub(super) static CODEX: AgentDriver = AgentDriver {
    kind: &takeback_agents::CODEX,
    configure: |setup| configure(setup, "gpt-6.1-sol"),
    command: |setup, conversation, prompt| {
        let mut command = setup.program();
        command.env("MODEL_KEY", "dummy").arg("exec").args([
            "--skip-git-repo-check",
            "--dangerously-bypass-hook-trust",
            "--dangerously-bypass-approvals-and-sandbox",
        ]);
        if conversation == Conversation::Continued {
            command.args(["resume", "--last"]);
        }
        command.arg(prompt);
        command
    },
    write: |_, path, text| program("apply_patch", &json!(adding(path, text))),
    replace: |_, path, line, with| program("apply_patch", &json!(replacing(path, line, with))),
    run: |command| program("exec_command", &json!({"cmd": command})),
    terminal: TerminalDriver {
        command: |setup| {
            let work = setup.user.work().canonicalize().expect("it is there");
            let path = setup.user.home().join(".codex/config.toml");
            let config = std::fs::read_to_string(path).expect("there is one");
            let config = format!(
                "approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"\n{config}\
                 [projects.{work:?}]\ntrust_level = \"trusted\"\n\
                 [notice.model_migrations]\n\"gpt-5.5\" = \"gpt-6-sol\"\n"
            );
            setup.write_home(".codex/config.toml", &config);
            let mut command = setup.program();
            command.env("MODEL_KEY", "dummy").arg("--dangerously-bypass-hook-trust");
            command
        },
        ready: "? for shortcuts",
        question: "Would you like to",
        allow: "y",
        refuse_command: ESC,
        refuse_edit: ESC,
        stop: &[ESC],
        stopped: "interrupted",
    },
};

/// A model that calls tools itself, and patches files with a command.
static OLDER_MODEL: AgentDriver = AgentDriver {
    configure: |setup| configure(setup, "gpt-5.5"),
    write: |_, path, text| calls("apply_patch", &json!(adding(path, text))),
    replace: |_, path, line, with| {
        exec_command(&format!("apply_patch <<'EOF'\n{}EOF", replacing(path, line, with)))
    },
    run: exec_command,
    ..CODEX
};

/// The same model in a terminal, where it may only read and asks before everything else.
static WITH_PERMISSIONS: AgentDriver = AgentDriver {
    replace: |_, path, line, with| calls("apply_patch", &json!(replacing(path, line, with))),
    run: |command| {
        let input = json!({
            "cmd": command, "sandbox_permissions": "require_escalated", "justification": "it writes",
        });
        calls("exec_command", &input)
    },
    ..OLDER_MODEL
};

fn configure(setup: &AgentSetup, model: &str) {
    let url = setup.model.url();
    let config = format!(
        "model = \"{model}\"\nmodel_provider = \"scripted\"\n\
         [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{url}/v1\"\n\
         wire_api = \"responses\"\nenv_key = \"MODEL_KEY\"\n"
    );
    setup.write_home(".codex/config.toml", &config);
    setup.init();
}

/// A program that calls one tool.
fn program(tool: &str, input: &Value) -> Vec<Value> {
    calls("exec", &json!(format!("text(await tools.{tool}({input}))")))
}

fn exec_command(command: &str) -> Vec<Value> {
    calls("exec_command", &json!({"cmd": command}))
}

fn adding(path: &str, text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
    format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n")
}

fn replacing(path: &str, line: &str, with: &str) -> String {
    format!("*** Begin Patch\n*** Update File: {path}\n@@\n-{line}\n+{with}\n*** End Patch\n")
}

scenarios! { CODEX =>
    a_session_is_taken_back_and_yours_stays,
    the_model_is_told_what_was_taken_back,
    the_model_is_warned_before_it_overwrites,
}

mod older_model {
    scenarios! { super::OLDER_MODEL => a_session_is_taken_back_and_yours_stays }
}

scenarios! { WITH_PERMISSIONS =>
    a_refused_command_wrote_nothing(A_MOMENT),
    a_refused_edit_wrote_nothing,
    while_a_command_waits_the_changes_are_yours,
    // The transcript does not distinguish a refused command from a killed one.
    a_stopped_command_is_unclear,
}
