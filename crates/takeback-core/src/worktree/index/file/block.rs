//! Folders in the bytes of the file. They are decoded where they are, one name at a time: most scans
//! compare fingerprints and need nothing else.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::Range;

use takeback_store::Entry;

use super::codec::{
    DIR, FILE, HAS_PRINT, Input, KINDS, LEFT, NOT_CAPTURED, PRECIOUS, PRINT, SKIPPED, SYMLINK,
    get_fingerprint, get_known, read_print,
};
use super::{HAS_SKIPPED, HIDDEN, LISTED, REPOSITORY};
use crate::worktree::fingerprint::Fingerprint;
use crate::worktree::index::{Child, Folder, KnownName};
use crate::worktree::scope::OutReason;

/// The folders of the file: read in one go and decoded in place.
#[derive(Debug)]
pub(crate) struct Base {
    pub(super) bytes: Vec<u8>,
    /// The newest block of each folder, sorted by path.
    pub(super) blocks: Vec<Range<usize>>,
    /// The length of the file without its deltas.
    pub(super) file_length: u64,
}

/// One folder, in place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    /// All of it.
    pub(super) bytes: &'a [u8],
    pub(crate) path: &'a [u8],
    flags: u8,
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) excludes: Option<Fingerprint>,
    tags: &'a [u8],
    prints: &'a [u8],
    /// Where each name ends; `starts`: where each entry begins.
    ends: &'a [u8],
    starts: &'a [u8],
    names: &'a [u8],
    entries: &'a [u8],
}

/// As much of a name as is needed to see whether it changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Brief<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) kind: Kind,
    pub(crate) fingerprint: Option<Fingerprint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A saved file or link.
    Kept,
    Folder,
    Skipped,
    NotCaptured,
    /// A folder that is recorded as one path.
    Left,
    /// Unknown or absent.
    Other,
}

impl KnownName {
    pub(crate) fn brief<'a>(&self, name: &'a [u8]) -> Brief<'a> {
        let (kind, fingerprint) = match self {
            Self::Entry { entry, fingerprint, .. } => {
                let kind = match entry {
                    Entry::File { .. } | Entry::Symlink { .. } => Kind::Kept,
                    Entry::Dir { .. } => Kind::Folder,
                    Entry::NotCaptured { reason } if reason.covers_folder() => Kind::Left,
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
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
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

    fn known(&self, at: usize) -> Option<KnownName> {
        let entry = self.entries.get(number(self.starts, at)?..)?;
        get_known(self.tags[at], self.fingerprint_of(at), &mut Input(entry))
    }

    /// The total size of the ignored files in it that are covered.
    pub(in crate::worktree::index) fn precious_bytes(&self) -> u64 {
        let precious = (0..self.len()).filter(|at| self.tags[*at] & PRECIOUS != 0);
        let size = |at| match self.known(at) {
            Some(KnownName::Entry { entry: Entry::File { size, .. }, .. }) => size,
            _ => 0,
        };
        precious.map(size).fold(0, u64::saturating_add)
    }

    /// The skipped names in it.
    pub(in crate::worktree::index) fn skipped(
        self,
    ) -> impl Iterator<Item = (&'a [u8], OutReason, Option<Fingerprint>)> {
        let is_out = move |at: &usize| matches!(self.tags[*at] & KINDS, SKIPPED | LEFT);
        (0..self.len()).filter(is_out).filter_map(move |at| {
            let known = self.known(at)?;
            Some((self.name(at)?, known.left_out()?, known.fingerprint()))
        })
    }

    /// What is known of one name.
    pub(in crate::worktree::index) fn child(&self, name: &[u8]) -> Option<KnownName> {
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

    pub(in crate::worktree::index) fn folder(&self) -> Option<Folder> {
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

    pub(in crate::worktree::index) fn file_length(&self) -> u64 {
        self.file_length
    }

    pub(crate) fn block(&self, at: usize) -> Option<Block<'_>> {
        Block::parse(self.bytes.get(self.blocks.get(at)?.clone())?)
    }

    pub(crate) fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        (0..self.len()).filter_map(|at| self.block(at))
    }

    /// The blocks of a folder and of those below it, and perhaps of others with the same prefix: `a-b`
    /// for `a`.
    pub(in crate::worktree::index) fn blocks_below(
        &self,
        folder: &[u8],
    ) -> impl Iterator<Item = Block<'_>> {
        let start = self.place_of(folder).unwrap_or_else(|at| at);
        let blocks = (start..self.len()).filter_map(|at| self.block(at));
        let folder = folder.to_vec();
        blocks.take_while(move |block| block.path.starts_with(&folder))
    }

    pub(in crate::worktree::index) fn find(&self, path: &[u8]) -> Option<Block<'_>> {
        self.block(self.place_of(path).ok()?)
    }

    /// The number of the block of `path`, or where it would be.
    pub(super) fn place_of(&self, path: &[u8]) -> Result<usize, usize> {
        self.blocks.binary_search_by(|block| {
            let at = self.bytes.get(block.clone()).and_then(|block| Input(block).bytes());
            at.map_or(Ordering::Less, |at| at.cmp(path))
        })
    }

    /// Adds blocks of deltas, which replace earlier ones; none: the folder is gone.
    pub(super) fn add_blocks(&mut self, moved: HashMap<Vec<u8>, Option<Range<usize>>>) {
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

/// A number in a column.
fn number(column: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(*column.get(at * 4..)?.first_chunk()?) as usize)
}
