//! JSON values by structure: a part that was saved before is referred to, not written again.
//!
//! A short value is written inline. A longer text is a *node*; a still longer one is a tree of
//! nodes, cut at places that depend on its contents. A list or map that is too long even with its
//! long items as references is cut into *runs* of items, in a tree of which only the last branch
//! changes on an append. A node is identified by the digest of its value and referred to by its
//! number in the store.
//!
//! [`SavedValue`] is the last saved value in memory: saving the next one costs a comparison and the
//! difference. How a value is cut depends only on the value, so equal values have equal digests,
//! whatever was saved before. `docs/design/store-format.md` describes every byte.

mod pieces;
mod inline_value;
mod read;

use serde_json::Value;

use self::inline_value::push_if_short;
use self::pieces::add_node;
pub(crate) use self::pieces::{Body, NewNodes, Part, Pieces};
pub(crate) use self::read::{Fetch, Node, TreeError, parts_of, read, unpack, verify};
use super::StateError;
use crate::sqlite::varint::push_varint;

/// Shorter values are written inline.
const INLINE: usize = 1536;
/// A run ends after this many items, or when it has grown to [`RUN_BYTES`].
const RUN_ITEMS: usize = 32;
const RUN_BYTES: usize = 1024;
/// The number of nodes that an inner node refers to.
const FAN_OUT: usize = 32;
/// The size of a node's number in the computation of cuts. Fixed, so that cuts do not depend on
/// actual numbers.
const NUMBER: usize = 4;
/// A text above this is cut into chunks.
const CHUNKED_ABOVE: usize = 64 << 10;
const CHUNK_MIN: usize = 4 << 10;
const CHUNK_AVERAGE: usize = 16 << 10;
const CHUNK_MAX: usize = 64 << 10;
/// The nesting limit of the JSON parser.
const DEEPEST: usize = 128;

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const UNSIGNED: u8 = 3;
const NEGATIVE: u8 = 4;
const FLOAT: u8 = 5;
const TEXT: u8 = 6;
const LIST: u8 = 7;
const MAP: u8 = 8;
/// Followed by the depth of the tree and its top nodes.
const TEXT_TREE: u8 = 9;
const LIST_TREE: u8 = 10;
const MAP_TREE: u8 = 11;

/// A value as it was last saved.
#[derive(Debug)]
pub(crate) enum SavedValue {
    /// A short value, written inline.
    Plain(Box<[u8]>),
    Text {
        text: String,
        tree: Tree,
    },
    Items(Items),
}

/// A text, list or map in nodes.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    depth: u8,
    parts: Vec<Part>,
}

/// A list, or a map sorted by key, with at least one part in nodes.
#[derive(Debug, Default)]
pub(crate) struct Items {
    keyed: bool,
    items: Vec<Item>,
    /// The size of all items together, for the computation of cuts.
    whole: usize,
    /// The direction of the last comparison of a list.
    backwards: bool,
    /// Empty if the items, with references, are short enough to be written inline.
    runs: Vec<Run>,
    /// The levels of the tree above the runs. All groups of a level are full except the last.
    upper: Vec<Vec<Part>>,
}

#[derive(Debug)]
struct Item {
    /// Empty in a list.
    key: String,
    value: SavedValue,
}

#[derive(Debug)]
struct Run {
    items: usize,
    /// Whether no item can be added to it.
    is_full: bool,
    part: Part,
}

impl Default for SavedValue {
    fn default() -> Self {
        Self::Plain([NULL].into())
    }
}

