//! Chooses the points, rewinds and sessions to drop.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use takeback_store::{
    Author, Change, Point, PointId, PointKind, RewindHeader, RewindId, RewindState, Seq, Session,
    SessionId, Store, StoreError, Timestamp, Write,
};

use super::erase;
use crate::rewind::history::erased;

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Points of a session. Manual points count as one session, and so do those of all runs of a command,
    /// each of which is a session of its own. Points with a label or a pin do not count and stay.
    pub points_per_session: usize,
    /// Days after which the data of an archived session is dropped.
    pub archive_days: u32,
    /// The size on disk above which more points are dropped; 0: unlimited.
    pub max_bytes: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self { points_per_session: 50, archive_days: 7, max_bytes: 5 << 30 }
    }
}

/// What to drop, and the points that stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Drops {
    /// Listed points, and the safety points that are dropped with them.
    pub(super) points: BTreeSet<PointId>,
    /// The listed points only, oldest first.
    pub(super) listed: Vec<PointId>,
    pub(super) rewinds: BTreeSet<RewindId>,
    pub(super) sessions: Vec<SessionId>,
    /// Turns of these sessions that had ended before this time.
    pub(super) turns: Vec<(SessionId, Timestamp)>,
    /// Oldest first.
    pub(super) kept: Vec<Point>,
    /// Nothing that is dropped may stay in the store's files.
    pub(super) expunges: bool,
}

impl Drops {
    pub(super) fn is_nothing(&self) -> bool {
        self.points.is_empty() && self.sessions.is_empty()
    }

    /// Everything of one session.
    pub(super) fn of_session(store: &dyn Store, id: &SessionId) -> Result<Self, StoreError> {
        let points = store.points()?;
        let own = points.iter().filter(|point| point.session.as_ref() == Some(id));
        let own = own.map(|point| point.id).collect();
        let drops = Self::new(points, &store.rewind_headers()?, own, vec![id.clone()]);
        Ok(Self { expunges: true, ..drops })
    }

    /// Also drops these listed points.
    pub(super) fn with_points(
        self,
        store: &dyn Store,
        more: impl IntoIterator<Item = PointId>,
    ) -> Result<Self, StoreError> {
        let going = self.listed.into_iter().chain(more).collect();
        Ok(Self::new(store.points()?, &store.rewind_headers()?, going, self.sessions))
    }

    /// Adds runs without a point or a kept change: a run is never resumed.
    pub(super) fn add_unnamed_runs(
        &mut self,
        store: &dyn Store,
        changes: &[Change],
        thinned: &[Write],
        with_state: &HashSet<SessionId>,
    ) -> Result<(), StoreError> {
        let mut authors: HashMap<Seq, &Author> =
            changes.iter().map(|change| (change.seq, &change.author)).collect();
        for write in thinned {
            match write {
                Write::DropChange(seq) => drop(authors.remove(seq)),
                Write::ReplaceChange(change) => drop(authors.insert(change.seq, &change.author)),
                _ => {}
            }
        }
        let mut named: HashSet<&SessionId> =
            authors.values().flat_map(|author| author.sessions()).collect();
        named.extend(self.kept.iter().flat_map(|point| &point.session));
        let live = store.live_calls()?;
        named.extend(live.iter().map(|call| &call.session));
        let over = store.sessions()?.into_iter().filter(|session| {
            let ended = session.ended_at.is_some() && session.open_turn.is_none();
            let free = !named.contains(&session.id)
                && !with_state.contains(&session.id)
                && !self.sessions.contains(&session.id);
            session.id.is_run() && ended && free
        });
        let over: Vec<SessionId> = over.map(|session| session.id).collect();
        self.turns.retain(|(id, _)| !over.contains(id));
        self.sessions.extend(over);
        Ok(())
    }

    /// Adds the rewinds that hold the sessions' work, with their safety points. Returns what remains of
    /// the newest.
    pub(super) fn and_rewinds_of_sessions(
        &mut self,
        store: &dyn Store,
        changes: &[Change],
    ) -> Result<Option<Write>, StoreError> {
        if self.sessions.is_empty() {
            return Ok(None);
        }
        let going =
            erase::erased_rewinds(changes, &self.kept, &store.rewind_headers()?, &self.sessions);
        self.kept.retain(|point| !going.points.contains(&point.id));
        self.points.extend(going.points);
        self.rewinds.extend(going.rewinds);
        let newest = going.newest.map(|id| store.rewind(id)).transpose()?.flatten();
        Ok(newest.map(|newest| Write::Rewind(erased(&newest))))
    }

