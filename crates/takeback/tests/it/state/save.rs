use serde_json::{Value, json};

use super::checkpoint;
use crate::user::User;

#[test]
fn a_step_is_returned_exactly_as_saved() {
    let user = User::with(&[("a.txt", "one\n")]);
    let given = json!({
        "execution_id": "e",
        "step_name": "Read",
        "step_index": 7,
        "timestamp": "2024-01-02T03:04:05.678+02:00",
        "state": { "n": u64::MAX, "i": i64::MIN, "f": 0.1 + 0.2, "text": "\u{7f}\u{1b}[31m\u{202e}é\0" },
        "context": [null, true, "x"],
        "variables": { "a": [] },
        "status": "failed",
        "error": "no\nway",
        "metadata": 5,
    });
    let answer = user.feed(&["state", "save"], &given.to_string());
    assert_eq!((answer.code, answer.err.as_str()), (0, ""));
    insta::assert_snapshot!(answer.out, @"Saved ckpt-e-7  with the files of ID");
    let mut expected = given;
    expected["timestamp"] = json!("2024-01-02T01:04:05.678Z");
    for (key, value) in [
        ("id", json!("ckpt-e-7")),
        ("attempt", json!(1)),
        ("branch", json!("main")),
        ("parent", Value::Null),
        ("point", user.json(&["log"])[0]["id"].clone()),
    ] {
        expected[key] = value;
    }
    assert_eq!(user.json(&["state", "show", "ckpt-e-7"]), expected);
    assert_eq!(user.json(&["state", "export", "e"])["checkpoints"], json!([expected]));
    assert_eq!(user.json(&["log"])[0]["hasState"], true);
    assert_eq!(user.json(&["show"])["hasState"], true);
    insta::assert_snapshot!(user.takeback(&["log"]).out, @"ID  just now  e  Read  – state");
}

