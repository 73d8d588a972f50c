use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::user::{User, until};

#[test]
fn a_commands_changes_are_listed_and_taken_back() {
    let user = User::with(&[("a.txt", "one\ntwo\n"), ("lib/x", "x\n")]);
    let answer = user.takeback(&[
        "run",
        "--",
        "sh",
        "-c",
        "echo out; rm -r lib; sed -i s/two/2/ a.txt; echo n > new",
    ]);
    assert_eq!((answer.code, answer.out.as_str()), (0, "out\n"));
    insta::assert_snapshot!(answer.err, @r"
    takeback: 3 files changed
      a.txt  changed         +1 -1
      lib    folder deleted
      lib/x  deleted         +0 -1
      new    new             +1 -0
    take it back with takeback rewind ID
    ");
    user.succeeds(&["rewind", "@", "-y"]);
    assert_eq!(
        (user.read("a.txt"), user.read("lib/x"), user.exists("new")),
        ("one\ntwo\n".into(), "x\n".into(), false)
    );
}

#[test]
fn the_commands_exit_code_is_the_answer() {
    let user = User::new();
    user.exits(7, &["run", "--", "sh", "-c", "exit 7"]);
    user.exits(137, &["run", "--", "sh", "-c", "kill -KILL $$"]);
    insta::assert_snapshot!(user.exits(125, &["run", "--", "no-such-program"]).err, @"takeback: no-such-program cannot be started: No such file or directory (os error 2)");
    user.write("not-a-program", "");
    let answer = user.takeback(&["run", "--", "./not-a-program"]);
    insta::assert_snapshot!(answer.err, @"takeback: ./not-a-program cannot be started: Permission denied (os error 13)");
    assert_eq!(user.json(&["log"]).as_array().map(Vec::len), Some(2), "of those that were started");
}

/// The exit code is 125, as for any command that was not started: 2 could be the command's own.
#[test]
fn in_a_folder_that_is_refused_the_command_is_not_started() {
    let user = User::new();
    for folder in [user.home(), "/".into()] {
        let folder = folder.to_str().expect("UTF-8");
        let answer = user.exits(125, &["-C", folder, "run", "--", "touch", "/tmp/started-by-run"]);
        assert!(answer.err.contains("cannot be protected"), "{answer:?}");
        assert!(answer.err.ends_with("The command was not started.\n"), "{answer:?}");
    }
    assert!(!std::path::Path::new("/tmp/started-by-run").exists());
}

#[test]
fn a_command_that_cannot_be_protected_is_not_started() {
    let user = User::new();
    std::fs::write(user.home().join(".takeback"), "no folder").expect("a file in the way");
    let answer = user.takeback(&["run", "--", "touch", "started"]);
    assert_eq!((answer.code, user.exists("started")), (125, false));
    insta::assert_snapshot!(answer.err, @r"
    takeback: FOLDER/home/.takeback/workspaces/work-LONG-ID cannot be used (creating it): Not a directory (os error 20)
      The command was not started.
    ");
}

#[test]
fn the_commands_exit_code_is_the_answer_though_recording_failed_after_it() {
    let user = User::with(&[("a.txt", "one\n")]);
    let script = "rm -r \"$HOME/.takeback/workspaces\"; echo two > a.txt; exit 7";
    insta::assert_snapshot!(user.exits(7, &["run", "--", "sh", "-c", script]).err, @"takeback: FOLDER/home/.takeback/workspaces/work-LONG-ID/lock cannot be used (locking the workspace): No such file or directory (os error 2)");
}

#[test]
fn a_folder_that_the_command_deleted_comes_back() {
    let user = User::with(&[("a.txt", "one\n"), ("lib/b.txt", "b\n")]);
    let before = user.tree();
    insta::assert_snapshot!(user.exits(7, &["run", "--", "sh", "-c", "rm -r \"$PWD\"; exit 7"]).err, @r"
    takeback: cannot scan FOLDER/work/: No such file or directory (os error 2)
    takeback: the folder is gone; `mkdir FOLDER/work && takeback -C FOLDER/work rewind @` brings it back
    ");
    std::fs::create_dir(user.work()).expect("a folder");
    let answer = user.takeback(&["rewind", "@", "-y"]);
    assert_eq!((answer.code, user.tree()), (0, before), "{answer:?}");
}

#[test]
fn a_possibly_moved_folder_is_named_before_a_store_is_created() {
    let user = User::with(&[("a.txt", "one\n"), ("b.txt", "b\n")]);
    user.succeeds(&["checkpoint", "first"]);
    let moved = user.home().join("moved");
    std::fs::rename(user.work(), &moved).expect("a folder moves");
    let run = |args: &[&str]| user.takeback_in(&moved, args);
    let answer = run(&["run", "--", "true"]);
    assert_eq!(answer.code, 0);
    insta::assert_snapshot!(answer.err, @r"
    takeback: creating a new store; if FOLDER/work was moved here, run `takeback forget`, then `takeback relocate FOLDER/work` to bring its points
    takeback: no file changed
    ");
    assert_eq!(run(&["forget", "-y"]).code, 0);
    let old = user.work();
    assert_eq!(run(&["relocate", old.to_str().expect("text")]).code, 0);
    assert_eq!(run(&["show", "first"]).code, 0);
}

#[test]
fn a_command_that_changes_nothing_says_so() {
    let answer = User::new().takeback(&["run", "--", "true"]);
    insta::assert_snapshot!(answer.err, @"takeback: no file changed");
}

#[test]
fn changes_are_recorded_while_a_command_runs() {
    let user = User::with(&[("a", "1")]);
    let mut child = user
        .command(&["run", "--", "sh", "-c", "echo 2 > a; sleep 5; echo 3 > a"])
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    assert!(child.wait().expect("it ends").success());
    let changes = user.json(&["show", "@"])["changes"].as_array().expect("changes").len();
    assert_eq!(changes, 2, "once on the way, once at the end");
}

#[test]
fn a_killed_runs_changes_are_unclear_and_later_ones_yours() {
    let user = User::with(&[("a", "1\n"), ("b", "1\n")]);
    let mut child = user
        .command(&["run", "--", "sh", "-c", "echo 2 > a; echo ready; exec sleep 60"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    until("the command writes", || user.read("a") == "2\n");
    child.kill().expect("it can be killed");
    assert_eq!(child.wait().expect("it ends").signal(), Some(9));
    user.takeback(&["status"]);
    user.write("b", "mine\n");
    user.succeeds(&["diff", "@", "--stat"]);
    let authors: Vec<_> = user.json(&["show", "@"])["changes"]
        .as_array()
        .expect("changes")
        .iter()
        .map(|change| {
            let kind = change["author"]["kind"].clone();
            (change["filePath"].clone(), kind, change["evidence"].clone())
        })
        .collect();
    let (agent, human) = (json!("agent"), json!("human"));
    assert_eq!(
        authors,
        [(json!("a"), agent, json!("openWindow")), (json!("b"), human, Value::Null)]
    );
}
