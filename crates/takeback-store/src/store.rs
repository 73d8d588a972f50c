//! What Takeback asks of a place to keep things in.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::blob::{Digest, PackedBlob};
use crate::chain::Chain;
use crate::change::{Attribution, Author, Change, Correction};
use crate::entry::Entry;
use crate::id::{CallId, PointId, RewindId, Seq, SessionId, Timestamp, TurnId};
use crate::path::WorkPath;
use crate::point::{Point, PointQuery, Shown};
use crate::rewind::{RewindRecord, RewindState};
use crate::session::{Call, Session, Turn};
use crate::stretch::{Calls, PathStretches, in_brief};

/// Commits that a store had and does not have any more: its end was cut off, or an older copy put in
/// its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// The last commit that is left of those before.
    pub kept: Head,
    /// The last that is known to have been there.
    pub lost: Head,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kept, lost } = self;
        write!(f, "commits {} to {} are lost", kept.revision + 1, lost.revision)?;
        if lost.seq > kept.seq {
            write!(f, ", with changes {} to {}", kept.seq.next(), lost.seq)?;
        }
        Ok(())
    }
}

/// The log, points, sessions and contents of one workspace.
///
/// Several processes may have the same store open. Each reads, decides, and commits against the
/// [`Head`] it read; a commit fails with [`StoreError::Moved`] when another came between.
pub trait Store: Send {
    fn head(&self) -> Result<Head, StoreError>;

    /// Does all of `writes` in order, or nothing. Every blob put before is durable before anything
    /// that names it; the commit itself is durable when this returns. A store that was told to wait
    /// for less ([`Durability`]) still does all this for a commit with a rewind. Changes must carry
    /// the next sequence numbers without a gap.
    fn commit(&mut self, expected: Head, writes: &[Write]) -> Result<Head, StoreError>;

    /// The hash over all commits up to the head ([`crate::chain`]).
    fn chain(&self) -> Result<Chain, StoreError>;

    /// What is known to have been committed and is not here any more, oldest first. None of it comes
    /// back; what is committed from then on is as good as ever.
    fn losses(&self) -> Result<Vec<Loss>, StoreError> {
        Ok(Vec::new())
    }

    /// How long, from now on, anything here waits for another process before it fails with
    /// [`StoreError::Busy`]. `None`: as long as in a store that was just opened.
    fn set_patience(&mut self, patience: Option<Duration>) -> Result<(), StoreError>;

    /// The changes after `after`, oldest first.
    fn changes_after(&self, after: Seq) -> Result<Vec<Change>, StoreError>;
    fn change(&self, seq: Seq) -> Result<Option<Change>, StoreError>;
    /// The changes after `after` in brief, by path. What the sessions of `as_one` did is not told
    /// apart.
    fn stretches_after(
        &self,
        after: Seq,
        as_one: &BTreeSet<SessionId>,
    ) -> Result<Vec<PathStretches>, StoreError> {
        let changes = self.changes_after(after)?;
        let mut calls = Calls::default();
        for change in &changes {
            if let Author::Agent { session, call, .. } = &change.author {
                calls.learn(session, call, || self.call(session, call))?;
            }
        }
        Ok(in_brief(changes, &calls, as_one))
    }
    /// Whose a change is, by what is known now.
    fn attribution(&self, change: &Change) -> Result<Attribution, StoreError> {
        let call = match &change.author {
            Author::Agent { session, call, .. } => self.call(session, call)?,
            _ => None,
        };
        Ok(change.attribution(call.as_ref()))
    }
    /// The paths that a call is recorded to have changed, in order.
    fn paths_of_call(&self, session: &SessionId, id: &CallId) -> Result<Vec<WorkPath>, StoreError> {
        let is_its = |change: &Change| matches!(&change.author, Author::Agent { session: by, call, .. } if (by, call) == (session, id));
        let changes = self.changes_after(Seq(0))?.into_iter().filter(is_its);
        let paths: BTreeSet<WorkPath> = changes.map(|change| change.path).collect();
        Ok(paths.into_iter().collect())
    }
    /// The newest change of each of these paths, in their order.
    fn latest_of(&self, paths: &[WorkPath]) -> Result<Vec<Option<Change>>, StoreError>;
    /// All changes of one path, oldest first.
    fn changes_of(&self, path: &WorkPath) -> Result<Vec<Change>, StoreError> {
        let mut changes = self.changes_after(Seq(0))?;
        changes.retain(|change| change.path == *path);
        Ok(changes)
    }
    /// Every path of the log with the entry it was last seen to have, by path.
    fn latest(&self) -> Result<Vec<(WorkPath, Entry)>, StoreError>;

