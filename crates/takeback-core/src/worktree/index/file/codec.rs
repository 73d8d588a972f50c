//! How single values of the index are written: entries, fingerprints, linked names.

use takeback_store::{Digest, Entry, NotCapturedReason, Seq, WorkPath};

use crate::worktree::fingerprint::Fingerprint;
use crate::worktree::index::{KnownName, LinkedNames};
use crate::worktree::scope::OutReason;

/// Stored as `until` while the names are still linked.
const STILL: u64 = u64::MAX;

pub(super) const SKIPPED: u8 = 0;
pub(super) const FILE: u8 = 1;
pub(super) const SYMLINK: u8 = 2;
pub(super) const DIR: u8 = 3;
pub(super) const NOT_CAPTURED: u8 = 4;
pub(super) const UNKNOWN: u8 = 5;
pub(super) const LEFT: u8 = 6;
pub(super) const KINDS: u8 = 0x0f;
pub(super) const PRECIOUS: u8 = 0x40;
pub(super) const HAS_PRINT: u8 = 0x80;

pub(super) const PRINT: usize = 36;

pub(super) fn tag(known: &KnownName) -> u8 {
    let (kind, precious) = match known {
        KnownName::Skipped { .. } => (SKIPPED, false),
        KnownName::Entry { entry, precious, .. } => {
            let kind = match entry {
                Entry::File { .. } => FILE,
                Entry::Symlink { .. } => SYMLINK,
                Entry::Dir { .. } => DIR,
                Entry::NotCaptured { reason } if reason.covers_folder() => LEFT,
                Entry::NotCaptured { .. } => NOT_CAPTURED,
                Entry::Unknown | Entry::Absent => UNKNOWN,
            };
            (kind, *precious)
        }
    };
    let print = known.fingerprint().is_some();
    kind | flag(precious, PRECIOUS) | flag(print, HAS_PRINT)
}

/// Everything that is not in its tag or fingerprint.
pub(super) fn put_known(out: &mut Vec<u8>, known: &KnownName) {
    let entry = match known {
        KnownName::Skipped { why, .. } => return out.push(*why as u8),
        KnownName::Entry { entry, .. } => entry,
    };
    match entry {
        Entry::File { digest, size, mode } => {
            out.extend_from_slice(&digest.0);
            out.extend_from_slice(&size.to_le_bytes());
            out.extend_from_slice(&mode.to_le_bytes());
        }
        Entry::Symlink { target } => put_bytes(out, target),
        Entry::Dir { mode } => out.extend_from_slice(&mode.to_le_bytes()),
        Entry::NotCaptured { reason } => out.push(*reason as u8),
        Entry::Unknown | Entry::Absent => {}
    }
}

pub(super) fn get_known(
    tag: u8,
    fingerprint: Option<Fingerprint>,
    input: &mut Input<'_>,
) -> Option<KnownName> {
    let entry = match tag & KINDS {
        SKIPPED => {
            let why = OutReason::from_byte(input.byte()?)?;
            return Some(KnownName::Skipped { why, fingerprint });
        }
        FILE => Entry::File {
            digest: Digest(input.array()?),
            size: u64::from_le_bytes(input.array()?),
            mode: u32::from_le_bytes(input.array()?),
        },
        SYMLINK => Entry::Symlink { target: input.bytes()?.to_vec() },
        DIR => Entry::Dir { mode: u32::from_le_bytes(input.array()?) },
        NOT_CAPTURED | LEFT => {
            Entry::NotCaptured { reason: NotCapturedReason::from_byte(input.byte()?)? }
        }
        UNKNOWN => Entry::Unknown,
        _ => return None,
    };
    Some(KnownName::Entry { entry, fingerprint, precious: tag & PRECIOUS != 0 })
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

pub(super) fn linked_bytes(linked: &[LinkedNames]) -> Vec<u8> {
    let mut out = Vec::new();
    for LinkedNames { names, since, until } in linked {
        out.extend_from_slice(&since.0.to_le_bytes());
        out.extend_from_slice(&until.map_or(STILL, |until| until.0).to_le_bytes());
        out.extend_from_slice(&(names.len() as u32).to_le_bytes());
        names.iter().for_each(|name| put_bytes(&mut out, name.as_bytes()));
    }
    out
}

pub(super) fn get_linked(input: &mut Input<'_>) -> Option<Vec<LinkedNames>> {
    let mut linked = Vec::new();
    while !input.0.is_empty() {
        let since = Seq(u64::from_le_bytes(input.array()?));
        let until = Some(u64::from_le_bytes(input.array()?)).filter(|until| *until != STILL);
        let names = u32::from_le_bytes(input.array()?);
        let names =
            (0..names).map(|_| WorkPath::new(input.bytes()?).ok()).collect::<Option<_>>()?;
        linked.push(LinkedNames { names, since, until: until.map(Seq) });
    }
    Some(linked)
}

pub(super) fn put_fingerprint(out: &mut Vec<u8>, fingerprint: Option<Fingerprint>) {
    out.push(u8::from(fingerprint.is_some()));
    if let Some(print) = fingerprint {
        write_print(out, print);
    }
}

pub(super) fn get_fingerprint(input: &mut Input<'_>) -> Option<Option<Fingerprint>> {
    if input.byte()? == 0 { Some(None) } else { read_print(input).map(Some) }
}

pub(super) fn write_print(out: &mut Vec<u8>, print: Fingerprint) {
    out.extend_from_slice(&print.size.to_le_bytes());
    out.extend_from_slice(&print.modified.to_le_bytes());
    out.extend_from_slice(&print.changed.to_le_bytes());
    out.extend_from_slice(&print.inode.to_le_bytes());
    out.extend_from_slice(&print.mode.to_le_bytes());
}

pub(super) fn read_print(input: &mut Input<'_>) -> Option<Fingerprint> {
    Some(Fingerprint {
        size: u64::from_le_bytes(input.array()?),
        modified: i64::from_le_bytes(input.array()?),
        changed: i64::from_le_bytes(input.array()?),
        inode: u64::from_le_bytes(input.array()?),
        mode: u32::from_le_bytes(input.array()?),
    })
}

pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = u32::from_le_bytes(self.array()?) as usize;
        self.take(length)
    }
}

pub(super) fn flag(is_set: bool, bit: u8) -> u8 {
    if is_set { bit } else { 0 }
}
