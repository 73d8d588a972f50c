//! Retention: drops whole points, oldest first, and everything that no kept point needs. A kept point never
//! changes.
//!
//! In: the points, the sessions and the log. Out: one commit that drops and folds changes; then the space of
//! unreferenced contents is reclaimed. Runs in commands, never in hooks.

mod choose;
mod erase;
mod size_limit;
mod thin;

use std::collections::HashSet;
use std::io;

use takeback_store::state::{Category, DocumentKey};
use takeback_store::{
    Author, Call, CallState, Change, CompactEffort, Head, PointId, RepackStats, Seq, Session,
    SessionId, StateError, States, Store, StoreError, Timestamp, Write, disk,
};

pub use self::choose::Policy;
use self::choose::{Drops, choose, choose_too_many, too_many};
pub use self::size_limit::{HeldBytes, LimitExcess, held_bytes, store_bytes};
use self::size_limit::{Size, extend};
use self::thin::thin;
use crate::exchange::imported::import_of;
use crate::history::settle;
use crate::lock::{Hold, Lock};
use crate::purge;
use crate::record::{RecordError, drain_inbox, look_around};
use crate::rewind::RewindError;
use crate::rewind::recover_locked;
use crate::workspace::Workspace;
use crate::worktree::index::Index;

/// What a clean-up did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CleanUpReport {
    /// Listed points that were dropped.
    pub points: usize,
    /// Sessions of which everything was dropped.
    pub sessions: Vec<SessionId>,
    /// Changes that no kept point needs, or that were folded into others.
    pub changes: usize,
    /// Bytes on disk.
    pub freed: u64,
    /// The store is over its limit, and nothing more may be dropped.
    pub over: Option<LimitExcess>,
    /// Why nothing was done.
    pub stopped: Option<ClockTrouble>,
}

/// Why the clock cannot be trusted to say what is old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockTrouble {
    /// It is earlier than a recorded event.
    #[expect(missing_docs, reason = "the names say what the fields are")]
    WentBack { last: Timestamp, now: Timestamp },
    /// It is more than 30 days later than the last recorded event.
    #[expect(missing_docs, reason = "the names say what the fields are")]
    Jumped { last: Timestamp, now: Timestamp },
}

/// Whether to trust a clock that looks wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// A clock that looks wrong drops nothing.
    Doubted,
    /// The user says that the clock is right.
    Trusted,
}

/// When a clean-up runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// Before other work: drops only what exceeds the limits.
    AtStart,
    /// On request: also folds changes and reclaims all space.
    OnDemand,
}

/// Why a clean-up did not finish.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum CleanUpError {
    #[error("there is no session {0}")]
    NoSession(SessionId),
    #[error("another command has the workspace locked")]
    Locked,
    #[error(transparent)]
    Rewind(Box<RewindError>),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    State(#[from] StateError),
}

impl From<RewindError> for CleanUpError {
    fn from(error: RewindError) -> Self {
        Self::Rewind(Box::new(error))
    }
}

impl CleanUpError {
    /// The disk is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match self {
            Self::Store(error) | Self::Record(RecordError::Store(error)) => error.is_full(),
            Self::Rewind(error) => {
                matches!(&**error, RewindError::Store(error) if error.is_full())
            }
            _ => false,
        }
    }
}

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// Whether a day has passed since the last clean-up, or the clock cannot be trusted.
pub fn is_due(workspace: &Workspace) -> Result<bool, StoreError> {
    let now = (workspace.ambient.now)().0;
    let last = workspace.store.last_cleanup()?;
    Ok(last.is_none_or(|last| now - last.0 >= DAY || now < last.0 - HOUR))
}

/// Drops what `policy` does not keep, and reclaims its space.
pub fn clean_up(
    workspace: &mut Workspace,
    policy: &Policy,
    occasion: Occasion,
    clock: Clock,
) -> Result<CleanUpReport, CleanUpError> {
    let now = (workspace.ambient.now)();
    if clock == Clock::Doubted
        && let Some(trouble) = clock_trouble(&*workspace.store, now)?
    {
        return Ok(CleanUpReport { stopped: Some(trouble), ..CleanUpReport::default() });
    }
    let chosen = |store: &dyn Store| choose(store, policy, now);
    let mut done = match retain(workspace, occasion, Some(now), chosen) {
        Err(error) if error.is_full() => {
            make_room(workspace)?;
            retain(workspace, occasion, Some(now), chosen)?
        }
        done => done?,
    };
    if policy.max_bytes > 0 {
        shrink_to_limit(workspace, policy, now, &mut done)?;
    }
    if occasion == Occasion::OnDemand {
        done.freed += repack_briefly(workspace)?;
    }
    Ok(done)
}

