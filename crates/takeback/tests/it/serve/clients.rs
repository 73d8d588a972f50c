//! Several clients at once, and clients that misbehave.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::wire::{Client, SocketServer, connect, user_with_server};
use crate::user::{User, until};

#[test]
fn a_hundred_clients_record_and_rewind_at_once() {
    let user = User::with(&[("a.txt", "one\n")]);
    for n in 0..100 {
        user.write(&format!("f{n}.txt"), "before\n");
    }
    let server = SocketServer::start(&user);
    server.connect().call("checkpoint:create", &json!({ "label": "start" }));
    std::thread::scope(|scope| {
        for n in 0..100 {
            let (server, user) = (&server, &user);
            scope.spawn(move || {
                let mut client = server.connect();
                let (session, file) = (format!("s{n}"), format!("f{n}.txt"));
                let prompt = json!({
                    "event": "prompt", "session": session, "message": "m", "text": "go",
                });
                client.record(&prompt);
                client.edit(&session, "c", &file, || user.write(&file, "after\n"));
                client.record(&json!({ "event": "turn_end", "session": session }));
            });
        }
    });
    let mut client = server.connect();
    assert_eq!(client.call("status", &json!({}))["sessions"], 100);
    // Some of them rewind at once; one that waits too long for the lock gets an error.
    std::thread::scope(|scope| {
        for n in (0..100).step_by(20) {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.connect();
                let back = json!({ "sessionId": format!("s{n}"), "messageId": "m" });
                let done = loop {
                    let answer = client.response("checkpoint:rewind", &back);
                    if answer["error"]["data"]["kind"] != "locked" {
                        break answer;
                    }
                };
                let restored = &done["result"]["restoredFiles"];
                assert_eq!(*restored, json!([format!("f{n}.txt")]), "{done}");
            });
        }
    });
    for n in 0..100 {
        let expected = if n % 20 == 0 { "before\n" } else { "after\n" };
        assert_eq!(user.read(&format!("f{n}.txt")), expected, "f{n}.txt");
    }
    assert_eq!(client.call("checkpoint:verify", &json!({}))["ok"], true);
}

#[test]
fn bad_bytes_long_lines_and_dead_clients_end_nothing() {
    let user = User::with(&[("a.txt", "one\n")]);
    let server = SocketServer::start(&user);
    let mut client = server.connect();
    client.call("checkpoint:create", &json!({}));
    client.send(b"\xff\xff");
    assert_eq!(client.message()["error"]["code"], -32700);
    let long = "x".repeat(10_000_000);
    let event = json!({ "event": "prompt", "session": "s", "message": "m", "text": long });
    client.record(&event);
    let point = client.call("point:show", &json!(["m"]));
    assert_eq!(point["description"].as_str().map(str::len), Some(80));
    client.send("x".repeat((64 << 20) + 1).as_bytes());
    let refused = client.message();
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["data"]["kind"]),
        (&json!(-32600), &json!("tooLarge"))
    );
    client.call("status", &json!({}));

    let mut cut = UnixStream::connect(&server.socket).expect("it listens");
    cut.write_all(br#"{"jsonrpc":"2.0","id":1,"method":"checkpoint:cr"#).expect("it listens");
    drop(cut);
    let mut unread = UnixStream::connect(&server.socket).expect("it listens");
    for _ in 0..100 {
        unread
            .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"point:list\"}\n")
            .expect("it listens");
    }
    unread.read_exact(&mut [0; 10]).expect("an answer has begun");
    drop(unread);
    assert_eq!(client.call("status", &json!({}))["points"], 2);
}

#[test]
fn content_length_headers_are_understood() {
    let user = User::with(&[("a.txt", "one\n")]);
    let server = SocketServer::start(&user);
    let mut stream = UnixStream::connect(&server.socket).expect("it listens");
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"checkpoint/create"}"#;
    write!(stream, "Content-Length: {}\r\n\r\n{call}", call.len()).expect("it listens");
    stream.shutdown(std::net::Shutdown::Write).expect("nothing more is said");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (length, body) = answer.split_once("\r\n\r\n").expect("a header");
    assert_eq!(length, format!("Content-Length: {}", body.len()));
    let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(body["result"]["seq"], 1, "{body}");
}

