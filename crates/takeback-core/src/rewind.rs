//! Taking back: plan, promise, do, prove. Undo and redo are the same with another aim.

pub mod merge;
pub mod path_filter;
pub mod plan;
pub mod state_move;
pub mod helper;
pub mod journal;
pub mod apply;
pub(crate) mod again;
mod begin;
mod correct;
mod lost;
mod safety;
pub(crate) mod opened;
pub mod recover;
pub mod receipt;

pub use helper::{Helped, Helper, NotRun};
pub use journal::{RewindError, RewindRequest, Target, preview, rewind, rewind_with};
pub use plan::first_seen::{self, FirstSeen};
pub use plan::{AmbiguousPolicy, Plan, Step, Verdict, Whose};
pub use receipt::{Problem, Receipt, StateReceipt};
pub use recover::{Recovered, recover};
pub use state_move::{Files, Rollback, StateMove, Terms};
