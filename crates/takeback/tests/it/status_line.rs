//! `status --line`, as a shell prompt uses it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::{Value, json};

use crate::user::User;

fn with_point() -> User {
    let user = User::with(&[("a.txt", "one\n"), ("sub/b.txt", "b\n")]);
    let told = |line: &str| user.record(line);
    told(r#"{"event":"session_start","session":"s","agent":"claude"}"#);
    told(r#"{"event":"prompt","session":"s","message":"m1","text":"fix the parser"}"#);
    user
}

#[test]
fn the_line_shows_points_and_agents() {
    let user = with_point();
    let line = user.takeback(&["status", "--line"]);
    assert_eq!((line.code, line.err.as_str()), (0, ""));
    let at_work = "s ago: fix the parser · claude at work\n";
    assert!(line.out.starts_with("1 point · last ") && line.out.ends_with(at_work), "{line:?}");
    let told = r#"{"event":"turn_end","session":"s"}"#;
    user.record(told);
    let mut below = user.command(&["status", "--line"]);
    below.current_dir(user.work().join("sub")).env("COLUMNS", "20");
    let below = user.answer_of(below, "");
    assert!(below.out.starts_with("1 · ") && below.out.contains("s: fix the"), "{below:?}");
    let point = user.json(&["show"]);
    let expected = json!({
        "points": 1,
        "lastPoint": {
            "id": point["id"],
            "label": null,
            "description": "fix the parser",
            "createdAt": point["createdAt"],
        },
        "atWork": [],
        "openRewind": false,
    });
    assert_eq!(user.json(&["status", "--line"]), expected);
}

#[test]
fn without_a_store_the_line_is_empty_and_none_is_created() {
    let user = User::with(&[("a.txt", "one\n")]);
    let line = user.takeback(&["status", "--line"]);
    assert_eq!((line.code, line.out.as_str(), line.err.as_str()), (0, "\n", ""));
    assert_eq!(user.json(&["status", "--line"]), Value::Null);
    assert!(!user.home().join(".takeback").exists());
    // No error in a deleted folder either.
    let mut gone = Command::new("sh");
    gone.args(["-c", "mkdir gone; cd gone; rmdir ../gone; exec \"$0\" status --line"]);
    gone.arg(env!("CARGO_BIN_EXE_takeback"));
    gone.current_dir(user.work()).env_clear().env("HOME", user.home());
    let answer = user.answer_of(gone, "");
    assert_eq!((answer.code, answer.out.as_str(), answer.err.as_str()), (0, "\n", ""));
}

#[test]
fn the_line_neither_scans_nor_waits_nor_writes() {
    let user = with_point();
    user.write("new.txt", "not looked at\n");
    let seq = || user.json(&["log"])[0]["seq"].clone();
    let before = (seq(), names(&user));
    // A rewind holds the lock.
    let lock = fs::File::open(user.store().join("lock")).expect("a lock");
    lock.lock().expect("it is ours");
    let line = user.takeback(&["status", "--line"]);
    drop(lock);
    assert!(line.out.starts_with("1 point · "), "{line:?}");
    assert_eq!((seq(), names(&user)), before);
    // Also for a read-only store.
    let store = user.store();
    let set = |mode| fs::set_permissions(&store, fs::Permissions::from_mode(mode)).expect("ours");
    set(0o555);
    let line = user.takeback(&["status", "--line"]);
    set(0o755);
    assert!(line.out.starts_with("1 point · "), "{line:?}");
}

fn names(user: &User) -> Vec<std::ffi::OsString> {
    let entries = fs::read_dir(user.store()).expect("a store");
    let mut names: Vec<_> = entries.map(|entry| entry.expect("a name").file_name()).collect();
    names.sort();
    names
}

#[test]
fn an_unreadable_store_is_reported_in_the_line() {
    let user = with_point();
    fs::write(user.store().join("timeline.db"), "something else").expect("it is ours");
    let line = user.takeback(&["status", "--line"]);
    assert_eq!((line.code, line.out.as_str()), (1, "takeback: the store cannot be read\n"));
    assert_eq!(line.err, "");
}
