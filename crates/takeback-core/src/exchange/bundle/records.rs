//! The body of each kind of record in a bundle: from values to bytes and back.
//!
//! `docs/design/bundle-format.md` describes every byte. Reading trusts nothing: a body that is too short, too
//! long, or holds an invalid number is `None`.

use takeback_store::Encoding;
use takeback_store::{
    Author, CallId, Change, Digest, Entry, Evidence, GitState, NotCapturedReason, PackedBlob,
    Point, PointBasis, PointId, PointKind, RewindId, Seq, Session, SessionId, Timestamp, Turn,
    TurnId, WorkPath,
};

pub(super) fn put_session(out: &mut Vec<u8>, session: &Session) {
    put_bytes(out, session.id.0.as_bytes());
    put_option(out, session.agent.as_deref(), put_text);
    put_option(out, session.parent.as_ref().map(|id| id.0.as_str()), put_text);
    put_time(out, session.started_at);
    put_option(out, session.ended_at, put_time);
    put_option(out, session.model.as_deref(), put_text);
}

pub(super) fn session(body: &[u8]) -> Option<Session> {
    let mut input = Input(body);
    let session = Session {
        id: SessionId(input.text()?),
        agent: input.option(Input::text)?,
        parent: input.option(Input::text)?.map(SessionId),
        owner: None,
        started_at: input.time()?,
        ended_at: input.option(Input::time)?,
        archived_at: None,
        open_turn: None,
        model: input.option(Input::text)?,
    };
    input.end(session)
}

pub(super) fn put_turn(out: &mut Vec<u8>, turn: &Turn) {
    put_u64(out, turn.id.0);
    put_text(out, &turn.session.0);
    put_option(out, turn.message.as_deref(), put_text);
    put_text(out, &turn.prompt);
    put_time(out, turn.opened_at);
    put_option(out, turn.closed_at, put_time);
    put_option(out, turn.model.as_deref(), put_text);
}

pub(super) fn turn(body: &[u8]) -> Option<Turn> {
    let mut input = Input(body);
    let turn = Turn {
        id: TurnId(input.u64()?),
        session: SessionId(input.text()?),
        message: input.option(Input::text)?,
        prompt: input.text()?,
        opened_at: input.time()?,
        closed_at: input.option(Input::time)?,
        model: input.option(Input::text)?,
    };
    input.end(turn)
}

pub(super) fn put_base(out: &mut Vec<u8>, path: &WorkPath, entry: &Entry) {
    put_bytes(out, path.as_bytes());
    put_entry(out, entry);
}

/// The path as it was written; the caller checks that it is valid.
pub(super) fn base(body: &[u8]) -> Option<(Vec<u8>, Entry)> {
    let mut input = Input(body);
    let base = (input.bytes()?.to_vec(), input.entry()?);
    input.end(base)
}

/// A change without its number and path.
pub(super) struct Step {
    pub(super) before: Entry,
    pub(super) after: Entry,
    pub(super) author: Author,
    pub(super) evidence: Evidence,
    pub(super) time: Timestamp,
    pub(super) cancels: Vec<Seq>,
}

pub(super) fn put_change(out: &mut Vec<u8>, change: &Change) {
    put_bytes(out, change.path.as_bytes());
    put_entry(out, &change.before);
    put_entry(out, &change.after);
    put_author(out, &change.author);
    out.push(match change.evidence {
        Evidence::Named => 0,
        Evidence::Window => 1,
        Evidence::AfterEdit => 2,
        Evidence::OpenWindow => 3,
    });
    put_time(out, change.time);
    put_count(out, change.cancels.len());
    change.cancels.iter().for_each(|seq| put_u64(out, seq.0));
}

pub(super) fn change(body: &[u8]) -> Option<(Vec<u8>, Step)> {
    let mut input = Input(body);
    let path = input.bytes()?.to_vec();
    let step = Step {
        before: input.entry()?,
        after: input.entry()?,
        author: input.author()?,
        evidence: match input.byte()? {
            0 => Evidence::Named,
            1 => Evidence::Window,
            2 => Evidence::AfterEdit,
            3 => Evidence::OpenWindow,
            _ => return None,
        },
        time: input.time()?,
        cancels: input.list(|input| input.u64().map(Seq))?,
    };
    input.end((path, step))
}

const POINT_KINDS: [(u8, PointKind); 3] =
    [(0, PointKind::Prompt), (1, PointKind::Manual), (2, PointKind::Step)];

/// Panics for a safety point: those are not exported.
pub(super) fn put_point(out: &mut Vec<u8>, point: &Point) {
    let kind = POINT_KINDS.iter().find(|(_, kind)| *kind == point.kind);
    put_u64(out, point.id.0);
    put_u64(out, point.seq.0);
    out.push(kind.expect("safety points are not exported").0);
    put_option(out, point.session.as_ref().map(|id| id.0.as_str()), put_text);
    put_text(out, &point.description);
    put_option(out, point.label.as_deref(), put_text);
    out.push(u8::from(point.pinned));
    put_time(out, point.created_at);
    put_count(out, point.message_ids.len());
    point.message_ids.iter().for_each(|message| put_text(out, message));
    put_option(out, point.git.as_ref(), |out, git| {
        put_option(out, git.head.as_deref(), put_text);
        put_option(out, git.branch.as_deref(), put_text);
    });
}

