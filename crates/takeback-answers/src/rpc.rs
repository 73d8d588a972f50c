//! Answers of `record`, and of the JSON-RPC methods that no command has.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::{FilePath, Id, Note, Point};

/// `record`, for each line, and `event:record`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum RecordAnswer {
    Recorded(RecordedEvent),
    Refused(RefusedEvent),
}

/// An event that is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RecordedEvent {
    #[cfg_attr(feature = "schema", schemars(extend("const" = true)))]
    pub ok: bool,
    pub event: String,
    pub seq: u64,
    pub point: Option<Id>,
    pub not_captured: Vec<Note>,
    #[serde(flatten)]
    pub copies: Option<FileCopies>,
    #[serde(flatten)]
    pub step: Option<RecordedStep>,
}

/// For `before_tool` only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileCopies {
    /// For `before_tool`: the copy of the first path, by its id in `checkpoint:list`; `null` if none
    /// was kept.
    #[cfg_attr(feature = "schema", schemars(extend("nullable" = true)))]
    pub checkpoint: Option<Id>,
    /// For `before_tool`: every copy that was kept.
    pub checkpoints: Vec<FileCopy>,
}

/// A copy of a file that was kept before a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileCopy {
    pub id: Id,
    #[serde(flatten)]
    pub path: FilePath,
}

/// For a `step` only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RecordedStep {
    /// For a `step`: its checkpoint.
    pub id: String,
    /// For a `step`.
    pub attempt: NonZeroU32,
}

/// An event that was not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RefusedEvent {
    #[cfg_attr(feature = "schema", schemars(extend("const" = false)))]
    pub ok: bool,
    /// Absent if the line is not an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    pub error: String,
}

/// `event:hook`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HookAnswer {
    pub ok: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `checkpoint:list`: a file as it was when the answer to a message first named or changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileCheckpoint {
    pub id: Id,
    pub session_id: String,
    pub message_id: String,
    #[serde(flatten)]
    pub path: FilePath,
    pub original_content: Option<String>,
    /// Bytes that are not UTF-8; `originalContent` is null then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_content_base64: Option<String>,
    pub file_existed: bool,
    /// Milliseconds since 1970, UTC.
    pub created_at: i64,
    /// Why there is no content although the file existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_captured: Option<String>,
}

/// `point:subscribe`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SubscribeAnswer {
    /// The root of the workspace.
    pub workspace: String,
}

/// The notification `point:created`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PointCreated {
    /// The root of the workspace.
    pub workspace: String,
    pub point: Point,
}

/// `server:info`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerInfo {
    pub name: String,
    pub version: String,
    /// Keys and methods may be added without a new number.
    pub protocol: u32,
    pub pid: u32,
    pub home: String,
    pub workspace: String,
    /// The user's own setting.
    pub allow_agent_rewind: bool,
    /// It was started with `--watch`.
    pub watch: bool,
    pub methods: Vec<String>,
    pub limits: ServerLimits,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerLimits {
    pub message_bytes: usize,
    pub batch_calls: usize,
    pub unread_bytes: usize,
    pub stall_ms: u64,
    pub clients: usize,
}

/// The method `status`, which reads the store and not the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    pub root: String,
    pub recording: bool,
    pub seq: u64,
    pub points: usize,
    pub sessions: usize,
    pub open_turns: usize,
    pub open_calls: usize,
    /// The newest.
    pub point: Option<Point>,
    /// `null` without `--watch`.
    pub watch: Option<WatchState>,
}

/// How many folders are watched, or why the next snapshot scans everything: the other one is `null`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WatchState {
    pub folders: Option<usize>,
    pub why: Option<String>,
}
