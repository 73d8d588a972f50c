//! `resolve`: conflicts settled one by one in the terminal, in an editor, by a merge tool, or all at
//! once.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::revert::TEN;
use crate::user::User;

/// Lines 2 and 8 are the agent's and were changed again by you; its turn was taken back as far as that
/// goes.
fn two_conflicts() -> User {
    let user = User::with(&[("a.txt", TEN), ("b.txt", "b\n")]);
    let agents = TEN.replace("2\n", "two\n").replace("8\n", "eight\n");
    user.agent_turn("one", "do one", ("Edit", &["a.txt", "b.txt"]), || {
        user.write("a.txt", &agents);
        user.write("b.txt", "bb\n");
    });
    user.write("a.txt", &agents.replace("two\n", "mine\n").replace("eight\n", "mine, too\n"));
    user.exits(4, &["revert", "one", "-y"]);
    user
}

const MINE: [&str; 2] = ["mine\n", "mine, too\n"];

fn text([two, eight]: [&str; 2]) -> String {
    TEN.replace("2\n", two).replace("8\n", eight)
}

/// How many places are open.
fn open(user: &User) -> usize {
    let listed = user.json(&["resolve", "--list"]);
    let files = listed.as_array().expect("a list").iter();
    files.map(|file| file["lines"].as_array().expect("a list").len()).sum()
}

#[test]
fn open_conflicts_are_listed() {
    let user = two_conflicts();
    insta::assert_snapshot!(user.succeeds(&["resolve", "--list"]).out, @"conflict  a.txt  both changed the same lines: line 2, line 8");
    let listed = user.json(&["resolve", "--list"]);
    let operation = user.json(&["log", "--ops"])[0]["id"].clone();
    assert_eq!(
        listed,
        json!([{
            "operation": operation,
            "filePath": "a.txt",
            "reason": "both changed the same lines",
            "lines": [
                { "line": 2, "count": 1, "mine": "mine\n", "before": "2\n" },
                { "line": 8, "count": 1, "mine": "mine, too\n", "before": "8\n" },
            ],
        }])
    );
}

