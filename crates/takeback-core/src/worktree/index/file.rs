//! The bytes of the index's file: one block for each folder, columns in it, and behind them what
//! changed since. Specified in `docs/design/store-format.md`.

mod delta;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use takeback_store::{Digest, Entry, Lack, Seq, WorkPath};
use twox_hash::XxHash3_64;

use self::delta::{Appended, FRONT, deltas_of, lengths_of};
pub(super) use self::delta::{Delta, FolderDelta};
use super::{Child, Folder, Known, Linked};
use crate::worktree::fingerprint::Fingerprint;
use crate::worktree::scope::OutReason;

pub(super) const MAGIC: &[u8] = b"takeback index 6\n";

/// Where the length of the linked names stands.
const HEAD: usize = MAGIC.len() + 16;

/// In the place of a moment that has not come.
const STILL: u64 = u64::MAX;

const LISTED: u8 = 1;
const REPOSITORY: u8 = 2;
const HAS_SKIPPED: u8 = 4;
const HIDDEN: u8 = 8;

const SKIPPED: u8 = 0;
const FILE: u8 = 1;
const SYMLINK: u8 = 2;
const DIR: u8 = 3;
const NOT_CAPTURED: u8 = 4;
const UNKNOWN: u8 = 5;
const LEFT: u8 = 6;
const KINDS: u8 = 0x0f;
const PRECIOUS: u8 = 0x40;
const HAS_PRINT: u8 = 0x80;

const PRINT: usize = 36;
const CHECKSUM: usize = 8;

/// What the file says besides its folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Heading {
    pub(super) stamp: Seq,
    pub(super) scope: u64,
    pub(super) linked: Vec<Linked>,
}

/// Folders as the file has them: read in one go, and looked at where they lie.
#[derive(Debug)]
pub(crate) struct Base {
    bytes: Vec<u8>,
    /// Where the newest block of each folder lies; by path.
    blocks: Vec<Range<usize>>,
    /// Where the file ended when it was written in one piece.
    file_length: u64,
}

/// One folder, where it lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    /// All of it.
    bytes: &'a [u8],
    pub(crate) path: &'a [u8],
    flags: u8,
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) excludes: Option<Fingerprint>,
    tags: &'a [u8],
    prints: &'a [u8],
    /// Where each name ends, and where each entry begins.
    ends: &'a [u8],
    starts: &'a [u8],
    names: &'a [u8],
    entries: &'a [u8],
}

/// As much of a name as is needed to see whether it is as it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Brief<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) kind: Kind,
    pub(crate) fingerprint: Option<Fingerprint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file or link, kept.
    Kept,
    Folder,
    Skipped,
    NotCaptured,
    /// A folder that is recorded as one path.
    Left,
    /// Nobody knows.
    Other,
}

impl Known {
    pub(crate) fn brief<'a>(&self, name: &'a [u8]) -> Brief<'a> {
        let (kind, fingerprint) = match self {
            Self::Entry { entry, fingerprint, .. } => {
                let kind = match entry {
                    Entry::File { .. } | Entry::Symlink { .. } => Kind::Kept,
                    Entry::Dir { .. } => Kind::Folder,
                    Entry::NotCaptured { lack } if lack.is_of_whole_folder() => Kind::Left,
                    Entry::NotCaptured { .. } => Kind::NotCaptured,
                    Entry::Unknown | Entry::Absent => Kind::Other,
                };
                (kind, *fingerprint)
            }
            Self::Skipped { fingerprint, .. } => (Kind::Skipped, *fingerprint),
        };
        Brief { name, kind, fingerprint }
    }
}

