//! What Gemini CLI's transcript says about the ends of calls.
//!
//! Its call ids are unknown to hooks: a call is found by its tool and arguments. Calls are written
//! when they have ended.

use serde::Deserialize;
use serde_json::Value;

use super::hook::MOVED_TO_BACKGROUND;
use crate::hook::{call_id, moment_of};
use crate::transcript::{TranscriptEnd, TranscriptEndKind, records_with};

/// The model's answer for a call that a person did not allow.
const REFUSED: &str = "User denied execution";

#[derive(Debug, Deserialize)]
struct WireMessage {
    #[serde(rename = "toolCalls")]
    calls: Vec<WireCall>,
}

/// A message of the model.
#[derive(Debug, Deserialize)]
struct WireAnswer {
    model: String,
}

#[derive(Debug, Deserialize)]
struct WireCall {
    name: String,
    #[serde(default)]
    args: Value,
    status: Option<String>,
    timestamp: Option<String>,
    #[serde(default)]
    result: Value,
    #[serde(default, rename = "resultDisplay")]
    shown: Value,
}

impl WireCall {
    fn end_kind(&self) -> Option<TranscriptEndKind> {
        let is_sent_away =
            self.shown.as_str().is_some_and(|text| text.starts_with(MOVED_TO_BACKGROUND));
        match self.status.as_deref()? {
            "success" if is_sent_away => None,
            "success" | "error" => Some(TranscriptEndKind::Finished),
            "cancelled" if self.result.to_string().contains(REFUSED) => {
                Some(TranscriptEndKind::Rejected)
            }
            "cancelled" => Some(TranscriptEndKind::Interrupted),
            _ => None,
        }
    }
}

pub(super) fn end(transcript: &[u8], call: &str) -> Option<TranscriptEnd> {
    records_with(transcript, "\"toolCalls\"").find_map(|(message, _): (WireMessage, _)| {
        message.calls.iter().rev().find_map(|written| {
            let how =
                written.end_kind().filter(|_| call_id(&written.name, &written.args) == call)?;
            let at = written.timestamp.as_deref().and_then(moment_of);
            Some(TranscriptEnd { call: call.to_owned(), how, at, took: None })
        })
    })
}

pub(super) fn model(transcript: &[u8]) -> Option<String> {
    let mut answers = records_with(transcript, "\"model\"");
    answers.next().map(|(answer, _): (WireAnswer, _)| answer.model)
}
