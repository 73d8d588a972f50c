//! Reads and verifies values: every digest is computed again from what was read.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::{Map, Number, Value};

use super::pieces::{RAW, ZSTD};
use super::{
    FALSE, FLOAT, LIST, LIST_TREE, MAP, MAP_TREE, NEGATIVE, NULL, TEXT, TEXT_TREE, TRUE, UNSIGNED,
};
use crate::blob::{Digest, decompress};
use crate::sqlite::varint::take_varint;

/// A source of nodes.
pub(crate) trait Fetch {
    type Error: From<TreeError>;

    fn node(&mut self, number: u64) -> Result<Node, Self::Error>;
}

/// A node as it was read.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    /// The digest that it should have.
    pub(crate) digest: Digest,
    /// The unpacked body.
    pub(crate) body: Vec<u8>,
    /// Whether the digest was compared with the body.
    pub(crate) is_verified: bool,
}

impl Node {
    pub(crate) fn unpacked(digest: Digest, packed: &[u8]) -> Result<Self, TreeError> {
        let body = unpack(packed).ok_or(TreeError::Bytes("a node of it cannot be unpacked"))?;
        Ok(Self { digest, body, is_verified: false })
    }

    /// Verifies a node that refers to no other nodes.
    pub(crate) fn verified(self, number: u64) -> Result<Self, TreeError> {
        let (expected, found) = (self.digest, Digest::of(&self.body));
        if found != expected {
            return Err(TreeError::Digest { number, expected, found });
        }
        Ok(Self { is_verified: true, ..self })
    }
}

/// Why a value that was read is not the one that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TreeError {
    /// The digest of a node does not match its contents.
    Digest {
        number: u64,
        expected: Digest,
        found: Digest,
    },
    /// A node refers to one with a higher number, which can only have been written later.
    Order {
        number: u64,
        below: u64,
    },
    Bytes(&'static str),
}

impl std::fmt::Display for TreeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Digest { number, expected, found } => {
                write!(f, "node {number} should have the digest {expected} and has {found}")
            }
            Self::Order { number, below } => write!(f, "node {below} names node {number}"),
            Self::Bytes(why) => f.write_str(why),
        }
    }
}

/// Reads `count` consecutive values and hashes them into `hasher`.
pub(crate) fn read<F: Fetch>(
    body: &[u8],
    count: usize,
    hasher: &mut blake3::Hasher,
    fetch: &mut F,
) -> Result<Vec<Value>, F::Error> {
    let mut reader = Reader::new(body, u64::MAX);
    let values = (0..count).map(|_| reader.value(hasher, fetch)).collect::<Result<_, _>>()?;
    reader.end(hasher)?;
    Ok(values)
}

/// Visits the nodes that some values refer to. `is_new` gets each number and whether the node is
/// pure text; it returns false for a node that it has seen, which is then not read again.
pub(crate) fn parts_of<F: Fetch>(
    body: &[u8],
    fetch: &mut F,
    is_new: &mut dyn FnMut(u64, bool) -> bool,
) -> Result<(), F::Error> {
    let mut reader = Reader::new(body, u64::MAX);
    while !reader.is_at_end() {
        reader.skim(fetch, is_new)?;
    }
    Ok(())
}

/// Verifies `count` values like [`read`], without building them, and each node once: `known` has
/// the digests of verified nodes.
pub(crate) fn verify<F: Fetch>(
    body: &[u8],
    count: usize,
    hasher: &mut blake3::Hasher,
    fetch: &mut F,
    known: &mut HashMap<u64, Digest>,
) -> Result<(), F::Error> {
    let mut reader = Reader::new(body, u64::MAX);
    for _ in 0..count {
        reader.verify(hasher, fetch, known)?;
    }
    Ok(reader.end(hasher)?)
}

