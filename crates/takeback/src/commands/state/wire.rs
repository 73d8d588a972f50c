//! Checkpoints and effects as they stand in JSON answers: with the names that agents hand them over
//! with.

use std::collections::HashSet;

use serde::Serialize;
use serde_json::Value;
use takeback_core::Workspace;
use takeback_store::state::{Attempt, Checkpoint, CheckpointKey, Effect, Record, StepIndex};
use takeback_store::{PointId, Timestamp};

use crate::error::CommandError;
use crate::time::iso;

/// The points that there are. Checkpoints stay longer than the points they name.
pub(super) struct KeptPoints(HashSet<PointId>);

impl KeptPoints {
    pub(super) fn of(workspace: &Workspace) -> Result<Self, CommandError> {
        Ok(Self(workspace.store.points()?.iter().map(|point| point.id).collect()))
    }

    /// The point of a checkpoint, if one can go back to it.
    pub(super) fn point_of(&self, record: &Record) -> Option<PointId> {
        record.point.filter(|point| self.0.contains(point))
    }

    pub(super) fn record<'a>(&self, record: &'a Record) -> WireRecord<'a> {
        WireRecord { point: self.point_of(record), ..record.into() }
    }

    pub(super) fn checkpoint<'a>(&self, checkpoint: &'a Checkpoint) -> WireCheckpoint<'a> {
        let values = &checkpoint.values;
        WireCheckpoint {
            record: self.record(&checkpoint.record),
            state: &values.state,
            context: &values.context,
            variables: &values.variables,
            metadata: &values.metadata,
        }
    }
}

/// A checkpoint without its values.
#[derive(Debug, Serialize)]
pub(super) struct WireRecord<'a> {
    id: String,
    execution_id: &'a str,
    step_name: &'a str,
    step_index: StepIndex,
    attempt: Attempt,
    branch: &'a str,
    parent: Option<String>,
    timestamp: String,
    status: &'static str,
    error: Option<&'a str>,
    point: Option<PointId>,
}

/// With its point, whether that is kept or not.
impl<'a> From<&'a Record> for WireRecord<'a> {
    fn from(record: &'a Record) -> Self {
        Self {
            id: record.id().to_string(),
            execution_id: record.key.execution.as_str(),
            step_name: &record.step_name,
            step_index: record.key.step,
            attempt: record.key.attempt,
            branch: record.branch.as_str(),
            parent: parent_of(record),
            timestamp: iso(record.time),
            status: record.status.name(),
            error: record.error.as_deref(),
            point: record.point,
        }
    }
}

pub(super) fn parent_of(record: &Record) -> Option<String> {
    let execution = record.key.execution.clone();
    record.parent.map(|(step, attempt)| CheckpointKey { execution, step, attempt }.to_string())
}

/// A whole checkpoint.
#[derive(Debug, Serialize)]
pub(super) struct WireCheckpoint<'a> {
    #[serde(flatten)]
    record: WireRecord<'a>,
    state: &'a Value,
    context: &'a Value,
    variables: &'a Value,
    metadata: &'a Value,
}

#[derive(Debug, Serialize)]
pub(super) struct WireEffect<'a> {
    key: &'a str,
    step_index: Option<StepIndex>,
    intent: &'a Value,
    intended_at: String,
    /// `null` also if that is what came of it: `received_at` tells.
    receipt: Option<&'a Value>,
    received_at: Option<String>,
}

impl<'a> From<&'a Effect> for WireEffect<'a> {
    fn from(effect: &'a Effect) -> Self {
        let receipt = effect.receipt.as_ref();
        Self {
            key: &effect.key,
            step_index: effect.step,
            intent: &effect.intent,
            intended_at: iso(effect.intended_at),
            receipt: receipt.map(|(receipt, _)| receipt),
            received_at: receipt.map(|(_, time): &(Value, Timestamp)| iso(*time)),
        }
    }
}
