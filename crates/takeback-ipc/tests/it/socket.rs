//! Many clients at once, and which processes may connect.

#![expect(clippy::disallowed_methods, reason = "tests lay out their own trees")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use takeback_ipc::{
    Call, IdlePolicy, Limits, Outcome, Outlet, Socket, SocketError, answers, serve_all,
};
use tempfile::TempDir;

use crate::fakes::methods;

struct Server {
    folder: TempDir,
    stop: UnixStream,
    thread: Option<JoinHandle<()>>,
}

type Methods = fn(&Call, &Outlet) -> Outcome;

impl Server {
    fn start(limits: Limits, idle: IdlePolicy, methods: Methods) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = Socket::claim(&folder.path().join("run/s.sock")).expect("a socket");
        let (stop, stopped) = UnixStream::pair().expect("a pair");
        let thread = std::thread::spawn(move || {
            serve_all(socket, &limits, idle, stopped.as_fd(), &|| methods).expect("it serves");
        });
        Self { folder, stop, thread: Some(thread) }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("run/s.sock")
    }

    fn connect(&self) -> Client {
        let stream = UnixStream::connect(self.path()).expect("it listens");
        Client { reader: BufReader::new(stream.try_clone().expect("a second")), stream }
    }

    fn stop(&mut self) {
        self.stop.write_all(b"!").expect("it listens");
        self.ended();
    }

    fn ended(&mut self) {
        self.thread.take().expect("it runs").join().expect("it ends well");
    }
}

struct Client {
    stream: UnixStream,
    reader: BufReader<UnixStream>,
}

impl Client {
    fn send(&mut self, call: &str) {
        writeln!(self.stream, "{call}").expect("it listens");
    }

    /// Empty: the server has ended it.
    fn line(&mut self) -> String {
        let mut line = String::new();
        // Any way of closing the connection counts.
        drop(self.reader.read_line(&mut line));
        line
    }

    fn add(&mut self, a: u32) -> String {
        self.send(&format!(r#"{{"jsonrpc":"2.0","id":{a},"method":"add","params":[{a}]}}"#));
        self.line()
    }
}

fn sum(a: u32) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{a},\"result\":{a}}}\n")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

fn private_folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).expect("a mode");
    folder
}

#[test]
fn the_socket_is_private_and_removed_afterwards() {
    let mut server = Server::start(Limits::default(), IdlePolicy::Stays, methods);
    assert_eq!(mode(&server.path()), 0o600);
    assert_eq!(mode(&server.folder.path().join("run")), 0o700);
    assert_eq!(server.connect().add(1), sum(1));
    server.stop();
    assert!(!server.path().exists());
}

#[test]
fn one_server_at_a_time() {
    let mut server = Server::start(Limits::default(), IdlePolicy::Stays, methods);
    let second = Socket::claim(&server.path());
    assert!(matches!(second, Err(SocketError::Taken { .. })), "{second:?}");
    assert_eq!(server.connect().add(1), sum(1), "the first is as it was");
    server.stop();
    drop(Socket::claim(&server.path()).expect("then it is free"));
}

#[test]
fn the_socket_of_a_dead_server_is_replaced() {
    let folder = private_folder();
    let path = folder.path().join("s.sock");
    for left in [path.clone(), folder.path().join("s.sock.new")] {
        drop(UnixListener::bind(left).expect("a socket"));
    }
    fs::write(folder.path().join("s.lock"), "").expect("a free lock");
    assert!(path.exists() && !answers(&path));
    let socket = Socket::claim(&path).expect("it is free");
    assert!(answers(socket.path()));
    drop(socket);
    assert!(!path.exists());
}

