//! The program is killed.

use std::process::Command;

use serde_json::json;
use takeback_testkit::model::{Answer, Block};

use super::desk::{Desk, run};
use crate::chat::seat::A_WHILE;

#[test]
fn after_the_program_was_killed_files_come_back_from_takebacks_own_copies() {
    let Some(mut desk) = Desk::new(&[("a.txt", "one\n")]) else { return };
    let write = desk.write("first.txt", "first\n");
    desk.turn("Make the first file", &[write, json!("The first is there.")]);
    let before = desk.user.tree();
    let (read, edit) = (desk.look_at("a.txt"), desk.edit("a.txt", "one", "two"));
    let asked = desk.model.asked().len();
    desk.begin("Change the rest", &[read, edit, run("rm first.txt; echo 2 > second.txt")]);
    desk.model.answer(Answer::Stalls { blocks: vec![Block::text("never")], after: 1 });
    // The three calls are done when the model is asked what comes next.
    desk.model.wait_for(asked + 4);
    kill(&desk);
    desk.seat.sees("The turn failed: it was killed by signal 9").sees("The agent has exited.");
    let half = desk.user.tree();
    assert_ne!(half, before);

    let alone = desk.alone(1, |_| ());
    assert_eq!(alone.text("second.txt").as_deref(), Some("2\n"), "the shell's, and no word");

    desk.goes_back_to("1");
    let no_query = "Restore failed: No active query session. Cannot restore checkpoint.";
    desk.seat.sees(no_query).sees("files only, from Takeback's own copy");
    assert_eq!(desk.seat.colour_of(no_query), vt100::Color::Idx(1), "red");
    assert_eq!(desk.user.tree(), half, "nothing changes without an answer");
    desk.seat.look(A_WHILE).types("y").sees("Restored to checkpoint: Change the rest");
    assert_eq!(desk.user.tree(), before);

    desk.continues();
    let write = desk.write("third.txt", "third\n");
    desk.turn("Are you there?", &[write, json!("I am.")]);
    let shown = desk.shown_last();
    assert!(shown.contains("Make the first file") && shown.contains("The first is there."));
    // The prompt at which it was killed: its own transcript may not have it.
    desk.goes_back_to("2").sees("Restored to checkpoint: Change the rest");
    assert_eq!(desk.user.tree(), before);
    desk.seat.sees("> Change the rest").types("\x15");
    desk.turn("And now?", &[json!("Still here.")]);
    let shown = desk.shown_last();
    assert!(shown.contains("The first is there.") && !shown.contains("Are you there?"), "{shown}");
}

#[test]
fn a_program_that_was_killed_is_started_again_for_the_next_prompt() {
    let Some(mut desk) = Desk::new(&[]) else { return };
    let before = desk.user.tree();
    let write = desk.write("first.txt", "first\n");
    desk.turn("Make the first file", &[write, json!("The first is there.")]);
    kill(&desk);
    desk.seat.sees("The agent has exited: it was killed by signal 9");
    let edit = [desk.look_at("first.txt"), desk.edit("first.txt", "first", "second")];
    desk.turn("Change it", &[edit.as_slice(), &[json!("It is changed.")]].concat());
    assert!(desk.seat.shown().contains("Restarting the agent."));
    assert_eq!(desk.user.read("first.txt"), "second\n");
    desk.goes_back_to("1").sees("Restored to checkpoint: Change it");
    assert_eq!(desk.user.read("first.txt"), "first\n");
    desk.seat.types("\x15");
    desk.goes_back_to("2").sees("Restored to checkpoint: Make the first file");
    assert_eq!(desk.user.tree(), before);
}

fn kill(desk: &Desk) {
    let killed = Command::new("kill").arg("-9").arg(desk.pid().to_string()).status();
    assert!(killed.expect("it runs").success());
}