/// Whether a session has more points than `policy` keeps. Cheap enough for a hook.
pub fn has_too_many_points(
    store: &dyn Store,
    policy: &Policy,
    session: &SessionId,
) -> Result<bool, StoreError> {
    Ok(store.count_points_of(Some(session))? > policy.points_per_session.max(1))
}

/// Drops the points beyond the number that `policy` keeps, regardless of the clock, and what only they
/// needed.
pub fn enforce_point_limit(
    workspace: &mut Workspace,
    policy: &Policy,
) -> Result<CleanUpReport, CleanUpError> {
    let store = &*workspace.store;
    if !may_have_too_many(store, policy)? || too_many(&store.points()?, policy).is_empty() {
        return Ok(CleanUpReport::default());
    }
    retain(workspace, Occasion::AtStart, None, |store| choose_too_many(store, policy))
}

/// Whether some group of points may have too many, without reading them.
fn may_have_too_many(store: &dyn Store, policy: &Policy) -> Result<bool, StoreError> {
    let most = policy.points_per_session.max(1);
    let (mut runs, mut all_runs) = (0, Vec::new());
    for (session, points) in store.points_by_session()? {
        if session.as_ref().is_some_and(SessionId::is_run) {
            // They count together.
            runs += points;
            all_runs.extend(session);
        } else if points > most && store.count_points_of(session.as_ref())? > most {
            return Ok(true);
        }
    }
    if runs <= most {
        return Ok(false);
    }
    let counts = all_runs.iter().map(|run| store.count_points_of(Some(run)));
    Ok(counts.sum::<Result<usize, StoreError>>()? > most)
}

/// Does a part of the repacking, reading about `budget` bytes. For an idle, long-running process.
pub fn repack_some(workspace: &mut Workspace, budget: u64) -> Result<RepackStats, StoreError> {
    workspace.store.repack(budget)
}

/// Repacks for as long as a user would wait; returns the bytes that were reclaimed.
fn repack_briefly(workspace: &mut Workspace) -> Result<u64, StoreError> {
    /// Some seconds.
    const MOST: u64 = 256 << 20;
    let before = store_bytes(workspace);
    match repack_some(workspace, MOST) {
        // Repacking is optional: on a full disk the clean-up continues without it.
        Err(error) if error.is_full() => {}
        done => drop(done?),
    }
    Ok(before.saturating_sub(store_bytes(workspace)))
}

/// On a full disk, removes what can be removed without writing: dead segments, and the index, which can be
/// rebuilt.
fn make_room(workspace: &mut Workspace) -> Result<(), StoreError> {
    if let Err(error) = workspace.store.compact(CompactEffort::ShortOfSpace)
        && !error.is_full()
    {
        return Err(error);
    }
    let file = workspace.index_file();
    match disk::remove_store_file(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => {
            removed.map_err(|source| StoreError::Io { path: file, doing: "removing it", source })
        }
    }
}

/// Whether the store is over its size limit, and an hour has passed since the last attempt: pinned and
/// labelled points may keep it there.
pub fn is_over_size_limit(workspace: &Workspace, policy: &Policy) -> Result<bool, StoreError> {
    let now = (workspace.ambient.now)().0;
    let last = workspace.store.last_cleanup()?;
    let is_time = last.is_none_or(|last| now - last.0 >= HOUR || now < last.0);
    Ok(is_time && policy.max_bytes > 0 && store_bytes(workspace) > policy.max_bytes)
}

fn index_bytes(workspace: &Workspace) -> u64 {
    std::fs::metadata(workspace.index_file()).map_or(0, |index| index.len())
}

/// A tenth below the limit: the target once points have to be dropped.
fn aim(policy: &Policy) -> u64 {
    policy.max_bytes - policy.max_bytes / 10
}