#[test]
fn a_place_that_is_not_safe_is_refused() {
    let folder = private_folder();
    let refused = |path: &Path, expected: &str| match Socket::claim(path) {
        Err(SocketError::Unfit { why, .. }) => assert_eq!(why, expected),
        other => panic!("{other:?}"),
    };
    let path = folder.path().join("s.sock");
    fs::write(&path, "a user's file").expect("a file");
    refused(&path, "something else has its name");
    assert_eq!(fs::read_to_string(&path).expect("it stays"), "a user's file");
    let open = folder.path().join("open");
    fs::create_dir(&open).expect("a folder");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).expect("a mode");
    refused(&open.join("s.sock"), "its folder is open to others");
    refused(&folder.path().join("x".repeat(100)), "it is too long");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path(), &link).expect("a link");
    refused(&link.join("s.sock"), "its folder is a symbolic link");
}

#[test]
fn a_hundred_clients_at_once() {
    let mut server = Server::start(Limits::default(), IdlePolicy::Stays, methods);
    let mut clients: Vec<Client> = (0..100).map(|_| server.connect()).collect();
    std::thread::scope(|scope| {
        for (n, client) in (0..).zip(&mut clients) {
            scope.spawn(move || {
                for a in n..n + 20 {
                    assert_eq!(client.add(a), sum(a));
                }
            });
        }
    });
    server.stop();
    assert!(clients.iter_mut().all(|client| client.line().is_empty()), "all are let go");
}

