//! What the writer knows about an execution without a query, as long as no other connection has
//! written.

use crate::id::SessionId;
use crate::state::{Attempt, BranchName, StepIndex};

/// The head of the current branch of an execution.
#[derive(Debug, Clone)]
pub(super) struct CachedHead {
    pub(super) execution: i64,
    pub(super) session: Option<SessionId>,
    pub(super) branch: BranchName,
    pub(super) line: i64,
    /// Its head: the row, the step and the attempt.
    pub(super) head: (i64, StepIndex, Attempt),
    /// Whether the head is the newest attempt of its step on the branch.
    pub(super) head_is_newest: bool,
    /// The highest step of the execution on any line.
    pub(super) last: StepIndex,
    /// Whether any step has a retry count.
    pub(super) has_retries: bool,
    /// The number of sweeps so far; a sweep may delete nodes that a cached value refers to.
    pub(super) sweeps: i64,
}
