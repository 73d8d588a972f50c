//! Writes records into the tables.

use std::collections::HashMap;

use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

use super::encoding::{self, kinds, signed, unsigned};
use super::pack::Location;
use super::rows::{self, RowError};
use super::sums::{self, ChainedRecord};
use crate::blob::Digest;
use crate::chain::{self, Chain, RowSet, Sum};
use crate::change::{Author, Change, Correction};
use crate::id::{Seq, SessionId, Timestamp};
use crate::path::WorkPath;
use crate::point::Point;
use crate::rewind::RewindRecord;
use crate::session::{Call, CallKind, Session, Turn};
use crate::store::{Head, Write};

/// Writes into one transaction and caches what it looks up.
pub(super) struct Writer<'a> {
    db: &'a Connection,
    /// The checksum of all records that the chain covers, as of the last write.
    set: RowSet,
    authors: HashMap<&'a Author, i64>,
    // A first scan runs these two tens of thousands of times, so they are prepared once.
    insert_path: Option<CachedStatement<'a>>,
    insert_change: Option<CachedStatement<'a>>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(db: &'a Connection) -> Result<Self, RowError> {
        let set = sums::set(db)?;
        Ok(Self { db, set, authors: HashMap::new(), insert_path: None, insert_change: None })
    }

    /// Finishes the commit of `writes`: stores the head and the next link of the chain.
    pub(super) fn head(&self, head: Head, writes: &[Write]) -> Result<Chain, RowError> {
        let mut update =
            self.db.prepare_cached("UPDATE meta SET revision = ?1, seq = ?2, records = ?3")?;
        let set = self.set.to_bytes();
        update.execute(params![signed(head.revision), signed(head.seq.0), set])?;
        sums::add_link(self.db, head, &chain::hash_writes(writes))
    }

    /// Updates the set for a record that replaces `old`, if there is one.
    fn replaces(&mut self, old: Option<Sum>, new: Sum) {
        old.into_iter().for_each(|sum| self.set.remove(sum));
        self.set.add(new);
    }

    /// The checksums that a statement selects; rows without one are skipped.
    fn sums(&self, sql: &str, key: impl rusqlite::Params) -> Result<Vec<Sum>, RowError> {
        let mut select = self.db.prepare_cached(sql)?;
        let found = select.query_and_then(key, |row| rows::stored_sum(row, 0))?;
        found.filter_map(Result::transpose).collect()
    }

    fn sum_of(&self, sql: &str, key: impl rusqlite::Params) -> Result<Option<Sum>, RowError> {
        Ok(self.sums(sql, key)?.pop())
    }

    /// Adds rows for blobs. If another process stored the same contents in the meantime, its copy
    /// stays in use.
    pub(super) fn blobs(&self, blobs: &HashMap<Digest, Location>) -> Result<(), RowError> {
        let mut insert = self.db.prepare_cached(
            "INSERT OR IGNORE INTO blob (digest, segment, offset, length, size, encoding)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        // Insert in the order of the table: that is several times faster for a first scan.
        let mut blobs: Vec<_> = blobs.iter().collect();
        blobs.sort_unstable_by_key(|(digest, _)| **digest);
        for (digest, location) in blobs {
            insert.execute(params![
                &digest.0[..],
                location.segment,
                signed(location.offset),
                location.length,
                signed(location.size),
                location.encoding as u8,
            ])?;
        }
        Ok(())
    }

    pub(super) fn write(&mut self, write: &'a Write) -> Result<(), RowError> {
        match write {
            Write::Change(change) => self.change(change),
            Write::Session(session) => self.session(session),
            Write::Turn(turn) => self.turn(turn),
            Write::Call(call) => self.call(call),
            Write::Point(point) => self.point(point),
            Write::Rewind(rewind) => self.rewind(rewind),
            Write::ScanTime(time) => {
                let mut update = self.db.prepare_cached("UPDATE meta SET last_scan = ?1")?;
                update.execute([time.0])?;
                Ok(())
            }
            Write::CleanupTime(time) => {
                let mut update = self.db.prepare_cached("UPDATE meta SET last_cleanup = ?1")?;
                update.execute([time.0])?;
                Ok(())
            }
            Write::ReplaceChange(change) => {
                self.drop_change(change.seq)?;
                self.change(change)
            }
            Write::Correct { change, correction } => self.correct(*change, correction),
            Write::DropChange(seq) => self.drop_change(*seq),
            Write::DropPoint(id) => {
                self.delete("DELETE FROM point WHERE id = ?1 RETURNING sum", id.0.cast_signed())
            }
            Write::DropRewind(id) => {
                self.delete("DELETE FROM rewind WHERE id = ?1 RETURNING sum", id.0.cast_signed())
            }
            Write::DropSession(id) => self.drop_session(id),
            Write::DropTurns { session, before } => self.drop_turns(session, *before),
        }
    }

    /// Deletes rows that the chain covers; the statement must return their checksums.
    fn delete(&mut self, sql: &str, key: impl rusqlite::ToSql) -> Result<(), RowError> {
        self.sums(sql, [key])?.into_iter().for_each(|sum| self.set.remove(sum));
        Ok(())
    }

    fn drop_change(&mut self, seq: Seq) -> Result<(), RowError> {
        self.delete("DELETE FROM change WHERE seq = ?1 RETURNING sum", signed(seq.0))
    }

    /// Deletes a session with its records. Records that only referred to it change, so their
    /// checksums are updated.
    fn drop_session(&mut self, id: &SessionId) -> Result<(), RowError> {
        let number = "SELECT id FROM session WHERE name = ?1";
        let number: Option<i64> =
            self.db.prepare_cached(number)?.query_row([&id.0], |row| row.get(0)).optional()?;
        let Some(number) = number else { return Ok(()) };
        for gone in [
            "SELECT sum FROM session WHERE id = ?1",
            "SELECT sum FROM turn WHERE session = ?1",
            "SELECT sum FROM call WHERE session = ?1",
            "SELECT sum FROM point WHERE session = ?1",
        ] {
            self.sums(gone, [number])?.into_iter().for_each(|sum| self.set.remove(sum));
        }
        let children = self.keys::<String>(
            "SELECT name FROM session WHERE parent = ?1 AND started_at IS NOT NULL",
            number,
        )?;
        let changes = self.keys::<i64>(
            "SELECT seq FROM change WHERE author IN (SELECT id FROM author WHERE session = ?1)
             UNION SELECT change FROM suspect WHERE session = ?1
             UNION SELECT seq FROM change WHERE corrected_for = ?1",
            number,
        )?;
        // A damaged record keeps its wrong checksum, or the damage would become invisible.
        let mut intact = Vec::new();
        for seq in changes {
            match rows::intact_change_at(self.db, Seq(unsigned(seq))) {
                Err(RowError::Damaged { .. }) | Ok(None) => {}
                Ok(Some(change)) => intact.push(change),
                Err(error) => return Err(error),
            }
        }
        let mut sessions = Vec::new();
        for name in children {
            let child = SessionId(name);
            let sum = self.sum_of("SELECT sum FROM session WHERE name = ?1", [&child.0])?;
            let known = rows::session_named(self.db, &child)?;
            sessions.extend(known.filter(|known| sum == Some(known.sum())));
        }
        self.db.prepare_cached("DELETE FROM session WHERE id = ?1")?.execute([number])?;
        for old in intact {
            if let Some(new) = rows::unverified_change_at(self.db, old.seq)? {
                self.sum_change_again(&old, &new)?;
            }
        }
        for old in sessions {
            if let Some(new) = rows::session_named(self.db, &old.id)? {
                self.replaces(Some(old.sum()), new.sum());
                let mut update =
                    self.db.prepare_cached("UPDATE session SET sum = ?2 WHERE name = ?1")?;
                update.execute(params![new.id.0, &new.sum().0[..]])?;
            }
        }
        Ok(())
    }

    fn keys<T: rusqlite::types::FromSql>(&self, sql: &str, key: i64) -> Result<Vec<T>, RowError> {
        let mut select = self.db.prepare_cached(sql)?;
        let found = select.query_map([key], |row| row.get(0))?;
        Ok(found.collect::<rusqlite::Result<_>>()?)
    }

    /// Updates the checksum of an intact change that another write altered.
    fn sum_change_again(&mut self, old: &Change, new: &Change) -> Result<(), RowError> {
        self.replaces(Some(old.sum()), new.sum());
        let mut update = self.db.prepare_cached("UPDATE change SET sum = ?2 WHERE seq = ?1")?;
        update.execute(params![signed(new.seq.0), &new.sum().0[..]])?;
        Ok(())
    }

    fn drop_turns(&mut self, session: &SessionId, before: Timestamp) -> Result<(), RowError> {
        const OVER: &str = "SELECT t.id FROM turn t JOIN session s ON s.id = t.session
             WHERE s.name = ?1 AND t.closed_at < ?2
                 AND NOT EXISTS (SELECT 1 FROM author a JOIN change c ON c.author = a.id
                     WHERE a.session = t.session AND a.turn = t.id)
                 AND NOT EXISTS (SELECT 1 FROM call l
                     WHERE l.state <= 3 AND l.session = t.session AND l.turn = t.id)";
        for delete in [
            format!(
                "DELETE FROM call WHERE turn IN ({OVER})
                     AND session = (SELECT id FROM session WHERE name = ?1) RETURNING sum"
            ),
            format!("DELETE FROM turn WHERE id IN ({OVER}) RETURNING sum"),
        ] {
            let gone = self.sums(&delete, params![session.0, before.0])?;
            gone.into_iter().for_each(|sum| self.set.remove(sum));
        }
        Ok(())
    }

    fn change(&mut self, change: &'a Change) -> Result<(), RowError> {
        let path = self.path_number(&change.path)?;
        let author = match &change.author {
            Author::Agent { .. } => Some(self.author_number(&change.author)?),
            _ => None,
        };
        let rewind = match &change.author {
            Author::Rewind { id } => Some(id.0.cast_signed()),
            _ => None,
        };
        let cancels = Some(encoding::seqs_bytes(&change.cancels)).filter(|bytes| !bytes.is_empty());
        let sum = change.sum();
        self.set.add(sum);
        let insert = match &mut self.insert_change {
            Some(insert) => insert,
            none => none.insert(self.db.prepare_cached(
                "INSERT INTO change (seq, path, before, after, kind, author, rewind, evidence, time,
                     cancels, changed_at, sum)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?),
        };
        insert.execute(params![
            signed(change.seq.0),
            path,
            encoding::entry_bytes(&change.before),
            encoding::entry_bytes(&change.after),
            kinds::author(&change.author),
            author,
            rewind,
            kinds::number(&kinds::EVIDENCES, &change.evidence),
            change.time.0,
            cancels,
            change.changed_at.map(|time| time.0),
            &sum.0[..],
        ])?;
        if let Some(correction) = &change.correction {
            self.set_correction(change.seq, correction)?;
        }
        if let Author::Ambiguous { sessions } = &change.author {
            let mut insert = self.db.prepare_cached("INSERT INTO suspect VALUES (?1, ?2, ?3)")?;
            for (position, session) in (0_i64..).zip(sessions) {
                let session = self.session_number(session)?;
                insert.execute(params![signed(change.seq.0), position, session])?;
            }
        }
        Ok(())
    }

    fn correct(&mut self, change: Seq, correction: &Correction) -> Result<(), RowError> {
        let intact = match rows::intact_change_at(self.db, change) {
            Err(RowError::Damaged { .. }) => None,
            intact => intact?,
        };
        self.set_correction(change, correction)?;
        if let (Some(old), Some(new)) = (intact, rows::unverified_change_at(self.db, change)?) {
            self.sum_change_again(&old, &new)?;
        }
        Ok(())
    }

    fn set_correction(&self, change: Seq, correction: &Correction) -> Result<(), RowError> {
        let (kind, session) = match correction {
            Correction::Mine => (kinds::MINE, None),
            Correction::Agent { session } => (kinds::AGENTS, Some(self.session_number(session)?)),
        };
        let mut update = self.db.prepare_cached(
            "UPDATE change SET correction = ?2, corrected_for = ?3 WHERE seq = ?1",
        )?;
        update.execute(params![signed(change.0), kind, session])?;
        Ok(())
    }

    fn session(&mut self, session: &Session) -> Result<(), RowError> {
        let number = self.session_number(&session.id)?;
        let sum = session.sum();
        let old = self.sum_of("SELECT sum FROM session WHERE id = ?1", [number])?;
        self.replaces(old, sum);
        let parent = session.parent.as_ref().map(|id| self.session_number(id)).transpose()?;
        let mut update = self.db.prepare_cached(
            "UPDATE session SET agent = ?2, parent = ?3, owner_pid = ?4, owner_started = ?5,
                 started_at = ?6, ended_at = ?7, archived_at = ?8, open_turn = ?9, model = ?10,
                 sum = ?11
             WHERE id = ?1",
        )?;
        update.execute(params![
            number,
            session.agent,
            parent,
            session.owner.map(|owner| owner.pid),
            session.owner.map(|owner| owner.started.cast_signed()),
            session.started_at.0,
            session.ended_at.map(|time| time.0),
            session.archived_at.map(|time| time.0),
            session.open_turn.map(|turn| turn.0.cast_signed()),
            session.model,
            &sum.0[..],
        ])?;
        Ok(())
    }

    fn turn(&mut self, turn: &Turn) -> Result<(), RowError> {
        let session = self.session_number(&turn.session)?;
        let sum = turn.sum();
        let old = self.sum_of("SELECT sum FROM turn WHERE id = ?1", [turn.id.0.cast_signed()])?;
        self.replaces(old, sum);
        let mut upsert = self.db.prepare_cached(
            "INSERT INTO turn (id, session, message, prompt, opened_at, closed_at, model, sum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (id) DO UPDATE SET session = ?2, message = ?3, prompt = ?4, opened_at = ?5,
                 closed_at = ?6, model = ?7, sum = ?8",
        )?;
        upsert.execute(params![
            turn.id.0.cast_signed(),
            session,
            turn.message,
            turn.prompt,
            turn.opened_at.0,
            turn.closed_at.map(|time| time.0),
            turn.model,
            &sum.0[..],
        ])?;
        Ok(())
    }

    fn call(&mut self, call: &Call) -> Result<(), RowError> {
        let session = self.session_number(&call.session)?;
        let sum = call.sum();
        let old = "SELECT sum FROM call WHERE session = ?1 AND id = ?2";
        let old = self.sum_of(old, params![session, call.id.0])?;
        self.replaces(old, sum);
        let (paths, command, named) = match &call.kind {
            CallKind::Edit { paths } => (Some(encoding::paths_bytes(paths)), None, None),
            CallKind::Shell { command, paths } => {
                let named = Some(encoding::paths_bytes(paths)).filter(|bytes| !bytes.is_empty());
                (None, command.as_ref(), named)
            }
        };
        let mut upsert = self.db.prepare_cached(
            "INSERT INTO call (session, id, turn, tool, paths, command, state, opened_at, closed_at,
                 named, began_at, active_at, sum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
             ON CONFLICT (session, id) DO UPDATE SET turn = ?3, tool = ?4, paths = ?5, command = ?6,
                 state = ?7, opened_at = ?8, closed_at = ?9, named = ?10, began_at = ?11,
                 active_at = ?12, sum = ?13",
        )?;
        upsert.execute(params![
            session,
            call.id.0,
            call.turn.0.cast_signed(),
            call.tool,
            paths,
            command,
            kinds::number(&kinds::CALL_STATES, &call.state),
            call.opened_at.0,
            call.closed_at.map(|time| time.0),
            named,
            call.began_at.map(|time| time.0),
            call.active_at.map(|time| time.0),
            &sum.0[..],
        ])?;
        Ok(())
    }

    fn point(&mut self, point: &Point) -> Result<(), RowError> {
        let sum = point.sum();
        let old = self.sum_of("SELECT sum FROM point WHERE id = ?1", [point.id.0.cast_signed()])?;
        self.replaces(old, sum);
        let session = point.session.as_ref().map(|id| self.session_number(id)).transpose()?;
        let git = point.git.as_ref();
        let mut upsert = self.db.prepare_cached(
            "INSERT INTO point (id, seq, session, kind, description, label, pinned, created_at, git,
                 git_head, git_branch, basis, sum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
             ON CONFLICT (id) DO UPDATE SET seq = ?2, session = ?3, kind = ?4, description = ?5,
                 label = ?6, pinned = ?7, created_at = ?8, git = ?9, git_head = ?10, git_branch = ?11,
                 basis = ?12, sum = ?13
             RETURNING number",
        )?;
        let values = params![
            point.id.0.cast_signed(),
            signed(point.seq.0),
            session,
            kinds::number(&kinds::POINTS, &point.kind),
            point.description,
            point.label,
            point.pinned,
            point.created_at.0,
            git.is_some(),
            git.and_then(|git| git.head.as_ref()),
            git.and_then(|git| git.branch.as_ref()),
            kinds::number(&kinds::BASES, &point.basis),
            &sum.0[..],
        ];
        let number: i64 = upsert.query_row(values, |row| row.get(0))?;
        self.db.prepare_cached("DELETE FROM point_message WHERE point = ?1")?.execute([number])?;
        let mut insert = self.db.prepare_cached("INSERT INTO point_message VALUES (?1, ?2, ?3)")?;
        for (position, message) in (0_i64..).zip(&point.message_ids) {
            insert.execute(params![number, position, message])?;
        }
        Ok(())
    }

    fn rewind(&mut self, rewind: &RewindRecord) -> Result<(), RowError> {
        let sum = rewind.sum();
        let old =
            self.sum_of("SELECT sum FROM rewind WHERE id = ?1", [rewind.id.0.cast_signed()])?;
        self.replaces(old, sum);
        let (kind, target) = rewind.kind.numbers();
        let mut upsert = self.db.prepare_cached(
            "INSERT INTO rewind (id, kind, target, state, began_at, safety_point, created_at, plan,
                 receipt, sum)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (id) DO UPDATE SET kind = ?2, target = ?3, state = ?4, began_at = ?5,
                 safety_point = ?6, created_at = ?7, plan = ?8, receipt = ?9, sum = ?10",
        )?;
        upsert.execute(params![
            rewind.id.0.cast_signed(),
            kind,
            target.cast_signed(),
            kinds::number(&kinds::REWIND_STATES, &rewind.state),
            signed(rewind.began_at.0),
            rewind.safety_point.0.cast_signed(),
            rewind.created_at.0,
            rewind.plan.as_bytes(),
            rewind.receipt,
            &sum.0[..],
        ])?;
        Ok(())
    }

    fn path_number(&mut self, path: &WorkPath) -> Result<i64, RowError> {
        // Insert before looking it up: in a first scan all of the tens of thousands of paths are
        // new.
        let insert =
            match &mut self.insert_path {
                Some(insert) => insert,
                none => none.insert(self.db.prepare_cached(
                    "INSERT INTO path (bytes) VALUES (?1) ON CONFLICT DO NOTHING",
                )?),
            };
        if insert.execute([path.as_bytes()])? == 1 {
            return Ok(self.db.last_insert_rowid());
        }
        let mut select = self.db.prepare_cached("SELECT id FROM path WHERE bytes = ?1")?;
        Ok(select.query_row([path.as_bytes()], |row| row.get(0))?)
    }

    fn session_number(&self, id: &SessionId) -> Result<i64, RowError> {
        let mut select = self.db.prepare_cached("SELECT id FROM session WHERE name = ?1")?;
        if let Some(number) = select.query_row([&id.0], |row| row.get(0)).optional()? {
            return Ok(number);
        }
        let mut insert = self.db.prepare_cached("INSERT INTO session (name) VALUES (?1)")?;
        Ok(insert.insert([&id.0])?)
    }

    fn author_number(&mut self, author: &'a Author) -> Result<i64, RowError> {
        if let Some(number) = self.authors.get(author) {
            return Ok(*number);
        }
        let Author::Agent { session, turn, call, tool } = author else {
            unreachable!("only agents are kept as authors");
        };
        let values =
            params![self.session_number(session)?, turn.0.cast_signed(), call.0, tool.as_str()];
        let mut select = self.db.prepare_cached(
            "SELECT id FROM author WHERE session = ?1 AND turn = ?2 AND call = ?3 AND tool = ?4",
        )?;
        let number = match select.query_row(values, |row| row.get(0)).optional()? {
            Some(number) => number,
            None => self
                .db
                .prepare_cached(
                    "INSERT INTO author (session, turn, call, tool) VALUES (?1, ?2, ?3, ?4)",
                )?
                .insert(values)?,
        };
        self.authors.insert(author, number);
        Ok(number)
    }
}
