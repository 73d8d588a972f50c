//! `point:subscribe`: points that anybody makes.

use serde_json::{Value, json};

use super::wire::stdio;
use crate::home::User;

#[test]
fn every_clients_points_are_announced() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut server = stdio(&user);
    let line = &mut server.line;
    let root = std::fs::canonicalize(user.work()).expect("it is there");
    assert_eq!(line.call("point:subscribe", &json!({})), json!({ "workspace": root }));
    let told = |message: Value| {
        assert_eq!(message["method"], "point:created", "{message}");
        assert_eq!(message["params"]["workspace"], json!(root));
        message["params"]["point"].clone()
    };
    assert_eq!(user.takeback(&["checkpoint", "by another process"]).code, 0);
    let first = told(line.message());
    assert_eq!(first, user.json(&["log"])[0], "as the log tells it");
    line.call("checkpoint:create", &json!({ "label": "by this client" }));
    assert_eq!(told(line.message())["label"], "by this client");

    user.write("a.txt", "two\n");
    line.call("point:rewind", &json!({ "point": "by another process", "exact": true }));
    line.call("checkpoint:create", &json!({ "label": "third" }));
    assert_eq!(told(line.message())["label"], "third", "safety points are not told");
    line.call("point:subscribe", &json!({ "all": true }));
    user.write("a.txt", "three\n");
    line.call("point:rewind", &json!({ "point": "third", "exact": true }));
    assert_eq!(told(line.message())["kind"], "safety");

    assert_eq!(line.call("point:unsubscribe", &json!({})), json!(true));
    assert_eq!(line.call("point:unsubscribe", &json!({})), json!(false));
    line.call("checkpoint:create", &json!({ "label": "unheard" }));
    let answer = line.answer("status", &json!({}));
    assert_eq!(answer["result"]["point"]["label"], "unheard");
}

#[test]
fn a_store_that_is_made_anew_is_watched_too() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut server = stdio(&user);
    let line = &mut server.line;
    line.call("point:subscribe", &json!({}));
    for label in ["first", "second"] {
        assert_eq!(user.takeback(&["checkpoint", label]).code, 0);
        assert_eq!(line.message()["params"]["point"]["label"], label);
        assert_eq!(user.takeback(&["forget", "-y"]).code, 0);
    }
}
