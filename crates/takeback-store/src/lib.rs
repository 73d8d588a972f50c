//! What Takeback knows, as plain data, and the places where it is kept.
//!
//! A workspace has one append-only log of [`Change`]s; a [`Point`] is a position in it. Contents are
//! kept once, by digest. [`Store`] is all that the rest of Takeback asks of a place to keep this in;
//! [`SqliteStore`] is the one on disk, [`MemoryStore`] the one for tests and trials.

mod parallel;
pub mod blob;
pub mod chain;
pub mod change;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod disk;
pub mod entry;
pub mod id;
pub mod json_states;
pub mod memory;
pub mod path;
pub mod platform;
pub mod point;
pub mod rewind;
pub mod session;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod state;
pub mod store;
pub mod runs;

pub use blob::{Digest, PackedBlob};
pub use chain::Chain;
pub use change::{Attribution, Author, Change, Correction, Evidence};
pub use entry::{Entry, NotCapturedReason};
pub use id::{CallId, PointId, RewindId, Seq, SessionId, Timestamp, TurnId};
pub use json_states::JsonStates;
pub use memory::MemoryStore;
pub use parallel::map_in_parallel;
pub use path::{InvalidPath, OuterFolders, WorkPath};
pub use point::{GitState, Point, PointBasis, PointFilter, PointKind, PointQuery};
pub use rewind::{RewindKind, RewindRecord, RewindState};
pub use runs::{ChangeRun, PathRuns};
pub use session::{Call, CallKind, CallState, Process, SLACK_MS, Session, Turn};
#[cfg(feature = "sqlite")]
pub use sqlite::state::SqliteStates;
#[cfg(feature = "sqlite")]
pub use sqlite::{ActiveSession, LastPoint, SqliteStore, StoreSummary, summarize};
pub use state::{StateError, States};
pub use store::{
    Blobs, CompactEffort, Durability, Head, Log, Loss, MediumError, RepackStats, Store, StoreError,
    StoredSize, UnreferencedBlobs, Upkeep, Usage, Write,
};