impl SavedValue {
    /// Whether it equals `value`.
    fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text { text, .. }, Value::String(other)) => text == other,
            (Self::Items(items), Value::Array(other)) => {
                !items.keyed
                    && items.items.len() == other.len()
                    && items.items.iter().zip(other).all(|(item, other)| item.value.is(other))
            }
            (Self::Items(items), Value::Object(other)) => {
                items.keyed
                    && items.items.len() == other.len()
                    && items
                        .items
                        .iter()
                        .zip(other)
                        .all(|(item, (key, other))| item.key == *key && item.value.is(other))
            }
            (Self::Plain(bytes), Value::String(text)) if text.len() < 0x80 => {
                matches!(**bytes, [TEXT, length, ref rest @ ..]
                    if usize::from(length) == text.len() && rest == text.as_bytes())
            }
            (Self::Plain(bytes), other) => {
                let mut plain = Vec::new();
                push_if_short(other, 0, &mut plain) && **bytes == *plain
            }
            _ => false,
        }
    }

    /// Becomes `value` and returns whether that was a change. `path` is the position in the whole
    /// value, for errors.
    pub(crate) fn update(
        &mut self,
        value: &Value,
        path: &mut Path<'_>,
        nodes: &mut NewNodes,
    ) -> Result<bool, StateError> {
        nodes.scratch.clear();
        if push_if_short(value, path.depth, &mut nodes.scratch) {
            let is_same = matches!(self, Self::Plain(bytes) if **bytes == *nodes.scratch);
            if !is_same {
                *self = Self::Plain(nodes.scratch.as_slice().into());
            }
            return Ok(!is_same);
        }
        path.check()?;
        match (&mut *self, value) {
            (Self::Text { text, .. }, Value::String(new)) if text == new => Ok(false),
            (_, Value::String(new)) => {
                *self = Self::Text { text: new.clone(), tree: text_tree(new.as_bytes(), nodes) };
                Ok(true)
            }
            (Self::Items(items), Value::Array(new)) if !items.keyed => {
                items.update_list(new, path, nodes)
            }
            (Self::Items(items), Value::Object(new)) if items.keyed => {
                items.update_map(new, path, nodes)
            }
            (_, Value::Array(new)) => {
                let mut items = Items::default();
                items.update_list(new, path, nodes)?;
                *self = Self::Items(items);
                Ok(true)
            }
            (_, Value::Object(new)) => {
                let mut items = Items { keyed: true, ..Items::default() };
                items.update_map(new, path, nodes)?;
                *self = Self::Items(items);
                Ok(true)
            }
            _ => Err(path.error("it is nested too deep")),
        }
    }

    pub(crate) fn write(&self, out: &mut Pieces) {
        match self {
            Self::Plain(bytes) => out.bytes.extend_from_slice(bytes),
            Self::Text { tree, .. } => tree.write(TEXT_TREE, out),
            Self::Items(items) => items.write(out),
        }
    }

    /// Its size in the computation of cuts.
    fn size(&self) -> usize {
        match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Text { tree, .. } => 3 + NUMBER * tree.parts.len(),
            Self::Items(items) => items.size(),
        }
    }

    /// An estimate of its memory use.
    pub(crate) fn footprint(&self) -> usize {
        let own = match self {
            Self::Plain(bytes) => bytes.len(),
            Self::Text { text, tree } => text.len() + 64 * tree.parts.len(),
            Self::Items(items) => items
                .items
                .iter()
                .map(|item| item.key.len() + item.value.footprint())
                .sum::<usize>(),
        };
        own + size_of::<Self>() + 32
    }
}

/// The position of a value in the whole, for errors and for the nesting limit.
#[derive(Debug)]
pub(crate) struct Path<'a> {
    pub(crate) above: Option<&'a Self>,
    pub(crate) name: Name<'a>,
    pub(crate) depth: usize,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Name<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    pub(crate) fn root(name: &'a str) -> Self {
        Self { above: None, name: Name::Key(name), depth: 0 }
    }

    fn below(&'a self, name: Name<'a>) -> Self {
        Self { above: Some(self), name, depth: self.depth + 1 }
    }

    fn check(&self) -> Result<(), StateError> {
        if self.depth > DEEPEST { Err(self.error("it is nested too deep")) } else { Ok(()) }
    }

    fn error(&self, why: &'static str) -> StateError {
        StateError::Unserialisable { path: self.pointer(), why }
    }

    fn pointer(&self) -> String {
        let above = self.above.map(Self::pointer).unwrap_or_default();
        match self.name {
            Name::Key(key) => format!("{above}/{}", key.replace('~', "~0").replace('/', "~1")),
            Name::Index(index) => format!("{above}/{index}"),
        }
    }
}

