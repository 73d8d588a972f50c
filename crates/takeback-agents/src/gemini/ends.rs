//! What Gemini CLI's transcript says about the ends of calls.
//!
//! It gives calls no id that hooks know: a call is found by its tool and arguments. Calls are written down
//! when they are over.

use serde::Deserialize;
use serde_json::Value;

use super::hook::SENT_AWAY;
use crate::hook::{EndKind, TranscriptEnd, call_id, lines_with, moment_of};

/// What the model is told of a call that a person did not allow.
const REFUSED: &str = "User denied execution";

#[derive(Debug, Deserialize)]
struct WireMessage {
    #[serde(rename = "toolCalls")]
    calls: Vec<WireCall>,
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
    fn how(&self) -> Option<EndKind> {
        let is_sent_away = self.shown.as_str().is_some_and(|text| text.starts_with(SENT_AWAY));
        match self.status.as_deref()? {
            "success" if is_sent_away => None,
            "success" | "error" => Some(EndKind::Finished),
            "cancelled" if self.result.to_string().contains(REFUSED) => Some(EndKind::Rejected),
            "cancelled" => Some(EndKind::Interrupted),
            _ => None,
        }
    }
}

pub(crate) fn ends_in(transcript: &[u8], calls: &[&str]) -> Vec<TranscriptEnd> {
    let mut ends: Vec<TranscriptEnd> = Vec::new();
    for line in lines_with(transcript, "\"toolCalls\"") {
        if ends.len() == calls.len() {
            break;
        }
        let Ok(message) = serde_json::from_slice::<WireMessage>(line.text) else { continue };
        for told in message.calls.iter().rev() {
            let id = call_id(&told.name, &told.args);
            let is_new = ends.iter().all(|end| end.call != id);
            if let Some(how) = told.how().filter(|_| is_new && calls.contains(&id.as_str())) {
                let at = told.timestamp.as_deref().and_then(moment_of);
                ends.push(TranscriptEnd { call: id, how, at, took: None });
            }
        }
    }
    ends
}
