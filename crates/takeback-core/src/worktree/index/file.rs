//! The bytes of the index's file: one block of columns per folder, then the deltas appended since.
//! Specified in `docs/design/store-format.md`.

mod block;
mod codec;
mod delta;

use std::collections::HashMap;
use std::sync::Arc;

use takeback_store::Seq;
use twox_hash::XxHash3_64;

pub(crate) use self::block::{Base, Block, Brief, Kind};
use self::codec::{
    Input, PRINT, flag, get_linked, linked_bytes, put_bytes, put_fingerprint, put_known, tag,
    write_print,
};
pub(super) use self::delta::{Delta, FolderDelta};
use self::delta::{EncodedDelta, FRONT, deltas_of, lengths_of};
use super::{Folder, LinkedNames};

pub(super) const MAGIC: &[u8] = b"takeback index 1\n";

/// Offset of the length of the linked names.
const HEAD: usize = MAGIC.len() + 16;

/// Flags of a folder. 0x40 and 0x80 are taken: in a delta they share the byte with these (`delta.rs`).
const LISTED: u8 = 1;
const REPOSITORY: u8 = 2;
const HAS_SKIPPED: u8 = 4;
const HIDDEN: u8 = 8;

const CHECKSUM: usize = 8;

/// Everything in the file but its folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heading {
    pub(super) stamp: Seq,
    pub(super) scope: u64,
    pub(super) linked: Vec<LinkedNames>,
}

/// A whole file from old blocks, copied as they are, and new folders. Both are sorted by path, and no
/// path is in both: the blocks in the file must be sorted, because they are found by binary search.
pub(super) fn encode<'a>(
    heading: &Heading,
    old: impl Iterator<Item = Block<'a>>,
    mut folders: &[(&[u8], &Arc<Folder>)],
) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&heading.stamp.0.to_le_bytes());
    out.extend_from_slice(&heading.scope.to_le_bytes());
    put_bytes(&mut out, &linked_bytes(&heading.linked));
    // The length of the whole file, and a checksum of the heading: both are filled in at the end.
    let length_at = out.len();
    out.extend_from_slice(&[0; 8 + CHECKSUM]);
    let body = out.len();
    let mut blocks: Vec<u64> = Vec::new();
    let mut begin = |out: &Vec<u8>| blocks.push(out.len() as u64);
    for block in old {
        while let Some(((path, folder), rest)) =
            folders.split_first().filter(|((path, _), _)| *path < block.path)
        {
            begin(&out);
            put_block(&mut out, path, folder);
            folders = rest;
        }
        begin(&out);
        out.extend_from_slice(block.bytes);
    }
    for (path, folder) in folders {
        begin(&out);
        put_block(&mut out, path, folder);
    }
    for block in &blocks {
        out.extend_from_slice(&block.to_le_bytes());
    }
    out.extend_from_slice(&(blocks.len() as u32).to_le_bytes());
    let checksum = checksum(&out[body..]);
    out.extend_from_slice(&checksum);
    let length = out.len() as u64;
    out[length_at..length_at + 8].copy_from_slice(&length.to_le_bytes());
    let checksum = self::checksum(&out[..length_at + 8]);
    out[length_at + 8..body].copy_from_slice(&checksum);
    out
}

fn put_block(out: &mut Vec<u8>, path: &[u8], folder: &Folder) {
    put_bytes(out, path);
    out.push(flags(folder) | flag(folder.has_skipped(), HAS_SKIPPED));
    put_fingerprint(out, folder.fingerprint);
    put_fingerprint(out, folder.excludes);
    out.extend_from_slice(&(folder.children.len() as u32).to_le_bytes());
    out.extend(folder.children.iter().map(|child| tag(&child.known)));
    for child in &folder.children {
        match child.known.fingerprint() {
            Some(print) => write_print(out, print),
            None => out.extend_from_slice(&[0; PRINT]),
        }
    }
    let mut end = 0_u32;
    for child in &folder.children {
        end += child.name.len() as u32;
        out.extend_from_slice(&end.to_le_bytes());
    }
    let mut entries = Vec::new();
    for child in &folder.children {
        out.extend_from_slice(&(entries.len() as u32).to_le_bytes());
        put_known(&mut entries, &child.known);
    }
    out.extend_from_slice(&end.to_le_bytes());
    folder.children.iter().for_each(|child| out.extend_from_slice(&child.name));
    out.extend_from_slice(&entries);
}

fn flags(folder: &Folder) -> u8 {
    flag(folder.listed, LISTED) | flag(folder.repository, REPOSITORY) | flag(folder.hidden, HIDDEN)
}

/// Detects torn writes and bad disks. Not a defence: a process that can write here can also write to the
/// store.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    XxHash3_64::oneshot(bytes).to_le_bytes()
}

