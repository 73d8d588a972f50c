//! Reads an endpoint's response in pieces: the events of a stream, or an error.

use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::mpsc::Sender;
use std::time::Duration;

use serde_json::Value;
use ureq::Body;
use ureq::http::Response;

use super::{one_line, send_part};

pub(super) enum ResponsePart {
    /// The data of one event.
    Event(String),
    Refused {
        status: u16,
        wait: Option<Duration>,
        body: String,
    },
    Unreachable(String),
    /// With the error, if the stream broke off.
    Ended(Option<String>),
}

/// The limit for a whole response; no message is as long.
const LONGEST: u64 = 256 << 20;

const LONGEST_REFUSAL: u64 = 64 << 10;

pub(super) fn read_answer(response: Response<Body>, parts: &Sender<ResponsePart>) {
    let status = response.status().as_u16();
    if status != 200 {
        let wait = response.headers().get("retry-after");
        let wait = wait.and_then(|wait| wait.to_str().ok()?.trim().parse().ok());
        let mut bytes = Vec::new();
        let reader = response.into_body().into_reader();
        let read = reader.take(LONGEST_REFUSAL).read_to_end(&mut bytes);
        let body = match read {
            Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => error.to_string(),
        };
        let wait = wait.map(Duration::from_secs);
        return send_part(parts, ResponsePart::Refused { status, wait, body });
    }
    let reader = response.into_body().into_with_config().limit(LONGEST).reader();
    let mut data = String::new();
    for line in BufReader::new(reader).lines() {
        let line = match line {
            Ok(line) => line,
            Err(error) => {
                return send_part(parts, ResponsePart::Ended(Some(one_line(&error.to_string()))));
            }
        };
        if let Some(more) = line.strip_prefix("data:") {
            if !data.is_empty() {
                data.push('\n');
            }
            data.push_str(more.strip_prefix(' ').unwrap_or(more));
        } else if line.is_empty() && !data.is_empty() {
            // The receiver is gone: the connection ends with this thread.
            if parts.send(ResponsePart::Event(std::mem::take(&mut data))).is_err() {
                return;
            }
        }
    }
    if !data.is_empty() {
        send_part(parts, ResponsePart::Event(data));
    }
    send_part(parts, ResponsePart::Ended(None));
}

/// The error message in a response of either API, or the whole body.
pub(super) fn refusal(body: &str) -> String {
    let json: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let error = &json["error"];
    let words = error["message"].as_str().or_else(|| error.as_str());
    let words = words.or_else(|| json["message"].as_str()).unwrap_or(body);
    if words.trim().is_empty() { "no reason given".to_owned() } else { one_line(words) }
}
