//! The bundle: one file with a piece of history. Nothing else knows its bytes.
//!
//! `docs/design/bundle-format.md` describes them. A [`BundleWriter`] writes record after record; a
//! [`BundleFile`] is a file that was read and verified as a whole: its checksum, every record, their
//! consistency ([`super::check`]), and every blob by its digest. Neither holds the contents of more than one
//! record in memory.

mod error;
mod reader;
mod records;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt as _;

use takeback_store::Encoding;
use takeback_store::{
    Change, Digest, Entry, PackedBlob, Point, Session, Timestamp, Turn, WorkPath,
};

pub use self::error::BundleError;

const MAGIC: &[u8; 16] = b"takeback bundle\n";
const VERSION: u32 = 1;
/// Where the first record begins.
const START: u64 = 20;
/// Kind and length of a record.
const RECORD_HEAD: usize = 5;
/// The counts and the checksum of the last record.
const END_BODY: usize = 8 * KINDS.len() + 32;
const END: u8 = 255;

/// A larger record is not written, and is refused when read.
const RECORD_MAX: usize = 16 << 20;
/// All records but those of blobs, in bytes and in number.
const METADATA_MAX: u64 = 256 << 20;
const METADATA_COUNT_MAX: u64 = 2_000_000;
const BLOB_COUNT_MAX: u64 = 4_000_000;
/// Contents above this are cut into parts.
const PART_MAX: u64 = takeback_store::CHUNKED_ABOVE;
/// Milliseconds of the year 10000, which no clock shows.
const TIME_END: Timestamp = Timestamp(253_402_300_800_000);

/// The kind of a record. Records come in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Session = 1,
    Turn = 2,
    Base = 3,
    Change = 4,
    Point = 5,
    /// An agent's state. Reserved: no version writes it yet.
    State = 6,
    Blob = 7,
}

const KINDS: [Kind; 7] =
    [Kind::Session, Kind::Turn, Kind::Base, Kind::Change, Kind::Point, Kind::State, Kind::Blob];

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        KINDS.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// How much a bundle may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BundleLimits {
    /// Bytes of all contents together, unpacked.
    pub contents: u64,
    /// Whether paths outside the workspace are accepted.
    pub outside: OutsidePolicy,
}

impl BundleLimits {
    /// The documented limit.
    pub const CONTENTS: u64 = 4 << 30;
}

impl Default for BundleLimits {
    fn default() -> Self {
        Self { contents: Self::CONTENTS, outside: OutsidePolicy::Refuse }
    }
}

/// Whether a bundle may have paths outside the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutsidePolicy {
    /// The bundle is refused.
    Refuse,
    /// They are imported.
    Accept,
}

/// A piece of history: a small log of its own, whose changes count from 1. Its points' positions are
/// such numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Piece {
    /// A parent comes before its children.
    pub(super) sessions: Vec<Session>,
    pub(super) turns: Vec<Turn>,
    /// The entry at each path before the first change; a path that is not listed was absent.
    pub(super) base: Vec<(WorkPath, Entry)>,
    pub(super) changes: Vec<Change>,
    pub(super) points: Vec<Point>,
}

/// Writes a bundle from its first byte to its last, in the order of its methods.
pub(super) struct BundleWriter<'a> {
    sink: &'a mut dyn Write,
    hasher: blake3::Hasher,
    counts: [u64; KINDS.len()],
    bytes: u64,
    body: Vec<u8>,
}

/// What a finished bundle holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BundleSize {
    pub(super) blobs: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error("a record of {0} bytes is too large for a bundle")]
    TooLarge(usize),
    #[error("cannot write the bundle")]
    Io(#[source] io::Error),
}

impl<'a> BundleWriter<'a> {
    pub(super) fn new(sink: &'a mut dyn Write) -> Result<Self, WriteError> {
        let mut writer = Self {
            sink,
            hasher: blake3::Hasher::new(),
            counts: [0; KINDS.len()],
            bytes: 0,
            body: Vec::new(),
        };
        writer.raw(MAGIC)?;
        writer.raw(&VERSION.to_le_bytes())?;
        Ok(writer)
    }

