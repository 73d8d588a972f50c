//! The main scenario, with the real program.

use serde_json::json;

use super::setup::ClaudeChat;
use crate::chat::two_prompts::two;
use crate::pty::{DOWN, ENTER, ESC};
use crate::user::column;

const CREATE: &str = "Create a file utils.ts with add and subtract functions";
const EXTEND: &str = "Add multiply and divide functions to utils.ts";
const MORE: &str = "export function multiply(a: number, b: number) {\n  return a * b;\n}\n\
                    export function divide(a: number, b: number) {\n  return a / b;\n}\n";

/// A session after both prompts.
fn after_two_prompts() -> Option<ClaudeChat> {
    let mut chat = ClaudeChat::new(&[])?;
    let write = chat.write("utils.ts", &two());
    chat.turn(CREATE, &[write, json!("It has add and subtract.")]).sees("1 point ");
    assert_eq!(chat.user.read("utils.ts"), two());
    let end = "  return a - b;\n}\n";
    let edit = chat.edit("utils.ts", end, &format!("{end}{MORE}"));
    chat.turn(EXTEND, &[edit, json!("It has multiply and divide too.")]).sees("2 points");
    assert_eq!(chat.user.read("utils.ts"), format!("{}{MORE}", two()));
    Some(chat)
}

#[test]
fn esc_twice_brings_the_file_and_the_conversation_back() {
    let Some(mut chat) = after_two_prompts() else { return };
    let metadata = chat.metadata();
    assert_eq!(column(&json!(metadata), "description"), [EXTEND, CREATE]);
    let knows = chat.user.home().join("claude/projects");
    for one in &metadata {
        // The program's own transcript of that session has the prompt under that id.
        let session = one["sessionId"].as_str().expect("a session");
        let folder = std::fs::read_dir(&knows).expect("projects").next().expect("one").expect("it");
        let transcript = std::fs::read_to_string(folder.path().join(format!("{session}.jsonl")));
        assert!(transcript.expect("a transcript").contains(one["id"].as_str().expect("an id")));
    }
    chat.terminal.types(ESC).types(ESC).sees("Checkpoints").sees("(current)").types(DOWN);
    chat.terminal.sees("utils.ts").types(ENTER).sees("[x] ").types(ENTER);
    chat.terminal.sees("Restore what?").types(ENTER);
    chat.terminal.sees(&format!("Restored to checkpoint: {EXTEND}"));
    assert_eq!(chat.terminal.colour_of("Restored to"), vt100::Color::Idx(2), "green");
    assert_eq!(chat.user.read("utils.ts"), two());
    chat.terminal.sees(&format!("> {EXTEND}")).sees_no("divide too.");

    chat.model.answer(takeback_testkit::model::Answer::says("Once more."));
    chat.terminal.types("\x15").says("What is in utils.ts?").sees("Once more.");
    let shown = chat.shown_last();
    assert!(shown.contains(CREATE) && shown.contains("What is in utils.ts?"), "{shown}");
    assert!(!shown.contains(EXTEND) && !shown.contains("divide too."), "{shown}");
}

#[test]
fn u_brings_everything_back() {
    let Some(mut chat) = after_two_prompts() else { return };
    let before = chat.user.tree();
    chat.goes_back_to("2").sees(&format!("Restored to checkpoint: {CREATE}"));
    assert!(!chat.user.exists("utils.ts"));
    chat.terminal.types(ESC).types(ESC).sees("Checkpoints").types("u").sees("Undone.");
    chat.terminal.sees("The conversation is back.").sees("divide too.");
    assert_eq!(chat.user.tree(), before);
    chat.turn("And now?", &[json!("All is there.")]);
    let shown = chat.shown_last();
    assert!(shown.contains(CREATE) && shown.contains(EXTEND), "{shown}");
}
