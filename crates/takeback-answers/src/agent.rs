//! Takeback's hooks in the settings of agents.

use serde::{Deserialize, Serialize};

use crate::Time;

/// `init` and `uninstall`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InitAnswer {
    /// Which settings were changed.
    pub scope: InitScope,
    /// Whether files were changed.
    pub done: bool,
    /// One entry per agent.
    pub agents: Vec<InitAgent>,
    /// What the user has to do.
    pub next: Vec<String>,
}

/// Which settings hold the hooks: the user's own, or the project's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "the JSON words are the variants; a comment on each would change the schema"
)]
pub enum InitScope {
    User,
    Project,
}

/// What happened to one agent's settings file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InitAgent {
    /// The agent's name.
    pub agent: String,
    /// The settings file.
    pub file: String,
    /// With `--dry-run`, what would be done.
    pub change: InitChange,
    /// The copy of the file before the change.
    pub backup: Option<String>,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// What to do about the error.
    pub hints: Vec<String>,
}

/// What happened to a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "the JSON words are the variants; a comment on each would change the schema"
)]
pub enum InitChange {
    None,
    Created,
    Changed,
    Removed,
    Failed,
}

/// `doctor`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct DoctorAnswer {
    /// False: something is broken, and the exit code is 1.
    pub ok: bool,
    /// The version of this program.
    pub version: String,
    /// Takeback's home.
    pub home: String,
    /// The size of the home.
    pub home_bytes: u64,
    /// One entry per supported agent.
    pub agents: Vec<AgentCheckup>,
    /// The home, the settings, and the store of this workspace.
    pub checks: Vec<Check>,
}

/// `none`: nothing to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "the JSON words are the variants; a comment on each would change the schema"
)]
pub enum Health {
    None,
    Good,
    Warning,
    Broken,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// How bad it is.
    pub health: Health,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub next: Vec<String>,
}

/// What was found about an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentCheckup {
    /// The agent's name.
    pub agent: String,
    /// The verdict on its hooks.
    #[serde(flatten)]
    pub check: Check,
    /// Its program, if it is on PATH.
    pub program: Option<String>,
    /// The program's version, if known.
    pub version: Option<String>,
    /// The agent's settings files that can hold Takeback's hooks.
    pub hooks: Vec<HookFile>,
    /// The newest session in which hooks ran.
    pub fired: Option<HookSession>,
    /// The newest session that the agent itself recorded.
    pub last_session: Option<LastSession>,
}

/// A settings file of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HookFile {
    /// Whose settings it holds.
    pub scope: InitScope,
    /// Its path.
    pub file: String,
    /// Whether Takeback's hooks are in it.
    pub state: HookFileState,
    /// How many of the hooks are in it.
    pub hooks: usize,
    /// How many hooks `takeback init` installs.
    pub wanted: usize,
    /// The hook events without a hook.
    pub missing: Vec<String>,
    /// When the hooks were installed, if known.
    pub since: Option<Time>,
    /// Why the file cannot be used, if so.
    pub error: Option<String>,
}

/// Whether Takeback's hooks are in a settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(
    missing_docs,
    reason = "the JSON words are the variants; a comment on each would change the schema"
)]
pub enum HookFileState {
    None,
    Partial,
    Complete,
    Broken,
    Refused,
    Unreadable,
}

/// A session in which hooks ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HookSession {
    /// The session.
    pub session: String,
    /// Its first workspace, if one could be opened.
    pub root: Option<String>,
    /// When its first hook ran.
    pub first_at: Time,
    /// When its last hook ran.
    pub last_at: Time,
    /// How many hooks ran.
    pub events: u64,
    /// How many of their events were recorded.
    pub recorded: u64,
    /// The last error.
    pub problem: Option<String>,
}

/// A session in the agent's own records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LastSession {
    /// The session.
    pub session: String,
    /// When it began.
    pub began: Time,
    /// When the agent last wrote to its record.
    pub last: Time,
}
