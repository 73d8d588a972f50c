//! The records that the chain covers: their checksums, the set of them, and the links of the chain.

use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::encoding::{signed, unsigned};
use super::points;
use super::rows::{self, RowError};
use crate::blob::Digest;
use crate::chain::{Chain, RowSet, Sum};
use crate::change::Change;
use crate::id::Seq;
use crate::point::Point;
use crate::rewind::RewindRecord;
use crate::session::{Call, Session, Turn};
use crate::store::{Head, Loss};

/// How many links of the chain are kept. Older ones would only explain the oldest of these.
const LINKS: u64 = 1024;

/// A record that the chain covers, with its table.
pub(super) trait ChainedRecord: Sized {
    /// The statement that selects all rows.
    const SELECT: &'static str;
    /// The column with the checksum.
    const SUM: usize;

    fn decode(row: &Row<'_>) -> Result<Self, RowError>;
    fn sum(&self) -> Sum;
    /// A name for the report.
    fn name(&self) -> String;
}

impl ChainedRecord for Change {
    const SELECT: &'static str = rows::CHANGES;
    const SUM: usize = rows::CHANGE_SUM;

    fn decode(row: &Row<'_>) -> Result<Self, RowError> {
        rows::decode_change(row, Err)
    }

    fn sum(&self) -> Sum {
        Sum::of_change(self)
    }

    fn name(&self) -> String {
        format!("change {} of {}", self.seq, self.path.display())
    }
}

impl ChainedRecord for Session {
    const SELECT: &'static str = rows::SESSIONS;
    const SUM: usize = rows::SESSION_SUM;

    fn decode(row: &Row<'_>) -> Result<Self, RowError> {
        rows::session(row)
    }

    fn sum(&self) -> Sum {
        Sum::of_session(self)
    }

    fn name(&self) -> String {
        format!("session {}", self.id)
    }
}

impl ChainedRecord for Turn {
    const SELECT: &'static str = rows::TURNS;
    const SUM: usize = rows::TURN_SUM;

    fn decode(row: &Row<'_>) -> Result<Self, RowError> {
        rows::turn(row)
    }

    fn sum(&self) -> Sum {
        Sum::of_turn(self)
    }

    fn name(&self) -> String {
        format!("a turn of session {}", self.session)
    }
}

impl ChainedRecord for Call {
    const SELECT: &'static str = rows::CALLS;
    const SUM: usize = rows::CALL_SUM;

    fn decode(row: &Row<'_>) -> Result<Self, RowError> {
        rows::call(row)
    }

    fn sum(&self) -> Sum {
        Sum::of_call(self)
    }

    fn name(&self) -> String {
        format!("call {} of session {}", self.id, self.session)
    }
}

impl ChainedRecord for Point {
    const SELECT: &'static str = points::ALL;
    const SUM: usize = points::SUM;

    fn decode(row: &Row<'_>) -> Result<Self, RowError> {
        points::point(row)
    }

    fn sum(&self) -> Sum {
        Sum::of_point(self)
    }

    fn name(&self) -> String {
        format!("point {}", self.id)
    }
}

impl ChainedRecord for RewindRecord {
    const SELECT: &'static str = rows::REWINDS;
    const SUM: usize = rows::REWIND_SUM;

    fn decode(row: &Row<'_>) -> Result<Self, RowError> {
        rows::decode_rewind(row)
    }

    fn sum(&self) -> Sum {
        Sum::of_rewind(self)
    }

    fn name(&self) -> String {
        format!("rewind {}", self.id)
    }
}

/// Adds the first row of **meta** and the first link of the chain to an empty store.
pub(super) fn begin(db: &Connection) -> rusqlite::Result<()> {
    let (head, set) = (Head::default(), RowSet::default());
    db.execute(
        "INSERT INTO meta (id, revision, seq, records) VALUES (1, ?1, ?2, ?3)",
        params![signed(head.revision), signed(head.seq.0), set.to_bytes()],
    )?;
    insert_link(db, head, &set.digest(), Chain::genesis(head, &set))
}

fn insert_link(db: &Connection, head: Head, body: &Digest, hash: Chain) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached("INSERT INTO link VALUES (?1, ?2, ?3, ?4)")?;
    insert.execute(params![
        signed(head.revision),
        signed(head.seq.0),
        &body.0[..],
        &hash.0.0[..]
    ])?;
    Ok(())
}

/// Adds the link of a commit, and drops those that are too old.
pub(super) fn add_link(db: &Connection, head: Head, body: &Digest) -> Result<Chain, RowError> {
    let hash = chain(db)?.next(head, body);
    insert_link(db, head, body, hash)?;
    if head.revision.is_multiple_of(64) {
        let mut delete = db.prepare_cached("DELETE FROM link WHERE revision < ?1")?;
        delete.execute([signed(head.revision.saturating_sub(LINKS))])?;
    }
    Ok(hash)
}

