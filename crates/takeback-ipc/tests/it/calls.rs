//! JSON-RPC 2.0, message by message.

use std::sync::atomic::{AtomicUsize, Ordering};

use takeback_ipc::{Limits, serve};

use crate::fakes::{answers_to, methods};

fn answer(message: &str) -> String {
    let limits = Limits { frame: 2000, batch: 3, ..Limits::default() };
    answers_to(format!("{message}\n").as_bytes(), &limits)
}

#[test]
fn a_call_is_answered_with_its_id_as_it_was_written() {
    for (message, expected) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a": 12345678901234567890123}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"a": 12345678901234567890123}}"#,
        ),
        (
            r#"{"id":"x\u00e9", "method":"a/echo", "jsonrpc":"2.0","other":1}"#,
            r#"{"jsonrpc":"2.0","id":"x\u00e9","result":{}}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"echo","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":[]}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.50,"method":"add","params":[1,2]}"#,
            r#"{"jsonrpc":"2.0","id":1.50,"result":3}"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"add","params":{"b":null,"a":1}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":1}"#,
        ),
        (r#"{"jsonrpc":"2.0","method":"add","params":{"a":1}}"#, ""),
        (r#"{"jsonrpc":"2.0","method":"nothing"}"#, ""),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tell"}"#,
            "{\"jsonrpc\":\"2.0\",\"method\":\"told\",\"params\":[1]}\n\
             {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":null}",
        ),
    ] {
        assert_eq!(answer(message).trim_end(), expected, "{message}");
    }
}

/// The id, the code and the kind of an error, and what is said.
#[track_caller]
fn refused(message: &str, id: &str, code: i32, kind: &str, said: &str) {
    let expected = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{said}","data":{{"kind":"{kind}"}}}}}}"#
    );
    assert_eq!(answer(message).trim_end(), expected, "{message}");
}

