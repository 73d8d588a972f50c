//! Codex. Its newest models have one tool, to which they give a program that calls all others; older
//! ones call them one by one. Its hooks run only once the user has trusted them, or with a flag.

use std::process::Command;
use takeback_agents::{AgentKind, CODEX};

use serde_json::{Value, json};

use super::desk::Desk;
use super::stories;
use super::terminal::Seated;
use super::{Conversation, Driven, calls, is_taken_back_and_yours_stays};
use crate::chat::seat::ESC;

struct Codex;

impl Driven for Codex {
    const AGENT: &'static AgentKind = &CODEX;

    fn settle(desk: &Desk) {
        settle(desk, "gpt-6.1-sol");
    }

    fn ask(desk: &Desk, conversation: Conversation, prompt: &str) -> Command {
        let mut command = desk.program();
        command.env("MODEL_KEY", "dummy").arg("exec").args([
            "--skip-git-repo-check",
            "--dangerously-bypass-hook-trust",
            "--dangerously-bypass-approvals-and-sandbox",
        ]);
        if conversation == Conversation::Goes {
            command.args(["resume", "--last"]);
        }
        command.arg(prompt);
        command
    }

    fn write(_: &Desk, path: &str, text: &str) -> Vec<Value> {
        program("apply_patch", &json!(adding(path, text)))
    }

    fn replace(_: &Desk, path: &str, line: &str, with: &str) -> Vec<Value> {
        program("apply_patch", &json!(replacing(path, line, with)))
    }

    fn run(command: &str) -> Vec<Value> {
        program("exec_command", &json!({"cmd": command}))
    }
}

/// The same with a model that calls tools itself, and patches files with a command.
struct Older;

impl Driven for Older {
    const AGENT: &'static AgentKind = &CODEX;

    fn settle(desk: &Desk) {
        settle(desk, "gpt-5.5");
    }

    fn ask(desk: &Desk, conversation: Conversation, prompt: &str) -> Command {
        Codex::ask(desk, conversation, prompt)
    }

    fn write(_: &Desk, path: &str, text: &str) -> Vec<Value> {
        calls("apply_patch", &json!(adding(path, text)))
    }

    fn replace(_: &Desk, path: &str, line: &str, with: &str) -> Vec<Value> {
        Self::run(&format!("apply_patch <<'EOF'\n{}EOF", replacing(path, line, with)))
    }

    fn run(command: &str) -> Vec<Value> {
        calls("exec_command", &json!({"cmd": command}))
    }
}

/// The same in a terminal: it may only read, and asks for all else.
struct Asking;

impl Driven for Asking {
    const AGENT: &'static AgentKind = &CODEX;

    fn settle(desk: &Desk) {
        Older::settle(desk);
    }

    fn ask(desk: &Desk, conversation: Conversation, prompt: &str) -> Command {
        Older::ask(desk, conversation, prompt)
    }

    fn write(desk: &Desk, path: &str, text: &str) -> Vec<Value> {
        Older::write(desk, path, text)
    }

    fn replace(_: &Desk, path: &str, line: &str, with: &str) -> Vec<Value> {
        calls("apply_patch", &json!(replacing(path, line, with)))
    }

    fn run(command: &str) -> Vec<Value> {
        let input = json!({
            "cmd": command, "sandbox_permissions": "require_escalated", "justification": "it writes",
        });
        calls("exec_command", &input)
    }
}

impl Seated for Asking {
    const TAKES_A_PROMPT: &'static str = "? for shortcuts";
    const ASKS: &'static str = "Would you like to";
    const ALLOW: &'static str = "y";
    const REFUSE: [&'static str; 2] = [ESC, ESC];
    const STOP: &'static [&'static str] = &[ESC];
    const STOPPED: &'static str = "interrupted";

    fn sit(desk: &Desk) -> Command {
        let work = desk.user.work().canonicalize().expect("it is there");
        let path = desk.user.home().join(".codex/config.toml");
        let config = std::fs::read_to_string(path).expect("there is one");
        let config = format!(
            "approval_policy = \"on-request\"\nsandbox_mode = \"read-only\"\n{config}\
             [projects.{work:?}]\ntrust_level = \"trusted\"\n\
             [notice.model_migrations]\n\"gpt-5.5\" = \"gpt-6-sol\"\n"
        );
        desk.settle(".codex/config.toml", &config);
        let mut command = desk.program();
        command.env("MODEL_KEY", "dummy").arg("--dangerously-bypass-hook-trust");
        command
    }
}

fn settle(desk: &Desk, model: &str) {
    let url = desk.model.url();
    let config = format!(
        "model = \"{model}\"\nmodel_provider = \"scripted\"\n\
         [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{url}/v1\"\n\
         wire_api = \"responses\"\nenv_key = \"MODEL_KEY\"\n"
    );
    desk.settle(".codex/config.toml", &config);
    desk.init(&CODEX);
}

/// A program that calls one tool.
fn program(tool: &str, input: &Value) -> Vec<Value> {
    calls("exec", &json!(format!("text(await tools.{tool}({input}))")))
}

fn adding(path: &str, text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
    format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n")
}

fn replacing(path: &str, line: &str, with: &str) -> String {
    format!("*** Begin Patch\n*** Update File: {path}\n@@\n-{line}\n+{with}\n*** End Patch\n")
}

#[test]
fn a_session_of_codex_is_taken_back_and_yours_stays() {
    is_taken_back_and_yours_stays::<Codex>();
}

#[test]
fn patches_that_codex_applies_in_commands_are_taken_back_and_yours_stays() {
    is_taken_back_and_yours_stays::<Older>();
}

#[test]
fn a_command_that_you_refuse_wrote_nothing() {
    stories::a_refused_command_wrote_nothing::<Asking>(stories::A_MOMENT);
}

#[test]
fn an_edit_that_you_refuse_wrote_nothing() {
    stories::a_refused_edit_wrote_nothing::<Asking>();
}

#[test]
fn while_a_command_waits_for_you_the_changes_are_yours() {
    stories::while_a_command_waits_the_changes_are_yours::<Asking>();
}

/// Its transcript says the same of a command that was refused and of one that was killed.
#[test]
fn a_command_that_you_stop_at_once_is_unclear() {
    stories::a_stopped_command_is_unclear::<Asking>();
}