impl Items {
    fn update_list(
        &mut self,
        new: &[Value],
        path: &mut Path<'_>,
        nodes: &mut NewNodes,
    ) -> Result<bool, StateError> {
        let before = self.items.len();
        let common = before.min(new.len());
        let mut same = common;
        for at in self.differing(new) {
            let mut path = path.below(Name::Index(at));
            if self.items[at].value.update(&new[at], &mut path, nodes)? {
                same = same.min(at);
            }
        }
        for (at, value) in new.iter().enumerate().skip(common) {
            let mut item = Item { key: String::new(), value: SavedValue::default() };
            item.value.update(value, &mut path.below(Name::Index(at)), nodes)?;
            self.items.push(item);
        }
        self.items.truncate(new.len());
        let is_same = same == before && same == new.len();
        if !is_same {
            self.cut(same, nodes);
        }
        Ok(!is_same)
    }

    /// The indexes, in order, at which a list and the saved items differ, up to the shorter length.
    fn differing(&mut self, new: &[Value]) -> Vec<usize> {
        let pairs = self.items.iter().zip(new).enumerate();
        let differs = |(at, (item, value)): (usize, (&Item, &Value))| {
            if item.value.is(value) { None } else { Some(at) }
        };
        // A long list exceeds the processor's cache: alternate the direction, so that a comparison
        // starts where the last one ended.
        self.backwards = !self.backwards;
        if self.backwards {
            let mut found: Vec<usize> = pairs.rev().filter_map(differs).collect();
            found.reverse();
            found
        } else {
            pairs.filter_map(differs).collect()
        }
    }

    fn update_map(
        &mut self,
        new: &serde_json::Map<String, Value>,
        path: &mut Path<'_>,
        nodes: &mut NewNodes,
    ) -> Result<bool, StateError> {
        let before = self.items.len();
        if before == new.len()
            && self.items.iter().zip(new).all(|(item, (key, _))| item.key == *key)
        {
            let mut same = before;
            for (at, (item, (key, value))) in self.items.iter_mut().zip(new).enumerate() {
                if item.value.update(value, &mut path.below(Name::Key(key)), nodes)? {
                    same = same.min(at);
                }
            }
            if same < before {
                self.cut(same, nodes);
            }
            return Ok(same < before);
        }
        let mut sorted: Vec<(&String, &Value)> = new.iter().collect();
        sorted.sort_unstable_by_key(|(key, _)| *key);
        let mut same = before.min(sorted.len());
        let mut old = std::mem::take(&mut self.items).into_iter().peekable();
        for (at, (key, value)) in sorted.into_iter().enumerate() {
            while old.peek().is_some_and(|item| item.key < *key) {
                old.next();
                same = same.min(at);
            }
            let mut path = path.below(Name::Key(key));
            if let Some(mut item) = old.next_if(|item| item.key == *key) {
                if item.value.update(value, &mut path, nodes)? {
                    same = same.min(at);
                }
                self.items.push(item);
            } else {
                let mut item = Item { key: key.clone(), value: SavedValue::default() };
                item.value.update(value, &mut path, nodes)?;
                self.items.push(item);
                same = same.min(at);
            }
        }
        let is_same = same == before && same == self.items.len();
        if !is_same {
            self.cut(same, nodes);
        }
        Ok(!is_same)
    }

    /// Cuts the items into runs and those into a tree. The first `same` items are unchanged.
    fn cut(&mut self, same: usize, nodes: &mut NewNodes) {
        self.whole = self.items.iter().map(Item::size).sum();
        if self.whole <= INLINE {
            self.runs.clear();
            self.upper.clear();
            return;
        }
        let mut standing = 0;
        let mut at = 0;
        for run in &self.runs {
            if !run.is_full || at + run.items > same {
                break;
            }
            at += run.items;
            standing += 1;
        }
        self.runs.truncate(standing);
        while at < self.items.len() {
            let run = self.run_from(at, nodes);
            at += run.items;
            self.runs.push(run);
        }
        let mut level: Vec<Part> = self.runs.iter().map(|run| run.part.clone()).collect();
        let mut height = 0;
        while level.len() > FAN_OUT {
            standing /= FAN_OUT;
            if self.upper.len() == height {
                self.upper.push(Vec::new());
            }
            let parents = &mut self.upper[height];
            parents.truncate(standing);
            for group in level.chunks(FAN_OUT).skip(parents.len()) {
                parents.push(group_node(group, nodes));
            }
            level = parents.clone();
            height += 1;
        }
        self.upper.truncate(height);
    }