/// Unpacks a body; `None` if it is damaged.
pub(crate) fn unpack(packed: &[u8]) -> Option<Vec<u8>> {
    match packed.split_first()? {
        (&RAW, bytes) => Some(bytes.to_vec()),
        (&ZSTD, rest) => {
            let (size, bytes) = take_varint(rest)?;
            let size = usize::try_from(size).ok()?;
            let mut contents = Vec::new();
            contents.try_reserve_exact(size).ok()?;
            decompress(bytes, &mut contents)?;
            (contents.len() == size).then_some(contents)
        }
        _ => None,
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The offset up to which bytes were hashed.
    hashed: usize,
    /// The number of this node. It may only refer to lower numbers, which rules out cycles.
    number: u64,
}

const TORN: TreeError = TreeError::Bytes("it ends too early");

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8], number: u64) -> Self {
        Self { bytes, at: 0, hashed: 0, number }
    }

    fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    fn end(&self, hasher: &mut blake3::Hasher) -> Result<(), TreeError> {
        if !self.is_at_end() {
            return Err(TreeError::Bytes("something follows its end"));
        }
        hasher.update(&self.bytes[self.hashed..]);
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, TreeError> {
        let byte = *self.bytes.get(self.at).ok_or(TORN)?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, TreeError> {
        let (value, rest) = take_varint(&self.bytes[self.at..]).ok_or(TORN)?;
        self.at = self.bytes.len() - rest.len();
        Ok(value)
    }

    /// The number of items that follow. Each has at least one byte, so a count beyond the remaining
    /// bytes is damage.
    fn count(&mut self) -> Result<usize, TreeError> {
        let count = usize::try_from(self.varint()?).ok();
        count.filter(|count| *count <= self.bytes.len() - self.at).ok_or(TORN)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], TreeError> {
        let taken = self.bytes.get(self.at..self.at + length).ok_or(TORN)?;
        self.at += length;
        Ok(taken)
    }

    fn text(&mut self) -> Result<String, TreeError> {
        let length = self.count()?;
        let bytes = self.take(length)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(NOT_TEXT),
        }
    }

    /// The number of a node and its range in the bytes.
    fn named(&mut self) -> Result<(u64, Range<usize>), TreeError> {
        let from = self.at;
        let number = self.varint()?;
        if number >= self.number {
            return Err(TreeError::Order { number, below: self.number });
        }
        Ok((number, from..self.at))
    }

    /// Hashes what was read, with the digest of a node in place of its number.
    fn hash_named(&mut self, named: Range<usize>, digest: &Digest, hasher: &mut blake3::Hasher) {
        hasher.update(&self.bytes[self.hashed..named.start]);
        hasher.update(&digest.0);
        self.hashed = named.end;
    }

    fn number_of(&mut self, tag: u8) -> Result<Number, TreeError> {
        Ok(match tag {
            UNSIGNED => self.varint()?.into(),
            NEGATIVE => {
                let size = self.varint()?;
                let number = 0_i64.checked_sub_unsigned(size);
                number.ok_or(TreeError::Bytes("a number in it is too small"))?.into()
            }
            _ => {
                let bytes = self.take(8)?.first_chunk::<8>().expect("eight were taken");
                let number = f64::from_bits(u64::from_le_bytes(*bytes));
                Number::from_f64(number).ok_or(TreeError::Bytes("a number in it is not finite"))?
            }
        })
    }

    fn value<F: Fetch>(
        &mut self,
        hasher: &mut blake3::Hasher,
        fetch: &mut F,
    ) -> Result<Value, F::Error> {
        Ok(match self.byte()? {
            NULL => Value::Null,
            FALSE => Value::Bool(false),
            TRUE => Value::Bool(true),
            tag @ (UNSIGNED | NEGATIVE | FLOAT) => Value::Number(self.number_of(tag)?),
            TEXT => Value::String(self.text()?),
            LIST => {
                let count = self.count()?;
                let mut items = Vec::with_capacity(count);
                for _ in 0..count {
                    items.push(self.value(hasher, fetch)?);
                }
                Value::Array(items)
            }
            MAP => {
                let mut items = Map::new();
                for _ in 0..self.count()? {
                    let key = self.text()?;
                    items.insert(key, self.value(hasher, fetch)?);
                }
                Value::Object(items)
            }
            TEXT_TREE => {
                let mut text = Vec::new();
                let depth = self.byte()?;
                self.chunks(depth, hasher, fetch, &mut text)?;
                Value::String(String::from_utf8(text).map_err(|_torn| NOT_TEXT)?)
            }
            LIST_TREE => {
                let mut items = Vec::new();
                self.tree(hasher, fetch, &mut |leaf, hasher, fetch| {
                    for _ in 0..leaf.count()? {
                        items.push(leaf.value(hasher, fetch)?);
                    }
                    Ok(leaf.end(hasher)?)
                })?;
                Value::Array(items)
            }
            MAP_TREE => {
                let mut items = Map::new();
                self.tree(hasher, fetch, &mut |leaf, hasher, fetch| {
                    for _ in 0..leaf.count()? {
                        let key = leaf.text()?;
                        items.insert(key, leaf.value(hasher, fetch)?);
                    }
                    Ok(leaf.end(hasher)?)
                })?;
                Value::Object(items)
            }
            _ => return Err(TreeError::Bytes("a value in it is of no known kind").into()),
        })
    }

    /// Concatenates the leaves of a text.
    fn chunks<F: Fetch>(
        &mut self,
        depth: u8,
        hasher: &mut blake3::Hasher,
        fetch: &mut F,
        text: &mut Vec<u8>,
    ) -> Result<(), F::Error> {
        for _ in 0..self.count()? {
            let (number, named) = self.named()?;
            let mut node = fetch.node(number)?;
            let expected = node.digest;
            if depth == 0 {
                if !node.is_verified {
                    node = node.verified(number)?;
                }
                if text.is_empty() {
                    *text = node.body;
                } else {
                    text.extend_from_slice(&node.body);
                }
            } else {
                let mut below = Reader::new(&node.body, number);
                let mut own = blake3::Hasher::new();
                below.chunks(depth - 1, &mut own, fetch, text)?;
                below.end(&mut own)?;
                check(number, expected, &own)?;
            }
            self.hash_named(named, &expected, hasher);
        }
        Ok(())
    }

    /// Passes the leaves of a tree to the visitor in order, each with a hasher.
    fn tree<F: Fetch>(
        &mut self,
        hasher: &mut blake3::Hasher,
        fetch: &mut F,
        take: &mut LeafVisitor<'_, F>,
    ) -> Result<(), F::Error> {
        let depth = self.byte()?;
        self.branches(depth, hasher, fetch, take)
    }

    fn branches<F: Fetch>(
        &mut self,
        depth: u8,
        hasher: &mut blake3::Hasher,
        fetch: &mut F,
        take: &mut LeafVisitor<'_, F>,
    ) -> Result<(), F::Error> {
        for _ in 0..self.count()? {
            let (number, named) = self.named()?;
            let Node { digest: expected, body, .. } = fetch.node(number)?;
            let mut below = Reader::new(&body, number);
            let mut own = blake3::Hasher::new();
            if depth == 0 {
                take(&mut below, &mut own, fetch)?;
            } else {
                below.branches(depth - 1, &mut own, fetch, take)?;
                below.end(&mut own)?;
            }
            check(number, expected, &own)?;
            self.hash_named(named, &expected, hasher);
        }
        Ok(())
    }

    /// Skips a value, except the trees in it, which it passes to the visitor.
    fn skip<E: From<TreeError>>(
        &mut self,
        take: &mut dyn FnMut(&mut Self, Level) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.byte()? {
            NULL | FALSE | TRUE => {}
            tag @ (UNSIGNED | NEGATIVE | FLOAT) => {
                self.number_of(tag)?;
            }
            TEXT => drop(self.text()?),
            tag @ (LIST | MAP) => {
                for _ in 0..self.count()? {
                    if tag == MAP {
                        self.text()?;
                    }
                    self.skip(take)?;
                }
            }
            tag @ (TEXT_TREE | LIST_TREE | MAP_TREE) => {
                let depth = self.byte()?;
                take(self, Level { tag, depth })?;
            }
            _ => return Err(TreeError::Bytes("a value in it is of no known kind").into()),
        }
        Ok(())
    }

    /// Skips a value and reports the nodes that it refers to.
    fn skim<F: Fetch>(
        &mut self,
        fetch: &mut F,
        is_new: &mut dyn FnMut(u64, bool) -> bool,
    ) -> Result<(), F::Error> {
        self.skip(&mut |reader, level| reader.skim_branches(level, fetch, is_new))
    }

    fn skim_branches<F: Fetch>(
        &mut self,
        Level { tag, depth }: Level,
        fetch: &mut F,
        is_new: &mut dyn FnMut(u64, bool) -> bool,
    ) -> Result<(), F::Error> {
        for _ in 0..self.count()? {
            let (number, _) = self.named()?;
            let is_text = depth == 0 && tag == TEXT_TREE;
            if !is_new(number, is_text) || is_text {
                continue;
            }
            let Node { body, .. } = fetch.node(number)?;
            let mut below = Reader::new(&body, number);
            if depth > 0 {
                below.skim_branches(Level { tag, depth: depth - 1 }, fetch, is_new)?;
                continue;
            }
            for _ in 0..below.count()? {
                if tag == MAP_TREE {
                    below.text()?;
                }
                below.skim(fetch, is_new)?;
            }
        }
        Ok(())
    }
}