#[test]
fn without_a_terminal_it_asks_for_a_decision() {
    let user = two_conflicts();
    insta::assert_snapshot!(user.exits(2, &["resolve"]).err, @r"
    takeback: resolve asks about each conflict in a terminal
      --take mine or --take before settles all of them; --list shows them.
    ");
    user.exits(2, &["resolve", "--take", "before"]).reports("needs confirmation");
    user.exits(2, &["resolve", "--take", "before", "--tool"]);
    user.exits(5, &["resolve", "b.txt", "--take", "mine", "-y"]).reports("left no conflicts");
    assert_eq!(user.read("a.txt"), text(MINE));
    User::new().exits(10, &["resolve"]);
    let calm = User::with(&[("a.txt", "one\n")]);
    calm.succeeds(&["checkpoint"]);
    calm.exits(5, &["resolve"]).reports("the last operation left no conflicts");
}

#[test]
fn all_are_settled_as_before_and_undone() {
    let user = two_conflicts();
    insta::assert_snapshot!(user.succeeds(&["resolve", "--take", "before", "-y"]).out, @r"
    Resolve a.txt

      restored  a.txt

    1 restored
    Done and verified on disk. `takeback undo` takes it back.
    ");
    assert_eq!(user.read("a.txt"), TEN);
    assert_eq!(open(&user), 0);
    user.succeeds(&["undo", "-y"]);
    assert_eq!(user.read("a.txt"), text(MINE));
    assert_eq!(open(&user), 2);
}

#[test]
fn all_are_settled_as_mine_and_undone() {
    let user = two_conflicts();
    insta::assert_snapshot!(user.succeeds(&["resolve", "--take", "mine", "-y"]).out, @r"
    Resolve a.txt

      kept      a.txt  settled: it stays as it is

    1 settled
    Done and verified on disk. `takeback undo` takes it back.
    ");
    assert_eq!(open(&user), 0);
    insta::assert_snapshot!(user.succeeds(&["undo", "-y"]).out, @r"
    Undo the last operation

      kept      a.txt  its conflict is open again: it stays as it is

    1 conflict open again
    Done and verified on disk. `takeback redo` takes it back.
    ");
    assert_eq!(user.read("a.txt"), text(MINE));
    assert_eq!(open(&user), 2);
    user.succeeds(&["redo", "-y"]);
    assert_eq!(open(&user), 0);
}

const ASKED: &str = "Keep mine, or take it back? [m,b,e,s,q,?]";

#[test]
fn each_place_is_shown_and_decided() {
    let user = two_conflicts();
    let before = user.tree();
    let mut terminal = user.terminal(80, 50).start(&["resolve"]);
    terminal.sees(ASKED);
    insta::assert_snapshot!(terminal.shown().trim(), @r"
    a.txt · conflict 1 of 2
         1  1
         2 -mine
           +2
         3  3
         4  4
         5  5
    Keep mine, or take it back? [m,b,e,s,q,?]
    ");
    assert_eq!(terminal.colour_of("-mine"), vt100::Color::Idx(1), "red");
    terminal.types("?\r").sees("skip: decide later").sees_times(2, ASKED);
    terminal.types("m\r").sees("conflict 2 of 2").types("b\r");
    let done = terminal.finish();
    assert_eq!(done.code, 0, "{}", done.shown());
    assert_eq!(done.wrapped(), [""; 0], "{}", done.shown());
    assert_eq!(user.read("a.txt"), text(["mine\n", "8\n"]));
    assert_eq!(open(&user), 0);
    user.succeeds(&["undo", "-y"]);
    assert_eq!(user.tree(), before);
}

#[test]
fn what_is_skipped_stays_open() {
    for (keys, code, lines, left) in [
        (["s", "b"], 4, ["mine\n", "8\n"], 1),
        (["b", "s"], 4, ["2\n", "mine, too\n"], 1),
        (["b", "q"], 4, ["2\n", "mine, too\n"], 1),
        (["s", "s"], 5, MINE, 2),
    ] {
        let user = two_conflicts();
        let mut terminal = user.terminal(80, 50).start(&["resolve"]);
        for (at, key) in keys.iter().enumerate() {
            terminal.sees_times(at + 1, ASKED).types(key).types("\r");
        }
        let done = terminal.finish();
        assert_eq!(done.code, code, "{keys:?}\n{}", done.shown());
        assert_eq!(user.read("a.txt"), text(lines), "{keys:?}");
        assert_eq!(open(&user), left, "{keys:?}");
    }
    let user = two_conflicts();
    let ran = user.terminal(80, 50).run(&["resolve"], ASKED, "q\r");
    assert_eq!(ran.code, 5, "{}", ran.shown());
    assert_eq!(user.read("a.txt"), text(MINE));
}

/// A program of the user's.
fn script(user: &User, name: &str, body: &str) -> String {
    let path = user.home().join(name);
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).expect("a script");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a mode");
    path.to_str().expect("UTF-8").to_owned()
}

#[test]
fn both_versions_are_edited() {
    let user = two_conflicts();
    // It gets both versions between markers, and saves something else.
    let editor = script(&user, "editor", r#"cp "$1" "$HOME/given"; echo edited > "$1""#);
    let terminal = user.terminal(80, 50).with("EDITOR", editor);
    let mut terminal = terminal.start(&["resolve"]);
    terminal.sees(ASKED).types("e\r").sees("conflict 2 of 2").types("m\r");
    let done = terminal.finish();
    assert_eq!(done.code, 0, "{}", done.shown());
    assert_eq!(user.read("a.txt"), text(["edited\n", "mine, too\n"]));
    let given = fs::read_to_string(user.home().join("given")).expect("it was given");
    assert_eq!(given, "<<<<<<< now\nmine\n=======\n2\n>>>>>>> before\n");
    assert_eq!(open(&user), 0);
}

#[test]
fn an_editor_that_fails_or_leaves_markers_changes_nothing() {
    for (body, said) in [("true", "conflict markers left"), ("exit 3", "editor")] {
        let user = two_conflicts();
        let editor = script(&user, "editor", body);
        let terminal = user.terminal(80, 50).with("EDITOR", editor);
        let ran = terminal.run(&["resolve"], ASKED, "e\r");
        let shown = ran.shown();
        assert!(ran.code != 0 && shown.contains(said), "{}: {shown}", ran.code);
        assert_eq!(user.read("a.txt"), text(MINE), "{body}");
        assert_eq!(open(&user), 2);
    }
}

fn merge_tool(user: &User, body: &str) {
    let tool = script(user, "tool", body);
    let config = format!(
        "[merge]\n\ttool = mine\n[mergetool \"mine\"]\n\tcmd = {tool} \\\"$LOCAL\\\" \\\"$REMOTE\\\" \\\"$MERGED\\\"\n\ttrustExitCode = true\n"
    );
    fs::write(user.home().join(".gitconfig"), config).expect("settings");
}

#[test]
fn the_merge_tool_gets_both_versions_and_what_it_saves_settles_all() {
    let user = two_conflicts();
    let before = user.tree();
    merge_tool(
        &user,
        r#"cp "$1" "$HOME/local"; cp "$2" "$HOME/remote"; cat "$2" > "$3"; echo end >> "$3""#,
    );
    let done = user.succeeds(&["resolve", "--tool", "-y"]);
    assert!(done.out.contains("Done and verified on disk."), "{done:?}");
    let given = |name: &str| fs::read_to_string(user.home().join(name)).expect("it was given");
    assert_eq!((given("local"), given("remote")), (text(MINE), TEN.to_owned()));
    assert_eq!(user.read("a.txt"), format!("{TEN}end\n"));
    assert_eq!(open(&user), 0);
    assert!(!user.exists("a.txt.orig"), "the tool works elsewhere");
    user.succeeds(&["undo", "-y"]);
    assert_eq!(user.tree(), before);
}

#[test]
fn a_merge_tool_that_fails_settles_nothing() {
    let user = two_conflicts();
    merge_tool(&user, "exit 1");
    user.exits(5, &["resolve", "--tool", "-y"]).prints("Nothing was settled.");
    assert_eq!(user.read("a.txt"), text(MINE));
    assert_eq!(open(&user), 2);
}

#[test]
fn a_file_without_lines_is_decided_as_a_whole() {
    let play = || {
        let user = User::with(&[("bin", "\0one"), ("b.txt", "b\n")]);
        user.agent_turn("one", "do one", ("Edit", &["bin", "b.txt"]), || {
            user.write("bin", "\0two");
            user.write("b.txt", "bb\n");
        });
        user.write("bin", "\0mine");
        user.exits(4, &["revert", "one", "-y"]);
        user
    };
    for (key, code, text) in [("m", 0, "\0mine"), ("b", 0, "\0one"), ("s", 5, "\0mine")] {
        let user = play();
        let asked = "Keep mine, or take it back? [m,b,s,q,?]";
        let ran = user.terminal(80, 40).run(&["resolve"], asked, &format!("{key}\r"));
        assert!(ran.shown().contains("conflict  bin: binary"), "{}", ran.shown());
        assert_eq!((ran.code, user.read("bin").as_str()), (code, text), "{key}: {}", ran.shown());
    }
    play().exits(2, &["resolve", "--tool", "-y"]).reports("bin has no lines to merge");
}

#[test]
fn a_no_to_the_question_settles_nothing() {
    let user = two_conflicts();
    let ran = user.terminal(80, 50).run(&["resolve", "--take", "before"], "Proceed?", "n\r");
    assert_eq!(ran.code, 5, "{}", ran.shown());
    assert_eq!(user.read("a.txt"), text(MINE));
}
