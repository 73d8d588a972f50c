//! Two commands at once.

use std::process::Stdio;

use super::after_an_agent;

#[test]
fn a_rewind_while_another_runs_waits_and_then_says_so() {
    let user = after_an_agent();
    let before = user.tree();
    let lock = std::fs::File::open(user.store().join("lock")).expect("a lock");
    lock.lock().expect("another rewind has it");
    insta::assert_snapshot!(user.exits(11, &["rewind", "m", "-y"]).err, @r"
    takeback: another command has the workspace locked
      Wait until it is done, then try again.
    ");
    assert_eq!(user.tree(), before);
    let event = r#"{"event":"prompt","session":"t","message":"late","text":"go"}"#;
    assert_eq!(user.feed(&["record"], event).code, 0, "an agent's events wait in the inbox");
    drop(lock);
    user.succeeds(&["rewind", "m", "-y"]);
    user.succeeds(&["show", "late"]);
}

#[test]
fn two_rewinds_at_once_are_one_after_the_other() {
    let user = after_an_agent();
    let two = [0, 1].map(|_| {
        let mut command = user.command(&["rewind", "m", "-y", "--json"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    });
    let mut codes = two.map(|child| {
        let output = child.wait_with_output().expect("it ends");
        output.status.code().expect("it ends by itself")
    });
    codes.sort_unstable();
    assert_eq!(codes, [0, 5], "one does it, the other finds nothing to do");
    assert_eq!((user.read("a.txt").as_str(), user.read("lib/b.txt").as_str()), ("one\n", "b\n"));
    assert!(!user.exists("new") && !user.exists(".takeback"));
    // The later one changed nothing.
    user.exits(5, &["undo", "-y"]);
    user.succeeds(&["undo", "-y"]);
    user.succeeds(&["verify"]);
}

#[test]
fn status_works_while_a_rewind_runs() {
    let user = after_an_agent();
    let lock = std::fs::File::open(user.store().join("lock")).expect("a lock");
    lock.lock().expect("another command has it");
    let answer = user.succeeds(&["status"]);
    insta::assert_snapshot!(answer.out.lines().nth(1).expect("a line"), @"  Another command has it locked: the files were not scanned");
    let told = user.json(&["status"]);
    assert_eq!(
        (&told["locked"], &told["files"], &told["points"]),
        (&true.into(), &().into(), &1.into())
    );
    drop(lock);
    let told = user.json(&["status"]);
    assert_eq!((&told["locked"], &told["files"]), (&false.into(), &2.into()));
}
