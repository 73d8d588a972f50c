//! The log of one workspace, and everything recorded next to it: points, sessions, turns, calls,
//! rewinds.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::{Durability, StoreError};
use crate::chain::Chain;
use crate::change::{Attribution, Author, Change, Correction};
use crate::entry::Entry;
use crate::id::{CallId, PointId, RewindId, Seq, SessionId, Timestamp, TurnId};
use crate::path::WorkPath;
use crate::point::{Point, PointFilter, PointQuery};
use crate::rewind::{RewindHeader, RewindRecord, RewindState};
use crate::runs::{CallLookup, PathRuns, group_runs};
use crate::session::{Call, Session, Turn};

/// The log of one workspace.
///
/// Several processes may have the same log open. Each reads, decides, and commits against the
/// [`Head`] it read; a commit fails with [`StoreError::Moved`] if another process committed in
/// between. Methods with a body are correct for any medium; a medium that can answer them without
/// reading the whole log overrides them.
pub trait Log {
    /// The last commit.
    fn head(&self) -> Result<Head, StoreError>;

    /// Applies all of `writes` in order, or none. Every blob put before is durable before anything
    /// that refers to it, and the commit itself is durable when this returns. A log with a lower
    /// [`Durability`] still does both for a commit that contains a rewind. Changes must carry the
    /// next sequence numbers without a gap.
    fn commit(&mut self, expected: Head, writes: &[Write]) -> Result<Head, StoreError>;

    /// The hash over all commits up to the head.
    fn chain(&self) -> Result<Chain, StoreError>;

    /// Commits that are known to have existed and are gone, oldest first. They cannot be recovered;
    /// later commits are not affected.
    fn losses(&self) -> Result<Vec<Loss>, StoreError> {
        Ok(Vec::new())
    }

    /// Sets what commits wait for; [`Durability::Full`] after opening. A medium that knows only one
    /// level ignores it.
    fn set_durability(&mut self, _durability: Durability) -> Result<(), StoreError> {
        Ok(())
    }

    /// Sets how long any call waits for another process before it fails with [`StoreError::Busy`].
    /// `None`: the default. A medium that never waits ignores it.
    fn set_busy_timeout(&mut self, _timeout: Option<Duration>) -> Result<(), StoreError> {
        Ok(())
    }

    /// The changes after `after`, oldest first.
    fn changes_after(&self, after: Seq) -> Result<Vec<Change>, StoreError>;

    /// The changes after `after` up to `through`, oldest first.
    fn changes_between(&self, after: Seq, through: Seq) -> Result<Vec<Change>, StoreError> {
        let mut changes = self.changes_after(after)?;
        changes.retain(|change| change.seq <= through);
        Ok(changes)
    }

    /// The changes that rewinds made after `after`, oldest first.
    fn rewind_changes_after(&self, after: Seq) -> Result<Vec<Change>, StoreError> {
        let mut changes = self.changes_after(after)?;
        changes.retain(|change| matches!(change.author, Author::Rewind { .. }));
        Ok(changes)
    }

    /// The change with this number, unless it was dropped.
    fn change(&self, seq: Seq) -> Result<Option<Change>, StoreError>;

    /// The changes recorded at the same time as `change` and next to it in the log, itself included,
    /// oldest first: what one look at the tree found.
    fn changes_beside(&self, change: &Change) -> Result<Vec<Change>, StoreError> {
        let changes = self.changes_after(Seq(0))?;
        let mut moments = changes.chunk_by(|a, b| a.time == b.time);
        let beside = moments.find(|moment| moment.iter().any(|one| one.seq == change.seq));
        Ok(beside.unwrap_or_default().to_vec())
    }

    /// All changes of one path, oldest first.
    fn changes_of(&self, path: &WorkPath) -> Result<Vec<Change>, StoreError> {
        let mut changes = self.changes_after(Seq(0))?;
        changes.retain(|change| change.path == *path);
        Ok(changes)
    }

    /// The newest `most` changes of a path before `before`, oldest first.
    fn newest_changes_of(
        &self,
        path: &WorkPath,
        before: Seq,
        most: usize,
    ) -> Result<Vec<Change>, StoreError> {
        let mut changes = self.changes_of(path)?;
        changes.retain(|change| change.seq < before);
        Ok(changes.split_off(changes.len().saturating_sub(most)))
    }

