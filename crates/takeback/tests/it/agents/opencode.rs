//! opencode, with the plugin.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use takeback_agents::{AgentKind, HookProgram, OPENCODE, add_hooks};

use super::desk::Desk;
use super::stories;
use super::terminal::Seated;
use super::{Conversation, Driven, absolute, calls, is_taken_back_and_yours_stays};
use crate::chat::seat::{ENTER, ESC};

struct Opencode;

impl Driven for Opencode {
    const AGENT: &'static AgentKind = &OPENCODE;

    fn settle(desk: &Desk) {
        let folder = ".config/opencode";
        let provider = json!({
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": format!("{}/v1", desk.model.url()), "apiKey": "dummy"},
            "models": {"scripted": {"name": "scripted"}},
        });
        let config = json!({
            "autoupdate": false,
            "model": "scripted/scripted",
            "small_model": "scripted/scripted",
            "provider": {"scripted": provider},
            // Without a person before its terminal, `--auto` allows everything.
            "permission": {"bash": "ask", "edit": "ask"},
        });
        desk.settle(&format!("{folder}/opencode.json"), &config.to_string());
        // The server goes soon after the test.
        let ensure = r#""serve", "--ensure""#;
        let program = HookProgram { word: env!("CARGO_BIN_EXE_takeback"), runs: &|_| true };
        let plugin = add_hooks(&OPENCODE, None, &program).expect("a plugin").expect("a new one");
        let plugin = String::from_utf8(plugin).expect("text");
        assert!(plugin.contains(ensure));
        let plugin = plugin.replace(ensure, &format!(r#"{ensure}, "--idle-exit", "10""#));
        desk.settle(&format!("{folder}/plugins/takeback.js"), &plugin);
    }

    fn ask(desk: &Desk, conversation: Conversation, prompt: &str) -> Command {
        let mut command = program(desk);
        command.args(["run", "--auto"]);
        if conversation == Conversation::Goes {
            command.arg("--continue");
        }
        command.args(words(prompt));
        command
    }

    fn write(desk: &Desk, path: &str, text: &str) -> Vec<Value> {
        calls("write", &json!({"filePath": absolute(desk, path), "content": text}))
    }

    fn replace(desk: &Desk, path: &str, line: &str, with: &str) -> Vec<Value> {
        let path = absolute(desk, path);
        let mut says = calls("read", &json!({"filePath": path}));
        let edit = json!({"filePath": path, "oldString": line, "newString": with});
        says.extend(calls("edit", &edit));
        says
    }

    fn run(command: &str) -> Vec<Value> {
        calls("bash", &json!({"command": command, "description": "a command"}))
    }
}

impl Seated for Opencode {
    const TAKES_A_PROMPT: &'static str = "Ask anything";
    const ASKS: &'static str = "Permission required";
    const ALLOW: &'static str = ENTER;
    const REFUSE: [&'static str; 2] = [ESC, ESC];
    const STOP: &'static [&'static str] = &[ESC, ESC];
    const STOPPED: &'static str = "interrupted";

    fn sit(desk: &Desk) -> Command {
        program(desk)
    }
}

fn program(desk: &Desk) -> Command {
    let mut command = desk.program();
    command.env("OPENCODE_DISABLE_AUTOUPDATE", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
    command
}

/// A word with a space in it would be put between quotes.
fn words(prompt: &str) -> [String; 4] {
    let (said, script) = prompt.split_once(" <<LAB ").expect("a script");
    let script = script.strip_suffix(" LAB>>").expect("its end").replace(' ', "\\u0020");
    [said.to_owned(), "<<LAB".to_owned(), script, "LAB>>".to_owned()]
}

#[test]
fn a_session_of_opencode_is_taken_back_and_yours_stays() {
    is_taken_back_and_yours_stays::<Opencode>();
}

#[test]
fn while_a_command_waits_the_changes_are_yours() {
    stories::while_a_command_waits_the_changes_are_yours::<Opencode>();
}

#[test]
fn a_command_that_you_refuse_wrote_nothing() {
    stories::a_refused_command_wrote_nothing::<Opencode>(Duration::ZERO);
}

#[test]
fn an_edit_that_you_refuse_wrote_nothing() {
    stories::a_refused_edit_wrote_nothing::<Opencode>();
}

#[test]
fn a_command_that_you_stop_is_taken_back() {
    stories::a_stopped_command_is_taken_back::<Opencode>();
}
