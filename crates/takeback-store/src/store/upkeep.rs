//! What a store does about its space and its health.

use std::collections::{HashMap, HashSet};

use super::{Blobs, Head, StoreError};
use crate::blob::Digest;

/// Space and integrity of a store.
pub trait Upkeep: Blobs {
    /// The blobs that no change refers to.
    fn unreferenced(&self) -> Result<UnreferencedBlobs, StoreError>;

    /// Drops these blobs, except those that a change refers to by now. The caller must make sure
    /// that no other process has put a blob, or found that it is stored, without having committed
    /// the change that refers to it.
    fn drop_blobs(&mut self, unreferenced: &UnreferencedBlobs) -> Result<(), StoreError>;

    /// Returns the space of dropped records to the system.
    fn compact(&mut self, effort: CompactEffort) -> Result<(), StoreError>;

    /// Compresses contents further, reading about `budget` bytes. Call it again while
    /// [`RepackStats::more`] is set. Other processes may go on using the store.
    fn repack(&mut self, _budget: u64) -> Result<RepackStats, StoreError> {
        Ok(RepackStats::default())
    }

    /// The stored size of each of these blobs and of their parts. Blobs that are not stored are left
    /// out.
    fn stored_sizes(
        &self,
        digests: &HashSet<Digest>,
    ) -> Result<HashMap<Digest, StoredSize>, StoreError> {
        let mut sizes = HashMap::new();
        let mut open: Vec<Digest> = digests.iter().copied().collect();
        while let Some(digest) = open.pop() {
            if sizes.contains_key(&digest) || !self.has(&digest)? {
                continue;
            }
            let blob = self.read_packed(&digest)?;
            let parts = blob.chunks();
            open.extend(&parts);
            sizes.insert(digest, StoredSize { bytes: blob.bytes.len() as u64, parts });
        }
        Ok(sizes)
    }

    /// What the store takes on disk.
    fn usage(&self) -> Result<Usage, StoreError>;

    /// Reads and verifies everything; one sentence for each thing that is damaged.
    fn check(&self) -> Result<Vec<String>, StoreError>;
}

/// How much dead space [`Upkeep::compact`] leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompactEffort {
    /// A file is rewritten if at least half of it is dead.
    Worthwhile,
    /// A file is rewritten if a sixteenth of it is dead: the disk is nearly full.
    ShortOfSpace,
    /// Everything is rewritten: afterwards no byte of a dropped or replaced record is in any file.
    Everything,
}

/// Blobs that no change referred to at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreferencedBlobs {
    /// The moment.
    pub at: Head,
    /// The blobs.
    pub digests: HashSet<Digest>,
}

/// The result of one [`Upkeep::repack`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RepackStats {
    /// Bytes saved.
    pub gained: u64,
    /// Whether there is more to repack.
    pub more: bool,
}

/// What a blob takes on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSize {
    /// Bytes on disk, without its parts.
    pub bytes: u64,
    /// The blobs it is made of, which other blobs may share.
    pub parts: Vec<Digest>,
}

/// What a store takes on disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// All contents, each once, uncompressed.
    pub contents: u64,
    /// The same as stored: compressed, with headers.
    pub kept: u64,
    /// The files that contain them, including dead space.
    pub packs: u64,
    /// Everything else: the log, points, sessions. SQLite's write-ahead log is not counted.
    pub database: u64,
    /// Number of blobs.
    pub blobs: u64,
    /// Number of changes.
    pub changes: u64,
}
