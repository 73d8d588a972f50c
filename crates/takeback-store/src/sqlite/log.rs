//! The log in SQLite.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rusqlite::TransactionBehavior;

use super::last_commit::{self, LastCommit};
use super::rows::{self, RowError};
use super::schema::{self, Synchronous};
use super::writer::Writer;
use super::{INDEX, KnownBlobs, LAST_COMMIT, SqliteStore, points, runs, sums};
use crate::chain::Chain;
use crate::change::Change;
use crate::disk::{self, CrashPoint, crash_point};
use crate::entry::Entry;
use crate::id::{CallId, RewindId, Seq, SessionId, Timestamp, TurnId};
use crate::path::WorkPath;
use crate::point::{Point, PointFilter, PointQuery};
use crate::rewind::{RewindHeader, RewindRecord};
use crate::runs::PathRuns;
use crate::session::{Call, Session, Turn};
use crate::store::{Durability, Head, Log, Loss, StoreError, Write};

impl Log for SqliteStore {
    fn head(&self) -> Result<Head, StoreError> {
        self.rows("reading its head", rows::head(&self.db))
    }

    fn commit(&mut self, expected: Head, writes: &[Write]) -> Result<Head, StoreError> {
        // Checked again in the transaction; here it spares a lost race the wait for the disk.
        if self.head()? != expected {
            return Err(StoreError::Moved);
        }
        let head = Write::next_head(expected, writes)?;
        if self.durability != Durability::Full
            && writes.iter().any(|write| matches!(write, Write::Rewind(_)))
        {
            return self.commit_promise(expected, writes);
        }
        // Contents before the rows that refer to them: the other order could leave a committed change
        // without its contents after a power loss.
        match self.durability {
            Durability::Full | Durability::Normal => self.packs.make_durable()?,
            Durability::Off => self.packs.write_out()?,
        }
        self.open_last_commit();
        let done = (|| {
            let transaction = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            if rows::head(&transaction)? != expected {
                return Ok(None);
            }
            // No other process can commit now: a later commit in the file is lost.
            let loss = self.last_commit.as_ref().and_then(|file| loss(file.read()?.0, expected));
            if let Some(loss) = loss {
                sums::add_loss(&transaction, loss)?;
            }
            let mut writer = Writer::new(&transaction)?;
            writer.blobs(self.packs.pending())?;
            for write in writes {
                writer.write(write)?;
            }
            let chain = writer.head(head, writes)?;
            drop(writer);
            crash_point(CrashPoint::Commit);
            transaction.commit()?;
            Ok(Some((chain, loss)))
        })();
        let Some((chain, loss)) = self.rows("committing to it", done)? else {
            return Err(StoreError::Moved);
        };
        crash_point(CrashPoint::Committed);
        // Only now may other handles append after these records: before the commit they could still have
        // been truncated.
        self.packs.mark_committed();
        // After the commit and never before: a file that is ahead of the database means a loss.
        self.note_commit(head, chain, loss);
        // A commit without records is part of a scan that is still running.
        if !writes.is_empty() {
            self.known_blobs = KnownBlobs::NotRead;
        }
        if writes.iter().any(is_drop) {
            self.empty_log()?;
        }
        Ok(head)
    }

    fn chain(&self) -> Result<Chain, StoreError> {
        self.rows("reading its chain", sums::chain(&self.db))
    }

    fn losses(&self) -> Result<Vec<Loss>, StoreError> {
        // Read in this order: otherwise a commit in between would look like a loss.
        let noted = last_commit::read_at(&self.dir.join(LAST_COMMIT));
        let head = self.head()?;
        let mut losses = self.rows("reading lost commits", sums::losses(&self.db))?;
        losses.extend(noted.and_then(|(noted, _)| loss(noted, head)));
        Ok(losses)
    }

    fn set_durability(&mut self, durability: Durability) -> Result<(), StoreError> {
        self.durability = durability;
        self.synchronize(durability)
    }

    fn set_busy_timeout(&mut self, timeout: Option<Duration>) -> Result<(), StoreError> {
        self.busy_timeout = timeout;
        let set = schema::set_busy_timeout(&self.db, timeout).map_err(RowError::from);
        self.rows("setting how long to wait", set)
    }

    fn changes_after(&self, after: Seq) -> Result<Vec<Change>, StoreError> {
        self.rows("reading changes", rows::changes_after(&self.db, after))
    }

