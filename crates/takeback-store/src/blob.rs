//! Contents as the store takes them: hashed, compressed and cut into chunks.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use zstd::bulk::{Compressor, Decompressor};

/// The BLAKE3 hash of some bytes. Shown and serialized as 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Hashes `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// The text that is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a digest of 64 hex digits")]
pub struct InvalidDigest(pub String);

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let invalid = || InvalidDigest(text.to_owned());
        if text.len() != 64 || !text.is_ascii() {
            return Err(invalid());
        }
        let mut digest = [0; 32];
        for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_err| invalid())?;
        }
        Ok(Self(digest))
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// How the bytes of a [`PackedBlob`] are written. The numbers are part of the store's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Encoding {
    /// The contents themselves.
    Raw = 0,
    /// The contents as one Zstandard frame.
    Zstd = 1,
    /// The digests of the blobs that make up this one, in order.
    Chunks = 2,
}

impl Encoding {
    /// The encoding with this number, if there is one.
    #[must_use]
    pub fn from_byte(byte: u8) -> Option<Self> {
        [Self::Raw, Self::Zstd, Self::Chunks].into_iter().find(|encoding| *encoding as u8 == byte)
    }
}

/// Contents ready to be put into a store: hashed and, where that pays, compressed. Making one is
/// the expensive part and needs no store, so many threads can do it at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedBlob {
    /// The digest of the contents, not of `bytes`.
    pub digest: Digest,
    /// Size of the contents, not of `bytes`.
    pub size: u64,
    /// How `bytes` are encoded.
    pub encoding: Encoding,
    /// The bytes as the store keeps them.
    pub bytes: Vec<u8>,
}

/// When to compress contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packing {
    /// Now, where that pays.
    Now,
    /// An agent is waiting: contents above [`RAW_ABOVE`] stay raw until
    /// [`Upkeep::repack`](crate::Upkeep::repack) compresses them.
    Later,
}

/// Contents up to this many bytes are always compressed: that costs less than the wait for the
/// disk.
pub const RAW_ABOVE: usize = 64 << 10;

/// Contents above this are sampled first, to see whether they compress.
const SAMPLED_ABOVE: usize = 32 << 10;
const SAMPLE: usize = 4 << 10;

/// Contents above this many bytes are cut into chunks at places that depend on the contents, so
/// that one edit in a large file costs one chunk.
pub const CHUNKED_ABOVE: u64 = 4 << 20;
const CHUNK_MIN: usize = 256 << 10;
const CHUNK_AVERAGE: usize = 1 << 20;
const CHUNK_MAX: usize = 4 << 20;

impl PackedBlob {
    /// Hashes and compresses contents that fit in memory. Never cuts them into chunks;
    /// [`Self::stream`] does.
    #[must_use]
    pub fn new(contents: Vec<u8>) -> Self {
        Self::with_digest(Digest::of(&contents), contents)
    }

    /// Like [`Self::new`], for contents whose digest is already known. The digest is not checked.
    #[must_use]
    pub fn with_digest(digest: Digest, contents: Vec<u8>) -> Self {
        Self::pack(digest, contents, Packing::Now)
    }

    /// Like [`Self::with_digest`], with a choice of when to compress.
    #[must_use]
    pub fn pack(digest: Digest, contents: Vec<u8>, packing: Packing) -> Self {
        let size = contents.len() as u64;
        let is_left = packing == Packing::Later && contents.len() > RAW_ABOVE;
        if !is_left && let Some(bytes) = compress_if_smaller(&contents) {
            return Self { digest, size, encoding: Encoding::Zstd, bytes };
        }
        Self { digest, size, encoding: Encoding::Raw, bytes: contents }
    }

    /// Like [`Self::with_digest`], but compresses harder; for background work.
    #[must_use]
    pub fn compress_fully(digest: Digest, contents: Vec<u8>) -> Self {
        /// A twentieth smaller than at level 1 on source text, for seven times the work.
        const LEVEL: i32 = 7;
        let size = contents.len() as u64;
        match zstd::bulk::compress(&contents, LEVEL) {
            Ok(bytes) if bytes.len() + bytes.len() / 16 < contents.len() => {
                Self { digest, size, encoding: Encoding::Zstd, bytes }
            }
            _ => Self { digest, size, encoding: Encoding::Raw, bytes: contents },
        }
    }

