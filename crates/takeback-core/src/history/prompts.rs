//! Which prompt a turn belongs to. A subagent's turn has none of its own: it belongs to the prompt for which
//! it was started.

use std::collections::HashMap;

use takeback_store::{
    Change, Point, PointFilter, PointKind, PointQuery, SessionId, Store, StoreError, Timestamp,
    Turn,
};

/// How the point of a turn's prompt is recognized.
enum Key {
    /// The prompt opened the turn.
    Opened(SessionId, Timestamp),
    /// The newest prompt of this session at that time, for a part of it.
    NewestOf(SessionId, Timestamp),
}

impl Key {
    fn of(store: &dyn Store, turn: &Turn) -> Result<Self, StoreError> {
        let session = store.session(&turn.session)?.filter(|_| turn.prompt.is_empty());
        let whole = session.as_ref().and_then(|session| session.whole()).cloned();
        Ok(match whole {
            Some(whole) => Self::NewestOf(whole, turn.opened_at),
            None => Self::Opened(turn.session.clone(), turn.opened_at),
        })
    }

    /// Of several, the newest is meant.
    fn is_of(&self, point: &Point) -> bool {
        point.kind == PointKind::Prompt
            && match self {
                Self::Opened(session, at) => {
                    point.session.as_ref() == Some(session) && point.created_at == *at
                }
                Self::NewestOf(session, at) => {
                    point.session.as_ref() == Some(session) && point.created_at <= *at
                }
            }
    }
}

/// The point of the turn in which a change was made.
pub fn point_of(
    store: &dyn Store,
    turn: &Turn,
    change: &Change,
) -> Result<Option<Point>, StoreError> {
    let key = Key::of(store, turn)?;
    let mut most = 8;
    loop {
        let filter = PointFilter::WithoutSafety;
        let earlier = store.find_points(PointQuery::Before { seq: change.seq, filter, most })?;
        let is_all = earlier.len() < most;
        let found = earlier.into_iter().rev().find(|point| key.is_of(point));
        if found.is_some() || is_all {
            return Ok(found);
        }
        most *= 8;
    }
}

/// The prompts of a range, to be found by their turns.
pub(super) struct Prompts<'p> {
    points: &'p [Point],
    /// By session, oldest first.
    of_session: HashMap<&'p SessionId, Vec<usize>>,
}

impl<'p> Prompts<'p> {
    /// `points`: oldest first.
    pub(super) fn of(points: &'p [Point]) -> Self {
        let mut of_session: HashMap<&SessionId, Vec<usize>> = HashMap::new();
        for (at, point) in points.iter().enumerate() {
            if let Some(session) = &point.session
                && point.kind == PointKind::Prompt
            {
                of_session.entry(session).or_default().push(at);
            }
        }
        Self { points, of_session }
    }

    /// Which of the points has the turn's prompt.
    pub(super) fn find(&self, store: &dyn Store, turn: &Turn) -> Result<Option<usize>, StoreError> {
        let key = Key::of(store, turn)?;
        let (Key::Opened(session, at) | Key::NewestOf(session, at)) = &key;
        let Some(own) = self.of_session.get(session) else { return Ok(None) };
        let end = own.partition_point(|point| self.points[*point].created_at <= *at);
        let newest = own[..end].last().copied();
        Ok(newest.filter(|point| key.is_of(&self.points[*point])))
    }
}