#[test]
fn invalid_calls_are_refused_with_a_code() {
    refused(
        "{",
        "null",
        -32700,
        "parse",
        "invalid JSON: EOF while parsing an object at line 1 column 1",
    );
    let object = "a call must be an object with jsonrpc, method, and optionally id and params";
    refused("7", "null", -32600, "invalidRequest", object);
    refused("[]", "null", -32600, "invalidRequest", "a batch must have at least one call");
    let version = "jsonrpc is not \\\"2.0\\\"";
    refused(r#"{"id":1,"method":"echo"}"#, "1", -32600, "invalidRequest", version);
    refused(r#"{"jsonrpc":2.0,"id":1,"method":"echo"}"#, "1", -32600, "invalidRequest", version);
    let method = "method is missing or not a string";
    refused(r#"{"jsonrpc":"2.0","id":1}"#, "1", -32600, "invalidRequest", method);
    refused(r#"{"jsonrpc":"2.0","id":1,"method":1}"#, "1", -32600, "invalidRequest", method);
    refused(r#"{"jsonrpc":"2.0","id":1,"result":1}"#, "1", -32600, "invalidRequest", method);
    let params = "params must be an object or an array";
    refused(
        r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":7}"#,
        "1",
        -32600,
        "invalidRequest",
        params,
    );
    refused(
        r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":null}"#,
        "1",
        -32600,
        "invalidRequest",
        params,
    );
    let id = "an id must be a string, a number or null";
    refused(r#"{"jsonrpc":"2.0","id":{},"method":"echo"}"#, "null", -32600, "invalidRequest", id);
    refused(
        r#"{"jsonrpc":"2.0","id":1,"method":"dance"}"#,
        "1",
        -32601,
        "unknownMethod",
        "unknown method dance",
    );
    let add = |params| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"add","params":{params}}}"#);
    let invalid = |params, said: &str| refused(&add(params), "1", -32602, "invalidParams", said);
    invalid("[]", "the parameter a is missing");
    invalid("[1,2,3]", "at most 2 parameters are allowed");
    invalid(r#"{"a":1,"c":2}"#, "unknown parameter c; expected: a, b");
    invalid(
        r#"["1"]"#,
        "the parameter a: invalid type: string \\\"1\\\", expected i64 at line 1 column 3",
    );
}

#[test]
fn a_batch_is_answered_as_one() {
    let add = |id: &str, a| format!(r#"{{"jsonrpc":"2.0"{id},"method":"add","params":[{a}]}}"#);
    let of = |id, a| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{a}}}"#);
    let batch = format!("[{},{},{}]", add(r#","id":1"#, 10), add("", 20), add(r#","id":2"#, 30));
    assert_eq!(answer(&batch), format!("[{},{}]\n", of(1, 10), of(2, 30)));
    assert_eq!(answer(&format!("[{},{}]", add("", 1), add("", 2))), "", "no answer is wanted");
    let mixed = answer(&format!("[1,{}]", add(r#","id":2"#, 30)));
    assert!(mixed.starts_with(r#"[{"jsonrpc":"2.0","id":null,"error":{"code":-32600"#), "{mixed}");
    assert!(mixed.ends_with(&format!("{}]\n", of(2, 30))), "{mixed}");
    let long = answer("[1,2,3,4]");
    assert_eq!(
        long,
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"a batch may have at most \
         3 calls\",\"data\":{\"kind\":\"invalidRequest\",\"limit\":3}}}\n"
    );
}

#[test]
fn a_batch_has_no_more_answers_than_may_wait() {
    static DONE: AtomicUsize = AtomicUsize::new(0);
    let big = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"big","params":[600]}}"#);
    let note = r#"{"jsonrpc":"2.0","method":"big","params":[600]}"#;
    let batch = format!("[{},{},{},{note},{}]\n", big(1), big(2), big(3), big(4));
    let limits = Limits { unread: 1000, ..Limits::default() };
    let mut output = Vec::new();
    serve(batch.as_bytes(), &mut output, &limits, || {}, &mut |call, outlet| {
        DONE.fetch_add(1, Ordering::Relaxed);
        methods(call, outlet)
    })
    .expect("it ends well");
    let full = "x".repeat(600);
    let done = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"{full}"}}"#);
    let not = |id| {
        format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32011,\"message\":\"not run: the \
             answers to earlier calls of the batch reached 1000 bytes\",\
             \"data\":{{\"kind\":\"answerTooLarge\",\"limit\":1000}}}}}}"
        )
    };
    let expected = format!("[{},{},{},{}]\n", done(1), done(2), not(3), not(4));
    assert_eq!(String::from_utf8(output).expect("text"), expected);
    assert_eq!(DONE.load(Ordering::Relaxed), 2);
}

#[test]
fn after_a_bad_message_the_next_is_answered() {
    let good = br#"{"jsonrpc":"2.0","id":1,"method":"add","params":[1]}"#;
    let expected = r#"{"jsonrpc":"2.0","id":1,"result":1}"#;
    let long = vec![b'x'; 3000];
    let long_call = [br#"{"jsonrpc":"2.0","id":"l","method":""#.as_slice(), &long, b"\"}"].concat();
    for (bad, id, code) in [
        (b"\xff\xfe{}".as_slice(), "null", -32700),
        (br#"{"jsonrpc":"2.0","id":3,"method":"\xff"}"#, "3", -32700),
        (br#"{"jsonrpc":"2.0","id":"x","method":"add","params":[1,]}"#, "\"x\"", -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"\xff\"}", "4", -32700),
        (br#"{"jsonrpc":"2.0","id":5,"method":"add","method":"add"}"#, "5", -32600),
        (br#"[{"jsonrpc":"2.0","id":6},"#, "null", -32700),
        (b"\x00", "null", -32700),
        (&long, "null", -32600),
        (&long_call, "\"l\"", -32600),
        (b"[", "null", -32700),
    ] {
        let limits = Limits { frame: 2000, ..Limits::default() };
        let answered = answers_to(&[bad, b"\n", good, b"\n"].concat(), &limits);
        let lines: Vec<&str> = answered.lines().collect();
        let [refused, answered] = lines.as_slice() else { panic!("{lines:?}") };
        assert!(
            refused.contains(&format!("\"id\":{id},\"error\":{{\"code\":{code},")),
            "{refused}"
        );
        assert_eq!(*answered, expected);
    }
}

#[test]
fn ten_megabytes_pass() {
    let text = "x".repeat(10_000_000);
    let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"echo","params":["{text}"]}}"#);
    let answered = answers_to(call.as_bytes(), &Limits::default());
    assert!(answered == format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[\"{text}\"]}}\n"));
}

#[test]
fn a_client_that_sends_lengths_gets_lengths() {
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"add","params":[1]}"#;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":1}"#;
    let framed = |text: &str| format!("Content-Length: {}\r\n\r\n{text}", text.len());
    let both = framed(call) + &framed(call);
    assert_eq!(answers_to(both.as_bytes(), &Limits::default()), framed(answer) + &framed(answer));
    let broken = answers_to(b"Content-Length: x\r\n\r\n", &Limits::default());
    assert!(broken.starts_with("Content-Length: ") && broken.contains("-32700"), "{broken}");
}
