//! The size limit of a store: which points are dropped to stay within it, and what holds the rest.
//!
//! What a set of kept points needs is computed from the log, so the number of points to drop is known
//! before any is dropped. Marked points, the newest point of each active session and the current files
//! always stay. The limit never stops recording.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use takeback_store::{
    Change, Digest, Point, PointId, PointKind, Seq, SessionId, Store, StoreError, StoredSize,
    Timestamp, Write,
};

use super::choose::{Drops, PointGroup, Policy, is_exempt};
use super::thin::thin;
use crate::process;
use crate::workspace::Workspace;

/// Bytes of a change in the database, with the rows of its contents. Rounded down, so that no point is
/// dropped for bytes that do not exist.
const ROWS: u64 = 200;

/// A store that is over its limit although everything that may be dropped is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitExcess {
    /// The limit in bytes.
    pub limit: u64,
    /// Bytes on disk.
    pub used: u64,
    /// What takes up the space.
    pub held: HeldBytes,
}

/// Bytes of contents that stay regardless of the limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeldBytes {
    /// Needed by the current files and the newest point.
    pub present: u64,
    /// Needed only by points with a pin or a label.
    pub marked: u64,
}

/// The size of the store's folder.
#[must_use]
pub fn store_bytes(workspace: &Workspace) -> u64 {
    folder_bytes(&workspace.store_dir)
}

fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.filter_map(Result::ok).map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => folder_bytes(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// The bytes of a store that stay regardless of its limit.
pub fn held_bytes(store: &dyn Store) -> Result<HeldBytes, StoreError> {
    let needs = SpaceEstimator::of(store)?;
    let points = store.points()?;
    let newest = points.last().map(|point| point.seq).into_iter();
    let marked = points.iter().filter(|point| is_exempt(point)).map(|point| point.seq);
    let present = needs.of_points(&newest.clone().collect()).bytes;
    let with_marked = needs.of_points(&marked.chain(newest).collect()).bytes;
    Ok(HeldBytes { present, marked: with_marked.saturating_sub(present) })
}

/// Adds to `drops` as many points as it takes to get down to `aim`; none if the kept points already fit into
/// `limit`. Unused space does not count: reclaiming it costs no point.
pub(super) fn extend(
    store: &dyn Store,
    drops: Drops,
    policy: &Policy,
    now: Timestamp,
    size: Size,
) -> Result<Drops, StoreError> {
    let needs = SpaceEstimator::of(store)?;
    let beside = store.usage()?.database + size.index;
    let order = order(store, &drops.kept, policy, now)?;
    let after = |going: usize| {
        let going: HashSet<PointId> = order[..going].iter().copied().collect();
        let kept = drops.kept.iter().filter(|point| !going.contains(&point.id));
        let need = needs.of_points(&kept.map(|point| point.seq).collect());
        need.bytes + beside.saturating_sub((needs.changes.len() - need.changes) as u64 * ROWS)
    };
    if after(0) <= size.limit {
        return Ok(drops);
    }
    let counts: Vec<usize> = (0..=order.len()).collect();
    let going = counts.partition_point(|going| after(*going) > size.aim).min(order.len());
    drops.with_points(store, order[..going].iter().copied())
}

/// Sizes of a store that is too large.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    /// The size of the index.
    pub(super) index: u64,
    pub(super) limit: u64,
    /// The target once points are dropped: below the limit, so that the next prompt does not exceed it again.
    pub(super) aim: u64,
}

