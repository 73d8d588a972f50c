//! A hash chain over the commits of a log, and a checksum of every record.
//!
//! A [`Sum`] covers every field of a record. A [`RowSet`] is a checksum of a whole set of records:
//! it shows whether one was added, lost or changed, and each commit updates it without reading the
//! other records. A [`Chain`] is the hash of a commit: over what it wrote and over the previous
//! hash. Two logs with the same chain had the same commits. None of this depends on how a store
//! lays out its records, so any two stores can be compared. `docs/design/store-format.md` describes
//! the bytes.

use crate::blob::Digest;
use crate::change::{Author, Change, Correction, Evidence};
use crate::entry::Entry;
use crate::id::{SessionId, Timestamp};
use crate::path::WorkPath;
use crate::point::{Point, PointBasis, PointKind};
use crate::rewind::{RewindRecord, RewindState};
use crate::session::{Call, CallKind, CallState, Session, Turn};
use crate::store::{Head, Write};

/// The hash of a commit: over what it wrote and over the hash of the commit before it. Equal chains
/// mean equal histories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Chain(pub Digest);

impl Chain {
    /// The first hash of a chain: over the head and the records that the log had at that time.
    #[must_use]
    pub fn genesis(head: Head, rows: &RowSet) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("takeback chain 1 genesis");
        hasher.update(&head.revision.to_le_bytes());
        hasher.update(&head.seq.0.to_le_bytes());
        hasher.update(&rows.digest().0);
        Self(Digest(*hasher.finalize().as_bytes()))
    }

    /// The hash of the next commit, which wrote `body` and led to `head`.
    #[must_use]
    pub fn next(self, head: Head, body: &Digest) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("takeback chain 1 commit");
        hasher.update(&self.0.0);
        hasher.update(&head.revision.to_le_bytes());
        hasher.update(&head.seq.0.to_le_bytes());
        hasher.update(&body.0);
        Self(Digest(*hasher.finalize().as_bytes()))
    }
}

/// The hash of what a commit writes: each write in order, a record by its [`Sum`].
#[must_use]
pub fn hash_writes(writes: &[Write]) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key("takeback chain 1 body");
    for write in writes {
        hasher.update(&Bytes::of_write(write).0);
    }
    Digest(*hasher.finalize().as_bytes())
}

/// A checksum of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sum(pub [u8; Self::LENGTH]);

impl Sum {
    /// The length of a sum in bytes.
    pub const LENGTH: usize = 16;

    fn of(bytes: &Bytes) -> Self {
        Self::of_hash(blake3::hash(&bytes.0))
    }

    fn of_hash(hash: blake3::Hash) -> Self {
        let mut sum = [0; Self::LENGTH];
        sum.copy_from_slice(&hash.as_bytes()[..Self::LENGTH]);
        Self(sum)
    }

    /// The sum of a change.
    #[must_use]
    pub fn of_change(change: &Change) -> Self {
        let mut bytes = Bytes::tagged(b'c');
        bytes.number(change.seq.0);
        bytes.path(&change.path);
        bytes.entry(&change.before);
        bytes.entry(&change.after);
        bytes.author(&change.author);
        bytes.0.push(match change.evidence {
            Evidence::Named => 0,
            Evidence::Window => 1,
            Evidence::AfterEdit => 2,
            Evidence::OpenWindow => 3,
        });
        bytes.time(Some(change.time));
        bytes.time(change.changed_at);
        match &change.correction {
            None => bytes.0.push(0),
            Some(correction) => bytes.correction(correction),
        }
        bytes.number(change.cancels.len() as u64);
        change.cancels.iter().for_each(|seq| bytes.number(seq.0));
        Self::of(&bytes)
    }

