//! What the writer knows of an execution without asking, because nobody else wrote since.

use crate::id::SessionId;
use crate::state::{Attempt, BranchName, StepIndex};

/// Where the current branch of an execution stands.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) execution: i64,
    pub(super) session: Option<SessionId>,
    pub(super) branch: BranchName,
    pub(super) line: i64,
    /// Its head: the row, the step and the attempt.
    pub(super) head: (i64, StepIndex, Attempt),
    /// Whether the head is the newest attempt of its step on the branch.
    pub(super) head_is_newest: bool,
    /// No step of the execution, on whatever line, comes after this one.
    pub(super) last: StepIndex,
    /// Whether a retry of some step is counted.
    pub(super) has_retries: bool,
    /// How often nodes have been swept.
    pub(super) sweeps: i64,
}
