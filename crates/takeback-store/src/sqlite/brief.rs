//! The log in brief, read without what is left out of it.
//!
//! Of a change in the middle of a stretch only numbers are read: its path, its author and which call
//! it was are looked up for the first and the last alone.

use std::collections::{BTreeSet, HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension as _};

use super::encoding::{self, kinds, signed, unsigned};
use super::rows::{self, RowError};
use crate::change::Author;
use crate::id::{Seq, SessionId};
use crate::stretch::{AS_ONE, HUMAN, Lean, PathStretches, Stretch, groups, in_brief};

/// A change's numbers.
struct Row {
    lean: Lean,
    /// The author's row, if it merely happened while a call ran.
    window: Option<i64>,
}

/// As [`in_brief`] of all changes after `after`. The caller sees to it that no commit comes between.
pub(super) fn stretches_after(
    db: &Connection,
    after: Seq,
    as_one: &BTreeSet<SessionId>,
) -> Result<Vec<PathStretches>, RowError> {
    let paths = by_path(db, after, as_one)?;
    let changes: usize = paths.iter().map(Vec::len).sum();
    let groups: Vec<_> =
        paths.iter().map(|rows| groups(rows.iter().map(|row| &row.lean))).collect();
    let looked_up: usize = groups.iter().map(Vec::len).sum();
    // One by one is slower than all at once, and where little goes together nothing is won.
    if looked_up * 4 > changes {
        return Ok(in_brief(rows::changes_after(db, after)?, as_one));
    }
    let mut found = Vec::with_capacity(paths.len());
    for (rows, groups) in paths.iter().zip(groups) {
        let mut path = None;
        let mut stretches = Vec::with_capacity(groups.len());
        for group in groups {
            let rows = &rows[group];
            let (last, first) = (&rows[rows.len() - 1], &rows[0]);
            let first = present(db, first.lean.seq)?;
            let after =
                if rows.len() == 1 { first.after } else { present(db, last.lean.seq)?.after };
            path = Some(first.path);
            stretches.push(Stretch {
                seqs: rows.iter().map(|row| row.lean.seq).collect(),
                before: first.before,
                after,
                author: first.author,
                cancels: first.cancels,
                windows: windows(db, rows)?,
            });
        }
        found.extend(path.map(|path| PathStretches { path, stretches }));
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The numbers of all changes after `after`, oldest first, by path.
fn by_path(
    db: &Connection,
    after: Seq,
    as_one: &BTreeSet<SessionId>,
) -> Result<Vec<Vec<Row>>, RowError> {
    let mut hands = Hands::read(db, after, as_one)?;
    let mut select = db.prepare_cached(
        "SELECT seq, path, kind, author, evidence, before, after, cancels
         FROM change WHERE seq > ?1 ORDER BY seq",
    )?;
    let mut place: HashMap<i64, usize> = HashMap::new();
    let mut paths: Vec<Vec<Row>> = Vec::new();
    let mut found = select.query([signed(after.0)])?;
    while let Some(row) = found.next()? {
        let seq = Seq(unsigned(row.get(0)?));
        let author: Option<i64> = row.get(3)?;
        let kind: i64 = row.get(2)?;
        let agent = match author.filter(|_| kind == kinds::AGENT) {
            Some(author) => hands.of(db, author)?,
            None => None,
        };
        let is_file = |column| -> Result<bool, RowError> {
            Ok(rows::blob_or_null(row, column)?.is_some_and(encoding::is_file))
        };
        let hand = match kind {
            kinds::AGENT => agent,
            kinds::HUMAN => Some(HUMAN),
            _ => None,
        };
        let hand = if is_file(5)? && is_file(6)? { hand } else { None };
        let cancels = match rows::blob_or_null(row, 7)? {
            Some(bytes) => encoding::seqs(bytes).ok_or_else(|| RowError::Damaged {
                what: format!("change {seq}"),
                why: "its list of changes",
            })?,
            None => Vec::new(),
        };
        let is_window = agent.is_some() && row.get::<_, i64>(4)? == WINDOW;
        let window = author.filter(|_| is_window);
        let at = *place.entry(row.get(1)?).or_insert_with(|| {
            paths.push(Vec::new());
            paths.len() - 1
        });
        paths[at].push(Row { lean: Lean { seq, hand, cancels }, window });
    }
    Ok(paths)
}

const WINDOW: i64 = 1;

/// Whose hand each author is.
struct Hands {
    /// By session.
    as_one: HashSet<i64>,
    /// By author.
    known: HashMap<i64, i64>,
}

impl Hands {
    /// Authors are written in the order of the changes: those after `after` are read in one go, and
    /// few others have to be looked up.
    fn read(db: &Connection, after: Seq, as_one: &BTreeSet<SessionId>) -> Result<Self, RowError> {
        let mut hands = Self { as_one: HashSet::new(), known: HashMap::new() };
        let mut sessions = db.prepare_cached("SELECT id, name FROM session")?;
        let mut rows = sessions.query([])?;
        while let Some(row) = rows.next()? {
            if as_one.contains(&SessionId(row.get(1)?)) {
                hands.as_one.insert(row.get(0)?);
            }
        }
        let mut authors = db.prepare_cached(
            "SELECT id, session FROM author WHERE id >= (
                 SELECT author FROM change WHERE seq > ?1 AND author IS NOT NULL
                 ORDER BY seq LIMIT 1)",
        )?;
        let mut rows = authors.query([signed(after.0)])?;
        while let Some(row) = rows.next()? {
            let hand = hands.of_session(row.get(1)?);
            hands.known.insert(row.get(0)?, hand);
        }
        Ok(hands)
    }

    fn of_session(&self, session: i64) -> i64 {
        if self.as_one.contains(&session) { AS_ONE } else { session }
    }

    fn of(&mut self, db: &Connection, author: i64) -> Result<Option<i64>, RowError> {
        if let Some(hand) = self.known.get(&author) {
            return Ok(Some(*hand));
        }
        let mut select = db.prepare_cached("SELECT session FROM author WHERE id = ?1")?;
        let session: Option<i64> = select.query_row([author], |row| row.get(0)).optional()?;
        let hand = session.map(|session| self.of_session(session));
        self.known.extend(hand.map(|hand| (author, hand)));
        Ok(hand)
    }
}

fn windows(db: &Connection, rows: &[Row]) -> Result<Vec<Author>, RowError> {
    let mut windows = Vec::new();
    let mut last = None;
    for row in rows.iter().filter(|row| row.window.is_some()) {
        if row.window != last {
            windows.push(present(db, row.lean.seq)?.author);
        }
        last = row.window;
    }
    Ok(windows)
}

fn present(db: &Connection, seq: Seq) -> Result<crate::change::Change, RowError> {
    rows::change_at(db, seq)?
        .ok_or_else(|| RowError::Damaged { what: format!("change {seq}"), why: "it is gone" })
}
