//! Claude Code, with its own hooks and without `chat`.

use std::process::Command;
use std::time::Duration;
use takeback_agents::{AgentKind, CLAUDE};

use serde_json::{Value, json};

use super::desk::Desk;
use super::stories;
use super::terminal::Seated;
use super::{Conversation, Driven, absolute, calls, is_taken_back_and_yours_stays};
use crate::chat::seat::ESC;

struct Claude;

impl Driven for Claude {
    const AGENT: &'static AgentKind = &CLAUDE;

    fn settle(desk: &Desk) {
        desk.init(Self::AGENT);
    }

    fn ask(desk: &Desk, conversation: Conversation, prompt: &str) -> Command {
        let mut command = program(desk);
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

impl Seated for Claude {
    const TAKES_A_PROMPT: &'static str = "? for shortcuts";
    const ASKS: &'static str = "Do you want to";
    const ALLOW: &'static str = "1";
    const REFUSE: [&'static str; 2] = [ESC, "3"];
    const STOP: &'static [&'static str] = &[ESC];
    const STOPPED: &'static str = "What should Claude do";

    fn sit(desk: &Desk) -> Command {
        desk.settle(".claude.json", &known(desk).to_string());
        let mut command = program(desk);
        command.args(["--permission-mode", "default"]);
        command
    }
}

/// What the program remembers of the person: the first questions are answered, the folder is trusted.
fn known(desk: &Desk) -> Value {
    let work = desk.user.work().canonicalize().expect("it is there").display().to_string();
    json!({
        "hasCompletedOnboarding": true,
        "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
        "projects": {work: {"hasTrustDialogAccepted": true}},
    })
}

/// The same with its settings and transcripts in another folder than `~/.claude`, of which only the
/// program and `init` are told.
struct Elsewhere;

const FOLDER: &str = "CLAUDE_CONFIG_DIR";

impl Driven for Elsewhere {
    const AGENT: &'static AgentKind = &CLAUDE;

    fn settle(desk: &Desk) {
        let mut init = desk.user.command(&["init", "--agent", "claude", "-y"]);
        init.env(FOLDER, desk.user.home().join("elsewhere"));
        let answer = desk.user.answer_of(init, "");
        assert_eq!(answer.code, 0, "{answer:?}");
    }

    fn ask(desk: &Desk, conversation: Conversation, prompt: &str) -> Command {
        Claude::ask(desk, conversation, prompt)
    }

    fn write(desk: &Desk, path: &str, text: &str) -> Vec<Value> {
        Claude::write(desk, path, text)
    }

    fn replace(desk: &Desk, path: &str, line: &str, with: &str) -> Vec<Value> {
        Claude::replace(desk, path, line, with)
    }

    fn run(command: &str) -> Vec<Value> {
        Claude::run(command)
    }
}

impl Seated for Elsewhere {
    const TAKES_A_PROMPT: &'static str = Claude::TAKES_A_PROMPT;
    const ASKS: &'static str = Claude::ASKS;
    const ALLOW: &'static str = Claude::ALLOW;
    const REFUSE: [&'static str; 2] = Claude::REFUSE;
    const STOP: &'static [&'static str] = Claude::STOP;
    const STOPPED: &'static str = Claude::STOPPED;

    fn sit(desk: &Desk) -> Command {
        desk.settle("elsewhere/.claude.json", &known(desk).to_string());
        let mut command = Claude::sit(desk);
        command.env(FOLDER, desk.user.home().join("elsewhere"));
        command
    }
}

fn program(desk: &Desk) -> Command {
    let mut command = desk.program();
    command.env("ANTHROPIC_BASE_URL", desk.model.url()).env("ANTHROPIC_API_KEY", "dummy");
    let quiet = [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_TELEMETRY",
        "DISABLE_AUTOUPDATER",
        "DISABLE_ERROR_REPORTING",
    ];
    command.envs(quiet.map(|name| (name, "1")));
    command
}

#[test]
fn a_session_of_claude_code_is_taken_back_and_yours_stays() {
    is_taken_back_and_yours_stays::<Claude>();
}

#[test]
fn a_command_that_you_refuse_wrote_nothing() {
    stories::a_refused_command_wrote_nothing::<Claude>(Duration::ZERO);
}

#[test]
fn a_deleted_store_is_shown() {
    stories::a_deleted_store_is_shown::<Claude>();
}

#[test]
fn an_edit_that_you_refuse_wrote_nothing() {
    stories::a_refused_edit_wrote_nothing::<Claude>();
}

#[test]
fn a_command_that_you_stop_is_taken_back() {
    stories::a_stopped_command_is_taken_back::<Claude>();
}

#[test]
fn after_a_stop_the_conversation_goes_on() {
    stories::after_a_stop_the_conversation_goes_on::<Claude>();
}

#[test]
fn while_a_command_waits_for_you_the_changes_are_yours() {
    stories::while_a_command_waits_the_changes_are_yours::<Claude>();
}

#[test]
fn a_formatters_work_is_taken_back() {
    stories::a_formatters_work_is_taken_back::<Claude>(|desk, command| {
        formats(desk, ".claude", command);
    });
}

#[test]
fn later_than_a_formatter_the_changes_are_yours() {
    stories::later_than_a_formatter_the_changes_are_yours::<Claude>(|desk, command| {
        formats(desk, ".claude", command);
    });
}

/// Puts a hook of the user's own beside those of `takeback`.
fn formats(desk: &Desk, folder: &str, command: &str) {
    let path = format!("{folder}/settings.json");
    let settings = std::fs::read(desk.user.home().join(&path)).expect("there are settings");
    let mut settings: Value = serde_json::from_slice(&settings).expect("they are JSON");
    let hook = json!({"matcher": "Edit|Write", "hooks": [{"type": "command", "command": command}]});
    settings["hooks"]["PostToolUse"].as_array_mut().expect("there are hooks").push(hook);
    desk.settle(&path, &settings.to_string());
}

#[test]
fn beside_a_server_the_changes_are_yours() {
    stories::beside_a_server_the_changes_are_yours::<Claude>(|command| {
        calls("Bash", &json!({"command": command, "description": "s", "run_in_background": true}))
    });
}

#[test]
fn a_subagent_that_outlives_the_turn_is_taken_back() {
    stories::a_subagent_that_outlives_the_turn_is_taken_back::<Claude>(|prompt| {
        let input = json!({
            "description": "hired", "prompt": prompt, "subagent_type": "general-purpose",
            "run_in_background": true,
        });
        calls("Agent", &input)
    });
}

#[test]
fn with_its_folder_elsewhere_what_you_refuse_wrote_nothing() {
    stories::a_refused_edit_wrote_nothing::<Elsewhere>();
}

#[test]
fn with_its_folder_elsewhere_a_formatters_work_is_taken_back() {
    stories::a_formatters_work_is_taken_back::<Elsewhere>(|desk, command| {
        formats(desk, "elsewhere", command);
    });
}
