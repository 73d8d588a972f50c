//! `restore`: files as they were, whole or hunk by hunk in the terminal.

use std::fs;

use serde_json::json;

use crate::revert::{TEN, two_turns};
use crate::user::User;

#[test]
fn files_come_back_whoever_changed_them() {
    let user = two_turns();
    let before = user.tree();
    insta::assert_snapshot!(user.succeeds(&["restore", "a.txt", "gone.txt", "--from", "one", "-y"]).out, @r"
    Restore a.txt, gone.txt from ID “do one” (just now)

      restored  a.txt
      restored  gone.txt

    2 restored
    Done and verified on disk. `takeback undo` takes it back.
    ");
    assert_eq!((user.read("a.txt").as_str(), user.read("gone.txt").as_str()), (TEN, "gone\n"));
    assert_eq!(user.read("b.txt"), "bb\n", "it was not asked for");
    user.succeeds(&["undo", "-y"]);
    assert_eq!(user.tree(), before);
}

#[test]
fn folders_and_globs_come_back_from_below_too() {
    let user = User::with(&[("src/a.rs", "a\n"), ("src/deep/b.rs", "b\n"), ("src/c.txt", "c\n")]);
    user.succeeds(&["checkpoint", "good"]);
    for (args, folder, expected) in [
        (&["restore", "src", "--from", "good", "-y"][..], "", &["a.rs", "c.txt", "deep/b.rs"][..]),
        (&["restore", "**/*.rs", "--from", "good", "-y"], "", &["a.rs", "deep/b.rs"]),
        (&["restore", "deep", "--from", "good", "-y"], "src", &["deep/b.rs"]),
    ] {
        fs::remove_dir_all(user.work().join("src")).expect("it goes");
        fs::create_dir(user.work().join("src")).expect("a folder");
        let done = user.takeback_in(&user.work().join(folder), args);
        assert_eq!(done.code, 0, "{done:?}");
        let all = ["a.rs", "c.txt", "deep/b.rs"];
        let back: Vec<&str> =
            all.into_iter().filter(|name| user.exists(&format!("src/{name}"))).collect();
        assert_eq!(back, expected, "{args:?}");
    }
}

#[test]
fn what_is_as_it_was_or_unknown_is_nothing_to_do() {
    let user = two_turns();
    let nothing = user.exits(5, &["restore", "nowhere.txt", "-y"]);
    nothing.prints("No change since then matches nowhere.txt.");
    user.exits(2, &["restore", "a.txt", "--from", "one"]);
    user.exits(1, &["restore", "a.txt", "--from", "nowhere", "-y"]).reports("no point");
    user.exits(2, &["restore", "--from", "one", "-y"]);
    User::new().exits(10, &["restore", "a.txt", "-y"]);
    let receipt = user.json(&["restore", "a.txt", "--from", "one", "--dry-run"]);
    assert_eq!(receipt["restoredFiles"], json!(["a.txt"]));
    assert_eq!(receipt["covers"]["whose"], "everyone");
}

#[test]
fn hunks_need_a_terminal() {
    let user = two_turns();
    let before = user.tree();
    let refused = user.exits(2, &["restore", "a.txt", "--from", "one", "--hunk"]);
    refused.reports("--hunk asks about each hunk in a terminal");
    assert_eq!(user.tree(), before);
}

const ASKED: &str = "Restore this hunk? [y,n,a,d,q,?]";

#[test]
fn a_hunk_is_shown_with_its_lines_and_restored_alone() {
    let user = two_turns();
    let before = user.tree();
    let mut terminal =
        user.terminal(80, 50).start(&["restore", "a.txt", "--from", "one", "--hunk"]);
    terminal.sees(ASKED);
    insta::assert_snapshot!(terminal.shown().trim(), @r"
    a.txt · hunk 1 of 2
         1  1
         2 -mine
           +2
         3  3
         4  4
         5  5
    Restore this hunk? [y,n,a,d,q,?]
    ");
    assert_eq!(terminal.colour_of("-mine"), vt100::Color::Idx(1), "red");
    assert_eq!(terminal.colour_of("+2"), vt100::Color::Idx(2), "green");
    terminal.types("?\r").sees("leave this hunk and everything after it");
    terminal.types("n\r").sees("hunk 2 of 2").sees("+8");
    terminal.types("y\r");
    let done = terminal.finish();
    assert_eq!(done.code, 0, "{}", done.shown());
    assert_eq!(done.wrapped(), [""; 0], "{}", done.shown());
    assert_eq!(user.read("a.txt"), TEN.replace("2\n", "mine\n"));
    let kinds: Vec<_> = crate::user::column(&user.json(&["log", "--ops"]), "kind");
    assert_eq!(kinds, [json!("restore")]);
    user.succeeds(&["undo", "-y"]);
    assert_eq!(user.tree(), before);
}

#[test]
fn keys_decide_about_the_rest_of_a_file_or_all_files() {
    for (keys, expected) in [
        (&["a", "n"][..], [TEN, "bb\n"]),
        (&["d", "y"], ["", "b\n"]),
        (&["y", "q"], ["eight", "bb\n"]),
        (&["q"], ["", "bb\n"]),
        (&["n", "n", "n"], ["", "bb\n"]),
    ] {
        let user = two_turns();
        let before = user.read("a.txt");
        let args = ["restore", "a.txt", "b.txt", "--from", "one", "--hunk"];
        let mut terminal = user.terminal(80, 60).start(&args);
        for (at, key) in keys.iter().enumerate() {
            terminal.sees_times(at + 1, ASKED).types(key).types("\r");
        }
        let done = terminal.finish();
        let changed = user.read("a.txt") != before || user.read("b.txt") != "bb\n";
        assert_eq!(done.code, if changed { 0 } else { 5 }, "{keys:?}\n{}", done.shown());
        let [a, b] = expected;
        match a {
            "" => assert_eq!(user.read("a.txt"), before, "{keys:?}"),
            "eight" => assert_eq!(user.read("a.txt"), TEN.replace("8\n", "eight\n"), "{keys:?}"),
            text => assert_eq!(user.read("a.txt"), text, "{keys:?}"),
        }
        assert_eq!(user.read("b.txt"), b, "{keys:?}");
    }
}

#[test]
fn what_has_no_hunks_is_named_and_left() {
    let user = User::with(&[("bin", "\0one"), ("gone.txt", "gone\n"), ("a.txt", "one\n")]);
    user.succeeds(&["checkpoint", "good"]);
    user.write("bin", "\0two");
    user.remove("gone.txt");
    user.write("a.txt", "two\n");
    let args = ["restore", "bin", "gone.txt", "a.txt", "--from", "good", "--hunk"];
    let ran = user.terminal(80, 50).run(&args, ASKED, "y\r");
    let shown = ran.shown();
    assert_eq!(ran.code, 0, "{shown}");
    assert!(shown.contains("bin is binary: it has no hunks."), "{shown}");
    assert!(shown.contains("gone.txt is restored as a whole or not at all"), "{shown}");
    assert_eq!((user.read("a.txt").as_str(), user.exists("gone.txt")), ("one\n", false));
    assert_eq!(user.read("bin"), "\0two");
}

/// A save while a question is open: the hunk is merged with it, or left as a conflict.
#[test]
fn a_save_during_the_question_is_kept() {
    for (saved, code, expected) in [
        (TEN.replace("2\n", "mine\n").replace("8\n", "eight\n").replace("10\n", "ten\n"), 0, "2\n"),
        (TEN.replace("2\n", "again\n").replace("8\n", "eight\n"), 4, "again\n"),
    ] {
        let user = two_turns();
        let mut terminal =
            user.terminal(80, 50).start(&["restore", "a.txt", "--from", "one", "--hunk"]);
        terminal.sees(ASKED);
        user.write("a.txt", &saved);
        terminal.types("y\r").sees("hunk 2 of 2").types("n\r");
        let done = terminal.finish();
        assert_eq!(done.code, code, "{}", done.shown());
        let text = saved.replace("mine\n", expected);
        assert_eq!(user.read("a.txt"), text);
    }
}
