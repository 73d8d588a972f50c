//! Values for the cases: plain ones, and one of every variant.

use crate::blob::Digest;
use crate::change::{Author, Change, Evidence};
use crate::entry::{Entry, NotCapturedReason};
use crate::id::{PointId, RewindId, Seq, SessionId, Timestamp, TurnId};
use crate::path::WorkPath;
use crate::point::{Point, PointBasis, PointKind};
use crate::session::Session;
use crate::store::Write;

pub(super) fn path(text: &str) -> WorkPath {
    WorkPath::new(text).expect("a plain path")
}

pub(super) fn change(seq: u64, at: &str) -> Change {
    Change {
        seq: Seq(seq),
        path: path(at),
        before: Entry::Absent,
        after: Entry::Dir { mode: 0o700 },
        author: Author::Human,
        evidence: Evidence::Window,
        time: Timestamp(1),
        changed_at: None,
        correction: None,
        cancels: Vec::new(),
    }
}

pub(super) fn human(seq: u64, at: &str) -> Write {
    Write::Change(change(seq, at))
}

pub(super) fn agent(session: &str, turn: u64, call: &str) -> Author {
    Author::Agent {
        session: session.into(),
        turn: TurnId(turn),
        call: call.into(),
        tool: "Edit".to_owned(),
    }
}

pub(super) fn point(id: u64, seq: u64) -> Point {
    Point {
        id: PointId(id),
        seq: Seq(seq),
        session: None,
        kind: PointKind::Prompt,
        description: "a point".to_owned(),
        label: None,
        pinned: false,
        created_at: Timestamp(1),
        message_ids: Vec::new(),
        git: None,
        basis: PointBasis::Scan,
    }
}

pub(super) fn session(id: &str) -> Session {
    Session {
        id: SessionId(id.to_owned()),
        agent: None,
        parent: None,
        owner: None,
        started_at: Timestamp(1),
        ended_at: None,
        archived_at: None,
        open_turn: None,
        model: None,
    }
}

pub(super) fn every_entry() -> Vec<Entry> {
    let lacks = [
        NotCapturedReason::TooLarge,
        NotCapturedReason::Deadline,
        NotCapturedReason::Unreadable,
        NotCapturedReason::Unstable,
        NotCapturedReason::Purged,
        NotCapturedReason::Special,
        NotCapturedReason::Derived,
        NotCapturedReason::TooMany,
        NotCapturedReason::Reserved,
    ];
    let mut entries = vec![
        Entry::Absent,
        Entry::File { digest: Digest::of(b"x"), size: 0, mode: 0 },
        Entry::File { digest: Digest([0xff; 32]), size: u64::MAX, mode: u32::MAX },
        Entry::Symlink { target: Vec::new() },
        Entry::Symlink { target: b"../\xff\0\n target".to_vec() },
        Entry::Dir { mode: 0 },
        Entry::Dir { mode: u32::MAX },
        Entry::Unknown,
    ];
    entries.extend(lacks.map(|reason| Entry::NotCaptured { reason }));
    entries
}

pub(super) fn every_author() -> Vec<Author> {
    vec![
        Author::Human,
        agent("s", 1, "c"),
        agent("s", 1, "c"),
        agent("s", u64::MAX, "c"),
        agent("s", 1, "d"),
        agent("t", 1, "c"),
        Author::Agent {
            session: "s".into(),
            turn: TurnId(1),
            call: "c".into(),
            tool: "Bash".to_owned(),
        },
        Author::Ambiguous { sessions: Vec::new() },
        Author::Ambiguous { sessions: vec!["t".into(), "s".into(), "unheard".into(), "s".into()] },
        Author::Rewind { id: RewindId(0) },
        Author::Rewind { id: RewindId(u64::MAX) },
        Author::Deleted,
        Author::Import,
    ]
}

/// Sorted by bytes, which is not how a text sort would order them.
pub(super) fn every_path() -> Vec<WorkPath> {
    let long = b"d/".repeat(2000);
    let all = [
        &b"b"[..],
        b"a/b",
        b"a",
        b"a.b",
        b"a b",
        b"A",
        b"/etc/hosts",
        b"...",
        b"-x",
        b"\xff\xfe",
        b"caf\xc3\xa9",
        b"line\nbreak",
        b"%_'\"",
        &long[..long.len() - 1],
    ];
    all.into_iter().map(|bytes| WorkPath::new(bytes).expect("a plain path")).collect()
}

/// Bytes that do not compress and that depend on `seed`.
pub(super) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}