    /// Packs contents of any size in bounded memory. Passes each part to `sink` as it is made, and
    /// the blob for the whole last. Returns the digest and size of the whole.
    pub fn stream(reader: &mut dyn Read, sink: &mut dyn FnMut(Self)) -> io::Result<(Digest, u64)> {
        Self::stream_with(reader, Packing::Now, sink)
    }

    /// Like [`Self::stream`], with a choice of when to compress.
    pub fn stream_with(
        reader: &mut dyn Read,
        packing: Packing,
        sink: &mut dyn FnMut(Self),
    ) -> io::Result<(Digest, u64)> {
        let mut head = Vec::new();
        reader.take(CHUNKED_ABOVE + 1).read_to_end(&mut head)?;
        if head.len() as u64 <= CHUNKED_ABOVE {
            let blob = Self::pack(Digest::of(&head), head, packing);
            let whole = (blob.digest, blob.size);
            sink(blob);
            return Ok(whole);
        }
        let mut hasher = blake3::Hasher::new();
        let mut size = 0;
        let mut digests = Vec::new();
        let rest = io::Cursor::new(head).chain(reader);
        for chunk in fastcdc::v2020::StreamCDC::new(rest, CHUNK_MIN, CHUNK_AVERAGE, CHUNK_MAX) {
            let contents = chunk?.data;
            hasher.update(&contents);
            size += contents.len() as u64;
            let blob = Self::pack(Digest::of(&contents), contents, packing);
            digests.extend_from_slice(&blob.digest.0);
            sink(blob);
        }
        let digest = Digest(*hasher.finalize().as_bytes());
        sink(Self { digest, size, encoding: Encoding::Chunks, bytes: digests });
        Ok((digest, size))
    }

    /// The chunks that make up this blob, in order; empty if it is not made of chunks.
    #[must_use]
    pub fn chunks(&self) -> Vec<Digest> {
        match self.encoding {
            Encoding::Raw | Encoding::Zstd => Vec::new(),
            Encoding::Chunks => {
                self.bytes.as_chunks::<32>().0.iter().map(|digest| Digest(*digest)).collect()
            }
        }
    }

    /// The contents of a blob that is not made of chunks; `None` if the bytes are damaged.
    #[must_use]
    pub fn unpack(&self) -> Option<Vec<u8>> {
        let size = usize::try_from(self.size).ok()?;
        let contents = match self.encoding {
            Encoding::Raw => self.bytes.clone(),
            Encoding::Zstd => {
                // A damaged size may ask for more memory than there is: fail instead of aborting.
                let mut contents = Vec::new();
                contents.try_reserve_exact(size).ok()?;
                decompress(&self.bytes, &mut contents)?;
                contents
            }
            Encoding::Chunks => return None,
        };
        (contents.len() == size && Digest::of(&contents) == self.digest).then_some(contents)
    }
}

/// The compressed contents, if they are at least a sixteenth smaller.
fn compress_if_smaller(contents: &[u8]) -> Option<Vec<u8>> {
    let shrinks = |contents: &[u8]| {
        compress(contents).filter(|bytes| bytes.len() + bytes.len() / 16 < contents.len())
    };
    if contents.len() > SAMPLED_ABOVE {
        let sample = |at: usize| &contents[at..at + SAMPLE];
        let last = contents.len() - SAMPLE;
        if [last / 2, last / 5, last].into_iter().all(|at| shrinks(sample(at)).is_none()) {
            return None;
        }
    }
    shrinks(contents)
}

// Making a compressor costs twice what it then costs to compress a source file with it.
thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static COMPRESSED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

pub(crate) fn compress(contents: &[u8]) -> Option<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            // Level 1 costs eight times the hash already; higher levels gain 3 % on source text.
            *kept = Compressor::new(1).ok();
        }
        // Reuse one buffer: compressed source text fills about a third of the worst-case bound.
        COMPRESSED.with_borrow_mut(|buffer| {
            buffer.clear();
            buffer.reserve(zstd::zstd_safe::compress_bound(contents.len()));
            kept.as_mut()?.compress_to_buffer(contents, buffer).ok()?;
            Some(buffer.as_slice().to_vec())
        })
    })
}