    /// The positions of the newest `most` changes before `before` of a path and of everything below it,
    /// oldest first.
    fn positions_below(
        &self,
        folder: &WorkPath,
        before: Seq,
        most: usize,
    ) -> Result<Vec<Seq>, StoreError> {
        let mut changes = self.changes_after(Seq(0))?;
        changes.retain(|change| change.seq < before && change.path.is_within(folder.as_bytes()));
        let newest = changes.split_off(changes.len().saturating_sub(most));
        Ok(newest.iter().map(|change| change.seq).collect())
    }

    /// The changes after `after` as runs, by path. Changes by different sessions in `merged` may
    /// share a run.
    fn runs_after(
        &self,
        after: Seq,
        merged: &BTreeSet<SessionId>,
    ) -> Result<Vec<PathRuns>, StoreError> {
        let changes = self.changes_after(after)?;
        let mut calls = CallLookup::default();
        for change in &changes {
            if let Author::Agent { session, call, .. } = &change.author {
                calls.look_up_once(session, call, || self.call(session, call))?;
            }
        }
        Ok(group_runs(changes, &calls, merged))
    }

    /// The author of a change, given everything known now.
    fn attribution(&self, change: &Change) -> Result<Attribution, StoreError> {
        let call = match &change.author {
            Author::Agent { session, call, .. } => self.call(session, call)?,
            _ => None,
        };
        Ok(change.attribution(call.as_ref()))
    }

    /// The paths with a change recorded as made by this call, sorted.
    fn paths_of_call(&self, session: &SessionId, id: &CallId) -> Result<Vec<WorkPath>, StoreError> {
        let is_its = |change: &Change| matches!(&change.author, Author::Agent { session: by, call, .. } if (by, call) == (session, id));
        let changes = self.changes_after(Seq(0))?.into_iter().filter(is_its);
        let paths: BTreeSet<WorkPath> = changes.map(|change| change.path).collect();
        Ok(paths.into_iter().collect())
    }

    /// The newest change of each of these paths, in their order.
    fn latest_of(&self, paths: &[WorkPath]) -> Result<Vec<Option<Change>>, StoreError>;

    /// Every path of the log with its newest entry, by path.
    fn latest(&self) -> Result<Vec<(WorkPath, Entry)>, StoreError>;

    /// The paths whose newest entry says that they could not be read, sorted.
    fn unreadable(&self) -> Result<Vec<WorkPath>, StoreError> {
        let latest = self.latest()?.into_iter();
        Ok(latest.filter(|(_, entry)| entry.is_unreadable()).map(|(path, _)| path).collect())
    }

    /// The changes from or to an entry that could not be read, oldest first.
    fn unreadable_changes(&self) -> Result<Vec<Change>, StoreError> {
        let mut changes = self.changes_after(Seq(0))?;
        changes.retain(|change| change.before.is_unreadable() || change.after.is_unreadable());
        Ok(changes)
    }

    /// All points, oldest first.
    fn points(&self) -> Result<Vec<Point>, StoreError>;

    /// The points that `query` asks for, at the cost of those alone.
    fn find_points(&self, query: PointQuery<'_>) -> Result<Vec<Point>, StoreError> {
        Ok(query.select(self.points()?))
    }

    /// How many points pass `filter`.
    fn count_points(&self, filter: PointFilter) -> Result<usize, StoreError> {
        Ok(self.points()?.iter().filter(|point| filter.includes(point)).count())
    }

    /// How many points of a session may expire; `None`: of those without a session.
    fn count_points_of(&self, session: Option<&SessionId>) -> Result<usize, StoreError> {
        let points = self.points()?;
        let counts = |point: &&Point| point.session.as_ref() == session && point.may_expire();
        Ok(points.iter().filter(counts).count())
    }

    /// How many points each session has, of all kinds; `None`: those without a session.
    fn points_by_session(&self) -> Result<BTreeMap<Option<SessionId>, usize>, StoreError> {
        let mut counts = BTreeMap::new();
        for point in self.points()? {
            *counts.entry(point.session).or_default() += 1;
        }
        Ok(counts)
    }

    /// All sessions, by when they started.
    fn sessions(&self) -> Result<Vec<Session>, StoreError>;