    /// The paths that could not be read when they were last looked at, by path.
    fn unreadable(&self) -> Result<Vec<WorkPath>, StoreError> {
        let latest = self.latest()?.into_iter();
        Ok(latest.filter(|(_, entry)| entry.is_unreadable()).map(|(path, _)| path).collect())
    }

    /// All points, oldest first.
    fn points(&self) -> Result<Vec<Point>, StoreError>;
    /// Those that are asked for, at the cost of those alone.
    fn find_points(&self, query: PointQuery<'_>) -> Result<Vec<Point>, StoreError> {
        Ok(query.of(self.points()?))
    }
    fn count_points(&self, shown: Shown) -> Result<usize, StoreError> {
        Ok(self.points()?.iter().filter(|point| shown.includes(point)).count())
    }
    /// How many points of a session there are that may become too many: not those that Takeback makes
    /// before rewinds, nor those with a label or a pin.
    fn count_points_of(&self, session: &SessionId) -> Result<usize, StoreError> {
        let points = self.points()?;
        let counts = |point: &&Point| point.session.as_ref() == Some(session) && point.may_go();
        Ok(points.iter().filter(counts).count())
    }
    fn sessions(&self) -> Result<Vec<Session>, StoreError>;
    fn session(&self, id: &SessionId) -> Result<Option<Session>, StoreError>;
    fn turn(&self, id: TurnId) -> Result<Option<Turn>, StoreError>;
    /// All turns, by when they were opened.
    fn turns(&self) -> Result<Vec<Turn>, StoreError>;
    /// The calls that may still write: open, or running in the background.
    fn live_calls(&self) -> Result<Vec<Call>, StoreError>;
    fn call(&self, session: &SessionId, id: &CallId) -> Result<Option<Call>, StoreError>;
    /// The calls that were running at this time or began later, by when they began.
    fn calls_since(&self, time: Timestamp) -> Result<Vec<Call>, StoreError>;
    /// All rewinds, oldest first.
    fn rewinds(&self) -> Result<Vec<RewindRecord>, StoreError>;
    fn rewind(&self, id: RewindId) -> Result<Option<RewindRecord>, StoreError> {
        Ok(self.rewinds()?.into_iter().find(|rewind| rewind.id == id))
    }
    /// Those that are promised and not done, oldest first.
    fn open_rewinds(&self) -> Result<Vec<RewindRecord>, StoreError> {
        let mut rewinds = self.rewinds()?;
        rewinds.retain(|rewind| rewind.state == RewindState::Open);
        Ok(rewinds)
    }
    /// When the whole tree was last scanned and nothing was left to look at.
    fn last_scan(&self) -> Result<Option<Timestamp>, StoreError>;
    /// When it was last looked for what is no longer to be kept.
    fn last_cleanup(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Keeps a blob; it may be named by the next commit. One that is there already costs nothing.
    fn put(&mut self, blob: PackedBlob) -> Result<(), StoreError>;
    fn has(&self, digest: &Digest) -> Result<bool, StoreError>;
    /// One blob as it is kept, not yet verified.
    fn packed(&self, digest: &Digest) -> Result<PackedBlob, StoreError>;

    /// Hands the contents of `digest` to `sink` part by part, in order, each verified. The whole is
    /// verified too: only `Ok` says that what `sink` got is right.
    fn read(
        &self,
        digest: &Digest,
        sink: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<(), StoreError> {
        let damaged = || StoreError::DamagedBlob { digest: *digest };
        let unwritten = |source| StoreError::Sink { digest: *digest, source };
        let blob = self.packed(digest)?;
        let chunks = blob.chunks();
        if chunks.is_empty() {
            return sink(&blob.unpack().ok_or_else(damaged)?).map_err(unwritten);
        }
        let mut whole = blake3::Hasher::new();
        for chunk in chunks {
            let contents = self.packed(&chunk)?.unpack().ok_or_else(damaged)?;
            whole.update(&contents);
            sink(&contents).map_err(unwritten)?;
        }
        if *whole.finalize().as_bytes() == digest.0 { Ok(()) } else { Err(damaged()) }
    }

    /// Whether the contents of `digest` lie where they should, each part of them. A store may answer
    /// without reading all of their bytes: only [`Self::read`] says that these are right.
    fn holds(&self, digest: &Digest) -> Result<bool, StoreError> {
        match self.read(digest, &mut |_| Ok(())) {
            Err(error) if error.is_lost_contents() => Ok(false),
            read => read.map(|()| true),
        }
    }

    /// The contents of `digest`, whole in memory.
    fn contents(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        let mut contents = Vec::new();
        self.read(digest, &mut |part| {
            contents.extend_from_slice(part);
            Ok(())
        })?;
        Ok(contents)
    }

    /// Finds the contents that no change names.
    fn unnamed(&self) -> Result<Unnamed, StoreError>;

    /// Forgets them, but for those that have been named since. The caller sees to it that nobody
    /// else has put contents, or been told that they are here, and not yet committed what names
    /// them.
    fn forget(&mut self, unnamed: &Unnamed) -> Result<(), StoreError>;

    /// Gives the space of what was forgotten back to the system, as far as that is worth the work.
    fn compact(&mut self) -> Result<(), StoreError>;

    /// As [`Self::compact`], however much there is to copy: where room is short.
    fn squeeze(&mut self) -> Result<(), StoreError> {
        self.compact()
    }

    /// As [`Self::compact`], of everything: afterwards no byte of what was forgotten or replaced is in
    /// any file of the store.
    fn expunge(&mut self) -> Result<(), StoreError> {
        self.compact()
    }

    /// Makes what is kept smaller, reading about `budget` bytes for it: whoever has time goes on as
    /// long as there is more. Nobody needs to hold still for it.
    fn repack(&mut self, _budget: u64) -> Result<Repacked, StoreError> {
        Ok(Repacked::default())
    }

    /// What keeping each of these contents takes, and their parts, which are in the answer too. Those
    /// that are not here are left out.
    fn weights(&self, digests: &HashSet<Digest>) -> Result<HashMap<Digest, Weight>, StoreError> {
        let mut weights = HashMap::new();
        let mut open: Vec<Digest> = digests.iter().copied().collect();
        while let Some(digest) = open.pop() {
            if weights.contains_key(&digest) || !self.has(&digest)? {
                continue;
            }
            let blob = self.packed(&digest)?;
            let parts = blob.chunks();
            open.extend(&parts);
            weights.insert(digest, Weight { bytes: blob.bytes.len() as u64, parts });
        }
        Ok(weights)
    }

    /// Where the space goes.
    fn usage(&self) -> Result<Usage, StoreError>;

    /// Looks at everything that is kept; answers what is damaged, in words, empty if nothing is.
    fn check(&self) -> Result<Vec<String>, StoreError>;
}

/// What a commit waits for. Whatever it is, a process that dies, killed or not, loses nothing that was
/// committed: the system has it. The levels differ in what a power loss leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Contents and the commit are on the disk when it returns.
    #[default]
    Full,
    /// Contents are on the disk before the commit that names them. Commits of the last seconds may be
    /// gone, the newest first; what is left is whole.
    Normal,
    /// Nothing is waited for. Commits of the last seconds may be gone, and contents that the others
    /// name may be missing.
    Off,
}

impl Durability {
    pub const ALL: [Self; 3] = [Self::Full, Self::Normal, Self::Off];

