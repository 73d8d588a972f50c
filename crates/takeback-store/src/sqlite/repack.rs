//! Compresses contents further in the background: what was stored raw or at a fast level because an
//! agent was waiting. Also rewrites segments that are mostly dead, and merges small ones.
//!
//! Works on one segment at a time and rewrites it as a whole or not at all, so that at most one
//! segment exists twice. The file `repacked` lists the examined segments; without it they are
//! examined again.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use rusqlite::TransactionBehavior;

use super::SqliteStore;
use super::compact::{evacuate, live_records, merge_small};
use super::pack::{HEADER, Location, Packs, RetiredSegment, header};
use super::rows;
use super::schema::io_error;
use crate::blob::{Digest, Encoding, PackedBlob};
use crate::disk::{self, CrashPoint, crash_point};
use crate::store::{CompactEffort, RepackStats, StoreError};

/// A segment that has grown by less is not examined again.
const LEAST: u64 = 256 << 10;

/// A segment is rewritten if that is expected to shrink it by one part in this many.
const PART: u64 = 16;

pub(super) fn repack(store: &mut SqliteStore, budget: u64) -> Result<RepackStats, StoreError> {
    let mut seen = ExaminedSegments::load(store)?;
    let (mut read, mut gained) = (0, 0);
    for (number, size) in store.packs.segments()? {
        if !seen.has_unexamined(number, size) {
            continue;
        }
        if read >= budget {
            return Ok(RepackStats { gained, more: true });
        }
        read += size;
        gained += rewrite(store, number, size, &mut seen)?;
        seen.save(store)?;
    }
    evacuate(store, CompactEffort::Worthwhile)?;
    merge_small(store)?;
    if read > 0 {
        store.rows("reclaiming space", rows::vacuum(&store.db))?;
    }
    Ok(RepackStats { gained, more: false })
}

/// Rewrites a segment if that is worth it and returns the number of bytes freed. Skips a segment
/// that another process appends to until the next time, and keeps one with damage for a later
/// attempt at recovery.
fn rewrite(
    store: &mut SqliteStore,
    number: u32,
    size: u64,
    seen: &mut ExaminedSegments,
) -> Result<u64, StoreError> {
    let records = live_records(store)?.remove(&number).unwrap_or_default();
    if !is_worth_it(store, &records, size)? {
        seen.note(number, size);
        return Ok(0);
    }
    let Some(old) = store.packs.retire(number)? else { return Ok(0) };
    // Read again under the lock: its last writer may have committed since.
    let records = live_records(store)?.remove(&number).unwrap_or_default();
    let mut packs = Packs::new(store.dir.join(super::PACKS));
    packs.append_only_to(seen.examined(&store.packs.segments()?));
    let copied = copy_smaller(store, &mut packs, &records);
    if !matches!(copied, Ok(true)) {
        packs.discard_pending()?;
        seen.note(number, size);
        return copied.map(|_damaged| 0);
    }
    move_rows(store, &packs, &records)?;
    for (segment, end) in packs.ends() {
        seen.note(segment, end);
    }
    let kept: u64 = records.iter().map(|(digest, _)| record_of(&packs.pending()[digest])).sum();
    packs.mark_committed();
    remove(store, old)?;
    Ok(size.saturating_sub(kept))
}

fn remove(store: &SqliteStore, old: RetiredSegment) -> Result<(), StoreError> {
    // The number of the newest segment must not be reused.
    if store.packs.segments()?.last().is_some_and(|(newest, _)| *newest == old.number()) {
        store.packs.begin_segment()?;
    }
    store.packs.close(old.number());
    old.remove()
}

fn record_of(place: &Location) -> u64 {
    HEADER as u64 + u64::from(place.length)
}

/// Compresses a sample of the records and expects the same ratio for the others.
fn is_worth_it(
    store: &SqliteStore,
    records: &[(Digest, Location)],
    size: u64,
) -> Result<bool, StoreError> {
    const TRIED: usize = 64;
    let kept: u64 = records.iter().map(|(_, place)| record_of(place)).sum();
    let (mut before, mut after) = (0, 0);
    for (digest, place) in records.iter().step_by(records.len().div_ceil(TRIED).max(1)) {
        before += record_of(place);
        let smaller = smaller(store, digest, place)?;
        after += smaller.map_or(record_of(place), |blob| (HEADER + blob.bytes.len()) as u64);
    }
    let expected = if before == 0 { 0 } else { u128::from(kept) * after as u128 / before as u128 };
    Ok(expected + u128::from(size / PART) < u128::from(size))
}

