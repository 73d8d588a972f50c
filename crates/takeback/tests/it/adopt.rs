//! `adopt`: what happened in a fork comes back by a merge.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::user::{User, column};

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n";

fn lines(changed: &[(&str, &str)]) -> String {
    changed.iter().fold(LINES.to_owned(), |text, (from, to)| {
        text.replacen(&format!("{from}\n"), &format!("{to}\n"), 1)
    })
}

/// A project and a fork of it.
fn forked() -> (User, PathBuf) {
    let user = User::with(&[
        ("both.txt", LINES),
        ("theirs.txt", LINES),
        ("mine.txt", LINES),
        ("gone.txt", "g\n"),
        ("run.sh", "run\n"),
        ("picture", "\0one\n"),
        ("folder/inside.txt", "i\n"),
    ]);
    user.succeeds(&["fork", "now", "../try", "--quiet"]);
    let fork = user.work().with_file_name("try");
    (user, fork)
}

#[test]
fn what_both_changed_is_merged_and_one_undo_takes_it_back() {
    let (user, fork) = forked();
    let odd = OsStr::from_bytes(b"caf\xe9");
    fs::write(fork.join("both.txt"), lines(&[("2", "fork"), ("7", "fork too")])).unwrap();
    fs::write(fork.join("theirs.txt"), lines(&[("1", "fork")])).unwrap();
    fs::remove_file(fork.join("gone.txt")).unwrap();
    fs::set_permissions(fork.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(fork.join("folder/inside.txt"), fork.join("moved.txt")).unwrap();
    fs::remove_dir(fork.join("folder")).unwrap();
    fs::write(fork.join("folder"), "a file now\n").unwrap();
    symlink("both.txt", fork.join("link")).unwrap();
    fs::write(fork.join("picture"), b"\0two\n").unwrap();
    fs::write(fork.join(odd), "odd\n").unwrap();
    user.write("both.txt", &lines(&[("4", "mine"), ("7", "mine too")]));
    user.write("mine.txt", &lines(&[("5", "mine")]));
    let before = user.tree();

    let shown = user.exits(4, &["adopt", "../try", "--dry-run"]);
    assert_eq!(user.tree(), before);
    let done = user.exits(4, &["adopt", "../try", "-y"]);
    assert_snapshot!(user.normalize(&done.out), @r"
    Adopt FOLDER/try

      conflict  both.txt           both changed the same lines in 1 place: yours stay
                line 7
                now     mine too
                fork    fork too
      adopted   caf\xe9
      adopted   folder
      adopted   link
      adopted   moved.txt
      adopted   picture
      adopted   run.sh
      adopted   theirs.txt
      deleted   folder/inside.txt  deleted in the fork
      deleted   gone.txt           deleted in the fork
      merged    both.txt           the fork's changes are added to yours

    7 adopted, 2 deleted, 1 merged · 1 conflict
    Done as far as possible. `takeback undo` takes it back.
    `takeback resolve` settles the conflicts.
    ");
    assert_eq!(shown.out.lines().count() + 2, done.out.lines().count(), "{}", shown.out);
    assert_eq!(user.read("both.txt"), lines(&[("2", "fork"), ("4", "mine"), ("7", "mine too")]));
    assert_eq!(user.read("theirs.txt"), lines(&[("1", "fork")]));
    assert_eq!(user.read("mine.txt"), lines(&[("5", "mine")]));
    assert!(!user.exists("gone.txt"));
    assert_eq!(user.mode("run.sh"), 0o755);
    assert_eq!(
        (user.read("folder"), user.read("moved.txt")),
        ("a file now\n".into(), "i\n".into())
    );
    assert_eq!(fs::read_link(user.work().join("link")).unwrap(), PathBuf::from("both.txt"));
    assert_eq!(fs::read(user.work().join("picture")).unwrap(), b"\0two\n");
    assert_eq!(fs::read(user.work().join(odd)).unwrap(), b"odd\n");

    let open = user.json(&["resolve", "--list"]);
    assert_eq!(open[0]["lines"][0]["line"], json!(7), "{open}");
    assert_eq!(open[0]["lines"][0]["before"], json!("fork too\n"), "{open}");
    user.succeeds(&["resolve", "--take", "before", "-y"]);
    assert_eq!(user.read("both.txt"), lines(&[("2", "fork"), ("4", "mine"), ("7", "fork too")]));
    user.succeeds(&["undo", "-y"]);
    user.succeeds(&["undo", "-y"]);
    assert_eq!(user.tree(), before);
    let operations = user.json(&["log", "--ops"]);
    assert_eq!(column(&operations, "kind"), ["undo", "undo", "resolve", "adopt"]);
}

#[test]
fn a_file_that_cannot_be_merged_stays_unless_a_policy_says_otherwise() {
    let (user, fork) = forked();
    fs::write(fork.join("picture"), b"\0fork\n").unwrap();
    fs::write(fork.join("gone.txt"), "changed there\n").unwrap();
    fs::write(fork.join("new.txt"), "made there\n").unwrap();
    user.write("picture", "\0mine\n");
    user.remove("gone.txt");
    user.write("new.txt", "made here\n");
    let answer: Value = {
        let told = user.exits(4, &["adopt", "../try", "-y", "--json"]);
        serde_json::from_str(&told.out).unwrap()
    };
    assert_eq!(column(&answer["conflicts"], "filePath"), ["gone.txt", "new.txt", "picture"]);
    assert_eq!(answer["rewind"], json!(null), "nothing was changed: {answer}");
    assert_eq!(
        (user.read("picture"), user.read("new.txt")),
        ("\0mine\n".into(), "made here\n".into())
    );

    user.succeeds(&["adopt", "../try", "-y", "--conflicts", "take"]);
    assert_eq!(user.read("picture"), "\0fork\n");
    assert_eq!(user.read("gone.txt"), "changed there\n");
    assert_eq!(user.read("new.txt"), "made there\n");
    user.succeeds(&["undo", "-y"]);
    assert_eq!(
        (user.read("picture"), user.read("new.txt")),
        ("\0mine\n".into(), "made here\n".into())
    );
    assert!(!user.exists("gone.txt"));
}

#[test]
fn only_the_named_paths_are_adopted_and_the_fork_is_only_read() {
    let (user, fork) = forked();
    fs::write(fork.join("theirs.txt"), "there\n").unwrap();
    fs::write(fork.join("both.txt"), "there\n").unwrap();
    user.succeeds(&["adopt", "../try", "-y", "--path", "theirs.txt"]);
    assert_eq!(
        (user.read("theirs.txt").as_str(), user.read("both.txt").as_str()),
        ("there\n", LINES)
    );
    user.succeeds(&["adopt", "../try", "-y"]);
    assert_eq!(user.read("both.txt"), "there\n");
    let again = user.exits(5, &["adopt", "../try", "-y"]);
    assert_snapshot!(user.normalize(&again.out), @r"
    Adopt FOLDER/try


    nothing to change
    ");
    assert!(!fork.join(".takeback").exists(), "the fork is not written to");
}

#[test]
fn what_cannot_be_read_in_the_fork_is_reported() {
    let (user, fork) = forked();
    fs::write(fork.join("theirs.txt"), "there\n").unwrap();
    fs::write(fork.join("both.txt"), "there\n").unwrap();
    fs::set_permissions(fork.join("both.txt"), fs::Permissions::from_mode(0o0)).unwrap();
    user.drop_privileges();
    let answer = user.unprivileged(&["adopt", "../try", "-y", "--json"]);
    assert_eq!(answer.code, 4, "{answer:?}");
    let answer: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(answer["restoredFiles"], json!(["theirs.txt"]), "{answer}");
    assert_eq!(column(&answer["notCaptured"], "filePath"), ["both.txt"], "{answer}");
    assert_eq!(user.read("both.txt"), LINES);
}

#[test]
fn what_is_no_fork_of_this_workspace_is_refused_with_a_way_on() {
    let (user, fork) = forked();
    let told = user.exits(2, &["adopt", "."]);
    told.reports("is not a fork");
    user.exits(2, &["adopt", "../nowhere"]).reports("Name a folder that exists");
    let elsewhere = user.takeback_in(&fork, &["adopt", ".", "-y"]);
    assert_ne!(elsewhere.code, 0, "{elsewhere:?}");
    fs::create_dir(user.work().with_file_name("other")).unwrap();
    let other = user.work().with_file_name("other");
    user.takeback_in(&other, &["checkpoint"]).exited(0, &[]);
    let told = user.takeback_in(&other, &["adopt", "../try", "-y"]);
    assert_eq!(told.code, 2, "{told:?}");
    told.reports("is a fork of").reports("Adopt it there: `takeback -C");
}
