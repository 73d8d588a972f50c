//! Encodes values that share a column: entries, lists of sequence numbers, lists of paths.
//! `docs/design/store-format.md` describes every byte.

use crate::blob::Digest;
use crate::entry::{Entry, NotCapturedReason};
use crate::id::Seq;
use crate::path::WorkPath;
use crate::sqlite::varint::{push_varint, take_varint};

/// The numbers of enum variants in the database.
pub(super) mod kinds {
    use crate::change::{Author, Evidence};
    use crate::point::{PointBasis, PointKind};
    use crate::rewind::RewindState;
    use crate::session::CallState;

    pub(in super::super) const EVIDENCES: [(i64, Evidence); 4] = [
        (0, Evidence::Named),
        (1, Evidence::Window),
        (2, Evidence::AfterEdit),
        (3, Evidence::OpenWindow),
    ];

    pub(in super::super) const MINE: i64 = 0;
    pub(in super::super) const AGENTS: i64 = 1;

    /// The statements for live calls and their index rely on states up to 3 being those that may write.
    pub(in super::super) const CALL_STATES: [(i64, CallState); 9] = [
        (0, CallState::Open),
        (1, CallState::Overtaken),
        (2, CallState::Background),
        (3, CallState::Settling),
        (4, CallState::Done),
        (5, CallState::Failed),
        (6, CallState::CutOff),
        (7, CallState::Interrupted),
        (8, CallState::Rejected),
    ];

    pub(in super::super) const POINTS: [(i64, PointKind); 4] = [
        (0, PointKind::Prompt),
        (1, PointKind::Manual),
        (2, PointKind::Step),
        (3, PointKind::Safety),
    ];

    pub(in super::super) const BASES: [(i64, PointBasis); 2] =
        [(0, PointBasis::Scan), (1, PointBasis::Watch)];

    pub(in super::super) const REWIND_STATES: [(i64, RewindState); 2] =
        [(0, RewindState::Open), (1, RewindState::Done)];

    pub(in super::super) const AGENT: i64 = 0;
    pub(in super::super) const HUMAN: i64 = 1;
    pub(in super::super) const AMBIGUOUS: i64 = 2;
    pub(in super::super) const BY_REWIND: i64 = 3;
    pub(in super::super) const DELETED: i64 = 4;
    pub(in super::super) const IMPORT: i64 = 5;

    pub(in super::super) fn author(author: &Author) -> i64 {
        match author {
            Author::Agent { .. } => AGENT,
            Author::Human => HUMAN,
            Author::Ambiguous { .. } => AMBIGUOUS,
            Author::Rewind { .. } => BY_REWIND,
            Author::Deleted => DELETED,
            Author::Import => IMPORT,
        }
    }

    pub(in super::super) fn number<T: PartialEq>(table: &[(i64, T)], value: &T) -> i64 {
        let known = table.iter().find(|(_, known)| known == value);
        known.expect("every variant has its number").0
    }

    pub(in super::super) fn value<T: Copy>(table: &[(i64, T)], number: i64) -> Option<T> {
        table.iter().find(|(known, _)| *known == number).map(|(_, value)| *value)
    }
}

/// A count as SQLite stores it. One that does not fit is larger than any real count.
pub(super) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(count: i64) -> u64 {
    count.cast_unsigned()
}

const ABSENT: u8 = 0;
const FILE: u8 = 1;
const SYMLINK: u8 = 2;
const DIR: u8 = 3;
const NOT_CAPTURED: u8 = 4;
const UNKNOWN: u8 = 5;

pub(super) fn entry_bytes(entry: &Entry) -> Vec<u8> {
    let mut out = Vec::with_capacity(48);
    match entry {
        Entry::Absent => out.push(ABSENT),
        Entry::File { digest, size, mode } => {
            out.push(FILE);
            out.extend_from_slice(&digest.0);
            push_varint(&mut out, *size);
            push_varint(&mut out, u64::from(*mode));
        }
        Entry::Symlink { target } => {
            out.push(SYMLINK);
            out.extend_from_slice(target);
        }
        Entry::Dir { mode } => {
            out.push(DIR);
            push_varint(&mut out, u64::from(*mode));
        }
        Entry::NotCaptured { reason } => out.extend([NOT_CAPTURED, *reason as u8]),
        Entry::Unknown => out.push(UNKNOWN),
    }
    out
}

/// Whether these are the bytes of a file's entry.
pub(super) fn is_file(bytes: &[u8]) -> bool {
    bytes.first() == Some(&FILE)
}

