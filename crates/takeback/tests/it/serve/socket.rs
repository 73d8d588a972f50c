//! A server on a socket: one per home, started on demand, ended by a signal.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::json;

use super::wire::{SocketServer, connect};
use crate::user::{User, until};

#[test]
fn a_socket_is_private_and_is_removed_with_its_server() {
    let user = User::with(&[("a.txt", "one\n")]);
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut server = SocketServer::start(&user);
        let run = user.home().join(".takeback/run");
        assert!(server.socket.starts_with(&run), "{:?}", server.socket);
        let mode = |path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(run.as_path()), mode(&server.socket)), (0o700, 0o600));
        server.connect().call("checkpoint:create", &json!({}));
        server.signal(signal);
        assert_eq!(server.child.wait().expect("it ends").code(), Some(0), "{signal:?}");
        assert!(!server.socket.exists());
    }
}

#[test]
fn a_second_server_is_refused_and_a_dead_ones_socket_replaced() {
    let user = User::with(&[("a.txt", "one\n")]);
    let mut server = SocketServer::start(&user);
    let second = user.takeback(&["serve"]);
    insta::assert_snapshot!(second.err, @"
    takeback: another server already listens at FOLDER/home/.takeback/run/LONG-ID.sock
      Connect to it; `takeback serve --ensure` prints where it is.
    ");
    assert_eq!(second.code, 11);
    server.child.kill().expect("it runs");
    server.child.wait().expect("it ends");
    assert!(server.socket.exists(), "killed, it could not clear up");
    let server = SocketServer::start(&user);
    server.connect().call("server:info", &json!({}));
}

#[test]
fn the_runtime_folder_is_used_if_it_exists() {
    let user = User::new();
    let runtime = user.home().join("runtime");
    fs::create_dir(&runtime).expect("a folder");
    let ensure = |folder: &std::path::Path| {
        let mut command = user.command(&["serve", "--ensure", "--idle-exit", "1"]);
        command.env("XDG_RUNTIME_DIR", folder).stderr(Stdio::piped());
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        PathBuf::from(String::from_utf8(output.stdout).expect("text").trim_end())
    };
    let socket = ensure(&runtime);
    assert!(socket.starts_with(runtime.join("takeback")), "{socket:?}");
    let fallback = ensure(&user.home().join("missing"));
    assert!(fallback.starts_with(user.home().join(".takeback/run")), "{fallback:?}");
    assert_eq!(socket.file_name(), fallback.file_name(), "the home decides");
    until("both end by themselves", || !socket.exists() && !fallback.exists());
}

#[test]
fn parallel_ensure_starts_one_server() {
    let user = User::with(&[("a.txt", "one\n")]);
    let ensure = || {
        let mut command = user.command(&["serve", "--ensure", "--idle-exit", "2", "--json"]);
        command.stdout(Stdio::piped()).spawn().expect("it starts")
    };
    let all: Vec<_> = (0..6).map(|_| ensure()).collect();
    let mut sockets = Vec::new();
    for one in all {
        let output = one.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{output:?}");
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        sockets.push(PathBuf::from(said["socket"].as_str().expect("a path")));
    }
    sockets.dedup();
    let [socket] = sockets.as_slice() else { panic!("{sockets:?}") };
    let info = connect(socket).call("server:info", &json!({}));
    let pids: Vec<_> =
        (0..5).map(|_| connect(socket).call("server:info", &json!({}))["pid"].clone()).collect();
    assert!(pids.iter().all(|pid| *pid == info["pid"]));
    let stat = fs::read_to_string(format!("/proc/{}/stat", info["pid"])).expect("it runs");
    let session = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(3));
    assert_eq!(
        session,
        info["pid"].as_u64().map(|pid| pid.to_string()).as_deref(),
        "its own session"
    );
    assert_eq!(info["workspace"], json!(fs::canonicalize(user.work()).expect("it is there")));
    let mut client = connect(socket);
    assert_eq!(client.error("status", &json!({})), (-32000, "noStore".into()));
    drop(client);
    until("it ends by itself", || !socket.exists());
}

#[test]
fn a_socket_that_cannot_be_created_is_an_error() {
    let user = User::new();
    let long = user.home().join("x".repeat(100));
    fs::create_dir(&long).expect("a folder");
    let mut command = user.command(&["serve", "--ensure"]);
    command.env("XDG_RUNTIME_DIR", &long);
    let answer = user.answer_of(command, "");
    assert_eq!(answer.code, 1, "{answer:?}");
    assert!(
        answer.err.contains("it is too long") && answer.err.contains("--stdio"),
        "{}",
        answer.err
    );
    assert!(!answer.err.contains("\\n"), "{}", answer.err);
}

#[test]
fn a_server_whose_socket_was_removed_makes_room_for_another() {
    let user = User::new();
    let mut server = SocketServer::start(&user);
    fs::remove_file(&server.socket).expect("it goes");
    let ensured = user.takeback(&["serve", "--ensure", "--idle-exit", "1"]);
    assert_eq!((ensured.code, ensured.err.as_str()), (0, ""));
    assert_eq!(server.child.wait().expect("it ends").code(), Some(0));
    until("the other ends by itself", || !server.socket.exists());
}

#[test]
fn a_server_raises_its_limit_of_open_files() {
    let user = User::new();
    let server = SocketServer::limited(&user, 64, 512);
    let limits = fs::read_to_string(format!("/proc/{}/limits", server.child.id())).expect("text");
    let files = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line");
    let numbers: Vec<&str> = files.split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers, ["512", "512"]);
}

#[test]
fn a_client_beyond_the_limit_gets_an_error() {
    let user = User::new();
    let server = SocketServer::limited(&user, 32, 32);
    let mut lines: Vec<_> = (0..40).map(|_| server.connect()).collect();
    let mut newest = lines.pop().expect("the last");
    let told = newest.message();
    assert_eq!(told["error"]["data"]["kind"], "tooManyClients", "{told}");
    drop(lines);
    until("there is room again", || {
        let mut client = server.connect();
        // A refused connection may be closed before this is written.
        drop(writeln!(client.input, r#"{{"jsonrpc":"2.0","id":1,"method":"server:info"}}"#));
        client.message()["result"]["name"] == "takeback"
    });
}