    pub(super) fn piece(&mut self, piece: &Piece) -> Result<(), WriteError> {
        for session in &piece.sessions {
            self.record(Kind::Session, |out| records::put_session(out, session))?;
        }
        for turn in &piece.turns {
            self.record(Kind::Turn, |out| records::put_turn(out, turn))?;
        }
        for (path, entry) in &piece.base {
            self.record(Kind::Base, |out| records::put_base(out, path, entry))?;
        }
        for change in &piece.changes {
            self.record(Kind::Change, |out| records::put_change(out, change))?;
        }
        for point in &piece.points {
            self.record(Kind::Point, |out| records::put_point(out, point))?;
        }
        Ok(())
    }

    /// Parts come before the blob they belong to.
    pub(super) fn blob(&mut self, blob: &PackedBlob) -> Result<(), WriteError> {
        self.record(Kind::Blob, |out| records::put_blob(out, blob))
    }

    pub(super) fn finish(mut self) -> Result<BundleSize, WriteError> {
        let mut counts = Vec::new();
        self.counts.iter().for_each(|count| counts.extend_from_slice(&count.to_le_bytes()));
        let length = u32::try_from(END_BODY).expect("it is small");
        self.raw(&[END])?;
        self.raw(&length.to_le_bytes())?;
        self.raw(&counts)?;
        let checksum = *self.hasher.finalize().as_bytes();
        self.raw(&checksum)?;
        self.sink.flush().map_err(WriteError::Io)?;
        Ok(BundleSize { blobs: self.counts[Kind::Blob as usize - 1], bytes: self.bytes })
    }

    fn record(&mut self, kind: Kind, put: impl FnOnce(&mut Vec<u8>)) -> Result<(), WriteError> {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        put(&mut body);
        let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= RECORD_MAX);
        let Some(length) = length else { return Err(WriteError::TooLarge(body.len())) };
        self.raw(&[kind as u8])?;
        self.raw(&length.to_le_bytes())?;
        self.raw(&body)?;
        self.body = body;
        self.counts[kind as usize - 1] += 1;
        Ok(())
    }

    fn raw(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.sink.write_all(bytes).map_err(WriteError::Io)
    }
}

/// A bundle that was read to its end and is valid.
#[derive(Debug)]
pub struct BundleFile {
    file: File,
    pub(super) piece: Piece,
    blobs: Vec<BlobAt>,
}

/// Where the record of a blob is.
#[derive(Debug, Clone, Copy)]
struct BlobAt {
    digest: Digest,
    body: u64,
    length: usize,
}

impl BundleFile {
    /// Reads and verifies all of `file`, from its first byte.
    pub fn read(file: File, limits: &BundleLimits) -> Result<Self, BundleError> {
        let (piece, blobs) = reader::read(&file, limits)?;
        Ok(Self { file, piece, blobs })
    }

    pub(super) fn digests(&self) -> impl Iterator<Item = &Digest> {
        self.blobs.iter().map(|at| &at.digest)
    }

    /// Passes every blob that `wanted` accepts to `take`, parts before the blob they belong to. Each is
    /// verified again: another process may have written to the file since it was checked.
    pub(super) fn each_blob<E: From<BundleError>>(
        &self,
        mut wanted: impl FnMut(&Digest) -> Result<bool, E>,
        mut take: impl FnMut(PackedBlob) -> Result<(), E>,
    ) -> Result<(), E> {
        let places = self.blobs.iter().map(|at| (at.digest, *at)).collect();
        for at in &self.blobs {
            if wanted(&at.digest)? {
                let blob = blob_at(&self.file, at)?;
                let same = match blob.encoding {
                    Encoding::Raw | Encoding::Zstd => {
                        blob.size <= PART_MAX
                            && !reader::is_padded(&blob)
                            && blob.unpack().is_some()
                    }
                    Encoding::Chunks => reader::assembles(&self.file, &blob, &places)?,
                };
                if blob.digest != at.digest || !same {
                    return Err(BundleError::Changed.into());
                }
                take(blob)?;
            }
        }
        Ok(())
    }
}

fn blob_at(file: &File, at: &BlobAt) -> Result<PackedBlob, BundleError> {
    let mut body = vec![0; at.length];
    file.read_exact_at(&mut body, at.body).map_err(|source| BundleError::Io { source })?;
    records::blob(&body).ok_or(BundleError::Changed)
}
