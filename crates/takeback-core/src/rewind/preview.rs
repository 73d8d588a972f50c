//! What a rewind would do: a plan with the facts that a reader of it needs.

use std::collections::BTreeSet;

use takeback_store::{Digest, PointId, RewindKind};

use super::plan::Plan;
use super::receipt::Receipt;
use super::scope::Coverage;
use super::state_move::{Files, Terms};
use super::windows::Window;

/// What a rewind would do, and the calls it would take back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    /// What would happen.
    pub plan: Plan,
    /// What kind of operation it is.
    pub kind: RewindKind,
    /// What it is called in the log, as of [`RewindRequest::title`](super::RewindRequest::title).
    pub title: Option<String>,
    /// Whose changes it takes back.
    pub coverage: Coverage,
    /// Changes that only happened while a call ran, by call: they may include the user's.
    pub windows: Vec<Window>,
    /// Contents known to be lost from the store: paths that need them stay as they are.
    pub lost: BTreeSet<Digest>,
}

impl Preview {
    /// The receipt that the rewind would have if everything went as planned.
    #[must_use]
    pub fn receipt(&self) -> Receipt {
        let receipt = Receipt::of_kind(&self.plan, self.kind, None);
        Receipt { point: restored_point(&self.plan, self.kind), ..receipt }
    }

    /// Whether it is all or nothing, and not all of it can be done.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        let terms = self.plan.state.as_ref().map(|state| state.terms);
        terms == Some(Terms::AllOrNothing) && !self.receipt().is_whole()
    }
}

/// The point whose files a rewind restores.
pub(super) fn restored_point(plan: &Plan, kind: RewindKind) -> Option<PointId> {
    let files = plan.state.as_ref().map(|state| state.files);
    match kind {
        RewindKind::Rewind { point } if files != Some(Files::Stay) => Some(point),
        _ => None,
    }
}