/// The hash of the last commit.
pub(super) fn chain(db: &Connection) -> Result<Chain, RowError> {
    let mut select = db.prepare_cached("SELECT hash FROM link ORDER BY revision DESC LIMIT 1")?;
    let hash: Option<[u8; 32]> = select.query_row([], |row| row.get(0)).optional()?;
    let lost = || RowError::Damaged { what: "the chain".to_owned(), why: "it has no link" };
    Ok(Chain(Digest(hash.ok_or_else(lost)?)))
}

/// The checksum of all records that the chain covers, as the last commit stored it.
pub(super) fn set(db: &Connection) -> Result<RowSet, RowError> {
    let mut select = db.prepare_cached("SELECT records FROM meta")?;
    let bytes: Vec<u8> = select.query_row([], |row| row.get(0))?;
    RowSet::from_bytes(&bytes).ok_or_else(|| RowError::Damaged {
        what: "the set of all records".to_owned(),
        why: "it is not readable",
    })
}

pub(super) fn losses(db: &Connection) -> Result<Vec<Loss>, RowError> {
    let mut select = db.prepare_cached(
        "SELECT revision, seq, lost_revision, lost_seq FROM loss ORDER BY number",
    )?;
    let head = |row: &Row<'_>, at: usize| -> rusqlite::Result<Head> {
        Ok(Head { revision: unsigned(row.get(at)?), seq: Seq(unsigned(row.get(at + 1)?)) })
    };
    let losses =
        select.query_map([], |row| Ok(Loss { kept: head(row, 0)?, lost: head(row, 2)? }))?;
    Ok(losses.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn add_loss(db: &Connection, loss: Loss) -> Result<(), RowError> {
    let mut insert = db.prepare_cached(
        "INSERT INTO loss (revision, seq, lost_revision, lost_seq) VALUES (?1, ?2, ?3, ?4)",
    )?;
    insert.execute(
        [loss.kept.revision, loss.kept.seq.0, loss.lost.revision, loss.lost.seq.0].map(signed),
    )?;
    Ok(())
}

// --- looking for damage ------------------------------------------------------------------------

/// The result of checking tables.
#[derive(Default)]
pub(super) struct Tally {
    /// Computed from the stored checksums, and from the records themselves.
    stored: RowSet,
    actual: RowSet,
    pub(super) damaged: Vec<RowError>,
}

impl Tally {
    /// Checks every record of a table and passes the readable ones to the callback.
    pub(super) fn table<R: ChainedRecord>(
        &mut self,
        db: &Connection,
        take: &mut dyn FnMut(R),
    ) -> Result<(), RowError> {
        let mut select = db.prepare(R::SELECT)?;
        let mut found = select.query([])?;
        while let Some(row) = found.next()? {
            let stored = rows::stored_sum(row, R::SUM)?;
            stored.into_iter().for_each(|sum| self.stored.add(sum));
            match R::decode(row) {
                Ok(record) => {
                    let sum = record.sum();
                    self.actual.add(sum);
                    if stored != Some(sum) {
                        let what = record.name();
                        self.damaged.push(RowError::Damaged { what, why: rows::NOT_AS_RECORDED });
                    }
                    take(record);
                }
                Err(error) => self.damaged.push(error),
            }
        }
        Ok(())
    }

    /// Whether no record was lost or added, whatever else is wrong with the existing ones.
    pub(super) fn is_whole(&self, db: &Connection) -> Result<bool, RowError> {
        let known = set(db)?;
        Ok(known == self.stored || known == self.actual)
    }
}

/// Describes what is wrong with the links.
pub(super) fn broken_links(db: &Connection, head: Head) -> Result<Vec<String>, RowError> {
    let mut select = db.prepare("SELECT revision, seq, body, hash FROM link ORDER BY revision")?;
    let mut found = select.query([])?;
    let mut before: Option<(Head, Chain)> = None;
    let mut broken = Vec::new();
    while let Some(row) = found.next()? {
        let at = Head { revision: unsigned(row.get(0)?), seq: Seq(unsigned(row.get(1)?)) };
        let (body, hash) = (Digest(row.get(2)?), Chain(Digest(row.get(3)?)));
        if let Some((last, chain)) = before {
            if at.revision != last.revision + 1 {
                broken.push(format!(
                    "the chain has no commit between {} and {}",
                    last.revision, at.revision
                ));
            } else if chain.next(at, &body) != hash {
                broken.push(format!("commit {} does not follow the one before it", at.revision));
            }
        }
        before = Some((at, hash));
    }
    match before {
        None => broken.push("the chain has no link".to_owned()),
        Some((last, _)) if last != head => broken.push(format!(
            "the chain ends at commit {} (change {}), the log at commit {} (change {})",
            last.revision, last.seq, head.revision, head.seq
        )),
        Some(_) => {}
    }
    Ok(broken)
}
