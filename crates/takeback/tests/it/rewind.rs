use serde_json::json;

use crate::user::User;

/// An agent's run changed `a.txt` and made `new.txt`; you changed `mine.txt` since.
fn after_a_run() -> User {
    let user = User::with(&[("a.txt", "one\ntwo\nthree\nfour\nfive\n"), ("mine.txt", "m\n")]);
    user.takeback(&["-q", "run", "--", "sh", "-c", "sed -i s/one/1/ a.txt; echo n > new.txt"]);
    user.write("mine.txt", "changed\n");
    user
}

#[test]
fn a_preview_changes_nothing() {
    let user = after_a_run();
    insta::assert_snapshot!(user.succeeds(&["rewind", "@", "--dry-run"]).out, @r"
    Rewind to ID “sh -c sed -i s/one/1/ a.txt; echo n > new.txt” (just now)
    Takes back: run-ID (your own edits stay: --exact)

      restore   a.txt
      delete    new.txt   did not exist then
      keep      mine.txt  changed by you

    a.txt and new.txt changed while `sh -c sed -i s/one/1/ a.txt; echo n > new.txt` ran; may include
    yours.

    1 to restore, 1 to delete · 1 to keep
    ");
    assert!(user.exists("new.txt"));
    assert!(!user.exists(".takeback"));
}

#[test]
fn a_missing_confirmation_is_an_error_that_says_what_to_do() {
    let user = after_a_run();
    insta::assert_snapshot!(user.exits(2, &["rewind", "@"]).err, @r"
    takeback: this changes files and needs confirmation
      Run it in a terminal, or pass -y; --dry-run shows what it would do.
    ");
    assert!(user.exists("new.txt"));
}

#[test]
fn rewind_undo_redo() {
    let user = after_a_run();
    insta::assert_snapshot!(user.succeeds(&["rewind", "@", "-y"]).out, @r"
    Rewind to ID “sh -c sed -i s/one/1/ a.txt; echo n > new.txt” (just now)

      restored  a.txt
      deleted   new.txt   did not exist then
      kept      mine.txt  changed by you

    a.txt and new.txt changed while `sh -c sed -i s/one/1/ a.txt; echo n > new.txt` ran; may include
    yours.

    1 restored, 1 deleted · 1 kept
    Done and verified on disk. `takeback undo` takes it back.
    ");
    assert!(!user.exists("new.txt") && user.read("a.txt").starts_with("one"));
    assert_eq!(user.read("mine.txt"), "changed\n");
    insta::assert_snapshot!(user.succeeds(&["undo", "-y"]).out, @r"
    Undo the last operation

      restored  a.txt
      restored  new.txt

    2 restored
    Done and verified on disk. `takeback redo` takes it back.
    ");
    assert!(user.exists("new.txt") && user.read("a.txt").starts_with("1\n"));
    user.succeeds(&["redo", "-y"]);
    assert!(!user.exists("new.txt"));
    assert_eq!(user.takeback(&["redo", "-y"]).code, 5, "nothing left to redo");
    user.exits(5, &["rewind", "@", "-y"]);
}

#[test]
fn a_conflict_is_left_and_the_exit_code_says_so() {
    let user = after_a_run();
    user.write("a.txt", "uno\ntwo\nthree\nfour\nfive\n");
    insta::assert_snapshot!(user.exits(4, &["rewind", "@", "-y"]).out, @r"
    Rewind to ID “sh -c sed -i s/one/1/ a.txt; echo n > new.txt” (just now)

      conflict  a.txt     both changed the same lines
                line 1
                now     uno
                before  one
      deleted   new.txt   did not exist then
      kept      mine.txt  changed by you

    new.txt changed while `sh -c sed -i s/one/1/ a.txt; echo n > new.txt` ran; may include yours.

    1 deleted · 1 kept · 1 conflict
    Done as far as possible. `takeback undo` takes it back.
    `takeback resolve` settles the conflicts.
    ");
    assert!(user.read("a.txt").starts_with("uno"));
}

#[test]
fn lost_mode_bits_and_moves_are_reported() {
    let user = User::new();
    user.write("tool", "t\n");
    user.write("old.txt", "moved\n");
    let script = "chmod 4755 tool";
    user.succeeds(&["run", "--", "sh", "-c", script]);
    let script = "rm tool; mv old.txt new.txt";
    user.succeeds(&["run", "--", "sh", "-c", script]);
    user.write("new.txt", "moved, then edited\n");
    insta::assert_snapshot!(user.exits(4, &["rewind", "@", "-y"]).out, @r"
    Rewind to ID “sh -c rm tool; mv old.txt new.txt” (just now)

      conflict  new.txt  it was old.txt, which is restored, and it was changed since
      restored  old.txt
      restored  tool
      note      tool     comes back without its set-user-id bit

    old.txt and tool changed while `sh -c rm tool; mv old.txt new.txt` ran; may include yours.

    2 restored · 1 conflict
    Done as far as possible. `takeback undo` takes it back.
    `takeback resolve` settles the conflicts.
    ");
}

#[test]
fn only_the_named_paths_are_taken_back() {
    let user = after_a_run();
    let answer = user.exits(5, &["rewind", "@", "-y", "--path", "*.md"]);
    insta::assert_snapshot!(answer.out.lines().last().expect("a line"), @"No change since then matches *.md.");
    let preview = user.takeback(&["rewind", "@", "--dry-run", "--path", "*.md"]);
    assert_eq!(preview.out.replace("Takes back: run-ID\n", ""), answer.out);
    user.succeeds(&["rewind", "@", "-y", "--path", "new*"]);
    assert!(!user.exists("new.txt") && user.read("a.txt").starts_with('1'));
}

#[test]
fn exact_takes_back_yours_too_and_undo_brings_it_back() {
    let user = after_a_run();
    user.succeeds(&["rewind", "@", "-y", "--exact"]);
    assert_eq!(user.read("mine.txt"), "m\n");
    user.succeeds(&["undo", "-y"]);
    assert_eq!(user.read("mine.txt"), "changed\n");
}

#[test]
fn a_receipt_is_one_json_value() {
    let user = after_a_run();
    let receipt = user.json(&["rewind", "@", "-y"]);
    assert_eq!(receipt["success"], true);
    assert_eq!(receipt["restoredFiles"], serde_json::json!(["a.txt"]));
    assert_eq!(receipt["deletedFiles"], serde_json::json!(["new.txt"]));
    assert_eq!(
        receipt["keptFiles"],
        serde_json::json!([{ "filePath": "mine.txt", "reason": "changed by you" }])
    );
    assert!(receipt["safetyPoint"].is_string());
    assert_eq!(receipt["windows"][0]["paths"], 2);
}

#[test]
fn a_preview_shows_how_files_would_change_merged_ones_too() {
    let user = after_a_run();
    user.write("a.txt", "1\ntwo\nthree\nfour\nmine\n");
    let answer = user.succeeds(&["rewind", "@", "--dry-run", "--diff"]);
    let (_, diffs) =
        answer.out.split_once("to merge · 1 to keep\n\n").expect("the preview, then the diffs");
    insta::assert_snapshot!(diffs, @r"
    diff --git a/a.txt b/a.txt
    --- a/a.txt
    +++ b/a.txt
    @@ -1,4 +1,4 @@
    -1
    +one
     two
     three
     four
    diff --git a/new.txt b/new.txt
    deleted file mode 100644
    --- a/new.txt
    +++ /dev/null
    @@ -1 +0,0 @@
    -n
    ");
    assert!(user.exists("new.txt"));
    let done = user.succeeds(&["rewind", "@", "-y", "--diff"]);
    assert!(done.out.contains(diffs) && done.out.contains("Done and verified"), "{}", done.out);
    assert_eq!(user.read("a.txt"), "one\ntwo\nthree\nfour\nmine\n");
}

/// A finished turn with one edit.
fn after_a_turn() -> User {
    let user = User::with(&[("a.txt", "one\n"), ("mine.txt", "m\n"), ("yours.txt", "y\n")]);
    user.agent_turn("m", "go", ("Edit", &["a.txt"]), || user.write("a.txt", "two\n"));
    user
}

#[test]
fn your_latest_changes_are_listed_as_kept() {
    let user = after_a_turn();
    user.write("mine.txt", "changed\n");
    user.write("new.txt", "new\n");
    let kept = |receipt: &serde_json::Value| {
        let kept = receipt["keptFiles"].as_array().expect("a list").iter();
        kept.map(|one| (one["filePath"].clone(), one["reason"].clone())).collect::<Vec<_>>()
    };
    let yours = |path: &str| (json!(path), json!("changed by you"));
    let preview = user.json(&["rewind", "m", "--dry-run"]);
    assert_eq!(preview["restoredFiles"], json!(["a.txt"]));
    assert_eq!(kept(&preview), [yours("mine.txt"), yours("new.txt")]);
    user.write("yours.txt", "changed\n");
    let done = user.json(&["rewind", "m", "-y"]);
    assert_eq!(kept(&done), [yours("mine.txt"), yours("new.txt"), yours("yours.txt")]);
    assert_eq!(user.read("a.txt"), "one\n");
    assert_eq!(user.read("mine.txt"), "changed\n");
    let undone = user.json(&["undo", "-y"]);
    assert_eq!(kept(&undone), [], "an undo is about its rewind alone");
}

/// Kept files are listed in the preview, but they are not part of what the user confirms.
#[test]
fn a_save_during_the_question_does_not_cancel_the_rewind() {
    let user = after_a_turn();
    let mut terminal = user.terminal(80, 40).start(&["rewind", "m"]);
    terminal.sees("[y/N]");
    user.write("mine.txt", "changed\n");
    terminal.types("y\r");
    let done = terminal.finish();
    assert_eq!(done.code, 0, "{}", done.shown());
    assert!(!done.shown().contains("Something changed meanwhile"), "{}", done.shown());
    assert_eq!((user.read("a.txt"), user.read("mine.txt")), ("one\n".into(), "changed\n".into()));
}
