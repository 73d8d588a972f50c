//! The store of a workspace, the home with all of them, and settings.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{FilePath, ForkOrigin, Id, Time, Unreadable};

/// Every command that fails, on standard error; `code` is the exit code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ErrorAnswer {
    /// What is wrong.
    pub error: String,
    /// What to do next.
    pub hints: Vec<String>,
    /// The exit code.
    pub code: u8,
}

/// `status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StatusAnswer {
    /// The root of the workspace.
    pub root: String,
    /// Where it was forked from; `null`: it is not a fork.
    pub origin: Option<ForkOrigin>,
    /// The folder of its store.
    pub store: String,
    /// The size of the store.
    pub store_bytes: u64,
    /// Whether recording is on.
    pub recording: bool,
    /// Nothing can be recorded.
    pub not_writable: Option<WriteFailure>,
    /// The store that the workspace had before was deleted; reported until `doctor --acknowledge`.
    pub history_gone: Option<LostHistory>,
    /// An older Takeback, run by a hook within the last week, recorded nothing in this newer store.
    pub too_old: Option<VersionMismatch>,
    /// Whether another command has the workspace locked.
    pub locked: bool,
    /// Files that did not fit in the time limit are being read in the background.
    #[serde(rename = "goingOn")]
    pub background_scan: Option<BackgroundScan>,
    /// Files that are covered; `null` if the tree was not scanned.
    pub files: Option<u64>,
    /// Folders that are covered; `null` if the tree was not scanned.
    pub folders: Option<u64>,
    /// How many points there are.
    pub points: usize,
    /// The head of the log.
    pub seq: u64,
    /// How many sessions there are.
    pub sessions: usize,
    /// How many turns are open.
    pub open_turns: usize,
    /// How many calls are open.
    pub open_calls: usize,
    /// The setting `pointsPerSession`.
    pub points_per_session: u64,
    /// The setting `archiveDays`.
    pub archive_days: u64,
    /// The setting `maxStoreBytes`.
    pub max_store_bytes: u64,
    /// By how much the store exceeds its limit, if it does.
    pub over: Option<OverLimit>,
    /// Commits that are known to have existed and are missing.
    pub losses: Vec<String>,
    /// Ignored files that are recorded.
    pub precious: PreciousFiles,
    /// The ignored folders they are in.
    pub ignored_folders: Vec<IgnoredFolder>,
    /// What could not be read; `null` if the tree was not scanned.
    pub unreadable: Option<Vec<Unreadable>>,
    /// What is not recorded; `null` if the tree was not scanned.
    pub not_covered: Option<Vec<CoverageGap>>,
}

/// A folder that cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WriteFailure {
    /// The folder.
    pub path: String,
    /// Why not.
    pub error: String,
}

/// A history that was lost with its store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LostHistory {
    /// The root of the workspace.
    pub root: String,
    /// The folder of the lost store.
    pub store: String,
    /// When the lost store was made.
    pub made_at: Time,
    /// When the store that replaced it was made.
    pub replaced_at: Option<Time>,
}

/// A Takeback that was too old for a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct VersionMismatch {
    /// When it ran.
    pub at: Time,
    /// Its version.
    pub version: String,
    /// Its path, if known.
    pub program: Option<String>,
    /// The session that it could not record.
    pub session: String,
}

/// A scan in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BackgroundScan {
    /// Bytes read so far.
    pub read_bytes: u64,
    /// 0: not known.
    pub of_bytes: u64,
}

/// The store is larger than `maxStoreBytes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct OverLimit {
    /// The limit.
    pub limit: u64,
    /// The size of the store.
    pub bytes: u64,
    /// For the files as they are now.
    pub present_bytes: u64,
    /// For points with a label or a pin.
    pub marked_bytes: u64,
}

/// Ignored files that are recorded anyway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct PreciousFiles {
    /// How many there are.
    pub files: usize,
    /// Their size.
    pub bytes: u64,
    /// The setting `preciousFileMaxBytes`.
    pub file_max: u64,
    /// The setting `preciousTotalBytes`.
    pub total_max: u64,
}

/// An ignored folder whose small files are covered, not counting folders listed separately.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct IgnoredFolder {
    /// The folder.
    #[serde(flatten)]
    pub path: FilePath,
    /// How many files in it are covered.
    pub files: usize,
    /// Their size.
    pub bytes: u64,
    /// Names in it that are not covered.
    pub not_covered: usize,
}

/// A file or folder that is not covered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CoverageGap {
    /// The path.
    #[serde(flatten)]
    pub path: FilePath,
    /// Why not.
    pub reason: CoverageGapReason,
    /// Its size, if it was measured.
    pub size: Option<u64>,
    /// `size` is a lower bound.
    pub at_least: bool,
}

/// Why a path is not covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "the JSON words are the variants; a comment on each would change the schema"
)]
pub enum CoverageGapReason {
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
    /// How many points there are.
    pub points: u64,
    /// The newest point.
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
    /// Its id.
    pub id: Id,
    /// Its label.
    pub label: Option<String>,
    /// Its first 200 characters.
    pub description: String,
    /// When it was made.
    pub created_at: Time,
}

