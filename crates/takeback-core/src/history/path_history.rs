//! The history of one file: the points after which it changed, across renames.

use std::collections::HashSet;

use takeback_store::{
    Author, Change, Entry, Point, PointFilter, PointQuery, Seq, Store, StoreError, WorkPath,
};

use super::renames::renames;
use super::settle;
use super::tally::{Tally, Viewpoint, cancelled};

/// What happened to a file after one point.
#[derive(Debug, Clone)]
pub struct FileRow {
    /// Its path then.
    pub path: WorkPath,
    /// The path it was renamed from, if that happened here.
    pub renamed_from: Option<WorkPath>,
    /// The last point before it changed; `None`: the log has no point that old.
    pub point: Option<Point>,
    /// Its changes until the next point, oldest first, with the authors known now.
    pub changes: Vec<Change>,
    /// How much each party changed.
    pub tally: Tally,
}

/// The newest `limit` rows of a file's history, newest first; empty if the log does not have the path.
pub fn path_history(
    store: &dyn Store,
    path: &WorkPath,
    limit: usize,
) -> Result<Vec<FileRow>, StoreError> {
    let mut rows: Vec<FileRow> = Vec::new();
    // The changes that count in each row; of a rename, also the one that emptied the old path.
    let mut counts: Vec<Vec<Change>> = Vec::new();
    let mut seen = HashSet::from([path.clone()]);
    let mut path = path.clone();
    let mut changes = NewestChanges::of(&path, Seq(u64::MAX));
    while rows.len() < limit {
        let Some(newest) = changes.newest(store)? else { break };
        let filter = PointFilter::WithoutSafety;
        let before = PointQuery::Before { seq: newest.seq, filter, most: 1 };
        let point = store.find_points(before)?.pop();
        let from = point.as_ref().map_or(Seq(0), |point| point.seq);
        let mut own = changes.take_after(store, from)?;
        let departure = match own.iter().rposition(|change| change.before == Entry::Absent) {
            // What an earlier file of this name was is another file's history.
            Some(at) => match departure_of(store, &own[at])? {
                Some(departure) if seen.insert(departure.path.clone()) => {
                    let seq = own[at].seq;
                    own.drain(..at);
                    changes = NewestChanges::of(&departure.path, seq);
                    changes.is_renamed = true;
                    Some(departure)
                }
                _ => None,
            },
            None => None,
        };
        let mut counted: Vec<Change> = departure.iter().chain(&own).cloned().collect();
        settle(store, &mut counted)?;
        let own = counted[usize::from(departure.is_some())..].to_vec();
        let origin = departure.map(|change| change.path);
        let next = origin.clone().unwrap_or_else(|| path.clone());
        counts.push(counted);
        rows.push(FileRow {
            path: std::mem::replace(&mut path, next),
            renamed_from: origin,
            point,
            changes: own,
            tally: Tally::default(),
        });
    }
    let Some(oldest) = rows.last().and_then(|row| row.changes.first()) else { return Ok(rows) };
    let cancelled = cancelled(&store.rewind_changes_after(oldest.seq)?);
    for (row, counted) in rows.iter_mut().zip(counts) {
        let session = row.point.as_ref().and_then(|point| point.session.as_ref());
        row.tally = Tally::of(&counted, &Viewpoint { session }, &cancelled, store)?;
    }
    Ok(rows)
}

/// The changes of a path from the newest on, read in pages that grow.
struct NewestChanges {
    path: WorkPath,
    /// Read and not taken, oldest first.
    page: Vec<Change>,
    /// Where the next page ends; `None`: all are read.
    before: Option<Seq>,
    page_size: usize,
    /// The file has another path since: that it is gone from this one is not news.
    is_renamed: bool,
}

impl NewestChanges {
    fn of(path: &WorkPath, before: Seq) -> Self {
        let (path, before) = (path.clone(), Some(before));
        Self { path, page: Vec::new(), before, page_size: 32, is_renamed: false }
    }

    fn newest(&mut self, store: &dyn Store) -> Result<Option<&Change>, StoreError> {
        while self.page.is_empty() && self.before.is_some() {
            self.read_page(store)?;
        }
        Ok(self.page.last())
    }

    /// Takes those after a position, oldest first.
    fn take_after(&mut self, store: &dyn Store, seq: Seq) -> Result<Vec<Change>, StoreError> {
        while self.before.is_some_and(|before| before > seq) {
            self.read_page(store)?;
        }
        Ok(self.page.split_off(self.page.partition_point(|change| change.seq <= seq)))
    }

    fn read_page(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let Some(before) = self.before else { return Ok(()) };
        let mut page = store.newest_changes_of(&self.path, before, self.page_size)?;
        let is_last = page.len() < self.page_size;
        self.before = page.first().map(|change| change.seq).filter(|_| !is_last);
        self.page_size *= 2;
        page.retain(|change| !self.is_renamed || change.after != Entry::Absent);
        page.append(&mut self.page);
        self.page = page;
        Ok(())
    }
}

/// The change that took a new file from the path that it had before.
fn departure_of(store: &dyn Store, new: &Change) -> Result<Option<Change>, StoreError> {
    if matches!(new.author, Author::Rewind { .. }) {
        return Ok(None);
    }
    let beside = store.changes_beside(new)?;
    let beside: Vec<&Change> = beside.iter().collect();
    let is_its = |at: usize| beside[at].seq == new.seq;
    let found = renames(&beside, |_| ()).into_iter().find(|rename| is_its(rename.arrival));
    Ok(found.map(|rename| beside[rename.departure].clone()))
}

/// The entry of a path at a position of the log; `None`: the log does not have the path.
pub fn entry_at(store: &dyn Store, path: &WorkPath, at: Seq) -> Result<Option<Entry>, StoreError> {
    let changes = store.changes_of(path)?;
    let next = changes.iter().find(|change| change.seq > at).map(|change| change.before.clone());
    Ok(next.or_else(|| changes.last().map(|change| change.after.clone())))
}
