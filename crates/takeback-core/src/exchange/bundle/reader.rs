//! Reads a bundle from its first byte to its last and trusts nothing in it.
//!
//! First the checksum of the whole file, so that damage is called damage; then record by record,
//! each no longer than what is left of the file; then the piece of history as a whole; then every
//! blob, unpacked to no more than the size it says, which is limited.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};

use takeback_store::Encoding;
use takeback_store::{Change, Digest, PackedBlob, Seq, Timestamp, WorkPath};

use super::{
    BLOB_COUNT_MAX, BlobAt, BundleError, BundleLimits, END, END_BODY, KINDS, Kind, MAGIC,
    METADATA_COUNT_MAX, METADATA_MAX, PART_MAX, Piece, RECORD_HEAD, RECORD_MAX, START, TIME_END,
    VERSION, blob_at, records,
};
use crate::exchange::check::{NeededBlobs, check, plain_path};

pub(super) fn read(
    file: &File,
    limits: &BundleLimits,
) -> Result<(Piece, Vec<BlobAt>), BundleError> {
    let counts = verify(file, limits)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut input = BufReader::with_capacity(1 << 18, file);
    input.seek(SeekFrom::Start(START)).map_err(failed)?;
    let end = length.saturating_sub((RECORD_HEAD + END_BODY) as u64);
    let mut records = Records { input, at: START, end, body: Vec::new() };
    let mut parts = Parts { limits, piece: Piece::default(), found: [0; KINDS.len()], bytes: 0 };
    let mut blobs = None;
    let mut last = Kind::Session;
    while let Some((kind, at)) = records.next()? {
        if kind < last {
            return Err(BundleError::Record { at, why: "it is out of order" });
        }
        last = kind;
        parts.count(kind, records.body.len() as u64)?;
        if kind == Kind::Blob {
            if blobs.is_none() {
                blobs = Some(Blobs::new(check(&parts.piece)?, limits));
            }
            let blobs = blobs.as_mut().expect("just made");
            blobs.take(file, &records.body, at + RECORD_HEAD as u64)?;
        } else {
            parts.take(kind, &records.body, at)?;
        }
    }
    if parts.found != counts {
        return Err(BundleError::Counts);
    }
    let blobs = match blobs {
        Some(blobs) => blobs,
        None => Blobs::new(check(&parts.piece)?, limits),
    };
    Ok((parts.piece, blobs.finish()?))
}

fn failed(source: io::Error) -> BundleError {
    BundleError::Io { source }
}

/// Verifies the first bytes, the last record and the checksum over everything; returns the counts of the
/// records.
fn verify(mut file: &File, limits: &BundleLimits) -> Result<[u64; KINDS.len()], BundleError> {
    const TAIL: usize = RECORD_HEAD + END_BODY;
    let length = file.metadata().map_err(failed)?.len();
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut start = Vec::new();
    file.take(START).read_to_end(&mut start).map_err(failed)?;
    if !start.starts_with(MAGIC) {
        // An empty file counts as cut short, not as something else.
        let begun = MAGIC.starts_with(&start);
        return Err(if begun { BundleError::Cut } else { BundleError::Foreign });
    }
    let Some((_, version)) = start.split_last_chunk::<4>().filter(|_| start.len() == 20) else {
        return Err(BundleError::Cut);
    };
    let found = u32::from_le_bytes(*version);
    if found > VERSION {
        return Err(BundleError::Newer { found, known: VERSION });
    }
    let hashed = length.checked_sub(32).filter(|_| length >= START + TAIL as u64);
    let hashed = hashed.ok_or(BundleError::Cut)?;
    // Packed contents are hardly ever larger than unpacked ones, and then by little.
    if length / 2 > limits.contents.saturating_add(METADATA_MAX) {
        return Err(BundleError::TooLarge { limit: limits.contents });
    }
    file.seek(SeekFrom::Start(length - TAIL as u64)).map_err(failed)?;
    let mut tail = [0; TAIL];
    file.read_exact(&mut tail).map_err(failed)?;
    let (head, tail) = tail.split_at(RECORD_HEAD);
    if head[0] != END || head[1..] != (END_BODY as u32).to_le_bytes() {
        return Err(BundleError::Cut);
    }
    file.seek(SeekFrom::Start(0)).map_err(failed)?;
    let mut hasher = blake3::Hasher::new();
    let mut input = file.take(hashed);
    let mut buffer = vec![0; 1 << 18];
    loop {
        match input.read(&mut buffer).map_err(failed)? {
            0 => break,
            read => hasher.update(&buffer[..read]),
        };
    }
    let (counts, checksum) = tail.split_at(END_BODY - 32);
    if hasher.finalize().as_bytes() != checksum || found == 0 {
        return Err(BundleError::Damaged);
    }
    let mut read = [0; KINDS.len()];
    for (count, bytes) in read.iter_mut().zip(counts.as_chunks::<8>().0) {
        *count = u64::from_le_bytes(*bytes);
    }
    Ok(read)
}

