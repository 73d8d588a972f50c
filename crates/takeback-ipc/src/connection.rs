//! One client: its calls come in and are answered one after the other, in order.

use std::io::{Read, Write};
use std::thread::Builder;

use serde_json::value::RawValue;

use crate::Limits;
use crate::found_id::id_in;
use crate::frame::{Frame, FrameError, FrameReader};
use crate::outlet::{Gone, Outlet};
use crate::rpc::{Call, Fault, Message, Refused, Request, answer, read};

/// What a call comes to.
pub type Outcome = Result<Box<RawValue>, Fault>;

/// Serves a client until it is gone. `hang_up` is called if it no longer reads, and must see to it
/// that reading from it ends too, where that is possible.
pub fn serve(
    reader: impl Read,
    writer: impl Write + Send,
    limits: &Limits,
    hang_up: impl Fn() + Send,
    methods: &mut dyn FnMut(&Call, &Outlet) -> Outcome,
) -> Result<(), FrameError> {
    serve_until(&|| false, reader, writer, limits, hang_up, methods)
}

/// As [`serve`], and no call is begun once `is_over`.
pub(crate) fn serve_until(
    is_over: &dyn Fn() -> bool,
    reader: impl Read,
    writer: impl Write + Send,
    limits: &Limits,
    hang_up: impl Fn() + Send,
    methods: &mut dyn FnMut(&Call, &Outlet) -> Outcome,
) -> Result<(), FrameError> {
    let outlet = Outlet::new(limits.unread);
    std::thread::scope(|scope| {
        let writing = outlet.clone();
        let write = move || {
            if writing.write_to(writer).is_err() {
                hang_up();
            }
        };
        Builder::new().spawn_scoped(scope, write).map_err(FrameError::Io)?;
        // Also when a method panics, the writer is to end.
        let _end = End(&outlet);
        listen(reader, &Served { limits, outlet: &outlet, is_over }, methods)
    })
}

/// What is the same for all calls of a client.
struct Served<'a> {
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
    served: &Served<'_>,
    methods: &mut dyn FnMut(&Call, &Outlet) -> Outcome,
) -> Result<(), FrameError> {
    let Served { limits, outlet, is_over } = served;
    let mut frames = FrameReader::new(reader, limits.frame);
    loop {
        let frame = match frames.next_frame() {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(()),
            Err(error) => {
                // Nobody knows where the next frame begins.
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
            Frame::Whole(bytes) => answer_frame(bytes, served, methods),
        };
        if let Some(Err(Gone)) = answered.map(|text| outlet.send(&text)) {
            return Ok(());
        }
    }
}

/// `None`: nobody wants an answer.
fn answer_frame(
    frame: &[u8],
    served: &Served<'_>,
    methods: &mut dyn FnMut(&Call, &Outlet) -> Outcome,
) -> Option<String> {
    match read(frame, served.limits.batch) {
        Err(fault) => Some(answer(id_in(frame).as_deref(), Err(&fault))),
        Ok(Message::One(request)) => answer_one(request, served.outlet, methods),
        Ok(Message::Batch(requests)) => answer_batch(requests, served, methods),
    }
}

/// Once the answers are as many bytes as may wait, the rest is not done.
fn answer_batch(
    requests: Vec<Result<Request, Refused>>,
    served: &Served<'_>,
    methods: &mut dyn FnMut(&Call, &Outlet) -> Outcome,
) -> Option<String> {
    let Served { limits, outlet, is_over } = served;
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
    request: Result<Request, Refused>,
    outlet: &Outlet,
    methods: &mut dyn FnMut(&Call, &Outlet) -> Outcome,
) -> Option<String> {
    match request {
        Err(Refused { id, fault }) => Some(answer(id.as_deref(), Err(&fault))),
        Ok(Request { id, call }) => {
            let outcome = methods(&call, outlet);
            id.map(|id| answer(Some(&id), outcome.as_deref()))
        }
    }
}
