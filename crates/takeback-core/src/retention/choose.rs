//! Which points, rewinds and sessions are no longer kept.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use takeback_store::{
    Point, PointId, PointKind, RewindId, RewindKind, RewindRecord, RewindState, Session, SessionId,
    Store, StoreError, Timestamp,
};

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Points of a session; those made by hand count together as one. Those with a label or a pin
    /// are not counted and stay.
    pub points_per_session: usize,
    /// Days after which the data of an archived session goes.
    pub archive_days: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self { points_per_session: 50, archive_days: 7 }
    }
}

/// What goes, and the points that stay.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Drops {
    /// Those of the list, and the safety points that go with them.
    pub(super) points: BTreeSet<PointId>,
    /// How many of them stood in the list.
    pub(super) listed: usize,
    pub(super) rewinds: BTreeSet<RewindId>,
    pub(super) sessions: Vec<SessionId>,
    /// Turns of these sessions that were over before then.
    pub(super) turns: Vec<(SessionId, Timestamp)>,
    /// Oldest first.
    pub(super) kept: Vec<Point>,
}

impl Drops {
    pub(super) fn is_nothing(&self) -> bool {
        self.points.is_empty() && self.sessions.is_empty()
    }

    /// All of one session.
    pub(super) fn of_session(store: &dyn Store, id: &SessionId) -> Result<Self, StoreError> {
        let points = store.points()?;
        let own = points.iter().filter(|point| point.session.as_ref() == Some(id));
        let own = own.map(|point| point.id).collect();
        Ok(Self::new(points, &store.rewinds()?, own, vec![id.clone()]))
    }

    /// Adds what goes with these points of the list.
    fn new(
        points: Vec<Point>,
        rewinds: &[RewindRecord],
        mut going: BTreeSet<PointId>,
        sessions: Vec<SessionId>,
    ) -> Self {
        let listed = going.len();
        let mut turns = BTreeMap::new();
        for session in points.iter().filter(|p| going.contains(&p.id)).flat_map(|p| &p.session) {
            let staying = points.iter().find(|point| {
                point.session.as_ref() == Some(session)
                    && !going.contains(&point.id)
                    && !is_exempt(point)
            });
            let before = staying.map_or(Timestamp(i64::MAX), |point| point.created_at);
            turns.insert(session.clone(), before);
        }
        let rewinds = rewinds_going(&points, rewinds, &mut going);
        let kept = points.into_iter().filter(|point| !going.contains(&point.id)).collect();
        Self {
            points: going,
            listed,
            rewinds,
            turns: turns.into_iter().filter(|(id, _)| !sessions.contains(id)).collect(),
            sessions,
            kept,
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
    let mut by_session: BTreeMap<Option<&SessionId>, Vec<PointId>> = BTreeMap::new();
    for point in points.iter().filter(|p| p.kind != PointKind::Safety && !is_exempt(p)) {
        by_session.entry(point.session.as_ref()).or_default().push(point.id);
    }
    let mut going = BTreeSet::new();
    for (session, own) in by_session {
        let most = match session {
            Some(id) if expired.contains(id) => 0,
            _ => policy.points_per_session.max(1),
        };
        going.extend(own.iter().take(own.len().saturating_sub(most)));
    }
    let has_points = |id: &SessionId| {
        points.iter().any(|point| point.session.as_ref() == Some(id) && !going.contains(&point.id))
    };
    let gone = expired.into_iter().filter(|id| !has_points(id)).cloned().collect();
    Ok(Drops::new(points, &store.rewinds()?, going, gone))
}

fn is_exempt(point: &Point) -> bool {
    point.pinned || point.label.is_some()
}

fn is_expired(session: &Session, policy: &Policy, now: Timestamp) -> bool {
    const DAY: i64 = 86_400_000;
    let kept = i64::from(policy.archive_days) * DAY;
    session.archived_at.is_some_and(|archived| now.0 - archived.0 >= kept)
}

/// The rewinds that go; their safety points are added to `going`.
///
/// A safety point lives as long as one of its neighbours: the points of the list before and after
/// it. With it goes its rewind, and the one that this took back, which could no longer be told from
/// one that stands.
fn rewinds_going(
    points: &[Point],
    rewinds: &[RewindRecord],
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
    let mut open: Vec<&RewindRecord> =
        rewinds.iter().filter(|rewind| safety.contains(&rewind.safety_point)).collect();
    going.extend(safety);
    let mut gone = BTreeSet::new();
    while let Some(rewind) = open.pop() {
        if rewind.state == RewindState::Open || !gone.insert(rewind.id) {
            continue;
        }
        going.insert(rewind.safety_point);
        if let RewindKind::Undo { of } | RewindKind::Redo { of } = rewind.kind {
            open.extend(rewinds.iter().find(|rewind| rewind.id == of));
        }
    }
    gone
}
