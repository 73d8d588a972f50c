//! The story of the design: two prompts, Esc Esc, and the file is as it was after the first.

use std::time::{Duration, Instant};

use super::seat::{DOWN, ENTER, ESC, Place, Seat, UP};
use crate::home::User;

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
    playing(user, &turns)
}

/// Starts `chat` with the scenario and these flags.
pub(super) fn plays(user: &User, flags: &[&str]) -> Seat {
    Place::of(user).sit(&[&["chat", "--scenario", &scenario(user)], flags].concat())
}

/// Starts `chat` with these turns as its scenario.
pub(super) fn plays_turns(user: &User, turns: &serde_json::Value) -> Seat {
    let scenario = playing(user, turns);
    let mut seat = Place::of(user).sit(&["chat", "--scenario", &scenario]);
    seat.sees("builtin");
    seat
}

/// Writes a scenario to a file; its name.
pub(super) fn playing(user: &User, scenario: &serde_json::Value) -> String {
    let file = user.home().join("scenario.json");
    std::fs::write(&file, scenario.to_string()).expect("a scenario");
    file.display().to_string()
}

/// A session after two prompts.
pub(super) fn after_two_prompts(user: &User) -> Seat {
    after_two_prompts_at(Place::of(user))
}

pub(super) fn after_two_prompts_at(place: Place<'_>) -> Seat {
    let user = place.user;
    let scenario = scenario(user);
    let mut seat = place.sit(&["chat", "--scenario", &scenario]);
    seat.sees("builtin").says("Create a file utils.ts with add and subtract functions");
    seat.sees("It has add and subtract.").sees("1 point ");
    seat.says("Add multiply and divide functions to utils.ts").sees("divide too.").sees("2 points");
    seat.sees_no("working");
    assert!(user.read("utils.ts").contains("multiply") && user.exists("index.ts"));
    seat
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

pub(super) fn opens_the_menu(seat: &mut Seat) -> &mut Seat {
    seat.types(ESC).types(ESC).sees("Checkpoints").sees("(current)")
}

/// Restores files and conversation from an open preview.
pub(super) fn goes_back(seat: &mut Seat) -> &mut Seat {
    seat.sees("[x] ").types(ENTER).sees("Restore what?").types(ENTER)
}

/// Opens the menu and restores the row of this number, files and conversation.
pub(super) fn goes_back_to<'a>(seat: &'a mut Seat, number: &str) -> &'a mut Seat {
    opens_the_menu(seat).types(number);
    goes_back(seat)
}

/// The same with the key of a choice: `f` for files, `c` for the conversation.
pub(super) fn restores<'a>(seat: &'a mut Seat, number: &str, key: &str) -> &'a mut Seat {
    opens_the_menu(seat).types(number).sees("[x] ").types(ENTER).sees("Restore what?").types(key)
}

#[test]
fn esc_twice_brings_the_file_back() {
    let user = User::new();
    let mut seat = after_two_prompts(&user);
    opens_the_menu(&mut seat).types(DOWN).sees("index.ts").types(ENTER);
    goes_back(&mut seat)
        .sees("Restored to checkpoint: Add multiply and divide functions to utils.ts");
    assert_eq!(seat.colour_of("Restored to"), vt100::Color::Idx(2), "green");
    assert_eq!(user.read("utils.ts"), two());
    assert!(!user.exists("index.ts"), "what the shell made is gone too");
    seat.sees("> Add multiply and divide functions to utils.ts");
    seat.sees_no("divide too.");
    // Said again, it is the second prompt once more.
    seat.types(ENTER).sees("divide too.");
    assert!(user.read("utils.ts").contains("multiply") && user.exists("index.ts"));
}

