//! Answers of `record`, and of the JSON-RPC methods that no command has.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::{FilePath, Id, Note, Point};

/// `record`, for each line, and `event:record`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum RecordAnswer {
    /// The event is durable.
    Recorded(RecordedEvent),
    /// The event was not recorded.
    Refused(RefusedEvent),
}

/// An event that is durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RecordedEvent {
    /// Always true.
    #[cfg_attr(feature = "schema", schemars(extend("const" = true)))]
    pub ok: bool,
    /// The kind of event.
    pub event: String,
    /// The head of the log.
    pub seq: u64,
    /// The point that the event made, if any.
    pub point: Option<Id>,
    /// Paths whose contents were not captured.
    pub not_captured: Vec<Note>,
    /// The copies that were saved.
    #[serde(flatten)]
    pub copies: Option<FileCopies>,
    /// The checkpoint that was saved.
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
    /// Its id in `checkpoint:list`.
    pub id: Id,
    /// The file.
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
    /// Always false.
    #[cfg_attr(feature = "schema", schemars(extend("const" = false)))]
    pub ok: bool,
    /// Absent if the line is not an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Why.
    pub error: String,
}

/// `event:hook`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HookAnswer {
    /// Whether the event was recorded as it should be.
    pub ok: bool,
    /// What the log is missing, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// A line for the agent's model: which of its changes were taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// `checkpoint:list`: a file as it was when the answer to a message first named or changed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FileCheckpoint {
    /// Its id.
    pub id: Id,
    /// The session.
    pub session_id: String,
    /// The message.
    pub message_id: String,
    /// The file.
    #[serde(flatten)]
    pub path: FilePath,
    /// Its contents, if they are UTF-8.
    pub original_content: Option<String>,
    /// Bytes that are not UTF-8; `originalContent` is null then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub original_content_base64: Option<String>,
    /// Whether the file existed.
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
    /// The new point.
    pub point: Point,
}

/// `server:info`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerInfo {
    /// `takeback`.
    pub name: String,
    /// The server's version.
    pub version: String,
    /// Keys and methods may be added without a new number.
    pub protocol: u32,
    /// The server's process.
    pub pid: u32,
    /// Takeback's home.
    pub home: String,
    /// The folder in which the server was started.
    pub workspace: String,
    /// The user's own setting.
    pub allow_agent_rewind: bool,
    /// It was started with `--watch`.
    pub watch: bool,
    /// The names of all methods.
    pub methods: Vec<String>,
    /// What a client may send and leave unread.
    pub limits: ServerLimits,
}

/// Limits for clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerLimits {
    /// Bytes of a message.
    pub message_bytes: usize,
    /// Calls in a batch.
    pub batch_calls: usize,
    /// Bytes of answers that the client has not read.
    pub unread_bytes: usize,
    /// How long a client may read nothing, in milliseconds.
    pub stall_ms: u64,
    /// Concurrent clients.
    pub clients: usize,
}

/// The method `status`, which reads the store and not the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServerStatus {
    /// The root of the workspace.
    pub root: String,
    /// Whether recording is on.
    pub recording: bool,
    /// The head of the log.
    pub seq: u64,
    /// How many points there are.
    pub points: usize,
    /// How many sessions there are.
    pub sessions: usize,
    /// How many turns are open.
    pub open_turns: usize,
    /// How many calls are open.
    pub open_calls: usize,
    /// The newest.
    pub point: Option<Point>,
    /// `null` without `--watch`.
    pub watch: Option<WatchState>,
}

/// How many folders are watched, or why the next point scans everything: the other one is `null`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WatchState {
    /// How many folders are watched.
    pub folders: Option<usize>,
    /// Why the next point scans everything.
    pub why: Option<String>,
}
