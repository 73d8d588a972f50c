//! Runs of changes, read without decoding every change.
//!
//! For a change in the middle of a run only numbers are read; path, author and call are looked up
//! only for the first and the last change of a run.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _};

use super::encoding::{self, kinds, signed, unsigned};
use super::rows::{self, RowError};
use crate::change::{Attribution, Author, Change, Evidence};
use crate::id::{Seq, SessionId};
use crate::runs::{
    AuthorKey, CallLookup, ChangeOutline, ChangeRun, HUMAN, LastAttribution, PathRuns, group_runs,
    groups,
};
use crate::session::Call;

/// The numbers of a change.
struct Row {
    outline: ChangeOutline,
    /// The author row, if its call did not name the path.
    inferred: Option<(i64, Evidence)>,
}

/// The same result as [`group_runs`] of all changes after `after`. The caller must hold a read
/// transaction.
pub(super) fn runs_after(
    db: &Connection,
    after: Seq,
    merged: &BTreeSet<SessionId>,
) -> Result<Vec<PathRuns>, RowError> {
    let mut authors = AuthorKeys::read(db, after, merged)?;
    let paths = by_path(db, after, &mut authors)?;
    let changes: usize = paths.iter().map(Vec::len).sum();
    let groups: Vec<_> =
        paths.iter().map(|rows| groups(rows.iter().map(|row| &row.outline))).collect();
    let looked_up: usize = groups.iter().map(Vec::len).sum();
    // Looking up changes one by one is slower than reading all at once, so it does not pay if runs
    // are short.
    if looked_up * 4 > changes {
        let changes = rows::changes_after(db, after)?;
        let mut calls = authors.into_calls()?;
        for change in &changes {
            if let Author::Agent { session, call, .. } = &change.author {
                calls.look_up_once(session, call, || rows::call_named(db, session, call))?;
            }
        }
        return Ok(group_runs(changes, &calls, merged));
    }
    let mut last_inferred = LastAttribution::default();
    let mut found = Vec::with_capacity(paths.len());
    for (rows, groups) in paths.iter().zip(groups) {
        let mut path = None;
        let mut runs = Vec::with_capacity(groups.len());
        for group in groups {
            let rows = &rows[group];
            let (last, first) = (&rows[rows.len() - 1], &rows[0]);
            let (first, known) = change_with_attribution(db, first.outline.seq)?;
            let after = match rows {
                [_] => first.after,
                _ => change_with_attribution(db, last.outline.seq)?.0.after,
            };
            path = Some(first.path);
            runs.push(ChangeRun {
                seqs: rows.iter().map(|row| row.outline.seq).collect(),
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
fn by_path(
    db: &Connection,
    after: Seq,
    authors: &mut AuthorKeys,
) -> Result<Vec<Vec<Row>>, RowError> {
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
            Some(author) if kind == kinds::AGENT => authors.is_plain(author, evidence),
            _ => true,
        };
        // The record of its call, or the user's correction, decides the author: that needs the
        // whole change.
        let (author_key, evidence) = if is_corrected || !plain {
            let (_, known) = change_with_attribution(db, seq)?;
            (authors.of_attribution(db, &known)?, known.evidence)
        } else {
            let author_key = match kind {
                kinds::AGENT => match author {
                    Some(author) => authors.of(db, author)?,
                    None => None,
                },
                kinds::HUMAN => Some(HUMAN),
                _ => None,
            };
            (author_key, evidence)
        };
        let state = |column| -> Result<(bool, u64), RowError> {
            let bytes = rows::blob_or_null(row, column)?.unwrap_or_default();
            let mark = BuildHasherDefault::<DefaultHasher>::new().hash_one(bytes);
            Ok((encoding::is_file(bytes), mark))
        };
        let (before, after) = (state(5)?, state(6)?);
        let is_sure = evidence != Evidence::OpenWindow || author_key == Some(HUMAN);
        let author_key = author_key.filter(|_| before.0 && after.0 && is_sure);
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
        let outline = ChangeOutline { seq, author_key, states: [before.1, after.1], cancels };
        paths[at].push(Row { outline, inferred });
    }
    Ok(paths)
}

/// The keys of author rows, and their calls.
struct AuthorKeys {
    /// The merged sessions, by number.
    merged: HashSet<i64>,
    sessions: HashMap<SessionId, i64>,
    /// By author row.
    known: HashMap<i64, AuthorKey>,
    calls: HashMap<i64, Call>,
}

impl AuthorKeys {
    /// Author rows are in the order of the changes: the ones after `after` are read at once, and
    /// few others have to be looked up.
    fn read(db: &Connection, after: Seq, merged: &BTreeSet<SessionId>) -> Result<Self, RowError> {
        let mut authors = Self {
            merged: HashSet::new(),
            sessions: HashMap::new(),
            known: HashMap::new(),
            calls: HashMap::new(),
        };
        let mut sessions = db.prepare_cached("SELECT id, name FROM session")?;
        let mut rows = sessions.query([])?;
        while let Some(row) = rows.next()? {
            let (number, name) = (row.get(0)?, SessionId(row.get(1)?));
            if merged.contains(&name) {
                authors.merged.insert(number);
            }
            authors.sessions.insert(name, number);
        }
        let mut first = db.prepare_cached(
            "SELECT author FROM change WHERE seq > ?1 AND author IS NOT NULL ORDER BY seq LIMIT 1",
        )?;
        let Some(first) = first.query_row([signed(after.0)], |row| row.get(0)).optional()? else {
            return Ok(authors);
        };
        let mut select = db.prepare_cached("SELECT id, session FROM author WHERE id >= ?1")?;
        let mut rows = select.query([first])?;
        while let Some(row) = rows.next()? {
            let author_key = authors.of_session(row.get(1)?);
            authors.known.insert(row.get(0)?, author_key);
        }
        authors.calls.extend(rows::calls_of_authors(db, first)?);
        Ok(authors)
    }

    fn of_session(&self, session: i64) -> AuthorKey {
        AuthorKey { session, is_merged: self.merged.contains(&session) }
    }

    fn of(&mut self, db: &Connection, author: i64) -> Result<Option<AuthorKey>, RowError> {
        if let Some(author_key) = self.known.get(&author) {
            return Ok(Some(*author_key));
        }
        let mut select = db.prepare_cached("SELECT session FROM author WHERE id = ?1")?;
        let session: Option<i64> = select.query_row([author], |row| row.get(0)).optional()?;
        let author_key = session.map(|session| self.of_session(session));
        self.known.extend(author_key.map(|author_key| (author, author_key)));
        Ok(author_key)
    }

    /// Whether the recorded attribution of a change by this author holds without looking at its
    /// times.
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
            calls.look_up_once(&session, &id, || Ok::<_, RowError>(Some(call)))?;
        }
        Ok(calls)
    }
}

fn inferred(
    db: &Connection,
    rows: &[Row],
    shared: &mut LastAttribution,
) -> Result<Vec<Arc<Attribution>>, RowError> {
    let mut inferred = Vec::new();
    let mut last = None;
    for row in rows.iter().filter(|row| row.inferred.is_some()) {
        if row.inferred != last {
            let (_, known) = change_with_attribution(db, row.outline.seq)?;
            shared.add_to(&mut inferred, &known.author, known.evidence);
        }
        last = row.inferred;
    }
    Ok(inferred)
}

/// A change that must exist, with the attribution that is known now.
fn change_with_attribution(db: &Connection, seq: Seq) -> Result<(Change, Attribution), RowError> {
    let change = rows::change_at(db, seq)?
        .ok_or_else(|| RowError::Damaged { what: format!("change {seq}"), why: "it is gone" })?;
    let call = match &change.author {
        Author::Agent { session, call, .. } => rows::call_named(db, session, call)?,
        _ => None,
    };
    let known = change.attribution(call.as_ref());
    Ok((change, known))
}