/// A session with an open turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkingSession {
    /// The session.
    pub session: String,
    /// The agent's name, if known.
    pub agent: Option<String>,
}

/// `du`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DuAnswer {
    /// The root of the workspace.
    pub root: String,
    /// The size of the store.
    pub store_bytes: u64,
    /// The contents before compression.
    pub content_bytes: u64,
    /// Contents that are in use, compressed.
    pub kept_bytes: u64,
    /// Contents that are no longer in use.
    pub unused_bytes: u64,
    /// The database.
    pub database_bytes: u64,
    /// The index.
    pub index_bytes: u64,
    /// The inbox and locks.
    pub journal_bytes: u64,
    /// The setting `maxStoreBytes`.
    pub max_store_bytes: u64,
    /// By how much the store exceeds its limit, if it does.
    pub over: Option<OverLimit>,
    /// The size of all stores.
    pub home_bytes: u64,
    /// The setting `maxHomeBytes`.
    pub max_home_bytes: u64,
    /// How many distinct contents there are.
    pub contents: u64,
    /// How many changes there are.
    pub changes: u64,
    /// The paths with the most bytes.
    pub paths: Vec<DuPath>,
}

/// A path and what it uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DuPath {
    /// The path.
    #[serde(flatten)]
    pub path: FilePath,
    /// How many versions of it are stored.
    pub versions: usize,
    /// Their size before compression.
    pub bytes: u64,
}

/// `cleanup`, `session delete` and `session:delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CleanupAnswer {
    /// How many points were deleted.
    pub points: usize,
    /// The deleted sessions.
    pub sessions: Vec<String>,
    /// How many changes were removed from the log.
    pub changes: usize,
    /// The disk space that was reclaimed.
    pub freed_bytes: u64,
    /// By how much the store still exceeds its limit, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<OverLimit>,
    /// Only of `cleanup`, if all stores together exceeded `maxHomeBytes`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<HomeCleanup>,
}

/// What was done to keep the home within its limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HomeCleanup {
    /// The setting `maxHomeBytes`.
    pub limit: u64,
    /// The size of all stores afterwards.
    pub bytes: u64,
    /// In stores of folders that no longer exist.
    pub gone_bytes: u64,
    /// The workspaces that lost points.
    pub workspaces: Vec<HomeCleanupWorkspace>,
}

/// A workspace that lost points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HomeCleanupWorkspace {
    /// Its root.
    pub root: String,
    /// How many points it lost.
    pub points: usize,
    /// The disk space that was reclaimed.
    pub freed_bytes: u64,
}

/// `cleanup --dry-run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CleanupPreview {
    /// The points that would be deleted.
    pub points: Vec<Id>,
    /// The sessions that would be deleted.
    pub sessions: Vec<String>,
}

/// `verify` and `checkpoint:verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct VerifyAnswer {
    /// Whether there is no damage.
    pub ok: bool,
    /// What is damaged.
    pub damage: Vec<String>,
}

/// `serve`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ServeAnswer {
    /// Where the server listens.
    pub socket: String,
    /// With `--ensure` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<bool>,
}

/// `config`; with a key, one [`Setting`].
pub type ConfigAnswer = Vec<Setting>;

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Setting {
    /// Its name.
    pub key: String,
    /// Its value.
    pub value: SettingValue,
    /// Where it was set.
    pub origin: String,
    /// What the project's settings asked for and did not get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<RefusedSetting>,
}

/// `config set` and `config unset`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigSetAnswer {
    /// The settings file.
    pub file: String,
    /// The value in the file; null after `config unset`.
    pub value: Option<SettingValue>,
    /// The setting as it is now: the environment or another file may override this one.
    pub setting: Setting,
}

/// `config path` and `config edit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigFileAnswer {
    /// The settings file.
    pub file: String,
    /// Whether it exists.
    pub exists: bool,
}

/// The value of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
#[expect(
    missing_docs,
    reason = "the JSON words are the variants; a comment on each would change the schema"
)]
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
    /// The refused value.
    pub value: Value,
    /// The file that has it.
    pub origin: String,
    /// Why it was refused.
    pub why: String,
}

/// `workspaces`.
pub type WorkspacesAnswer = Vec<WorkspaceAnswer>;

/// A workspace and its store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceAnswer {
    /// The root, if it can be read.
    pub root: Option<String>,
    /// The folder of its store.
    pub store: String,
    /// Whether the folder exists.
    pub exists: bool,
    /// The size of the store.
    pub bytes: u64,
    /// `null`: the store cannot be read.
    pub points: Option<usize>,
    /// When something was last recorded.
    pub last_activity: Option<Time>,
    /// Where it was forked from; `null`: it is not a fork.
    pub origin: Option<ForkOrigin>,
}

/// `forget`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ForgetAnswer {
    /// The workspace whose history was deleted.
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
    /// The path that was removed.
    #[serde(flatten)]
    pub path: FilePath,
    /// False in a dry run.
    pub purged: bool,
    /// How many paths that are.
    pub paths: usize,
    /// Contents that were removed from the store.
    pub versions: usize,
    /// Their size.
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
    /// The old root.
    pub from: String,
    /// The new root.
    pub to: String,
    /// The folder of the store.
    pub store: String,
    /// False in a dry run.
    pub relocated: bool,
}
