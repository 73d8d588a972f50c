//! `serve --watch`: points that rely on the watcher contain what a full scan would have found.

use std::fs;

use serde_json::{Value, json};

use super::wire::{Client, stdio_with};
use crate::user::User;

/// Makes a point: `vouchedBy`, and the number of changes.
fn point(client: &mut Client) -> (Value, Value) {
    let made = client.call("checkpoint:create", &json!({}));
    let shown = client.call("point:show", &json!([made["id"]]));
    (shown["vouchedBy"].clone(), made["changes"].clone())
}

#[test]
fn points_say_what_vouches_for_them() {
    let user = User::with(&[("a.txt", "one\n"), ("src/deep/b.txt", "b\n")]);
    let mut client = stdio_with(&user, &["--watch"]);
    assert_eq!(client.call("server:info", &json!({}))["watch"], true);
    assert_eq!(point(&mut client), (json!("scan"), json!(4)));
    assert_eq!(point(&mut client), (json!("watch"), json!(0)));
    let status = client.call("status", &json!({}));
    assert_eq!(status["watch"], json!({ "folders": 3, "why": null }));

    user.write("a.txt", "two\n");
    user.write("src/new/c.txt", "c\n");
    assert_eq!(point(&mut client), (json!("watch"), json!(3)));
    client.record(&json!({ "event": "prompt", "session": "s1", "message": "m1", "text": "go" }));
    assert_eq!(client.call("point:show", &json!(["m1"]))["vouchedBy"], "watch");
    client.record(&json!({
        "event": "before_tool", "session": "s1", "call": "c1", "tool": "Bash", "shell": "make"
    }));
    fs::remove_dir_all(user.work().join("src/deep")).expect("it goes");
    client.record(&json!({ "event": "after_tool", "session": "s1", "call": "c1" }));
    let changed = client.call("point:show", &json!(["m1"]))["filesChanged"].clone();
    assert_eq!(changed, 1, "what a shell call did is its own");

    // A diff finds the change itself; the next point does not count it again.
    user.write("a.txt", "three\n");
    assert_eq!(client.call("checkpoint:diff", &json!(["m1"])).as_array().map(Vec::len), Some(3));
    assert_eq!(point(&mut client), (json!("watch"), json!(0)));
    client.call("point:rewind", &json!({ "point": "m1" }));
    assert_eq!(user.read("src/deep/b.txt"), "b\n");
    assert_eq!(point(&mut client), (json!("watch"), json!(0)));
    let other = user.json(&["checkpoint"]);
    assert_eq!(other["changes"], 0, "another process finds nothing that was missed");
    assert_eq!(user.json(&["show"])["vouchedBy"], "scan");
}

#[test]
fn hook_events_rely_on_the_watcher_too() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut client = stdio_with(&user, &["--watch"]);
    assert_eq!(point(&mut client), (json!("scan"), json!(1)));
    let payload = json!({
        "hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "go",
        "cwd": user.work(), "prompt_id": "p1",
    });
    let told = client.call("event:hook", &json!({ "agent": "claude", "payload": payload }));
    assert_eq!(told, json!({ "ok": true }));
    let log = client.call("point:list", &json!({ "limit": 1 }));
    assert_eq!((&log[0]["kind"], &log[0]["vouchedBy"]), (&json!("prompt"), &json!("watch")));
}

#[test]
fn a_store_that_was_made_anew_is_looked_at_anew() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut client = stdio_with(&user, &["--watch"]);
    assert_eq!(point(&mut client), (json!("scan"), json!(1)));
    user.succeeds(&["forget", "-y"]);
    assert_eq!(point(&mut client), (json!("scan"), json!(1)));
    assert_eq!(point(&mut client), (json!("watch"), json!(0)));
}
