//! The log as people read it: points and operations (rewinds, undos, redos), newest first, filtered, each
//! with what happened until the next point.
//!
//! Reads as far back as the requested rows need, and no further.

mod filter;

use std::collections::{HashMap, HashSet};

use takeback_store::{
    Author, Change, GitState, Point, PointFilter, PointQuery, RewindHeader, Seq, SessionId, Store,
    StoreError, WorkPath,
};

use self::filter::Prompts;
pub use self::filter::{AuthorFilter, LogFilter};
use super::file_diff::{FileDiff, between};
use super::tally::{TakenBack, Tally, Viewpoint, cancelled};
use super::{by_path, settle};
use crate::exchange::{is_detour, original_name, same_timeline};
use crate::git::HeadMove;

/// Which rows to read.
#[derive(Debug)]
pub struct LogQuery {
    /// How many points at most, or how many operations if no points are listed.
    pub limit: usize,
    /// Which kinds of rows.
    pub rows: LogRows,
    /// Whether safety points count as points.
    pub points: PointFilter,
    /// Only the points of this session.
    pub session: Option<SessionId>,
    /// Only these rows.
    pub filter: LogFilter,
    /// What is checked out in git now, for the newest point.
    pub git_now: Option<GitState>,
}

impl LogQuery {
    /// The newest points, and the operations between them.
    #[must_use]
    pub fn newest(limit: usize) -> Self {
        Self {
            limit,
            rows: LogRows::Both,
            points: PointFilter::WithoutSafety,
            session: None,
            filter: LogFilter::default(),
            git_now: None,
        }
    }
}

/// Which kinds of rows to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogRows {
    /// Points alone.
    Points,
    /// Points, and the operations between them.
    Both,
    /// Operations alone.
    Operations,
}

/// One row of the log.
#[derive(Debug, Clone)]
pub enum LogRow {
    /// A point.
    Point(Box<PointRow>),
    /// A rewind, undo or redo.
    Operation(OperationRow),
}

/// A point, and what happened until the next one.
#[derive(Debug, Clone)]
pub struct PointRow {
    /// The point.
    pub point: Point,
    /// The changes until the next point, oldest first, with the authors known now; those of rewinds and
    /// of paths that were filtered out are left out.
    pub changes: Vec<Change>,
    /// How much each party changed.
    pub tally: Tally,
    /// How many paths could not be read when the point was made.
    pub unreadable: usize,
    /// Set if another commit or branch was checked out at the next point; after the newest point: if
    /// another is checked out now.
    pub git_moved: Option<HeadMove>,
}

/// A rewind, undo or redo, and what it did.
#[derive(Debug, Clone)]
pub struct OperationRow {
    /// Its record.
    pub operation: RewindHeader,
    /// Its changes, oldest first.
    pub changes: Vec<Change>,
    /// Whether it was taken back.
    pub taken_back: TakenBack,
}

impl PointRow {
    /// What differs at the end, by path.
    #[must_use]
    pub fn diffs(&self) -> Vec<FileDiff> {
        between(&by_path(self.changes.clone()), None)
    }
}

impl OperationRow {
    /// What differs after it, by path.
    #[must_use]
    pub fn diffs(&self) -> Vec<FileDiff> {
        between(&by_path(self.changes.clone()), None)
    }
}

impl PointRow {
    /// The row of one point. `git_now`: what is checked out in git now.
    pub fn of(
        store: &dyn Store,
        point: Point,
        git_now: Option<&GitState>,
    ) -> Result<Self, StoreError> {
        let next = next_point(store, &point)?;
        let mut changes = changes_until(store, &point, next.as_ref())?;
        keep_own(&mut changes);
        let cancelled = cancelled(&store.rewind_changes_after(point.seq)?);
        let view = Viewpoint { session: point.session.as_ref() };
        let tally = Tally::of(&changes, &view, &cancelled, store)?;
        let unreadable = UnreadablePaths::read(store)?.count_at(point.seq);
        let git_moved = git_moved(&point, next.as_ref(), git_now);
        Ok(Self { point, changes, tally, unreadable, git_moved })
    }
}

