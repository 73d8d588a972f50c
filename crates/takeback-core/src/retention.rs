//! What is kept, and for how long. Whole points go, oldest first; what no kept point needs goes with
//! them; a kept point is never touched.
//!
//! In come the points, the sessions and the log; out goes one commit that drops and folds, and then
//! the space of what nothing names any more. Runs in commands, never in hooks.

mod choose;
mod thin;

use takeback_store::{Head, PointId, Seq, Session, SessionId, Store, StoreError, Timestamp, Write};

pub use self::choose::Policy;
use self::choose::{Drops, choose};
use self::thin::thin;
use crate::lock::Hold;
use crate::record::{RecordError, drain_spool};
use crate::rewind::RewindError;
use crate::rewind::recover::recover_locked;
use crate::workspace::Workspace;
use crate::worktree::index::Index;

/// What a clean-up did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CleanedUp {
    pub points: usize,
    pub sessions: Vec<SessionId>,
    /// Changes that no kept point needs, or that were folded into others.
    pub changes: usize,
    /// Bytes on disk.
    pub freed: u64,
    /// Why nothing was done.
    pub stopped: Option<ClockTrouble>,
}

/// A clock that nobody should trust to say what is old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockTrouble {
    /// It is earlier than something that has happened.
    WentBack { last: Timestamp, now: Timestamp },
    /// More than 30 days have passed since anything happened.
    Jumped { last: Timestamp, now: Timestamp },
}

/// Whether the clock is believed although it looks wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    Doubted,
    Trusted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// Something is begun: only what is too much goes.
    AtStart,
    /// Somebody asked: everything that can be folded or given back is.
    OnDemand,
}