    /// The sum of a session.
    #[must_use]
    pub fn of_session(session: &Session) -> Self {
        let mut bytes = Bytes::tagged(b's');
        bytes.session(&session.id);
        bytes.optional(session.agent.as_deref());
        bytes.optional(session.parent.as_ref().map(|parent| parent.0.as_str()));
        match session.owner {
            None => bytes.0.push(0),
            Some(owner) => {
                bytes.0.push(1);
                bytes.number(u64::from(owner.pid));
                bytes.number(owner.started);
            }
        }
        bytes.time(Some(session.started_at));
        bytes.time(session.ended_at);
        bytes.time(session.archived_at);
        bytes.optional_number(session.open_turn.map(|turn| turn.0));
        bytes.optional(session.model.as_deref());
        Self::of(&bytes)
    }

    /// The sum of a turn.
    #[must_use]
    pub fn of_turn(turn: &Turn) -> Self {
        let mut bytes = Bytes::tagged(b't');
        bytes.number(turn.id.0);
        bytes.session(&turn.session);
        bytes.optional(turn.message.as_deref());
        bytes.text(&turn.prompt);
        bytes.time(Some(turn.opened_at));
        bytes.time(turn.closed_at);
        bytes.optional(turn.model.as_deref());
        Self::of(&bytes)
    }

    /// The sum of a call.
    #[must_use]
    pub fn of_call(call: &Call) -> Self {
        let mut bytes = Bytes::tagged(b'l');
        bytes.session(&call.session);
        bytes.text(&call.id.0);
        bytes.number(call.turn.0);
        bytes.text(&call.tool);
        let paths = match &call.kind {
            CallKind::Edit { paths } => {
                bytes.0.push(0);
                paths
            }
            CallKind::Shell { command, paths } => {
                bytes.0.push(1);
                bytes.optional(command.as_deref());
                paths
            }
        };
        bytes.number(paths.len() as u64);
        paths.iter().for_each(|path| bytes.path(path));
        bytes.0.push(match call.state {
            CallState::Open => 0,
            CallState::Background => 1,
            CallState::Done => 2,
            CallState::Failed => 3,
            CallState::CutOff => 4,
            CallState::Interrupted => 5,
            CallState::Rejected => 6,
            CallState::Overtaken => 7,
            CallState::Settling => 8,
        });
        bytes.time(Some(call.opened_at));
        bytes.time(call.began_at);
        bytes.time(call.closed_at);
        bytes.time(call.active_at);
        Self::of(&bytes)
    }

    /// The sum of a point.
    #[must_use]
    pub fn of_point(point: &Point) -> Self {
        let mut bytes = Bytes::tagged(b'p');
        bytes.number(point.id.0);
        bytes.number(point.seq.0);
        bytes.optional(point.session.as_ref().map(|session| session.0.as_str()));
        bytes.0.push(match point.kind {
            PointKind::Prompt => 0,
            PointKind::Manual => 1,
            PointKind::Step => 2,
            PointKind::Safety => 3,
        });
        bytes.text(&point.description);
        bytes.optional(point.label.as_deref());
        bytes.0.push(u8::from(point.pinned));
        bytes.time(Some(point.created_at));
        bytes.number(point.message_ids.len() as u64);
        point.message_ids.iter().for_each(|message| bytes.text(message));
        match &point.git {
            None => bytes.0.push(0),
            Some(git) => {
                bytes.0.push(1);
                bytes.optional(git.head.as_deref());
                bytes.optional(git.branch.as_deref());
            }
        }
        bytes.0.push(match point.basis {
            PointBasis::Scan => 0,
            PointBasis::Watch => 1,
        });
        Self::of(&bytes)
    }

    /// The sum of a rewind.
    #[must_use]
    pub fn of_rewind(rewind: &RewindRecord) -> Self {
        let mut bytes = Bytes::tagged(b'r');
        bytes.number(rewind.id.0);
        let (kind, target) = rewind.kind.numbers();
        bytes.0.push(kind);
        bytes.number(target);
        bytes.0.push(match rewind.state {
            RewindState::Open => 0,
            RewindState::Done => 1,
        });
        bytes.number(rewind.began_at.0);
        bytes.number(rewind.safety_point.0);
        bytes.time(Some(rewind.created_at));
        // A plan can be large: hashed where it is, as `Bytes::text` would have it.
        let plan = rewind.plan.as_bytes();
        bytes.number(plan.len() as u64);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&bytes.0).update(plan);
        let mut bytes = Bytes(Vec::new());
        bytes.optional(rewind.receipt.as_deref());
        Self::of_hash(hasher.update(&bytes.0).finalize())
    }
}

