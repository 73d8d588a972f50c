//! Finds and drops the blobs that nothing refers to, and reports what the store takes.
//!
//! Only [`Upkeep::drop_blobs`] needs its caller to keep other processes out; everything else may run
//! next to them. [`super::compact`] returns the space.

use std::collections::{HashMap, HashSet};

use rusqlite::TransactionBehavior;

use super::pack::HEADER;
use super::schema::io_error;
use super::{KnownBlobs, SqliteStore, check, compact, repack, rows};
use crate::blob::{Digest, Encoding};
use crate::disk::{CrashPoint, crash_point};
use crate::id::Seq;
use crate::store::{
    Blobs as _, CompactEffort, Log as _, RepackStats, StoreError, StoredSize, UnreferencedBlobs,
    Upkeep, Usage,
};

/// Rows that one transaction deletes. Pages that one transaction frees are reused by the next, so that
/// a nearly full disk has room for all of them.
const BATCH: usize = 4000;

impl Upkeep for SqliteStore {
    fn unreferenced(&self) -> Result<UnreferencedBlobs, StoreError> {
        let doing = "looking for unreferenced contents";
        let at = self.rows(doing, rows::head(&self.db))?;
        let mut digests = HashSet::new();
        let mut broken = None;
        let listed = rows::each_blob(&self.db, &mut |blob| match blob {
            Ok((digest, _)) => drop(digests.insert(digest)),
            Err(error) => broken = Some(error),
        });
        self.rows(doing, broken.map_or(listed, Err))?;
        // Read after the above: a reference committed in between counts.
        for digest in referenced(self)? {
            digests.remove(&digest);
        }
        Ok(UnreferencedBlobs { at, digests })
    }

    fn drop_blobs(&mut self, unreferenced: &UnreferencedBlobs) -> Result<(), StoreError> {
        // Any commit since may have added or replaced a change that refers to one of them.
        let moved = self.head()? != unreferenced.at;
        let referenced = if moved { referenced(self)? } else { HashSet::new() };
        let mut dropped: Vec<&Digest> = unreferenced.digests.difference(&referenced).collect();
        dropped.sort_unstable();
        self.known_blobs = KnownBlobs::NotRead;
        let done = dropped.chunks(BATCH).try_for_each(|batch| {
            let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for digest in batch {
                rows::drop_blob(&transaction, digest)?;
            }
            crash_point(CrashPoint::Commit);
            transaction.commit()?;
            crash_point(CrashPoint::Committed);
            if dropped.len() > BATCH { rows::checkpoint(&self.db) } else { Ok(()) }
        });
        self.rows("dropping unreferenced contents", done)
    }

    fn compact(&mut self, effort: CompactEffort) -> Result<(), StoreError> {
        compact::compact(self, effort)
    }

    fn repack(&mut self, budget: u64) -> Result<RepackStats, StoreError> {
        repack::repack(self, budget)
    }

    fn stored_sizes(
        &self,
        digests: &HashSet<Digest>,
    ) -> Result<HashMap<Digest, StoredSize>, StoreError> {
        let mut sizes = HashMap::new();
        let mut in_parts = Vec::new();
        let mut broken = None;
        let listed = rows::each_blob(&self.db, &mut |blob| match blob {
            Ok((digest, location)) => {
                let bytes = HEADER as u64 + u64::from(location.length);
                sizes.insert(digest, StoredSize { bytes, parts: Vec::new() });
                if location.encoding == Encoding::Chunks && digests.contains(&digest) {
                    in_parts.push(digest);
                }
            }
            Err(error) => broken = Some(error),
        });
        self.rows("adding up contents", broken.map_or(listed, Err))?;
        let mut wanted = digests.clone();
        for digest in in_parts {
            let parts = self.read_packed(&digest)?.chunks();
            wanted.extend(&parts);
            if let Some(size) = sizes.get_mut(&digest) {
                size.parts = parts;
            }
        }
        sizes.retain(|digest, _| wanted.contains(digest));
        Ok(sizes)
    }

    fn usage(&self) -> Result<Usage, StoreError> {
        let mut usage = self.rows("adding up what it holds", rows::usage(&self.db))?;
        usage.packs = self.packs.segments()?.into_iter().map(|(_, size)| size).sum();
        let database = std::fs::metadata(&self.database);
        usage.database =
            database.map_err(|source| io_error(&self.database, "looking at it", source))?.len();
        Ok(usage)
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        loop {
            let segments = self.packs.segments()?;
            let damage = check::check(self)?;
            // A record that another process is moving looks like damage.
            if damage.is_empty() || self.packs.segments()? == segments {
                return Ok(damage);
            }
        }
    }
}

/// The blobs that changes refer to, and their parts.
fn referenced(store: &SqliteStore) -> Result<HashSet<Digest>, StoreError> {
    let mut digests = HashSet::new();
    let mut broken = None;
    let read = rows::each_change_after(&store.db, Seq(0), &mut |change| match change {
        Ok(change) => {
            digests.extend([&change.before, &change.after].into_iter().filter_map(|e| e.digest()));
        }
        Err(error) => broken = Some(error),
    });
    // A change that cannot be read may refer to any blob.
    store.rows("reading changes", broken.map_or(read, Err))?;
    let mut parts = Vec::new();
    for digest in &digests {
        let location = store.rows("looking for contents", rows::blob(&store.db, digest))?;
        if location.is_some_and(|location| location.encoding == Encoding::Chunks) {
            parts.extend(store.read_packed(digest)?.chunks());
        }
    }
    digests.extend(parts);
    Ok(digests)
}
