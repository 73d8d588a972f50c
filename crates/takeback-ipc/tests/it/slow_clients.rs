//! Clients that do not read.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use takeback_ipc::{Call, DisconnectedError, Limits, Outlet, serve};

use crate::fakes::methods;

/// Serves one end of a pair, whose other end is the client's, until the client disconnects or is dropped.
fn served(
    limits: Limits,
    methods: impl FnMut(&Call, &Outlet) -> takeback_ipc::Outcome + Send + 'static,
) -> (UnixStream, std::thread::JoinHandle<()>) {
    let (client, server) = UnixStream::pair().expect("a pair");
    let mut methods = methods;
    let thread = std::thread::spawn(move || {
        server.set_write_timeout(Some(limits.stall)).expect("a timeout");
        let hang_up = || server.shutdown(Shutdown::Both).expect("it can be shut down");
        drop(serve(&server, &server, &limits, hang_up, &mut methods));
    });
    (client, thread)
}

#[test]
fn a_client_that_does_not_read_is_dropped() {
    let limits = Limits { unread: 1 << 20, stall: Duration::from_millis(50), ..Limits::default() };
    let (mut client, thread) = served(limits, methods);
    let call = br#"{"jsonrpc":"2.0","id":1,"method":"big","params":[500000]}"#;
    // As many as fit before the server hangs up.
    while client.write_all(call).and_then(|()| client.write_all(b"\n")).is_ok() {}
    thread.join().expect("it ends, although the client still holds its end");
}

#[test]
fn a_client_that_stops_reading_is_dropped() {
    let limits = Limits { stall: Duration::from_millis(50), ..Limits::default() };
    let (mut client, thread) = served(limits, methods);
    writeln!(client, r#"{{"jsonrpc":"2.0","id":1,"method":"big","params":[10000000]}}"#)
        .expect("it listens");
    thread.join().expect("it ends, although nothing more is said and the client holds its end");
}

#[test]
fn a_client_that_reads_nothing_is_limited() {
    static DONE: AtomicUsize = AtomicUsize::new(0);
    let limits = Limits { unread: 100_000, stall: Duration::from_secs(60), ..Limits::default() };
    let (mut client, thread) = served(limits, |call, outlet| {
        DONE.fetch_add(1, Ordering::Relaxed);
        methods(call, outlet)
    });
    let call = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"big\",\"params\":[50000]}\n";
    client.write_all(call.repeat(500).as_bytes()).expect("there is room for all of it");
    // Enough time for many more, if nothing limited it.
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(10));
        let done = DONE.load(Ordering::Relaxed);
        assert!(done < 50, "{done} answers, of which none was read");
    }
    drop(client);
    thread.join().expect("it ends");
}

#[test]
fn a_client_that_reads_late_gets_everything_in_order() {
    let limits = Limits { unread: 1000, stall: Duration::from_secs(60), ..Limits::default() };
    let (mut client, thread) = served(limits, methods);
    for id in 0..50 {
        writeln!(client, r#"{{"jsonrpc":"2.0","id":{id},"method":"big","params":[100000]}}"#)
            .expect("it listens");
    }
    client.shutdown(Shutdown::Write).expect("nothing more is said");
    let mut answers = String::new();
    client.read_to_string(&mut answers).expect("answers");
    let id_of = |line| serde_json::from_str::<Value>(line).expect("JSON")["id"].clone();
    let ids: Vec<Value> = answers.lines().map(id_of).collect();
    assert_eq!(ids, (0..50).map(Value::from).collect::<Vec<_>>());
    thread.join().expect("it ends");
}

#[test]
fn a_disconnected_client_delays_no_call() {
    let limits = Limits { unread: 1000, stall: Duration::from_secs(60), ..Limits::default() };
    let (sender, receiver) = std::sync::mpsc::channel();
    let (mut client, thread) = served(limits, move |call, outlet| {
        sender.send(outlet.clone()).expect("the test listens");
        methods(call, outlet)
    });
    client.write_all(b"{\"jsonrpc\":\"2.0\",\"method\":\"echo\"}\n").expect("it listens");
    let outlet = receiver.recv().expect("it was called");
    let told = std::thread::spawn(move || {
        let much = "x".repeat(100_000);
        while outlet.notify("told", &much) != Err(DisconnectedError) {}
        assert!(outlet.is_gone());
    });
    drop(client);
    told.join().expect("the sender is released");
    thread.join().expect("it ends");
}