/// A checksum of a set of records (`LtHash`, 1,024 lanes of 16 bits). It does not depend on the
/// order in which records came and went, and finding another set with the same value is infeasible.
#[derive(Clone, PartialEq, Eq)]
pub struct RowSet(Box<[u16; Self::LANES]>);

impl RowSet {
    const LANES: usize = 1024;
    /// The length of [`Self::to_bytes`].
    pub const LENGTH: usize = 2 * Self::LANES;

    /// Adds a record. Adding the same one twice is not the same as once.
    pub fn add(&mut self, sum: Sum) {
        self.each(sum, u16::wrapping_add);
    }

    /// Removes a record that was added before.
    pub fn remove(&mut self, sum: Sum) {
        self.each(sum, u16::wrapping_sub);
    }

    fn each(&mut self, sum: Sum, change: impl Fn(u16, u16) -> u16) {
        let mut wide = [0_u8; Self::LENGTH];
        let mut hasher = blake3::Hasher::new_derive_key("takeback chain 1 row");
        hasher.update(&sum.0).finalize_xof().fill(&mut wide);
        for (lane, pair) in self.0.iter_mut().zip(wide.as_chunks::<2>().0) {
            *lane = change(*lane, u16::from_le_bytes(*pair));
        }
    }

    /// The set as [`Self::LENGTH`] bytes, for storage.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|lane| lane.to_le_bytes()).collect()
    }

    /// `None` if these are not the bytes of a set.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (pairs, rest) = bytes.as_chunks::<2>();
        if pairs.len() != Self::LANES || !rest.is_empty() {
            return None;
        }
        let mut set = Self::default();
        for (lane, pair) in set.0.iter_mut().zip(pairs) {
            *lane = u16::from_le_bytes(*pair);
        }
        Some(set)
    }

    /// The digest of the set, for comparison and hashing.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.to_bytes())
    }
}

impl Default for RowSet {
    fn default() -> Self {
        Self(Box::new([0; Self::LANES]))
    }
}

impl std::fmt::Debug for RowSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RowSet({})", self.digest())
    }
}

/// An unambiguous encoding of a record: numbers in 8 bytes (little-endian), texts and paths after
/// their length, optional values after a 0 or 1.
struct Bytes(Vec<u8>);

impl Bytes {
    fn tagged(tag: u8) -> Self {
        let mut bytes = Vec::with_capacity(256);
        bytes.push(tag);
        Self(bytes)
    }

    fn of_write(write: &Write) -> Self {
        let record = |tag, sum: Sum| {
            let mut bytes = Self::tagged(tag);
            bytes.0.extend_from_slice(&sum.0);
            bytes
        };
        match write {
            Write::Change(change) => record(1, Sum::of_change(change)),
            Write::Session(session) => record(2, Sum::of_session(session)),
            Write::Turn(turn) => record(3, Sum::of_turn(turn)),
            Write::Call(call) => record(4, Sum::of_call(call)),
            Write::Point(point) => record(5, Sum::of_point(point)),
            Write::Rewind(rewind) => record(6, Sum::of_rewind(rewind)),
            Write::ScanTime(time) => Self::key(7, time.0.cast_unsigned()),
            Write::CleanupTime(time) => Self::key(8, time.0.cast_unsigned()),
            Write::ReplaceChange(change) => record(9, Sum::of_change(change)),
            Write::Correct { change, correction } => {
                let mut bytes = Self::key(10, change.0);
                bytes.correction(correction);
                bytes
            }
            Write::DropChange(seq) => Self::key(11, seq.0),
            Write::DropPoint(id) => Self::key(12, id.0),
            Write::DropRewind(id) => Self::key(13, id.0),
            Write::DropSession(id) => {
                let mut bytes = Self::tagged(14);
                bytes.session(id);
                bytes
            }
            Write::DropTurns { session, before } => {
                let mut bytes = Self::tagged(15);
                bytes.session(session);
                bytes.time(Some(*before));
                bytes
            }
        }
    }