/// The records between the beginning and the last one.
struct Records<'f> {
    input: BufReader<&'f File>,
    at: u64,
    end: u64,
    body: Vec<u8>,
}

impl Records<'_> {
    /// Reads the next record's body; returns its kind and where it began.
    fn next(&mut self) -> Result<Option<(Kind, u64)>, BundleError> {
        let at = self.at;
        if at == self.end {
            return Ok(None);
        }
        let wrong = |why| BundleError::Record { at, why };
        let left = (self.end - at).checked_sub(RECORD_HEAD as u64);
        let left = left.ok_or(wrong("the file ends in it"))?;
        let mut head = [0; RECORD_HEAD];
        self.input.read_exact(&mut head).map_err(changed)?;
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length);
        if u64::from(length) > left {
            return Err(wrong("it is longer than the file"));
        }
        if length as usize > RECORD_MAX {
            return Err(wrong("it is too long"));
        }
        let kind = Kind::from_byte(kind).ok_or(wrong("its kind is unknown"))?;
        self.body.resize(length as usize, 0);
        self.input.read_exact(&mut self.body).map_err(changed)?;
        self.at = at + RECORD_HEAD as u64 + u64::from(length);
        Ok(Some((kind, at)))
    }
}

fn changed(error: io::Error) -> BundleError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => BundleError::Changed,
        _ => BundleError::Io { source: error },
    }
}

/// The piece of history as far as it has been read.
struct Parts<'a> {
    limits: &'a BundleLimits,
    piece: Piece,
    found: [u64; KINDS.len()],
    bytes: u64,
}

impl Parts<'_> {
    fn count(&mut self, kind: Kind, length: u64) -> Result<(), BundleError> {
        self.found[kind as usize - 1] += 1;
        if kind == Kind::Blob {
            let many = self.found[kind as usize - 1] > BLOB_COUNT_MAX;
            let error = BundleError::TooMany { what: "blobs", limit: BLOB_COUNT_MAX };
            return if many { Err(error) } else { Ok(()) };
        }
        self.bytes += length;
        let records: u64 = self.found[..Kind::Blob as usize - 1].iter().sum();
        if records > METADATA_COUNT_MAX {
            return Err(BundleError::TooMany { what: "records", limit: METADATA_COUNT_MAX });
        }
        if self.bytes > METADATA_MAX {
            return Err(BundleError::TooMany { what: "bytes of records", limit: METADATA_MAX });
        }
        Ok(())
    }

    fn take(&mut self, kind: Kind, body: &[u8], at: u64) -> Result<(), BundleError> {
        let torn = || BundleError::Record { at, why: "its fields are invalid" };
        match kind {
            Kind::Session => {
                let session = records::session(body).ok_or_else(torn)?;
                let what = || format!("the session {}", session.id);
                in_time(session.started_at, what)?;
                session.ended_at.map_or(Ok(()), |time| in_time(time, what))?;
                self.piece.sessions.push(session);
            }
            Kind::Turn => {
                let turn = records::turn(body).ok_or_else(torn)?;
                let what = || format!("the turn {}", turn.id);
                in_time(turn.opened_at, what)?;
                turn.closed_at.map_or(Ok(()), |time| in_time(time, what))?;
                self.piece.turns.push(turn);
            }
            Kind::Base => {
                let (path, entry) = records::base(body).ok_or_else(torn)?;
                self.piece.base.push((self.path(path)?, entry));
            }
            Kind::Change => {
                let (path, step) = records::change(body).ok_or_else(torn)?;
                let seq = Seq(self.piece.changes.len() as u64 + 1);
                in_time(step.time, || format!("its change {seq}"))?;
                let records::Step { before, after, author, evidence, time, cancels } = step;
                let path = self.path(path)?;
                let change = Change {
                    seq,
                    path,
                    before,
                    after,
                    author,
                    evidence,
                    time,
                    changed_at: None,
                    correction: None,
                    cancels,
                };
                self.piece.changes.push(change);
            }
            Kind::Point => {
                let point = records::point(body).ok_or_else(torn)?;
                in_time(point.created_at, || format!("its point {}", point.id))?;
                self.piece.points.push(point);
            }
            Kind::State | Kind::Blob => {
                let why = "its kind is unknown to this version";
                return Err(BundleError::Record { at, why });
            }
        }
        Ok(())
    }

    fn path(&self, bytes: Vec<u8>) -> Result<WorkPath, BundleError> {
        plain_path(bytes, self.limits.outside)
    }
}

fn in_time(time: Timestamp, what: impl Fn() -> String) -> Result<(), BundleError> {
    if (Timestamp(0)..TIME_END).contains(&time) {
        Ok(())
    } else {
        Err(BundleError::Time { what: what() })
    }
}

/// The blobs as far as they have been read.
struct Blobs<'a> {
    needed: NeededBlobs,
    limits: &'a BundleLimits,
    places: HashMap<Digest, BlobAt>,
    order: Vec<BlobAt>,
    /// Blobs that are parts of others.
    parts: HashSet<Digest>,
    /// Blobs that are made of parts.
    wholes: HashSet<Digest>,
    unpacked: u64,
    assembled: u64,
}

