use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::home::User;

#[test]
fn a_commands_changes_are_told_and_taken_back() {
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
    let answer = user.takeback(&["rewind", "@", "-y"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(
        (user.read("a.txt"), user.read("lib/x"), user.exists("new")),
        ("one\ntwo\n".into(), "x\n".into(), false)
    );
}

#[test]
fn the_commands_exit_code_is_the_answer() {
    let user = User::new();
    assert_eq!(user.takeback(&["run", "--", "sh", "-c", "exit 7"]).code, 7);
    assert_eq!(user.takeback(&["run", "--", "sh", "-c", "kill -KILL $$"]).code, 137);
    let answer = user.takeback(&["run", "--", "no-such-program"]);
    assert_eq!(answer.code, 125);
    insta::assert_snapshot!(answer.err, @"takeback: no-such-program cannot be started: No such file or directory (os error 2)");
}

#[test]
fn a_command_that_changes_nothing_says_so() {
    let answer = User::new().takeback(&["run", "--", "true"]);
    insta::assert_snapshot!(answer.err, @"takeback: no file changed");
}

#[test]
fn what_happens_while_a_command_runs_is_seen_before_it_ends() {
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
fn a_run_that_is_killed_leaves_its_changes_unclear_not_the_persons_next_ones() {
    let user = User::with(&[("a", "1\n"), ("b", "1\n")]);
    let mut child = user
        .command(&["run", "--", "sh", "-c", "echo 2 > a; echo ready; exec sleep 60"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let until = Instant::now() + Duration::from_secs(30);
    while user.read("a") != "2\n" {
        assert!(Instant::now() < until, "the command never wrote");
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("it can be killed");
    assert_eq!(child.wait().expect("it ends").signal(), Some(9));
    user.takeback(&["status"]);
    user.write("b", "mine\n");
    let shown = user.takeback(&["diff", "@", "--stat"]);
    assert_eq!(shown.code, 0);
    let authors: Vec<_> = user.json(&["show", "@"])["changes"]
        .as_array()
        .expect("changes")
        .iter()
        .map(|change| (change["filePath"].clone(), change["author"]["kind"].clone()))
        .collect();
    assert_eq!(authors, [("a".into(), "ambiguous".into()), ("b".into(), "human".into())]);
}
