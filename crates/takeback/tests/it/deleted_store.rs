//! The new store that replaces a deleted one does not hide the loss.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::hook::Session;
use crate::user::{Answer, User};

fn markers(user: &User) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(user.home().join(".local/state/takeback")) else {
        return Vec::new();
    };
    files.map(|file| file.expect("it has a name").path()).collect()
}

/// On one line, with zeros for the digits of times.
fn without_times(text: &str) -> String {
    let is_time = |word: &&str| word.starts_with("20") || word.matches(':').count() == 2;
    let words = text.split_whitespace();
    let words = words.map(|word| {
        if is_time(&word) {
            word.replace(|c: char| c.is_ascii_digit(), "0")
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// A session that has recorded a prompt and an edit.
fn at_work(user: &User) -> Session<'_> {
    let mut session = Session::of(user, "s");
    session.send("SessionStart", &json!({"source": "startup"}));
    session.prompt("first");
    session.write("c1", "a.txt", "two\n");
    session
}

fn bash(call: &str) -> Value {
    json!({"tool_name": "Bash", "tool_input": {"command": "rm -rf ~/.takeback"}, "tool_use_id": call})
}

#[test]
fn an_agent_that_deletes_the_home_is_reported_until_you_acknowledge_it() {
    let user = User::with(&[("a.txt", "one\n")]);
    let session = at_work(&user);
    user.succeeds(&["doctor"]);
    session.send("PreToolUse", &bash("c2"));
    fs::remove_dir_all(user.home().join(".takeback")).expect("it goes");
    let told =
        session.run("PostToolUse", &bash("c2")).system_message().expect("it is told at once");
    insta::assert_snapshot!(without_times(&told), @"Takeback: the history of FOLDER/work is gone: its store ~/.takeback/workspaces/work-LONG-ID, made 0000-00-00 00:00:00, no longer exists; an empty one was made 0000-00-00 00:00:00. `takeback doctor --acknowledge` stops this report, once you know why.");
    session.stop();
    let log = fs::read_to_string(user.home().join(".takeback/logs/hooks.log")).expect("a log");
    assert!(log.contains("is gone"), "{log}");
    // The end of a call without its beginning is reported, too.
    assert!(log.contains("the beginning of a call (Bash) was not recorded"), "{log}");
    let doctor = user.exits(1, &["doctor"]);
    let told = without_times(&doctor.out);
    assert!(told.contains("✗ the history of FOLDER/work is gone"), "{told}");
    assert!(told.contains("doctor --acknowledge"), "{told}");
    let status = user.takeback(&["status"]);
    assert!(
        without_times(&status.out).contains("The history of FOLDER/work is gone"),
        "{status:?}"
    );
    let status = user.json(&["status"]);
    assert_eq!(status["historyGone"]["root"], json!(user.work().canonicalize().expect("there")));
    let log = user.succeeds(&["log"]);
    assert!(log.err.contains("is gone"), "{log:?}");
    // The next session gets the message as well.
    let next = Session::of(&user, "t");
    assert!(next.run("SessionStart", &json!({"source": "startup"})).system_message().is_some());
    next.stop();
    user.succeeds(&["doctor", "--acknowledge"]);
    user.succeeds(&["doctor"]);
    assert_eq!(user.json(&["status"])["historyGone"], Value::Null);
    assert_eq!(user.takeback(&["log"]).err, "");
    Session::of(&user, "u").send("SessionStart", &json!({"source": "startup"}));
}

#[test]
fn any_deleted_part_is_reported() {
    for deleted in [".takeback", ".takeback/workspaces", "STORE", "STORE/timeline.db"] {
        let user = User::with(&[("a.txt", "one\n")]);
        let session = at_work(&user);
        let path = match deleted.strip_prefix("STORE") {
            Some(rest) => user.store().join(rest.trim_start_matches('/')),
            None => user.home().join(deleted),
        };
        if path.is_dir() {
            fs::remove_dir_all(path).expect("it goes");
        } else {
            for end in ["", "-wal", "-shm"] {
                let mut file = path.clone().into_os_string();
                file.push(end);
                drop(fs::remove_file(file));
            }
        }
        let doctor = user.takeback(&["doctor"]);
        assert_eq!(doctor.code, 1, "{deleted}, before anything is recorded: {doctor:?}");
        let status = user.takeback(&["status"]);
        // The rest of a store does not count as no store.
        let is_left = deleted.ends_with("timeline.db");
        assert_eq!(status.code, if is_left { 1 } else { 10 }, "{deleted}: {status:?}");
        assert!(status.err.contains("is gone"), "{deleted}: {status:?}");
        let told = session.run("Stop", &json!({"stop_hook_active": false})).system_message();
        assert!(told.is_some_and(|told| told.contains("is gone")), "{deleted}");
        assert_eq!(user.takeback(&["doctor"]).code, 1, "{deleted}");
    }
}

#[test]
fn a_marker_is_small_and_private_and_is_removed_by_forget() {
    let user = User::with(&[("a.txt", "one\n")]);
    user.succeeds(&["checkpoint"]);
    let marker = markers(&user);
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(marker.len(), 1);
    assert_eq!(mode(&marker[0]), 0o600);
    assert_eq!(mode(marker[0].parent().expect("a folder")), 0o700);
    assert!(fs::metadata(&marker[0]).expect("there").len() < 1000);
    user.succeeds(&["forget", "-y"]);
    assert_eq!(markers(&user), Vec::<PathBuf>::new());
    assert_eq!(user.takeback(&["checkpoint"]).err, "");
    user.succeeds(&["doctor"]);
    user.succeeds(&["uninstall", "-y"]);
    assert_eq!(markers(&user), Vec::<PathBuf>::new());
    assert_eq!(user.takeback(&["checkpoint"]).err, "");
    assert_eq!(markers(&user), marker, "a store without a marker gets one");
    user.succeeds(&["demo"]);
    assert_eq!(markers(&user), marker);
}

#[test]
fn relocate_moves_the_marker() {
    let user = User::with(&[("a.txt", "one\n")]);
    user.succeeds(&["checkpoint"]);
    let (old, new) =
        (user.work().canonicalize().expect("there"), user.work().with_file_name("new"));
    fs::rename(&old, &new).expect("it moves");
    fs::create_dir(&old).expect("a folder to start in");
    let run = |args: &[&str]| user.takeback_in(&new, args);
    fs::remove_dir(&old).expect("it goes");
    let answer = run(&["relocate", old.to_str().expect("utf-8")]);
    assert_eq!(answer.code, 0, "{answer:?}");
    assert_eq!(run(&["checkpoint"]).err, "");
    assert_eq!(run(&["doctor"]).code, 0);
    assert_eq!(markers(&user).len(), 1);
    fs::remove_dir_all(user.home().join(".takeback")).expect("it goes");
    let answer = run(&["checkpoint"]);
    assert!(answer.err.contains("the history of FOLDER/new is gone"), "{answer:?}");
}

#[test]
fn two_homes_have_a_marker_each() {
    let user = User::with(&[("a.txt", "one\n")]);
    let other = user.home().join("other");
    let other = ["--home", other.to_str().expect("utf-8")];
    let run = |args: &[&str]| user.takeback(&[&other, args].concat());
    assert_eq!(user.takeback(&["checkpoint"]).err, "");
    assert_eq!(run(&["checkpoint"]).err, "");
    assert_eq!(markers(&user).len(), 2);
    fs::remove_dir_all(user.home().join(".takeback")).expect("it goes");
    assert_eq!(run(&["doctor"]).code, 0, "its own store is there");
    assert_eq!(run(&["log"]).err, "");
    user.exits(1, &["doctor"]);
    assert_eq!(run(&["doctor", "--acknowledge"]).code, 0);
    assert_eq!(user.takeback(&["doctor"]).code, 1, "it is another home's");
}

/// An agent starts several hooks at once, and any of them may create the store. Here the first one is delayed
/// just before it writes the store's id.
#[test]
fn processes_that_create_a_store_at_once_create_one() {
    let user = User::with(&[("a.txt", "one\n")]);
    let quiet = |answer: Answer| assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    std::thread::scope(|scope| {
        let slow = "rename:delay_enter=700000:when=1";
        scope.spawn(|| quiet(user.with_failing(slow, None, &["checkpoint"])));
        std::thread::sleep(Duration::from_millis(300));
        quiet(user.takeback(&["checkpoint"]));
    });
    user.succeeds(&["doctor"]);
    assert_eq!(user.takeback(&["log"]).err, "");
}

#[test]
fn recording_works_without_markers() {
    let user = User::with(&[("a.txt", "one\n")]);
    fs::create_dir_all(user.home().join(".local")).expect("a folder");
    fs::write(user.home().join(".local/state"), "a file\n").expect("a file");
    let session = at_work(&user);
    session.stop();
    assert_eq!(user.takeback(&["log"]).err, "");
    let doctor = user.takeback(&["doctor"]);
    let told = without_times(&doctor.out);
    assert_eq!(doctor.code, 0, "{told}");
    assert!(told.contains("! a deleted store would go unnoticed"), "{told}");
}

#[test]
fn an_unreadable_store_is_not_reported_as_deleted() {
    let user = User::with(&[("a.txt", "one\n")]);
    user.succeeds(&["checkpoint"]);
    user.drop_privileges();
    let run = |mode: &str| {
        let mut chmod = Command::new("chmod");
        assert!(chmod.arg(mode).arg(user.store()).status().expect("it runs").success());
    };
    run("000");
    let doctor = user.unprivileged(&["doctor"]);
    assert!(!doctor.out.contains("gone"), "{doctor:?}");
    let log = user.unprivileged(&["log"]);
    assert!(!log.err.contains("gone"), "{log:?}");
    run("700");
}