pub(super) fn point(body: &[u8]) -> Option<Point> {
    let mut input = Input(body);
    let point = Point {
        id: PointId(input.u64()?),
        seq: Seq(input.u64()?),
        kind: {
            let byte = input.byte()?;
            POINT_KINDS.into_iter().find(|(known, _)| *known == byte)?.1
        },
        session: input.option(Input::text)?.map(SessionId),
        description: input.text()?,
        label: input.option(Input::text)?,
        pinned: input.flag()?,
        created_at: input.time()?,
        message_ids: input.list(Input::text)?,
        git: input.option(|input| {
            Some(GitState { head: input.option(Input::text)?, branch: input.option(Input::text)? })
        })?,
        basis: PointBasis::Scan,
    };
    input.end(point)
}

pub(super) fn put_blob(out: &mut Vec<u8>, blob: &PackedBlob) {
    out.extend_from_slice(&blob.digest.0);
    put_u64(out, blob.size);
    out.push(blob.encoding as u8);
    out.extend_from_slice(&blob.bytes);
}

pub(super) fn blob(body: &[u8]) -> Option<PackedBlob> {
    let mut input = Input(body);
    Some(PackedBlob {
        digest: Digest(input.array()?),
        size: input.u64()?,
        encoding: Encoding::from_byte(input.byte()?)?,
        bytes: input.0.to_vec(),
    })
}

fn put_entry(out: &mut Vec<u8>, entry: &Entry) {
    match entry {
        Entry::Absent => out.push(0),
        Entry::File { digest, size, mode } => {
            out.push(1);
            out.extend_from_slice(&digest.0);
            put_u64(out, *size);
            out.extend_from_slice(&mode.to_le_bytes());
        }
        Entry::Symlink { target } => {
            out.push(2);
            put_bytes(out, target);
        }
        Entry::Dir { mode } => {
            out.push(3);
            out.extend_from_slice(&mode.to_le_bytes());
        }
        Entry::NotCaptured { reason } => out.extend([4, *reason as u8]),
        Entry::Unknown => out.push(5),
    }
}

fn put_author(out: &mut Vec<u8>, author: &Author) {
    match author {
        Author::Agent { session, turn, call, tool } => {
            out.push(0);
            put_text(out, &session.0);
            put_u64(out, turn.0);
            put_text(out, &call.0);
            put_text(out, tool);
        }
        Author::Human => out.push(1),
        Author::Ambiguous { sessions } => {
            out.push(2);
            put_count(out, sessions.len());
            sessions.iter().for_each(|session| put_text(out, &session.0));
        }
        Author::Rewind { id } => {
            out.push(3);
            put_u64(out, id.0);
        }
        Author::Deleted => out.push(4),
        Author::Import => out.push(5),
    }
}

fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put_time(out: &mut Vec<u8>, time: Timestamp) {
    out.extend_from_slice(&time.0.to_le_bytes());
}

/// A record whose length does not fit 32 bits is refused as a whole, so a truncated count is never read.
#[expect(clippy::cast_possible_truncation, reason = "see above")]
fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&(count as u32).to_le_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

fn put_option<T>(out: &mut Vec<u8>, value: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}

/// What is left of a body.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// `value`, if the body ends here.
    fn end<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn time(&mut self) -> Option<Timestamp> {
        self.array().map(i64::from_le_bytes).map(Timestamp)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()? as usize;
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<String> {
        std::str::from_utf8(self.bytes()?).ok().map(str::to_owned)
    }

    fn option<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        if self.flag()? { read(self).map(Some) } else { Some(None) }
    }

    /// Any count is safe: each item takes at least a byte of the body, which is already in memory.
    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.u32()?;
        (0..count).map(|_| read(self)).collect()
    }

    fn entry(&mut self) -> Option<Entry> {
        Some(match self.byte()? {
            0 => Entry::Absent,
            1 => {
                Entry::File { digest: Digest(self.array()?), size: self.u64()?, mode: self.u32()? }
            }
            2 => Entry::Symlink { target: self.bytes()?.to_vec() },
            3 => Entry::Dir { mode: self.u32()? },
            4 => Entry::NotCaptured { reason: NotCapturedReason::from_byte(self.byte()?)? },
            5 => Entry::Unknown,
            _ => return None,
        })
    }

    fn author(&mut self) -> Option<Author> {
        Some(match self.byte()? {
            0 => Author::Agent {
                session: SessionId(self.text()?),
                turn: TurnId(self.u64()?),
                call: CallId(self.text()?),
                tool: self.text()?,
            },
            1 => Author::Human,
            2 => Author::Ambiguous { sessions: self.list(|input| input.text().map(SessionId))? },
            3 => Author::Rewind { id: RewindId(self.u64()?) },
            4 => Author::Deleted,
            5 => Author::Import,
            _ => return None,
        })
    }
}
