//! Takeback's data as plain types, and the stores that keep it.
//!
//! A workspace has one append-only log of [`Change`]s; a [`Point`] is a position in it. Contents are
//! stored once, by [`Digest`]. [`Store`] is the trait of a store: [`SqliteStore`] is the one on disk,
//! [`MemoryStore`] the one for tests. Agents' own states are separate: see [`state`].
//!
//! # Examples
//!
//! ```
//! use takeback_store::{Blobs, Digest, Log, MemoryStore, PackedBlob, Timestamp, Write};
//! let mut store = MemoryStore::new();
//! let mut other = store.clone(); // a second handle, like that of another process
//! let head = store.head()?;
//! store.put(PackedBlob::new(b"fn main() {}\n".to_vec()))?;
//! store.commit(head, &[Write::ScanTime(Timestamp(0))])?;
//! assert_eq!(other.contents(&Digest::of(b"fn main() {}\n"))?, b"fn main() {}\n");
//! assert!(other.commit(head, &[]).is_err(), "`head` is no longer the last commit");
//! # Ok::<(), takeback_store::StoreError>(())
//! ```

#![warn(missing_docs)]

mod blob;
mod chain;
mod change;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod disk;
mod entry;
mod id;
mod json_states;
mod memory;
mod parallel;
mod path;
pub mod platform;
mod point;
mod rewind;
mod runs;
mod session;
#[cfg(feature = "sqlite")]
mod sqlite;
pub mod state;
mod store;

pub use blob::{CHUNKED_ABOVE, Digest, Encoding, InvalidDigest, PackedBlob, Packing, RAW_ABOVE};
pub use chain::{Chain, RowSet, Sum, hash_writes};
pub use change::{Attribution, Author, Change, Correction, Evidence, IN_PART};
pub use entry::{Entry, NotCapturedReason};
pub use id::{CallId, InvalidId, PointId, RewindId, Seq, SessionId, Timestamp, TurnId};
pub use json_states::{JsonStates, file_name_part};
pub use memory::MemoryStore;
pub use parallel::map_in_parallel;
pub use path::{InvalidPath, OuterFolders, WorkPath};
pub use point::{GitState, Point, PointBasis, PointFilter, PointKind, PointQuery};
pub use rewind::{RewindHeader, RewindKind, RewindRecord, RewindState, StoredPlan};
pub use runs::{ChangeRun, PathRuns};
pub use session::{Call, CallKind, CallState, Process, SLACK_MS, Session, Turn};
#[cfg(feature = "sqlite")]
pub use sqlite::{ActiveSession, LastPoint, SqliteStates, SqliteStore, StoreSummary, summarize};
pub use state::{StateError, States};
pub use store::{
    Blobs, CompactEffort, Durability, Head, Log, Loss, MediumError, RepackStats, Store, StoreError,
    StoredSize, UnreferencedBlobs, Upkeep, Usage, Write,
};
