//! What Takeback asks of a medium: [`Log`], [`Blobs`] and [`Upkeep`], which together are a [`Store`].
//!
//! The conformance suites (feature `conformance`) are the contract of every implementation.

mod blobs;
mod log;
mod upkeep;

use std::error::Error;
use std::io;
use std::path::PathBuf;

pub use self::blobs::Blobs;
pub use self::log::{Head, Log, Loss, Write};
pub use self::upkeep::{CompactEffort, RepackStats, StoredSize, UnreferencedBlobs, Upkeep, Usage};
use crate::blob::Digest;
use crate::id::Seq;

/// The log, the contents and the upkeep of one workspace's history. Implemented for every type that
/// has the three traits.
pub trait Store: Log + Blobs + Upkeep + Send {}

impl<T: Log + Blobs + Upkeep + Send> Store for T {}

/// What a commit waits for. At every level a process that dies loses nothing it committed: the kernel
/// has it. The levels differ in what survives a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Contents and the commit are on disk when it returns.
    #[default]
    Full,
    /// Contents are on disk before the commit that refers to them. The newest commits of the last
    /// seconds may be lost; the rest is intact.
    Normal,
    /// Nothing is waited for. Commits of the last seconds may be lost, and contents that other
    /// commits refer to may be missing.
    Off,
}

impl Durability {
    /// All levels, safest first.
    pub const ALL: [Self; 3] = [Self::Full, Self::Normal, Self::Off];

    /// Its name in settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
            Self::Off => "off",
        }
    }
}

/// Why a store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum StoreError {
    /// Read the head again and retry.
    #[error("another process committed first")]
    Moved,
    #[error("no store at {path}")]
    Missing { path: PathBuf },
    /// Never create a new database there: SQLite would take the remaining log for its own.
    #[error("the database {path} is gone, but {left} is still there")]
    LostDatabase { path: PathBuf, left: PathBuf },
    #[error("{path} is not a Takeback store")]
    Foreign { path: PathBuf },
    #[error("the store at {path} was written by a pre-release build of Takeback")]
    PreRelease { path: PathBuf },
    #[error("the store at {path} has format {found}; this Takeback knows formats up to {known}")]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("the store is busy: another process has been writing to {path} for too long")]
    Busy { path: PathBuf },
    #[error("{path} cannot be used ({doing})")]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
    #[error("the database {path} failed while {doing}")]
    Database { path: PathBuf, doing: &'static str, source: MediumError },
    #[error("the database {path} is damaged")]
    DamagedDatabase { path: PathBuf, source: MediumError },
    #[error("{what} in the store is damaged: {why}")]
    DamagedRecord { what: String, why: String },
    #[error("the contents {digest} are not in the store")]
    MissingBlob { digest: Digest },
    #[error("the contents {digest} are damaged in the store")]
    DamagedBlob { digest: Digest },
    #[error("the contents {digest} could not be written out")]
    Sink { digest: Digest, source: io::Error },
    #[error("a commit of change {found} where {expected} is next")]
    Gap { expected: Seq, found: Seq },
}

/// An error of the database or service behind a store.
pub type MediumError = Box<dyn Error + Send + Sync>;

impl StoreError {
    /// Whether only the requested contents are lost and everything else can still be read.
    #[must_use]
    pub fn is_lost_contents(&self) -> bool {
        let failed_disk = Some(rustix::io::Errno::IO.raw_os_error());
        match self {
            Self::MissingBlob { .. } | Self::DamagedBlob { .. } => true,
            Self::Io { source, .. } => source.raw_os_error() == failed_disk,
            _ => false,
        }
    }

    /// Whether the disk is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        matches!(self, Self::Io { source, .. } if full.contains(&source.kind()))
    }
}
