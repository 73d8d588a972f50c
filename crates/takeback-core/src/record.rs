//! Recording: an event comes in, changes with their authors and perhaps a point go into the log.
//!
//! Each event says what to look at: the paths of an edit, or the whole tree. What differs from the
//! log is appended with the author that [`crate::author::Scene::whose`] names, in one commit with the
//! event's own traces (session, turn, call, point). Several processes record at once: whoever commits
//! second looks again at what both saw. What there is no time for waits in the spool.

mod commit;
mod count;
mod decide;
mod late;
mod meanwhile;
mod rest;
mod sight;
mod trust;
mod unseen;

use std::path::PathBuf;

use takeback_store::{
    Call, CallKind, CallState, Lack, PointId, PointKind, Seq, SessionId, StoreError, Timestamp,
    TurnId, WorkPath,
};

use self::commit::commit;
pub use self::decide::describe;
use self::decide::{Decision, NewPoint, decide};
pub(crate) use self::late::drain_spool;
use self::late::{drain_within, spool};
pub use self::meanwhile::{Put, record_deferred, record_or_defer, wait_for_deferred};
pub use self::rest::{left_to_read, look_at_rest};
use self::sight::Sight;
use self::trust::Writers;
use crate::deferred::Whose;
use crate::ends::{LearnedEnd, learn_ends};
use crate::event::{AgentEvent, Touches};
use crate::exchange::imported::import_of;
use crate::going_on;
use crate::lock::{Hold, Patience};
use crate::marks::is_called;
use crate::spool::{self, Spooled};
use crate::workspace::Workspace;
use crate::worktree::budget::Budget;
use crate::worktree::scan::{ScanError, ScanStats};
pub use crate::worktree::scan::{Unreadable, UnreadableKind};
use crate::worktree::scope::OutReason;

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The head of the log after it.
    pub seq: Seq,
    /// The point it made, or the one that stands for it: a step that found nothing new, a prompt told
    /// twice.
    pub point: Option<PointId>,
    /// Changes appended with it.
    pub changes: usize,
    /// What stood there and could not be kept.
    pub not_captured: Vec<(WorkPath, Lack)>,
    /// It could not be recorded in time: the event waits in the spool.
    pub spooled: bool,
    /// There was no time to look at everything.
    pub unfinished: bool,
    /// What a look at the tree could not read, by path. What is known there is not captured, whether
    /// this event found that out or an earlier one.
    pub unreadable: Vec<Unreadable>,
    pub stats: ScanStats,
}

#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error("the spool of waiting events in {path} cannot be used")]
    Spool { path: PathBuf, source: std::io::Error },
    #[error("another command has the workspace locked")]
    Locked,
    #[error("the label {label:?} is taken by point {point}")]
    LabelTaken { label: String, point: PointId },
}

impl RecordError {
    /// Whether the event can be recorded later: somebody is in the way, or there was no time.
    fn can_wait(&self) -> bool {
        matches!(
            self,
            Self::Locked | Self::Store(StoreError::Busy { .. }) | Self::Scan(ScanError::OutOfTime)
        )
    }
}

/// Records an event. What it answers is durable.
///
/// An agent is not kept waiting for others longer than `recorder_patience`, nor for a scan longer
/// than `scan_budget` and its overrun, nor for one that its session has under way longer than
/// `barrier_patience`: then the event waits in the spool, and whoever records it knows that nobody looked
/// when it happened.
///
/// A session that calls itself an import is recorded as `agent-…`.
pub fn record(workspace: &mut Workspace, event: &AgentEvent) -> Result<Recorded, RecordError> {
    let name = event.session();
    let recorded_as = recorded_as(name);
    if recorded_as != *name {
        return record(workspace, &event.clone().renamed(recorded_as));
    }
    let time = (workspace.ambient.now)();
    let recorded = record_now(workspace, event, time);
    workspace.store.set_patience(None)?;
    match recorded {
        Err(error) if error.can_wait() => {
            let unfinished = matches!(error, RecordError::Scan(ScanError::OutOfTime));
            if unfinished {
                want_the_rest(workspace)?;
            }
            let recorded = spool(workspace, Spooled { time, event: event.clone() })?;
            Ok(Recorded { unfinished, ..recorded })
        }
        recorded => recorded,
    }
}

/// Leaves word for whoever has the time to read what is left.
fn want_the_rest(workspace: &Workspace) -> Result<(), RecordError> {
    let path = &workspace.store_dir;
    going_on::want(path).map_err(|source| RecordError::Spool { path: path.clone(), source })
}

