//! The lines of the program's transcripts. No other file knows them.
//!
//! Two formats of its file history are read. Up to 2.1.199 a file that is edited for the first time
//! is told by the whole snapshot again (`isSnapshotUpdate`), later by a `file-history-delta`. Types
//! and fields that are not needed are passed over.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// What is read of a line; the rest of the types is [`WireLine::Other`].
#[derive(Debug)]
pub(super) enum WireLine {
    User(Box<WireUser>),
    Assistant(WireAssistant),
    Snapshot(WireSnapshotLine),
    Delta(WireDelta),
    Other,
}

#[derive(Deserialize)]
struct WireType {
    #[serde(rename = "type")]
    kind: String,
}

/// `None`: it is damaged.
pub(super) fn line(bytes: &[u8]) -> Option<WireLine> {
    // Most bytes are in lines that nobody asks for; those are only skimmed.
    let WireType { kind } = serde_json::from_slice(bytes).ok()?;
    match kind.as_str() {
        "user" => serde_json::from_slice(bytes).ok().map(WireLine::User),
        "assistant" => serde_json::from_slice(bytes).ok().map(WireLine::Assistant),
        "file-history-snapshot" => serde_json::from_slice(bytes).ok().map(WireLine::Snapshot),
        "file-history-delta" => serde_json::from_slice(bytes).ok().map(WireLine::Delta),
        _ => Some(WireLine::Other),
    }
}

/// Where a line stands in the conversation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireLink {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) uuid: Option<String>,
    pub(super) parent_uuid: Option<String>,
    pub(super) prompt_id: Option<String>,
    #[serde(default)]
    pub(super) is_meta: bool,
    #[serde(default)]
    pub(super) is_sidechain: bool,
    tool_use_result: Option<IgnoredAny>,
}

impl WireLink {
    /// Whether somebody said it to the program.
    pub(super) fn is_prompt(&self) -> bool {
        self.kind == "user" && !self.is_meta && self.tool_use_result.is_none()
    }
}

/// `None`: it is damaged.
pub(super) fn link(bytes: &[u8]) -> Option<WireLink> {
    serde_json::from_slice(bytes).ok()
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireUser {
    pub(super) uuid: String,
    pub(super) prompt_id: Option<String>,
    pub(super) timestamp: String,
    pub(super) cwd: Option<String>,
    /// Said to the model, and by nobody.
    #[serde(default)]
    pub(super) is_meta: bool,
    /// Of a subagent.
    #[serde(default)]
    pub(super) is_sidechain: bool,
    #[serde(default)]
    pub(super) is_compact_summary: bool,
    pub(super) message: WireMessage,
    pub(super) tool_use_result: Option<WireToolResult>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireAssistant {
    pub(super) timestamp: String,
    pub(super) message: WireMessage,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireMessage {
    pub(super) content: WireContent,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum WireContent {
    Text(String),
    Blocks(Vec<WireBlock>),
}

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum WireBlock {
    Text {
        text: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: WireInput,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(default)]
        is_error: Option<bool>,
    },
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum WireInput {
    Named {
        #[serde(alias = "notebook_path")]
        file_path: String,
    },
    Other(IgnoredAny),
}

/// What a tool answered, as the program keeps it for itself.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum WireToolResult {
    Edit(WireEdit),
    Write(WireWrite),
    Other(IgnoredAny),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireEdit {
    pub(super) file_path: String,
    pub(super) old_string: String,
    pub(super) new_string: String,
    /// `null` where the file is large.
    pub(super) original_file: Option<String>,
    #[serde(default)]
    pub(super) replace_all: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireWrite {
    pub(super) file_path: String,
    pub(super) content: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct WireSnapshotLine {
    pub(super) snapshot: WireSnapshot,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireSnapshot {
    /// The prompt, also where the line is about a later message.
    pub(super) message_id: String,
    pub(super) tracked_file_backups: BTreeMap<String, WireBackup>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireDelta {
    pub(super) snapshot_message_id: String,
    pub(super) tracking_path: String,
    pub(super) backup: WireBackup,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WireBackup {
    /// `null`: there was no file.
    pub(super) backup_file_name: Option<String>,
}
