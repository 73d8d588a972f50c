//! `revert` and `undo OPERATION`: what they show, what they exit with, and what is JSON.

use serde_json::json;

use crate::user::{User, column};

pub(crate) const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

/// Two turns: the first changed lines 2 and 8 of `a.txt` and deleted `gone.txt`, the second changed
/// `b.txt` and made `made.txt`. You changed line 2 again.
pub(crate) fn two_turns() -> User {
    let user = User::with(&[("a.txt", TEN), ("b.txt", "b\n"), ("gone.txt", "gone\n")]);
    let agents = TEN.replace("2\n", "two\n").replace("8\n", "eight\n");
    user.agent_turn("one", "do one", ("Edit", &["a.txt", "gone.txt"]), || {
        user.write("a.txt", &agents);
        user.remove("gone.txt");
    });
    user.agent_turn("two", "do two", ("Edit", &["b.txt", "made.txt"]), || {
        user.write("b.txt", "bb\n");
        user.write("made.txt", "made\n");
    });
    user.write("a.txt", &agents.replace("two\n", "mine\n"));
    user
}

#[test]
fn a_preview_lists_conflicts_first_and_changes_nothing() {
    let user = two_turns();
    let before = user.tree();
    insta::assert_snapshot!(user.exits(4, &["revert", "one", "--dry-run"]).out, @r"
    Revert ID “do one”
    Takes back: s; later changes stay

      conflict  a.txt  both changed the same lines in 1 place: yours stay
                line 2
                now     mine
                before  2
      restore   gone.txt
      merge     a.txt  only the agent's part is taken out

    1 to restore, 1 to merge · 1 conflict
    ");
    assert_eq!(user.tree(), before);
}

#[test]
fn a_turn_is_taken_back_and_later_ones_stay() {
    let user = two_turns();
    let before = user.tree();
    insta::assert_snapshot!(user.exits(4, &["revert", "one", "-y"]).out, @r"
    Revert ID “do one”

      conflict  a.txt  both changed the same lines in 1 place: yours stay
                line 2
                now     mine
                before  2
      restored  gone.txt
      merged    a.txt  only the agent's part is taken out

    1 restored, 1 merged · 1 conflict
    Done as far as possible. `takeback undo` takes it back.
    `takeback resolve` settles the conflicts.
    ");
    assert_eq!(user.read("a.txt"), TEN.replace("2\n", "mine\n"));
    assert_eq!((user.read("b.txt").as_str(), user.exists("made.txt")), ("bb\n", true));
    user.succeeds(&["undo", "-y"]);
    assert_eq!(user.tree(), before);
    user.succeeds(&["revert", "two", "-y"]).prints("1 restored, 1 deleted");
    user.exits(5, &["revert", "two", "-y"]).prints("nothing to change");
}

#[test]
fn a_receipt_in_json_has_the_lines_and_both_sides() {
    let user = two_turns();
    let receipt = user.json(&["revert", "one", "-y"]);
    assert_eq!(receipt["success"], false);
    let lines = json!([{ "line": 2, "count": 1, "mine": "mine\n", "before": "2\n" }]);
    assert_eq!(receipt["conflicts"][0]["filePath"], "a.txt");
    assert_eq!(receipt["conflicts"][0]["lines"], lines);
    assert_eq!(receipt["restoredFiles"], json!(["gone.txt"]));
    assert_eq!(receipt["point"], json!(null), "the files are not those of a point");
    let preview = user.json(&["revert", "two", "--dry-run"]);
    assert_eq!((&preview["rewind"], &preview["safetyPoint"]), (&json!(null), &json!(null)));
    assert_eq!(preview["covers"]["sessions"], json!(["s"]));
}

#[test]
fn a_call_and_a_range_are_taken_back() {
    for (what, [a, b]) in [
        ("two.1", ["mine, eight", "b"]),
        ("two", ["mine, eight", "b"]),
        ("one..two", ["mine, 8", "bb"]),
        ("one..", ["mine, 8", "b"]),
        ("@~1..@", ["mine, 8", "bb"]),
    ] {
        let user = two_turns();
        user.takeback(&["revert", what, "-y"]);
        let text = user.read("a.txt");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(format!("{}, {}", lines[1], lines[7]), a, "{what}");
        assert_eq!(user.read("b.txt").trim_end(), b, "{what}");
    }
}

#[test]
fn policies_decide_about_lines_that_were_changed_again() {
    let marked = "<<<<<<< now\nmine\n=======\n2\n>>>>>>> before\n";
    for (policy, code, two, eight) in [
        ("keep", 4, "mine\n", "8\n"),
        ("file", 4, "mine\n", "eight\n"),
        ("take", 0, "2\n", "8\n"),
        ("markers", 4, marked, "8\n"),
    ] {
        let user = two_turns();
        let before = user.tree();
        user.exits(code, &["revert", "one", "-y", "--conflicts", policy]);
        assert_eq!(user.read("a.txt"), TEN.replace("2\n", two).replace("8\n", eight), "{policy}");
        assert!(user.exists("gone.txt"), "{policy}");
        user.succeeds(&["undo", "-y"]);
        assert_eq!(user.tree(), before, "{policy}");
    }
}

#[test]
fn only_the_requested_path_is_taken_back() {
    let user = two_turns();
    user.succeeds(&["revert", "one", "--path", "gone.txt", "-y"]);
    assert!(user.exists("gone.txt") && user.read("a.txt").contains("eight"));
    let none = user.exits(5, &["revert", "one", "--path", "nowhere", "-y"]);
    none.prints("No change").prints("nowhere");
}

#[test]
fn what_cannot_be_meant_is_an_error_that_says_what_to_do() {
    let user = two_turns();
    let before = user.tree();
    let errors = [
        (2, &["revert", "one"][..]),
        (2, &["revert", "two..one", "-y"]),
        (1, &["revert", "nowhere", "-y"]),
        (1, &["revert", "one.7", "-y"]),
        (1, &["revert", "one..nowhere", "-y"]),
        (1, &["undo", "0000000000000bad", "-y"]),
        (2, &["revert"]),
    ];
    let shown: Vec<String> = errors
        .iter()
        .map(|(code, args)| {
            let err = user.exits(*code, args).err;
            format!("{}\n{err}", args.join(" "))
        })
        .collect();
    insta::assert_snapshot!(shown[..6].join("\n"), @r#"
    revert one
    takeback: this changes files and needs confirmation
      Run it in a terminal, or pass -y; --dry-run shows what it would do.

    revert two..one -y
    takeback: the range ends before it begins
      Write the older point first: @~5..@~2.

    revert nowhere -y
    takeback: no point is called "nowhere"
      `takeback log` lists the points.
      A call is POINT.N: `takeback show POINT` numbers the calls.

    revert one.7 -y
    takeback: there is no call one.7
      `takeback show one` numbers the calls.

    revert one..nowhere -y
    takeback: no point is called "nowhere"
      `takeback log` lists the points.

    undo 0000000000000bad -y
    takeback: there is no operation LONG-ID
      `takeback log --ops` lists the operations with their ids.
    "#);
    assert!(shown[6].contains("required"), "{}", shown[6]);
    assert_eq!(user.tree(), before);
    User::new().exits(10, &["revert", "@", "-y"]);
}

#[test]
fn an_operation_is_undone_by_its_id_and_later_ones_stay() {
    let user = two_turns();
    user.exits(4, &["revert", "one", "-y"]);
    user.succeeds(&["revert", "two", "-y"]);
    let ops = column(&user.json(&["log", "--ops"]), "id");
    let [second, first] = ops.as_slice() else { panic!("{ops:?}") };
    let [second, first] = [second, first].map(|id| id.as_str().expect("a text"));
    insta::assert_snapshot!(user.succeeds(&["undo", first, "-y"]).out, @r"
    Undo the revert of ID “do one”

      restored  a.txt
      deleted   gone.txt  did not exist before

    1 restored, 1 deleted
    Done and verified on disk. `takeback redo` takes it back.
    ");
    assert!(user.read("a.txt").contains("eight") && !user.exists("gone.txt"));
    assert_eq!(user.read("b.txt"), "b\n", "the later operation stays");
    user.exits(5, &["undo", first, "-y"]).reports("taken back");
    user.succeeds(&["undo", &second[..8], "-y"]);
    assert_eq!(user.read("b.txt"), "bb\n");
    let undone = column(&user.json(&["log", "--ops"]), "takenBack");
    assert_eq!(undone[2..], [json!("yes"), json!("yes")]);
}

#[test]
fn a_revert_asks_in_a_terminal_with_the_number_of_conflicts() {
    let user = two_turns();
    let ran = user.terminal(90, 40).run(&["revert", "one"], "[y/N]", "n\r");
    let shown = ran.shown();
    assert_eq!(ran.code, 5, "{shown}");
    assert!(shown.contains("1 conflict") && shown.find("conflict") < shown.find("restore   "));
    assert!(!user.exists("gone.txt"), "nothing was done");
    let mut terminal = user.terminal(90, 40).start(&["revert", "one"]);
    terminal.sees("[y/N]");
    assert_eq!(terminal.colour_of("conflict  a.txt"), vt100::Color::Idx(1), "red");
    terminal.types("y\r");
    assert_eq!(terminal.finish().code, 4);
    assert!(user.exists("gone.txt"));
}

/// A turn has the session that it has: the option would be ignored.
#[test]
fn a_session_is_chosen_for_a_range_only() {
    let user = two_turns();
    for args in [&["--session", "s"][..], &["--all-agents"]] {
        for what in ["one", "one.1"] {
            let told = user.exits(2, &[&["revert", what, "-y"], args].concat());
            told.reports("are for ranges").reports("Write A..B");
        }
        user.exits(4, &[&["revert", "one..", "--dry-run"], args].concat());
    }
}