#[derive(Debug, thiserror::Error)]
pub enum CleanUpError {
    #[error("there is no session {0}")]
    NoSession(SessionId),
    #[error("another command has the workspace locked")]
    Locked,
    #[error(transparent)]
    Rewind(#[from] RewindError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// Whether a day has passed since the last clean-up, or the clock is not to be trusted about that.
pub fn is_due(workspace: &Workspace) -> Result<bool, StoreError> {
    let now = (workspace.ambient.now)().0;
    let last = workspace.store.last_cleanup()?;
    Ok(last.is_none_or(|last| now - last.0 >= DAY || now < last.0 - HOUR))
}

/// Drops what `policy` no longer keeps, and gives its space back.
pub fn clean_up(
    workspace: &mut Workspace,
    policy: &Policy,
    occasion: Occasion,
    clock: Clock,
) -> Result<CleanedUp, CleanUpError> {
    let now = (workspace.ambient.now)();
    if clock == Clock::Doubted
        && let Some(trouble) = clock_trouble(&*workspace.store, now)?
    {
        note_clean_up(&mut *workspace.store, now)?;
        return Ok(CleanedUp { stopped: Some(trouble), ..CleanedUp::default() });
    }
    retain(workspace, occasion, Some(now), |store| choose(store, policy, now))
}

/// What [`clean_up`] would drop; nothing is done.
pub fn would_drop(
    workspace: &Workspace,
    policy: &Policy,
) -> Result<(Vec<PointId>, Vec<SessionId>), StoreError> {
    let drops = choose(&*workspace.store, policy, (workspace.ambient.now)())?;
    Ok((drops.points.into_iter().collect(), drops.sessions))
}

/// Deletes a session with all that belongs to it, pinned points too. What others need of its changes
/// stays, without its name.
pub fn delete_session(
    workspace: &mut Workspace,
    id: &SessionId,
) -> Result<CleanedUp, CleanUpError> {
    if workspace.store.session(id)?.is_none() {
        return Err(CleanUpError::NoSession(id.clone()));
    }
    retain(workspace, Occasion::OnDemand, None, |store| Drops::of_session(store, id))
}

/// From now on its data is kept only as long as the policy says. An event of the session takes it
/// back.
pub fn archive_session(workspace: &mut Workspace, id: &SessionId) -> Result<(), CleanUpError> {
    let now = (workspace.ambient.now)();
    loop {
        let head = workspace.store.head()?;
        let session = workspace.store.session(id)?;
        let session = session.ok_or_else(|| CleanUpError::NoSession(id.clone()))?;
        let archived_at = session.archived_at.or(Some(now));
        let archived = Write::Session(Session { archived_at, ..session });
        match workspace.store.commit(head, &[archived]) {
            Err(StoreError::Moved) => {}
            done => return Ok(done.map(drop)?),
        }
    }
}

fn clock_trouble(store: &dyn Store, now: Timestamp) -> Result<Option<ClockTrouble>, StoreError> {
    const MOST_DAYS: i64 = 30;
    let newest_change = store.change(store.head()?.seq)?.map(|change| change.time);
    let newest_point = store.points()?.iter().map(|point| point.created_at).max();
    let newest_session = store.sessions()?.iter().map(|session| session.started_at).max();
    let last = [newest_change, newest_point, newest_session, store.last_scan()?];
    let last = last.into_iter().chain([store.last_cleanup()?]).flatten().max();
    Ok(last.and_then(|last| {
        if now.0 < last.0 - HOUR {
            Some(ClockTrouble::WentBack { last, now })
        } else if now.0 > last.0 + MOST_DAYS * DAY {
            Some(ClockTrouble::Jumped { last, now })
        } else {
            None
        }
    }))
}

fn note_clean_up(store: &mut dyn Store, now: Timestamp) -> Result<(), StoreError> {
    loop {
        let head = store.head()?;
        match store.commit(head, &[Write::CleanedUp(now)]) {
            Err(StoreError::Moved) => {}
            done => return done.map(drop),
        }
    }
}

/// Drops what `chosen` says and what only that needed. `noted`: when it was last looked for all that
/// is no longer to be kept, if this is such a time.
fn retain(
    workspace: &mut Workspace,
    occasion: Occasion,
    noted: Option<Timestamp>,
    chosen: impl Fn(&dyn Store) -> Result<Drops, StoreError>,
) -> Result<CleanedUp, CleanUpError> {
    let used = workspace.store.usage()?;
    // Most of the work is done before anybody is kept waiting.
    let mut work = Work::prepare(&*workspace.store, occasion, &chosen)?;
    if work.writes.is_empty() && occasion == Occasion::AtStart {
        noted.map_or(Ok(()), |now| note_clean_up(&mut *workspace.store, now))?;
        return Ok(CleanedUp::default());
    }
    {
        let patience = workspace.limits.rewind_patience;
        let Some(_lock) = workspace.lock(Hold::Exclusive, patience)? else {
            return Err(CleanUpError::Locked);
        };
        recover_locked(workspace)?;
        drain_spool(workspace)?;
        loop {
            if workspace.store.head()? != work.head {
                work = Work::prepare(&*workspace.store, occasion, &chosen)?;
            }
            work.writes.extend(noted.map(Write::CleanedUp));
            // A path that the log forgets must not live on in an index that is behind the log.
            Index::load(&workspace.index_file(), &*workspace.store)?
                .save(&workspace.index_file())
                .map_err(|source| StoreError::Io {
                    path: workspace.index_file(),
                    doing: "replacing it",
                    source,
                })?;
            match workspace.store.commit(work.head, &work.writes) {
                Err(StoreError::Moved) => {}
                done => break done.map(drop)?,
            }
        }
    }
    let unnamed = workspace.store.unnamed()?;
    if !unnamed.digests.is_empty() {
        let patience = workspace.limits.rewind_patience;
        let Some(_lock) = workspace.lock(Hold::Exclusive, patience)? else {
            return Err(CleanUpError::Locked);
        };
        workspace.store.forget(&unnamed)?;
    }
    workspace.store.compact()?;
    let left = workspace.store.usage()?;
    Ok(CleanedUp {
        points: work.points,
        sessions: work.sessions,
        changes: usize::try_from(used.changes.saturating_sub(left.changes)).unwrap_or(usize::MAX),
        freed: (used.packs + used.database).saturating_sub(left.packs + left.database),
        stopped: None,
    })
}

/// A commit that drops, and the head it was made for.
struct Work {
    head: Head,
    writes: Vec<Write>,
    points: usize,
    sessions: Vec<SessionId>,
}

impl Work {
    fn prepare(
        store: &dyn Store,
        occasion: Occasion,
        chosen: &impl Fn(&dyn Store) -> Result<Drops, StoreError>,
    ) -> Result<Self, StoreError> {
        let head = store.head()?;
        let drops = chosen(store)?;
        let mut writes = Vec::new();
        if !drops.is_nothing() || occasion == Occasion::OnDemand {
            let kept = drops.kept.iter().map(|point| point.seq).collect();
            writes.extend(thin(&store.changes_after(Seq(0))?, &kept, head.seq));
        }
        writes.extend(drops.points.into_iter().map(Write::DropPoint));
        writes.extend(drops.rewinds.into_iter().map(Write::DropRewind));
        let turns = drops.turns.into_iter();
        writes.extend(turns.map(|(session, before)| Write::DropTurns { session, before }));
        writes.extend(drops.sessions.iter().cloned().map(Write::DropSession));
        Ok(Self { head, writes, points: drops.listed, sessions: drops.sessions })
    }
}