    fn changes_between(&self, after: Seq, through: Seq) -> Result<Vec<Change>, StoreError> {
        self.rows("reading changes", rows::changes_between(&self.db, after, through))
    }

    fn rewind_changes_after(&self, after: Seq) -> Result<Vec<Change>, StoreError> {
        self.rows("reading what rewinds changed", rows::rewind_changes_after(&self.db, after))
    }

    fn change(&self, seq: Seq) -> Result<Option<Change>, StoreError> {
        self.rows("reading a change", rows::change_at(&self.db, seq))
    }

    fn changes_beside(&self, change: &Change) -> Result<Vec<Change>, StoreError> {
        self.rows("reading changes", rows::changes_beside(&self.db, change))
    }

    fn runs_after(
        &self,
        after: Seq,
        merged: &BTreeSet<SessionId>,
    ) -> Result<Vec<PathRuns>, StoreError> {
        let doing = "reading the changes in brief";
        let moment = self.rows(doing, self.db.unchecked_transaction().map_err(RowError::from))?;
        self.rows(doing, runs::runs_after(&moment, after, merged))
    }

    fn latest_of(&self, paths: &[WorkPath]) -> Result<Vec<Option<Change>>, StoreError> {
        let doing = "reading the newest changes of some paths";
        // One transaction, so that all paths are read at the same commit.
        let moment = self.rows(doing, self.db.unchecked_transaction().map_err(RowError::from))?;
        let changes = paths.iter().map(|path| rows::latest_of(&moment, path)).collect();
        self.rows(doing, changes)
    }

    fn changes_of(&self, path: &WorkPath) -> Result<Vec<Change>, StoreError> {
        self.rows("reading the changes of a path", rows::changes_of(&self.db, path))
    }

    fn newest_changes_of(
        &self,
        path: &WorkPath,
        before: Seq,
        most: usize,
    ) -> Result<Vec<Change>, StoreError> {
        let doing = "reading the newest changes of a path";
        self.rows(doing, rows::newest_changes_of(&self.db, path, before, most))
    }

    fn positions_below(
        &self,
        folder: &WorkPath,
        before: Seq,
        most: usize,
    ) -> Result<Vec<Seq>, StoreError> {
        let doing = "finding the changes below a path";
        self.rows(doing, rows::positions_below(&self.db, folder, before, most))
    }

    fn latest(&self) -> Result<Vec<(WorkPath, Entry)>, StoreError> {
        self.rows("reading the newest entry of every path", rows::latest(&self.db))
    }

    fn points(&self) -> Result<Vec<Point>, StoreError> {
        self.rows("reading points", points::all(&self.db))
    }

    fn find_points(&self, query: PointQuery<'_>) -> Result<Vec<Point>, StoreError> {
        self.rows("looking for points", points::find(&self.db, query))
    }

    fn count_points_of(&self, session: Option<&SessionId>) -> Result<usize, StoreError> {
        self.rows("counting points", points::count_of(&self.db, session))
    }

    fn points_by_session(&self) -> Result<BTreeMap<Option<SessionId>, usize>, StoreError> {
        self.rows("counting points", points::by_session(&self.db))
    }

    fn count_points(&self, filter: PointFilter) -> Result<usize, StoreError> {
        self.rows("counting points", points::count(&self.db, filter))
    }

    fn sessions(&self) -> Result<Vec<Session>, StoreError> {
        self.rows("reading sessions", rows::sessions(&self.db))
    }

    fn session(&self, id: &SessionId) -> Result<Option<Session>, StoreError> {
        self.rows("reading a session", rows::session_named(&self.db, id))
    }

    fn turn(&self, id: TurnId) -> Result<Option<Turn>, StoreError> {
        self.rows("reading a turn", rows::turn_of(&self.db, id))
    }

    fn turns(&self) -> Result<Vec<Turn>, StoreError> {
        self.rows("reading turns", rows::turns(&self.db))
    }

    fn live_calls(&self) -> Result<Vec<Call>, StoreError> {
        self.rows("reading live calls", rows::live_calls(&self.db))
    }

    fn unreadable(&self) -> Result<Vec<WorkPath>, StoreError> {
        self.rows("reading what could not be read", rows::unreadable(&self.db))
    }

    fn unreadable_changes(&self) -> Result<Vec<Change>, StoreError> {
        self.rows("reading what could not be read", rows::unreadable_changes(&self.db))
    }