    /// Adds what is dropped with these listed points.
    fn new(
        points: Vec<Point>,
        rewinds: &[RewindHeader],
        mut going: BTreeSet<PointId>,
        sessions: Vec<SessionId>,
    ) -> Self {
        let listed = points.iter().map(|point| point.id).filter(|id| going.contains(id)).collect();
        let mut turns: BTreeMap<SessionId, Timestamp> = BTreeMap::new();
        for session in points.iter().filter(|p| going.contains(&p.id)).flat_map(|p| &p.session) {
            turns.insert(session.clone(), Timestamp(i64::MAX));
        }
        for point in points.iter().filter(|p| !going.contains(&p.id) && !is_exempt(p)).rev() {
            if let Some(before) = point.session.as_ref().and_then(|id| turns.get_mut(id)) {
                *before = point.created_at;
            }
        }
        let rewinds = expired_rewinds(&points, rewinds, &mut going);
        let kept = points.into_iter().filter(|point| !going.contains(&point.id)).collect();
        Self {
            points: going,
            listed,
            rewinds,
            turns: turns.into_iter().filter(|(id, _)| !sessions.contains(id)).collect(),
            sessions,
            kept,
            expunges: false,
        }
    }
}

pub(super) fn choose(
    store: &dyn Store,
    policy: &Policy,
    now: Timestamp,
) -> Result<Drops, StoreError> {
    let points = store.points()?;
    let sessions = store.sessions()?;
    let expired: HashSet<&SessionId> =
        sessions.iter().filter(|s| is_expired(s, policy, now)).map(|s| &s.id).collect();
    let is_expired = |point: &Point| point.session.as_ref().is_some_and(|id| expired.contains(id));
    let mut going = beyond(&points, policy, |point| point.may_expire() && !is_expired(point));
    let goes = |point: &&Point| point.may_expire() && is_expired(point);
    going.extend(points.iter().filter(goes).map(|point| point.id));
    let staying: HashSet<&SessionId> =
        points.iter().filter(|p| !going.contains(&p.id)).flat_map(|p| &p.session).collect();
    let gone = expired.into_iter().filter(|id| !staying.contains(id)).cloned().collect();
    Ok(Drops::new(points, &store.rewind_headers()?, going, gone))
}

/// The listed points beyond the number that `policy` keeps.
pub(super) fn too_many(points: &[Point], policy: &Policy) -> BTreeSet<PointId> {
    beyond(points, policy, Point::may_expire)
}

fn beyond(points: &[Point], policy: &Policy, counts: impl Fn(&Point) -> bool) -> BTreeSet<PointId> {
    let in_steps: HashSet<&SessionId> =
        points.iter().filter(|p| p.kind == PointKind::Step).flat_map(|p| &p.session).collect();
    let mut counted: BTreeMap<PointGroup<'_>, Vec<PointId>> = BTreeMap::new();
    for point in points.iter().filter(|point| counts(point)) {
        counted.entry(PointGroup::of(point, &in_steps)).or_default().push(point.id);
    }
    let most = policy.points_per_session.max(1);
    let over = counted.values().flat_map(|own| own.iter().take(own.len().saturating_sub(most)));
    over.copied().collect()
}

/// The listed points beyond the number that `policy` keeps, and what is dropped with them.
pub(super) fn choose_too_many(store: &dyn Store, policy: &Policy) -> Result<Drops, StoreError> {
    let points = store.points()?;
    let going = too_many(&points, policy);
    Ok(Drops::new(points, &store.rewind_headers()?, going, Vec::new()))
}

/// Points that are counted together.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum PointGroup<'a> {
    ByHand,
    Runs,
    Session(&'a SessionId),
}

impl<'a> PointGroup<'a> {
    /// `in_steps`: sessions of agents that save their states. Each counts separately.
    pub(super) fn of(point: &'a Point, in_steps: &HashSet<&SessionId>) -> Self {
        match &point.session {
            None => Self::ByHand,
            Some(id) if id.is_run() && !in_steps.contains(id) => Self::Runs,
            Some(id) => Self::Session(id),
        }
    }
}

pub(super) fn is_exempt(point: &Point) -> bool {
    point.pinned || point.label.is_some()
}

fn is_expired(session: &Session, policy: &Policy, now: Timestamp) -> bool {
    const DAY: i64 = 86_400_000;
    let kept = i64::from(policy.archive_days) * DAY;
    session.archived_at.is_some_and(|archived| now.0 - archived.0 >= kept)
}

/// The rewinds to drop; their safety points are added to `going`.
///
/// A safety point lives as long as one of its neighbours, the listed points before and after it. Its
/// rewind is dropped with it, and so is every older rewind: an undo that skipped it would undo the wrong
/// rewind.
fn expired_rewinds(
    points: &[Point],
    rewinds: &[RewindHeader],
    going: &mut BTreeSet<PointId>,
) -> BTreeSet<RewindId> {
    let mut earlier_stays = false;
    let mut between = Vec::new();
    let mut safety = BTreeSet::new();
    for point in points {
        if point.kind == PointKind::Safety {
            between.push(point.id);
            continue;
        }
        let stays = !going.contains(&point.id);
        if !earlier_stays && !stays {
            safety.extend(between.drain(..));
        }
        between.clear();
        earlier_stays = stays;
    }
    let newest = rewinds.iter().rposition(|rewind| safety.contains(&rewind.safety_point));
    let older = &rewinds[..newest.map_or(0, |at| at + 1)];
    let gone = older.iter().filter(|rewind| rewind.state == RewindState::Done);
    going.extend(safety);
    gone.map(|rewind| {
        going.insert(rewind.safety_point);
        rewind.id
    })
    .collect()
}