/// The same contents in fewer bytes; `None` if that does not help or they are damaged.
fn smaller(
    store: &SqliteStore,
    digest: &Digest,
    place: &Location,
) -> Result<Option<PackedBlob>, StoreError> {
    let Location { size, encoding, .. } = *place;
    if encoding == Encoding::Chunks {
        return Ok(None);
    }
    let Some(bytes) = store.packs.read(place)? else { return Ok(None) };
    let blob = PackedBlob { digest: *digest, size, encoding, bytes };
    let smaller = blob.unpack().map(|contents| PackedBlob::compress_fully(*digest, contents));
    Ok(smaller.filter(|smaller| smaller.bytes.len() < blob.bytes.len()))
}

/// Returns whether every record could be read before and after copying.
fn copy_smaller(
    store: &SqliteStore,
    packs: &mut Packs,
    records: &[(Digest, Location)],
) -> Result<bool, StoreError> {
    for (digest, from) in records {
        let Some(mut record) = store.packs.read_record(from)? else { return Ok(false) };
        let bytes = record.split_off(HEADER);
        let Location { size, encoding, .. } = *from;
        let blob = PackedBlob { digest: *digest, size, encoding, bytes };
        if record != header(digest, from) || !is_whole(&blob) {
            return Ok(false);
        }
        packs.append(&smaller(store, digest, from)?.unwrap_or(blob))?;
    }
    packs.make_durable()?;
    for (digest, _) in records {
        let place = packs.pending()[digest];
        let Location { size, encoding, .. } = place;
        let bytes = packs.read(&place)?;
        let blob = bytes.map(|bytes| PackedBlob { digest: *digest, size, encoding, bytes });
        if !blob.is_some_and(|blob| is_whole(&blob)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A list of chunks cannot be verified here.
fn is_whole(blob: &PackedBlob) -> bool {
    blob.encoding == Encoding::Chunks || blob.unpack().is_some()
}

/// Updates rows to the new locations, in small transactions so that other processes do not wait
/// long.
fn move_rows(
    store: &mut SqliteStore,
    packs: &Packs,
    records: &[(Digest, Location)],
) -> Result<(), StoreError> {
    const AT_ONCE: usize = 2000;
    let named = records.chunks(AT_ONCE).try_for_each(|some| {
        let transaction = store.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (digest, from) in some {
            rows::move_blob(&transaction, digest, from, &packs.pending()[digest])?;
        }
        crash_point(CrashPoint::Commit);
        transaction.commit()?;
        crash_point(CrashPoint::Committed);
        Ok(())
    });
    store.rows("moving contents", named)
}

/// The segments that were examined, with their sizes at that time.
#[derive(Debug, Default, PartialEq, Eq)]
struct ExaminedSegments(BTreeMap<u32, u64>);

impl ExaminedSegments {
    /// Lines that cannot be parsed are ignored: their segments are examined again.
    fn load(store: &SqliteStore) -> Result<Self, StoreError> {
        let path = Self::path(store);
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(|source| io_error(&path, "reading it", source))?,
        };
        let line = |line: &str| {
            let (segment, size) = line.split_once(' ')?;
            Some((u32::from_str_radix(segment, 16).ok()?, size.parse().ok()?))
        };
        Ok(Self(String::from_utf8_lossy(&text).lines().filter_map(line).collect()))
    }

    /// Whether a segment has grown enough since it was examined.
    fn has_unexamined(&self, segment: u32, size: u64) -> bool {
        let examined = self.0.get(&segment).copied().unwrap_or(0);
        size.saturating_sub(examined) >= LEAST.max(examined / 4)
    }

    /// The segments without unexamined data.
    fn examined(&self, segments: &[(u32, u64)]) -> Vec<u32> {
        let whole = |(number, size): &&(u32, u64)| self.0.get(number) == Some(size);
        segments.iter().filter(whole).map(|(number, _)| *number).collect()
    }

    fn note(&mut self, segment: u32, size: u64) {
        self.0.insert(segment, size);
    }

    /// Saves the list without segments that no longer exist.
    fn save(&mut self, store: &SqliteStore) -> Result<(), StoreError> {
        let there: Vec<u32> = store.packs.segments()?.into_iter().map(|(n, _)| n).collect();
        self.0.retain(|segment, _| there.contains(segment));
        let lines: String =
            self.0.iter().map(|(segment, size)| format!("{segment:08x} {size}\n")).collect();
        let path = Self::path(store);
        match disk::replace_private_file(&path, lines.as_bytes()) {
            // Another thread of this process has just replaced the file under the same temporary
            // name.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            noted => noted
                .map(drop)
                .map_err(|source| io_error(&path, "noting the examined segments", source)),
        }
    }

    fn path(store: &SqliteStore) -> PathBuf {
        store.dir.join("repacked")
    }
}
