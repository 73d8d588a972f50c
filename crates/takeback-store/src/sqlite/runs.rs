//! The log in brief, read without what is left out of it.
//!
//! Of a change in the middle of a run only numbers are read: its path, its author and which call
//! it was are looked up for the first and the last alone.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _};

use super::encoding::{self, kinds, signed, unsigned};
use super::rows::{self, RowError};
use crate::change::{Attribution, Author, Change, Evidence};
use crate::id::{Seq, SessionId};
use crate::runs::{
    AuthorKey, CallLookup, ChangeOutline, ChangeRun, HUMAN, LastInferred, PathRuns, group_runs,
    groups,
};
use crate::session::Call;

/// A change's numbers.
struct Row {
    lean: ChangeOutline,
    /// The author's row, if its call did not name the path.
    inferred: Option<(i64, Evidence)>,
}

/// As [`group_runs`] of all changes after `after`. The caller sees to it that no commit comes between.
pub(super) fn runs_after(
    db: &Connection,
    after: Seq,
    as_one: &BTreeSet<SessionId>,
) -> Result<Vec<PathRuns>, RowError> {
    let mut hands = AuthorKeys::read(db, after, as_one)?;
    let paths = by_path(db, after, &mut hands)?;
    let changes: usize = paths.iter().map(Vec::len).sum();
    let groups: Vec<_> =
        paths.iter().map(|rows| groups(rows.iter().map(|row| &row.lean))).collect();
    let looked_up: usize = groups.iter().map(Vec::len).sum();
    // One by one is slower than all at once, and where little goes together nothing is won.
    if looked_up * 4 > changes {
        let changes = rows::changes_after(db, after)?;
        let mut calls = hands.into_calls()?;
        for change in &changes {
            if let Author::Agent { session, call, .. } = &change.author {
                calls.learn(session, call, || rows::call_named(db, session, call))?;
            }
        }
        return Ok(group_runs(changes, &calls, as_one));
    }
    let mut last_inferred = LastInferred::default();
    let mut found = Vec::with_capacity(paths.len());
    for (rows, groups) in paths.iter().zip(groups) {
        let mut path = None;
        let mut runs = Vec::with_capacity(groups.len());
        for group in groups {
            let rows = &rows[group];
            let (last, first) = (&rows[rows.len() - 1], &rows[0]);
            let (first, known) = present(db, first.lean.seq)?;
            let after = match rows {
                [_] => first.after,
                _ => present(db, last.lean.seq)?.0.after,
            };
            path = Some(first.path);
            runs.push(ChangeRun {
                seqs: rows.iter().map(|row| row.lean.seq).collect(),
                before: first.before,
                after,
                author: known.author,
                evidence: known.evidence,
                cancels: first.cancels,
                inferred: inferred(db, rows, &mut last_inferred)?,
            });
        }
        found.extend(path.map(|path| PathRuns { path, runs }));
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// The numbers of all changes after `after`, oldest first, by path.
fn by_path(db: &Connection, after: Seq, hands: &mut AuthorKeys) -> Result<Vec<Vec<Row>>, RowError> {
    let mut select = db.prepare_cached(
        "SELECT seq, path, kind, author, evidence, before, after, cancels, correction
         FROM change WHERE seq > ?1 ORDER BY seq",
    )?;
    let mut place: HashMap<i64, usize> = HashMap::new();
    let mut paths: Vec<Vec<Row>> = Vec::new();
    let mut found = select.query([signed(after.0)])?;
    while let Some(row) = found.next()? {
        let seq = Seq(unsigned(row.get(0)?));
        let author: Option<i64> = row.get(3)?;
        let kind: i64 = row.get(2)?;
        let evidence = kinds::value(&kinds::EVIDENCES, row.get(4)?);
        let evidence = evidence.unwrap_or(Evidence::OpenWindow);
        let is_corrected = row.get_ref(8)? != rusqlite::types::ValueRef::Null;
        let plain = match author {
            Some(author) if kind == kinds::AGENT => hands.is_plain(author, evidence),
            _ => true,
        };
        // What its call's record or the person says of it decides: that takes the whole change.
        let (hand, evidence) = if is_corrected || !plain {
            let (_, known) = present(db, seq)?;
            (hands.of_attribution(db, &known)?, known.evidence)
        } else {
            let hand = match kind {
                kinds::AGENT => match author {
                    Some(author) => hands.of(db, author)?,
                    None => None,
                },
                kinds::HUMAN => Some(HUMAN),
                _ => None,
            };
            (hand, evidence)
        };
        let state = |column| -> Result<(bool, u64), RowError> {
            let bytes = rows::blob_or_null(row, column)?.unwrap_or_default();
            let mark = BuildHasherDefault::<DefaultHasher>::new().hash_one(bytes);
            Ok((encoding::is_file(bytes), mark))
        };
        let (before, after) = (state(5)?, state(6)?);
        let is_sure = evidence != Evidence::OpenWindow || hand == Some(HUMAN);
        let hand = hand.filter(|_| before.0 && after.0 && is_sure);
        let cancels = match rows::blob_or_null(row, 7)? {
            Some(bytes) => encoding::seqs(bytes).ok_or_else(|| RowError::Damaged {
                what: format!("change {seq}"),
                why: "its list of changes",
            })?,
            None => Vec::new(),
        };
        let inferred = author
            .filter(|_| kind == kinds::AGENT && evidence != Evidence::Named)
            .map(|author| (author, evidence));
        let at = *place.entry(row.get(1)?).or_insert_with(|| {
            paths.push(Vec::with_capacity(1));
            paths.len() - 1
        });
        let lean = ChangeOutline { seq, hand, states: [before.1, after.1], cancels };
        paths[at].push(Row { lean, inferred });
    }
    Ok(paths)
}

/// Whose hand each author is, and the call behind it.
struct AuthorKeys {
    /// By session's number.
    as_one: HashSet<i64>,
    sessions: HashMap<SessionId, i64>,
    /// By author.
    known: HashMap<i64, AuthorKey>,
    calls: HashMap<i64, Call>,
}

impl AuthorKeys {
    /// Authors are written in the order of the changes: those after `after` are read in one go, and
    /// few others have to be looked up.
    fn read(db: &Connection, after: Seq, as_one: &BTreeSet<SessionId>) -> Result<Self, RowError> {
        let mut hands = Self {
            as_one: HashSet::new(),
            sessions: HashMap::new(),
            known: HashMap::new(),
            calls: HashMap::new(),
        };
        let mut sessions = db.prepare_cached("SELECT id, name FROM session")?;
        let mut rows = sessions.query([])?;
        while let Some(row) = rows.next()? {
            let (number, name) = (row.get(0)?, SessionId(row.get(1)?));
            if as_one.contains(&name) {
                hands.as_one.insert(number);
            }
            hands.sessions.insert(name, number);
        }
        let mut first = db.prepare_cached(
            "SELECT author FROM change WHERE seq > ?1 AND author IS NOT NULL ORDER BY seq LIMIT 1",
        )?;
        let Some(first) = first.query_row([signed(after.0)], |row| row.get(0)).optional()? else {
            return Ok(hands);
        };
        let mut authors = db.prepare_cached("SELECT id, session FROM author WHERE id >= ?1")?;
        let mut rows = authors.query([first])?;
        while let Some(row) = rows.next()? {
            let hand = hands.of_session(row.get(1)?);
            hands.known.insert(row.get(0)?, hand);
        }
        hands.calls.extend(rows::calls_of_authors(db, first)?);
        Ok(hands)
    }

    fn of_session(&self, session: i64) -> AuthorKey {
        AuthorKey { session, is_as_one: self.as_one.contains(&session) }
    }

    fn of(&mut self, db: &Connection, author: i64) -> Result<Option<AuthorKey>, RowError> {
        if let Some(hand) = self.known.get(&author) {
            return Ok(Some(*hand));
        }
        let mut select = db.prepare_cached("SELECT session FROM author WHERE id = ?1")?;
        let session: Option<i64> = select.query_row([author], |row| row.get(0)).optional()?;
        let hand = session.map(|session| self.of_session(session));
        self.known.extend(hand.map(|hand| (author, hand)));
        Ok(hand)
    }

    /// Whether a change by this author is what it was recorded as, whatever its times.
    fn is_plain(&self, author: i64, evidence: Evidence) -> bool {
        use crate::session::CallState::{Done, Failed};
        evidence != Evidence::OpenWindow
            && self.calls.get(&author).is_none_or(|call| {
                evidence == Evidence::AfterEdit
                    || (matches!(call.state, Done | Failed) && call.began_at.is_none())
            })
    }

    fn of_attribution(
        &mut self,
        db: &Connection,
        known: &Attribution,
    ) -> Result<Option<AuthorKey>, RowError> {
        Ok(match &known.author {
            Author::Human => Some(HUMAN),
            Author::Agent { session, .. } => match self.sessions.get(session) {
                Some(number) => Some(self.of_session(*number)),
                None => db
                    .prepare_cached("SELECT id FROM session WHERE name = ?1")?
                    .query_row([&session.0], |row| row.get(0))
                    .optional()?
                    .map(|number| self.of_session(number)),
            },
            _ => None,
        })
    }

    fn into_calls(self) -> Result<CallLookup, RowError> {
        let mut calls = CallLookup::default();
        for call in self.calls.into_values() {
            let (session, id) = (call.session.clone(), call.id.clone());
            calls.learn(&session, &id, || Ok::<_, RowError>(Some(call)))?;
        }
        Ok(calls)
    }
}

fn inferred(
    db: &Connection,
    rows: &[Row],
    shared: &mut LastInferred,
) -> Result<Vec<Arc<Attribution>>, RowError> {
    let mut inferred = Vec::new();
    let mut last = None;
    for row in rows.iter().filter(|row| row.inferred.is_some()) {
        if row.inferred != last {
            let (_, known) = present(db, row.lean.seq)?;
            shared.add_to(&mut inferred, &known.author, known.evidence);
        }
        last = row.inferred;
    }
    Ok(inferred)
}

/// A change that is known to be there, and whose it is by what is known now.
fn present(db: &Connection, seq: Seq) -> Result<(Change, Attribution), RowError> {
    let change = rows::change_at(db, seq)?
        .ok_or_else(|| RowError::Damaged { what: format!("change {seq}"), why: "it is gone" })?;
    let call = match &change.author {
        Author::Agent { session, call, .. } => rows::call_named(db, session, call)?,
        _ => None,
    };
    let known = change.attribution(call.as_ref());
    Ok((change, known))
}