/// Reclaims unused space, and drops points until the store is within its limit or no more may be dropped.
fn shrink_to_limit(
    workspace: &mut Workspace,
    policy: &Policy,
    now: Timestamp,
    done: &mut CleanUpReport,
) -> Result<(), CleanUpError> {
    let limit = policy.max_bytes;
    let before = store_bytes(workspace);
    if before <= limit {
        return Ok(());
    }
    workspace.store.compact(CompactEffort::ShortOfSpace)?;
    let mut used = store_bytes(workspace);
    let mut aim = aim(policy);
    while used > limit {
        let size = Size { index: index_bytes(workspace), limit, aim };
        let more = retain(workspace, Occasion::AtStart, None, |store| {
            extend(store, choose(store, policy, now)?, policy, now, size)
        })?;
        workspace.store.compact(CompactEffort::ShortOfSpace)?;
        used = store_bytes(workspace);
        if more.points == 0 {
            break;
        }
        done.points += more.points;
        done.sessions.extend(more.sessions);
        done.changes += more.changes;
        // The estimate was too low.
        aim = aim.saturating_sub(used.saturating_sub(limit));
    }
    done.freed += before.saturating_sub(used);
    if used > limit {
        done.over = Some(LimitExcess { limit, used, held: held_bytes(&*workspace.store)? });
    }
    Ok(())
}

/// What a clean-up would drop.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CleanUpPreview {
    /// Listed points.
    pub points: Vec<PointId>,
    /// Sessions of which everything would be dropped.
    pub sessions: Vec<SessionId>,
    /// Why nothing would be dropped.
    pub stopped: Option<ClockTrouble>,
}

/// What [`clean_up`] would drop. Changes nothing.
pub fn would_drop(
    workspace: &Workspace,
    policy: &Policy,
    clock: Clock,
) -> Result<CleanUpPreview, StoreError> {
    let now = (workspace.ambient.now)();
    if clock == Clock::Doubted
        && let Some(trouble) = clock_trouble(&*workspace.store, now)?
    {
        return Ok(CleanUpPreview { stopped: Some(trouble), ..CleanUpPreview::default() });
    }
    let store = &*workspace.store;
    let mut drops = choose(store, policy, now)?;
    if policy.max_bytes > 0 && store_bytes(workspace) > policy.max_bytes {
        let index = index_bytes(workspace);
        let size = Size { index, limit: policy.max_bytes, aim: aim(policy) };
        drops = extend(store, drops, policy, now, size)?;
    }
    Ok(CleanUpPreview { points: drops.listed, sessions: drops.sessions, stopped: None })
}

/// Deletes a session with everything that belongs to it, pinned points included, and the rewinds that
/// took its work back. Changes that others need stay, without its name. Afterwards nothing else of it is
/// in the store's files.
pub fn delete_session(
    workspace: &mut Workspace,
    id: &SessionId,
) -> Result<CleanUpReport, CleanUpError> {
    if workspace.store.session(id)?.is_none() {
        return Err(CleanUpError::NoSession(id.clone()));
    }
    let before = store_bytes(workspace);
    let done = retain(workspace, Occasion::OnDemand, None, |store| Drops::of_session(store, id))?;
    let Some(_lock) = lock_exclusively(workspace)? else { return Err(CleanUpError::Locked) };
    purge::finish(workspace)?;
    Ok(CleanUpReport { freed: before.saturating_sub(store_bytes(workspace)), ..done })
}

/// How many rewinds [`delete_session`] deletes too: they can no longer be undone.
pub fn rewinds_with_session(store: &dyn Store, id: &SessionId) -> Result<usize, StoreError> {
    let mut drops = Drops::of_session(store, id)?;
    let mut changes = store.changes_after(Seq(0))?;
    settle(store, &mut changes)?;
    drops.and_rewinds_of_sessions(store, &changes)?;
    Ok(drops.rewinds.len())
}

/// Ends a session: from now on its data is kept only as long as the policy says. A new event of the session
/// reopens it.
pub fn archive_session(workspace: &mut Workspace, id: &SessionId) -> Result<(), CleanUpError> {
    if workspace.store.session(id)?.is_some_and(|session| session.open_turn.is_some()) {
        // Record what its calls have done so far: later changes are not theirs.
        look_around(workspace)?;
    }
    let now = (workspace.ambient.now)();
    loop {
        let head = workspace.store.head()?;
        let session = workspace.store.session(id)?;
        let session = session.ok_or_else(|| CleanUpError::NoSession(id.clone()))?;
        let mut writes = vec![Write::Session(Session {
            archived_at: session.archived_at.or(Some(now)),
            ended_at: session.ended_at.or(Some(now)),
            open_turn: None,
            ..session
        })];
        let calls = workspace.store.live_calls()?;
        writes.extend(calls.into_iter().filter(|call| call.session == *id).map(|call| {
            Write::Call(Call { state: CallState::CutOff, closed_at: Some(now), ..call })
        }));
        match workspace.store.commit(head, &writes) {
            Err(StoreError::Moved) => {}
            done => return Ok(done.map(drop)?),
        }
    }
}