#[test]
fn a_number_chooses_and_the_first_prompt_brings_back_the_beginning() {
    let user = User::with(&[("mine.txt", "mine\n")]);
    let mut seat = after_two_prompts(&user);
    user.write("mine.txt", "mine, and more\n");
    goes_back_to(&mut seat, "2").sees("Restored to checkpoint: Create a file");
    assert!(!user.exists("utils.ts") && !user.exists("index.ts"));
    assert_eq!(user.read("mine.txt"), "mine, and more\n", "the user's work is untouched");
}

#[test]
fn esc_esc_enter_does_nothing() {
    let user = User::new();
    let mut seat = after_two_prompts(&user);
    let before = user.tree();
    for leave in [ENTER, "0", ESC, "q"] {
        opens_the_menu(&mut seat).types(leave);
        seat.sees("Exited checkpoint selection.").types("/clear\r").sees("A new conversation.");
    }
    assert_eq!(user.tree(), before);
}

#[test]
fn arrows_and_a_filter_find_a_prompt() {
    let user = User::new();
    let mut seat = after_two_prompts(&user);
    opens_the_menu(&mut seat);
    seat.types(DOWN)
        .types(DOWN)
        .types(UP)
        .sees("> 1 ")
        .types("k")
        .sees("> 0 ")
        .types("jj")
        .sees("> 2 ");
    seat.types("/").types("multiply").sees_no("Create a file").types(ENTER);
    goes_back(&mut seat).sees("Restored to checkpoint: Add multiply");
    assert_eq!(user.read("utils.ts"), two());
}

#[test]
fn u_takes_the_rewind_back() {
    let user = User::new();
    let mut seat = after_two_prompts(&user);
    let before = user.tree();
    goes_back_to(&mut seat, "2").sees("Restored to checkpoint: Create a file");
    opens_the_menu(&mut seat).types("u").sees("Undone.").sees("The conversation is back.");
    assert_eq!(user.tree(), before);
    seat.sees("divide too.");
    seat.says("/redo").sees("Redone.");
    assert!(!user.exists("utils.ts"));
}

#[test]
fn files_alone_or_the_conversation_alone() {
    let user = User::new();
    let mut seat = after_two_prompts(&user);
    let after = user.tree();
    restores(&mut seat, "1", "c")
        .sees("Restored to checkpoint: Add multiply")
        .sees_no("divide too.");
    assert_eq!(user.tree(), after, "files stay");
    seat.types("\x15").says("/undo").sees("The conversation is back.").sees("divide too.");
    restores(&mut seat, "1", "f").sees("Restored to checkpoint: Add multiply").sees("divide too.");
    assert_eq!(user.read("utils.ts"), two());
}

#[test]
fn a_file_that_is_unticked_stays() {
    let user = User::new();
    let mut seat = after_two_prompts(&user);
    opens_the_menu(&mut seat).types("1").sees("[x] delete").types(" ").sees("[ ] delete");
    seat.types(ENTER).sees("Restore what?").types("f").sees("Restored to checkpoint:");
    assert_eq!(user.read("utils.ts"), two());
    assert!(user.exists("index.ts"), "it was unticked");
}

#[test]
fn in_the_middle_of_a_turn() {
    let user = User::new();
    let mut seat = after_two_prompts(&user);
    seat.says("Do the third thing").sees("Half of it is done.");
    assert!(user.exists("half.ts"));
    goes_back_to(&mut seat, "1").sees("Restored to checkpoint: Do the third thing");
    assert!(!user.exists("half.ts") && !user.exists("whole.ts"));
    seat.sees("> Do the third thing");
}

#[test]
fn a_single_esc_ends_the_turn_and_a_second_one_that_is_late_opens_nothing() {
    let user = User::new();
    let mut seat = after_two_prompts(&user);
    seat.says("Do the third thing").sees("Half of it is done.").types(ESC).sees("interrupted");
    std::thread::sleep(Duration::from_millis(350));
    // What follows at once would make it Alt.
    seat.types(ESC).look(Duration::from_millis(200));
    // Whatever was typed before has been taken in when this is seen.
    seat.types("still here").sees("> still here");
    assert!(!seat.shown().contains("Checkpoints"), "{}", seat.shown());
    assert!(user.exists("half.ts") && !user.exists("whole.ts"));
}