    fn calls_since(&self, time: Timestamp) -> Result<Vec<Call>, StoreError> {
        self.rows("reading calls", rows::calls_since(&self.db, time))
    }

    fn call(&self, session: &SessionId, id: &CallId) -> Result<Option<Call>, StoreError> {
        self.rows("reading a call", rows::call_named(&self.db, session, id))
    }

    fn paths_of_call(&self, session: &SessionId, id: &CallId) -> Result<Vec<WorkPath>, StoreError> {
        self.rows("reading what a call changed", rows::paths_of_call(&self.db, session, id))
    }

    fn rewinds(&self) -> Result<Vec<RewindRecord>, StoreError> {
        self.rows("reading rewinds", rows::rewinds(&self.db))
    }

    fn rewind_headers(&self) -> Result<Vec<RewindHeader>, StoreError> {
        self.rows("reading rewinds", rows::rewind_headers(&self.db))
    }

    fn rewind(&self, id: RewindId) -> Result<Option<RewindRecord>, StoreError> {
        self.rows("reading a rewind", rows::rewind_with(&self.db, id))
    }

    fn open_rewinds(&self) -> Result<Vec<RewindRecord>, StoreError> {
        self.rows("reading open rewinds", rows::open_rewinds(&self.db))
    }

    fn last_scan(&self) -> Result<Option<Timestamp>, StoreError> {
        self.rows("reading the time of the last scan", rows::last_scan(&self.db))
    }

    fn last_cleanup(&self) -> Result<Option<Timestamp>, StoreError> {
        self.rows("reading the time of the last clean-up", rows::last_cleanup(&self.db))
    }
}

impl SqliteStore {
    /// Commits a rewind: it and all earlier commits are on disk when this returns, whatever the
    /// durability.
    fn commit_promise(&mut self, expected: Head, writes: &[Write]) -> Result<Head, StoreError> {
        if self.durability == Durability::Off {
            self.packs.make_all_durable()?;
        }
        let durability = std::mem::replace(&mut self.durability, Durability::Full);
        self.synchronize(Durability::Full)?;
        let committed = self.commit(expected, writes);
        // Also after a failure: the next commit must have the level that the caller set.
        self.set_durability(durability)?;
        committed
    }

    /// Empties SQLite's log, so that deleted records do not live on there, unless another process uses it.
    fn empty_log(&self) -> Result<(), StoreError> {
        let emptied = schema::checkpoint(&self.db)
            .and_then(|()| schema::set_busy_timeout(&self.db, self.busy_timeout));
        self.rows("emptying its log", emptied.map_err(RowError::from))
    }

    fn synchronize(&self, durability: Durability) -> Result<(), StoreError> {
        let synchronous = match durability {
            Durability::Full => Synchronous::Full,
            Durability::Normal | Durability::Off => Synchronous::Normal,
        };
        let set = schema::set_synchronous(&self.db, synchronous).map_err(RowError::from);
        self.rows("setting what to wait for", set)
    }

    fn open_last_commit(&mut self) {
        if self.last_commit.is_none() {
            // Without the file a later loss goes unnoticed, but that is no reason to refuse this
            // commit.
            self.last_commit = LastCommit::open(&self.dir.join(LAST_COMMIT)).ok();
        }
    }

    /// Notes a commit. After a loss the index contains changes whose numbers are now reused, so it
    /// is removed.
    fn note_commit(&self, head: Head, chain: Chain, loss: Option<Loss>) {
        if loss.is_some() {
            drop(disk::remove_store_file(&self.dir.join(INDEX)));
        }
        if let Some(file) = &self.last_commit {
            drop(file.write(head, chain));
        }
    }
}

/// The commits lost if the last one known is `noted` and the store is at `head`.
pub(super) fn loss(noted: Head, head: Head) -> Option<Loss> {
    (noted.revision > head.revision).then_some(Loss { kept: head, lost: noted })
}

/// Whether it deletes a record that no other record replaces.
fn is_drop(write: &Write) -> bool {
    match write {
        Write::DropChange(_)
        | Write::DropPoint(_)
        | Write::DropRewind(_)
        | Write::DropSession(_)
        | Write::DropTurns { .. } => true,
        Write::Change(_)
        | Write::Session(_)
        | Write::Turn(_)
        | Write::Call(_)
        | Write::Point(_)
        | Write::Rewind(_)
        | Write::ScanTime(_)
        | Write::CleanupTime(_)
        | Write::ReplaceChange(_)
        | Write::Correct { .. } => false,
    }
}
