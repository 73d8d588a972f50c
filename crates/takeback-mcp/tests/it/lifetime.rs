//! From start to end: what is not protocol, a child that dies, and an input that ends.

use std::process::Command;

use serde_json::json;

use crate::client::{User, is_running, text, wait_for};

#[test]
fn invalid_messages_are_skipped_or_refused() {
    let user = User::new();
    let mut client = user.connect();
    client.say("this is not JSON");
    client.say("");
    client.initialize(&json!({}));
    client.say("{\"jsonrpc\": \"2.0\", \"id\": ");
    client.say("\u{0}\u{1}");
    client.say(r#"{"neither": "call nor answer"}"#);
    assert_eq!(client.hear()["error"]["code"], -32600);
    client.say(r#"{"jsonrpc": "2.0", "id": 77, "result": {}}"#);
    client.say(r#"{"jsonrpc": "2.0", "method": "notifications/unheard-of"}"#);
    let none = client.call("list_points", &json!({}));
    assert_eq!(none["structuredContent"]["points"], json!([]));
}

#[test]
fn when_input_ends_all_ends_and_no_child_is_left() {
    let user = User::with_work();
    let mut client = user.connect_with(&user.leaving_pid());
    client.initialize(&json!({"elicitation": {}}));
    client.call("list_points", &json!({}));
    let pid = user.pid();
    assert!(is_running(pid));
    // In the middle of a question.
    client.call_and_be_asked("rewind", &json!({"point": "first"}));
    client.close();
    assert_eq!(client.wait(), Some(0));
    wait_for(|| (!is_running(pid)).then_some(()));

    let mut silent = user.connect();
    silent.close();
    assert_eq!(silent.wait(), Some(0), "no message came");
}

#[test]
fn a_killed_server_leaves_no_child() {
    let user = User::with_work();
    let mut client = user.connect_with(&user.leaving_pid());
    client.initialize(&json!({}));
    client.call("list_points", &json!({}));
    let pid = user.pid();
    client.process.kill().expect("it can be killed");
    wait_for(|| (!is_running(pid)).then_some(()));
}

#[test]
fn a_child_that_died_is_started_again() {
    let user = User::with_work();
    let mut client = user.connect_with(&user.leaving_pid());
    client.initialize(&json!({}));
    let points = client.call("list_points", &json!({}));
    let pid = user.pid();
    let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill runs");
    assert!(killed.success());
    assert_eq!(client.call("list_points", &json!({})), points);
    assert_ne!(user.pid(), pid);
}

#[test]
fn a_child_that_dies_of_a_call_is_tried_once_more_if_it_only_looked() {
    let user = User::new();
    let counted = user.beside("counted");
    // Answers its first call and dies on the next.
    let program = user.script(&format!(
        "echo x >> {}\nread line\nprintf '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[]}}\\n'\n\
         read line\necho 'out of paper' >&2\nexit 3",
        counted.display()
    ));
    let starts = || std::fs::read_to_string(&counted).expect("it was started").lines().count();
    let mut client = user.connect_with(&program);
    client.initialize(&json!({}));
    assert_eq!(client.call("list_points", &json!({}))["isError"], false);
    assert_eq!(client.call("list_points", &json!({}))["isError"], false, "by another child");
    assert_eq!(starts(), 2);
    let unknown = client.call("checkpoint", &json!({}));
    assert_eq!(unknown["isError"], true);
    assert!(text(&unknown).contains("ended before it answered: out of paper"), "{unknown}");
    assert!(text(&unknown).contains("Whether it was done is not known"), "{unknown}");
    assert_eq!(starts(), 2, "what changes something is not done twice");
}

#[test]
fn a_missing_program_or_one_that_is_no_server_is_reported() {
    let user = User::new();
    let mut client = user.connect_with(&user.beside("not-there"));
    client.initialize(&json!({}));
    let none = client.call("list_points", &json!({}));
    assert_eq!(none["isError"], true);
    assert!(text(&none).starts_with("Cannot start "), "{none}");
    let mut client = user.connect_with(&user.script("read line\necho Hello.\nread line"));
    client.initialize(&json!({}));
    let other = client.call("list_points", &json!({}));
    assert!(text(&other).contains("/program: Hello."), "{other}");
}