/// A decoded file.
pub(super) struct DecodedIndex {
    pub(super) heading: Heading,
    pub(super) base: Base,
    /// Folders assembled from a block and its deltas.
    pub(super) over: HashMap<Vec<u8>, Option<Arc<Folder>>>,
    /// Whether the file ends with an intact delta: only then may another one be appended. Reading stops
    /// at a torn delta, which would hide everything behind it.
    pub(super) is_whole: bool,
}

/// `None`: damaged, or another format. Any length in the file may be wrong, so nothing is sliced
/// unchecked. Blocks are not parsed here: one that is malformed despite its checksum counts as unknown.
pub(super) fn decode(bytes: Vec<u8>) -> Option<DecodedIndex> {
    let (mut heading, body, length) = heading_of(&bytes)?;
    let (blocks_and_table, checksum) = bytes.get(body..length)?.split_last_chunk::<CHECKSUM>()?;
    if self::checksum(blocks_and_table) != *checksum {
        return None;
    }
    let (table, count) = blocks_and_table.split_last_chunk::<4>()?;
    let count = u32::from_le_bytes(*count) as usize;
    let table_at = table.len().checked_sub(count.checked_mul(8)?)?;
    let (entries, _) = table[table_at..].as_chunks::<8>();
    let starts = entries.iter().map(|at| usize::try_from(u64::from_le_bytes(*at)).ok());
    let starts: Vec<usize> = starts.collect::<Option<_>>()?;
    let ends = starts.iter().skip(1).copied().chain([body + table_at]);
    let blocks = starts.iter().zip(ends).map(|(start, end)| *start..end).collect();
    let (deltas, is_whole) = deltas_of(&bytes, length)?;
    heading.follow(&deltas);
    let mut base = Base { file_length: length as u64, blocks, bytes };
    let over = base.follow(deltas.into_iter().map(|delta| delta.folders))?;
    Some(DecodedIndex { heading, base, over, is_whole })
}

/// The heading without its deltas, where the blocks begin, and where the first delta begins.
fn heading_of(bytes: &[u8]) -> Option<(Heading, usize, usize)> {
    let linked_length = u32::from_le_bytes(*bytes.get(HEAD..)?.first_chunk()?) as usize;
    let body = (HEAD + 4 + 8 + CHECKSUM).checked_add(linked_length)?;
    let (head, checksum) = bytes.get(..body)?.split_last_chunk::<CHECKSUM>()?;
    if self::checksum(head) != *checksum {
        return None;
    }
    let mut input = Input(head.strip_prefix(MAGIC)?);
    let stamp = Seq(u64::from_le_bytes(input.array()?));
    let scope = u64::from_le_bytes(input.array()?);
    let linked = get_linked(&mut Input(input.bytes()?))?;
    let length = usize::try_from(u64::from_le_bytes(input.array()?)).ok()?;
    Some((Heading { stamp, scope, linked }, body, length))
}

impl Heading {
    /// Applies deltas.
    fn follow(&mut self, deltas: &[EncodedDelta]) {
        for delta in deltas {
            (self.stamp, self.scope) = (delta.stamp, delta.scope);
            if let Some(linked) = &delta.linked {
                self.linked.clone_from(linked);
            }
        }
    }
}

/// Reads only the heading of a file and those of its deltas. The folders' checksums are not verified, so this
/// also follows deltas whose folders are damaged, at which [`decode`] stops. Such a delta's heading is as it was
/// written: it has a checksum of its own.
pub(super) fn read_heading(file: &std::fs::File) -> Option<Heading> {
    use std::os::unix::fs::FileExt as _;
    let mut start = vec![0; HEAD + 4];
    file.read_exact_at(&mut start, 0).ok()?;
    let linked_length = u32::from_le_bytes(*start.last_chunk()?) as usize;
    let total = usize::try_from(file.metadata().ok()?.len()).ok()?;
    let body = (HEAD + 4 + 8 + CHECKSUM).checked_add(linked_length)?;
    if body > total {
        return None;
    }
    start.resize(body, 0);
    file.read_exact_at(&mut start, 0).ok()?;
    let (mut heading, _, length) = heading_of(&start)?;
    let mut at = length as u64;
    let mut front = [0; FRONT];
    while file.read_exact_at(&mut front, at).is_ok() {
        let Some((head, folders)) = lengths_of(&front) else { break };
        let end = at + (FRONT + head + folders) as u64;
        if end > total as u64 {
            break;
        }
        let mut head = vec![0; head];
        file.read_exact_at(&mut head, at + FRONT as u64).ok()?;
        let Some(delta) = EncodedDelta::of(&front, &head) else { break };
        heading.follow(&[delta]);
        at = end;
    }
    Some(heading)
}
