//! The store of a workspace, the home with all of them, and settings.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{FilePath, Id, Time, Unreadable};

/// Every command that fails, on standard error; `code` is the exit code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ErrorAnswer {
    pub error: String,
    pub hints: Vec<String>,
    pub code: u8,
}

/// `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatusAnswer {
    pub root: String,
    pub store: String,
    pub store_bytes: u64,
    pub recording: bool,
    /// Nothing can be recorded.
    pub not_writable: Option<NotWritable>,
    /// The store that the workspace had before was deleted; reported until `doctor --acknowledge`.
    pub history_gone: Option<HistoryGone>,
    /// An older Takeback, run by a hook within the last week, recorded nothing in this newer store.
    pub too_old: Option<TooOld>,
    pub locked: bool,
    /// Files that did not fit in the time limit are being read in the background.
    #[serde(rename = "goingOn")]
    pub background_scan: Option<BackgroundScan>,
    pub files: Option<u64>,
    pub folders: Option<u64>,
    pub points: usize,
    pub seq: u64,
    pub sessions: usize,
    pub open_turns: usize,
    pub open_calls: usize,
    pub points_per_session: u64,
    pub archive_days: u64,
    pub max_store_bytes: u64,
    pub over: Option<OverLimit>,
    /// Commits that are known to have existed and are missing.
    pub losses: Vec<String>,
    pub precious: PreciousFiles,
    pub ignored_folders: Vec<IgnoredFolder>,
    pub unreadable: Option<Vec<Unreadable>>,
    pub not_covered: Option<Vec<NotCovered>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NotWritable {
    pub path: String,
    pub error: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HistoryGone {
    pub root: String,
    pub store: String,
    pub made_at: Time,
    /// When the store that replaced it was made.
    pub replaced_at: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TooOld {
    pub at: Time,
    pub version: String,
    pub program: Option<String>,
    pub session: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BackgroundScan {
    pub read_bytes: u64,
    /// 0: not known.
    pub of_bytes: u64,
}

/// The store is larger than `maxStoreBytes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OverLimit {
    pub limit: u64,
    pub bytes: u64,
    /// For the files as they are now.
    pub present_bytes: u64,
    /// For points with a label or a pin.
    pub marked_bytes: u64,
}

/// Ignored files that are covered all the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PreciousFiles {
    pub files: usize,
    pub bytes: u64,
    pub file_max: u64,
    pub total_max: u64,
}

/// An ignored folder whose small files are covered, not counting folders listed separately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct IgnoredFolder {
    #[serde(flatten)]
    pub path: FilePath,
    pub files: usize,
    pub bytes: u64,
    /// Names in it that are not covered.
    pub not_covered: usize,
}

/// A file or folder that is not covered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NotCovered {
    #[serde(flatten)]
    pub path: FilePath,
    pub reason: NotCoveredReason,
    pub size: Option<u64>,
    /// `size` is a lower bound.
    pub at_least: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum NotCoveredReason {
    Derived,
    IgnoredFolder,
    IgnoredFile,
    OverBudget,
    TooMany,
    Reserved,
    Excluded,
    NestedWorkspace,
    OtherFileSystem,
    Special,
    Unreachable,
}

/// `status --line`; `null` if there is no store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatusLineAnswer {
    pub points: u64,
    pub last_point: Option<LastPoint>,
    /// Sessions with an open turn.
    pub at_work: Vec<WorkingSession>,
    /// A rewind is running, or was interrupted.
    pub open_rewind: bool,
}

/// The newest point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LastPoint {
    pub id: Id,
    pub label: Option<String>,
    /// Its first 200 characters.
    pub description: String,
    pub created_at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkingSession {
    pub session: String,
    pub agent: Option<String>,
}

/// `du`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DuAnswer {
    pub root: String,
    pub store_bytes: u64,
    /// The contents before compression.
    pub content_bytes: u64,
    pub kept_bytes: u64,
    pub unused_bytes: u64,
    pub database_bytes: u64,
    pub index_bytes: u64,
    pub journal_bytes: u64,
    pub max_store_bytes: u64,
    pub over: Option<OverLimit>,
    pub home_bytes: u64,
    pub max_home_bytes: u64,
    pub contents: u64,
    pub changes: u64,
    /// The paths with the most bytes.
    pub paths: Vec<DuPath>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DuPath {
    #[serde(flatten)]
    pub path: FilePath,
    pub versions: usize,
    pub bytes: u64,
}

/// `cleanup`, `session delete` and `session:delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CleanupAnswer {
    pub points: usize,
    pub sessions: Vec<String>,
    pub changes: usize,
    pub freed_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<OverLimit>,
    /// Only of `cleanup`, if all stores together exceeded `maxHomeBytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<HomeCleanup>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HomeCleanup {
    pub limit: u64,
    pub bytes: u64,
    /// In stores of folders that no longer exist.
    pub gone_bytes: u64,
    pub workspaces: Vec<HomeCleanupWorkspace>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HomeCleanupWorkspace {
    pub root: String,
    pub points: usize,
    pub freed_bytes: u64,
}

/// `cleanup --dry-run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CleanupPreview {
    pub points: Vec<Id>,
    pub sessions: Vec<String>,
}

/// `verify` and `checkpoint:verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct VerifyAnswer {
    pub ok: bool,
    pub damage: Vec<String>,
}

/// `serve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServeAnswer {
    pub socket: String,
    /// With `--ensure` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<bool>,
}

/// `config`; with a key, one [`Setting`].
pub type ConfigAnswer = Vec<Setting>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Setting {
    pub key: String,
    pub value: SettingValue,
    pub origin: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedSetting>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum SettingValue {
    Flag(bool),
    Number(u64),
    Text(String),
    Names(Vec<String>),
}

/// What the project's own settings asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RefusedSetting {
    pub value: Value,
    pub origin: String,
    pub why: String,
}

/// `workspaces`.
pub type WorkspacesAnswer = Vec<WorkspaceAnswer>;

/// A workspace and its store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceAnswer {
    pub root: Option<String>,
    pub store: String,
    /// Whether the folder exists.
    pub exists: bool,
    pub bytes: u64,
    /// `null`: the store cannot be read.
    pub points: Option<usize>,
    pub last_activity: Option<Time>,
}

/// `forget`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForgetAnswer {
    #[serde(flatten)]
    pub workspace: WorkspaceAnswer,
    /// False in a dry run.
    pub forgotten: bool,
}

/// `purge`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PurgeAnswer {
    #[serde(flatten)]
    pub path: FilePath,
    /// False in a dry run.
    pub purged: bool,
    pub paths: usize,
    /// Contents that were removed from the store.
    pub versions: usize,
    pub bytes: u64,
    /// Contents that stay because other paths have them too.
    pub shared: usize,
    /// Points that report it as missing from now on.
    pub points: usize,
    /// It is on disk, and will be recorded again if it is still covered.
    pub on_disk: bool,
}

/// `relocate`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RelocateAnswer {
    pub from: String,
    pub to: String,
    pub store: String,
    /// False in a dry run.
    pub relocated: bool,
}
