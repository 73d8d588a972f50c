//! Returns the space of dropped records to the system: first segments, then pages of the database.
//!
//! Other processes may go on using the store. At most the live part of one segment exists twice: a
//! copied record is durable and has its row before the old segment is removed, and that happens before
//! the next segment is begun.

use std::collections::{HashMap, HashSet};

use rusqlite::TransactionBehavior;

use super::SqliteStore;
use super::pack::{HEADER, Location, Packs, RetiredSegment, header};
use super::rows;
use crate::blob::{Digest, PackedBlob};
use crate::disk::{CrashPoint, crash_point};
use crate::store::{CompactEffort, StoreError};

/// Segments smaller than this are merged,
const SMALL: u64 = 4 << 20;
/// once there are more of them than this. Processes that record at the same time have one each.
const FEW: usize = 4;

pub(super) fn compact(store: &mut SqliteStore, effort: CompactEffort) -> Result<(), StoreError> {
    // On a full disk even a transaction that deletes needs space first, so free some without one.
    let evacuated = remove_dead(store).and_then(|()| {
        let dropped = (|| {
            let transaction = store.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            rows::drop_orphans(&transaction)?;
            transaction.commit()?;
            Ok(())
        })();
        store.rows("dropping unreferenced contents", dropped)?;
        match evacuate(store, effort) {
            Err(error) if error.is_full() => {
                punch_dead(store)?;
                evacuate(store, effort)
            }
            evacuated => evacuated,
        }
    });
    store.rows("reclaiming space", rows::vacuum(&store.db))?;
    evacuated?;
    match effort {
        CompactEffort::Everything => store.rows("rewriting it", rows::rewrite(&store.db)),
        CompactEffort::Worthwhile | CompactEffort::ShortOfSpace => Ok(()),
    }
}

/// The number of dead bytes from which a segment of this size is rewritten.
fn least_dead(effort: CompactEffort, size: u64) -> u64 {
    match effort {
        CompactEffort::Worthwhile => size.div_ceil(2),
        CompactEffort::ShortOfSpace => size.div_ceil(16),
        CompactEffort::Everything => 1,
    }
}

/// Removes segments without live records, except the newest: its number must not be reused.
fn remove_dead(store: &SqliteStore) -> Result<(), StoreError> {
    let live: HashSet<u32> = live_records(store)?.into_keys().collect();
    let segments = store.packs.segments()?;
    let older = segments.iter().rev().skip(1).filter(|(_, size)| *size > 0);
    let dead: Vec<u32> =
        older.map(|(number, _)| *number).filter(|number| !live.contains(number)).collect();
    let mut retired = Vec::new();
    for number in dead {
        retired.extend(store.packs.retire(number)?);
    }
    if retired.is_empty() {
        return Ok(());
    }
    // Read again under the locks: the last writers may have committed since.
    let live = live_records(store)?;
    for old in retired {
        if !live.contains_key(&old.number()) {
            store.packs.close(old.number());
            old.remove()?;
        }
    }
    Ok(())
}

/// Frees the blocks of dead records in place, for a disk without space to copy the live ones.
fn punch_dead(store: &SqliteStore) -> Result<(), StoreError> {
    let mut retired = Vec::new();
    for (number, _) in store.packs.segments()? {
        retired.extend(store.packs.retire(number)?);
    }
    let mut live = live_records(store)?;
    for old in retired {
        let mut records = live.remove(&old.number()).unwrap_or_default();
        records.sort_unstable_by_key(|(_, place)| place.offset);
        let mut dead_from = 0;
        for (_, place) in &records {
            punch_between(&old, dead_from, place.offset)?;
            dead_from = place.offset + HEADER as u64 + u64::from(place.length);
        }
        punch_between(&old, dead_from, old.size())?;
    }
    Ok(())
}

fn punch_between(old: &RetiredSegment, from: u64, to: u64) -> Result<(), StoreError> {
    /// A smaller range frees no block.
    const BLOCK: u64 = 4096;
    if to.saturating_sub(from) >= BLOCK { old.punch(from, to - from) } else { Ok(()) }
}

