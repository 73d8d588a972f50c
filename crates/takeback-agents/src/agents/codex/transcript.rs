//! What Codex's transcript (its rollout) says about the ends of calls.
//!
//! A command that ran, and a patch that was applied, is an item under the call's id, written when it is
//! over; of a command it says how long it ran, without the time that it waited for a person. After Esc the
//! model gets the answer that the call was aborted, whether it was refused or still runs: Codex lets it run on.

use std::time::Duration;

use serde::Deserialize;
use takeback_store::Timestamp;

use crate::hook::moment_of;
use crate::transcript::{TranscriptEnd, TranscriptEndKind, records_with};

/// The model's answer for a call that was aborted.
const ABORTED: &str = "aborted by user";
/// The model's answer for a command that it does not wait for.
const STILL_RUNNING: &str = "Process running with session ID";

#[derive(Debug, Deserialize)]
struct WireLine {
    timestamp: Option<String>,
    payload: WirePayload,
}

#[derive(Debug, Deserialize)]
struct WirePayload {
    #[serde(rename = "type")]
    kind: String,
    call_id: Option<String>,
    name: Option<String>,
    /// A text, or parts of one.
    #[serde(default)]
    output: serde_json::Value,
    item: Option<WireItem>,
}

#[derive(Debug, Deserialize)]
struct WireItem {
    id: Option<String>,
    duration: Option<WireDuration>,
}

#[derive(Debug, Deserialize)]
struct WireDuration {
    secs: u64,
    nanos: u32,
}

/// When a command that has ended began to run.
pub(super) fn allowed_at(transcript: &[u8], call: &str) -> Option<Timestamp> {
    let end = end(transcript, call)?;
    let took = i64::try_from(end.took?.as_millis()).ok()?;
    Some(Timestamp(end.at?.0.saturating_sub(took)))
}

pub(super) fn end(transcript: &[u8], call: &str) -> Option<TranscriptEnd> {
    let lines: Vec<WireLine> = records_with(transcript, call).map(|(line, _)| line).collect();
    let end = |how, line: &WireLine| TranscriptEnd {
        call: call.to_owned(),
        how,
        at: line.timestamp.as_deref().and_then(moment_of),
        took: None,
    };
    let of_call = |line: &&WireLine| line.payload.call_id.as_deref() == Some(call);
    let item = lines.iter().find_map(|line| {
        let item = line.payload.item.as_ref().filter(|item| item.id.as_deref() == Some(call))?;
        (line.payload.kind == "item_completed").then_some((line, item))
    });
    if let Some((line, item)) = item {
        let took = item.duration.as_ref().map(|it| Duration::new(it.secs, it.nanos));
        return Some(TranscriptEnd { took, ..end(TranscriptEndKind::Finished, line) });
    }
    let answer =
        lines.iter().filter(of_call).find(|line| line.payload.kind.ends_with("_output"))?;
    let text = answer.payload.output.to_string();
    if text.contains(STILL_RUNNING) {
        return None;
    }
    if !text.contains(ABORTED) {
        return Some(end(TranscriptEndKind::Finished, answer));
    }
    // A patch takes no time: one that is not applied by now was never allowed.
    let is_patch = lines
        .iter()
        .filter(of_call)
        .any(|line| line.payload.name.as_deref() == Some("apply_patch"));
    Some(end(
        if is_patch { TranscriptEndKind::Rejected } else { TranscriptEndKind::Abandoned },
        answer,
    ))
}
