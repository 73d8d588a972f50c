//! Makes what is kept smaller when there is time: contents that came in raw, since somebody waited for
//! them, are compressed; segments that are mostly dead, and many small ones, are written anew.
//!
//! A bounded piece at a time. What has been looked at is noted in the file `repacked`, so that what
//! does not shrink is not tried again and again; without it, it is.

use std::collections::BTreeMap;
use std::path::PathBuf;

use rusqlite::TransactionBehavior;

use super::SqliteStore;
use super::compact::{Thrift, evacuate, merge_small};
use super::pack::{HEADER, Location, Packs};
use super::rows;
use super::schema::io_error;
use crate::blob::{Digest, Encoding, PackedBlob};
use crate::disk::{self, CrashPoint, crash_point};
use crate::store::{Repacked, StoreError};

/// Less is not worth the look.
const LEAST: u32 = 4 << 10;

pub(super) fn repack(store: &mut SqliteStore, budget: u64) -> Result<Repacked, StoreError> {
    let mut seen = Seen::load(store)?;
    let listed = rows::raw_blobs(&store.db, LEAST);
    let mut raw = store.rows("looking for contents to compress", listed)?;
    raw.retain(|(_, place)| place.offset >= seen.until(place.segment));
    let mut read = 0;
    let now = raw
        .iter()
        .take_while(|(_, place)| {
            let fits = read < budget;
            read += u64::from(place.length);
            fits
        })
        .count();
    if now == 0 {
        evacuate(store, Thrift::WorthIt)?;
        merge_small(store)?;
        return Ok(Repacked::default());
    }
    let gained = compress(store, &raw[..now])?;
    for (_, place) in &raw[..now] {
        seen.note(place);
    }
    seen.save(store)?;
    // Then the segments they were in are looked at.
    Ok(Repacked { gained, more: true })
}

/// Compresses those that shrink; answers by how much, once what they were is given back.
fn compress(store: &mut SqliteStore, raw: &[(Digest, Location)]) -> Result<u64, StoreError> {
    let mut packs = Packs::new(store.dir.join(super::PACKS));
    let compressed = append_compressed(store, &mut packs, raw);
    if !matches!(&compressed, Ok(moves) if !moves.is_empty()) {
        packs.give_up()?;
        return compressed.map(|_none| 0);
    }
    let moves = compressed?;
    let moved = (|| {
        let transaction = store.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for (digest, from) in &moves {
            rows::repack_blob(&transaction, digest, from, &packs.pending()[digest])?;
        }
        crash_point(CrashPoint::Commit);
        transaction.commit()?;
        crash_point(CrashPoint::Committed);
        Ok(())
    })();
    store.rows("noting compressed contents", moved)?;
    let gained = moves
        .iter()
        .map(|(digest, from)| u64::from(from.length.saturating_sub(packs.pending()[digest].length)))
        .sum();
    packs.committed();
    Ok(gained)
}

/// Those that have shrunk, durable and read back. Damaged ones stay as they are.
fn append_compressed(
    store: &SqliteStore,
    packs: &mut Packs,
    raw: &[(Digest, Location)],
) -> Result<Vec<(Digest, Location)>, StoreError> {
    let mut moves = Vec::new();
    for (digest, from) in raw {
        let Some(bytes) = store.packs.read(from)? else { continue };
        let size = from.size;
        let blob = PackedBlob { digest: *digest, size, encoding: Encoding::Raw, bytes };
        let Some(contents) = blob.unpack() else { continue };
        let blob = PackedBlob::thoroughly(*digest, contents);
        if blob.encoding == Encoding::Zstd {
            packs.append(&blob)?;
            moves.push((*digest, *from));
        }
    }
    packs.make_durable()?;
    for (digest, _) in &moves {
        let Location { size, encoding, .. } = packs.pending()[digest];
        let bytes = packs.read(&packs.pending()[digest])?;
        let blob = bytes.map(|bytes| PackedBlob { digest: *digest, size, encoding, bytes });
        if blob.and_then(|blob| blob.unpack()).is_none() {
            return Err(StoreError::DamagedBlob { digest: *digest });
        }
    }
    Ok(moves)
}

/// How far each segment has been looked at.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen(BTreeMap<u32, u64>);

impl Seen {
    /// What cannot be read has not been looked at.
    fn load(store: &SqliteStore) -> Result<Self, StoreError> {
        let path = Self::path(store);
        let text = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            read => read.map_err(|source| io_error(&path, "reading it", source))?,
        };
        let line = |line: &str| {
            let (segment, until) = line.split_once(' ')?;
            Some((u32::from_str_radix(segment, 16).ok()?, until.parse().ok()?))
        };
        Ok(Self(text.lines().filter_map(line).collect()))
    }

    fn until(&self, segment: u32) -> u64 {
        self.0.get(&segment).copied().unwrap_or(0)
    }

    fn note(&mut self, place: &Location) {
        let end = place.offset + HEADER as u64 + u64::from(place.length);
        self.0.insert(place.segment, end.max(self.until(place.segment)));
    }

    /// Without the segments that are gone.
    fn save(mut self, store: &SqliteStore) -> Result<(), StoreError> {
        let there: Vec<u32> = store.packs.segments()?.into_iter().map(|(n, _)| n).collect();
        self.0.retain(|segment, _| there.contains(segment));
        let lines: String =
            self.0.iter().map(|(segment, until)| format!("{segment:08x} {until}\n")).collect();
        let path = Self::path(store);
        disk::replace_private_file(&path, lines.as_bytes())
            .map(drop)
            .map_err(|source| io_error(&path, "noting what was looked at", source))
    }

    fn path(store: &SqliteStore) -> PathBuf {
        store.dir.join("repacked")
    }
}
