//! An agent's checkpoints and effects as JSON answers.

use std::collections::HashSet;

use takeback_core::Workspace;
use takeback_store::PointId;
use takeback_store::state::{self, CheckpointKey, Record, Status};

use crate::answers::{self, Checkpoint, CheckpointRecord, CheckpointStatus, Effect};
use crate::error::CommandError;

/// The points that exist. Checkpoints outlive the points they name.
pub(super) struct KnownPoints(HashSet<PointId>);

impl KnownPoints {
    pub(super) fn of(workspace: &Workspace) -> Result<Self, CommandError> {
        Ok(Self(workspace.store.points()?.iter().map(|point| point.id).collect()))
    }

    /// The point of a checkpoint, if it still exists.
    pub(super) fn point_of(&self, record: &Record) -> Option<PointId> {
        record.point.filter(|point| self.0.contains(point))
    }

    pub(super) fn record(&self, record: &Record) -> CheckpointRecord {
        CheckpointRecord {
            point: self.point_of(record).map(answers::Id::new),
            ..checkpoint_record(record)
        }
    }

    pub(super) fn checkpoint(&self, checkpoint: state::Checkpoint) -> Checkpoint {
        let values = checkpoint.values;
        Checkpoint {
            record: self.record(&checkpoint.record),
            state: values.state,
            context: values.context,
            variables: values.variables,
            metadata: values.metadata,
        }
    }
}

/// With its point, even if that no longer exists.
pub(super) fn checkpoint_record(record: &Record) -> CheckpointRecord {
    CheckpointRecord {
        id: record.id().to_string(),
        execution_id: record.key.execution.to_string(),
        step_name: record.step_name.clone(),
        step_index: record.key.step.0,
        attempt: record.key.attempt.0,
        branch: record.branch.to_string(),
        parent: parent_of(record),
        timestamp: answers::time(record.time),
        status: match record.status {
            Status::Success => CheckpointStatus::Success,
            Status::Failed => CheckpointStatus::Failed,
            Status::Pending => CheckpointStatus::Pending,
        },
        error: record.error.clone(),
        point: record.point.map(answers::Id::new),
    }
}

pub(super) fn parent_of(record: &Record) -> Option<String> {
    let execution = record.key.execution.clone();
    record.parent.map(|(step, attempt)| CheckpointKey { execution, step, attempt }.to_string())
}

pub(super) fn effect(effect: &state::Effect) -> Effect {
    let receipt = effect.receipt.as_ref();
    Effect {
        key: effect.key.clone(),
        step_index: effect.step.map(|step| step.0),
        intent: effect.intent.clone(),
        intended_at: answers::time(effect.intended_at),
        receipt: receipt.map(|(receipt, _)| receipt.clone()),
        received_at: receipt.map(|(_, time)| answers::time(*time)),
    }
}