/// A jump shows as a gap between two recorded events, however many came later. The last clean-up trusted
/// everything before it.
fn clock_trouble(store: &dyn Store, now: Timestamp) -> Result<Option<ClockTrouble>, StoreError> {
    const MOST_DAYS: i64 = 30;
    let mut times: Vec<Timestamp> = store.points()?.iter().map(|point| point.created_at).collect();
    times.extend(store.sessions()?.iter().map(|session| session.started_at));
    times.extend(store.change(store.head()?.seq)?.map(|change| change.time));
    times.extend(store.last_scan()?);
    let believed = store.last_cleanup()?;
    times.extend(believed);
    let last = times.iter().max().copied();
    if let Some(last) = last.filter(|last| now.0 < last.0 - HOUR) {
        return Ok(Some(ClockTrouble::WentBack { last, now }));
    }
    times.retain(|time| believed.is_none_or(|believed| *time >= believed));
    times.push(now);
    times.sort_unstable();
    let gap = times.windows(2).find(|pair| pair[1].0 - pair[0].0 > MOST_DAYS * DAY);
    Ok(gap.map(|pair| ClockTrouble::Jumped { last: pair[0], now: pair[1] }))
}

fn note_clean_up(store: &mut dyn Store, now: Timestamp) -> Result<(), StoreError> {
    loop {
        let head = store.head()?;
        match store.commit(head, &[Write::CleanupTime(now)]) {
            Err(StoreError::Moved) => {}
            done => return done.map(drop),
        }
    }
}

/// Drops what `chosen` returns and what only that needed, and reclaims its space. `noted`: the time of a full
/// clean-up, to be recorded as such.
fn retain(
    workspace: &mut Workspace,
    occasion: Occasion,
    noted: Option<Timestamp>,
    chosen: impl Fn(&dyn Store) -> Result<Drops, StoreError>,
) -> Result<CleanUpReport, CleanUpError> {
    let used = workspace.store.usage()?;
    // Most of the work is done before the lock is taken.
    let with_state = with_state(&*workspace.states)?;
    let mut work = Work::prepare(&*workspace.store, occasion, &chosen, &with_state)?;
    if !work.writes.is_empty() || occasion == Occasion::OnDemand {
        let Some(_lock) = lock_exclusively(workspace)? else { return Err(CleanUpError::Locked) };
        recover_locked(workspace)?;
        drain_inbox(workspace)?;
        loop {
            if workspace.store.head()? != work.head {
                work = Work::prepare(&*workspace.store, occasion, &chosen, &with_state)?;
            }
            settle_index(workspace)?;
            if work.expunges {
                // If this is interrupted, the next command removes the contents from the files.
                purge::note_begun(workspace)?;
            }
            match workspace.store.commit(work.head, &work.writes) {
                Err(StoreError::Moved) => {}
                done => break done.map(drop)?,
            }
        }
    }
    // Also what an earlier clean-up could not reclaim.
    let unreferenced = workspace.store.unreferenced()?;
    let mut given_back = true;
    if !unreferenced.digests.is_empty() {
        match lock_exclusively(workspace)? {
            Some(_lock) => {
                // Contents of an interrupted rewind are referenced only by its plan.
                recover_locked(workspace)?;
                drain_inbox(workspace)?;
                workspace.store.drop_blobs(&unreferenced)?;
            }
            // The points are dropped; their space is reclaimed next time.
            None => given_back = false,
        }
    }
    // In the database they are deleted with the session; in files they are deleted here.
    let states = &*workspace.states;
    let deleted = work.sessions.iter().try_for_each(|id| delete_of_session(states, id));
    let collect = !work.sessions.is_empty() || occasion == Occasion::OnDemand;
    match deleted.and_then(|()| if collect { states.collect() } else { Ok(()) }) {
        // No state was ever saved.
        Err(StateError::Store(StoreError::Missing { .. })) => {}
        collected => collected?,
    }
    workspace.store.compact(CompactEffort::Worthwhile)?;
    if let Some(now) = noted.filter(|_| given_back) {
        note_clean_up(&mut *workspace.store, now)?;
    }
    let left = workspace.store.usage()?;
    Ok(CleanUpReport {
        points: work.points,
        sessions: work.sessions,
        changes: usize::try_from(used.changes.saturating_sub(left.changes)).unwrap_or(usize::MAX),
        freed: (used.packs + used.database).saturating_sub(left.packs + left.database),
        over: None,
        stopped: None,
    })
}