#[test]
fn one_client_too_many_is_refused() {
    let limits = Limits { clients: 2, ..Limits::default() };
    let mut server = Server::start(limits, IdlePolicy::Stays, methods);
    let mut clients = [server.connect(), server.connect()];
    for client in &mut clients {
        assert_eq!(client.add(1), sum(1));
    }
    let mut third = server.connect();
    let said = third.line();
    assert!(said.contains(r#""code":-32099"#) && said.contains("tooManyClients"), "{said}");
    assert_eq!(third.line(), "");
    drop(third);
    let [first, mut second] = clients;
    drop(first);
    // The place is free as soon as the server has seen it go.
    let free = (0..1000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        server.connect().add(2) == sum(2)
    });
    assert!(free && second.add(3) == sum(3));
    server.stop();
}

#[test]
fn dead_clients_do_not_disturb_others() {
    let mut server = Server::start(Limits::default(), IdlePolicy::Stays, methods);
    for _ in 0..20 {
        let mut cut = server.connect();
        cut.stream.write_all(br#"{"jsonrpc":"2.0","id":1,"meth"#).expect("it listens");
        drop(cut);
        let mut unread = server.connect();
        for _ in 0..5 {
            unread.send(r#"{"jsonrpc":"2.0","id":1,"method":"big","params":[1000000]}"#);
        }
        let mut some = [0; 1000];
        unread.reader.read_exact(&mut some).expect("an answer has begun");
        drop(unread);
        assert_eq!(server.connect().add(1), sum(1));
    }
    server.stop();
}

#[test]
fn a_mistake_ends_one_client_alone() {
    let mut server = Server::start(Limits::default(), IdlePolicy::Stays, methods);
    let mut other = server.connect();
    let mut client = server.connect();
    assert_eq!(client.add(1), sum(1));
    client.send(r#"{"jsonrpc":"2.0","id":1,"method":"panic"}"#);
    assert_eq!(client.line(), "", "it is let go");
    assert_eq!(other.add(2), sum(2));
    server.stop();
}

#[test]
fn a_client_that_does_not_read_does_not_delay_others() {
    let limits = Limits { stall: Duration::from_secs(600), ..Limits::default() };
    let mut server = Server::start(limits, IdlePolicy::Stays, methods);
    let mut stuck = server.connect();
    for _ in 0..50 {
        stuck.send(r#"{"jsonrpc":"2.0","id":1,"method":"big","params":[1000000]}"#);
    }
    for a in 0..10 {
        assert_eq!(server.connect().add(a), sum(a));
    }
    drop(stuck);
    server.stop();
}

#[test]
fn an_idle_server_ends_by_itself() {
    let idle = IdlePolicy::Exits(Duration::from_millis(300));
    let mut server = Server::start(Limits::default(), idle, methods);
    let mut client = server.connect();
    for a in 0..4 {
        assert_eq!(client.add(a), sum(a), "it stays as long as a client is connected");
        std::thread::sleep(Duration::from_millis(150));
    }
    drop(client);
    server.ended();
    assert!(!server.path().exists());
}

#[test]
fn a_socket_that_was_removed_leaves_its_place_to_the_next() {
    let mut server = Server::start(Limits::default(), IdlePolicy::Stays, methods);
    let mut client = server.connect();
    assert_eq!(client.add(1), sum(1));
    fs::remove_file(server.path()).expect("it goes");
    let next = loop {
        match Socket::claim(&server.path()) {
            Ok(next) => break next,
            Err(SocketError::Taken { .. }) => std::thread::sleep(Duration::from_millis(10)),
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(client.add(2), sum(2), "the connected client is still served");
    drop(client);
    server.ended();
    assert!(server.path().exists(), "the next one's is not removed");
    drop(next);
}

/// Reports when its first call has started, and continues it on a signal.
type Gate = std::sync::Mutex<Option<(Sender<()>, Receiver<()>)>>;

fn through(gate: &Gate, call: &Call, outlet: &Outlet) -> Outcome {
    if let Some((begun, go_on)) = gate.lock().expect("no thread panics").take() {
        begun.send(()).expect("the test listens");
        go_on.recv().expect("the test says when");
    }
    methods(call, outlet)
}

/// All answers to a client that sends `calls` to a server that is stopped during the first.
fn stopped_during(gate: &Gate, slow: Methods, calls: &str) -> String {
    let (begins, begun) = channel();
    let (go_on, goes_on) = channel();
    *gate.lock().expect("no thread panics") = Some((begins, goes_on));
    let mut server = Server::start(Limits::default(), IdlePolicy::Stays, slow);
    let mut client = server.connect();
    client.send(calls);
    begun.recv().expect("it has begun");
    server.stop.write_all(b"!").expect("it listens");
    // The client's end says that it was told, too.
    while server.path().exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    while client.stream.write_all(b"\n").is_ok() {
        std::thread::sleep(Duration::from_millis(5));
    }
    go_on.send(()).expect("it waits");
    let said = std::iter::from_fn(|| Some(client.line()).filter(|line| !line.is_empty())).collect();
    server.ended();
    said
}

#[test]
fn begun_calls_are_finished_when_the_server_is_stopped() {
    static GATE: Gate = Gate::new(None);
    let slow: Methods = |call, outlet| through(&GATE, call, outlet);
    let add = |a| format!(r#"{{"jsonrpc":"2.0","id":{a},"method":"add","params":[{a}]}}"#);
    assert_eq!(stopped_during(&GATE, slow, &add(5)), sum(5));
    let queued = format!("{}\n{}", add(5), add(6));
    assert_eq!(stopped_during(&GATE, slow, &queued), sum(5), "what waits is not begun");
    let batch = format!("[{},{}]", add(5), add(6));
    let not = r#"{"jsonrpc":"2.0","id":6,"error":{"code":-32603,"message":"not run: the server is shutting down","data":{"kind":"error"}}}"#;
    assert_eq!(stopped_during(&GATE, slow, &batch), format!("[{},{not}]\n", sum(5).trim_end()));
}

/// Only root can become another user.
#[cfg(target_os = "linux")]
#[test]
fn another_user_is_refused() {
    use rustix::process::{Uid, geteuid};
    if !geteuid().is_root() {
        return;
    }
    let mut server = Server::start(Limits::default(), IdlePolicy::Stays, methods);
    // As if the folder's permissions were opened by mistake.
    for folder in [server.folder.path().to_owned(), server.folder.path().join("run")] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    fs::set_permissions(server.path(), fs::Permissions::from_mode(0o666)).expect("a mode");
    let said = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let nobody = Uid::from_raw(65_534);
            // Only for this thread.
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("root may");
            let mut client = server.connect();
            // The client may have disconnected before the answer.
            drop(writeln!(
                client.stream,
                r#"{{"jsonrpc":"2.0","id":1,"method":"add","params":[1]}}"#
            ));
            client.line()
        });
        other.join().expect("it ends")
    });
    assert_eq!(said, "");
    assert_eq!(server.connect().add(1), sum(1));
    server.stop();
}