impl Reader<'_> {
    fn verify<F: Fetch>(
        &mut self,
        hasher: &mut blake3::Hasher,
        fetch: &mut F,
        known: &mut HashMap<u64, Digest>,
    ) -> Result<(), F::Error> {
        self.skip(&mut |reader, level| reader.verify_branches(level, hasher, fetch, known))
    }

    fn verify_branches<F: Fetch>(
        &mut self,
        level: Level,
        hasher: &mut blake3::Hasher,
        fetch: &mut F,
        known: &mut HashMap<u64, Digest>,
    ) -> Result<(), F::Error> {
        for _ in 0..self.count()? {
            let (number, named) = self.named()?;
            let digest = match known.get(&number) {
                Some(digest) => *digest,
                None => {
                    let digest = verified_node(number, level, fetch, known)?;
                    known.insert(number, digest);
                    digest
                }
            };
            self.hash_named(named, &digest, hasher);
        }
        Ok(())
    }
}

/// The nodes of one kind of tree, this many nodes above its leaves.
#[derive(Clone, Copy)]
struct Level {
    tag: u8,
    depth: u8,
}

fn verified_node<F: Fetch>(
    number: u64,
    Level { tag, depth }: Level,
    fetch: &mut F,
    known: &mut HashMap<u64, Digest>,
) -> Result<Digest, F::Error> {
    let Node { digest: expected, body, .. } = fetch.node(number)?;
    let mut below = Reader::new(&body, number);
    let mut own = blake3::Hasher::new();
    if depth > 0 {
        below.verify_branches(Level { tag, depth: depth - 1 }, &mut own, fetch, known)?;
    } else if tag == TEXT_TREE {
        below.at = body.len();
    } else {
        for _ in 0..below.count()? {
            if tag == MAP_TREE {
                below.text()?;
            }
            below.verify(&mut own, fetch, known)?;
        }
    }
    below.end(&mut own)?;
    check(number, expected, &own)?;
    Ok(expected)
}

/// Compares the digest of what was read with the one that the node should have.
fn check(number: u64, expected: Digest, own: &blake3::Hasher) -> Result<(), TreeError> {
    let found = Digest(*own.finalize().as_bytes());
    if found == expected { Ok(()) } else { Err(TreeError::Digest { number, expected, found }) }
}

/// Reads one leaf of a tree.
type LeafVisitor<'a, F> =
    dyn FnMut(&mut Reader<'_>, &mut blake3::Hasher, &mut F) -> Result<(), <F as Fetch>::Error> + 'a;

const NOT_TEXT: TreeError = TreeError::Bytes("a text in it is not UTF-8");
