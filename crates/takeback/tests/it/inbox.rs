//! A prompt in the inbox is already a point for every command.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue panics")]

use std::fs::File;

use serde_json::{Value, json};

use crate::hook::{payload, write_tool};
use crate::user::{QUIET, User};

fn send(user: &User, event: &str, more: &Value) {
    let mut hook = user.patient_command(&["hook", "--agent", "claude"]);
    if event == "UserPromptSubmit" {
        // How long the hook waits while another process holds the lock.
        hook.env("TAKEBACK_HOOK_DEADLINE_MS", "100");
    }
    let answer = user.answer_of(hook, &payload(user, event, more));
    assert_eq!(answer, QUIET, "{event}");
}

/// Locks the workspace as a rewind does.
fn lock(user: &User) -> File {
    let file = File::options().write(true).open(user.store().join("lock")).unwrap();
    file.lock().unwrap();
    file
}

/// One finished turn, and a second prompt that came while the workspace was locked.
fn with_a_prompt_that_waits() -> User {
    let user = User::with(&[("a.txt", "one\n")]);
    send(&user, "UserPromptSubmit", &json!({"prompt": "first", "prompt_id": "p1"}));
    let call = write_tool(&user, "c1", "a.txt", "two\n");
    send(&user, "PreToolUse", &call);
    user.write("a.txt", "two\n");
    send(&user, "PostToolUse", &call);
    send(&user, "Stop", &json!({}));
    let held = lock(&user);
    send(&user, "UserPromptSubmit", &json!({"prompt": "second", "prompt_id": "p2"}));
    drop(held);
    assert_eq!(user.store().join("inbox").read_dir().unwrap().count(), 1, "it waits");
    user
}

#[test]
fn every_command_that_lists_points_sees_it() {
    let user = with_a_prompt_that_waits();
    assert_eq!(user.descriptions(), ["second", "first"]);
    let user = with_a_prompt_that_waits();
    assert_eq!(user.json(&["show", "@"])["description"], "second");
    let user = with_a_prompt_that_waits();
    assert_eq!(user.json(&["sessions"])[0]["points"], 2);
    let user = with_a_prompt_that_waits();
    assert_eq!(user.json(&["diff", "@~1", "@"])[0]["filePath"], "a.txt");
    let user = with_a_prompt_that_waits();
    user.succeeds(&["label", "@", "here"]);
    assert_eq!(user.json(&["show", "here"])["description"], "second");
}

#[test]
fn a_rewind_to_it_leaves_what_was_done_before() {
    let user = with_a_prompt_that_waits();
    let answer = user.takeback(&["rewind", "@", "-y"]);
    assert_eq!(user.read("a.txt"), "two\n", "{answer:?}");
    assert_eq!(user.descriptions(), ["second", "first"]);
    user.succeeds(&["rewind", "@~1", "-y"]);
    assert_eq!(user.read("a.txt"), "one\n");
}

#[test]
fn waiting_events_are_reported() {
    let user = with_a_prompt_that_waits();
    let held = lock(&user);
    let said =
        "takeback: 1 event is waiting to be recorded: another command has the workspace locked\n";
    let answer = user.takeback(&["log"]);
    assert_eq!((answer.code, answer.err.as_str()), (0, said), "{answer:?}");
    assert!(answer.out.contains("first") && !answer.out.contains("second"), "{answer:?}");
    let answer = user.takeback(&["log", "--json"]);
    let warning: Value = serde_json::from_str(&answer.err).unwrap();
    assert_eq!(warning["warning"], said.trim_start_matches("takeback: ").trim_end());
    let answer = user.takeback(&["rewind", "@", "--dry-run"]);
    assert!(answer.err.starts_with(said), "{answer:?}");
    drop(held);
    assert_eq!(user.descriptions(), ["second", "first"]);
}
