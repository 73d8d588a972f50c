//! Deltas: what is appended to the index's file, and how it is applied.
//!
//! A delta is relative to everything before it in the file, so the deltas apply in order and none may be
//! skipped: reading stops at the first damaged one. Reading headings alone does not ([`super::read_heading`]).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use takeback_store::Seq;

use super::block::{Base, Block};
use super::codec::{
    HAS_PRINT, Input, get_fingerprint, get_known, get_linked, linked_bytes, put_bytes,
    put_fingerprint, put_known, read_print, tag, write_print,
};
use super::{CHECKSUM, HIDDEN, LISTED, REPOSITORY, checksum, flags, put_block};
use crate::worktree::index::{Child, Folder, LinkedNames};

/// The folder exists and only its changed names follow. Without this flag or `WHOLE` the folder is gone.
const CHANGED: u8 = 0x80;
const WHOLE: u8 = 0x40;

/// A folder with at most this many names is appended as a whole block and need not be assembled when read.
const WHOLE_UP_TO: usize = 64;

/// The front of a delta: two lengths, two checksums.
pub(super) const FRONT: usize = 8 + 2 * CHECKSUM;

impl Base {
    /// Applies the folders of deltas in order, and returns those that had to be assembled.
    pub(super) fn follow(
        &mut self,
        deltas: impl Iterator<Item = Range<usize>>,
    ) -> Option<HashMap<Vec<u8>, Option<Arc<Folder>>>> {
        // `None`: the folder is gone.
        let mut newest_block: HashMap<Vec<u8>, Option<Range<usize>>> = HashMap::new();
        let mut over = HashMap::new();
        for delta in deltas {
            let mut input = Input(self.bytes.get(delta.clone())?);
            while !input.0.is_empty() {
                let path = input.bytes()?;
                let flags = input.byte()?;
                if flags & WHOLE != 0 {
                    let block = input.bytes()?;
                    let end = delta.end - input.0.len();
                    newest_block.insert(path.to_vec(), Some(end - block.len()..end));
                    over.remove(path);
                } else if flags & CHANGED != 0 {
                    let change = get_folder_delta(flags, &mut input)?;
                    let before = match (over.remove(path), newest_block.get(path)) {
                        (Some(before), _) => before,
                        (None, Some(None)) => None,
                        (None, Some(Some(block))) => {
                            let block = Block::parse(self.bytes.get(block.clone())?)?;
                            Some(Arc::new(block.folder()?))
                        }
                        (None, None) => match self.find(path) {
                            Some(block) => Some(Arc::new(block.folder()?)),
                            None => None,
                        },
                    };
                    over.insert(path.to_vec(), change.apply(before).map(Arc::new));
                } else {
                    newest_block.insert(path.to_vec(), None);
                    over.remove(path);
                }
            }
        }
        self.add_blocks(newest_block);
        Some(over)
    }
}

/// The changes of the index since it was last saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::worktree::index) struct Delta {
    pub(in crate::worktree::index) stamp: Seq,
    pub(in crate::worktree::index) scope: u64,
    /// None: unchanged.
    pub(in crate::worktree::index) linked: Option<Vec<LinkedNames>>,
    pub(in crate::worktree::index) folders: Vec<(Vec<u8>, FolderDelta)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::worktree::index) enum FolderDelta {
    Gone,
    Whole(Arc<Folder>),
    Changed {
        /// The folder without its children.
        rest: Folder,
        gone: Vec<Box<[u8]>>,
        /// New or changed children, by name.
        set: Vec<Child>,
    },
}

impl FolderDelta {
    pub(in crate::worktree::index) fn between(
        before: Option<&Folder>,
        after: Option<Arc<Folder>>,
    ) -> Self {
        let Some(after) = after else { return Self::Gone };
        if after.children.len() <= WHOLE_UP_TO {
            return Self::Whole(after);
        }
        let mut old = before.map(|folder| folder.children.as_slice()).unwrap_or_default();
        let (mut gone, mut set) = (Vec::new(), Vec::new());
        for child in &after.children {
            while let Some((first, rest)) = old.split_first().filter(|(f, _)| f.name < child.name) {
                gone.push(first.name.clone());
                old = rest;
            }
            match old.split_first() {
                Some((first, rest)) if first.name == child.name => {
                    old = rest;
                    set.extend((first != child).then(|| child.clone()));
                }
                _ => set.push(child.clone()),
            }
        }
        gone.extend(old.iter().map(|child| child.name.clone()));
        Self::Changed { rest: after.without_children(), gone, set }
    }

    /// The folder after the delta; `before`: the folder before it.
    fn apply(self, before: Option<Arc<Folder>>) -> Option<Folder> {
        let (rest, gone, set) = match self {
            Self::Gone => return None,
            Self::Whole(folder) => return Some(Arc::unwrap_or_clone(folder)),
            Self::Changed { rest, gone, set } => (rest, gone, set),
        };
        let old = before.map(Arc::unwrap_or_clone).unwrap_or_default().children;
        let mut set = set.into_iter().peekable();
        let mut children = Vec::with_capacity(old.len() + set.len());
        for child in old {
            while let Some(new) = set.next_if(|new| new.name < child.name) {
                children.push(new);
            }
            match set.next_if(|new| new.name == child.name) {
                Some(new) => children.push(new),
                None if gone.binary_search(&child.name).is_ok() => {}
                None => children.push(child),
            }
        }
        children.extend(set);
        Some(Folder { children, ..rest })
    }
}

