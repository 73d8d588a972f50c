//! Checkpoints of agents. Keys are the ones that agents save them with.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Id, Note, Time};

/// A checkpoint without its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointRecord {
    pub id: String,
    pub execution_id: String,
    pub step_name: String,
    pub step_index: u32,
    /// The first is 1.
    pub attempt: NonZeroU32,
    pub branch: String,
    pub parent: Option<String>,
    pub timestamp: Time,
    pub status: CheckpointStatus,
    pub error: Option<String>,
    /// The point with its files; `null`: none, or expired.
    pub point: Option<Id>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CheckpointStatus {
    Success,
    Failed,
    Pending,
}

/// `state show` and `state:show`: a checkpoint with its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpoint {
    #[serde(flatten)]
    pub record: CheckpointRecord,
    pub state: Value,
    pub context: Value,
    pub variables: Value,
    pub metadata: Value,
}

/// `state save` and `state:save`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SaveAnswer {
    #[serde(flatten)]
    pub record: CheckpointRecord,
    /// False if the same checkpoint was saved before.
    pub is_new: bool,
    pub not_captured: Vec<Note>,
}

/// `state list` and `state:list`: the executions, newest first; of one execution, its checkpoints by
/// step and attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum StateListAnswer {
    Executions(Vec<Execution>),
    Checkpoints(Vec<CheckpointRecord>),
}

/// A run of an agent, as a series of checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Execution {
    pub execution_id: String,
    /// The current one first.
    pub branches: Vec<String>,
    pub session: Option<String>,
    pub checkpoints: u64,
    /// The newest checkpoint of the current branch.
    pub head: Option<CheckpointRecord>,
}

/// `state resume` and `state:resume`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumeAnswer {
    #[serde(flatten)]
    pub checkpoint: Checkpoint,
    /// Intended, with no receipt: they may or may not have happened.
    pub ambiguous_effects: Vec<Effect>,
    /// Effects of later steps that have a receipt.
    pub happened_effects: Vec<Effect>,
}

/// What an agent does to the world and cannot take back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Effect {
    pub key: String,
    pub step_index: Option<u32>,
    pub intent: Value,
    pub intended_at: Time,
    /// `null` also if that is the receipt: `received_at` says which.
    pub receipt: Option<Value>,
    pub received_at: Option<Time>,
}

/// `state effect`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectAnswer {
    pub execution_id: String,
    #[serde(flatten)]
    pub effect: Effect,
    /// False if it was recorded before; the answer is that record.
    pub is_new: bool,
}

/// `state effect --withdraw`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WithdrawAnswer {
    pub execution_id: String,
    pub key: String,
    pub withdrawn: bool,
}

/// `state diff`.
pub type StateDiffAnswer = Vec<StateDifference>;

/// A value that differs between two checkpoints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateDifference {
    /// A JSON pointer.
    pub path: String,
    /// Absent: only the second checkpoint has it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub before: Option<Value>,
    /// Absent: only the first checkpoint has it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub after: Option<Value>,
}

/// `null` is a value that is there.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// `state fork` and `state:fork`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateForkAnswer {
    pub execution_id: String,
    pub branch: String,
    /// The checkpoint that the branch starts from.
    pub from: String,
}

/// `state delete` and `state:delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateDeleteAnswer {
    pub execution_id: String,
    /// `null`: the whole execution.
    pub id: Option<String>,
    pub checkpoints: u64,
    pub deleted: bool,
}

/// `state export`: everything that belongs to an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateExport {
    #[serde(flatten)]
    pub head: StateExportHead,
    pub checkpoints: Vec<Checkpoint>,
}

/// What precedes the checkpoints, which are written one at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateExportHead {
    pub execution_id: String,
    pub session: Option<String>,
    /// The current one first.
    pub branches: Vec<Branch>,
    pub effects: Vec<Effect>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Branch {
    pub name: String,
    /// Its newest checkpoint.
    pub head: Option<String>,
}

/// `state export` to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateExportAnswer {
    pub execution_id: String,
    pub file: String,
    pub checkpoints: usize,
}
