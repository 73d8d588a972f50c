//! What Takeback knows, as plain data, and the places where it is kept.
//!
//! A workspace has one append-only log of [`Change`]s; a [`Point`] is a position in it. Contents are
//! kept once, by digest. [`Store`] is all that the rest of Takeback asks of a place to keep this in;
//! [`SqliteStore`] is the one on disk, [`MemoryStore`] the one for tests and trials.

mod at_once;
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
pub mod point;
pub mod rewind;
pub mod session;
pub mod sqlite;
pub mod state;
pub mod store;
pub mod stretch;
mod varint;

pub use at_once::at_once;
pub use blob::{Digest, PackedBlob};
pub use chain::Chain;
pub use change::{Attribution, Author, Change, Correction, Evidence};
pub use entry::{Entry, Lack};
pub use id::{CallId, PointId, RewindId, Seq, SessionId, Timestamp, TurnId};
pub use json_states::JsonStates;
pub use memory::MemoryStore;
pub use path::{InvalidPath, Outermost, WorkPath};
pub use point::{GitState, Point, PointKind, PointQuery, Shown, Vouched};
pub use rewind::{RewindKind, RewindRecord, RewindState};
pub use session::{Call, CallKind, CallState, Process, SLACK_MS, Session, Turn};
pub use sqlite::state::SqliteStates;
pub use sqlite::{AtWork, Glance, LastPoint, SqliteStore, glance};
pub use state::{StateError, StateStore};
pub use store::{
    Durability, Head, Loss, Repacked, Store, StoreError, Unnamed, Usage, Weight, Write,
};
pub use stretch::{PathStretches, Stretch};
