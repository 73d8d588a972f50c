//! The result of recording: an outcome, or why the event could not be recorded.

use takeback_store::{NotCapturedReason, PointId, Seq, StoreError, WorkPath};

use crate::inbox::QueuedEvent;
use crate::worktree::scan::{ScanError, ScanStats, Unreadable};
use crate::worktree::scope::OutReason;

/// The outcome of recording an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordOutcome {
    /// The head of the log after the event.
    pub seq: Seq,
    /// The point that the event made, or the one that already covers it: a step that found no changes,
    /// a prompt that was reported twice.
    pub point: Option<PointId>,
    /// Changes appended with it.
    pub changes: usize,
    /// Contents that could not be saved.
    pub not_captured: Vec<(WorkPath, NotCapturedReason)>,
    /// The event could not be recorded in time and waits in the inbox.
    pub late: bool,
    /// The scan ran out of time.
    pub unfinished: bool,
    /// Paths that a scan could not read. Everything known below them is not captured, whether this
    /// event noticed that or an earlier one.
    pub unreadable: Vec<Unreadable>,
    /// How much the scan for this event looked at.
    pub stats: ScanStats,
}

impl RecordOutcome {
    /// Nothing was appended; the head of the log is `seq`.
    pub(super) fn nothing(seq: Seq) -> Self {
        Self {
            seq,
            point: None,
            changes: 0,
            not_captured: Vec::new(),
            late: false,
            unfinished: false,
            unreadable: Vec::new(),
            stats: ScanStats::default(),
        }
    }
}

/// The outcome of an event that may be recorded later.
#[derive(Debug)]
pub enum Admission {
    /// It is in the log.
    Recorded(RecordOutcome),
    /// The event is in the inbox, claimed. Call [`super::record_queued`] with it, in this process or
    /// another.
    Queued(QueuedEvent),
}

/// The outcome of a scan without an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanReport {
    /// What the scan found and recorded.
    pub recorded: RecordOutcome,
    /// Known paths that are no longer covered, and names that never were.
    pub skipped: Vec<(WorkPath, OutReason)>,
}

/// Why an event is not in the log.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum RecordError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error("another command has the workspace locked")]
    Locked,
    #[error("the label {label:?} is taken by point {point}")]
    LabelTaken { label: String, point: PointId },
}

impl RecordError {
    /// Whether the event can be recorded later: another process is in the way, or time ran out.
    pub(super) fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Locked | Self::Store(StoreError::Busy { .. }) | Self::Scan(ScanError::OutOfTime)
        )
    }
}
