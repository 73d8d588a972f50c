//! Nodes, and bytes that refer to nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::NUMBER;
use crate::blob::{Digest, compress};
use crate::sqlite::varint::push_varint;

/// A reference to a node: its digest, and its number once it has one.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    pub(crate) digest: Digest,
    number: Arc<AtomicU64>,
}

impl Part {
    pub(super) fn new(digest: Digest) -> Self {
        Self { digest, number: Arc::new(AtomicU64::new(0)) }
    }

    /// Sets the number that the node got in the store.
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
    /// Packed for the store.
    Packed(Vec<u8>),
    /// Refers to other nodes, whose numbers must be known first.
    Naming(Pieces),
}

impl Body {
    /// The packed bytes. All nodes that it refers to must have numbers.
    pub(crate) fn packed(self) -> Vec<u8> {
        match self {
            Self::Packed(bytes) => bytes,
            Self::Naming(pieces) => pack(&pieces.numbered(), NAMING_COMPRESSED_FROM),
        }
    }
}

/// Bytes with references to nodes in between.
#[derive(Debug, Default, Clone)]
pub(crate) struct Pieces {
    pub(super) bytes: Vec<u8>,
    /// Each with the offset in `bytes` at which it is inserted.
    pub(super) parts: Vec<(usize, Part)>,
}

impl Pieces {
    pub(super) fn name(&mut self, part: &Part) {
        self.parts.push((self.bytes.len(), part.clone()));
    }

    pub(super) fn size(&self) -> usize {
        self.bytes.len() + NUMBER * self.parts.len()
    }

    /// Hashes the bytes, with the digest of each node in place of its number.
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

    /// Packs now if possible, so that the thread that writes for all does not have to.
    pub(crate) fn into_body(self) -> Body {
        if self.parts.is_empty() {
            Body::Packed(pack(&self.bytes, COMPRESSED_FROM))
        } else {
            Body::Naming(self)
        }
    }

    /// The bytes with the numbers of nodes. All nodes must have numbers.
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

/// The nodes that saving a value creates. Each comes after the ones that it refers to.
#[derive(Debug, Default)]
pub(crate) struct NewNodes {
    pub(crate) nodes: Vec<NewNode>,
    /// Their total size before packing.
    pub(crate) bytes: usize,
    /// A buffer for encoding a value to compare it.
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
/// Compressing a shorter body costs a tenth of a wait for the disk and saves less than a page.
pub(super) const COMPRESSED_FROM: usize = 1200;
/// A lower limit for bodies that refer to nodes, because they repeat the keys of a list's maps.
const NAMING_COMPRESSED_FROM: usize = 200;

/// Packs a body for the store.
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