impl<'a> Block<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut input = Input(bytes);
        let path = input.bytes()?;
        let flags = input.byte()?;
        let fingerprint = get_fingerprint(&mut input)?;
        let excludes = get_fingerprint(&mut input)?;
        let count = u32::from_le_bytes(input.array()?) as usize;
        let tags = input.take(count)?;
        let prints = input.take(count.checked_mul(PRINT)?)?;
        let ends = input.take(count.checked_mul(4)?)?;
        let starts = input.take(count.checked_mul(4)?)?;
        let names = input.bytes()?;
        let entries = input.0;
        Some(Self {
            bytes,
            path,
            flags,
            fingerprint,
            excludes,
            tags,
            prints,
            ends,
            starts,
            names,
            entries,
        })
    }

    pub(crate) fn is_listed(&self) -> bool {
        self.flags & LISTED != 0
    }

    pub(crate) fn is_repository(&self) -> bool {
        self.flags & REPOSITORY != 0
    }

    pub(crate) fn has_skipped(&self) -> bool {
        self.flags & HAS_SKIPPED != 0
    }

    /// How many names are known in it.
    pub(crate) fn len(&self) -> usize {
        self.tags.len()
    }

    fn name(&self, at: usize) -> Option<&'a [u8]> {
        let start = if at == 0 { 0 } else { number(self.ends, at - 1)? };
        self.names.get(start..number(self.ends, at)?)
    }

    fn known(&self, at: usize) -> Option<Known> {
        let entry = self.entries.get(number(self.starts, at)?..)?;
        get_known(self.tags[at], self.fingerprint_of(at), &mut Input(entry))
    }

    /// How large the ignored files in it are that are kept all the same.
    pub(super) fn precious_bytes(&self) -> u64 {
        let precious = (0..self.len()).filter(|at| self.tags[*at] & PRECIOUS != 0);
        let size = |at| match self.known(at) {
            Some(Known::Entry { entry: Entry::File { size, .. }, .. }) => size,
            _ => 0,
        };
        precious.map(size).fold(0, u64::saturating_add)
    }

    /// What was passed over in it.
    pub(super) fn skipped(
        self,
    ) -> impl Iterator<Item = (&'a [u8], OutReason, Option<Fingerprint>)> {
        let is_out = move |at: &usize| matches!(self.tags[*at] & KINDS, SKIPPED | LEFT);
        (0..self.len()).filter(is_out).filter_map(move |at| {
            let known = self.known(at)?;
            Some((self.name(at)?, known.left_out()?, known.fingerprint()))
        })
    }

    /// What is known of one name.
    pub(super) fn child(&self, name: &[u8]) -> Option<Known> {
        let (mut low, mut high) = (0, self.tags.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.name(middle)?.cmp(name) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return self.known(middle),
            }
        }
        None
    }

    fn fingerprint_of(&self, at: usize) -> Option<Fingerprint> {
        if self.tags[at] & HAS_PRINT == 0 {
            return None;
        }
        read_print(&mut Input(self.prints.get(at * PRINT..)?))
    }

    pub(crate) fn briefs(self) -> impl Iterator<Item = Brief<'a>> {
        (0..self.tags.len()).filter_map(move |at| {
            let kind = match self.tags[at] & KINDS {
                FILE | SYMLINK => Kind::Kept,
                DIR => Kind::Folder,
                SKIPPED => Kind::Skipped,
                NOT_CAPTURED => Kind::NotCaptured,
                LEFT => Kind::Left,
                _ => Kind::Other,
            };
            Some(Brief { name: self.name(at)?, kind, fingerprint: self.fingerprint_of(at) })
        })
    }

    pub(super) fn folder(&self) -> Option<Folder> {
        let child = |at| Some(Child { name: self.name(at)?.into(), known: self.known(at)? });
        let children = (0..self.tags.len()).map(child).collect::<Option<_>>()?;
        Some(Folder {
            listed: self.is_listed(),
            hidden: self.flags & HIDDEN != 0,
            fingerprint: self.fingerprint,
            repository: self.is_repository(),
            excludes: self.excludes,
            children,
        })
    }
}

impl Base {
    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    pub(super) fn file_length(&self) -> u64 {
        self.file_length
    }