    fn run_from(&self, from: usize, nodes: &mut NewNodes) -> Run {
        let mut pieces = Pieces::default();
        let mut items = 0;
        let mut is_full = false;
        for item in &self.items[from..] {
            item.write(self.keyed, &mut pieces);
            items += 1;
            if items == RUN_ITEMS || pieces.size() >= RUN_BYTES {
                is_full = true;
                break;
            }
        }
        let mut counted = Pieces::default();
        push_varint(&mut counted.bytes, items as u64);
        let shift = counted.bytes.len();
        counted.bytes.append(&mut pieces.bytes);
        counted.parts.extend(pieces.parts.into_iter().map(|(at, part)| (at + shift, part)));
        Run { items, is_full, part: add_node(counted, nodes) }
    }

    fn write(&self, out: &mut Pieces) {
        if self.runs.is_empty() {
            out.bytes.push(if self.keyed { MAP } else { LIST });
            push_varint(&mut out.bytes, self.items.len() as u64);
            for item in &self.items {
                item.write(self.keyed, out);
            }
            return;
        }
        let runs: Vec<Part>;
        let top = match self.upper.last() {
            Some(top) => top,
            None => {
                runs = self.runs.iter().map(|run| run.part.clone()).collect();
                &runs
            }
        };
        write_tree(if self.keyed { MAP_TREE } else { LIST_TREE }, self.upper.len(), top, out);
    }

    fn size(&self) -> usize {
        match self.upper.last() {
            Some(top) => 3 + NUMBER * top.len(),
            None if self.runs.is_empty() => 3 + self.whole,
            None => 3 + NUMBER * self.runs.len(),
        }
    }
}

impl Item {
    fn write(&self, keyed: bool, out: &mut Pieces) {
        if keyed {
            push_varint(&mut out.bytes, self.key.len() as u64);
            out.bytes.extend_from_slice(self.key.as_bytes());
        }
        self.value.write(out);
    }

    fn size(&self) -> usize {
        self.key.len() + 1 + self.value.size()
    }
}

impl Tree {
    fn write(&self, tag: u8, out: &mut Pieces) {
        write_tree(tag, usize::from(self.depth), &self.parts, out);
    }
}

fn write_tree(tag: u8, depth: usize, parts: &[Part], out: &mut Pieces) {
    out.bytes.extend([tag, depth as u8]);
    push_varint(&mut out.bytes, parts.len() as u64);
    parts.iter().for_each(|part| out.name(part));
}

fn group_node(group: &[Part], nodes: &mut NewNodes) -> Part {
    let mut pieces = Pieces::default();
    push_varint(&mut pieces.bytes, group.len() as u64);
    group.iter().for_each(|part| pieces.name(part));
    add_node(pieces, nodes)
}

/// Cuts a text into nodes, which contain its bytes and nothing else.
fn text_tree(text: &[u8], nodes: &mut NewNodes) -> Tree {
    let leaf = |bytes: &[u8], nodes: &mut NewNodes| {
        add_node(Pieces { bytes: bytes.to_vec(), parts: Vec::new() }, nodes)
    };
    if text.len() <= CHUNKED_ABOVE {
        return Tree { depth: 0, parts: vec![leaf(text, nodes)] };
    }
    let chunks =
        fastcdc::v2020::FastCDC::new(text, CHUNK_MIN, CHUNK_AVERAGE, CHUNK_MAX).map(|chunk| {
            let end = chunk.offset + chunk.length;
            &text[chunk.offset..end]
        });
    let mut parts: Vec<Part> = chunks.map(|chunk| leaf(chunk, nodes)).collect();
    let mut depth = 0;
    while parts.len() > FAN_OUT {
        parts = parts.chunks(FAN_OUT).map(|group| group_node(group, nodes)).collect();
        depth += 1;
    }
    Tree { depth, parts }
}

#[cfg(test)]
mod tests;
