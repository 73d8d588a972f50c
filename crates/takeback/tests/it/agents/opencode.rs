//! opencode, with the plugin.

use std::process::Command;
use std::time::Duration;

use serde_json::json;
use takeback_agents::{HookProgram, add_hooks};

use super::setup::AgentSetup;
use super::terminal::TerminalDriver;
use super::{AgentDriver, Conversation, calls};
use crate::pty::{ENTER, ESC};

static OPENCODE: AgentDriver = AgentDriver {
    kind: &takeback_agents::OPENCODE,
    configure,
    command: |setup, conversation, prompt| {
        let mut command = program(setup);
        command.args(["run", "--auto"]);
        if conversation == Conversation::Continued {
            command.arg("--continue");
        }
        command.args(words(prompt));
        command
    },
    write: |setup, path, text| {
        calls("write", &json!({"filePath": setup.absolute(path), "content": text}))
    },
    replace: |setup, path, line, with| {
        let path = setup.absolute(path);
        let edit = json!({"filePath": path, "oldString": line, "newString": with});
        [calls("read", &json!({"filePath": path})), calls("edit", &edit)].concat()
    },
    run: |command| calls("bash", &json!({"command": command, "description": "a command"})),
    terminal: TerminalDriver {
        command: program,
        ready: "Ask anything",
        question: "Permission required",
        allow: ENTER,
        refuse_command: ESC,
        refuse_edit: ESC,
        stop: &[ESC, ESC],
        stopped: "interrupted",
    },
};

fn configure(setup: &AgentSetup) {
    let folder = ".config/opencode";
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": format!("{}/v1", setup.model.url()), "apiKey": "dummy"},
        "models": {"scripted": {"name": "scripted"}},
    });
    let config = json!({
        "autoupdate": false,
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "provider": {"scripted": provider},
        // `--auto` allows everything where there is no terminal.
        "permission": {"bash": "ask", "edit": "ask"},
    });
    setup.write_home(&format!("{folder}/opencode.json"), &config.to_string());
    let program = HookProgram { word: env!("CARGO_BIN_EXE_takeback"), runs: &|_| true };
    let plugin =
        add_hooks(setup.driver.kind, None, &program).expect("a plugin").expect("a new one");
    let plugin = String::from_utf8(plugin).expect("text");
    // So that the server ends soon after the test.
    let ensure = r#""serve", "--ensure""#;
    assert!(plugin.contains(ensure));
    let plugin = plugin.replace(ensure, &format!(r#"{ensure}, "--idle-exit", "10""#));
    setup.write_home(&format!("{folder}/plugins/takeback.js"), &plugin);
}

fn program(setup: &AgentSetup) -> Command {
    let mut command = setup.program();
    command.env("OPENCODE_DISABLE_AUTOUPDATE", "1").env("OPENCODE_DISABLE_MODELS_FETCH", "1");
    command
}

/// opencode quotes arguments that contain a space.
fn words(prompt: &str) -> [String; 4] {
    let (text, script) = prompt.split_once(" <<LAB ").expect("a script");
    let script = script.strip_suffix(" LAB>>").expect("its end").replace(' ', "\\u0020");
    [text.to_owned(), "<<LAB".to_owned(), script, "LAB>>".to_owned()]
}

scenarios! { OPENCODE =>
    a_session_is_taken_back_and_yours_stays,
    the_model_is_told_what_was_taken_back,
    while_a_command_waits_the_changes_are_yours,
    a_refused_command_wrote_nothing(Duration::ZERO),
    a_refused_edit_wrote_nothing,
    a_stopped_command_is_taken_back,
}