    pub(crate) fn block(&self, at: usize) -> Option<Block<'_>> {
        Block::parse(self.bytes.get(self.blocks.get(at)?.clone())?)
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        (0..self.len()).filter_map(|at| self.block(at))
    }

    /// The blocks of a folder and of those in it, and perhaps of some that come between them.
    pub(super) fn blocks_below(&self, folder: &[u8]) -> impl Iterator<Item = Block<'_>> {
        let start = self.place_of(folder).unwrap_or_else(|at| at);
        let blocks = (start..self.len()).filter_map(|at| self.block(at));
        let folder = folder.to_vec();
        blocks.take_while(move |block| block.path.starts_with(&folder))
    }

    pub(super) fn find(&self, path: &[u8]) -> Option<Block<'_>> {
        self.block(self.place_of(path).ok()?)
    }

    /// Which block is that of `path`, or would be.
    fn place_of(&self, path: &[u8]) -> Result<usize, usize> {
        self.blocks.binary_search_by(|block| {
            let at = self.bytes.get(block.clone()).and_then(|block| Input(block).bytes());
            at.map_or(Ordering::Less, |at| at.cmp(path))
        })
    }

    /// Takes in where blocks lie that came later; none: the folder is gone.
    fn take_in(&mut self, moved: HashMap<Vec<u8>, Option<Range<usize>>>) {
        let mut new: Vec<(usize, Vec<u8>, Range<usize>)> = Vec::new();
        let mut gone = Vec::new();
        for (path, block) in moved {
            match (self.place_of(&path), block) {
                (Ok(at), Some(block)) => self.blocks[at] = block,
                (Ok(at), None) => gone.push(at),
                (Err(at), Some(block)) => new.push((at, path, block)),
                (Err(_), None) => {}
            }
        }
        if new.is_empty() && gone.is_empty() {
            return;
        }
        new.sort_unstable_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
        gone.sort_unstable();
        let old = std::mem::take(&mut self.blocks);
        self.blocks.reserve(old.len() + new.len());
        let mut new = new.into_iter().peekable();
        for (at, block) in old.into_iter().enumerate() {
            while let Some((_, _, block)) = new.next_if(|(before, _, _)| *before <= at) {
                self.blocks.push(block);
            }
            if gone.binary_search(&at).is_err() {
                self.blocks.push(block);
            }
        }
        self.blocks.extend(new.map(|(_, _, block)| block));
    }
}

/// A whole file of these blocks, as they are, and these folders: each by path, and none in both.
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

fn flag(is_set: bool, bit: u8) -> u8 {
    if is_set { bit } else { 0 }
}

/// Against a crash or a bad disk, not against anybody: whoever can write here can write the store.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    XxHash3_64::oneshot(bytes).to_le_bytes()
}

/// One number of a column.
fn number(column: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(*column.get(at * 4..)?.first_chunk()?) as usize)
}

/// What a file says of the index.
pub(super) struct Decoded {
    pub(super) heading: Heading,
    pub(super) base: Base,
    /// Folders that had to be put together.
    pub(super) over: HashMap<Vec<u8>, Option<Arc<Folder>>>,
    /// Nothing stands behind the last delta.
    pub(super) is_whole: bool,
}

pub(super) fn decode(bytes: Vec<u8>) -> Option<Decoded> {
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
    Some(Decoded { heading, base, over, is_whole })
}

/// The heading as it was first written, where the blocks begin, and where what follows them ends.
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
    /// After these deltas.
    fn follow(&mut self, deltas: &[Appended]) {
        for delta in deltas {
            (self.stamp, self.scope) = (delta.stamp, delta.scope);
            if let Some(linked) = &delta.linked {
                self.linked.clone_from(linked);
            }
        }
    }
}

/// The heading of a file, of which no more is read than needed.
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
        let Some(delta) = Appended::of(&front, &head) else { break };
        heading.follow(&[delta]);
        at = end;
    }
    Some(heading)
}

fn tag(known: &Known) -> u8 {
    let (kind, precious) = match known {
        Known::Skipped { .. } => (SKIPPED, false),
        Known::Entry { entry, precious, .. } => {
            let kind = match entry {
                Entry::File { .. } => FILE,
                Entry::Symlink { .. } => SYMLINK,
                Entry::Dir { .. } => DIR,
                Entry::NotCaptured { lack } if lack.is_of_whole_folder() => LEFT,
                Entry::NotCaptured { .. } => NOT_CAPTURED,
                Entry::Unknown | Entry::Absent => UNKNOWN,
            };
            (kind, *precious)
        }
    };
    let print = known.fingerprint().is_some();
    kind | flag(precious, PRECIOUS) | flag(print, HAS_PRINT)
}