#[test]
fn two_esc_bytes_at_once_are_two_presses_and_sequences_are_none() {
    let user = User::new();
    let mut seat = after_two_prompts(&user);
    seat.types("\x1b\x1b[A").types("\x1b[A\x1b[B").types("\x1bb\x1bf").types("\x1bOC\x1bOD");
    seat.types("\x15typed").sees("> typed");
    assert!(!seat.shown().contains("Checkpoints"), "{}", seat.shown());
    seat.types("\x1b\x1b").sees("Checkpoints");
}

const HINT: &str = "Esc again to rewind";

#[test]
fn one_esc_says_what_a_second_would_do_for_a_while() {
    let user = User::new();
    let mut seat = after_two_prompts(&user);
    let began = Instant::now();
    seat.types(ESC).sees(HINT).sees_no(HINT).sees("esc esc rewinds");
    let shown = began.elapsed();
    assert!((1300..10_000).contains(&shown.as_millis()), "{shown:?}");
    assert!(!seat.shown().contains("Checkpoints"), "{}", seat.shown());
    // Slower than a double press, and while it shows.
    seat.types(ESC).sees(HINT).look(Duration::from_millis(500)).sees(HINT).types(ESC);
    seat.sees("Checkpoints").sees("> 0 (current)").types(ESC).sees("Exited checkpoint selection.");
    seat.look(Duration::from_millis(200));
    assert!(!seat.shown().contains(HINT), "this one closed the menu:\n{}", seat.shown());
    // Another key takes it away.
    seat.types(ESC).sees(HINT).types("x").sees("> x").sees_no(HINT);
}

#[test]
fn an_esc_that_stops_the_agent_hints_at_nothing() {
    let user = User::new();
    let mut seat = after_two_prompts(&user);
    seat.says("a third thing").sees("Half of it is done.").types(ESC).sees("interrupted");
    seat.look(Duration::from_millis(300));
    assert!(!seat.ever().contains("again to rewind"), "{}", seat.shown());
    seat.types(ESC).sees(HINT);
}

#[test]
fn there_is_no_hint_where_there_is_nothing_to_go_back_to() {
    let user = User::new();
    let mut seat = Place::of(&user).sit(&["chat", "--agent", "builtin"]);
    seat.sees("0 points").types(ESC).look(Duration::from_millis(400)).types("x").sees("> x");
    assert!(!seat.ever().contains("again to rewind"), "{}", seat.shown());
    // Another session's point will do.
    assert_eq!(user.takeback(&["-q", "checkpoint", "mine"]).code, 0);
    seat.types("\x15").says("/status").sees("1 point ").types(ESC).sees(HINT);
}

#[test]
fn there_is_no_hint_where_nothing_is_recorded() {
    let user = User::new();
    user.set(r#"{"enableFileCheckpointing": false}"#);
    let mut seat = Place::of(&user).sit(&["chat", "--agent", "builtin"]);
    seat.sees("not recorded").types(ESC).look(Duration::from_millis(400)).types("x").sees("> x");
    assert!(!seat.ever().contains("again to rewind"), "{}", seat.shown());
}

#[test]
fn another_key_and_another_pace_can_be_set() {
    let user = User::new();
    user.set(r#"{"rewindKey": "ctrl-r", "doubleEscMs": 60000}"#);
    let mut seat = after_two_prompts(&user);
    seat.types(ESC).types(ESC).look(Duration::from_millis(200)).types("x").sees("> x");
    assert!(!seat.shown().contains("Checkpoints"), "{}", seat.shown());
    seat.types("\x12").look(Duration::from_millis(400));
    seat.types("\x12").sees("Checkpoints");
}