/// The name of a session in the log: what an imported session did, nobody here did, and no agent may
/// hide behind that.
pub(crate) fn recorded_as(session: &SessionId) -> SessionId {
    match import_of(session) {
        Some(_) => SessionId(format!("agent-{session}")),
        None => session.clone(),
    }
}

fn record_now(
    workspace: &mut Workspace,
    event: &AgentEvent,
    time: Timestamp,
) -> Result<Recorded, RecordError> {
    pass_barrier(workspace, event)?;
    let patience = Patience::starting_now(workspace.limits.recorder_patience);
    let Some(_lock) = workspace.lock_only(Hold::Shared, patience.left())? else {
        return Err(RecordError::Locked);
    };
    let budget = budget(workspace)?;
    workspace.store.set_patience(Some(patience.left_for_a_commit()))?;
    drain_within(workspace, patience.left(), budget)?;
    workspace.store.set_patience(Some(patience.left_for_a_commit()))?;
    record_at(workspace, event, time, Punctuality::OnTime, budget)
}

/// For an event that comes in now. Of a tree that nobody has seen every name becomes a change: to write
/// them takes as long as to find them, and there is somebody to read what is left.
fn budget(workspace: &Workspace) -> Result<Budget, StoreError> {
    let budget = workspace.limits.budget();
    Ok(match workspace.store.last_scan()? {
        Some(_) => budget,
        None => workspace.limits.first_budget(),
    })
}

/// Waits for what must be recorded before this event: what its session has told, and everything if
/// there are events in the spool, which may be of any session.
fn pass_barrier(workspace: &Workspace, event: &AgentEvent) -> Result<(), RecordError> {
    let whose =
        if is_spool_empty(workspace)? { Whose::Of(event.session()) } else { Whose::Everybodys };
    match workspace.is_past(whose, workspace.limits.barrier_patience)? {
        true => Ok(()),
        false => Err(RecordError::Locked),
    }
}

fn is_spool_empty(workspace: &Workspace) -> Result<bool, RecordError> {
    let path = &workspace.store_dir;
    spool::is_empty(path).map_err(|source| RecordError::Spool { path: path.clone(), source })
}

/// Scans the tree and records what nobody announced.
pub fn look_around(workspace: &mut Workspace) -> Result<Surveyed, RecordError> {
    let Some(_lock) = workspace.lock(Hold::Shared, workspace.limits.rewind_patience)? else {
        return Err(RecordError::Locked);
    };
    drain_spool(workspace)?;
    survey(workspace)
}

/// Scans the tree after events of `sessions` that could not be recorded: what is found may be theirs, and
/// how it came about is not known.
pub fn look_for_missed(
    workspace: &mut Workspace,
    sessions: &[SessionId],
) -> Result<Recorded, RecordError> {
    let patience = workspace.limits.recorder_patience;
    let Some(_lock) = workspace.lock_only(Hold::Shared, patience)? else {
        return Err(RecordError::Locked);
    };
    drain_spool(workspace)?;
    let time = (workspace.ambient.now)();
    let ends = learn_ends(workspace, &workspace.store.live_calls()?)?;
    let sight = Sight::of_tree(workspace, workspace.limits.budget(), Writers::Unseen)?;
    commit(workspace, sight, &ends, |now| {
        let mut scene = now.scene.clone();
        sessions.iter().for_each(|session| scene.may_have_written(session));
        Ok(Decision { scanned: Some(time), scene: Some(scene), ..Decision::at(time) })
    })
}

/// What a scan without an event found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surveyed {
    pub recorded: Recorded,
    pub skipped: Vec<(WorkPath, OutReason)>,
}

/// [`look_around`] for a caller that holds the lock.
pub(crate) fn survey(workspace: &mut Workspace) -> Result<Surveyed, RecordError> {
    let time = (workspace.ambient.now)();
    let ends = learn_ends(workspace, &workspace.store.live_calls()?)?;
    let sight = Sight::of_whole_tree(workspace, Budget::UNLIMITED)?;
    let skipped = sight.skipped();
    let recorded = commit(workspace, sight, &ends, |_| {
        Ok(Decision { scanned: Some(time), ..Decision::at(time) })
    })?;
    Ok(Surveyed { recorded, skipped })
}

