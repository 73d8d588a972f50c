//! Room on disk: which points go so that a store fits into its limit, and what holds the rest.
//!
//! The log tells what a set of kept points needs, so that how many must go is known before any goes.
//! What is marked, the newest point of a session at work and the files as they are stay, whatever the
//! limit says: nothing here is ever a reason to stop recording.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use takeback_store::{
    Change, Digest, Point, PointId, PointKind, Seq, SessionId, Store, StoreError, StoredSize,
    Timestamp, Write,
};

use super::choose::{Drops, Policy, Together, is_exempt};
use super::thin::thin;
use crate::process;
use crate::workspace::Workspace;

/// What the rows of a change take in the database, with those of its contents. Somewhat less than
/// they do, so that no point goes for bytes that are not there.
const ROWS: u64 = 200;

/// What stands in the way of a limit when all that may go has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Over {
    pub limit: u64,
    /// Bytes on disk.
    pub used: u64,
    pub held: Held,
}

/// Bytes of contents that no limit touches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    /// By the files as they are, and the newest point.
    pub present: u64,
    /// By points with a pin or a label, and by nothing else.
    pub marked: u64,
}

/// All the bytes in the folder of the store.
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

/// What of a store stays whatever its limit is.
pub fn held(store: &dyn Store) -> Result<Held, StoreError> {
    let needs = Needs::of(store)?;
    let points = store.points()?;
    let newest = points.last().map(|point| point.seq).into_iter();
    let marked = points.iter().filter(|point| is_exempt(point)).map(|point| point.seq);
    let present = needs.of_points(&newest.clone().collect()).bytes;
    let with_marked = needs.of_points(&marked.chain(newest).collect()).bytes;
    Ok(Held { present, marked: with_marked.saturating_sub(present) })
}

/// `drops`, and as many more points as it takes to come down to `aim`; none more if what is kept fits
/// into `limit` without. Dead weight is not counted: giving it back costs no point.
pub(super) fn extend(
    store: &dyn Store,
    drops: Drops,
    policy: &Policy,
    now: Timestamp,
    size: Size,
) -> Result<Drops, StoreError> {
    let needs = Needs::of(store)?;
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
    drops.and(store, order[..going].iter().copied())
}

/// Of a store that is too large.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    /// What the index takes.
    pub(super) index: u64,
    pub(super) limit: u64,
    /// Where to stop, once points go: below the limit, or the next prompt is beyond it again.
    pub(super) aim: u64,
}

/// The points that may go, those first that are missed least: of sessions that are over all but the
/// newest; the newest of those that nobody has used for as long as an archived one is kept; of
/// sessions at work all but the newest; and the newest of sessions that are over.
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
    let newest: HashMap<Together<'_>, &Point> =
        listed().map(|point| (Together::of(point, &in_steps), point)).collect();
    let last = listed().next_back().map(|point| point.id);
    let mut ranked: Vec<(u8, PointId)> = listed()
        .filter(|point| !is_exempt(point) && Some(point.id) != last)
        .filter_map(|point| {
            let works = point.session.as_ref().is_some_and(|id| at_work.contains(id));
            let is_newest = newest[&Together::of(point, &in_steps)].id == point.id;
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
    // The points came oldest first, and stay so within a rank.
    ranked.sort_by_key(|(rank, _)| *rank);
    Ok(ranked.into_iter().map(|(_, id)| id).collect())
}

/// The sessions that are not over. Not every agent says that it ends: without a process that could
/// be asked, a day without a prompt says it.
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
        let told = session.ended_at.is_some() || session.archived_at.is_some();
        let last = last.get(&session.id).copied().unwrap_or(session.started_at);
        let lives = session.owner.map(process::is_alive);
        !told && lives.unwrap_or(now.0 - last.0 < super::DAY)
    });
    let mut at_work: HashSet<SessionId> = sessions.map(|session| session.id).collect();
    at_work.extend(store.live_calls()?.into_iter().map(|call| call.session));
    Ok(at_work)
}

/// What sets of kept points need of a log.
struct Needs {
    changes: Vec<Change>,
    head: Seq,
    weights: HashMap<Digest, StoredSize>,
}

/// What one set of kept points needs.
struct Need {
    bytes: u64,
    changes: usize,
}

impl Needs {
    fn of(store: &dyn Store) -> Result<Self, StoreError> {
        let head = store.head()?.seq;
        let changes = store.changes_after(Seq(0))?;
        let named = changes.iter().flat_map(named_by).collect();
        Ok(Self { head, weights: store.stored_sizes(&named)?, changes })
    }

    fn of_points(&self, kept: &BTreeSet<Seq>) -> Need {
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
        Need { bytes, changes }
    }
}

fn named_by(change: &Change) -> impl Iterator<Item = Digest> {
    [change.before.digest(), change.after.digest()].into_iter().flatten()
}
