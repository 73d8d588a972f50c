//! The agent's own rewind reports success but is incomplete. Each test first shows that, and then Takeback's
//! rewind of the same state.

use std::fs;

use serde_json::json;

use super::setup::{ClaudeChat, config, run, subagent};

#[test]
fn shell_changes_are_taken_back() {
    let files = [("a.txt", "one\n"), ("b.txt", "keep me\n")];
    let Some(mut chat) = ClaudeChat::new(&files) else { return };
    let before = chat.user.tree();
    let shell = run("sed -i s/one/two/ a.txt; rm b.txt; mkdir made; echo c > made/c.txt");
    let write = chat.write("tracked.txt", "by a tool\n");
    chat.turn("Change everything", &[shell, write, json!("It is changed.")]);

    let sdk = chat.rewind_with_sdk(1, |_| ());
    assert_eq!(sdk.text("tracked.txt"), None, "it knows its own tools");
    assert_eq!(sdk.text("a.txt").as_deref(), Some("two\n"));
    assert_eq!(sdk.text("b.txt"), None);
    assert_eq!(sdk.text("made/c.txt").as_deref(), Some("c\n"));

    chat.goes_back_to("1").sees("Restored to checkpoint: Change everything");
    assert_eq!(chat.user.tree(), before);
}

#[test]
fn subagent_changes_are_taken_back() {
    let Some(mut chat) = ClaudeChat::new(&[("a.txt", "one\n")]) else { return };
    let before = chat.user.tree();
    let helper = [
        chat.look_at("a.txt"),
        chat.edit("a.txt", "one", "two"),
        chat.write("b.txt", "new\n"),
        json!("My part is done."),
    ];
    let answers = [&[subagent()], helper.as_slice(), &[json!("All is done.")]].concat();
    chat.turn("Let a subagent do it", &answers);
    assert_eq!(chat.user.read("a.txt"), "two\n");

    let sdk = chat.rewind_with_sdk(1, |_| ());
    assert_eq!(sdk.text("a.txt").as_deref(), Some("two\n"));
    assert_eq!(sdk.text("b.txt").as_deref(), Some("new\n"));

    chat.goes_back_to("1").sees("Restored to checkpoint: Let a subagent do it");
    assert_eq!(chat.user.tree(), before);
}

#[test]
fn a_file_made_by_the_shell_and_edited_by_a_tool_is_absent_before_both() {
    let Some(mut chat) = ClaudeChat::new(&[]) else { return };
    let before = chat.user.tree();
    chat.turn("Make it", &[run("echo made > made.txt"), json!("It is made.")]);
    let (read, edit) = (chat.look_at("made.txt"), chat.edit("made.txt", "made", "edited"));
    chat.turn("Edit it", &[read, edit, json!("It is edited.")]);
    assert_eq!(chat.user.read("made.txt"), "edited\n");

    let sdk = chat.rewind_with_sdk(2, |_| ());
    assert_eq!(sdk.text("made.txt").as_deref(), Some("made\n"));

    chat.goes_back_to("2").sees("Restored to checkpoint: Make it");
    assert_eq!(chat.user.tree(), before);
}

#[test]
fn the_users_changes_in_between_stay() {
    let poem = "first\nsecond\nthird\nfourth\nfifth\n";
    let Some(mut chat) = ClaudeChat::new(&[("poem.txt", poem), ("mine.txt", "mine\n")]) else {
        return;
    };
    let (read, edit) = (chat.look_at("poem.txt"), chat.edit("poem.txt", "first", "FIRST"));
    chat.turn("Shout", &[read, edit, json!("It is louder.")]);
    chat.user.write("poem.txt", "FIRST\nsecond\nthird\nfourth\nfifth, by hand\n");
    chat.user.write("mine.txt", "mine, and more\n");
    let (read, edit) = (chat.look_at("poem.txt"), chat.edit("poem.txt", "second", "SECOND"));
    chat.turn("Shout more", &[read, edit, json!("It is louder still.")]);
    chat.user.write("late.txt", "after the last turn\n");

    let sdk = chat.rewind_with_sdk(2, |_| ());
    assert_eq!(sdk.text("poem.txt").as_deref(), Some(poem), "the line by hand is lost");

    chat.goes_back_to("2").sees("Restored to checkpoint: Shout");
    assert_eq!(chat.user.read("poem.txt"), "first\nsecond\nthird\nfourth\nfifth, by hand\n");
    assert_eq!(chat.user.read("mine.txt"), "mine, and more\n");
    assert_eq!(chat.user.read("late.txt"), "after the last turn\n");
}

#[test]
fn the_users_addition_to_an_agents_file_is_not_deleted() {
    let Some(mut chat) = ClaudeChat::new(&[]) else { return };
    let made = [chat.write("notes.txt", "by the agent\n"), chat.write("more.txt", "more\n")];
    chat.turn("Make notes", &[made.as_slice(), &[json!("They are made.")]].concat());
    chat.user.write("notes.txt", "by the agent\nby hand\n");

    let sdk = chat.rewind_with_sdk(1, |_| ());
    assert_eq!(sdk.text("notes.txt"), None, "what was added by hand is lost");

    chat.goes_back_to("1").sees("Restore failed: kept notes.txt (you changed it too)");
    assert_eq!(chat.terminal.colour_of("Restore failed"), vt100::Color::Idx(1), "red");
    assert_eq!(chat.user.read("notes.txt"), "by the agent\nby hand\n");
    assert!(!chat.user.exists("more.txt"));
}

#[test]
fn copies_that_the_agent_has_lost_are_not_needed() {
    let Some(mut chat) = ClaudeChat::new(&[("a.txt", "a0\n"), ("b.txt", "b0\n")]) else { return };
    let before = chat.user.tree();
    let edits = [
        chat.look_at("a.txt"),
        chat.look_at("b.txt"),
        chat.edit("a.txt", "a0", "a1"),
        chat.edit("b.txt", "b0", "b1"),
        json!("Both are changed."),
    ];
    chat.turn("Change both", &edits);

    let sdk = chat.rewind_with_sdk(1, |knows| {
        let copies = copies(&knows);
        assert_eq!(copies.len(), 2);
        for copy in copies {
            if fs::read_to_string(&copy).expect("a copy") == "b0\n" {
                fs::remove_file(copy).expect("it goes");
            }
        }
    });
    assert_eq!(sdk.text("a.txt").as_deref(), Some("a0\n"));
    assert_eq!(sdk.text("b.txt").as_deref(), Some("b1\n"), "half of it, and no word");

    for copy in copies(&config(&chat.user)) {
        fs::remove_file(copy).expect("it goes");
    }
    chat.goes_back_to("1").sees("used Takeback's own copies");
    chat.terminal.sees("Restored to checkpoint: Change both");
    assert_eq!(chat.user.tree(), before);
}

/// The agent's own copies of files.
fn copies(knows: &std::path::Path) -> Vec<std::path::PathBuf> {
    let sessions = fs::read_dir(knows.join("file-history")).expect("copies");
    sessions
        .flat_map(|session| fs::read_dir(session.expect("a session").path()).expect("copies"))
        .map(|copy| copy.expect("a copy").path())
        .collect()
}
