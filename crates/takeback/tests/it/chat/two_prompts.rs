//! The main scenario: two prompts, Esc Esc, and the file is as it was after the first.

use std::time::{Duration, Instant};

use crate::pty::{DOWN, ENTER, ESC, Terminal, TerminalOptions, UP};
use crate::user::User;

const ADD: &str = "export function add(a: number, b: number) {\n  return a + b;\n}\n";
const SUBTRACT: &str = "export function subtract(a: number, b: number) {\n  return a - b;\n}\n";

pub(super) fn two() -> String {
    format!("{ADD}{SUBTRACT}")
}

/// Three turns: write a file; change it and create another with the shell; wait for an interrupt.
pub(super) fn scenario(user: &User) -> String {
    let four = format!(
        "{}export function multiply(a: number, b: number) {{\n  return a * b;\n}}\n\
         export function divide(a: number, b: number) {{\n  return a / b;\n}}\n",
        two()
    );
    let turns = serde_json::json!({ "turns": [
        { "steps": [
            { "say": "I make utils.ts." },
            { "tool": "write_file", "input": { "path": "utils.ts", "content": two() } },
            { "say": "It has add and subtract." },
        ] },
        { "steps": [
            { "tool": "write_file", "input": { "path": "utils.ts", "content": four } },
            { "tool": "shell", "input": { "command": "echo generated > index.ts" } },
            { "say": "It has multiply and divide too." },
        ] },
        { "steps": [
            { "tool": "write_file", "input": { "path": "half.ts", "content": "half\n" } },
            { "say": "Half of it is done." },
            { "pauseMs": 600_000 },
            { "tool": "write_file", "input": { "path": "whole.ts", "content": "whole\n" } },
        ] },
    ] });
    write_scenario(user, &turns)
}

/// Starts `chat` with the scenario and these flags.
pub(super) fn start_scenario(user: &User, flags: &[&str]) -> Terminal {
    user.terminal(80, 24).start(&[&["chat", "--scenario", &scenario(user)], flags].concat())
}

/// Starts `chat` with these turns as its scenario.
pub(super) fn start_turns(user: &User, turns: &serde_json::Value) -> Terminal {
    let scenario = write_scenario(user, turns);
    let mut chat = user.terminal(80, 24).start(&["chat", "--scenario", &scenario]);
    chat.sees("builtin");
    chat
}

/// Writes a scenario to a file, and returns its path.
pub(super) fn write_scenario(user: &User, scenario: &serde_json::Value) -> String {
    let file = user.home().join("scenario.json");
    std::fs::write(&file, scenario.to_string()).expect("a scenario");
    file.display().to_string()
}

/// A new user's session after two prompts.
pub(super) fn after_two_prompts() -> (User, Terminal) {
    let user = User::new();
    let chat = after_two_prompts_of(&user);
    (user, chat)
}

pub(super) fn after_two_prompts_of(user: &User) -> Terminal {
    after_two_prompts_in(&user.terminal(80, 24))
}

pub(super) fn after_two_prompts_in(terminal: &TerminalOptions<'_>) -> Terminal {
    let user = terminal.user;
    let scenario = scenario(user);
    let mut chat = terminal.start(&["chat", "--scenario", &scenario]);
    chat.sees("builtin").says("Create a file utils.ts with add and subtract functions");
    chat.sees("It has add and subtract.").sees("1 point ");
    chat.says("Add multiply and divide functions to utils.ts").sees("divide too.").sees("2 points");
    chat.sees_no("working");
    assert!(user.read("utils.ts").contains("multiply") && user.exists("index.ts"));
    chat
}

/// The id of the point whose description starts with this.
pub(super) fn point_of(user: &User, description: &str) -> String {
    let log = user.json(&["log", "-n", "99"]);
    let is_it = |point: &&serde_json::Value| {
        point["description"].as_str().is_some_and(|text| text.starts_with(description))
    };
    let point = log.as_array().expect("a list").iter().find(is_it).expect("a point");
    point["id"].as_str().expect("an id").to_owned()
}

impl Terminal {
    pub(super) fn opens_the_menu(&mut self) -> &mut Self {
        self.types(ESC).types(ESC).sees("Checkpoints").sees("(current)")
    }

    /// Restores files and conversation from an open preview.
    pub(super) fn goes_back(&mut self) -> &mut Self {
        self.sees("[x] ").types(ENTER).sees("Restore what?").types(ENTER)
    }

