//! Takeback's hooks in the settings of agents.

use serde::{Deserialize, Serialize};

use crate::Time;

/// `init` and `uninstall`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InitAnswer {
    pub scope: InitScope,
    /// Whether files were changed.
    pub done: bool,
    pub agents: Vec<InitAgent>,
    /// What the user has to do.
    pub next: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum InitScope {
    User,
    Project,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct InitAgent {
    pub agent: String,
    pub file: String,
    /// With `--dry-run`, what would be done.
    pub change: InitChange,
    /// The copy of the file before the change.
    pub backup: Option<String>,
    pub error: Option<String>,
    pub hints: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
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
    pub version: String,
    pub home: String,
    pub home_bytes: u64,
    pub agents: Vec<AgentCheckup>,
    /// The home, the settings, and the store of this workspace.
    pub checks: Vec<Check>,
}

/// `none`: nothing to report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Health {
    None,
    Good,
    Warning,
    Broken,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Check {
    pub health: Health,
    pub what: String,
    /// What to do about it.
    pub next: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentCheckup {
    pub agent: String,
    #[serde(flatten)]
    pub check: Check,
    pub program: Option<String>,
    pub version: Option<String>,
    /// The agent's settings files that can hold Takeback's hooks.
    pub hooks: Vec<HookFile>,
    /// The newest session in which hooks ran.
    pub fired: Option<HookSession>,
    /// The newest session that the agent itself recorded.
    pub last_session: Option<LastSession>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HookFile {
    pub scope: InitScope,
    pub file: String,
    pub state: HookFileState,
    pub hooks: usize,
    pub wanted: usize,
    pub missing: Vec<String>,
    pub since: Option<Time>,
    pub error: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum HookFileState {
    None,
    Partial,
    Complete,
    Broken,
    Refused,
    Unreadable,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct HookSession {
    pub session: String,
    pub root: Option<String>,
    pub first_at: Time,
    pub last_at: Time,
    pub events: u64,
    pub recorded: u64,
    /// The last error.
    pub problem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LastSession {
    pub session: String,
    pub began: Time,
    pub last: Time,
}