/// A server is killed during a rewind that it has promised; the next one finishes it.
#[test]
fn a_server_that_is_killed_while_it_rewinds() {
    let user = User::new();
    for n in 0..400 {
        user.write(&format!("f{n}"), "before\n");
    }
    let mut server = SocketServer::start(&user);
    let mut client = server.connect();
    client.record(&json!({ "event": "prompt", "session": "s", "message": "m", "text": "go" }));
    client.record(&json!({ "event": "before_tool", "session": "s", "call": "c", "tool": "Bash" }));
    for n in 0..400 {
        user.write(&format!("f{n}"), "after\n");
    }
    client.record(&json!({ "event": "after_tool", "session": "s", "call": "c" }));
    client.record(&json!({ "event": "turn_end", "session": "s" }));
    client.send(br#"{"jsonrpc":"2.0","id":1,"method":"checkpoint:rewind","params":["s","m"]}"#);
    let is_back = |n: u32| user.read(&format!("f{n}")) == "before\n";
    // The kill may come before or after the end of the rewind; the outcome is the same.
    while !(0..400).any(is_back) {
        std::thread::sleep(Duration::from_millis(1));
    }
    server.signal(Signal::KILL);
    server.child.wait().expect("it ends");
    let server = SocketServer::start(&user);
    let mut client = connect(&server.socket);
    client.call("checkpoint:diff", &json!(["m"]));
    assert!((0..400).all(is_back), "what was promised is kept");
    assert_eq!(client.call("checkpoint:verify", &json!({}))["ok"], true);
    client.call("checkpoint:undo", &json!({}));
    assert!(!(0..400).any(is_back), "and can be undone");
    assert!(fs::read_dir(user.work().join(".takeback")).map_or(0, Iterator::count) == 0);
}

#[test]
fn closing_standard_input_ends_the_server() {
    let (_user, mut client) = user_with_server();
    client.call("checkpoint:create", &json!({}));
    client.call("point:subscribe", &json!({}));
    client.input = Box::new(std::io::sink());
    assert_eq!(client.child.wait().expect("it ends").code(), Some(0));
}

/// Opens a command through a connection, in its own turn and in the workspace `at`.
fn open_call(client: &mut Client, at: &Path) {
    client.record(&json!({ "event": "prompt", "session": "s", "text": "go", "workspace": at }));
    client.record(&json!({
        "event": "before_tool", "session": "s", "call": "c", "tool": "Bash", "shell": "make",
        "workspace": at,
    }));
}

fn open_in(user: &User, at: &Path) -> (Value, Value) {
    let status = user.json(&["-C", at.to_str().expect("text"), "status"]);
    (status["openCalls"].clone(), status["openTurns"].clone())
}

#[test]
fn the_end_of_standard_input_ends_the_calls_of_the_client() {
    let (user, mut client) = user_with_server();
    open_call(&mut client, &user.work());
    // So many more workspaces that the server closes the first.
    for n in 0..9 {
        let other = user.work().join(format!("../other-{n}"));
        fs::create_dir(&other).expect("a folder");
        let prompt = json!({ "event": "prompt", "session": "s", "text": "go", "workspace": other });
        client.record(&prompt);
    }
    assert_eq!(open_in(&user, &user.work()), (json!(1), json!(1)));
    client.input = Box::new(std::io::sink());
    assert!(client.child.wait().expect("it ends").success());
    assert_eq!(open_in(&user, &user.work()), (json!(0), json!(0)));
    assert_eq!(open_in(&user, &user.work().join("../other-0")), (json!(0), json!(1)));
}

#[test]
fn a_client_that_hangs_up_ends_its_own_calls_alone() {
    let user = User::with(&[("a.txt", "one\n")]);
    let server = SocketServer::start(&user);
    let (mut first, mut second) = (server.connect(), server.connect());
    open_call(&mut first, &user.work());
    second.record(&json!({
        "event": "before_tool", "session": "t", "call": "d", "tool": "Bash", "shell": "make",
    }));
    assert_eq!(open_in(&user, &user.work()), (json!(2), json!(2)));
    drop(first);
    until("its call is closed", || second.call("status", &json!({}))["openCalls"] == 1);
    user.write("a.txt", "mine\n");
    second.record(&json!({ "event": "after_tool", "session": "t", "call": "d" }));
    let shown = second.call("point:show", &json!({}));
    assert_eq!(shown["changes"][0]["author"]["session"], "t", "{shown}");
}