/// Empties and removes segments with enough dead space. Cheapest first, so that a full disk has
/// more room before larger copies.
pub(super) fn evacuate(store: &mut SqliteStore, effort: CompactEffort) -> Result<(), StoreError> {
    let live = live_records(store)?;
    let heavy: Vec<(u64, u32)> = store
        .packs
        .segments()?
        .into_iter()
        .map(|(number, size)| (kept_in(&live, number), number, size))
        .filter(|(kept, _, size)| *size > 0 && size - kept.min(size) >= least_dead(effort, *size))
        .map(|(kept, number, _)| (kept, number))
        .collect();
    empty(store, heavy)
}

/// Merges small segments if there are many.
pub(super) fn merge_small(store: &mut SqliteStore) -> Result<(), StoreError> {
    let live = live_records(store)?;
    let segments = store.packs.segments()?;
    let older = segments.iter().rev().skip(1);
    let small: Vec<(u64, u32)> = older
        .filter(|(_, size)| *size > 0 && *size < SMALL)
        .map(|(number, _)| (kept_in(&live, *number), *number))
        .collect();
    if small.len() > FEW { empty(store, small) } else { Ok(()) }
}

fn kept_in(live: &HashMap<u32, Vec<(Digest, Location)>>, number: u32) -> u64 {
    let records = live.get(&number).into_iter().flatten();
    records.map(|(_, place)| HEADER as u64 + u64::from(place.length)).sum()
}

/// Empties and removes these segments; each has the number of its live bytes.
fn empty(store: &mut SqliteStore, mut segments: Vec<(u64, u32)>) -> Result<(), StoreError> {
    segments.sort_unstable();
    let newest = store.packs.segments()?.last().map(|(number, _)| *number);
    let mut retired = Vec::new();
    for (_, number) in segments {
        retired.extend(store.packs.retire(number)?);
    }
    if retired.iter().any(|old| Some(old.number()) == newest) {
        store.packs.begin_segment()?;
    }
    // Read again under the locks: the last writers may have committed since.
    let mut live = live_records(store)?;
    for old in retired {
        let records = live.remove(&old.number()).unwrap_or_default();
        move_records(store, old, &records)?;
    }
    Ok(())
}

pub(super) fn live_records(
    store: &SqliteStore,
) -> Result<HashMap<u32, Vec<(Digest, Location)>>, StoreError> {
    let mut live: HashMap<u32, Vec<(Digest, Location)>> = HashMap::new();
    let mut broken = None;
    let listed = rows::each_blob(&store.db, &mut |blob| match blob {
        Ok(blob) => live.entry(blob.1.segment).or_default().push(blob),
        Err(error) => broken = Some(error),
    });
    store.rows("listing what the packs hold", broken.map_or(listed, Err))?;
    Ok(live)
}

/// Copies these records to another segment, durably, reads them back, updates their rows, and
/// removes the old segment. A segment with a damaged record stays, for a later attempt at recovery.
fn move_records(
    store: &mut SqliteStore,
    old: RetiredSegment,
    records: &[(Digest, Location)],
) -> Result<(), StoreError> {
    let mut packs = Packs::new(store.dir.join(super::PACKS));
    let copied = copy_records(store, &mut packs, records);
    if !matches!(copied, Ok(true)) {
        packs.discard_pending()?;
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
    packs.mark_committed();
    // Rows first, then the file: a crash in between leaves dead space, the other order lost contents.
    store.packs.close(old.number());
    old.remove()
}

/// Returns whether every record could be read before and after copying.
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
    // Compare with the original before it is removed: this is the last moment at which a bad copy does
    // no harm.
    for (digest, from) in records {
        if packs.read_record(&packs.pending()[digest])? != store.packs.read_record(from)? {
            return Ok(false);
        }
    }
    Ok(true)
}
