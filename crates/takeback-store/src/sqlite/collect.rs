//! Gives back the space of what nothing names any more: rows of the database, then bytes of the packs.
//!
//! Finding and moving disturb nobody. Only [`forget`] needs its caller to keep others from naming
//! contents that they were told are here.

use std::collections::{HashMap, HashSet};

use rusqlite::TransactionBehavior;

use super::SqliteStore;
use super::pack::{HEADER, Location, Packs, Retired, header};
use super::rows::{self, RowError};
use super::schema::io_error;
use crate::blob::{Digest, Encoding, PackedBlob};
use crate::disk::{CrashPoint, crash_point};
use crate::id::Seq;
use crate::store::{Store as _, StoreError, Unnamed, Usage};

pub(super) fn unnamed(store: &SqliteStore) -> Result<Unnamed, StoreError> {
    let doing = "looking for contents that nothing names";
    let moment = store.db.unchecked_transaction().map_err(RowError::from);
    let moment = store.rows(doing, moment)?;
    let at = store.rows(doing, rows::head(&moment))?.seq;
    let mut blobs = HashMap::new();
    let mut broken = None;
    let listed = rows::each_blob(&moment, &mut |blob| match blob {
        Ok((digest, location)) => drop(blobs.insert(digest, location.encoding)),
        Err(error) => broken = Some(error),
    });
    store.rows(doing, broken.map_or(listed, Err))?;
    let named = named_after(store, Seq(0))?;
    let digests = blobs.into_keys().filter(|digest| !named.contains(digest)).collect();
    Ok(Unnamed { at, digests })
}

pub(super) fn forget(store: &mut SqliteStore, unnamed: &Unnamed) -> Result<(), StoreError> {
    let named = named_after(store, unnamed.at)?;
    let forgotten = (|| {
        let transaction = store.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for digest in unnamed.digests.iter().filter(|digest| !named.contains(digest)) {
            rows::forget_blob(&transaction, digest)?;
        }
        crash_point(CrashPoint::Commit);
        transaction.commit()?;
        crash_point(CrashPoint::Committed);
        Ok(())
    })();
    store.had_contents = None;
    store.rows("forgetting contents that nothing names", forgotten)
}

/// The contents that changes after `after` name, and the parts of those that are in parts.
fn named_after(store: &SqliteStore, after: Seq) -> Result<HashSet<Digest>, StoreError> {
    let mut named = HashSet::new();
    let mut broken = None;
    let read = rows::each_change_after(&store.db, after, &mut |change| match change {
        Ok(change) => {
            named.extend([&change.before, &change.after].into_iter().filter_map(|e| e.digest()));
        }
        Err(error) => broken = Some(error),
    });
    // A change that cannot be read may name anything.
    store.rows("reading changes", broken.map_or(read, Err))?;
    let mut parts = Vec::new();
    for digest in &named {
        let place = store.rows("looking for contents", rows::blob(&store.db, digest))?;
        if place.is_some_and(|place| place.encoding == Encoding::Chunks) {
            parts.extend(store.packed(digest)?.chunks());
        }
    }
    named.extend(parts);
    Ok(named)
}

pub(super) fn compact(store: &mut SqliteStore) -> Result<(), StoreError> {
    let dropped = (|| {
        let transaction = store.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        rows::drop_orphans(&transaction)?;
        transaction.commit()?;
        Ok(())
    })();
    store.rows("dropping what nothing names", dropped)?;
    evacuate(store)?;
    store.rows("giving space back", rows::vacuum(&store.db))
}

/// Empties and removes the segments of which half or more is dead weight.
fn evacuate(store: &mut SqliteStore) -> Result<(), StoreError> {
    let doing = "looking for dead weight in the packs";
    let segments = store.packs.segments()?;
    let mut live: HashMap<u32, Vec<(Digest, Location)>> = HashMap::new();
    let mut broken = None;
    let listed = rows::each_blob(&store.db, &mut |blob| match blob {
        Ok(blob) => live.entry(blob.1.segment).or_default().push(blob),
        Err(error) => broken = Some(error),
    });
    store.rows(doing, broken.map_or(listed, Err))?;
    let is_heavy = |number: &u32, size: u64| {
        let records = live.get(number).into_iter().flatten();
        let kept: u64 = records.map(|(_, place)| HEADER as u64 + u64::from(place.length)).sum();
        size > 0 && size - kept.min(size) >= size.div_ceil(2)
    };
    let mut retired = Vec::new();
    for (number, size) in &segments {
        if is_heavy(number, *size) {
            retired.extend(store.packs.retire(*number)?);
        }
    }
    if retired.iter().any(|old| Some(old.number()) == segments.last().map(|(number, _)| *number)) {
        store.packs.begin_segment()?;
    }
    for old in retired {
        // Read again under the lock: its last writer may have committed since.
        let mut records = Vec::new();
        let listed = rows::each_blob(&store.db, &mut |blob| match blob {
            Ok(blob) if blob.1.segment == old.number() => records.push(blob),
            _ => {}
        });
        store.rows(doing, listed)?;
        move_records(store, old, &records)?;
    }
    Ok(())
}

/// Copies these records elsewhere, durably, says so, and removes the segment. One with a damaged
/// record stays, for whoever may still get something out of it.
fn move_records(
    store: &mut SqliteStore,
    old: Retired,
    records: &[(Digest, Location)],
) -> Result<(), StoreError> {
    let mut packs = Packs::new(store.dir.join(super::PACKS));
    for (digest, from) in records {
        let Some(mut record) = store.packs.read_record(from)? else { return Ok(()) };
        let bytes = record.split_off(HEADER);
        if record != header(digest, from) {
            return Ok(());
        }
        let Location { size, encoding, .. } = *from;
        packs.append(&PackedBlob { digest: *digest, size, encoding, bytes })?;
    }
    packs.make_durable()?;
    let moved = (|| {
        let transaction = store.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (digest, from) in records {
            rows::move_blob(&transaction, digest, from, &packs.pending()[digest])?;
        }
        crash_point(CrashPoint::Commit);
        transaction.commit()?;
        crash_point(CrashPoint::Committed);
        Ok(())
    })();
    store.rows("moving contents", moved)?;
    packs.committed();
    old.remove()
}

pub(super) fn usage(store: &SqliteStore) -> Result<Usage, StoreError> {
    let mut usage = store.rows("adding up what it holds", rows::usage(&store.db))?;
    usage.packs = store.packs.segments()?.into_iter().map(|(_, size)| size).sum();
    let database = std::fs::metadata(&store.database);
    usage.database =
        database.map_err(|source| io_error(&store.database, "looking at it", source))?.len();
    Ok(usage)
}
