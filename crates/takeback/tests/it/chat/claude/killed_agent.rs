//! The agent is killed.

use std::process::Command;

use serde_json::json;
use takeback_testkit::model::{Answer, Block};

use super::setup::{ClaudeChat, run};
use crate::pty::A_WHILE;

#[test]
fn after_the_program_was_killed_files_come_back_from_takebacks_own_copies() {
    let Some(mut chat) = ClaudeChat::new(&[("a.txt", "one\n")]) else { return };
    let write = chat.write("first.txt", "first\n");
    chat.turn("Make the first file", &[write, json!("The first is there.")]);
    let before = chat.user.tree();
    let (read, edit) = (chat.look_at("a.txt"), chat.edit("a.txt", "one", "two"));
    let asked = chat.model.asked().len();
    chat.begin("Change the rest", &[read, edit, run("rm first.txt; echo 2 > second.txt")]);
    chat.model.answer(Answer::Stalls { blocks: vec![Block::text("never")], after: 1 });
    // The model is asked again when the three calls are done.
    chat.model.wait_for(asked + 4);
    kill(&chat);
    chat.terminal.sees("The turn failed: it was killed by signal 9").sees("The agent has exited.");
    let half = chat.user.tree();
    assert_ne!(half, before);

    let sdk = chat.rewind_with_sdk(1, |_| ());
    assert_eq!(sdk.text("second.txt").as_deref(), Some("2\n"), "the shell's, and no word");

    chat.goes_back_to("1");
    let no_query = "Restore failed: No active query session. Cannot restore checkpoint.";
    chat.terminal.sees(no_query).sees("files only, from Takeback's own copy");
    assert_eq!(chat.terminal.colour_of(no_query), vt100::Color::Idx(1), "red");
    assert_eq!(chat.user.tree(), half, "nothing changes without an answer");
    chat.terminal.look(A_WHILE).types("y").sees("Restored to checkpoint: Change the rest");
    assert_eq!(chat.user.tree(), before);

    chat.restarts();
    let write = chat.write("third.txt", "third\n");
    chat.turn("Are you there?", &[write, json!("I am.")]);
    let shown = chat.shown_last();
    assert!(shown.contains("Make the first file") && shown.contains("The first is there."));
    // The agent was killed at this prompt, so its own transcript may not have it.
    chat.goes_back_to("2").sees("Restored to checkpoint: Change the rest");
    assert_eq!(chat.user.tree(), before);
    chat.terminal.sees("> Change the rest").types("\x15");
    chat.turn("And now?", &[json!("Still here.")]);
    let shown = chat.shown_last();
    assert!(shown.contains("The first is there.") && !shown.contains("Are you there?"), "{shown}");
}

#[test]
fn a_program_that_was_killed_is_started_again_for_the_next_prompt() {
    let Some(mut chat) = ClaudeChat::new(&[]) else { return };
    let before = chat.user.tree();
    let write = chat.write("first.txt", "first\n");
    chat.turn("Make the first file", &[write, json!("The first is there.")]);
    kill(&chat);
    chat.terminal.sees("The agent has exited: it was killed by signal 9");
    let edit = [chat.look_at("first.txt"), chat.edit("first.txt", "first", "second")];
    chat.turn("Change it", &[edit.as_slice(), &[json!("It is changed.")]].concat());
    assert!(chat.terminal.shown().contains("Restarting the agent."));
    assert_eq!(chat.user.read("first.txt"), "second\n");
    chat.goes_back_to("1").sees("Restored to checkpoint: Change it");
    assert_eq!(chat.user.read("first.txt"), "first\n");
    chat.terminal.types("\x15");
    chat.goes_back_to("2").sees("Restored to checkpoint: Make the first file");
    assert_eq!(chat.user.tree(), before);
}

fn kill(chat: &ClaudeChat) {
    let killed = Command::new("kill").arg("-9").arg(chat.pid().to_string()).status();
    assert!(killed.expect("it runs").success());
}
