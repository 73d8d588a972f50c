//! Records what happens in a folder, with its author, and takes back exactly what is asked.
//!
//! One edit, read from top to bottom: an agent reports a tool call ([`AgentEvent`]); [`record`](mod@record)
//! decides what to look at; [`worktree`] finds what changed; the store keeps bytes and log;
//! [`rewind`](mod@rewind) plans, promises, does and proves. Nothing here prints or reads the environment;
//! the clock and the ids come from [`Ambient`].
//!
//! ```
//! use takeback_core::rewind::{RewindRequest, Target, rewind};
//! # let mut sandbox = takeback_testkit::Sandbox::new();
//! # let file = sandbox.root().join("cart.rs");
//! # let workspace = &mut sandbox.workspace;
//! # let (session, on_unrecorded) = ("session-1".into(), Box::new(|_| ()));
//! # let tools = takeback_core::Tools::new(&["edit"], &[], &[]);
//! # use takeback_core::middleware::{Middleware, ToolCall};
//! let mut agent = Middleware { workspace, session, tools, on_unrecorded };
//! agent.prompt(None, "Add discounts");
//! let input = serde_json::json!({ "path": "cart.rs" });
//! agent.around(ToolCall { id: "1", tool: "edit", input: &input }, |_| std::fs::write(&file, "total - discount"))?;
//!
//! let workspace = agent.workspace;
//! let point = workspace.store.points()?.pop().expect("the prompt made a point").id;
//! let receipt = rewind(workspace, &RewindRequest::new(Target::Point(point)), None)?;
//! assert!(receipt.success && !file.exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

mod ambient;
pub mod attribution;
mod diff;
mod ends;
mod event;
pub mod exchange;
pub mod execution;
pub mod fork;
mod git;
pub mod history;
mod inbox;
mod learn_ids;
pub mod lock;
mod marks;
pub mod middleware;
mod notice;
mod overwrite;
mod platform;
mod point_name;
pub mod process;
mod progress;
mod purge;
pub mod record;
pub mod retention;
pub mod rewind;
mod tree_copy;
pub mod watch;
mod workspace;
pub mod worktree;

// A workspace and its surroundings.
pub use ambient::{Ambient, system_random};
pub use git::{Commit, CommitLine, GitError, HeadMove, Repository, git_state};
pub use progress::{Progress, ProgressListener, Work};
pub use tree_copy::{CopyError, CopyGaps, TreeCopy};
pub use workspace::{Limits, Workspace, WorkspaceError, WorkspaceOptions, check_root, index_in};

// What happens in it.
pub use ends::{CallEndSource, EndKind, LearnedEnd};
pub use event::{AgentEvent, CallReport, CallTargets, Outcome, Tools};
pub use inbox::{BackgroundScan, Inbox, InboxEvent, QueuedEvent, ScanProgress};
pub use learn_ids::learn_ids;
pub use notice::{last_prompt, notice};
pub use overwrite::overwrite_warning;
pub use record::{
    Admission, RecordOutcome, bytes_left_to_read, checkpoint, finish_scan, look_around,
    look_around_if_changed, look_for_missed, record, record_late_events, record_or_queue,
    record_queued, wait_for_session,
};

// Points and paths of its history.
pub use diff::{Hunk, diff};
pub use marks::{Mark, MarkError, check_label, mark};
pub use point_name::{PointNameError, edit_distance, find_point, find_stored_point};
pub use purge::{PurgeError, PurgeReport, Scrubber, purge, would_purge};