/// All of it that its tag and its fingerprint do not tell.
fn put_known(out: &mut Vec<u8>, known: &Known) {
    let entry = match known {
        Known::Skipped { why, .. } => return out.push(*why as u8),
        Known::Entry { entry, .. } => entry,
    };
    match entry {
        Entry::File { digest, size, mode } => {
            out.extend_from_slice(&digest.0);
            out.extend_from_slice(&size.to_le_bytes());
            out.extend_from_slice(&mode.to_le_bytes());
        }
        Entry::Symlink { target } => put_bytes(out, target),
        Entry::Dir { mode } => out.extend_from_slice(&mode.to_le_bytes()),
        Entry::NotCaptured { lack } => out.push(*lack as u8),
        Entry::Unknown | Entry::Absent => {}
    }
}

fn get_known(tag: u8, fingerprint: Option<Fingerprint>, input: &mut Input<'_>) -> Option<Known> {
    let entry = match tag & KINDS {
        SKIPPED => {
            let why = OutReason::from_byte(input.byte()?)?;
            return Some(Known::Skipped { why, fingerprint });
        }
        FILE => Entry::File {
            digest: Digest(input.array()?),
            size: u64::from_le_bytes(input.array()?),
            mode: u32::from_le_bytes(input.array()?),
        },
        SYMLINK => Entry::Symlink { target: input.bytes()?.to_vec() },
        DIR => Entry::Dir { mode: u32::from_le_bytes(input.array()?) },
        NOT_CAPTURED | LEFT => Entry::NotCaptured { lack: Lack::from_byte(input.byte()?)? },
        UNKNOWN => Entry::Unknown,
        _ => return None,
    };
    Some(Known::Entry { entry, fingerprint, precious: tag & PRECIOUS != 0 })
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn linked_bytes(linked: &[Linked]) -> Vec<u8> {
    let mut out = Vec::new();
    for Linked { names, since, until } in linked {
        out.extend_from_slice(&since.0.to_le_bytes());
        out.extend_from_slice(&until.map_or(STILL, |until| until.0).to_le_bytes());
        out.extend_from_slice(&(names.len() as u32).to_le_bytes());
        names.iter().for_each(|name| put_bytes(&mut out, name.as_bytes()));
    }
    out
}

fn get_linked(input: &mut Input<'_>) -> Option<Vec<Linked>> {
    let mut linked = Vec::new();
    while !input.0.is_empty() {
        let since = Seq(u64::from_le_bytes(input.array()?));
        let until = Some(u64::from_le_bytes(input.array()?)).filter(|until| *until != STILL);
        let names = u32::from_le_bytes(input.array()?);
        let names =
            (0..names).map(|_| WorkPath::new(input.bytes()?).ok()).collect::<Option<_>>()?;
        linked.push(Linked { names, since, until: until.map(Seq) });
    }
    Some(linked)
}

fn put_fingerprint(out: &mut Vec<u8>, fingerprint: Option<Fingerprint>) {
    out.push(u8::from(fingerprint.is_some()));
    if let Some(print) = fingerprint {
        write_print(out, print);
    }
}

fn get_fingerprint(input: &mut Input<'_>) -> Option<Option<Fingerprint>> {
    if input.byte()? == 0 { Some(None) } else { read_print(input).map(Some) }
}

fn write_print(out: &mut Vec<u8>, print: Fingerprint) {
    out.extend_from_slice(&print.size.to_le_bytes());
    out.extend_from_slice(&print.modified.to_le_bytes());
    out.extend_from_slice(&print.changed.to_le_bytes());
    out.extend_from_slice(&print.inode.to_le_bytes());
    out.extend_from_slice(&print.mode.to_le_bytes());
}

fn read_print(input: &mut Input<'_>) -> Option<Fingerprint> {
    Some(Fingerprint {
        size: u64::from_le_bytes(input.array()?),
        modified: i64::from_le_bytes(input.array()?),
        changed: i64::from_le_bytes(input.array()?),
        inode: u64::from_le_bytes(input.array()?),
        mode: u32::from_le_bytes(input.array()?),
    })
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = u32::from_le_bytes(self.array()?) as usize;
        self.take(length)
    }
}
