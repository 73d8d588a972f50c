//! `serve --watch`: points on a watcher's word, and that they have what others would have found.

use std::fs;

use serde_json::{Value, json};

use super::wire::{Line, stdio_with};
use crate::home::User;

/// A point made by hand: what vouches for it, and how much had changed.
fn point(line: &mut Line) -> (Value, Value) {
    let made = line.call("checkpoint:create", &json!({}));
    let shown = line.call("point:show", &json!([made["id"]]));
    (shown["vouchedBy"].clone(), made["changes"].clone())
}

#[test]
fn points_say_who_vouches_for_them() {
    let user = User::with(&[("a.txt", "one\n"), ("src/deep/b.txt", "b\n")]);
    let mut server = stdio_with(&user, &["--watch"]);
    let line = &mut server.line;
    assert_eq!(line.call("server:info", &json!({}))["watch"], true);
    assert_eq!(point(line), (json!("scan"), json!(4)));
    assert_eq!(point(line), (json!("watch"), json!(0)));
    let status = line.call("status", &json!({}));
    assert_eq!(status["watch"], json!({ "folders": 3, "why": null }));

    user.write("a.txt", "two\n");
    user.write("src/new/c.txt", "c\n");
    assert_eq!(point(line), (json!("watch"), json!(3)));
    line.told(&json!({ "event": "prompt", "session": "s1", "message": "m1", "text": "go" }));
    assert_eq!(line.call("point:show", &json!(["m1"]))["vouchedBy"], "watch");
    line.told(&json!({
        "event": "before_tool", "session": "s1", "call": "c1", "tool": "Bash", "shell": "make"
    }));
    fs::remove_dir_all(user.work().join("src/deep")).expect("it goes");
    line.told(&json!({ "event": "after_tool", "session": "s1", "call": "c1" }));
    let changed = line.call("point:show", &json!(["m1"]))["filesChanged"].clone();
    assert_eq!(changed, 1, "what a shell call did is its own");

    // A client that lists points finds the change itself, and it is not reported again.
    user.write("a.txt", "three\n");
    assert_eq!(line.call("checkpoint:diff", &json!(["m1"])).as_array().map(Vec::len), Some(3));
    assert_eq!(point(line), (json!("watch"), json!(0)));
    line.call("point:rewind", &json!({ "point": "m1" }));
    assert_eq!(user.read("src/deep/b.txt"), "b\n");
    assert_eq!(point(line), (json!("watch"), json!(0)));
    let other = user.json(&["checkpoint"]);
    assert_eq!(other["changes"], 0, "another process finds nothing that was missed");
    assert_eq!(user.json(&["show"])["vouchedBy"], "scan");
}

#[test]
fn what_an_agents_hook_tells_is_recorded_on_its_word_too() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut server = stdio_with(&user, &["--watch"]);
    let line = &mut server.line;
    assert_eq!(point(line), (json!("scan"), json!(1)));
    let payload = json!({
        "hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "go",
        "cwd": user.work(), "prompt_id": "p1",
    });
    let told = line.call("event:hook", &json!({ "agent": "claude", "payload": payload }));
    assert_eq!(told, json!({ "ok": true }));
    let log = line.call("point:list", &json!({ "limit": 1 }));
    assert_eq!((&log[0]["kind"], &log[0]["vouchedBy"]), (&json!("prompt"), &json!("watch")));
}

#[test]
fn a_store_that_was_made_anew_is_looked_at_anew() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut server = stdio_with(&user, &["--watch"]);
    let line = &mut server.line;
    assert_eq!(point(line), (json!("scan"), json!(1)));
    assert_eq!(user.takeback(&["forget", "-y"]).code, 0);
    assert_eq!(point(line), (json!("scan"), json!(1)));
    assert_eq!(point(line), (json!("watch"), json!(0)));
}