    /// Opens the menu and restores files and conversation of the row with this number.
    pub(super) fn goes_back_to(&mut self, number: &str) -> &mut Self {
        self.opens_the_menu().types(number).goes_back()
    }

    /// The same with the key of a choice: `f` for files, `c` for the conversation.
    pub(super) fn restores(&mut self, number: &str, key: &str) -> &mut Self {
        self.opens_the_menu().types(number).sees("[x] ").types(ENTER);
        self.sees("Restore what?").types(key)
    }
}

#[test]
fn esc_twice_brings_the_file_back() {
    let (user, mut chat) = after_two_prompts();
    chat.opens_the_menu().types(DOWN).sees("index.ts").types(ENTER);
    chat.goes_back().sees("Restored to checkpoint: Add multiply and divide functions to utils.ts");
    assert_eq!(chat.colour_of("Restored to"), vt100::Color::Idx(2), "green");
    assert_eq!(user.read("utils.ts"), two());
    assert!(!user.exists("index.ts"), "what the shell made is gone too");
    chat.sees("> Add multiply and divide functions to utils.ts");
    chat.sees_no("divide too.");
    // Submitted again, it is the second prompt again.
    chat.types(ENTER).sees("divide too.");
    assert!(user.read("utils.ts").contains("multiply") && user.exists("index.ts"));
}

#[test]
fn a_number_chooses_and_the_first_prompt_brings_back_the_beginning() {
    let user = User::with(&[("mine.txt", "mine\n")]);
    let mut chat = after_two_prompts_of(&user);
    user.write("mine.txt", "mine, and more\n");
    chat.goes_back_to("2").sees("Restored to checkpoint: Create a file");
    assert!(!user.exists("utils.ts") && !user.exists("index.ts"));
    assert_eq!(user.read("mine.txt"), "mine, and more\n", "the user's work is untouched");
}

#[test]
fn closing_the_menu_does_nothing() {
    let (user, mut chat) = after_two_prompts();
    let before = user.tree();
    for leave in [ENTER, "0", ESC, "q"] {
        chat.opens_the_menu().types(leave);
        chat.sees("Exited checkpoint selection.").types("/clear\r").sees("A new conversation.");
    }
    assert_eq!(user.tree(), before);
}

#[test]
fn arrows_and_a_filter_find_a_prompt() {
    let (user, mut chat) = after_two_prompts();
    chat.opens_the_menu();
    chat.types(DOWN)
        .types(DOWN)
        .types(UP)
        .sees("> 1 ")
        .types("k")
        .sees("> 0 ")
        .types("jj")
        .sees("> 2 ");
    chat.types("/").types("multiply").sees_no("Create a file").types(ENTER);
    chat.goes_back().sees("Restored to checkpoint: Add multiply");
    assert_eq!(user.read("utils.ts"), two());
}

#[test]
fn u_takes_the_rewind_back() {
    let (user, mut chat) = after_two_prompts();
    let before = user.tree();
    chat.goes_back_to("2").sees("Restored to checkpoint: Create a file");
    chat.opens_the_menu().types("u").sees("Undone.").sees("The conversation is back.");
    assert_eq!(user.tree(), before);
    chat.sees("divide too.");
    chat.says("/redo").sees("Redone.");
    assert!(!user.exists("utils.ts"));
}

#[test]
fn files_or_conversation_can_be_restored_alone() {
    let (user, mut chat) = after_two_prompts();
    let after = user.tree();
    chat.restores("1", "c").sees("Restored to checkpoint: Add multiply").sees_no("divide too.");
    assert_eq!(user.tree(), after, "files stay");
    chat.types("\x15").says("/undo").sees("The conversation is back.").sees("divide too.");
    chat.restores("1", "f").sees("Restored to checkpoint: Add multiply").sees("divide too.");
    assert_eq!(user.read("utils.ts"), two());
}

#[test]
fn a_file_that_is_unticked_stays() {
    let (user, mut chat) = after_two_prompts();
    chat.opens_the_menu().types("1").sees("[x] delete").types(" ").sees("[ ] delete");
    chat.types(ENTER).sees("Restore what?").types("f").sees("Restored to checkpoint:");
    assert_eq!(user.read("utils.ts"), two());
    assert!(user.exists("index.ts"), "it was unticked");
}