    /// The session with this id.
    fn session(&self, id: &SessionId) -> Result<Option<Session>, StoreError>;

    /// All turns, by when they were opened.
    fn turns(&self) -> Result<Vec<Turn>, StoreError>;

    /// The turn with this id.
    fn turn(&self, id: TurnId) -> Result<Option<Turn>, StoreError>;

    /// The calls that ran at this time or began later, by when they began.
    fn calls_since(&self, time: Timestamp) -> Result<Vec<Call>, StoreError>;

    /// The calls that may still write, by when they began.
    fn live_calls(&self) -> Result<Vec<Call>, StoreError>;

    /// The call with this id.
    fn call(&self, session: &SessionId, id: &CallId) -> Result<Option<Call>, StoreError>;

    /// All rewinds, oldest first.
    fn rewinds(&self) -> Result<Vec<RewindRecord>, StoreError>;

    /// All rewinds without their plans and receipts, oldest first.
    fn rewind_headers(&self) -> Result<Vec<RewindHeader>, StoreError> {
        Ok(self.rewinds()?.iter().map(RewindRecord::header).collect())
    }

    /// The rewind with this id.
    fn rewind(&self, id: RewindId) -> Result<Option<RewindRecord>, StoreError> {
        Ok(self.rewinds()?.into_iter().find(|rewind| rewind.id == id))
    }

    /// The rewinds that were promised and are not done, oldest first.
    fn open_rewinds(&self) -> Result<Vec<RewindRecord>, StoreError> {
        let mut rewinds = self.rewinds()?;
        rewinds.retain(|rewind| rewind.state == RewindState::Open);
        Ok(rewinds)
    }

    /// When a scan last covered the whole tree.
    fn last_scan(&self) -> Result<Option<Timestamp>, StoreError>;

    /// When retention was last applied.
    fn last_cleanup(&self) -> Result<Option<Timestamp>, StoreError>;
}

/// A state of a store: every commit increments the revision, changes also the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// How many commits there were.
    pub revision: u64,
    /// The number of the last change.
    pub seq: Seq,
}

/// One write of a commit. A change is appended; a session, turn, call, point or rewind replaces the
/// record with the same id; dropping a record that does not exist does nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Appends a change.
    Change(Change),
    /// Adds or replaces a session.
    Session(Session),
    /// Adds or replaces a turn.
    Turn(Turn),
    /// Adds or replaces a call.
    Call(Call),
    /// Adds or replaces a point.
    Point(Point),
    /// Adds or replaces a rewind.
    Rewind(RewindRecord),
    /// The whole tree was scanned at this time.
    ScanTime(Timestamp),
    /// Retention was applied at this time.
    CleanupTime(Timestamp),
    /// Replaces the change with the same number and path.
    ReplaceChange(Change),
    /// Records what the user said about a change's author.
    Correct {
        /// The change it is about.
        change: Seq,
        /// What the user said.
        correction: Correction,
    },
    /// Drops a change.
    DropChange(Seq),
    /// Drops a point.
    DropPoint(PointId),
    /// Drops a rewind.
    DropRewind(RewindId),
    /// Drops a session with its turns, calls and points. Its changes stay, as of
    /// [`Author::Deleted`]; it is no longer one of several possible authors, and its children have no
    /// parent.
    DropSession(SessionId),
    /// Drops the turns of a session that were closed before this time and are no change's author,
    /// with their calls.
    DropTurns {
        /// Whose turns.
        session: SessionId,
        /// Turns closed earlier than this.
        before: Timestamp,
    },
}

impl Write {
    /// The head after committing `writes` on top of `head`. Fails if their changes leave a gap.
    pub(crate) fn next_head(head: Head, writes: &[Self]) -> Result<Head, StoreError> {
        let mut seq = head.seq;
        for write in writes {
            if let Self::Change(change) = write {
                if change.seq != seq.next() {
                    return Err(StoreError::Gap { expected: seq.next(), found: change.seq });
                }
                seq = change.seq;
            }
        }
        Ok(Head { revision: head.revision + 1, seq })
    }
}

/// Commits that a store had and no longer has: its end was cut off, or an older copy replaced it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss {
    /// The last commit before the lost ones.
    pub kept: Head,
    /// The last commit known to be lost.
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
