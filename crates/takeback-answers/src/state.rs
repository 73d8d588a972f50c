//! Checkpoints of agents. Keys are the ones that agents save them with.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Id, Note, Time};

/// A checkpoint without its values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointRecord {
    /// Its id.
    pub id: String,
    /// Its execution.
    pub execution_id: String,
    /// The name of the step.
    pub step_name: String,
    /// The number of the step.
    pub step_index: u32,
    /// The first is 1.
    pub attempt: NonZeroU32,
    /// Its branch.
    pub branch: String,
    /// The checkpoint before it on the branch.
    pub parent: Option<String>,
    /// When it was made.
    pub timestamp: Time,
    /// How the step ended.
    pub status: CheckpointStatus,
    /// Why the step failed.
    pub error: Option<String>,
    /// The point with its files; `null`: none, or expired.
    pub point: Option<Id>,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "the JSON words are the variants; a comment on each would change the schema"
)]
pub enum CheckpointStatus {
    Success,
    Failed,
    Pending,
}

/// `state show` and `state:show`: a checkpoint with its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checkpoint {
    /// Everything but its values.
    #[serde(flatten)]
    pub record: CheckpointRecord,
    /// The agent's state.
    pub state: Value,
    /// The agent's context.
    pub context: Value,
    /// The agent's variables.
    pub variables: Value,
    /// The agent's metadata.
    pub metadata: Value,
}

/// `state save` and `state:save`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SaveAnswer {
    /// The saved checkpoint.
    #[serde(flatten)]
    pub record: CheckpointRecord,
    /// False if the same checkpoint was saved before.
    pub is_new: bool,
    /// Paths whose contents were not captured.
    pub not_captured: Vec<Note>,
}

/// `state list` and `state:list`: the executions, newest first; of one execution, its checkpoints by
/// step and attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum StateListAnswer {
    /// All executions.
    Executions(Vec<Execution>),
    /// The checkpoints of one execution.
    Checkpoints(Vec<CheckpointRecord>),
}

/// A run of an agent, as a series of checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Execution {
    /// Its id.
    pub execution_id: String,
    /// The current one first.
    pub branches: Vec<String>,
    /// Its session.
    pub session: Option<String>,
    /// How many checkpoints it has.
    pub checkpoints: u64,
    /// The newest checkpoint of the current branch.
    pub head: Option<CheckpointRecord>,
}

/// `state resume` and `state:resume`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ResumeAnswer {
    /// The checkpoint to continue from.
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
    /// The agent's name for it.
    pub key: String,
    /// The step it belongs to.
    pub step_index: Option<u32>,
    /// What the agent intended.
    pub intent: Value,
    /// When the intent was noted.
    pub intended_at: Time,
    /// `null` also if that is the receipt: `received_at` says which.
    pub receipt: Option<Value>,
    /// When the receipt was noted.
    pub received_at: Option<Time>,
}

/// `state effect`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectAnswer {
    /// The execution.
    pub execution_id: String,
    /// The effect.
    #[serde(flatten)]
    pub effect: Effect,
    /// False if it was recorded before; the answer is that record.
    pub is_new: bool,
}

/// `state effect --withdraw`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WithdrawAnswer {
    /// The execution.
    pub execution_id: String,
    /// The effect.
    pub key: String,
    /// Whether it was withdrawn.
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
    /// The execution.
    pub execution_id: String,
    /// The new branch.
    pub branch: String,
    /// The checkpoint that the branch starts from.
    pub from: String,
}

/// `state delete` and `state:delete`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateDeleteAnswer {
    /// The execution.
    pub execution_id: String,
    /// `null`: the whole execution.
    pub id: Option<String>,
    /// How many checkpoints it has.
    pub checkpoints: u64,
    /// False in a dry run.
    pub deleted: bool,
}

/// `state export`: everything that belongs to an execution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateExport {
    /// Everything before the checkpoints.
    #[serde(flatten)]
    pub head: StateExportHead,
    /// The checkpoints of all branches.
    pub checkpoints: Vec<Checkpoint>,
}

/// What precedes the checkpoints, which are written one at a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateExportHead {
    /// The execution.
    pub execution_id: String,
    /// Its session.
    pub session: Option<String>,
    /// The current one first.
    pub branches: Vec<Branch>,
    /// Its effects.
    pub effects: Vec<Effect>,
}

/// A branch of an execution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Branch {
    /// Its name.
    pub name: String,
    /// Its newest checkpoint.
    pub head: Option<String>,
}

/// `state export` to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StateExportAnswer {
    /// The execution.
    pub execution_id: String,
    /// The file that was written.
    pub file: String,
    /// How many checkpoints it has.
    pub checkpoints: usize,
}