    /// As it stands in settings.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
            Self::Off => "off",
        }
    }
}

/// A moment of a store: every commit moves the revision, changes also the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    pub revision: u64,
    pub seq: Seq,
}

/// One thing that a commit does. A change is appended; a session, turn, call, point or rewind
/// replaces what has the same id; to drop what is not there does nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    Change(Change),
    Session(Session),
    Turn(Turn),
    Call(Call),
    Point(Point),
    Rewind(RewindRecord),
    /// The whole tree was scanned at this time.
    Scanned(Timestamp),
    /// It was looked at this time for what is no longer to be kept.
    CleanedUp(Timestamp),
    /// Takes the place of the change with the same number and path.
    ReplaceChange(Change),
    /// What the person said of a change's author.
    Correct {
        change: Seq,
        correction: Correction,
    },
    DropChange(Seq),
    DropPoint(PointId),
    DropRewind(RewindId),
    /// With its turns, calls and points. Its changes stay, as of [`Author::Deleted`]; where it was
    /// one of several suspects, it no longer is; its children have no parent.
    DropSession(SessionId),
    /// The turns of this session that were closed before this time and that no change names, with
    /// their calls.
    DropTurns {
        session: SessionId,
        before: Timestamp,
    },
}

/// Contents that no change named at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unnamed {
    pub at: Head,
    pub digests: HashSet<Digest>,
}