/// The next point of the same timeline; safety points are none.
pub fn next_point(store: &dyn Store, point: &Point) -> Result<Option<Point>, StoreError> {
    next_where(store, point, |other| same_timeline(point, other))
}

/// The next point of the same session, where its turn ends. Other sessions make points in the middle of it.
pub(crate) fn next_of_session(
    store: &dyn Store,
    point: &Point,
) -> Result<Option<Point>, StoreError> {
    next_where(store, point, |other| other.session == point.session)
}

fn next_where(
    store: &dyn Store,
    point: &Point,
    is_next: impl Fn(&Point) -> bool,
) -> Result<Option<Point>, StoreError> {
    let mut most = 16;
    loop {
        let later = store.find_points(PointQuery::From { seq: point.seq, most })?;
        let is_all = later.len() < most;
        let after = later.into_iter().skip_while(|other| other.id != point.id).skip(1);
        let mut listed = after.filter(|other| PointFilter::WithoutSafety.includes(other));
        let next = listed.find(|other| is_next(other));
        if next.is_some() || is_all {
            return Ok(next);
        }
        most *= 4;
    }
}

/// The changes from a point to the next one, oldest first, with the authors known now.
pub fn changes_until(
    store: &dyn Store,
    point: &Point,
    next: Option<&Point>,
) -> Result<Vec<Change>, StoreError> {
    let mut changes = match next {
        Some(next) => store.changes_between(point.seq, next.seq)?,
        None => store.changes_after(point.seq)?,
    };
    settle(store, &mut changes)?;
    Ok(changes)
}

/// Leaves out what rewinds did, and where an import led the log away and back.
pub fn keep_own(changes: &mut Vec<Change>) {
    if changes.iter().any(|change| change.author == Author::Import) {
        let histories = by_path(std::mem::take(changes));
        let own = histories.into_iter().filter(|history| !is_detour(history));
        *changes = own.flat_map(|history| history.changes).collect();
        changes.sort_by_key(|change| change.seq);
    }
    changes.retain(|change| !matches!(change.author, Author::Rewind { .. }));
}

/// How HEAD moved until the next point, or until now.
#[must_use]
pub fn git_moved(
    point: &Point,
    next: Option<&Point>,
    git_now: Option<&GitState>,
) -> Option<HeadMove> {
    let is_imported = || point.session.as_ref().and_then(original_name).is_some();
    let after = match next {
        Some(next) => next.git.as_ref(),
        // An import has its own end.
        None => git_now.filter(|_| !is_imported()),
    };
    HeadMove::between(point.git.as_ref(), after)
}

/// The requested rows, newest first.
pub fn log(store: &dyn Store, query: &LogQuery) -> Result<Vec<LogRow>, StoreError> {
    let points = match query.rows {
        LogRows::Operations => Vec::new(),
        LogRows::Points | LogRows::Both => point_rows(store, query)?,
    };
    let operations = match query.rows {
        LogRows::Points => Vec::new(),
        LogRows::Both | LogRows::Operations => operation_rows(store, query, &points)?,
    };
    let mut rows: Vec<LogRow> =
        points.into_iter().map(|row| LogRow::Point(Box::new(row))).collect();
    rows.extend(operations.into_iter().map(LogRow::Operation));
    // Stable: points of one moment keep their order.
    rows.sort_by_key(|row| std::cmp::Reverse(row.position()));
    Ok(rows)
}

impl LogRow {
    /// An operation is newer than the points at its position.
    fn position(&self) -> (Seq, bool) {
        match self {
            Self::Point(row) => (row.point.seq, false),
            Self::Operation(row) => (row.operation.began_at, true),
        }
    }
}

