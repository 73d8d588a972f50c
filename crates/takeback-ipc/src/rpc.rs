//! JSON-RPC 2.0 messages: parsing requests, writing answers.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::id_scanner::{id_in, is_id};
use crate::params::Params;

/// A call of a method.
#[derive(Debug, Clone)]
pub struct Call {
    /// Separated by a colon, even if the client wrote a slash.
    pub method: String,
    /// Its parameters.
    pub params: Params,
}

/// The error of a call, as the client receives it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fault {
    /// The JSON-RPC error code.
    pub code: i32,
    /// What is wrong, for people.
    pub message: String,
    /// An object with `kind`, and more for some errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl Fault {
    /// The message is not JSON.
    pub const PARSE: i32 = -32700;
    /// The message is not a valid request.
    pub const INVALID_REQUEST: i32 = -32600;
    /// There is no such method.
    pub const NO_METHOD: i32 = -32601;
    /// The parameters are invalid.
    pub const INVALID_PARAMS: i32 = -32602;
    /// The call failed.
    pub const INTERNAL: i32 = -32603;
    /// The answer would be too large.
    pub const ANSWER_TOO_LARGE: i32 = -32011;

    /// `kind`: a stable word for programs.
    pub fn new(code: i32, kind: &str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Some(json!({ "kind": kind })) }
    }

    /// Adds a key to `data`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        if let Some(Value::Object(data)) = &mut self.data {
            data.insert(key.to_owned(), value.into());
        }
        self
    }

    /// The message is not JSON.
    pub fn parse(message: impl Into<String>) -> Self {
        Self::new(Self::PARSE, "parse", message)
    }

    /// The message is not a valid request.
    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_REQUEST, "invalidRequest", message)
    }

    /// There is no method `name`.
    pub fn no_method(name: &str) -> Self {
        Self::new(Self::NO_METHOD, "unknownMethod", format!("unknown method {name}"))
    }

    /// The parameters are invalid.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, "invalidParams", message)
    }

    /// The call failed.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Self::INTERNAL, "error", message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(
            Self::INVALID_REQUEST,
            "tooLarge",
            format!("a message may have at most {limit} bytes"),
        )
        .with("limit", limit)
    }

    pub(crate) fn ending() -> Self {
        Self::internal("not run: the server is shutting down")
    }

    pub(crate) fn batch_too_large(limit: usize) -> Self {
        let said =
            format!("not run: the answers to earlier calls of the batch reached {limit} bytes");
        Self::new(Self::ANSWER_TOO_LARGE, "answerTooLarge", said).with("limit", limit)
    }
}

/// A message, parsed as far as possible.
pub(crate) enum Message {
    One(Result<Request, InvalidRequest>),
    Batch(Vec<Result<Request, InvalidRequest>>),
}

pub(crate) struct Request {
    /// As the client wrote it; `None`: a notification.
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) call: Call,
}

/// A request that is invalid.
pub(crate) struct InvalidRequest {
    /// `None`: unknown.
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) fault: Fault,
}

#[derive(Deserialize)]
struct WireRequest<'a> {
    #[serde(borrow, default, deserialize_with = "keep_null")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "keep_null")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "keep_null")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "keep_null")]
    params: Option<&'a RawValue>,
}

/// Tells `null` from a missing key.
fn keep_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

pub(crate) fn read(frame: &[u8], most: usize) -> Result<Message, Fault> {
    let text =
        str::from_utf8(frame).map_err(|error| Fault::parse(format!("invalid UTF-8: {error}")))?;
    let value: &RawValue = serde_json::from_str(text)
        .map_err(|error| Fault::parse(format!("invalid JSON: {error}")))?;
    if !value.get().starts_with('[') {
        return Ok(Message::One(request(value)));
    }
    let calls: Vec<&RawValue> =
        serde_json::from_str(value.get()).map_err(|error| Fault::parse(error.to_string()))?;
    match calls.len() {
        0 => Err(Fault::invalid_request("a batch must have at least one call")),
        count if count > most => {
            let said = format!("a batch may have at most {most} calls");
            Err(Fault::invalid_request(said).with("limit", most))
        }
        _ => Ok(Message::Batch(calls.into_iter().map(request).collect())),
    }
}

fn request(value: &RawValue) -> Result<Request, InvalidRequest> {
    let refused = |id: Option<&RawValue>, why: &str| {
        let (id, fault) = (id.map(ToOwned::to_owned), Fault::invalid_request(why.to_owned()));
        Err(InvalidRequest { id, fault })
    };
    let Ok(wire) = serde_json::from_str::<WireRequest<'_>>(value.get()) else {
        let why = "a call must be an object with jsonrpc, method, and optionally id and params";
        return refused(id_in(value.get().as_bytes()).as_deref(), why);
    };
    let id = wire.id;
    if id.is_some_and(|id| !is_id(id)) {
        return refused(None, "an id must be a string, a number or null");
    }
    if wire.jsonrpc.is_none_or(|version| string_in(version).as_deref() != Some("2.0")) {
        return refused(id, "jsonrpc is not \"2.0\"");
    }
    let Some(method) = wire.method.and_then(string_in) else {
        return refused(id, "method is missing or not a string");
    };
    let Some(params) = Params::new(wire.params) else {
        return refused(id, "params must be an object or an array");
    };
    let method = method.replacen('/', ":", 1);
    Ok(Request { id: id.map(ToOwned::to_owned), call: Call { method, params } })
}

fn string_in(value: &RawValue) -> Option<String> {
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

/// An answer as JSON. `id`: `None` if the call is unknown.
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