/// What a piece of repacking did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Repacked {
    /// Bytes that contents are kept in less than before.
    pub gained: u64,
    pub more: bool,
}

/// What some contents take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weight {
    /// On disk, without their parts.
    pub bytes: u64,
    /// The contents they are made of, which others may be made of, too.
    pub parts: Vec<Digest>,
}

/// What a store takes on disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Contents, each once, as they were.
    pub contents: u64,
    /// The same as they are kept: compressed, with what it takes to find them.
    pub kept: u64,
    /// The files they lie in, with what is no longer named.
    pub packs: u64,
    /// Everything else: the log, points, sessions. What is on its way there is not counted.
    pub database: u64,
    pub blobs: u64,
    pub changes: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("another process committed first")]
    Moved,
    #[error("no store at {path}")]
    Missing { path: PathBuf },
    /// Never a reason to make a new one there: SQLite would take what is left for its own.
    #[error("the database {path} is gone, but {left} is still there")]
    LostDatabase { path: PathBuf, left: PathBuf },
    #[error("{path} is not a Takeback store")]
    Foreign { path: PathBuf },
    #[error("the store at {path} has format {found}; this Takeback knows formats up to {known}")]
    Newer { path: PathBuf, found: i64, known: i64 },
    #[error("the store is busy: another process has been writing to {path} for too long")]
    Busy { path: PathBuf },
    #[error("{path} cannot be used ({doing})")]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
    #[error("the database {path} failed while {doing}")]
    Sqlite { path: PathBuf, doing: &'static str, source: rusqlite::Error },
    #[error("the database {path} is damaged")]
    DamagedDatabase { path: PathBuf, source: rusqlite::Error },
    #[error("{what} in the store is damaged: {why}")]
    DamagedRecord { what: String, why: String },
    #[error("the contents {digest} are not in the store")]
    MissingBlob { digest: Digest },
    #[error("the contents {digest} are damaged in the store")]
    DamagedBlob { digest: Digest },
    #[error("the contents {digest} could not be written out")]
    Sink { digest: Digest, source: io::Error },
    #[error("a commit of change {found} where {expected} is next")]
    Gap { expected: Seq, found: Seq },
}

impl StoreError {
    #[must_use]
    pub fn is_moved(&self) -> bool {
        matches!(self, Self::Moved)
    }

    /// Only the contents that were asked for are lost: everything else can still be had.
    #[must_use]
    pub fn is_lost_contents(&self) -> bool {
        let failed_disk = Some(rustix::io::Errno::IO.raw_os_error());
        match self {
            Self::MissingBlob { .. } | Self::DamagedBlob { .. } => true,
            Self::Io { source, .. } => source.raw_os_error() == failed_disk,
            _ => false,
        }
    }

    /// There is no room on the disk.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        matches!(self, Self::Io { source, .. } if full.contains(&source.kind()))
    }
}