#[test]
fn floats_come_back_to_the_last_bit() {
    let user = User::new();
    // An inexact parser reads each of them one bit too low or too high.
    let text = "[1.7976931348623157e308, 2.2250738585072014e-308, 0.1234567890123456789e-5, 31.245270191439438, 121.48791951161945]";
    let input = checkpoint(1, &json!({})).replace(r#"{"step":1}"#, text);
    assert_eq!(user.feed(&["state", "save"], &input).code, 0);
    let state = &user.json(&["state", "show", "e"])["state"];
    let expected =
        text.trim_matches(['[', ']']).split(", ").map(|n| n.parse::<f64>().expect("a float"));
    let shown = user.takeback(&["state", "show", "e", "--json"]).out;
    for (at, number) in expected.enumerate() {
        assert!(shown.contains(&json!(number).to_string()), "{number:?} is {}: {shown}", state[at]);
    }
}

#[test]
fn equal_content_is_not_saved_again_and_other_content_is_the_next_attempt() {
    let user = User::new();
    let time = json!({ "timestamp": "2024-01-01T00:00:00" });
    assert_eq!(user.save(1, &time).code, 0);
    insta::assert_snapshot!(user.save(1, &json!({})).out, @"Saved already ckpt-e-1  with the files of ID");
    let told = user.feed_json(&["state", "save"], &checkpoint(1, &json!({ "state": 2 })));
    assert_eq!(
        (&told["id"], &told["attempt"], &told["is_new"]),
        (&json!("ckpt-e-1"), &json!(2), &json!(true))
    );
    assert_eq!(user.json(&["state", "show", "ckpt-e-1.a1"])["state"], json!({ "step": 1 }));
    assert_eq!(user.json(&["state", "show", "ckpt-e-1"])["state"], 2);
    // A named attempt means exactly that one.
    let again = json!({ "id": "ckpt-e-1.a1" });
    assert_eq!(user.feed_json(&["state", "save"], &checkpoint(1, &again))["is_new"], false);
    let other = user.save(1, &json!({ "attempt": 1, "state": 3 }));
    assert_eq!(other.code, 4, "{other:?}");
    insta::assert_snapshot!(other.err, @"
    takeback: ckpt-e-1.a1 already exists with different content
      Another process saved in the meantime: `takeback state list` shows the newest checkpoint.
    ");
}

#[test]
fn only_a_process_that_knows_the_head_can_continue_from_it() {
    let user = User::new();
    user.saved(2);
    let late = user.save(3, &json!({ "parent": "ckpt-e-1" }));
    assert_eq!(late.code, 4, "{late:?}");
    insta::assert_snapshot!(late.err, @"
    takeback: ckpt-e-3 must follow ckpt-e-1, but branch main is at ckpt-e-2.a1
      Another process saved in the meantime: `takeback state list` shows the newest checkpoint.
    ");
    assert_eq!(user.save(3, &json!({ "parent": "ckpt-e-2" })).code, 0);
    let lost = user.save(4, &json!({ "parent": "ckpt-e-9" }));
    assert_eq!(lost.code, 1, "{lost:?}");
    assert!(lost.err.contains("the parent ckpt-e-9 of ckpt-e-4 does not exist"), "{lost:?}");
}

#[test]
fn invalid_input_is_named_and_nothing_is_created() {
    let user = User::new();
    for (input, says) in [
        ("", "standard input is empty; one JSON value is expected"),
        ("nonsense", "invalid JSON: expected ident at line 1 column 2"),
        ("{}{}", "there is more than one JSON value"),
        (
            &checkpoint(1, &json!({ "step_index": -1 })),
            "the field step_index must be a whole number from 0 to 4294967295, not -1",
        ),
        (
            &checkpoint(1, &json!({}))
                .replace(r#""step_index":1"#, r#""step_index":99999999999999999999"#),
            "the number 99999999999999999999 at /step_index does not fit in 64 bits and would be rounded",
        ),
        (
            &checkpoint(1, &json!({}))
                .replace(r#"{"step":1}"#, r#"{"a":[1,-99999999999999999999]}"#),
            "the number -99999999999999999999 at /state/a/1 does not fit in 64 bits and would be rounded",
        ),
        (
            &checkpoint(1, &json!({ "variable": 1 })),
            "a checkpoint has no field \"variable\"; did you mean variables?",
        ),
        (
            &checkpoint(1, &json!({ "id": "ckpt-f-1" })),
            "the field id is ckpt-f-1, but execution_id and step_index say ckpt-e-1",
        ),
        (&"[".repeat(1000), "invalid JSON: recursion limit exceeded at line 1 column 128"),
    ] {
        let answer = user.feed(&["state", "save"], input);
        assert_eq!(answer.code, 2, "{answer:?}");
        assert_eq!(answer.err.lines().next(), Some(format!("takeback: {says}").as_str()));
    }
    assert!(!user.home().join(".takeback").exists(), "no store is made for nothing");
    user.exits(10, &["state", "list"]);
}

#[test]
fn the_session_of_a_checkpoint() {
    let user = User::new();
    let session = |args: &[&str], around: Option<&str>, with: &Value| {
        let mut command = user.command(&[&["state", "save"], args].concat());
        command.envs(around.map(|name| ("TAKEBACK_SESSION", name)));
        let answer = user.answer_of(command, &checkpoint(1, with));
        assert_eq!(answer.code, 0, "{answer:?}");
        user.json(&["state", "list"])[0]["session"].clone()
    };
    assert_eq!(session(&[], None, &json!({ "state": 1 })), "e");
    assert_eq!(session(&[], Some("around"), &json!({ "state": 2 })), "around");
    assert_eq!(session(&[], Some("around"), &json!({ "state": 3, "session": "field" })), "field");
    let flag = ["--session", "flag"];
    assert_eq!(session(&flag, Some("around"), &json!({ "state": 4, "session": "field" })), "flag");
    assert_eq!(user.feed(&["state", "save", "--session", ""], &checkpoint(1, &json!({}))).code, 2);
}

#[test]
fn files_are_left_out_when_that_is_asked_for_or_recording_is_off() {
    let user = User::with(&[("a.txt", "one\n")]);
    let without = user.feed(&["state", "save", "--no-files"], &checkpoint(1, &json!({})));
    insta::assert_snapshot!(without.out, @"Saved ckpt-e-1  without files");
    user.set(r#"{"enableFileCheckpointing": false}"#);
    insta::assert_snapshot!(user.save(2, &json!({})).out, @"Saved ckpt-e-2  without files: recording is off");
    let events = [
        r#"{"event":"prompt","session":"s","text":"go"}"#.to_owned(),
        format!(r#"{{"event":"step","session":"s","checkpoint":{}}}"#, checkpoint(3, &json!({}))),
    ];
    let answer = user.feed(&["record"], &events.join("\n"));
    insta::assert_snapshot!(answer.out, @r#"
    {"ok":false,"error":"Checkpoint feature not enabled"}
    {"ok":true,"event":"step","seq":0,"point":null,"notCaptured":[],"id":"ckpt-e-3","attempt":1}
    "#);
    user.set("{}");
    assert_eq!(user.json(&["log"]), json!([]));
    insta::assert_snapshot!(user.exits(1, &["state", "rollback", "ckpt-e-1", "-y"]).err, @"
    takeback: ckpt-e-1.a1 was saved without its files
      --state-only restores only the state.
    ");
    user.succeeds(&["state", "rollback", "ckpt-e-1", "-y", "--state-only"]);
}

#[test]
fn a_workspace_that_is_locked_does_not_keep_a_state_from_being_saved() {
    let user = User::with(&[("a.txt", "one\n")]);
    user.saved(1);
    user.write("a.txt", "two\n");
    let lock = std::fs::File::open(user.store().join("lock")).expect("a lock");
    lock.lock().expect("a rewind has it");
    let saved = user.save(2, &json!({}));
    assert_eq!(saved.code, 0, "{saved:?}");
    insta::assert_snapshot!(saved.out, @"Saved ckpt-e-2  without files: the workspace is locked");
    drop(lock);
    assert_eq!(user.json(&["state", "resume", "e"])["state"], json!({ "step": 2 }));
}

#[test]
fn steps_among_events_are_answered_and_a_bad_one_does_not_end_the_stream() {
    let user = User::with(&[("a.txt", "one\n")]);
    let step =
        |checkpoint: &str| format!(r#"{{"event":"step","session":"s","checkpoint":{checkpoint}}}"#);
    let events = [
        r#"{"event":"prompt","session":"s","message":"m","text":"go"}"#.to_owned(),
        step(&checkpoint(1, &json!({}))),
        step("{}"),
        step(&checkpoint(2, &json!({})).replace(r#"{"step":2}"#, "18446744073709551616")),
        step(&checkpoint(2, &json!({ "session": "other" }))),
        step(&checkpoint(2, &json!({ "parent": "ckpt-e-7" }))),
        r#"{"event":"step","session":"s"}"#.to_owned(),
        step(&checkpoint(1, &json!({ "state": "other" }))),
    ];
    let answer = user.feed(&["record"], &events.join("\n"));
    assert_eq!(answer.code, 1);
    insta::assert_snapshot!(answer.out, @r#"
    {"ok":true,"event":"prompt","seq":1,"point":"LONG-ID","notCaptured":[]}
    {"ok":true,"event":"step","seq":1,"point":"LONG-ID","notCaptured":[],"id":"ckpt-e-1","attempt":1}
    {"ok":false,"event":"step","error":"the field execution_id is missing"}
    {"ok":false,"event":"step","error":"the number 18446744073709551616 at /checkpoint/state does not fit in 64 bits and would be rounded"}
    {"ok":false,"event":"step","error":"the event's session is \"s\", but its checkpoint's is \"other\""}
    {"ok":false,"event":"step","error":"the parent ckpt-e-7 of ckpt-e-2 does not exist"}
    {"ok":false,"error":"not an event: missing field `checkpoint`"}
    {"ok":true,"event":"step","seq":1,"point":"LONG-ID","notCaptured":[],"id":"ckpt-e-1","attempt":2}
    "#);
}
