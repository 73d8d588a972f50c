//! The user's files: how they are reached, which belong to the workspace, what is there, and the one
//! place that changes them.

pub(crate) mod root;
pub(crate) mod fingerprint;
pub(crate) mod budget;
#[expect(unreachable_pub, reason = "used by this crate alone")]
pub(crate) mod look;
pub(crate) mod scope;
pub(crate) mod index;
pub(crate) mod scan;
#[expect(unreachable_pub, reason = "used by this crate alone")]
pub(crate) mod write;

pub use fingerprint::{RacySince, stat};
pub use index::{Folder, Index, KnownName};
pub use root::Root;
pub use scan::ScanStats;
pub use scope::{OutReason, ScopeOptions};
pub use write::StageError;
