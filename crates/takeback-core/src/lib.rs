//! Records what happens in a folder, with its author, and takes back exactly what is asked.
//!
//! One edit, read from top to bottom: an agent reports a tool call ([`event`]); [`record`](mod@record)
//! decides what to look at; [`worktree`] finds what changed; the store keeps bytes and log;
//! [`rewind`](mod@rewind) plans, promises, does and proves. Nothing here prints, reads the environment,
//! or knows the time.

pub mod ambient;
mod platform;
mod ends;
pub mod diff;
pub mod progress;
pub mod process;
pub mod lock;
pub mod worktree;
pub mod workspace;
pub mod watch;
pub mod event;
mod inbox;
pub mod record;
pub mod middleware;
pub mod git_state;
pub mod history;
pub mod rewind;
pub mod execution;
pub mod marks;
mod learn_ids;
pub mod purge;
pub mod retention;
pub mod point_name;
pub mod exchange;

pub use ambient::{Ambient, system_random};
pub use ends::{CallEndSource, EndKind, LearnedEnd};
pub use event::{AgentEvent, CallReport, CallTargets, Outcome, Tools};
pub use inbox::{BackgroundScan, Inbox, InboxEvent, QueuedEvent, ScanProgress};
pub use learn_ids::learn_ids;
pub use record::{
    Admission, RecordOutcome, bytes_left_to_read, checkpoint, finish_scan, look_around,
    look_for_missed, record, record_late_events, record_or_queue, record_queued, wait_for_session,
};
pub use workspace::{Limits, Workspace, WorkspaceError, WorkspaceOptions};
