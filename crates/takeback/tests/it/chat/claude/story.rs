//! The story of the design, with the real program.

use serde_json::json;

use super::desk::Desk;
use crate::chat::seat::{DOWN, ENTER, ESC};
use crate::chat::story::two;

const CREATE: &str = "Create a file utils.ts with add and subtract functions";
const EXTEND: &str = "Add multiply and divide functions to utils.ts";
const MORE: &str = "export function multiply(a: number, b: number) {\n  return a * b;\n}\n\
                    export function divide(a: number, b: number) {\n  return a / b;\n}\n";

/// After both prompts.
fn after_two_prompts() -> Option<Desk> {
    let mut desk = Desk::new(&[])?;
    let write = desk.write("utils.ts", &two());
    desk.turn(CREATE, &[write, json!("It has add and subtract.")]).sees("1 point ");
    assert_eq!(desk.user.read("utils.ts"), two());
    let end = "  return a - b;\n}\n";
    let edit = desk.edit("utils.ts", end, &format!("{end}{MORE}"));
    desk.turn(EXTEND, &[edit, json!("It has multiply and divide too.")]).sees("2 points");
    assert_eq!(desk.user.read("utils.ts"), format!("{}{MORE}", two()));
    Some(desk)
}

#[test]
fn esc_twice_brings_the_file_and_the_conversation_back() {
    let Some(mut desk) = after_two_prompts() else { return };
    let metadata = desk.metadata();
    let described: Vec<_> = metadata.iter().map(|one| one["description"].clone()).collect();
    assert_eq!(described, [EXTEND, CREATE]);
    let knows = desk.user.home().join("claude/projects");
    for one in &metadata {
        // The program's own transcript of that session has the prompt under that id.
        let session = one["sessionId"].as_str().expect("a session");
        let folder = std::fs::read_dir(&knows).expect("projects").next().expect("one").expect("it");
        let transcript = std::fs::read_to_string(folder.path().join(format!("{session}.jsonl")));
        assert!(transcript.expect("a transcript").contains(one["id"].as_str().expect("an id")));
    }
    desk.seat.types(ESC).types(ESC).sees("Checkpoints").sees("(current)").types(DOWN);
    desk.seat.sees("utils.ts").types(ENTER).sees("[x] ").types(ENTER);
    desk.seat.sees("Restore what?").types(ENTER);
    desk.seat.sees(&format!("Restored to checkpoint: {EXTEND}"));
    assert_eq!(desk.seat.colour_of("Restored to"), vt100::Color::Idx(2), "green");
    assert_eq!(desk.user.read("utils.ts"), two());
    desk.seat.sees(&format!("> {EXTEND}")).sees_no("divide too.");

    desk.model.answer(takeback_testkit::model::Answer::says("Once more."));
    desk.seat.types("\x15").says("What is in utils.ts?").sees("Once more.");
    let shown = desk.shown_last();
    assert!(shown.contains(CREATE) && shown.contains("What is in utils.ts?"), "{shown}");
    assert!(!shown.contains(EXTEND) && !shown.contains("divide too."), "{shown}");
}

#[test]
fn u_brings_everything_back() {
    let Some(mut desk) = after_two_prompts() else { return };
    let before = desk.user.tree();
    desk.goes_back_to("2").sees(&format!("Restored to checkpoint: {CREATE}"));
    assert!(!desk.user.exists("utils.ts"));
    desk.seat.types(ESC).types(ESC).sees("Checkpoints").types("u").sees("Undone.");
    desk.seat.sees("The conversation is back.").sees("divide too.");
    assert_eq!(desk.user.tree(), before);
    desk.turn("And now?", &[json!("All is there.")]);
    let shown = desk.shown_last();
    assert!(shown.contains(CREATE) && shown.contains(EXTEND), "{shown}");
}
