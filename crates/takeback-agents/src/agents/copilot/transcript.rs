//! What Copilot CLI's transcript (`events.jsonl`) says about the ends of calls.
//!
//! Hooks give calls no id. The transcript has one, so a call is found by its tool and arguments first. What
//! a person answered in the dialog, and when, is an event; so is Esc, without the calls that it stopped.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use takeback_store::Timestamp;

use super::hook::{input_of, says_still_running};
use crate::hook::{call_id, moment_of};
use crate::transcript::{TranscriptEnd, TranscriptEndKind, records_with};

#[derive(Debug, Deserialize)]
struct WireEvent {
    #[serde(rename = "type")]
    kind: String,
    timestamp: Option<String>,
    data: WireData,
}

impl WireEvent {
    fn at(&self) -> Option<Timestamp> {
        self.timestamp.as_deref().and_then(moment_of)
    }
}

#[derive(Debug, Deserialize)]
struct WireData {
    model: Option<String>,
    #[serde(rename = "toolCallId")]
    call: Option<String>,
    #[serde(rename = "toolName")]
    tool: Option<String>,
    #[serde(default)]
    arguments: Value,
    #[serde(rename = "permissionRequest")]
    request: Option<WireRequest>,
    result: Option<WireResult>,
    error: Option<WireError>,
}

#[derive(Debug, Deserialize)]
struct WireRequest {
    #[serde(rename = "toolCallId")]
    call: Option<String>,
}

#[derive(Debug, Deserialize)]
struct WireResult {
    /// Of a permission.
    kind: Option<String>,
    /// Of a tool.
    content: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct WireError {
    code: Option<String>,
}

/// What the events after a call's start say about it.
#[derive(Debug, Default)]
struct CallHistory {
    asked: Option<WireEvent>,
    answered: Option<WireEvent>,
    completed: Option<WireEvent>,
    aborted: Option<WireEvent>,
}

pub(super) fn end(transcript: &[u8], call: &str) -> Option<TranscriptEnd> {
    history_of(transcript, call)?.end(call)
}

/// Events of calls name it.
pub(super) fn model(transcript: &[u8]) -> Option<String> {
    records_with(transcript, "\"model\"").find_map(|(event, _): (WireEvent, _)| event.data.model)
}

/// When a person allowed a call.
pub(super) fn allowed_at(transcript: &[u8], call: &str) -> Option<Timestamp> {
    let history = history_of(transcript, call)?;
    history.answered.filter(|answer| permission(answer) == Some("approved"))?.at()
}

fn history_of(transcript: &[u8], call: &str) -> Option<CallHistory> {
    let mut starts = records_with(transcript, "\"tool.execution_start\"");
    let (id, rest) = starts.find_map(|(start, rest): (WireEvent, _)| {
        let is_it = call_id(start.data.tool.as_deref()?, &input_of(&start.data.arguments)) == call;
        start.data.call.filter(|_| is_it).map(|id| (id, rest))
    })?;
    let mut history = CallHistory::default();
    for (event, _) in records_with::<WireEvent>(rest, &id) {
        match event.kind.as_str() {
            "permission.requested"
                if event.data.request.as_ref().and_then(|it| it.call.as_deref()) == Some(&id) =>
            {
                history.asked = Some(event);
            }
            "permission.completed" => history.answered = Some(event),
            "tool.execution_complete" => history.completed = Some(event),
            _ => {}
        }
    }
    let aborts = records_with(rest, "\"abort\"").map(|(event, _): (WireEvent, _)| event);
    history.aborted = aborts.filter(|event| event.kind == "abort").last();
    Some(history)
}

fn permission(answer: &WireEvent) -> Option<&str> {
    answer.data.result.as_ref()?.kind.as_deref()
}

impl CallHistory {
    fn end(&self, call: &str) -> Option<TranscriptEnd> {
        let answer = self.answered.as_ref();
        let is_refused =
            |answer: &&WireEvent| permission(answer).is_some_and(|it| it != "approved");
        let is_denied = |done: &&WireEvent| {
            done.data.error.as_ref().is_some_and(|error| error.code.as_deref() == Some("denied"))
        };
        let (how, event) = if let Some(refusal) = answer.filter(is_refused) {
            (TranscriptEndKind::Rejected, refusal)
        } else if let Some(denial) = self.completed.as_ref().filter(is_denied) {
            (TranscriptEndKind::Rejected, denial)
        } else if let Some(done) = &self.completed {
            let content = done.data.result.as_ref().and_then(|result| result.content.as_ref());
            if content.and_then(Value::as_str).is_some_and(says_still_running) {
                return None;
            }
            (TranscriptEndKind::Finished, done)
        } else {
            let aborted = self.aborted.as_ref()?;
            let waits = self.asked.is_some() && answer.is_none();
            (
                if waits { TranscriptEndKind::Rejected } else { TranscriptEndKind::Interrupted },
                aborted,
            )
        };
        Some(TranscriptEnd { call: call.to_owned(), how, at: event.at(), took: None })
    }
}

/// Only some hooks name it.
pub(super) fn path(home: &Path, session: &str) -> Option<PathBuf> {
    let is_name = session.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    is_name.then(|| home.join("session-state").join(session).join("events.jsonl"))
}
