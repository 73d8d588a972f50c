//! What Claude Code's transcript says about the ends of calls, about prompts, and about forks.
//!
//! Each answer to a tool call is a line of type `user`. A call that a person refused in the dialog
//! and one that was stopped while it ran get the same answer (`User rejected tool use`). They
//! differ in the line that follows: only Esc in a running turn names the message that it
//! interrupted. A subagent's transcript never names it; there a refusal carries a decision.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::recorder::runs_in_background;
use crate::hook::moment_of;
use crate::transcript::{TranscriptEnd, TranscriptEndKind, records_with};

const STOPPED: &str = "[Request interrupted by user";

#[derive(Debug, Deserialize)]
struct WireLine {
    #[serde(rename = "type")]
    kind: String,
    uuid: Option<String>,
    timestamp: Option<String>,
    #[serde(rename = "sessionId")]
    session: Option<String>,
    #[serde(rename = "promptId")]
    prompt: Option<String>,
    #[serde(default, rename = "isMeta")]
    is_meta: bool,
    #[serde(default, rename = "isSidechain")]
    is_sidechain: bool,
    message: Option<WireMessage>,
    #[serde(rename = "toolUseResult")]
    result: Option<Value>,
    #[serde(rename = "toolDenialKind")]
    denial: Option<String>,
    #[serde(default, rename = "toolDenialAfterRun")]
    is_denied_after_run: bool,
    #[serde(rename = "permissionDecision")]
    decision: Option<WireDecision>,
    #[serde(rename = "interruptedMessageId")]
    interrupted: Option<String>,
    #[serde(rename = "forkedFrom")]
    forked_from: Option<WireFork>,
    origin: Option<WireOrigin>,
}

#[derive(Debug, Deserialize)]
struct WireMessage {
    model: Option<String>,
    #[serde(default, deserialize_with = "blocks_or_text")]
    content: Vec<WireBlock>,
}

/// What a person typed is a text without blocks.
fn blocks_or_text<'de, D: Deserializer<'de>>(content: D) -> Result<Vec<WireBlock>, D::Error> {
    let content = Value::deserialize(content)?;
    Ok(if content.is_array() { Vec::deserialize(content).unwrap_or_default() } else { Vec::new() })
}

#[derive(Debug, Deserialize)]
struct WireBlock {
    tool_use_id: Option<String>,
    text: Option<String>,
}

#[derive(Debug, Deserialize)]
struct WireDecision {
    decision: Option<String>,
}

#[derive(Debug, Deserialize)]
struct WireFork {
    #[serde(rename = "sessionId")]
    session: String,
}

#[derive(Debug, Deserialize)]
struct WireOrigin {
    kind: Option<String>,
}

impl WireLine {
    fn blocks(&self) -> &[WireBlock] {
        self.message.as_ref().map_or(&[], |message| &message.content)
    }

    fn is_answer_to(&self, call: &str) -> bool {
        self.kind == "user"
            && self.blocks().iter().any(|block| block.tool_use_id.as_deref() == Some(call))
    }

    fn is_answer(&self) -> bool {
        self.blocks().iter().any(|block| block.tool_use_id.is_some())
    }

    fn says_stopped(&self) -> bool {
        let starts = |text: &str| text.starts_with(STOPPED);
        self.blocks().iter().any(|block| block.text.as_deref().is_some_and(starts))
    }

    /// Whether it is a prompt of a person. Messages of the program itself have another origin.
    fn is_prompt(&self) -> bool {
        let origin = self.origin.as_ref().and_then(|origin| origin.kind.as_deref());
        self.kind == "user"
            && self.result.is_none()
            && !self.is_answer()
            && !self.says_stopped()
            && !self.is_meta
            && !self.is_sidechain
            && origin.is_none_or(|kind| kind == "human")
    }
}

