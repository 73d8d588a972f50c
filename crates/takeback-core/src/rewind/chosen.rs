//! The changes of one turn, one call, or a stretch of the log, for taking back these alone.

use std::collections::BTreeSet;

use takeback_store::{
    Author, Call, Point, PointFilter, PointQuery, Seq, SessionId, Store, StoreError,
};

use super::request::{ChosenChanges, RewindScope};
use super::target::continued_by;
use crate::history::{next_of_session, next_point};

impl ChosenChanges {
    /// What the agent did after a point and before its next one, with its subagents; after a point that you
    /// made and before the next one, any agent.
    pub fn of_turn(store: &dyn Store, point: &Point) -> Result<Self, StoreError> {
        let scope = match &point.session {
            Some(session) => RewindScope::Sessions(with_subagents(store, session)?),
            None => RewindScope::AllAgents,
        };
        let next = match point.session {
            Some(_) => next_of_session(store, point)?,
            None => next_point(store, point)?,
        };
        let through = next.map(|next| next.seq);
        Ok(Self { point: point.id, stretch: (point.seq, through), scope, call: None })
    }

    /// What agents did between two points, or from one to now; `scope`: as of a rewind to the first.
    pub fn of_range(
        store: &dyn Store,
        from: &Point,
        to: Option<&Point>,
        scope: Option<RewindScope>,
    ) -> Result<Self, StoreError> {
        let scope = match (scope, &from.session) {
            (Some(scope), _) => scope,
            (None, Some(session)) => {
                RewindScope::Sessions(continued_by(&store.sessions()?, session))
            }
            (None, None) => RewindScope::AllAgents,
        };
        let stretch = (from.seq, to.map(|to| to.seq));
        Ok(Self { point: from.id, stretch, scope, call: None })
    }

    /// What one call did. `None`: it changed nothing that is in the log.
    pub fn of_call(store: &dyn Store, call: &Call) -> Result<Option<Self>, StoreError> {
        let is_its = |author: &Author| {
            matches!(author, Author::Agent { session, call: id, .. }
                if *session == call.session && *id == call.id)
        };
        let mut first: Option<Seq> = None;
        for path in store.paths_of_call(&call.session, &call.id)? {
            let changes = store.changes_of(&path)?;
            let own = changes.iter().find(|change| is_its(&change.author)).map(|change| change.seq);
            first = first.into_iter().chain(own).min();
        }
        let Some(first) = first else { return Ok(None) };
        let after = Seq(first.0 - 1);
        let filter = PointFilter::WithoutSafety;
        let points = store.find_points(PointQuery::Before { seq: first, filter, most: 1 })?;
        let Some(point) = points.first() else { return Ok(None) };
        Ok(Some(Self {
            point: point.id,
            stretch: (after, None),
            scope: RewindScope::Sessions(BTreeSet::from([call.session.clone()])),
            call: Some((call.session.clone(), call.id.clone())),
        }))
    }
}

fn with_subagents(
    store: &dyn Store,
    session: &SessionId,
) -> Result<BTreeSet<SessionId>, StoreError> {
    let sessions = store.sessions()?.into_iter().map(|one| one.id);
    let parts = sessions.filter(|one| one.part_of(session).is_some());
    Ok(parts.chain([session.clone()]).collect())
}
