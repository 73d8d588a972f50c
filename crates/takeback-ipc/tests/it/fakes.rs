//! Methods that tests can tell apart, and a client in memory.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use serde_json::value::to_raw_value;
use takeback_ipc::{Call, Fault, Limits, Outcome, Outlet, serve};

/// `echo` answers its parameters, `add` adds `a` and `b`, `big` answers `n` bytes, `tell` sends a
/// notification first, `panic` panics.
pub(crate) fn methods(call: &Call, outlet: &Outlet) -> Outcome {
    let raw = |value: &Value| Ok(to_raw_value(value).expect("it is JSON"));
    match call.method.as_str() {
        "echo" | "a:echo" => {
            Ok(takeback_ipc::RawValue::from_string(call.params.text().to_owned()).expect("JSON"))
        }
        "add" => {
            let given = call.params.named(&["a", "b"])?;
            let (a, b): (i64, Option<i64>) = (given.required("a")?, given.optional("b")?);
            raw(&(a + b.unwrap_or(0)).into())
        }
        "big" => {
            let n: usize = call.params.named(&["n"])?.required("n")?;
            raw(&"x".repeat(n).into())
        }
        "tell" => {
            outlet.notify("told", &[1]).map_err(|gone| Fault::internal(gone.to_string()))?;
            raw(&Value::Null)
        }
        "panic" => panic!("a mistake"),
        other => Err(Fault::no_method(other)),
    }
}

/// The answers to a client that sends `input` and then closes.
pub(crate) fn answers_to(input: &[u8], limits: &Limits) -> String {
    let sink = Sink::default();
    // A connection that ends within a frame is an error, but its answers still count.
    drop(serve(input, sink.clone(), limits, || {}, &mut methods));
    let bytes = sink.0.lock().expect("the lock is not poisoned").clone();
    String::from_utf8(bytes).expect("answers are text")
}

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("the lock is not poisoned").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns at most `step` bytes at a time.
pub(crate) struct Dribble<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) step: usize,
}

impl Read for Dribble<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let n = self.step.min(to.len()).min(self.bytes.len());
        to[..n].copy_from_slice(&self.bytes[..n]);
        self.bytes = &self.bytes[n..];
        Ok(n)
    }
}
