//! Repeated rewinds, and rewinds to prompts that the conversation no longer has.

use super::two_prompts::{after_two_prompts, after_two_prompts_of, point_of, start_scenario, two};
use crate::pty::{ENTER, ESC};
use crate::user::User;

const SECOND: &str = "Add multiply and divide functions to utils.ts";

#[test]
fn rewind_step_by_step_to_the_beginning() {
    let user = User::with(&[("mine.txt", "mine\n")]);
    let before = user.tree();
    let mut chat = after_two_prompts_of(&user);
    chat.goes_back_to("1")
        .sees("Restored to checkpoint: Add multiply")
        .sees(&format!("> {SECOND}"));
    chat.goes_back_to("2").sees("Restored to checkpoint: Create a file").sees("> Create a file");
    assert_eq!(user.tree(), before);
    chat.types("\x15").says("/undo").sees("Undone.").sees("It has add and subtract.");
    assert_eq!(user.read("utils.ts"), two());
    chat.says("/undo").sees("divide too.").sees("The conversation is back.");
    assert!(user.read("utils.ts").contains("divide") && user.exists("index.ts"));
}

#[test]
fn rewind_to_a_prompt_that_a_rewind_has_cut_off() {
    let (user, mut chat) = after_two_prompts();
    chat.goes_back_to("2").sees("Restored to checkpoint: Create a file");
    assert!(!user.exists("utils.ts"));
    chat.types("\x15").sees("Type a prompt");
    chat.opens_the_menu().sees("2 files +7 -0").types("1");
    chat.goes_back().sees("Restored to checkpoint: Add multiply");
    chat.sees("the conversation no longer has this prompt");
    assert_eq!((user.read("utils.ts"), user.exists("index.ts")), (two(), false));
    // The agent has forgotten both.
    chat.says("again").sees("It has add and subtract.");
}

#[test]
fn rewind_to_a_prompt_from_before_clear() {
    let (user, mut chat) = after_two_prompts();
    chat.says("/clear").sees("A new conversation.");
    chat.goes_back_to("1").sees("Restored to checkpoint: Add multiply");
    chat.sees("the conversation no longer has this prompt");
    assert_eq!((user.read("utils.ts"), user.exists("index.ts")), (two(), false));
}

#[test]
fn rewind_to_a_prompt_that_was_sent_again() {
    let (user, mut chat) = after_two_prompts();
    chat.goes_back_to("1").sees("Restored to checkpoint: Add multiply").sees_no("divide too.");
    chat.types(ENTER).sees("divide too.").sees("3 points");
    // The prompt that was cut off; now its replacement is cut instead.
    chat.goes_back_to("2").sees("Restored to checkpoint: Add multiply").sees_no("divide too.");
    assert_eq!((user.read("utils.ts"), user.exists("index.ts")), (two(), false));
    chat.sees(&format!("> {SECOND}"));
}

#[test]
fn queued_prompts_return_to_the_input_after_an_interrupt() {
    let (_user, mut chat) = after_two_prompts();
    chat.says("Do the third thing").sees("Half of it is done.").says("and then this");
    chat.sees("next: and then this").says("and that").sees("next: and that").types("begun");
    chat.sees("> begun").types(ESC).sees("interrupted").sees("> and then this").sees("  and that");
    chat.sees("  begun").sees("3 points").sees_no("next: ");
    chat.types(ENTER).sees("4 points").sees("The scenario is over");
}

#[test]
fn a_new_session_lists_the_points_of_others() {
    let (user, mut chat) = after_two_prompts();
    chat.exits();
    let mut chat = start_scenario(&user, &[]);
    chat.sees("builtin").types(ESC).types(ESC).sees("other sessions");
}

#[test]
fn undo_takes_back_the_latest_rewind_first() {
    let (user, mut chat) = after_two_prompts();
    chat.restores("1", "c").sees("Restored to checkpoint: Add multiply").sees_no("divide too.");
    chat.types("\x15").sees("Type a prompt");
    chat.restores("1", "f").sees("1 restored, 1 deleted").sees_no("divide too.");
    assert_eq!(user.read("utils.ts"), two());
    chat.says("/undo").sees("Undone.");
    assert!(user.read("utils.ts").contains("divide"), "files went last");
    chat.sees_no("divide too.").says("/undo").sees("The conversation is back.").sees("divide too.");
}

