//! The values last saved of a few executions, in memory, so that saving the next costs what differs.

use super::tree::Kept;
use crate::state::ExecutionId;

/// The values last saved of a few executions.
#[derive(Debug, Default)]
pub(super) struct LastSaved {
    /// The one used last stands last.
    kept: Vec<(ExecutionId, KeptValues)>,
}

/// How much memory the values last saved may take together.
pub(super) const MOST_KEPT: usize = 64 << 20;

#[derive(Debug, Default)]
pub(super) struct KeptValues {
    pub(super) values: [Kept; 4],
    /// The numbers of nodes hold as long as there was no sweep since.
    pub(super) sweeps: Option<i64>,
    pub(super) footprint: usize,
}

impl LastSaved {
    pub(super) fn take(&mut self, execution: &ExecutionId) -> KeptValues {
        let at = self.kept.iter().position(|(id, _)| id == execution);
        at.map(|at| self.kept.remove(at).1).unwrap_or_default()
    }

    pub(super) fn put(&mut self, execution: &ExecutionId, values: KeptValues) {
        self.kept.retain(|(id, _)| id != execution);
        self.kept.push((execution.clone(), values));
        let mut whole: usize = self.kept.iter().map(|(_, values)| values.footprint).sum();
        while whole > MOST_KEPT {
            whole -= self.kept.remove(0).1.footprint;
        }
    }
}
