//! Gives back the space of what nothing names any more: rows of the database, then bytes of the packs.
//!
//! Finding and moving disturb nobody. Only [`forget`] needs its caller to keep others from naming
//! contents that they were told are here.

use std::collections::{HashMap, HashSet};

use rusqlite::TransactionBehavior;

use super::SqliteStore;
use super::pack::{HEADER, Location, Packs, Retired, header};
use super::rows;
use super::schema::io_error;
use crate::blob::{Digest, Encoding, PackedBlob};
use crate::disk::{CrashPoint, crash_point};
use crate::id::Seq;
use crate::store::{Store as _, StoreError, Unnamed, Usage, Weight};

pub(super) fn unnamed(store: &SqliteStore) -> Result<Unnamed, StoreError> {
    let doing = "looking for contents that nothing names";
    let at = store.rows(doing, rows::head(&store.db))?;
    let mut digests = HashSet::new();
    let mut broken = None;
    let listed = rows::each_blob(&store.db, &mut |blob| match blob {
        Ok((digest, _)) => drop(digests.insert(digest)),
        Err(error) => broken = Some(error),
    });
    store.rows(doing, broken.map_or(listed, Err))?;
    // Not at one moment with the above: what is named in between is named.
    for digest in named_after(store, Seq(0))? {
        digests.remove(&digest);
    }
    Ok(Unnamed { at, digests })
}

pub(super) fn forget(store: &mut SqliteStore, unnamed: &Unnamed) -> Result<(), StoreError> {
    // Changes may have been replaced since, too: then any of them may name what none did.
    let moved = store.head()? != unnamed.at;
    let named = if moved { named_after(store, Seq(0))? } else { HashSet::new() };
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

/// How much dead weight a segment is emptied for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thrift {
    /// As much as is left to copy.
    WorthIt,
    /// A sixteenth: room is short.
    Room,
}

impl Thrift {
    fn least(self, size: u64) -> u64 {
        match self {
            Self::WorthIt => size.div_ceil(2),
            Self::Room => size.div_ceil(16),
        }
    }
}

pub(super) fn compact(store: &mut SqliteStore, thrift: Thrift) -> Result<(), StoreError> {
    let dropped = (|| {
        let transaction = store.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        rows::drop_orphans(&transaction)?;
        transaction.commit()?;
        Ok(())
    })();
    store.rows("dropping what nothing names", dropped)?;
    let evacuated = evacuate(store, thrift);
    store.rows("giving space back", rows::vacuum(&store.db))?;
    evacuated
}

/// Empties and removes the segments with that much dead weight: those first that cost least, so that
/// a full disk has more room before anything is copied.
fn evacuate(store: &mut SqliteStore, thrift: Thrift) -> Result<(), StoreError> {
    let segments = store.packs.segments()?;
    let newest = segments.last().map(|(number, _)| *number);
    let live = live_records(store)?;
    let kept_in = |number: u32| -> u64 {
        let records = live.get(&number).into_iter().flatten();
        records.map(|(_, place)| HEADER as u64 + u64::from(place.length)).sum()
    };
    let mut heavy: Vec<(u64, u32)> = segments
        .into_iter()
        .map(|(number, size)| (kept_in(number), number, size))
        .filter(|(kept, _, size)| *size > 0 && size - kept.min(size) >= thrift.least(*size))
        .map(|(kept, number, _)| (kept, number))
        .collect();
    heavy.sort_unstable();
    let mut retired = Vec::new();
    for (_, number) in heavy {
        retired.extend(store.packs.retire(number)?);
    }
    if retired.iter().any(|old| Some(old.number()) == newest) {
        store.packs.begin_segment()?;
    }
    // Read again under the locks: their last writers may have committed since.
    let mut live = live_records(store)?;
    for old in retired {
        let records = live.remove(&old.number()).unwrap_or_default();
        move_records(store, old, &records)?;
    }
    Ok(())
}

fn live_records(store: &SqliteStore) -> Result<HashMap<u32, Vec<(Digest, Location)>>, StoreError> {
    let mut live: HashMap<u32, Vec<(Digest, Location)>> = HashMap::new();
    let mut broken = None;
    let listed = rows::each_blob(&store.db, &mut |blob| match blob {
        Ok(blob) => live.entry(blob.1.segment).or_default().push(blob),
        Err(error) => broken = Some(error),
    });
    store.rows("looking for dead weight in the packs", broken.map_or(listed, Err))?;
    Ok(live)
}

/// Copies these records elsewhere, durably, says so, and removes the segment. One with a damaged
/// record stays, for whoever may still get something out of it.
fn move_records(
    store: &mut SqliteStore,
    old: Retired,
    records: &[(Digest, Location)],
) -> Result<(), StoreError> {
    let mut packs = Packs::new(store.dir.join(super::PACKS));
    let copied = copy_records(store, &mut packs, records);
    if !matches!(copied, Ok(true)) {
        packs.give_up()?;
        return copied.map(drop);
    }
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

/// Whether all of them could be read.
fn copy_records(
    store: &SqliteStore,
    packs: &mut Packs,
    records: &[(Digest, Location)],
) -> Result<bool, StoreError> {
    for (digest, from) in records {
        let Some(mut record) = store.packs.read_record(from)? else { return Ok(false) };
        let bytes = record.split_off(HEADER);
        if record != header(digest, from) {
            return Ok(false);
        }
        let Location { size, encoding, .. } = *from;
        packs.append(&PackedBlob { digest: *digest, size, encoding, bytes })?;
    }
    packs.make_durable()?;
    Ok(true)
}

pub(super) fn weights(
    store: &SqliteStore,
    digests: &HashSet<Digest>,
) -> Result<HashMap<Digest, Weight>, StoreError> {
    let mut weights = HashMap::new();
    let mut in_parts = Vec::new();
    let mut broken = None;
    let listed = rows::each_blob(&store.db, &mut |blob| match blob {
        Ok((digest, place)) => {
            let bytes = HEADER as u64 + u64::from(place.length);
            weights.insert(digest, Weight { bytes, parts: Vec::new() });
            if place.encoding == Encoding::Chunks && digests.contains(&digest) {
                in_parts.push(digest);
            }
        }
        Err(error) => broken = Some(error),
    });
    store.rows("adding up contents", broken.map_or(listed, Err))?;
    let mut wanted = digests.clone();
    for digest in in_parts {
        let parts = store.packed(&digest)?.chunks();
        wanted.extend(&parts);
        if let Some(weight) = weights.get_mut(&digest) {
            weight.parts = parts;
        }
    }
    weights.retain(|digest, _| wanted.contains(digest));
    Ok(weights)
}

pub(super) fn usage(store: &SqliteStore) -> Result<Usage, StoreError> {
    let mut usage = store.rows("adding up what it holds", rows::usage(&store.db))?;
    usage.packs = store.packs.segments()?.into_iter().map(|(_, size)| size).sum();
    let database = std::fs::metadata(&store.database);
    usage.database =
        database.map_err(|source| io_error(&store.database, "looking at it", source))?.len();
    Ok(usage)
}