#[test]
fn redo_brings_back_what_was_said_after_a_rewind() {
    let (_user, mut chat) = after_two_prompts();
    chat.goes_back_to("1").sees("Restored to checkpoint: Add multiply").sees_no("divide too.");
    chat.types("\x15").says("quite another prompt").sees("divide too.").sees_no("working");
    // Both prompts made the same files.
    chat.says("/undo").sees("No file had to change.").sees("The conversation is back.");
    chat.sees_no("quite another prompt").sees(SECOND);
    chat.says("/redo").sees("The conversation is as it was before the undo.");
    chat.sees("> quite another prompt");
    chat.types("\x15").says("/undo").sees_no("quite another prompt").sees(SECOND);
}

#[test]
fn a_rewind_of_another_process_is_not_undone() {
    let (user, mut chat) = after_two_prompts();
    chat.restores("1", "f").sees("Restored to checkpoint: Add multiply");
    let first = point_of(&user, "Create a file");
    user.succeeds(&["rewind", &first, "-y"]);
    let before = user.tree();
    chat.says("/undo").sees("Command execution failed: another process has rewound");
    assert_eq!(user.tree(), before);
}

#[test]
fn redo_says_what_happened_to_the_conversation() {
    let (user, mut chat) = after_two_prompts();
    chat.goes_back_to("1").sees("Restored to checkpoint: Add multiply").sees_no("divide too.");
    chat.types("\x15").says("/undo").sees("Undone. Verified on disk.");
    chat.sees("The conversation is back.").sees("divide too.");
    chat.says("/redo").sees("Redone. Verified on disk.");
    chat.sees("The conversation is as it was before the undo.").sees_no("divide too.");
    assert!(!chat.shown().contains("is back"), "it has gone again:\n{}", chat.shown());
    assert_eq!(user.read("utils.ts"), two());
    chat.types("\x15").says("/undo").sees("The conversation is back.").exits();
    // A later session knows only the rewinds of files.
    let mut chat = start_scenario(&user, &["--continue"]);
    chat.sees("divide too.").says("/redo").sees("Redone. Verified on disk.");
    chat.sees("Only files were redone; the conversation stays as it is.").sees("divide too.");
    assert_eq!(user.read("utils.ts"), two());
    chat.says("/undo").sees("Only files were undone; the conversation stays as it is.");
    chat.says("/undo").sees("Command execution failed: there is no rewind to undo");
}

#[test]
fn a_partial_redo_is_reported_as_failed() {
    let (user, mut chat) = after_two_prompts();
    chat.restores("1", "f")
        .sees("Restored to checkpoint: Add multiply")
        .says("/undo")
        .sees("Undone.");
    user.write("utils.ts", &user.read("utils.ts").replace("a / b", "a / b / 1"));
    let failed = "Restore failed: not everything was redone: kept utils.ts (you changed it too)";
    chat.says("/redo").sees("1 conflict").sees("Restore failed: not everything was redone");
    let words: Vec<String> = chat.shown().split_whitespace().map(str::to_owned).collect();
    assert!(words.join(" ").contains(failed), "{}", chat.shown());
    assert!(!chat.shown().contains("Redone."), "{}", chat.shown());
    assert!(!user.exists("index.ts"), "this part was");
}

#[test]
fn a_redo_with_nothing_to_do_says_so() {
    let (user, mut chat) = after_two_prompts();
    chat.restores("1", "f")
        .sees("Restored to checkpoint: Add multiply")
        .says("/undo")
        .sees("Undone.");
    user.write("utils.ts", &two());
    std::fs::remove_file(user.work().join("index.ts")).expect("it goes");
    chat.says("/redo").sees("No file had to change.");
    assert!(!chat.shown().contains("Redone."), "{}", chat.shown());
    // The conversation never changed, so there is no message about it.
    chat.says("/undo").sees("Command execution failed");
    assert!(!chat.shown().contains("The conversation is"), "{}", chat.shown());
    chat.says("a third thing").sees("Half of it is done.");
}