pub(crate) fn decompress(bytes: &[u8], contents: &mut Vec<u8>) -> Option<usize> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = Decompressor::new().ok();
        }
        kept.as_mut()?.decompress_to_buffer(bytes, contents).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[0]
        })
        .take(len)
        .collect()
    }

    fn packed(contents: &[u8]) -> (Digest, Vec<PackedBlob>) {
        let mut blobs = Vec::new();
        let (digest, size) = PackedBlob::stream(&mut &contents[..], &mut |blob| blobs.push(blob))
            .expect("memory reads");
        assert_eq!((digest, size), (Digest::of(contents), contents.len() as u64));
        (digest, blobs)
    }

    #[test]
    fn contents_survive_packing() {
        for contents in [Vec::new(), b"fn main() {}\n".repeat(500), noise(10_000)] {
            assert_eq!(PackedBlob::new(contents.clone()).unpack(), Some(contents));
        }
    }

    #[test]
    fn incompressible_contents_stay_raw() {
        let text = b"let number = 1;\n".repeat(8 << 10);
        let encoding = |contents: &[u8]| PackedBlob::new(contents.to_vec()).encoding;
        let mut half = noise(64 << 10);
        half.extend_from_slice(&text);
        let cases: [(&[u8], Encoding); 4] = [
            (&noise(1 << 20), Encoding::Raw),
            (&noise(SAMPLED_ABOVE + 1), Encoding::Raw),
            (&text, Encoding::Zstd),
            (&half, Encoding::Zstd),
        ];
        for (contents, expected) in cases {
            assert_eq!(encoding(contents), expected, "{} bytes", contents.len());
        }
    }

    #[test]
    fn large_contents_stay_raw_while_an_agent_waits() {
        let text = b"let number = 1;\n".repeat(8 << 10);
        let small = &text[..RAW_ABOVE];
        for (contents, packing, expected) in [
            (&text[..], Packing::Now, Encoding::Zstd),
            (&text[..], Packing::Later, Encoding::Raw),
            (small, Packing::Later, Encoding::Zstd),
        ] {
            let blob = PackedBlob::pack(Digest::of(contents), contents.to_vec(), packing);
            assert_eq!((blob.encoding, blob.unpack()), (expected, Some(contents.to_vec())));
        }
        let large = text.repeat(40);
        let mut parts = Vec::new();
        let mut sink = |blob: PackedBlob| parts.push((blob.encoding, blob.size));
        let whole = PackedBlob::stream_with(&mut &large[..], Packing::Later, &mut sink);
        assert_eq!(whole.expect("memory reads"), (Digest::of(&large), large.len() as u64));
        let last = parts.pop();
        assert_eq!(last, Some((Encoding::Chunks, large.len() as u64)));
        assert!(parts.iter().all(|(encoding, _)| *encoding == Encoding::Raw), "{parts:?}");
    }

    #[test]
    fn a_flipped_bit_is_noticed() {
        let mut blob = PackedBlob::new(noise(1000));
        blob.bytes[500] ^= 1;
        assert_eq!(blob.unpack(), None);
    }

    #[test]
    fn a_wrong_or_enormous_size_is_noticed() {
        let mut blob = PackedBlob::new(b"text ".repeat(1000));
        assert_eq!(blob.encoding, Encoding::Zstd);
        for size in [0, 4999, 5001, u64::MAX >> 1, u64::MAX] {
            blob.size = size;
            assert_eq!(blob.unpack(), None, "{size}");
        }
    }

    #[test]
    fn one_change_in_a_large_file_costs_few_chunks() {
        let mut contents = noise(12 << 20);
        let (_, before) = packed(&contents);
        contents.insert(6 << 20, b'!');
        let (_, after) = packed(&contents);
        let known: std::collections::HashSet<_> = before.iter().map(|blob| blob.digest).collect();
        let new: u64 =
            after.iter().filter(|b| !known.contains(&b.digest)).map(|b| b.bytes.len() as u64).sum();
        assert!(after.len() > 4, "{} parts", after.len());
        assert!(new <= 2 * CHUNK_MAX as u64, "{new} new bytes");
    }
}