/// Deletes the executions of a session and its saved conversation.
fn delete_of_session(states: &dyn States, id: &SessionId) -> Result<(), StateError> {
    states.delete_of_session(id)?;
    if let Ok(key) = DocumentKey::new(id.0.as_str()) {
        states.delete_document(Category::Session, &key)?;
    }
    Ok(())
}

/// The sessions of executions: an agent's state is deleted only on request.
fn with_state(states: &dyn States) -> Result<HashSet<SessionId>, StateError> {
    match states.executions() {
        // No state was ever saved.
        Err(StateError::Store(StoreError::Missing { .. })) => Ok(HashSet::new()),
        executions => {
            Ok(executions?.executions.into_iter().filter_map(|one| one.session).collect())
        }
    }
}

fn lock_exclusively(workspace: &Workspace) -> Result<Option<Lock>, StoreError> {
    workspace.lock(Hold::Exclusive, workspace.limits.rewind_patience)
}

/// Brings the index up to date with the log, durably: a path that the log forgets must not stay in an
/// outdated index. Removes temporary files that a crash left; the exclusive lock keeps other processes
/// from writing one.
fn settle_index(workspace: &Workspace) -> Result<(), StoreError> {
    let file = workspace.index_file();
    let failed = |source| StoreError::Io { path: file.clone(), doing: "replacing it", source };
    if !file.exists() {
        return Ok(());
    }
    let mut index = Index::load(&file, &*workspace.store)?;
    index.save_durably(&file).map_err(failed)?;
    disk::remove_leftovers(&file).map_err(failed)
}

/// A dropping commit, and the head it was made for.
struct Work {
    head: Head,
    writes: Vec<Write>,
    points: usize,
    sessions: Vec<SessionId>,
    /// Nothing that it drops may stay in the store's files.
    expunges: bool,
}

impl Work {
    fn prepare(
        store: &dyn Store,
        occasion: Occasion,
        chosen: &impl Fn(&dyn Store) -> Result<Drops, StoreError>,
        with_state: &HashSet<SessionId>,
    ) -> Result<Self, StoreError> {
        let head = store.head()?;
        let mut drops = chosen(store)?;
        let mut writes = Vec::new();
        let mut left = None;
        if !drops.is_nothing() || occasion == Occasion::OnDemand {
            let mut changes = store.changes_after(Seq(0))?;
            settle(store, &mut changes)?;
            let renamed = rename_imports(&mut changes, &drops.sessions);
            let erased = drops.and_rewinds_of_sessions(store, &changes)?;
            let kept = drops.kept.iter().map(|point| point.seq).collect();
            let mut folded = erase::fold(&mut changes, &kept, &drops.rewinds, &drops.sessions);
            let mut thinned = thin(&changes, &kept, head.seq);
            drops.add_unnamed_runs(store, &changes, &thinned, with_state)?;
            // Renamed changes first: thinning may replace them again.
            writes.extend(renamed.into_iter().map(Write::ReplaceChange));
            writes.append(&mut folded);
            writes.append(&mut thinned);
            left = erased;
        }
        let points = drops.listed.len();
        writes.extend(drops.points.into_iter().map(Write::DropPoint));
        writes.extend(drops.rewinds.into_iter().map(Write::DropRewind));
        writes.extend(left);
        let turns = drops.turns.into_iter();
        writes.extend(turns.map(|(session, before)| Write::DropTurns { session, before }));
        writes.extend(drops.sessions.iter().cloned().map(Write::DropSession));
        Ok(Self { head, writes, points, sessions: drops.sessions, expunges: drops.expunges })
    }
}

/// Attributes the changes of dropped imported sessions to the import, since no author of this workspace made
/// them. Returns these changes.
fn rename_imports(changes: &mut [Change], sessions: &[SessionId]) -> Vec<Change> {
    let imported: HashSet<&SessionId> =
        sessions.iter().filter(|session| import_of(session).is_some()).collect();
    let mut renamed = Vec::new();
    for change in changes {
        if change.author.sessions().iter().any(|session| imported.contains(session)) {
            change.author = Author::Import;
            renamed.push(change.clone());
        }
    }
    renamed
}
