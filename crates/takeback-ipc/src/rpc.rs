//! JSON-RPC 2.0: what a message asks, and what is answered.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::found_id::{id_in, is_id};
use crate::params::Params;

/// One thing that a client asks.
#[derive(Debug, Clone)]
pub struct Call {
    /// With a colon, also where the client wrote a slash.
    pub method: String,
    pub params: Params,
}

/// Why a call was not done, as the client is told.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fault {
    pub code: i32,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Fault {
    pub const PARSE: i32 = -32700;
    pub const INVALID_REQUEST: i32 = -32600;
    pub const NO_METHOD: i32 = -32601;
    pub const INVALID_PARAMS: i32 = -32602;
    pub const INTERNAL: i32 = -32603;
    pub const ANSWER_TOO_LARGE: i32 = -32011;

    /// `kind`: the same in a word that stays the same, for programs.
    pub fn new(code: i32, kind: &str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Some(json!({ "kind": kind })) }
    }

    /// Says more in `data`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        if let Some(Value::Object(data)) = &mut self.data {
            data.insert(key.to_owned(), value.into());
        }
        self
    }

    pub fn parse(message: impl Into<String>) -> Self {
        Self::new(Self::PARSE, "parse", message)
    }

    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_REQUEST, "invalidRequest", message)
    }

    pub fn no_method(name: &str) -> Self {
        Self::new(Self::NO_METHOD, "unknownMethod", format!("there is no method {name}"))
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, "invalidParams", message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Self::INTERNAL, "error", message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(Self::INVALID_REQUEST, "tooLarge", format!("a message has at most {limit} bytes"))
            .with("limit", limit)
    }

    pub(crate) fn ending() -> Self {
        Self::internal("this was not done: the server ends")
    }

    pub(crate) fn batch_too_large(limit: usize) -> Self {
        let said = format!(
            "this was not done: what the calls before it in the batch are answered has {limit} bytes or more"
        );
        Self::new(Self::ANSWER_TOO_LARGE, "answerTooLarge", said).with("limit", limit)
    }
}

/// A message that was understood as far as possible.
pub(crate) enum Message {
    One(Result<Request, Refused>),
    Batch(Vec<Result<Request, Refused>>),
}

pub(crate) struct Request {
    /// As the client wrote it; `None`: it wants no answer.
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) call: Call,
}

/// A request that is none.
pub(crate) struct Refused {
    /// `None`: it cannot be known.
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) fault: Fault,
}

#[derive(Deserialize)]
struct WireRequest<'a> {
    #[serde(borrow, default, deserialize_with = "even_null")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "even_null")]
    params: Option<&'a RawValue>,
}

/// That something is `null` is not that it is missing.
fn even_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

pub(crate) fn read(frame: &[u8], most: usize) -> Result<Message, Fault> {
    let text = str::from_utf8(frame)
        .map_err(|error| Fault::parse(format!("that is not UTF-8: {error}")))?;
    let value: &RawValue = serde_json::from_str(text)
        .map_err(|error| Fault::parse(format!("that is not JSON: {error}")))?;
    if !value.get().starts_with('[') {
        return Ok(Message::One(request(value)));
    }
    let calls: Vec<&RawValue> =
        serde_json::from_str(value.get()).map_err(|error| Fault::parse(error.to_string()))?;
    match calls.len() {
        0 => Err(Fault::invalid_request("a batch has at least one call")),
        count if count > most => {
            let said = format!("a batch has at most {most} calls");
            Err(Fault::invalid_request(said).with("limit", most))
        }
        _ => Ok(Message::Batch(calls.into_iter().map(request).collect())),
    }
}

fn request(value: &RawValue) -> Result<Request, Refused> {
    let refused = |id: Option<&RawValue>, why: &str| {
        let (id, fault) = (id.map(ToOwned::to_owned), Fault::invalid_request(why.to_owned()));
        Err(Refused { id, fault })
    };
    let Ok(wire) = serde_json::from_str::<WireRequest<'_>>(value.get()) else {
        let why = "a call is an object with jsonrpc, method, and perhaps id and params";
        return refused(id_in(value.get().as_bytes()).as_deref(), why);
    };
    let id = wire.id;
    if id.is_some_and(|id| !is_id(id)) {
        return refused(None, "an id is a text, a number or null");
    }
    if wire.jsonrpc.is_none_or(|version| text_of(version).as_deref() != Some("2.0")) {
        return refused(id, "jsonrpc is not \"2.0\"");
    }
    let Some(method) = wire.method.and_then(text_of) else {
        return refused(id, "method is missing, or no text");
    };
    let Some(params) = Params::new(wire.params) else {
        return refused(id, "params are an object or a list");
    };
    let method = method.replacen('/', ":", 1);
    Ok(Request { id: id.map(ToOwned::to_owned), call: Call { method, params } })
}

fn text_of(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

#[derive(Serialize)]
struct WireAnswer<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Fault>,
}

/// An answer as JSON. `id`: `None` if nobody knows which call it is to.
pub(crate) fn answer(id: Option<&RawValue>, outcome: Result<&RawValue, &Fault>) -> String {
    let (result, error) = (outcome.ok(), outcome.err());
    to_text(&WireAnswer { jsonrpc: "2.0", id, result, error })
}

#[derive(Serialize)]
struct WireNotification<'a, P> {
    jsonrpc: &'static str,
    method: &'a str,
    params: P,
}

pub(crate) fn notification(method: &str, params: &impl Serialize) -> String {
    to_text(&WireNotification { jsonrpc: "2.0", method, params })
}

#[expect(clippy::expect_used, reason = "its keys are text, and it is written to memory")]
fn to_text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it can be written")
}
