//! One client: calls are read and answered one at a time, in order.

use std::io::{Read, Write};
use std::thread::Builder;

use serde_json::value::RawValue;

use crate::Limits;
use crate::frame::{Frame, FrameError, FrameReader};
use crate::id_scanner::id_in;
use crate::outlet::{DisconnectedError, Outlet};
use crate::rpc::{Call, Fault, InvalidRequest, Message, Request, answer, read};

/// The result of a call.
pub type Outcome = Result<Box<RawValue>, Fault>;

/// Serves a client until it disconnects. `hang_up` is called when a write fails; it must also end
/// reading from the client, where the transport allows it.
pub fn serve(
    reader: impl Read,
    writer: impl Write + Send,
    limits: &Limits,
    hang_up: impl Fn() + Send,
    methods: &mut dyn FnMut(&Call, &Outlet) -> Outcome,
) -> Result<(), FrameError> {
    serve_until(&|| false, Transport { reader, writer, hang_up }, limits, methods)
}

/// Both directions of a client's connection, and how to close them.
pub(crate) struct Transport<R, W, H> {
    pub(crate) reader: R,
    pub(crate) writer: W,
    pub(crate) hang_up: H,
}

/// Like [`serve`], but starts no call once `is_over` returns true.
pub(crate) fn serve_until(
    is_over: &dyn Fn() -> bool,
    transport: Transport<impl Read, impl Write + Send, impl Fn() + Send>,
    limits: &Limits,
    methods: &mut dyn FnMut(&Call, &Outlet) -> Outcome,
) -> Result<(), FrameError> {
    let Transport { reader, writer, hang_up } = transport;
    let outlet = Outlet::new(limits.unread);
    std::thread::scope(|scope| {
        let writing = outlet.clone();
        let write = move || {
            if writing.write_to(writer).is_err() {
                hang_up();
            }
        };
        Builder::new().spawn_scoped(scope, write).map_err(FrameError::Io)?;
        // Also ends the writer thread if a method panics; the scope would wait for it forever.
        let _end = End(&outlet);
        listen(reader, &Connection { limits, outlet: &outlet, is_over }, methods)
    })
}

/// The parts of a connection that every call needs.
struct Connection<'a> {
    limits: &'a Limits,
    outlet: &'a Outlet,
    is_over: &'a dyn Fn() -> bool,
}

struct End<'a>(&'a Outlet);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn listen(
    reader: impl Read,
    connection: &Connection<'_>,
    methods: &mut dyn FnMut(&Call, &Outlet) -> Outcome,
) -> Result<(), FrameError> {
    let Connection { limits, outlet, is_over } = connection;
    let mut frames = FrameReader::new(reader, limits.frame);
    loop {
        let frame = match frames.next_frame() {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(()),
            Err(error) => {
                // The start of the next frame is unknown, so the connection ends.
                if let FrameError::Header { why } = &error {
                    let fault = Fault::parse(*why);
                    if let Some(framing) = frames.framing() {
                        outlet.set_framing(framing);
                    }
                    drop(outlet.send(&answer(None, Err(&fault))));
                }
                return Err(error);
            }
        };
        if is_over() {
            return Ok(());
        }
        if let Some(framing) = frames.framing() {
            outlet.set_framing(framing);
        }
        let answered = match &frame {
            Frame::TooLarge { id } => {
                let id = id.clone().and_then(|id| RawValue::from_string(id).ok());
                Some(answer(id.as_deref(), Err(&Fault::too_large(limits.frame))))
            }
            Frame::Whole(bytes) => answer_frame(bytes, connection, methods),
        };
        if let Some(Err(DisconnectedError)) = answered.map(|text| outlet.send(&text)) {
            return Ok(());
        }
    }
}

/// `None`: the client wants no answer.
fn answer_frame(
    frame: &[u8],
    connection: &Connection<'_>,
    methods: &mut dyn FnMut(&Call, &Outlet) -> Outcome,
) -> Option<String> {
    match read(frame, connection.limits.batch) {
        Err(fault) => Some(answer(id_in(frame).as_deref(), Err(&fault))),
        Ok(Message::One(request)) => answer_one(request, connection.outlet, methods),
        Ok(Message::Batch(requests)) => answer_batch(requests, connection, methods),
    }
}

/// Once the answers reach the limit of unread bytes, the remaining calls fail without being run.
fn answer_batch(
    requests: Vec<Result<Request, InvalidRequest>>,
    connection: &Connection<'_>,
    methods: &mut dyn FnMut(&Call, &Outlet) -> Outcome,
) -> Option<String> {
    let Connection { limits, outlet, is_over } = connection;
    let mut answers = Vec::new();
    let mut bytes = 0;
    for request in requests {
        if outlet.is_gone() {
            return None;
        }
        let answered = match request {
            Ok(Request { id, .. }) if is_over() => {
                id.map(|id| answer(Some(&id), Err(&Fault::ending())))
            }
            Ok(Request { id, .. }) if bytes >= limits.unread => {
                id.map(|id| answer(Some(&id), Err(&Fault::batch_too_large(limits.unread))))
            }
            request => answer_one(request, outlet, methods),
        };
        bytes += answered.as_ref().map_or(0, String::len);
        answers.extend(answered);
    }
    (!answers.is_empty()).then(|| format!("[{}]", answers.join(",")))
}

fn answer_one(
    request: Result<Request, InvalidRequest>,
    outlet: &Outlet,
    methods: &mut dyn FnMut(&Call, &Outlet) -> Outcome,
) -> Option<String> {
    match request {
        Err(InvalidRequest { id, fault }) => Some(answer(id.as_deref(), Err(&fault))),
        Ok(Request { id, call }) => {
            let outcome = methods(&call, outlet);
            id.map(|id| answer(Some(&id), outcome.as_deref()))
        }
    }
}
