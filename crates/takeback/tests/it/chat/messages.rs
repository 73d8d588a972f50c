//! The fixed messages, word for word and in their colours.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::rewind_menu::after_a_step;
use super::two_prompts::{after_two_prompts, start_scenario, start_turns};
use crate::pty::{A_WHILE, DOWN, ENTER, ESC, Terminal, TerminalOptions};
use crate::user::User;

const GREEN: vt100::Color = vt100::Color::Idx(2);
const RED: vt100::Color = vt100::Color::Idx(1);
const VARIABLE: &str = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";
const WARNING: &str = "Warning: File checkpointing enabled but environment variable not set";
const ADVICE: &str = "Set CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=1 to enable SDK checkpointing";

/// Starts and ends a session, and returns its standard error.
pub(super) fn errors_at_start(place: TerminalOptions<'_>) -> String {
    let file = place.user.home().join("errors");
    let mut chat = place.errors_to(file.clone()).start(&["chat", "--agent", "builtin"]);
    chat.sees("builtin").exits();
    std::fs::read_to_string(file).expect("it was made")
}

pub(super) fn log_of(user: &User) -> String {
    std::fs::read_to_string(user.home().join(".takeback/logs/chat.log")).unwrap_or_default()
}

/// Writes a shell script that replaces `claude`.
pub(super) fn program(user: &User, line: &str) -> String {
    let file = user.home().join("program.sh");
    std::fs::write(&file, format!("#!/bin/sh\n{line}\n")).expect("a program");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("it is one");
    file.display().to_string()
}

/// An agent that exits at once, a point, and another agent's change after it.
fn without_an_agent(user: &User) -> Terminal {
    let program = program(user, "exit 0");
    let mut chat =
        user.terminal(80, 24).start(&["chat", "--agent", "claude", "--program", &program]);
    chat.sees("The agent has exited").says("/checkpoint before").sees("“before”");
    let edit = ("Edit", &["a.txt"][..]);
    user.agent_turn("m1", "make it two", edit, || user.write("a.txt", "two\n"));
    chat.types(ESC).types(ESC).sees("[before]").types(DOWN).sees("> 1 ").types(ENTER);
    chat.sees("a.txt").types(ENTER).sees("Restore what?").types(ENTER);
    chat.sees("Restore failed: No active query session. Cannot restore checkpoint.");
    assert_eq!(chat.colour_of("Restore failed"), RED);
    assert_eq!(user.read("a.txt"), "two\n", "nothing was changed");
    chat.sees("files only, from Takeback's own copy");
    chat
}