pub(super) fn end(transcript: &[u8], call: &str) -> Option<TranscriptEnd> {
    let mut answers = records_with(transcript, call);
    let (answer, rest) = answers.find(|(line, _): &(WireLine, _)| line.is_answer_to(call))?;
    let how = end_kind(&answer, rest)?;
    let at = answer.timestamp.as_deref().and_then(moment_of);
    Some(TranscriptEnd { call: call.to_owned(), how, at, took: None })
}

/// `None`: the command runs on, or the line that decides is not written yet.
fn end_kind(answer: &WireLine, rest: &[u8]) -> Option<TranscriptEndKind> {
    let is_rejected =
        answer.decision.as_ref().is_some_and(|it| it.decision.as_deref() == Some("reject"));
    match answer.denial.as_deref() {
        _ if answer.is_denied_after_run => Some(TranscriptEndKind::Finished),
        Some(_) if is_rejected => Some(TranscriptEndKind::Rejected),
        Some("permission-rule") => Some(TranscriptEndKind::Rejected),
        Some(kind) if kind.starts_with("automode-") => Some(TranscriptEndKind::Rejected),
        Some("user-rejected") if !answer.is_sidechain => stopped_or_refused(rest),
        Some(_) => Some(TranscriptEndKind::Interrupted),
        // Versions that name no kind write the same for both.
        None if answer.result.as_ref().is_some_and(|it| it == "User rejected tool use") => {
            Some(TranscriptEndKind::Interrupted)
        }
        None if answer.result.as_ref().is_some_and(|result| runs_in_background("", result)) => None,
        None => Some(TranscriptEndKind::Finished),
    }
}

/// Decides by the line after the answers. A new prompt that stops a command leaves no such line.
fn stopped_or_refused(rest: &[u8]) -> Option<TranscriptEndKind> {
    let mut next = rest
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<WireLine>(line).ok())
        .filter(|line| matches!(line.kind.as_str(), "user" | "assistant") && !line.is_answer());
    let next = next.next()?;
    let is_refusal = next.says_stopped() && next.interrupted.is_none();
    Some(if is_refusal { TranscriptEndKind::Rejected } else { TranscriptEndKind::Interrupted })
}

pub(super) fn subagent_path(transcript: &Path, subagent: &str) -> Option<PathBuf> {
    let is_name = subagent.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let is_transcript = transcript.extension().is_some_and(|end| end == "jsonl");
    let file = format!("subagents/agent-{subagent}.jsonl");
    (is_name && is_transcript).then(|| transcript.with_extension("").join(file))
}

/// `/branch` records it, `--fork-session` does not.
pub(super) fn parent(transcript: &[u8], session: &str) -> Option<String> {
    records_with(transcript, "\"forkedFrom\"").find_map(|(line, _): (WireLine, _)| {
        let is_own = line.session.as_deref() == Some(session);
        line.forked_from.filter(|_| is_own).map(|fork| fork.session)
    })
}

pub(super) fn prompts(transcript: &[u8]) -> Vec<String> {
    let lines = records_with(transcript, "\"promptId\"").map(|(line, _): (WireLine, _)| line);
    let mut prompts: Vec<String> =
        lines.filter(WireLine::is_prompt).filter_map(|line| line.uuid).collect();
    prompts.reverse();
    prompts
}

/// Hooks know a prompt by another id than the rest of Claude Code. A fork gives all messages that it
/// copied the id of its own first prompt, so the newest one counts.
pub(super) fn message(transcript: &[u8], prompt: &str) -> Option<String> {
    records_with(transcript, prompt)
        .map(|(line, _): (WireLine, _)| line)
        .find(|line| line.is_prompt() && line.prompt.as_deref() == Some(prompt))?
        .uuid
}

/// The program gives its own messages, an error of the API for example, a model in angle brackets.
pub(super) fn model(transcript: &[u8]) -> Option<String> {
    records_with(transcript, "\"model\"")
        .filter(|(line, _): &(WireLine, _)| line.kind == "assistant")
        .filter_map(|(line, _)| line.message?.model)
        .find(|model| !model.starts_with('<'))
}
