//! What a rewind leaves to the user, as commands print it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::user::{User, unwrapped};

pub(crate) fn git(user: &User, line: &str) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=n", "-c", "user.email=e", "-c", "init.defaultBranch=main"]);
    command.args(line.split(' ')).current_dir(user.work()).env("HOME", user.home());
    let output = command.stderr(Stdio::inherit()).output().expect("git runs");
    assert!(output.status.success(), "git {line}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// An agent changed `a.txt` and committed it in the same turn. The commit before.
fn after_a_commit() -> (User, String) {
    let user = User::with(&[("a.txt", "one\n")]);
    git(&user, "init -q");
    git(&user, "add -A");
    git(&user, "commit -qm first");
    let first = git(&user, "rev-parse HEAD");
    let event = |event: &str, call: &str| json!({"event": event, "session": "s", "call": call});
    let mut prompt = event("prompt", "");
    (prompt["message"], prompt["text"]) = (json!("m"), json!("Add discounts"));
    let (mut edit, mut shell) = (event("before_tool", "1"), event("before_tool", "2"));
    (edit["tool"], edit["paths"]) = (json!("Edit"), json!(["a.txt"]));
    (shell["tool"], shell["shell"]) = (json!("Bash"), json!("git commit -qam Discounts"));
    user.record(&format!("{prompt}\n{edit}"));
    user.write("a.txt", "two\n");
    user.record(&format!("{}\n{shell}", event("after_tool", "1")));
    git(&user, "commit -qam Discounts");
    user.record(&event("after_tool", "2").to_string());
    (user, first)
}

/// `git reset` names more digits than other messages.
fn with_names(text: &str, first: &str) -> String {
    text.replace(&first[..12], "FIRST")
}

#[test]
fn a_narrow_log_shows_what_changed_rather_than_where_git_moved() {
    let (user, _) = after_a_commit();
    let shown = |columns| user.normalize(&user.terminal(columns, 50).run(&["log"], "", "").shown());
    assert_eq!(shown(60), "ID  just now  s  Add discounts  1 file +1 -1");
    assert!(shown(100).contains("  git: main "), "{}", shown(100));
}

#[test]
fn a_commit_is_shown_in_the_log_the_preview_and_the_receipt() {
    let (user, first) = after_a_commit();
    insta::assert_snapshot!(user.succeeds(&["log"]).out, @"ID  just now  s  Add discounts  1 file +1 -1  git: main ID → ID");
    insta::assert_snapshot!(user.succeeds(&["rewind", "@", "--dry-run"]).out, @r"
    Rewind to ID “Add discounts” (just now)
    Takes back: s

      restore   a.txt

    1 to restore
    HEAD moved since then: main ID → ID. Takeback does not move it back.

    s may be at work (last event just now). What it writes afterwards is kept.
    ");
    let receipt = user.succeeds(&["rewind", "@", "-y"]).out;
    insta::assert_snapshot!(with_names(&receipt, &first), @r"
    Rewind to ID “Add discounts” (just now)

      restored  a.txt

    1 restored
    Done and verified on disk. `takeback undo` takes it back.
    `git status` shows 1 of these files as modified: HEAD still has the agent's commit ID
    “Discounts”. To drop the commit and keep the files: `git reset FIRST`.

    s may have been at work. What it writes afterwards is kept.
    ");
    insta::assert_snapshot!(user.succeeds(&["undo", "-y"]).out, @r"
    Undo the last operation

      restored  a.txt

    1 restored
    Done and verified on disk. `takeback redo` takes it back.
    ");
}

#[test]
fn the_same_as_json() {
    let (user, first) = after_a_commit();
    let second = git(&user, "rev-parse HEAD");
    let moved = json!({
        "before": {"head": first, "branch": "main"},
        "after": {"head": second, "branch": "main"},
    });
    assert_eq!(user.json(&["log"])[0]["gitMoved"], moved);
    assert_eq!(user.json(&["rewind", "@", "--dry-run"])["git"], moved);
    let mut git = moved;
    git["status"] = json!({
        "modified": 1, "added": 0, "deleted": 0, "untracked": 0,
        "commits": [{"id": second, "summary": "Discounts", "session": "s"}],
        "reset": format!("git reset {}", &first[..12]),
    });
    assert_eq!(user.json(&["rewind", "@", "-y"])["git"], git);
    let undone = user.json(&["undo", "-y"]);
    assert_eq!((undone.get("git"), undone.get("hints")), (None, None));
}

#[test]
fn a_slow_or_missing_git_delays_nothing_for_long() {
    let (user, _) = after_a_commit();
    let programs = user.home().join("programs");
    fs::create_dir(&programs).expect("a folder");
    let rewind = |args: &[&str]| {
        let mut command = user.patient_command(args);
        command.env("PATH", &programs);
        let answer = user.answer_of(command, "");
        assert_eq!(answer.code, 0, "{answer:?}");
        unwrapped(&answer.out)
    };
    let moved = "HEAD moved since then: main ID → ID. Takeback does not move it back.";
    let out = rewind(&["rewind", "@", "-y"]);
    assert!(out.contains(moved) && !out.contains("git status"), "{out}");
    rewind(&["undo", "-y"]);
    let slow = programs.join("git");
    fs::write(&slow, "#!/bin/sh\n/bin/sleep 100 &\nwait\n").expect("it is written");
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).expect("it can run");
    let began = std::time::Instant::now();
    let out = rewind(&["rewind", "@", "-y"]);
    assert!(out.contains(moved) && !out.contains("git status"), "{out}");
    assert!(began.elapsed().as_secs() < 60, "git was not stopped");
}

#[test]
fn a_stale_folder_is_named_with_its_command() {
    let user = User::with(&[
        ("web/package.json", "{}\n"),
        ("web/package-lock.json", "{}\n"),
        ("web/node_modules/x.js", "x\n"),
    ]);
    user.agent_turn("m", "add x", ("Edit", &["web/package-lock.json"]), || {
        user.write("web/package-lock.json", "{\"x\": 1}\n");
    });
    insta::assert_snapshot!(user.succeeds(&["rewind", "@", "--dry-run"]).out, @r"
    Rewind to ID “add x” (just now)
    Takes back: s

      restore   web/package-lock.json

    1 to restore
    web/node_modules is not recorded and may not match web/package-lock.json: run `npm install` in web/.
    ");
    let hint = json!([{
        "command": "npm install",
        "directory": "web",
        "folder": {"filePath": "web/node_modules"},
        "file": {"filePath": "web/package-lock.json"},
        "removedBy": Value::Null,
    }]);
    assert_eq!(user.json(&["rewind", "@", "-y"])["hints"], hint);
}