impl Delta {
    /// The bytes to append to the file.
    pub(in crate::worktree::index) fn encode(&self) -> Vec<u8> {
        let mut head = Vec::new();
        head.extend_from_slice(&self.stamp.0.to_le_bytes());
        head.extend_from_slice(&self.scope.to_le_bytes());
        head.push(u8::from(self.linked.is_some()));
        if let Some(linked) = &self.linked {
            put_bytes(&mut head, &linked_bytes(linked));
        }
        let mut body = Vec::new();
        for (path, delta) in &self.folders {
            put_bytes(&mut body, path);
            let (rest, gone, set) = match delta {
                FolderDelta::Gone => {
                    body.push(0);
                    continue;
                }
                FolderDelta::Whole(folder) => {
                    body.push(WHOLE);
                    let length_at = body.len();
                    body.extend_from_slice(&[0; 4]);
                    put_block(&mut body, path, folder);
                    let length = (body.len() - length_at - 4) as u32;
                    body[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
                    continue;
                }
                FolderDelta::Changed { rest, gone, set } => (rest, gone, set),
            };
            body.push(flags(rest) | CHANGED);
            put_fingerprint(&mut body, rest.fingerprint);
            put_fingerprint(&mut body, rest.excludes);
            body.extend_from_slice(&(gone.len() as u32).to_le_bytes());
            gone.iter().for_each(|name| put_bytes(&mut body, name));
            body.extend_from_slice(&(set.len() as u32).to_le_bytes());
            for child in set {
                put_bytes(&mut body, &child.name);
                body.push(tag(&child.known));
                if let Some(print) = child.known.fingerprint() {
                    write_print(&mut body, print);
                }
                put_known(&mut body, &child.known);
            }
        }
        let mut out = Vec::with_capacity(FRONT + head.len() + body.len());
        out.extend_from_slice(&(head.len() as u32).to_le_bytes());
        out.extend_from_slice(&(body.len() as u32).to_le_bytes());
        out.extend_from_slice(&checksum(&head));
        out.extend_from_slice(&checksum(&body));
        out.extend_from_slice(&head);
        out.extend_from_slice(&body);
        out
    }
}

fn get_folder_delta(flags: u8, input: &mut Input<'_>) -> Option<FolderDelta> {
    let rest = Folder {
        listed: flags & LISTED != 0,
        hidden: flags & HIDDEN != 0,
        repository: flags & REPOSITORY != 0,
        fingerprint: get_fingerprint(input)?,
        excludes: get_fingerprint(input)?,
        children: Vec::new(),
    };
    let count = u32::from_le_bytes(input.array()?);
    let gone = (0..count).map(|_| input.bytes().map(Into::into)).collect::<Option<_>>()?;
    let count = u32::from_le_bytes(input.array()?);
    let mut set = Vec::new();
    for _ in 0..count {
        let name = input.bytes()?.into();
        let tag = input.byte()?;
        let print = if tag & HAS_PRINT == 0 { None } else { Some(read_print(input)?) };
        set.push(Child { name, known: get_known(tag, print, input)? });
    }
    Some(FolderDelta::Changed { rest, gone, set })
}

/// A delta in the bytes of the file.
pub(super) struct EncodedDelta {
    pub(super) stamp: Seq,
    pub(super) scope: u64,
    pub(super) linked: Option<Vec<LinkedNames>>,
    /// The checksum of its folders.
    checksum: [u8; CHECKSUM],
    pub(super) folders: Range<usize>,
}

impl EncodedDelta {
    pub(super) fn of(front: &[u8; FRONT], head: &[u8]) -> Option<Self> {
        let mut checksums = Input(&front[8..]);
        if checksum(head) != checksums.array()? {
            return None;
        }
        let mut input = Input(head);
        let stamp = Seq(u64::from_le_bytes(input.array()?));
        let scope = u64::from_le_bytes(input.array()?);
        let linked = match input.byte()? {
            0 => None,
            _ => Some(get_linked(&mut Input(input.bytes()?))?),
        };
        Some(Self { stamp, scope, linked, checksum: checksums.array()?, folders: 0..0 })
    }
}

/// The lengths of a delta's head and of its folders.
pub(super) fn lengths_of(front: &[u8; FRONT]) -> Option<(usize, usize)> {
    let mut input = Input(front);
    let mut length = || Some(u32::from_le_bytes(input.array()?) as usize);
    Some((length()?, length()?))
}

/// The deltas from `start` up to the first damaged one, and whether none is damaged.
pub(super) fn deltas_of(bytes: &[u8], start: usize) -> Option<(Vec<EncodedDelta>, bool)> {
    let mut deltas = Vec::new();
    let mut input = Input(bytes.get(start..)?);
    while !input.0.is_empty() {
        let mut next = || -> Option<EncodedDelta> {
            let front = input.array::<FRONT>()?;
            let (head, folders) = lengths_of(&front)?;
            let delta = EncodedDelta::of(&front, input.take(head)?)?;
            let folders = input.take(folders)?;
            let end = bytes.len() - input.0.len();
            (checksum(folders) == delta.checksum)
                .then_some(EncodedDelta { folders: end - folders.len()..end, ..delta })
        };
        let Some(delta) = next() else { return Some((deltas, false)) };
        deltas.push(delta);
    }
    Some((deltas, true))
}
