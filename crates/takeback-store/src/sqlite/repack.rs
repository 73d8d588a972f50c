//! Makes what is kept smaller when there is time: what came in raw or hastily compressed, since
//! somebody waited for it, is compressed thoroughly; segments that are mostly dead, and many small
//! ones, are written anew.
//!
//! A segment at a time: it is written anew as a whole, or left as it is, so that never more is there
//! twice. The file `repacked` notes which have been looked at; without it they are looked at again.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use rusqlite::TransactionBehavior;

use super::SqliteStore;
use super::compact::{evacuate, live_records, merge_small};
use super::pack::{HEADER, Location, Packs, Retired, header};
use super::rows;
use super::schema::io_error;
use crate::blob::{Digest, Encoding, PackedBlob};
use crate::disk::{self, CrashPoint, crash_point};
use crate::store::{CompactEffort, RepackStats, StoreError};

/// A segment that has grown by less is not looked at again.
const LEAST: u64 = 256 << 10;

/// A segment is written anew if that is expected to make it smaller by this part.
const PART: u64 = 16;

pub(super) fn repack(store: &mut SqliteStore, budget: u64) -> Result<RepackStats, StoreError> {
    let mut seen = Seen::load(store)?;
    let (mut read, mut gained) = (0, 0);
    for (number, size) in store.packs.segments()? {
        if !seen.is_news(number, size) {
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
        store.rows("giving space back", rows::vacuum(&store.db))?;
    }
    Ok(RepackStats { gained, more: false })
}

/// Writes a segment anew if that is worth it; answers the bytes that were given back. One that
/// somebody appends to is left for the next time, and one with damage for whoever may still get
/// something out of it.
fn rewrite(
    store: &mut SqliteStore,
    number: u32,
    size: u64,
    seen: &mut Seen,
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
    packs.append_only_to(seen.looked_at(&store.packs.segments()?));
    let copied = copy_smaller(store, &mut packs, &records);
    if !matches!(copied, Ok(true)) {
        packs.give_up()?;
        seen.note(number, size);
        return copied.map(|_damaged| 0);
    }
    name_there(store, &packs, &records)?;
    for (segment, end) in packs.ends() {
        seen.note(segment, end);
    }
    let kept: u64 = records.iter().map(|(digest, _)| record_of(&packs.pending()[digest])).sum();
    packs.committed();
    remove(store, old)?;
    Ok(size.saturating_sub(kept))
}

fn remove(store: &SqliteStore, old: Retired) -> Result<(), StoreError> {
    // Its number must not be used again.
    if store.packs.segments()?.last().is_some_and(|(newest, _)| *newest == old.number()) {
        store.packs.begin_segment()?;
    }
    store.packs.close(old.number());
    old.remove()
}

fn record_of(place: &Location) -> u64 {
    HEADER as u64 + u64::from(place.length)
}

/// Tries some of the records, and expects the same of the others.
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

/// The same contents in fewer bytes; `None`: there are none, or they are damaged.
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

/// Whether all of them could be read, there and where they are now.
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

/// A list of chunks says nothing that could be checked here.
fn is_whole(blob: &PackedBlob) -> bool {
    blob.encoding == Encoding::Chunks || blob.unpack().is_some()
}

/// Rows get the new places, some at a time: nobody waits long.
fn name_there(
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

/// The segments that have been looked at, with their sizes then.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen(BTreeMap<u32, u64>);

impl Seen {
    /// What cannot be read has not been looked at.
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

    /// Whether there is enough in a segment that has not been looked at.
    fn is_news(&self, segment: u32, size: u64) -> bool {
        let looked_at = self.0.get(&segment).copied().unwrap_or(0);
        size.saturating_sub(looked_at) >= LEAST.max(looked_at / 4)
    }

    /// The segments in which nothing else is.
    fn looked_at(&self, segments: &[(u32, u64)]) -> Vec<u32> {
        let whole = |(number, size): &&(u32, u64)| self.0.get(number) == Some(size);
        segments.iter().filter(whole).map(|(number, _)| *number).collect()
    }

    fn note(&mut self, segment: u32, size: u64) {
        self.0.insert(segment, size);
    }

    /// Without the segments that are gone.
    fn save(&mut self, store: &SqliteStore) -> Result<(), StoreError> {
        let there: Vec<u32> = store.packs.segments()?.into_iter().map(|(n, _)| n).collect();
        self.0.retain(|segment, _| there.contains(segment));
        let lines: String =
            self.0.iter().map(|(segment, size)| format!("{segment:08x} {size}\n")).collect();
        let path = Self::path(store);
        match disk::replace_private_file(&path, lines.as_bytes()) {
            // Another thread of this process has just done the same.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            noted => noted
                .map(drop)
                .map_err(|source| io_error(&path, "noting what was looked at", source)),
        }
    }

    fn path(store: &SqliteStore) -> PathBuf {
        store.dir.join("repacked")
    }
}
