//! The seed's own story: two prompts, Esc twice, and the file is as after the first.

use super::seat::{DOWN, ENTER, ESC, Place};
use crate::home::User;

const ADD: &str = "export function add(a: number, b: number) {\n  return a + b;\n}\n";
const SUBTRACT: &str = "export function subtract(a: number, b: number) {\n  return a - b;\n}\n";

/// What the agent does at each prompt.
pub(super) fn scenario(user: &User) -> String {
    let two = format!("{ADD}{SUBTRACT}");
    let four = format!(
        "{two}export function multiply(a: number, b: number) {{\n  return a * b;\n}}\n\
         export function divide(a: number, b: number) {{\n  return a / b;\n}}\n"
    );
    let turns = serde_json::json!({ "turns": [
        { "steps": [
            { "say": "I make utils.ts." },
            { "tool": "write_file", "input": { "path": "utils.ts", "content": two } },
            { "say": "It has add and subtract." },
        ] },
        { "steps": [
            { "tool": "write_file", "input": { "path": "utils.ts", "content": four } },
            { "tool": "shell", "input": { "command": "echo generated > index.ts" } },
            { "say": "It has multiply and divide too." },
        ] },
        { "steps": [{ "say": "Nothing to do." }] },
    ] });
    let file = user.home().join("scenario.json");
    std::fs::write(&file, turns.to_string()).expect("a scenario");
    file.display().to_string()
}

#[test]
fn esc_twice_brings_the_file_back() {
    let user = User::new();
    let scenario = scenario(&user);
    let mut seat = Place::of(&user).sit(&["chat", "--scenario", &scenario]);
    seat.sees("builtin").says("Create a file utils.ts with add and subtract functions");
    seat.sees("It has add and subtract.");
    seat.says("Add multiply and divide functions to utils.ts").sees("divide too.");
    assert!(user.read("utils.ts").contains("multiply") && user.exists("index.ts"));

    seat.types(ESC).types(ESC).sees("Checkpoints").sees("(current)");
    seat.types(DOWN).sees("utils.ts").types(ENTER).sees("Files and conversation").types(ENTER);
    seat.sees("Restored to checkpoint: Add multiply and divide");
    assert_eq!(user.read("utils.ts"), format!("{ADD}{SUBTRACT}"));
    assert!(!user.exists("index.ts"), "what the shell made is gone too");
    // The prompt is back in the input line.
    seat.sees("> Add multiply and divide functions to utils.ts");
}
