//! The three calls of the file checkpoint service, with its field names.

use std::fs;

use serde_json::{Value, json};

use super::wire::{stdio, user_with_server};
use crate::user::{User, column};

/// Removes the fields that differ from run to run.
fn without_id_and_time(mut checkpoint: Value) -> Value {
    assert!(checkpoint["createdAt"].as_i64().expect("a number") > 1_600_000_000_000);
    assert!(checkpoint["id"].as_str().is_some_and(|id| !id.is_empty()));
    let map = checkpoint.as_object_mut().expect("an object");
    map.remove("createdAt");
    map.remove("id");
    checkpoint
}

#[test]
fn checkpoints_are_listed_and_rewound_by_session_and_message() {
    let user = User::with(&[("a.txt", "one\n")]);
    fs::write(user.work().join("image"), b"\xff\x00").expect("a file");
    let mut client = stdio(&user);
    client.record(&json!({ "event": "prompt", "session": "s1", "message": "m1", "text": "go" }));
    client.edit("s1", "c1", "a.txt", || user.write("a.txt", "two\n"));
    client.edit("s1", "c2", "image", || user.write("image", "text"));
    client.record(&json!({ "event": "turn_end", "session": "s1" }));
    client.record(&json!({ "event": "prompt", "session": "s1", "message": "m2", "text": "more" }));
    client.edit("s1", "c3", "new.txt", || user.write("new.txt", "new\n"));
    client.edit("s1", "c4", "a.txt", || user.write("a.txt", "three\n"));

    let listed = client.call("checkpoint:list", &json!(["s1"]));
    let listed: Vec<Value> =
        listed.as_array().expect("a list").iter().cloned().map(without_id_and_time).collect();
    let expected = [
        json!({"sessionId": "s1", "messageId": "m1", "filePath": "a.txt", "originalContent": "one\n", "fileExisted": true}),
        json!({"sessionId": "s1", "messageId": "m1", "filePath": "image", "originalContent": null, "originalContentBase64": "/wA=", "fileExisted": true}),
        json!({"sessionId": "s1", "messageId": "m2", "filePath": "new.txt", "originalContent": null, "fileExisted": false}),
        json!({"sessionId": "s1", "messageId": "m2", "filePath": "a.txt", "originalContent": "two\n", "fileExisted": true}),
    ];
    assert_eq!(listed, expected);
    assert_eq!(client.call("checkpoint:list", &json!({ "sessionId": "s2" })), json!([]));

    let done = client.call("checkpoint:rewind", &json!({ "sessionId": "s1", "messageId": "m2" }));
    let four = ["success", "restoredFiles", "deletedFiles", "errors"].map(|key| done[key].clone());
    assert_eq!(four, [json!(true), json!(["a.txt"]), json!(["new.txt"]), json!([])]);
    assert_eq!((user.read("a.txt").as_str(), user.exists("new.txt")), ("two\n", false));

    let done = client.call("checkpoint/rewind", &json!(["s1", "m1"]));
    assert_eq!(done["restoredFiles"], json!(["a.txt", "image"]));
    assert_eq!(fs::read(user.work().join("image")).expect("it is there"), b"\xff\x00");
    assert_eq!(client.call("checkpoint:cleanup", &json!([])), json!(0));
    let points = client.call("point:list", &json!({}));
    assert_eq!(points, user.json(&["log"]), "as the command tells it");
}

#[test]
fn a_copy_is_listed_from_the_moment_it_is_kept_and_before_tool_names_it() {
    let user = User::with(&[("a.txt", "one\n"), ("same.txt", "same\n")]);
    let mut client = stdio(&user);
    client.record(&json!({ "event": "session_start", "session": "s1" }));
    let before = |client: &mut super::wire::Client, call: &str, path: &str| {
        client.record(&json!({
            "event": "before_tool", "session": "s1", "call": call, "tool": "Edit", "paths": [path],
        }))
    };
    let open = before(&mut client, "c1", "a.txt")["checkpoint"].clone();
    let listed = client.call("checkpoint:list", &json!(["s1"]));
    assert_eq!((&listed[0]["id"], listed.as_array().map(Vec::len)), (&open, Some(1)));
    let message = listed[0]["messageId"].clone();
    let point = client.call("point:list", &json!({}))[0]["id"].clone();
    assert_eq!(message, point, "of a turn without a message: its point");

    client.record(&json!({ "event": "after_tool", "session": "s1", "call": "c1" }));
    let nothing_changed = before(&mut client, "c2", "same.txt")["checkpoint"].clone();
    client.record(&json!({ "event": "after_tool", "session": "s1", "call": "c2" }));
    let made = before(&mut client, "c3", "new/folder/file");
    let named: Vec<_> = made["checkpoints"].as_array().expect("a list").iter().collect();
    assert_eq!(named.len(), 3, "with its folders: {made}");
    assert_eq!(
        (&named[2]["id"], &named[2]["filePath"]),
        (&made["checkpoint"], &json!("new/folder/file"))
    );
    let other = client.record(&json!({ "event": "turn_end", "session": "s1" }));
    assert!(other.get("checkpoint").is_none(), "{other}");

    let listed = column(&client.call("checkpoint:list", &json!(["s1"])), "id");
    assert_eq!(listed.len(), 5);
    for id in [&open, &nothing_changed, &made["checkpoint"]] {
        assert!(id.is_string() && listed.contains(id), "{id} in {listed:?}");
    }
    // If nothing was saved, there is no id.
    let shell = json!({ "event": "before_tool", "session": "s1", "call": "c4", "tool": "Bash", "shell": "ls" });
    assert_eq!(client.record(&shell)["checkpoint"], Value::Null);
    let refused = before(&mut client, "c5", ".git/config");
    assert_eq!((&refused["checkpoint"], &refused["checkpoints"]), (&Value::Null, &json!([])));
}

#[test]
fn a_file_that_was_too_large_to_copy_has_no_id() {
    let (user, mut client) = user_with_server();
    client.record(&json!({ "event": "prompt", "session": "s1", "message": "m1", "text": "go" }));
    fs::write(user.work().join("large"), vec![b'x'; 2 << 20]).expect("a file");
    let answer = client.record(&json!({
        "event": "before_tool", "session": "s1", "call": "c1", "tool": "Edit", "paths": ["large", "a.txt"],
    }));
    assert_eq!(answer["checkpoint"], Value::Null, "{answer}");
    assert_eq!(answer["checkpoints"][0]["filePath"], "a.txt");
    assert_eq!(answer["notCaptured"][0]["filePath"], "large");
}

#[test]
fn unknown_things_have_an_error_code() {
    let (_user, mut client) = user_with_server();
    assert_eq!(client.error("point:list", &json!({})), (-32000, "noStore".to_owned()));
    client.record(&json!({ "event": "prompt", "session": "s1", "message": "m1", "text": "go" }));
    for (method, params, code, kind) in [
        ("checkpoint:rewind", json!(["s1", "m9"]), -32002, "unknownPoint"),
        ("checkpoint:rewind", json!(["s9", "m1"]), -32002, "unknownPoint"),
        ("checkpoint:rewind", json!(["s1"]), -32602, "invalidParams"),
        ("checkpoint:rewind", json!({ "session": "s1" }), -32602, "invalidParams"),
        ("checkpoint:list", json!([7]), -32602, "invalidParams"),
        ("checkpoint:dance", json!([]), -32601, "unknownMethod"),
        ("point:list", json!({ "session": "s9" }), -32007, "unknownSession"),
    ] {
        assert_eq!(client.error(method, &params), (code, kind.to_owned()), "{method} {params}");
    }
}