/// The points that may be dropped, least valuable first: all but the newest of ended sessions; the newest
/// of ended sessions that are older than archived ones are kept; all but the newest of active sessions;
/// the newest of other ended sessions.
fn order(
    store: &dyn Store,
    kept: &[Point],
    policy: &Policy,
    now: Timestamp,
) -> Result<Vec<PointId>, StoreError> {
    let at_work = at_work(store, kept, now)?;
    let in_steps: HashSet<&SessionId> =
        kept.iter().filter(|p| p.kind == PointKind::Step).flat_map(|p| &p.session).collect();
    let listed = || kept.iter().filter(|point| point.kind != PointKind::Safety);
    let newest: HashMap<PointGroup<'_>, &Point> =
        listed().map(|point| (PointGroup::of(point, &in_steps), point)).collect();
    let last = listed().next_back().map(|point| point.id);
    let mut ranked: Vec<(u8, PointId)> = listed()
        .filter(|point| !is_exempt(point) && Some(point.id) != last)
        .filter_map(|point| {
            let works = point.session.as_ref().is_some_and(|id| at_work.contains(id));
            let is_newest = newest[&PointGroup::of(point, &in_steps)].id == point.id;
            let days = (now.0 - point.created_at.0) / super::DAY;
            let forgotten = days >= i64::from(policy.archive_days);
            match (works, is_newest) {
                (false, false) => Some(0),
                (false, true) if forgotten => Some(1),
                (true, false) => Some(2),
                (false, true) => Some(3),
                (true, true) => None,
            }
            .map(|rank| (rank, point.id))
        })
        .collect();
    // Stable: within a rank the points stay oldest first.
    ranked.sort_by_key(|(rank, _)| *rank);
    Ok(ranked.into_iter().map(|(_, id)| id).collect())
}

/// The active sessions. Not every agent reports its end: if its process is unknown, a day without a
/// prompt counts as one.
fn at_work(
    store: &dyn Store,
    points: &[Point],
    now: Timestamp,
) -> Result<HashSet<SessionId>, StoreError> {
    let mut last: HashMap<&SessionId, Timestamp> = HashMap::new();
    for point in points {
        if let Some(id) = &point.session {
            last.insert(id, point.created_at);
        }
    }
    let sessions = store.sessions()?.into_iter().filter(|session| {
        let has_ended = session.ended_at.is_some() || session.archived_at.is_some();
        let last = last.get(&session.id).copied().unwrap_or(session.started_at);
        let lives = session.owner.map(process::is_alive);
        !has_ended && lives.unwrap_or(now.0 - last.0 < super::DAY)
    });
    let mut at_work: HashSet<SessionId> = sessions.map(|session| session.id).collect();
    at_work.extend(store.live_calls()?.into_iter().map(|call| call.session));
    Ok(at_work)
}

/// Estimates what sets of kept points need.
struct SpaceEstimator {
    changes: Vec<Change>,
    head: Seq,
    weights: HashMap<Digest, StoredSize>,
}

/// The needs of one set of kept points.
struct SpaceEstimate {
    bytes: u64,
    changes: usize,
}

impl SpaceEstimator {
    fn of(store: &dyn Store) -> Result<Self, StoreError> {
        let head = store.head()?.seq;
        let changes = store.changes_after(Seq(0))?;
        let named = changes.iter().flat_map(named_by).collect();
        Ok(Self { head, weights: store.stored_sizes(&named)?, changes })
    }

    fn of_points(&self, kept: &BTreeSet<Seq>) -> SpaceEstimate {
        let mut thinned: HashMap<Seq, Option<Change>> = HashMap::new();
        for write in thin(&self.changes, kept, self.head) {
            match write {
                Write::ReplaceChange(change) => drop(thinned.insert(change.seq, Some(change))),
                Write::DropChange(seq) => drop(thinned.insert(seq, None)),
                _ => {}
            }
        }
        let mut named: HashSet<Digest> = HashSet::new();
        let mut changes = 0;
        for change in &self.changes {
            let stays = match thinned.get(&change.seq) {
                None => change,
                Some(Some(thin)) => thin,
                Some(None) => continue,
            };
            changes += 1;
            named.extend(named_by(stays));
        }
        let parts: Vec<Digest> = named
            .iter()
            .filter_map(|one| self.weights.get(one))
            .flat_map(|w| w.parts.clone())
            .collect();
        named.extend(parts);
        let bytes = named.iter().filter_map(|one| self.weights.get(one)).map(|w| w.bytes).sum();
        SpaceEstimate { bytes, changes }
    }
}

fn named_by(change: &Change) -> impl Iterator<Item = Digest> {
    [change.before.digest(), change.after.digest()].into_iter().flatten()
}