fn point_rows(store: &dyn Store, query: &LogQuery) -> Result<Vec<PointRow>, StoreError> {
    let filter = &query.filter;
    let mut prompts = Prompts::default();
    let mut rows = Vec::new();
    let mut candidates = Candidates::of(query);
    while rows.len() < query.limit
        && let Some((point, next)) = candidates.next(store)?
    {
        if filter.since.is_some_and(|since| point.created_at < since) {
            // Points are in the order in which they were made.
            break;
        }
        let is_of_session = query.session.is_none() || point.session == query.session;
        if !is_of_session || !filter.includes_time(point.created_at) {
            continue;
        }
        if let Some(text) = &filter.grep
            && !prompts.mention(store, &point, text)?
        {
            continue;
        }
        let mut changes = changes_until(store, &point, next.as_ref())?;
        keep_own(&mut changes);
        changes.retain(|change| {
            filter.paths.as_ref().is_none_or(|paths| paths.includes(&change.path))
        });
        if filter.includes_changes(&changes, store)? {
            let git_moved = git_moved(&point, next.as_ref(), query.git_now.as_ref());
            let tally = Tally::default();
            rows.push(PointRow { point, changes, tally, unreadable: 0, git_moved });
        }
    }
    let Some(oldest) = rows.iter().map(|row| row.point.seq).min() else { return Ok(rows) };
    let cancelled = cancelled(&store.rewind_changes_after(oldest)?);
    let unreadable = UnreadablePaths::read(store)?;
    for row in &mut rows {
        let view = Viewpoint { session: row.point.session.as_ref() };
        row.tally = Tally::of(&row.changes, &view, &cancelled, store)?;
        row.unreadable = unreadable.count_at(row.point.seq);
    }
    Ok(rows)
}

fn operation_rows(
    store: &dyn Store,
    query: &LogQuery,
    points: &[PointRow],
) -> Result<Vec<OperationRow>, StoreError> {
    let filter = &query.filter;
    if filter.is_about_authors() || query.session.is_some() {
        return Ok(Vec::new());
    }
    let oldest = points.iter().map(|row| row.point.seq).min();
    let mut headers = store.rewind_headers()?;
    headers.retain(|header| filter.includes_time(header.created_at));
    match query.rows {
        LogRows::Operations if filter.is_empty() => {
            headers.drain(..headers.len().saturating_sub(query.limit));
        }
        LogRows::Operations => {}
        // Those between the listed points, and after the newest.
        _ => headers.retain(|header| oldest.is_some_and(|oldest| header.began_at >= oldest)),
    }
    let Some(first) = headers.iter().map(|header| header.began_at).min() else {
        return Ok(Vec::new());
    };
    let changes = store.rewind_changes_after(first)?;
    let cancelled = cancelled(&changes);
    let mut by_operation: HashMap<_, Vec<Change>> = HashMap::new();
    for change in changes {
        if let Author::Rewind { id } = change.author {
            by_operation.entry(id).or_default().push(change);
        }
    }
    let mut rows = Vec::new();
    for operation in headers.into_iter().rev() {
        let mut changes = by_operation.remove(&operation.id).unwrap_or_default();
        let taken_back = changes.iter().map(|change| match cancelled.contains(&change.seq) {
            true => TakenBack::Yes,
            false => TakenBack::No,
        });
        let taken_back = TakenBack::of(taken_back);
        changes.retain(|change| {
            filter.paths.as_ref().is_none_or(|paths| paths.includes(&change.path))
        });
        if filter.includes_changes(&changes, store)? {
            rows.push(OperationRow { operation, changes, taken_back });
        }
        if query.rows == LogRows::Operations && rows.len() == query.limit {
            break;
        }
    }
    Ok(rows)
}

/// The points that may be listed, newest first, each with the next point of its timeline. Read in pages
/// that grow, or found through the changes of one path.
struct Candidates {
    filter: PointFilter,
    /// The changes of the path that is asked about. `None`: all points are candidates.
    below: Option<ChangesBelow>,
    /// Read and not returned, oldest first.
    page: Vec<Point>,
    /// Returned already, newest last: where the next point of an older one is found.
    newer: Vec<Point>,
    has_more: bool,
    page_size: usize,
}

/// Points read at first; each later page is twice as large.
const FIRST_PAGE: usize = 32;

impl Candidates {
    fn of(query: &LogQuery) -> Self {
        let below = query.filter.below.as_ref().map(ChangesBelow::of);
        let page_size = query.limit.clamp(1, FIRST_PAGE);
        let (page, newer) = (Vec::new(), Vec::new());
        Self { filter: query.points, below, page, newer, has_more: true, page_size }
    }