#[test]
fn in_the_middle_of_a_turn() {
    let (user, mut chat) = after_two_prompts();
    chat.says("Do the third thing").sees("Half of it is done.");
    assert!(user.exists("half.ts"));
    chat.goes_back_to("1").sees("Restored to checkpoint: Do the third thing");
    assert!(!user.exists("half.ts") && !user.exists("whole.ts"));
    chat.sees("> Do the third thing");
}

#[test]
fn a_single_esc_ends_the_turn_and_a_second_one_that_is_late_opens_nothing() {
    let (user, mut chat) = after_two_prompts();
    chat.says("Do the third thing").sees("Half of it is done.").types(ESC).sees("interrupted");
    std::thread::sleep(Duration::from_millis(350));
    // A key directly after Esc would turn it into Alt.
    chat.types(ESC).look(Duration::from_millis(200));
    // When this is visible, all earlier keys have been processed.
    chat.types("still here").sees("> still here");
    assert!(!chat.shown().contains("Checkpoints"), "{}", chat.shown());
    assert!(user.exists("half.ts") && !user.exists("whole.ts"));
}

#[test]
fn two_esc_bytes_are_two_presses_and_sequences_are_not() {
    let (_user, mut chat) = after_two_prompts();
    chat.types("\x1b\x1b[A").types("\x1b[A\x1b[B").types("\x1bb\x1bf").types("\x1bOC\x1bOD");
    chat.types("\x15typed").sees("> typed");
    assert!(!chat.shown().contains("Checkpoints"), "{}", chat.shown());
    chat.types("\x1b\x1b").sees("Checkpoints");
}

const HINT: &str = "Esc again to rewind";

#[test]
fn one_esc_shows_a_hint_for_a_while() {
    let (_user, mut chat) = after_two_prompts();
    let began = Instant::now();
    chat.types(ESC).sees(HINT).sees_no(HINT).sees("esc esc rewinds");
    let shown = began.elapsed();
    assert!((1300..10_000).contains(&shown.as_millis()), "{shown:?}");
    assert!(!chat.shown().contains("Checkpoints"), "{}", chat.shown());
    // Slower than a double press, but while the hint is visible.
    chat.types(ESC).sees(HINT).look(Duration::from_millis(500)).sees(HINT).types(ESC);
    chat.sees("Checkpoints").sees("> 0 (current)").types(ESC).sees("Exited checkpoint selection.");
    chat.look(Duration::from_millis(200));
    assert!(!chat.shown().contains(HINT), "this one closed the menu:\n{}", chat.shown());
    // Another key removes it.
    chat.types(ESC).sees(HINT).types("x").sees("> x").sees_no(HINT);
}

#[test]
fn an_esc_that_stops_the_agent_shows_no_hint() {
    let (_user, mut chat) = after_two_prompts();
    chat.says("a third thing").sees("Half of it is done.").types(ESC).sees("interrupted");
    chat.look(Duration::from_millis(300));
    assert!(!chat.ever().contains("again to rewind"), "{}", chat.shown());
    chat.types(ESC).sees(HINT);
}

#[test]
fn there_is_no_hint_without_points() {
    let user = User::new();
    let mut chat = user.terminal(80, 24).start(&["chat", "--agent", "builtin"]);
    chat.sees("0 points").types(ESC).look(Duration::from_millis(400)).types("x").sees("> x");
    assert!(!chat.ever().contains("again to rewind"), "{}", chat.shown());
    // A point of another session is enough.
    user.succeeds(&["-q", "checkpoint", "mine"]);
    chat.types("\x15").says("/status").sees("1 point ").types(ESC).sees(HINT);
}

#[test]
fn there_is_no_hint_while_recording_is_off() {
    let user = User::new();
    user.set(r#"{"enableFileCheckpointing": false}"#);
    let mut chat = user.terminal(80, 24).start(&["chat", "--agent", "builtin"]);
    chat.sees("not recorded").types(ESC).look(Duration::from_millis(400)).types("x").sees("> x");
    assert!(!chat.ever().contains("again to rewind"), "{}", chat.shown());
}

#[test]
fn rewind_key_and_interval_can_be_set() {
    let user = User::new();
    user.set(r#"{"rewindKey": "ctrl-r", "doubleEscMs": 60000}"#);
    let mut chat = after_two_prompts_of(&user);
    chat.types(ESC).types(ESC).look(Duration::from_millis(200)).types("x").sees("> x");
    assert!(!chat.shown().contains("Checkpoints"), "{}", chat.shown());
    chat.types("\x12").look(Duration::from_millis(400));
    chat.types("\x12").sees("Checkpoints");
}
