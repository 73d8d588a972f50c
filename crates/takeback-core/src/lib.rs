//! Records what happens in a folder, with its author, and takes back exactly what is asked.
//!
//! One edit, read from top to bottom: an agent reports a tool call ([`event`]); [`record`] decides
//! what to look at; [`worktree`] finds what changed; the store keeps bytes and log; [`rewind`] plans,
//! promises, does and proves. Nothing here prints, reads the environment, or knows the time.

pub mod ambient;
mod ends;
pub mod progress;
pub mod process;
pub mod lock;
pub mod worktree;
pub mod workspace;
pub mod watch;
pub mod event;
pub mod author;
pub mod spool;
pub mod deferred;
pub mod going_on;
pub mod record;
mod waiting;
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

pub use ambient::{Ambient, system_file_time};
pub use ends::{EndKind, LearnedEnd, Witness};
pub use event::{AgentEvent, CallReport, Outcome, Tools, Touches};
pub use learn_ids::learn_ids;
pub use record::{
    Put, Recorded, checkpoint, left_to_read, look_around, look_at_rest, look_for_missed, record,
    record_deferred, record_or_defer, wait_for_deferred,
};
pub use waiting::record_waiting;
pub use workspace::{Limits, Workspace, WorkspaceError, WorkspaceOptions};
