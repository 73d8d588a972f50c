//! pi, with the extension.

use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::scenarios::{authors, owned};
use super::setup::AgentSetup;
use super::terminal::TerminalDriver;
use super::{AgentDriver, Conversation, calls};
use crate::pty::{ENTER, ESC};

const EXTENSIONS: &str = ".pi/agent/extensions";

/// pi itself asks for no permission: extensions do. This one is loaded after Takeback's, which therefore
/// learns of a call before a person is asked about it.
const GATE: &str = r#"
export default (pi) => pi.on("tool_call", async ({ toolName, input }, { ui }) => {
  if (toolName === "read") return;
  const allowed = await ui.confirm("May it run?", input.command ?? input.path);
  if (!allowed) return { block: true, reason: "refused" };
});
"#;

pub(super) static PI: AgentDriver = AgentDriver {
    kind: &takeback_agents::PI,
    configure: |setup| {
        let provider = json!({
            "baseUrl": format!("{}/v1", setup.model.url()),
            "api": "openai-completions",
            "apiKey": "dummy",
            "models": [{"id": "scripted"}],
        });
        let models = json!({"providers": {"scripted": provider}});
        setup.write_home(".pi/agent/models.json", &models.to_string());
        setup.init();
        // So that the server ends soon after the test.
        let file = format!("{EXTENSIONS}/takeback.js");
        let extension = std::fs::read_to_string(setup.user.home().join(&file)).expect("installed");
        let ensure = r#""serve", "--ensure""#;
        assert!(extension.contains(ensure));
        let ensured = format!(r#"{ensure}, "--idle-exit", "10""#);
        setup.write_home(&file, &extension.replace(ensure, &ensured));
    },
    command: |setup, conversation, prompt| {
        let mut command = program(setup);
        command.arg("--print");
        if conversation == Conversation::Continued {
            command.arg("--continue");
        }
        command.arg(prompt);
        command
    },
    write: |_, path, text| calls("write", &json!({"path": path, "content": text})),
    replace: |_, path, line, with| {
        let edits = json!([{"oldText": line, "newText": with}]);
        calls("edit", &json!({"path": path, "edits": edits}))
    },
    run: |command| calls("bash", &json!({ "command": command })),
    terminal: TerminalDriver {
        command: |setup| {
            setup.write_home(&format!("{EXTENSIONS}/z-gate.js"), GATE);
            program(setup)
        },
        ready: "(auto)",
        question: "May it run?",
        allow: ENTER,
        refuse_command: ESC,
        refuse_edit: ESC,
        stop: &[ESC],
        stopped: "aborted",
    },
};

fn program(setup: &AgentSetup) -> Command {
    let mut command = setup.program();
    command.env("PI_OFFLINE", "1").env("PI_TELEMETRY", "0").args(["--model", "scripted/scripted"]);
    command
}

scenarios! { PI =>
    a_session_is_taken_back_and_yours_stays,
    the_model_is_told_what_was_taken_back,
    while_a_command_waits_the_changes_are_yours,
    a_refused_command_wrote_nothing(Duration::ZERO),
    a_refused_edit_wrote_nothing,
    a_stopped_command_is_taken_back,
}

/// pi does not count an `@` before a name as a part of it.
#[test]
fn a_file_that_is_named_with_an_at_sign_is_taken_back() {
    let Some(setup) = AgentSetup::new(&PI, &[("notes.txt", "one\n")]) else { return };
    let user = &setup.user;
    let before = user.tree();
    let script = [setup.replace("@notes.txt", "one", "two"), setup.write("@made.txt", "made\n")];
    setup.prompt(Conversation::New, "First", &script);
    assert_eq!((user.read("notes.txt"), user.read("made.txt")), ("two\n".into(), "made\n".into()));
    let expected = owned(&[("notes.txt", "agent"), ("made.txt", "agent")]);
    assert_eq!(authors(&user.json(&["show", "@"]), &setup.session()), expected);
    user.succeeds(&["rewind", "@", "-y"]);
    assert_eq!(user.tree(), before);
}
