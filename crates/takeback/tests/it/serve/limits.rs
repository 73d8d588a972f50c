//! One size limit for input, on every interface: 64 MiB.

use serde_json::{Value, json};

use super::wire::stdio;
use crate::user::User;

const LIMIT: usize = 64 << 20;

/// A checkpoint that, in place of the `null` in `around`, makes its text exactly this long.
fn checkpoint(bytes: usize, around: &Value) -> Value {
    let of = |text: &str| {
        json!({
            "execution_id": "e", "step_name": "n", "step_index": 1, "state": text, "context": {},
        })
    };
    let rest = around.to_string().len() - "null".len() + of("").to_string().len();
    of(&"x".repeat(bytes - rest))
}

fn saves_by_command(user: &User, bytes: usize) -> bool {
    let text = checkpoint(bytes, &Value::Null).to_string();
    assert_eq!(text.len(), bytes);
    let answer = user.feed(&["state", "save", "--no-files"], &text);
    let why = "takeback: standard input is larger than 64 MiB";
    assert!(answer.code == 0 || (answer.code == 2 && answer.err.starts_with(why)), "{answer:?}");
    answer.code == 0
}

fn saves_by_record(user: &User, bytes: usize) -> bool {
    let mut event = json!({ "event": "step", "session": "s", "checkpoint": null });
    event["checkpoint"] = checkpoint(bytes, &event);
    let line = event.to_string();
    assert_eq!(line.len(), bytes);
    let answer = user.feed(&["record"], &line);
    let told: Value = serde_json::from_str(&answer.out).expect("JSON");
    let why = json!("the line is longer than 64 MiB");
    assert!(told["ok"] == true || told["error"] == why, "{told}");
    told["ok"] == true
}

fn saves_by_serve(user: &User, bytes: usize) -> bool {
    let mut client = stdio(user);
    let params = json!({ "checkpoint": null, "files": false });
    let mut call = json!({ "jsonrpc": "2.0", "id": "x", "method": "state:save", "params": params });
    call["params"]["checkpoint"] = checkpoint(bytes, &call);
    let line = call.to_string();
    assert_eq!(line.len(), bytes);
    client.send(line.as_bytes());
    let told = client.message();
    assert_eq!(told["id"], "x", "an answer has the id of its call");
    let data = json!({ "kind": "tooLarge", "limit": LIMIT });
    assert!(told.get("result").is_some() || told["error"]["data"] == data, "{told}");
    told.get("result").is_some()
}

#[test]
fn what_is_as_large_as_allowed_is_saved_and_one_byte_more_is_refused() {
    let user = User::new();
    let surfaces = [saves_by_command, saves_by_record, saves_by_serve];
    let saved = surfaces.map(|saves| [LIMIT, LIMIT + 1].map(|bytes| saves(&user, bytes)));
    assert_eq!(saved, [[true, false]; 3]);
}
