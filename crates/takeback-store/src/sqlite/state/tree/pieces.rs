//! Nodes, and bytes that name nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::NUMBER;
use crate::blob::{Digest, compress};
use crate::sqlite::varint::push_varint;

/// A node, by its digest, and by its number once it has one.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) digest: Digest,
    number: Arc<AtomicU64>,
}

impl Part {
    pub(super) fn new(digest: Digest) -> Self {
        Self { digest, number: Arc::new(AtomicU64::new(0)) }
    }

    /// Whoever writes the node into a store says which number it has there.
    pub(crate) fn set_number(&self, number: u64) {
        self.number.store(number, Ordering::Release);
    }

    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }
}

/// A node that may not be in the store yet.
#[derive(Debug)]
pub(crate) struct NewNode {
    pub(crate) part: Part,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    /// As it will lie in the store.
    Packed(Vec<u8>),
    /// Names others, whose numbers must be known first.
    Naming(Pieces),
}

impl Body {
    /// As it lies in the store. All nodes that it names must have their numbers.
    pub(crate) fn packed(self) -> Vec<u8> {
        match self {
            Self::Packed(bytes) => bytes,
            Self::Naming(pieces) => pack(&pieces.numbered(), NAMING_COMPRESSED_FROM),
        }
    }
}

/// Bytes with the names of nodes in between.
#[derive(Debug, Default, Clone)]
pub(crate) struct Pieces {
    pub(super) bytes: Vec<u8>,
    /// Each with the place in `bytes` before which it stands.
    pub(super) parts: Vec<(usize, Part)>,
}

impl Pieces {
    pub(super) fn name(&mut self, part: &Part) {
        self.parts.push((self.bytes.len(), part.clone()));
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len() + NUMBER * self.parts.len()
    }

    /// Of the bytes, with the digest of each node where it is named.
    pub(crate) fn digest_into(&self, hasher: &mut blake3::Hasher) {
        let mut done = 0;
        for (at, part) in &self.parts {
            hasher.update(&self.bytes[done..*at]);
            hasher.update(&part.digest.0);
            done = *at;
        }
        hasher.update(&self.bytes[done..]);
    }

    pub(crate) fn digest(&self) -> Digest {
        let mut hasher = blake3::Hasher::new();
        self.digest_into(&mut hasher);
        Digest(*hasher.finalize().as_bytes())
    }

    /// Packed at once if that can be: so it is not left to the one who writes for all.
    pub(crate) fn into_body(self) -> Body {
        if self.parts.is_empty() {
            Body::Packed(pack(&self.bytes, COMPRESSED_FROM))
        } else {
            Body::Naming(self)
        }
    }

    /// The bytes, with the number of each node where it is named. All must have theirs.
    pub(super) fn numbered(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size());
        let mut done = 0;
        for (at, part) in &self.parts {
            out.extend_from_slice(&self.bytes[done..*at]);
            push_varint(&mut out, part.number());
            done = *at;
        }
        out.extend_from_slice(&self.bytes[done..]);
        out
    }
}

/// The nodes that saving a value makes, in an order in which each comes after those that it names.
#[derive(Debug, Default)]
pub(crate) struct NewNodes {
    pub(crate) nodes: Vec<NewNode>,
    /// How many bytes they hold, before they are packed.
    pub(crate) bytes: usize,
    /// Where a value is written to be compared.
    pub(super) scratch: Vec<u8>,
}

pub(super) fn add_node(pieces: Pieces, nodes: &mut NewNodes) -> Part {
    let part = Part::new(pieces.digest());
    nodes.bytes += pieces.bytes.len();
    nodes.nodes.push(NewNode { part: part.clone(), body: pieces.into_body() });
    part
}

pub(super) const RAW: u8 = 0;
pub(super) const ZSTD: u8 = 1;
/// To compress a shorter body costs a tenth of a wait for the disk and saves less than a page.
pub(super) const COMPRESSED_FROM: usize = 1200;
/// What names nodes repeats itself: the keys of a list's maps.
const NAMING_COMPRESSED_FROM: usize = 200;

/// A body as it lies in the store.
pub(super) fn pack(bytes: &[u8], compressed_from: usize) -> Vec<u8> {
    let compressed = if bytes.len() >= compressed_from { compress(bytes) } else { None };
    let mut out = Vec::with_capacity(bytes.len() + 4);
    match compressed {
        Some(compressed) if compressed.len() + 8 < bytes.len() => {
            out.push(ZSTD);
            push_varint(&mut out, bytes.len() as u64);
            out.extend_from_slice(&compressed);
        }
        _ => {
            out.push(RAW);
            out.extend_from_slice(bytes);
        }
    }
    out
}