#[test]
fn a_settings_file_without_the_variable_makes_two_warning_lines() {
    let user = User::new();
    assert_eq!(errors_at_start(user.terminal(80, 24)), "", "by default nothing is to be said");
    user.set(r#"{"enableFileCheckpointing": true}"#);
    assert_eq!(errors_at_start(user.terminal(80, 24)), format!("{WARNING}\n{ADVICE}\n"));
    assert_eq!(errors_at_start(user.terminal(80, 24).with(VARIABLE, "1")), "");
    user.set(r#"{"enableFileCheckpointing": false}"#);
    assert_eq!(errors_at_start(user.terminal(80, 24)), "", "checkpoints are off");

    let user = User::new();
    user.write(".takeback/settings.json", r#"{"enableFileCheckpointing": true}"#);
    assert_eq!(errors_at_start(user.terminal(80, 24)), format!("{WARNING}\n{ADVICE}\n"));
}

#[test]
fn the_warning_is_printed_before_the_session() {
    let user = User::new();
    user.set(r#"{"enableFileCheckpointing": true}"#);
    let mut chat = user.terminal(80, 24).start(&["chat", "--agent", "builtin"]);
    chat.sees("builtin");
    let ever = chat.ever();
    let at = |what: &str| ever.find(what).unwrap_or_else(|| panic!("no {what:?} in {ever:?}"));
    assert!(at(WARNING) < at(ADVICE) && at(ADVICE) < at("\x1b[?1049h"), "{ever:?}");
}

#[test]
fn checkpoint_feature_not_enabled() {
    let user = User::new();
    user.set(r#"{"enableFileCheckpointing": false}"#);
    let said = "Checkpoint feature not enabled";
    let mut chat = start_scenario(&user, &[]);
    chat.sees("not recorded").types(ESC).types(ESC).sees(said);
    chat.says("/rewind").sees_times(2, said);
    chat.says("/checkpoint x").sees_times(3, said);
    chat.says("/restore @").sees_times(4, said);
    chat.says("Create a file").sees("It has add and subtract.");
    chat.types(ESC).types(ESC).sees_times(5, said);
    assert!(!chat.shown().contains("(current)"), "{}", chat.shown());
    assert_eq!(chat.colour_of(said), vt100::Color::Idx(3), "a warning");
    assert_eq!(user.json(&["log"]), json!([]));
    let sessions = user.home().join(".takeback/sessions");
    assert!(!sessions.exists(), "there is no list either");
}

#[test]
fn no_checkpoints_available() {
    let user = User::new();
    let mut chat = user.terminal(80, 24).start(&["chat", "--agent", "builtin"]);
    chat.sees("builtin").types(ESC).types(ESC).sees("No checkpoints available");
    assert_eq!(chat.colour_of("No checkpoints"), vt100::Color::Idx(3), "a warning");
    for (times, name) in [(1, "/checkpoint"), (2, "/rewind"), (3, "/restore")] {
        chat.says(name).sees_times(times, "No checkpoints found.");
    }
    assert_eq!(chat.colour_of("No checkpoints found."), vt100::Color::Idx(3), "a warning");
    chat.sees_times(1, "No checkpoints available");
    chat.says("/rewind nothing").sees("Checkpoint nothing not found");
    assert!(!chat.shown().contains("(current)"), "{}", chat.shown());
}

#[test]
fn without_points_the_menu_opens_on_the_executions() {
    let user = User::with(&[("a.txt", "zero\n")]);
    for (step, status) in [(1, "success"), (2, "failed")] {
        let state = json!({ "execution_id": "build", "step_index": step, "status": status,
            "step_name": format!("step {step}"), "state": { "n": step }, "context": {} });
        let saved = user.feed(&["-q", "state", "save"], &state.to_string());
        assert_eq!(saved.code, 0, "{saved:?}");
    }
    let mut chat = user.terminal(80, 24).start(&["chat", "--agent", "builtin"]);
    chat.sees("builtin");
    let opens = |chat: &mut Terminal| {
        chat.sees("[executions]").sees("> 0 (current)").sees("Restore build").sees("Step: step 1");
        let own = chat.shown().lines().filter(|line| line.contains("Restore ")).count();
        assert_eq!(own, 1, "this session has not done anything:\n{}", chat.shown());
    };
    for command in ["/checkpoint", "/rewind", "/restore"] {
        chat.says(command);
        opens(&mut chat);
        chat.types(ESC).sees_no("[executions]");
    }
    chat.types(ESC).types(ESC);
    opens(&mut chat);
    chat.types(DOWN).types(ENTER).sees("enter continue").types(ENTER);
    chat.sees("Restore state and files?").types(ENTER).sees("Restored to checkpoint: build");
    let listed = user.json(&["state", "list"]);
    let mut listed = listed.as_array().expect("a list").iter();
    let build = listed.find(|one| one["execution_id"] == "build").expect("it is listed");
    assert_eq!(build["head"]["id"], "ckpt-build-1", "{build}");
}

#[test]
fn restored_is_green_and_logged() {
    let (user, mut chat) = after_two_prompts();
    chat.goes_back_to("1").sees("Restored to checkpoint: Add multiply and divide functions");
    assert_eq!(chat.colour_of("Restored to"), GREEN);
    assert!(log_of(&user).contains("restored to checkpoint"), "{}", log_of(&user));
}

#[test]
fn a_conflict_is_red_and_logged_and_the_conversation_is_not_cut() {
    let (user, mut chat) = after_two_prompts();
    let theirs = user.read("utils.ts").replace("a * b", "b * a");
    user.write("utils.ts", &theirs);
    chat.opens_the_menu().types("1").sees("conflict");
    chat.goes_back().sees("Restore failed: kept utils.ts (you changed it too)");
    assert_eq!(chat.colour_of("Restore failed"), RED);
    assert!(!chat.ever().contains("Restored to checkpoint"));
    chat.sees("--exact` undoes your changes too").sees("divide too.").sees("Type a prompt");
    assert_eq!(user.read("utils.ts"), theirs);
    let log = log_of(&user);
    let line = log.lines().last().expect("a line");
    let why = "restore failed: kept utils.ts (you changed it too)";
    assert!(line.contains(" ERROR ") && line.ends_with(why), "{log}");
}

#[test]
fn without_a_live_agent_takebacks_own_copies_are_offered() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut chat = without_an_agent(&user);
    chat.look(A_WHILE).types("y").sees("Restored to checkpoint: before");
    assert_eq!(chat.colour_of("Restored to"), GREEN);
    assert_eq!(user.read("a.txt"), "one\n");
    assert!(log_of(&user).contains("No active query session. Cannot restore checkpoint."));
}

#[test]
fn without_a_live_agent_nothing_is_restored_unasked() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut chat = without_an_agent(&user);
    chat.types("n").sees_no("y yes").says("/status").sees("points");
    assert_eq!(user.read("a.txt"), "two\n");
    assert!(!chat.ever().contains("Restored to checkpoint"));
    chat.says("Do something").sees("Command execution failed: ").sees("> Do something");
}

#[test]
fn a_step_of_an_execution_is_restored() {
    let user = after_a_step();
    let mut chat = user.terminal(80, 24).start(&["chat", "--agent", "builtin"]);
    chat.sees("builtin").types(ESC).types(ESC).sees("Checkpoints").types("\t");
    chat.sees("Restore build").sees("Step: compile").types("/").types("build");
    chat.sees_no("Step: start").types(ENTER).sees("enter continue").types(ENTER);
    chat.sees("Restore state and files?").types(ENTER).sees("Restored to checkpoint: build");
    assert_eq!(chat.colour_of("Restored to"), GREEN);
    assert_eq!(user.read("a.txt"), "one\n");

    user.write("a.txt", "three\n");
    chat.says("/restore ckpt-build-7").sees("Restore failed: Checkpoint ckpt-build-7 not found");
    chat.says("/rewind nowhere").sees("Command execution failed: Checkpoint nowhere not found");
    assert_eq!(user.read("a.txt"), "three\n");
}

#[test]
fn a_failing_command_is_reported_and_the_session_continues() {
    let (user, mut chat) = after_two_prompts();
    chat.says("/rewnd").sees("Command execution failed: there is no command /rewnd; did you mean");
    chat.sees("/rewind?");
    assert_eq!(chat.colour_of("Command execution failed"), RED);
    chat.says("/undo").sees("Command execution failed: there is no rewind to undo");
    chat.says("/load").sees("Command execution failed: /load needs a name");
    chat.opens_the_menu().types(ESC).sees("Exited checkpoint selection.");
    assert_eq!(user.read("utils.ts").matches("function").count(), 4);
    assert!(log_of(&user).contains("command failed: /load needs a name"), "{}", log_of(&user));
}

#[test]
fn a_failing_tool_is_red() {
    let user = User::new();
    let turns = json!({ "turns": [{ "steps": [
        { "tool": "shell", "input": { "command": "echo no such thing; exit 4" } },
        { "say": "That did not work." },
    ] }] });
    let mut chat = start_turns(&user, &turns);
    chat.says("try it").sees("exit 4: no such thing").sees("did not work.");
    assert_eq!((chat.colour_of("◆ $ echo"), chat.colour_of("exit 4:")), (RED, RED));
}

#[test]
fn a_missing_agent_is_named() {
    let user = User::new();
    for (args, why) in [
        (
            &["--agent", "claude", "--program", "/nowhere/claude"][..],
            "/nowhere/claude is not a program",
        ),
        // A named program excludes other agents.
        (&["--program", "/nowhere/claude"], "/nowhere/claude is not a program"),
        (&["--agent", "claude"], "`claude` was not found"),
    ] {
        let mut chat = user.terminal(80, 24).start(&[&["chat"], args].concat());
        assert_eq!(chat.ends(), 125, "{}", chat.shown());
        let said = chat.shown();
        assert!(said.contains(why) && said.contains("--agent builtin"), "{said}");
    }
    user.exits(2, &["chat"]).reports("chat needs a terminal");
}
