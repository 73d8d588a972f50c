//! What the program asks for, and turns that are cut short.

use serde_json::json;

use super::desk::{Desk, run};
use crate::chat::seat::{A_WHILE, ESC};

#[test]
fn nothing_is_done_without_leave() {
    let Some(mut desk) = Desk::asking() else { return };
    let write = desk.write("yes.txt", "yes\n");
    desk.begin("Make a file", &[write, json!("It is made.")]);
    desk.seat.sees("Allow ").sees("yes.txt").sees("y yes");
    assert!(!desk.user.exists("yes.txt"));
    desk.seat.look(A_WHILE).types("y").sees("It is made.");
    assert_eq!(desk.user.read("yes.txt"), "yes\n");

    desk.begin("Remove it", &[run("rm yes.txt"), json!("Then it stays.")]);
    desk.seat.sees("Allow ").sees("rm yes.txt").sees("y yes").types("n");
    desk.seat.sees("denied: ").sees("Then it stays.");
    assert_eq!(desk.user.read("yes.txt"), "yes\n");
    assert!(desk.shown_last().contains("The user does not want this."));

    desk.goes_back_to("2").sees("Restored to checkpoint: Make a file");
    assert!(!desk.user.exists("yes.txt"));
}

const LONG: &str = "echo begun > begun.txt; sleep 300; echo late > late.txt";

#[test]
fn a_single_esc_ends_what_the_shell_is_doing() {
    let Some(mut desk) = Desk::new(&[]) else { return };
    desk.begin("Do it slowly", &[run(LONG)]);
    desk.waits_for("begun.txt");
    desk.seat.types(ESC).sees("interrupted").sees_no("stopping");
    assert!(!desk.seat.shown().contains("Checkpoints"), "{}", desk.seat.shown());
    desk.turn("Go on", &[json!("Here I am.")]);
    assert!(!desk.user.exists("late.txt"));
    desk.goes_back_to("2").sees("Restored to checkpoint: Do it slowly");
    assert!(!desk.user.exists("begun.txt"));
}

#[test]
fn esc_twice_in_the_middle_of_a_turn_goes_back() {
    let Some(mut desk) = Desk::new(&[("a.txt", "one\n")]) else { return };
    let before = desk.user.tree();
    let write = desk.write("half.txt", "half\n");
    desk.begin("Do it slowly", &[write, run(&format!("sed -i s/one/two/ a.txt; {LONG}"))]);
    desk.waits_for("begun.txt");
    desk.goes_back_to("1").sees("Restored to checkpoint: Do it slowly");
    assert_eq!(desk.user.tree(), before);
    desk.seat.sees("> Do it slowly").types("\x15");
    desk.turn("Something else", &[json!("Gladly.")]);
    assert!(!desk.shown_last().contains("Do it slowly"), "{}", desk.shown_last());
    assert_eq!(desk.user.tree(), before);
}
