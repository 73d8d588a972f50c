//! Permission dialogs, and interrupted turns.

use serde_json::json;

use super::setup::{ClaudeChat, run};
use crate::pty::{A_WHILE, ESC};

#[test]
fn nothing_is_done_without_permission() {
    let Some(mut chat) = ClaudeChat::with_permissions() else { return };
    let write = chat.write("yes.txt", "yes\n");
    chat.begin("Make a file", &[write, json!("It is made.")]);
    chat.terminal.sees("Allow ").sees("yes.txt").sees("y yes");
    assert!(!chat.user.exists("yes.txt"));
    chat.terminal.look(A_WHILE).types("y").sees("It is made.");
    assert_eq!(chat.user.read("yes.txt"), "yes\n");

    chat.begin("Remove it", &[run("rm yes.txt"), json!("Then it stays.")]);
    chat.terminal.sees("Allow ").sees("rm yes.txt").sees("y yes").types("n");
    chat.terminal.sees("denied: ").sees("Then it stays.");
    assert_eq!(chat.user.read("yes.txt"), "yes\n");
    assert!(chat.shown_last().contains("The user denied this."));

    chat.goes_back_to("2").sees("Restored to checkpoint: Make a file");
    assert!(!chat.user.exists("yes.txt"));
}

const LONG: &str = "echo begun > begun.txt; sleep 300; echo late > late.txt";

#[test]
fn a_single_esc_ends_a_shell_command() {
    let Some(mut chat) = ClaudeChat::new(&[]) else { return };
    chat.begin("Do it slowly", &[run(LONG)]);
    chat.waits_for("begun.txt");
    chat.terminal.types(ESC).sees("interrupted").sees_no("stopping");
    assert!(!chat.terminal.shown().contains("Checkpoints"), "{}", chat.terminal.shown());
    chat.turn("Go on", &[json!("Here I am.")]);
    assert!(!chat.user.exists("late.txt"));
    chat.goes_back_to("2").sees("Restored to checkpoint: Do it slowly");
    assert!(!chat.user.exists("begun.txt"));
}

#[test]
fn esc_twice_rewinds_in_the_middle_of_a_turn() {
    let Some(mut chat) = ClaudeChat::new(&[("a.txt", "one\n")]) else { return };
    let before = chat.user.tree();
    let write = chat.write("half.txt", "half\n");
    chat.begin("Do it slowly", &[write, run(&format!("sed -i s/one/two/ a.txt; {LONG}"))]);
    chat.waits_for("begun.txt");
    chat.goes_back_to("1").sees("Restored to checkpoint: Do it slowly");
    assert_eq!(chat.user.tree(), before);
    chat.terminal.sees("> Do it slowly").types("\x15");
    chat.turn("Something else", &[json!("Gladly.")]);
    assert!(!chat.shown_last().contains("Do it slowly"), "{}", chat.shown_last());
    assert_eq!(chat.user.tree(), before);
}