    fn key(tag: u8, number: u64) -> Self {
        let mut bytes = Self::tagged(tag);
        bytes.number(number);
        bytes
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn optional_number(&mut self, number: Option<u64>) {
        self.0.push(u8::from(number.is_some()));
        if let Some(number) = number {
            self.number(number);
        }
    }

    fn time(&mut self, time: Option<Timestamp>) {
        self.optional_number(time.map(|time| time.0.cast_unsigned()));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    fn optional(&mut self, text: Option<&str>) {
        self.0.push(u8::from(text.is_some()));
        if let Some(text) = text {
            self.text(text);
        }
    }

    fn path(&mut self, path: &WorkPath) {
        self.bytes(path.as_bytes());
    }

    fn session(&mut self, session: &SessionId) {
        self.text(&session.0);
    }

    fn entry(&mut self, entry: &Entry) {
        match entry {
            Entry::Absent => self.0.push(0),
            Entry::File { digest, size, mode } => {
                self.0.push(1);
                self.0.extend_from_slice(&digest.0);
                self.number(*size);
                self.number(u64::from(*mode));
            }
            Entry::Symlink { target } => {
                self.0.push(2);
                self.bytes(target);
            }
            Entry::Dir { mode } => {
                self.0.push(3);
                self.number(u64::from(*mode));
            }
            Entry::NotCaptured { reason } => self.0.extend([4, *reason as u8]),
            Entry::Unknown => self.0.push(5),
        }
    }

    fn author(&mut self, author: &Author) {
        match author {
            Author::Agent { session, turn, call, tool } => {
                self.0.push(0);
                self.session(session);
                self.number(turn.0);
                self.text(&call.0);
                self.text(tool);
            }
            Author::Human => self.0.push(1),
            Author::Ambiguous { sessions } => {
                self.0.push(2);
                self.number(sessions.len() as u64);
                sessions.iter().for_each(|session| self.session(session));
            }
            Author::Rewind { id } => {
                self.0.push(3);
                self.number(id.0);
            }
            Author::Deleted => self.0.push(4),
            Author::Import => self.0.push(5),
        }
    }

    fn correction(&mut self, correction: &Correction) {
        match correction {
            Correction::Mine => self.0.push(1),
            Correction::Agent { session } => {
                self.0.push(2);
                self.session(session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(byte: u8) -> Sum {
        Sum([byte; Sum::LENGTH])
    }

    fn set(bytes: &[u8]) -> RowSet {
        let mut set = RowSet::default();
        bytes.iter().for_each(|byte| set.add(sum(*byte)));
        set
    }

    #[test]
    fn the_order_of_records_does_not_matter() {
        assert_eq!(set(&[1, 2, 3]), set(&[3, 1, 2]));
        for other in [&[1, 2][..], &[1, 2, 4], &[1, 2, 3, 3], &[]] {
            assert_ne!(set(&[1, 2, 3]), set(other), "{other:?}");
        }
        let mut less = set(&[1, 2, 3]);
        less.remove(sum(2));
        assert_eq!(less, set(&[1, 3]));
        assert_eq!(RowSet::from_bytes(&less.to_bytes()), Some(less.clone()));
        assert_eq!(RowSet::from_bytes(&less.to_bytes()[1..]), None);
    }

    /// Later versions must compute the same values: stores on disk contain them.
    #[test]
    fn the_values_are_those_of_the_documented_format() {
        let start = Chain::genesis(Head::default(), &RowSet::default());
        let head = Head { revision: 1, ..Head::default() };
        let next = start.next(head, &hash_writes(&[Write::ScanTime(Timestamp(5))]));
        let values = [start.0, next.0, set(&[7]).digest()].map(|digest| digest.to_string());
        assert_eq!(
            values.map(|value| value[..16].to_owned()),
            ["4184184f04f19cda", "2f6c7f6163b84e63", "8677e3f29bdd45fc"]
        );
    }
}