impl<'a> Blobs<'a> {
    fn new(needed: NeededBlobs, limits: &'a BundleLimits) -> Self {
        Self {
            needed,
            limits,
            places: HashMap::new(),
            order: Vec::new(),
            parts: HashSet::new(),
            wholes: HashSet::new(),
            unpacked: 0,
            assembled: 0,
        }
    }

    fn take(&mut self, file: &File, body: &[u8], at: u64) -> Result<(), BundleError> {
        let torn = BundleError::Record { at, why: "its fields are invalid" };
        let blob = records::blob(body).ok_or(torn)?;
        let digest = blob.digest;
        if let Some(needed) = self.needed.get(&digest)
            && needed.size != blob.size
        {
            return Err(BundleError::BlobSize { path: needed.path.display() });
        }
        let sum = if blob.encoding == Encoding::Chunks {
            &mut self.assembled
        } else {
            &mut self.unpacked
        };
        *sum = sum.saturating_add(blob.size);
        if *sum > self.limits.contents {
            return Err(BundleError::TooLarge { limit: self.limits.contents });
        }
        let right = match blob.encoding {
            Encoding::Raw | Encoding::Zstd if is_padded(&blob) => {
                return Err(BundleError::Padded { digest });
            }
            Encoding::Raw | Encoding::Zstd => blob.size <= PART_MAX && blob.unpack().is_some(),
            Encoding::Chunks => {
                let chunks = blob.chunks();
                if !self.needed.contains_key(&digest) {
                    return Err(BundleError::BlobUnneeded { digest });
                }
                let known =
                    |part: &Digest| self.places.contains_key(part) && !self.wholes.contains(part);
                if !chunks.iter().all(known) {
                    return Err(BundleError::NoPart { digest });
                }
                let right = assembles(file, &blob, &self.places)?;
                self.parts.extend(chunks);
                self.wholes.insert(digest);
                right
            }
        };
        if !right {
            return Err(BundleError::WrongBlob { digest });
        }
        let place = BlobAt { digest, body: at, length: body.len() };
        if self.places.insert(digest, place).is_some() {
            return Err(BundleError::BlobTwice { digest });
        }
        self.order.push(place);
        Ok(())
    }

    fn finish(self) -> Result<Vec<BlobAt>, BundleError> {
        if let Some(lost) = self.needed.iter().find(|(digest, _)| !self.places.contains_key(digest))
        {
            return Err(BundleError::NoBlob { path: lost.1.path.display() });
        }
        let used =
            |at: &&BlobAt| self.needed.contains_key(&at.digest) || self.parts.contains(&at.digest);
        match self.order.iter().find(|at| !used(at)) {
            Some(at) => Err(BundleError::BlobUnneeded { digest: at.digest }),
            None => Ok(self.order),
        }
    }
}

/// Whether a blob without parts is longer than packing makes it. Such a part would cost its whole length each
/// time it is named.
pub(super) fn is_padded(blob: &PackedBlob) -> bool {
    blob.bytes.len() as u64 > blob.size.saturating_add(blob.size / 128).saturating_add(1024)
}

/// Whether the parts of `whole`, one after the other, have its digest and size. Reads no more than that size.
pub(super) fn assembles(
    file: &File,
    whole: &PackedBlob,
    places: &HashMap<Digest, BlobAt>,
) -> Result<bool, BundleError> {
    let mut hasher = blake3::Hasher::new();
    let mut size = 0;
    let parts = whole.chunks();
    if parts.is_empty() || !whole.bytes.len().is_multiple_of(32) {
        return Ok(false);
    }
    for part in parts {
        let Some(place) = places.get(&part) else { return Ok(false) };
        let Some(contents) = blob_at(file, place)?.unpack() else { return Ok(false) };
        size += contents.len() as u64;
        if size > whole.size || contents.is_empty() {
            return Ok(false);
        }
        hasher.update(&contents);
    }
    Ok(size == whole.size && *hasher.finalize().as_bytes() == whole.digest.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_limited() {
        let limits = BundleLimits::default();
        let piece = Piece::default;
        let parts = |kind: Kind, found, bytes| {
            let mut counts = [0; KINDS.len()];
            counts[kind as usize - 1] = found;
            Parts { limits: &limits, piece: piece(), found: counts, bytes }
        };
        let last = METADATA_COUNT_MAX - 1;
        assert!(parts(Kind::Change, last, 0).count(Kind::Base, 9).is_ok());
        let said =
            |mut parts: Parts<'_>, kind, length| parts.count(kind, length).unwrap_err().to_string();
        let many = said(parts(Kind::Change, last + 1, 0), Kind::Base, 9);
        assert_eq!(many, "it has more records than 2000000");
        let many = said(parts(Kind::Blob, BLOB_COUNT_MAX, 0), Kind::Blob, 9);
        assert_eq!(many, "it has more blobs than 4000000");
        let much = said(parts(Kind::Turn, 1, METADATA_MAX - 8), Kind::Turn, 9);
        assert_eq!(much, "it has more bytes of records than 268435456");
    }
}
