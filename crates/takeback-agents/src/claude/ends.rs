//! What Claude Code's transcript says about the ends of calls, about prompts, and about forks.
//!
//! Each answer to a tool call is a line of type `user`. A call that a person refused in the dialog and one
//! that was stopped while it ran get the same answer (`User rejected tool use`). They differ in the line
//! that follows: only Esc in a running turn names the message that it interrupted. A subagent's transcript
//! never names it; there a refusal carries a decision.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::recorder::goes_on;
use crate::hook::{EndKind, TranscriptEnd, lines_with, moment_of};

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
    fn read(text: &[u8]) -> Option<Self> {
        serde_json::from_slice(text).ok()
    }

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

    /// Whether a person asked for something. What the program tells itself has another origin.
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

pub(crate) fn ends_in(transcript: &[u8], calls: &[&str]) -> Vec<TranscriptEnd> {
    calls.iter().filter_map(|call| end_of(transcript, call)).collect()
}

fn end_of(transcript: &[u8], call: &str) -> Option<TranscriptEnd> {
    let (answer, rest) = lines_with(transcript, call).find_map(|line| {
        let read = WireLine::read(line.text).filter(|read| read.is_answer_to(call))?;
        Some((read, line.rest))
    })?;
    let how = how(&answer, rest)?;
    let at = answer.timestamp.as_deref().and_then(moment_of);
    Some(TranscriptEnd { call: call.to_owned(), how, at, took: None })
}

/// `None`: what was started goes on, or the line that tells is not written yet.
fn how(answer: &WireLine, rest: &[u8]) -> Option<EndKind> {
    let is_rejected =
        answer.decision.as_ref().is_some_and(|it| it.decision.as_deref() == Some("reject"));
    match answer.denial.as_deref() {
        _ if answer.is_denied_after_run => Some(EndKind::Finished),
        Some(_) if is_rejected => Some(EndKind::Rejected),
        Some("permission-rule") => Some(EndKind::Rejected),
        Some(kind) if kind.starts_with("automode-") => Some(EndKind::Rejected),
        Some("user-rejected") if !answer.is_sidechain => stopped_or_refused(rest),
        Some(_) => Some(EndKind::Interrupted),
        // Versions that name no kind write the same for both.
        None if answer.result.as_ref().is_some_and(|it| it == "User rejected tool use") => {
            Some(EndKind::Interrupted)
        }
        None if answer.result.as_ref().is_some_and(|result| goes_on("", result)) => None,
        None => Some(EndKind::Finished),
    }
}

/// What the line after the answers says. A new prompt that stops a command leaves no such line.
fn stopped_or_refused(rest: &[u8]) -> Option<EndKind> {
    let mut next = rest
        .split(|byte| *byte == b'\n')
        .filter_map(WireLine::read)
        .filter(|line| matches!(line.kind.as_str(), "user" | "assistant") && !line.is_answer());
    let next = next.next()?;
    let is_refusal = next.says_stopped() && next.interrupted.is_none();
    Some(if is_refusal { EndKind::Rejected } else { EndKind::Interrupted })
}

pub(crate) fn transcript_of_subagent(transcript: &Path, subagent: &str) -> Option<PathBuf> {
    let is_name = subagent.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    let is_transcript = transcript.extension().is_some_and(|end| end == "jsonl");
    let file = format!("subagents/agent-{subagent}.jsonl");
    (is_name && is_transcript).then(|| transcript.with_extension("").join(file))
}

/// `/branch` writes it down, `--fork-session` does not.
pub(crate) fn parent_in(transcript: &[u8], session: &str) -> Option<String> {
    lines_with(transcript, "\"forkedFrom\"").find_map(|line| {
        let read = WireLine::read(line.text)?;
        let is_own = read.session.as_deref() == Some(session);
        read.forked_from.filter(|_| is_own).map(|fork| fork.session)
    })
}

pub(crate) fn prompts_in(transcript: &[u8]) -> Vec<String> {
    let mut prompts: Vec<String> = lines_with(transcript, "\"promptId\"")
        .filter_map(|line| WireLine::read(line.text))
        .filter(WireLine::is_prompt)
        .filter_map(|line| line.uuid)
        .collect();
    prompts.reverse();
    prompts
}

/// The message that a prompt became, as the transcript tells it. Hooks know prompts by another name
/// than everything else of Claude Code's.
///
/// `transcript`: its text, or only its end. A fork gives all messages that it copied the name of its own
/// first prompt, so the newest one counts.
#[must_use]
pub fn message_of(transcript: &[u8], prompt: &str) -> Option<String> {
    lines_with(transcript, prompt)
        .filter_map(|line| WireLine::read(line.text))
        .find(|line| line.is_prompt() && line.prompt.as_deref() == Some(prompt))?
        .uuid
}
