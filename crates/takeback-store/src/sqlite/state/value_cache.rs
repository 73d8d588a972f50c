//! A cache of the values last saved, so that the next save costs only the difference.

use super::tree::SavedValue;
use crate::state::ExecutionId;

/// The values last saved, for the most recently used executions.
#[derive(Debug, Default)]
pub(super) struct ValueCache {
    /// The most recently used one is last.
    kept: Vec<(ExecutionId, SavedValues)>,
}

/// The memory limit for all cached values together.
pub(super) const MOST_SAVED: usize = 64 << 20;

#[derive(Debug, Default)]
pub(super) struct SavedValues {
    pub(super) values: [SavedValue; 4],
    /// The sweep count when they were saved. The numbers of nodes are valid only while it is the
    /// same.
    pub(super) sweeps: Option<i64>,
    pub(super) footprint: usize,
}

impl ValueCache {
    pub(super) fn take(&mut self, execution: &ExecutionId) -> SavedValues {
        let at = self.kept.iter().position(|(id, _)| id == execution);
        at.map(|at| self.kept.remove(at).1).unwrap_or_default()
    }

    pub(super) fn put(&mut self, execution: &ExecutionId, values: SavedValues) {
        self.kept.retain(|(id, _)| id != execution);
        self.kept.push((execution.clone(), values));
        let mut whole: usize = self.kept.iter().map(|(_, values)| values.footprint).sum();
        while whole > MOST_SAVED {
            whole -= self.kept.remove(0).1.footprint;
        }
    }
}
