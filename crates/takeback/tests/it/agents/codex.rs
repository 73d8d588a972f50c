//! Codex. Its newest models have one tool, to which they give a program that calls all others; older
//! ones call them one by one. Its hooks run only once somebody has trusted them, or with a flag.

use std::process::Command;

use serde_json::{Value, json};
use takeback_agents::hook::Plugged;

use super::desk::Desk;
use super::{Conversation, Driven, calls, is_taken_back_and_yours_stays};

struct Codex;

impl Driven for Codex {
    const AGENT: Plugged = Plugged::Codex;

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
    const AGENT: Plugged = Plugged::Codex;

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

fn settle(desk: &Desk, model: &str) {
    let url = desk.model.url();
    let config = format!(
        "model = \"{model}\"\nmodel_provider = \"scripted\"\n\
         [model_providers.scripted]\nname = \"scripted\"\nbase_url = \"{url}/v1\"\n\
         wire_api = \"responses\"\nenv_key = \"MODEL_KEY\"\n"
    );
    desk.settle(".codex/config.toml", &config);
    desk.init(Plugged::Codex);
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
