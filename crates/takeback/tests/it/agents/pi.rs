//! pi, with the extension.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use takeback_agents::{AgentKind, PI};

use super::desk::Desk;
use super::stories;
use super::terminal::Seated;
use super::{Conversation, Driven, authors, calls, is_taken_back_and_yours_stays, named};
use crate::chat::seat::{ENTER, ESC};

struct Pi;

const EXTENSIONS: &str = ".pi/agent/extensions";

impl Driven for Pi {
    const AGENT: &'static AgentKind = &PI;

    fn settle(desk: &Desk) {
        let provider = json!({
            "baseUrl": format!("{}/v1", desk.model.url()),
            "api": "openai-completions",
            "apiKey": "dummy",
            "models": [{"id": "scripted"}],
        });
        let models = json!({"providers": {"scripted": provider}});
        desk.settle(".pi/agent/models.json", &models.to_string());
        desk.init(Self::AGENT);
        // The server goes soon after the test.
        let file = format!("{EXTENSIONS}/takeback.js");
        let extension = std::fs::read_to_string(desk.user.home().join(&file)).expect("it is there");
        let ensure = r#""serve", "--ensure""#;
        assert!(extension.contains(ensure));
        let ensured = format!(r#"{ensure}, "--idle-exit", "10""#);
        desk.settle(&file, &extension.replace(ensure, &ensured));
    }

    fn ask(desk: &Desk, conversation: Conversation, prompt: &str) -> Command {
        let mut command = program(desk);
        command.arg("--print");
        if conversation == Conversation::Goes {
            command.arg("--continue");
        }
        command.arg(prompt);
        command
    }

    fn write(_: &Desk, path: &str, text: &str) -> Vec<Value> {
        calls("write", &json!({"path": path, "content": text}))
    }

    fn replace(_: &Desk, path: &str, line: &str, with: &str) -> Vec<Value> {
        let edits = json!([{"oldText": line, "newText": with}]);
        calls("edit", &json!({"path": path, "edits": edits}))
    }

    fn run(command: &str) -> Vec<Value> {
        calls("bash", &json!({ "command": command }))
    }
}

/// pi itself asks for no permission: extensions do. This one is loaded after Takeback's, which therefore
/// learns of a call before a person is asked about it.
const GATE: &str = r#"
export default (pi) => pi.on("tool_call", async ({ toolName, input }, { ui }) => {
  if (toolName === "read") return;
  const allowed = await ui.confirm("May it run?", input.command ?? input.path);
  if (!allowed) return { block: true, reason: "refused" };
});
"#;

impl Seated for Pi {
    const TAKES_A_PROMPT: &'static str = "(auto)";
    const ASKS: &'static str = "May it run?";
    const ALLOW: &'static str = ENTER;
    const REFUSE: [&'static str; 2] = [ESC, ESC];
    const STOP: &'static [&'static str] = &[ESC];
    const STOPPED: &'static str = "aborted";

    fn sit(desk: &Desk) -> Command {
        desk.settle(&format!("{EXTENSIONS}/z-gate.js"), GATE);
        program(desk)
    }
}

fn program(desk: &Desk) -> Command {
    let mut command = desk.program();
    command.env("PI_OFFLINE", "1").env("PI_TELEMETRY", "0").args(["--model", "scripted/scripted"]);
    command
}

#[test]
fn a_session_of_pi_is_taken_back_and_yours_stays() {
    is_taken_back_and_yours_stays::<Pi>();
}

#[test]
fn while_a_command_waits_the_changes_are_yours() {
    stories::while_a_command_waits_the_changes_are_yours::<Pi>();
}

#[test]
fn a_command_that_you_refuse_wrote_nothing() {
    stories::a_refused_command_wrote_nothing::<Pi>(Duration::ZERO);
}

#[test]
fn an_edit_that_you_refuse_wrote_nothing() {
    stories::a_refused_edit_wrote_nothing::<Pi>();
}

#[test]
fn a_command_that_you_stop_is_taken_back() {
    stories::a_stopped_command_is_taken_back::<Pi>();
}

/// pi does not count an `@` before a name as a part of it.
#[test]
fn a_file_that_is_named_with_an_at_sign_is_taken_back() {
    let Some(desk) = Desk::of::<Pi>(&[("notes.txt", "one\n")]) else { return };
    let user = &desk.user;
    let before = user.tree();
    let script =
        [Pi::replace(&desk, "@notes.txt", "one", "two"), Pi::write(&desk, "@made.txt", "made\n")];
    desk.ask::<Pi>(Conversation::New, "First", &script.concat());
    assert_eq!((user.read("notes.txt"), user.read("made.txt")), ("two\n".into(), "made\n".into()));
    let expected = named(&[("notes.txt", "agent"), ("made.txt", "agent")]);
    assert_eq!(authors(&user.json(&["show", "@"]), &desk.session::<Pi>()), expected);
    let answer = user.takeback(&["rewind", "@", "-y"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(user.tree(), before);
}
