//! `point:subscribe`: points that any process makes.

use serde_json::{Value, json};

use super::wire::user_with_server;

#[test]
fn every_clients_points_are_announced() {
    let (user, mut client) = user_with_server();
    let root = std::fs::canonicalize(user.work()).expect("it is there");
    assert_eq!(client.call("point:subscribe", &json!({})), json!({ "workspace": root }));
    let told = |message: Value| {
        assert_eq!(message["method"], "point:created", "{message}");
        assert_eq!(message["params"]["workspace"], json!(root));
        message["params"]["point"].clone()
    };
    user.succeeds(&["checkpoint", "by another process"]);
    let first = told(client.message());
    assert_eq!(first, user.json(&["log"])[0], "as the log tells it");
    client.call("checkpoint:create", &json!({ "label": "by this client" }));
    assert_eq!(told(client.message())["label"], "by this client");

    user.write("a.txt", "two\n");
    client.call("point:rewind", &json!({ "point": "by another process", "exact": true }));
    client.call("checkpoint:create", &json!({ "label": "third" }));
    assert_eq!(told(client.message())["label"], "third", "safety points are not told");
    client.call("point:subscribe", &json!({ "all": true }));
    user.write("a.txt", "three\n");
    client.call("point:rewind", &json!({ "point": "third", "exact": true }));
    assert_eq!(told(client.message())["kind"], "safety");

    assert_eq!(client.call("point:unsubscribe", &json!({})), json!(true));
    assert_eq!(client.call("point:unsubscribe", &json!({})), json!(false));
    client.call("checkpoint:create", &json!({ "label": "unheard" }));
    let answer = client.response("status", &json!({}));
    assert_eq!(answer["result"]["point"]["label"], "unheard");
}

#[test]
fn a_store_that_is_made_anew_is_watched_too() {
    let (user, mut client) = user_with_server();
    client.call("point:subscribe", &json!({}));
    for label in ["first", "second"] {
        user.succeeds(&["checkpoint", label]);
        assert_eq!(client.message()["params"]["point"]["label"], label);
        user.succeeds(&["forget", "-y"]);
    }
}
