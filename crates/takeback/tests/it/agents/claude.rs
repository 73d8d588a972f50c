//! Claude Code, with its own hooks and without `chat`.

use std::process::Command;

use serde_json::{Value, json};
use takeback_agents::hook::Plugged;

use super::desk::Desk;
use super::stories;
use super::terminal::Seated;
use super::{Conversation, Driven, absolute, calls, is_taken_back_and_yours_stays};
use crate::chat::seat::ESC;

struct Claude;

impl Driven for Claude {
    const AGENT: Plugged = Plugged::Claude;

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
        let work = desk.user.work().canonicalize().expect("it is there").display().to_string();
        let settings = json!({
            "hasCompletedOnboarding": true,
            "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
            "projects": {work: {"hasTrustDialogAccepted": true}},
        });
        desk.settle(".claude.json", &settings.to_string());
        let mut command = program(desk);
        command.args(["--permission-mode", "default"]);
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
    stories::a_refused_command_wrote_nothing::<Claude>();
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
    stories::a_formatters_work_is_taken_back::<Claude>(formats);
}

#[test]
fn later_than_a_formatter_the_changes_are_yours() {
    stories::later_than_a_formatter_the_changes_are_yours::<Claude>(formats);
}

/// Puts a hook of the user's own beside those of `takeback`.
fn formats(desk: &Desk, command: &str) {
    let path = desk.user.home().join(".claude/settings.json");
    let settings = std::fs::read(path).expect("there are settings");
    let mut settings: Value = serde_json::from_slice(&settings).expect("they are JSON");
    let hook = json!({"matcher": "Edit|Write", "hooks": [{"type": "command", "command": command}]});
    settings["hooks"]["PostToolUse"].as_array_mut().expect("there are hooks").push(hook);
    desk.settle(".claude/settings.json", &settings.to_string());
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