/// `None` if these are not the bytes of an entry.
pub(super) fn entry(bytes: &[u8]) -> Option<Entry> {
    let (tag, rest) = bytes.split_first()?;
    let (entry, rest) = match *tag {
        ABSENT => (Entry::Absent, rest),
        FILE => {
            let (digest, rest) = rest.split_first_chunk::<32>()?;
            let (size, rest) = take_varint(rest)?;
            let (mode, rest) = take_varint(rest)?;
            let mode = u32::try_from(mode).ok()?;
            (Entry::File { digest: Digest(*digest), size, mode }, rest)
        }
        SYMLINK => (Entry::Symlink { target: rest.to_vec() }, &[][..]),
        DIR => {
            let (mode, rest) = take_varint(rest)?;
            (Entry::Dir { mode: u32::try_from(mode).ok()? }, rest)
        }
        NOT_CAPTURED => {
            let (byte, rest) = rest.split_first()?;
            (Entry::NotCaptured { reason: NotCapturedReason::from_byte(*byte)? }, rest)
        }
        UNKNOWN => (Entry::Unknown, rest),
        _ => return None,
    };
    rest.is_empty().then_some(entry)
}

/// Encodes each number as the difference from the previous one, so that neighbours cost a byte
/// each.
pub(super) fn seqs_bytes(seqs: &[Seq]) -> Vec<u8> {
    let mut out = Vec::with_capacity(seqs.len() + 4);
    let mut previous = 0_i64;
    for seq in seqs {
        let seq = seq.0.cast_signed();
        push_varint(&mut out, zigzag(seq.wrapping_sub(previous)));
        previous = seq;
    }
    out
}

pub(super) fn seqs(mut bytes: &[u8]) -> Option<Vec<Seq>> {
    let mut seqs = Vec::new();
    let mut previous = 0_i64;
    while !bytes.is_empty() {
        let (difference, rest) = take_varint(bytes)?;
        previous = previous.wrapping_add(unzigzag(difference));
        seqs.push(Seq(previous.cast_unsigned()));
        bytes = rest;
    }
    Some(seqs)
}

pub(super) fn paths_bytes(paths: &[WorkPath]) -> Vec<u8> {
    let mut out = Vec::new();
    for path in paths {
        push_varint(&mut out, path.as_bytes().len() as u64);
        out.extend_from_slice(path.as_bytes());
    }
    out
}

pub(super) fn paths(mut bytes: &[u8]) -> Option<Vec<WorkPath>> {
    let mut paths = Vec::new();
    while !bytes.is_empty() {
        let (len, rest) = take_varint(bytes)?;
        let (path, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
        paths.push(WorkPath::new(path).ok()?);
        bytes = rest;
    }
    Some(paths)
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<Entry> {
        let digest = Digest::of(b"x");
        let mut entries = vec![
            Entry::Absent,
            Entry::File { digest, size: 0, mode: 0 },
            Entry::File { digest, size: u64::MAX, mode: u32::MAX },
            Entry::Symlink { target: Vec::new() },
            Entry::Symlink { target: b"../\xff\0\n".to_vec() },
            Entry::Dir { mode: 0o755 },
            Entry::Unknown,
        ];
        entries.extend(NotCapturedReason::ALL.map(|reason| Entry::NotCaptured { reason }));
        entries
    }

    #[test]
    fn entries_read_back_and_their_torn_bytes_do_not() {
        for written in entries() {
            let bytes = entry_bytes(&written);
            assert_eq!(entry(&bytes), Some(written.clone()));
            let torn = &bytes[..bytes.len() - 1];
            assert_ne!(entry(torn), Some(written.clone()), "{written:?}");
            if !matches!(written, Entry::Symlink { .. }) {
                assert_eq!(entry(&[&bytes[..], &[0]].concat()), None, "{written:?}");
            }
        }
        assert_eq!(entry(&[6]), None);
        assert_eq!(entry(&[NOT_CAPTURED, 0]), None);
    }

    #[test]
    fn the_bytes_are_those_of_the_documented_format() {
        let digest = Digest([7; 32]);
        let file = entry_bytes(&Entry::File { digest, size: 300, mode: 0o644 });
        assert_eq!(file, [&[1][..], &[7; 32], &[0xac, 0x02], &[0xa4, 0x03]].concat());
        assert_eq!(entry_bytes(&Entry::Symlink { target: b"ab".to_vec() }), b"\x02ab");
        assert_eq!(entry_bytes(&Entry::Dir { mode: 0o755 }), [3, 0xed, 0x03]);
        assert_eq!(entry_bytes(&Entry::NotCaptured { reason: NotCapturedReason::Purged }), [4, 5]);
        assert_eq!(seqs_bytes(&[Seq(5), Seq(6), Seq(4)]), [10, 2, 3]);
        let path = WorkPath::new("a/b").unwrap();
        assert_eq!(paths_bytes(&[path.clone(), path]), b"\x03a/b\x03a/b");
    }

    #[test]
    fn lists_keep_their_order() {
        for list in [vec![], vec![1], vec![9, 3, 3, u64::MAX, 0, i64::MAX.cast_unsigned()]] {
            let list: Vec<_> = list.into_iter().map(Seq).collect();
            assert_eq!(seqs(&seqs_bytes(&list)), Some(list));
        }
        assert_eq!(seqs(&[0x80]), None);
        assert_eq!(seqs(&[0xff; 11]), None);
        assert_eq!(paths(b"\x05abc"), None);
        assert_eq!(paths(b"\x02.."), None);
    }
}