    fn next(&mut self, store: &dyn Store) -> Result<Option<(Point, Option<Point>)>, StoreError> {
        if let Some(below) = &mut self.below {
            return below.next(store, self.filter);
        }
        if self.page.is_empty() && self.has_more {
            self.read_page(store)?;
        }
        let Some(point) = self.page.pop() else { return Ok(None) };
        let next = self.newer.iter().rev().find(|next| same_timeline(&point, next)).cloned();
        self.newer.push(point.clone());
        Ok(Some((point, next)))
    }

    fn read_page(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let (filter, most) = (self.filter, self.page_size);
        self.page_size *= 2;
        self.page = match self.newer.last() {
            None => store.find_points(PointQuery::Newest { filter, most })?,
            Some(oldest) => {
                // Points at one position may be on both sides of the border of a page.
                let at = oldest.seq;
                let mut page = store.find_points(PointQuery::Before { seq: at, filter, most })?;
                let known: HashSet<_> = self.newer.iter().map(|point| point.id).collect();
                let beside = store.find_points(PointQuery::At(at))?.into_iter();
                page.extend(beside.filter(|one| filter.includes(one) && !known.contains(&one.id)));
                page
            }
        };
        self.has_more = self.page.len() >= most;
        Ok(())
    }
}

/// The changes of a path and of everything below it, from the newest on.
struct ChangesBelow {
    path: WorkPath,
    /// Positions that were read, oldest first.
    page: Vec<Seq>,
    /// Where the next page ends.
    before: Seq,
    page_size: usize,
}

impl ChangesBelow {
    fn of(path: &WorkPath) -> Self {
        Self { path: path.clone(), page: Vec::new(), before: Seq(u64::MAX), page_size: FIRST_PAGE }
    }

    /// The point after which the newest of the changes happened, and the next one. Passes over the other
    /// changes after it.
    fn next(
        &mut self,
        store: &dyn Store,
        filter: PointFilter,
    ) -> Result<Option<(Point, Option<Point>)>, StoreError> {
        if self.page.is_empty() {
            self.page = store.positions_below(&self.path, self.before, self.page_size)?;
            self.page_size *= 2;
        }
        let Some(seq) = self.page.last().copied() else { return Ok(None) };
        let before = store.find_points(PointQuery::Before { seq, filter, most: 1 })?;
        let Some(point) = before.into_iter().next_back() else { return Ok(None) };
        self.page.truncate(self.page.partition_point(|change| *change <= point.seq));
        self.before = Seq(point.seq.0 + 1);
        let mut most = 4;
        loop {
            let later = store.find_points(PointQuery::From { seq, most })?;
            let is_all = later.len() < most;
            let next =
                later.into_iter().find(|next| filter.includes(next) && same_timeline(&point, next));
            if next.is_some() || is_all {
                return Ok(Some((point, next)));
            }
            most *= 4;
        }
    }
}

/// When which paths could not be read.
#[derive(Debug)]
pub struct UnreadablePaths(Vec<(Seq, Option<Seq>)>);

impl UnreadablePaths {
    /// Reads it from the log.
    pub fn read(store: &dyn Store) -> Result<Self, StoreError> {
        let mut spans: Vec<(Seq, Option<Seq>)> = Vec::new();
        for history in by_path(store.unreadable_changes()?) {
            let mut from = None;
            for change in history.changes {
                if change.before.is_unreadable() {
                    // Without a beginning: retention has dropped it.
                    spans.push((from.take().unwrap_or(Seq(0)), Some(change.seq)));
                }
                if change.after.is_unreadable() {
                    from = Some(change.seq);
                }
            }
            spans.extend(from.map(|from| (from, None)));
        }
        Ok(Self(spans))
    }

    /// How many paths could not be read at this position.
    #[must_use]
    pub fn count_at(&self, at: Seq) -> usize {
        let is_in = |(from, to): &&(Seq, Option<Seq>)| *from <= at && to.is_none_or(|to| at < to);
        self.0.iter().filter(is_in).count()
    }
}