/// Looks at these paths only and records what differs, for a caller that holds the lock.
pub(crate) fn look_at_paths(
    workspace: &mut Workspace,
    paths: &[WorkPath],
) -> Result<Recorded, RecordError> {
    let time = (workspace.ambient.now)();
    let sight = Sight::of_paths(workspace, paths, None)?;
    commit(workspace, sight, &[], |_| Ok(Decision::at(time)))
}

/// Makes a point by hand: the tree as it is now, for all agents.
pub fn checkpoint(workspace: &mut Workspace, label: Option<&str>) -> Result<Recorded, RecordError> {
    let Some(_lock) = workspace.lock(Hold::Shared, workspace.limits.rewind_patience)? else {
        return Err(RecordError::Locked);
    };
    drain_spool(workspace)?;
    let time = (workspace.ambient.now)();
    let ends = learn_ends(workspace, &workspace.store.live_calls()?)?;
    let sight = Sight::of_tree(workspace, Budget::UNLIMITED, Writers::Live)?;
    let point = NewPoint {
        id: PointId((workspace.ambient.random)()),
        kind: PointKind::Manual,
        session: None,
        description: label.unwrap_or_default().to_owned(),
        label: label.map(str::to_owned),
        message: None,
    };
    commit(workspace, sight, &ends, |now| {
        let points = now.store.points()?;
        let taken = points.iter().find(|point| label.is_some_and(|label| is_called(point, label)));
        if let (Some(taken), Some(label)) = (taken, label) {
            return Err(RecordError::LabelTaken { label: label.to_owned(), point: taken.id });
        }
        Ok(Decision { scanned: Some(time), point: Some(point.clone()), ..Decision::at(time) })
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Punctuality {
    OnTime,
    /// Its session waits until it is recorded, unless the spool says that it could not wait so long.
    Deferred,
    /// It waited in the spool: what stood before an edit was not read, and is not to be had now.
    Late,
}

fn record_at(
    workspace: &mut Workspace,
    event: &AgentEvent,
    time: Timestamp,
    punctuality: Punctuality,
    budget: Budget,
) -> Result<Recorded, RecordError> {
    let session = event.session();
    let OwnCalls { open, ends, mut named, mut anything } = OwnCalls::of(workspace, event)?;
    let mut names = Vec::new();
    if let AgentEvent::BeforeTool {
        touches: Touches::Paths(paths) | Touches::Anything { paths, .. },
        ..
    } = event
    {
        names = resolved(workspace, paths);
        add_missing_folders(workspace, &mut names);
    }
    let writers = match event {
        AgentEvent::AfterTool { .. } => Writers::Unseen,
        _ if punctuality == Punctuality::Late => Writers::Unseen,
        _ => Writers::Live,
    };
    let limit = Some(workspace.limits.edit_capture_max);
    let new: Vec<WorkPath> = names.iter().filter(|path| !named.contains(path)).cloned().collect();
    let sight = match event {
        AgentEvent::BeforeTool { touches: Touches::Nothing, .. } => {
            let seq = workspace.store.head()?.seq;
            return Ok(Recorded::nothing(seq));
        }
        AgentEvent::SessionStart { .. } if named.is_empty() && !anything => {
            Sight::of_nothing(workspace)?
        }
        AgentEvent::BeforeTool { touches: Touches::Paths(_), .. } => {
            let sight = match punctuality {
                Punctuality::Late => Sight::of_missed(workspace, &names)?,
                _ if anything => {
                    Sight::of_tree(workspace, budget, writers)?.and_paths(workspace, &new, limit)?
                }
                _ => Sight::of_paths(workspace, &new, limit)?,
            };
            sight.and_paths(workspace, &named, None)?
        }
        AgentEvent::BeforeTool { touches: Touches::Anything { .. }, .. } => {
            let sight = Sight::of_tree(workspace, budget, writers)?;
            let sight = match punctuality {
                Punctuality::Late => sight.and_missed(workspace, &new)?,
                _ => sight.and_paths(workspace, &new, limit)?,
            };
            sight.and_paths(workspace, &named, None)?
        }
        AgentEvent::AfterTool { call, .. } => {
            let kind = workspace.store.call(session, call)?.map(|call| call.kind);
            anything |= may_write_anything(kind.as_ref());
            named.extend(kind.iter().flat_map(|kind| kind.paths().iter().cloned()));
            let sight = if anything {
                Sight::of_tree(workspace, budget, writers)?
            } else {
                Sight::of_nothing(workspace)?
            };
            sight.and_paths(workspace, &named, None)?
        }
        AgentEvent::SessionStart { .. }
        | AgentEvent::Prompt { .. }
        | AgentEvent::Step { .. }
        | AgentEvent::TurnEnd { .. }
        | AgentEvent::SessionEnd { .. } => {
            Sight::of_tree(workspace, budget, writers)?.and_paths(workspace, &named, None)?
        }
    };
    let new_turn = TurnId((workspace.ambient.random)());
    let new_point = PointId((workspace.ambient.random)());
    let scanned = sight.index.is_some().then_some(time);
    // Asked when everything has been looked at: whoever could not wait wrote into the spool first.
    let is_late = match punctuality {
        Punctuality::OnTime => false,
        Punctuality::Deferred => meanwhile::has_gone_on(workspace, session)?,
        Punctuality::Late => true,
    };
    commit(workspace, sight, &ends, |now| {
        let mut decision = decide(event, now, new_turn, new_point, &names, time)?;
        decision.scanned = scanned;
        if let Some(scene) = &mut decision.scene {
            scene.were_open(&open);
        }
        if is_late {
            decision.come_late(event);
        }
        Ok(decision)
    })
}

/// What a session has under way when an event of it comes in.
struct OwnCalls {
    open: Vec<Call>,
    /// Of those whose end no event reported.
    ends: Vec<LearnedEnd>,
    /// What its calls have named, which a scan may pass over: the event may be all that is ever heard
    /// of their end.
    named: Vec<WorkPath>,
    /// Whether one of them may have written anything.
    anything: bool,
}

impl OwnCalls {
    fn of(workspace: &Workspace, event: &AgentEvent) -> Result<Self, StoreError> {
        let calls = workspace.store.live_calls()?.into_iter();
        let calls: Vec<Call> = calls.filter(|call| call.session == *event.session()).collect();
        let ends = learn_ends(workspace, &unended(&calls, event))?;
        // The end of an overtaken call is still to come when others begin and end.
        let others_go_on =
            matches!(event, AgentEvent::BeforeTool { .. } | AgentEvent::AfterTool { .. });
        let mut named = Vec::new();
        let mut anything = false;
        for call in &calls {
            let has_ended = ends.iter().any(|end| end.is_of(call));
            if others_go_on && call.state == CallState::Overtaken && !has_ended {
                continue;
            }
            let is_shell = matches!(call.kind, CallKind::Shell { .. });
            anything |= is_shell && call.state != CallState::Background;
            named.extend_from_slice(call.kind.paths());
        }
        let open = calls.into_iter().filter(|call| call.state == CallState::Open).collect();
        Ok(Self { open, ends, named, anything })
    }
}

/// The calls whose end this event does not report. What runs in the background is asked for only where
/// an agent pauses: to look at all processes takes a while.
fn unended(calls: &[Call], event: &AgentEvent) -> Vec<Call> {
    let own = match event {
        AgentEvent::BeforeTool { call, .. } | AgentEvent::AfterTool { call, .. } => Some(call),
        _ => None,
    };
    let pauses = matches!(event, AgentEvent::Prompt { .. } | AgentEvent::SessionStart { .. });
    let is_asked_for = |call: &&Call| match call.state {
        CallState::Open | CallState::Overtaken => Some(&call.id) != own,
        CallState::Background => pauses,
        _ => false,
    };
    calls.iter().filter(is_asked_for).cloned().collect()
}

/// A call that nobody knows may have.
fn may_write_anything(kind: Option<&CallKind>) -> bool {
    !matches!(kind, Some(CallKind::Edit { .. }))
}

impl Recorded {
    fn nothing(seq: Seq) -> Self {
        Self {
            seq,
            point: None,
            changes: 0,
            not_captured: Vec::new(),
            spooled: false,
            unfinished: false,
            unreadable: Vec::new(),
            stats: ScanStats::default(),
        }
    }
}

fn resolved(workspace: &Workspace, paths: &[PathBuf]) -> Vec<WorkPath> {
    let mut resolved: Vec<_> = paths.iter().filter_map(|path| workspace.resolve(path)).collect();
    resolved.sort();
    resolved.dedup();
    resolved
}

/// An edit of `new/folder/file` makes the folders too: they are as much its work as the file.
fn add_missing_folders(workspace: &Workspace, paths: &mut Vec<WorkPath>) {
    let missing: Vec<WorkPath> = paths
        .iter()
        .flat_map(WorkPath::ancestors)
        .filter(|folder| !workspace.absolute(folder).exists())
        .collect();
    paths.extend(missing);
    paths.sort();
    paths.dedup();
}
