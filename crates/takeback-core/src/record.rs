//! Recording: an event comes in, changes with their authors and perhaps a point go into the log.
//!
//! Each event says what to look at: the paths of an edit, or the whole tree. What differs from the
//! log is appended with the author that [`Scene::whose`] names, in one commit with the event's own
//! traces (session, turn, call, point). Several processes record at once: whoever commits second
//! looks again at what both saw.

mod decide;
mod sight;

use std::path::PathBuf;
use std::time::Duration;

use takeback_store::{
    Author, Call, CallKind, CallState, Change, Entry, Evidence, Head, Lack, Point, PointId,
    PointKind, Seq, SessionId, StoreError, Timestamp, TurnId, WorkPath, Write,
};

pub use self::decide::describe;
use self::decide::{Decision, NewPoint, Now, PointAt, decide};
use self::sight::Sight;
use crate::author::Scene;
use crate::event::{AgentEvent, Touches};
use crate::exchange::imported::import_of;
use crate::git_state::git_state;
use crate::lock::{Hold, Patience};
use crate::spool::{self, Spooled};
use crate::workspace::Workspace;
use crate::worktree::budget::Budget;
use crate::worktree::scan::{ScanError, ScanStats};
use crate::worktree::scope::OutReason;

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The head of the log after it.
    pub seq: Seq,
    /// The point it made, or, for a step, the one that stands for it.
    pub point: Option<PointId>,
    /// Changes appended with it.
    pub changes: usize,
    /// What stood there and could not be kept.
    pub not_captured: Vec<(WorkPath, Lack)>,
    /// It could not be recorded in time: the event waits in the spool.
    pub spooled: bool,
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
/// than `scan_budget` and its overrun: then the event waits in the spool, and whoever records it knows
/// that nobody looked when it happened.
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
        Err(error) if error.can_wait() => spool(workspace, Spooled { time, event: event.clone() }),
        recorded => recorded,
    }
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
    /// What a commit may always wait for another one, which takes milliseconds.
    const LEAST: Duration = Duration::from_millis(50);
    let patience = Patience::starting_now(workspace.limits.recorder_patience);
    let Some(_lock) = workspace.lock(Hold::Shared, patience.left())? else {
        return Err(RecordError::Locked);
    };
    let budget = workspace.limits.budget();
    workspace.store.set_patience(Some(patience.left().max(LEAST)))?;
    drain_within(workspace, patience.left(), budget)?;
    workspace.store.set_patience(Some(patience.left().max(LEAST)))?;
    record_at(workspace, event, time, Punctuality::OnTime, budget)
}

/// Scans the tree and records what nobody announced.
pub fn look_around(workspace: &mut Workspace) -> Result<Surveyed, RecordError> {
    let Some(_lock) = workspace.lock(Hold::Shared, workspace.limits.rewind_patience)? else {
        return Err(RecordError::Locked);
    };
    drain_spool(workspace)?;
    survey(workspace)
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
    let mut sight = Sight::of_tree(workspace, Budget::UNLIMITED)?;
    let skipped = std::mem::take(&mut sight.skipped);
    let recorded =
        commit(workspace, sight, |_| Ok(Decision { scanned: Some(time), ..Decision::at(time) }))?;
    Ok(Surveyed { recorded, skipped })
}

/// Looks at these paths only and records what differs, for a caller that holds the lock.
pub(crate) fn look_at_paths(
    workspace: &mut Workspace,
    paths: &[WorkPath],
) -> Result<Recorded, RecordError> {
    let time = (workspace.ambient.now)();
    let sight = Sight::of_paths(workspace, paths, None)?;
    commit(workspace, sight, |_| Ok(Decision::at(time)))
}

/// Makes a point by hand: the tree as it is now, for all agents.
pub fn checkpoint(workspace: &mut Workspace, label: Option<&str>) -> Result<Recorded, RecordError> {
    let Some(_lock) = workspace.lock(Hold::Shared, workspace.limits.rewind_patience)? else {
        return Err(RecordError::Locked);
    };
    drain_spool(workspace)?;
    let time = (workspace.ambient.now)();
    let sight = Sight::of_tree(workspace, Budget::UNLIMITED)?;
    let point = NewPoint {
        id: PointId((workspace.ambient.random)()),
        kind: PointKind::Manual,
        session: None,
        description: label.unwrap_or_default().to_owned(),
        label: label.map(str::to_owned),
        message: None,
    };
    commit(workspace, sight, |now| {
        let points = now.store.points()?;
        let taken = points.iter().find(|point| point.label.as_deref() == label);
        if let (Some(taken), Some(label)) = (taken, label) {
            return Err(RecordError::LabelTaken { label: label.to_owned(), point: taken.id });
        }
        Ok(Decision { scanned: Some(time), point: Some(point.clone()), ..Decision::at(time) })
    })
}

fn spool(workspace: &Workspace, spooled: Spooled) -> Result<Recorded, RecordError> {
    spool::push(&workspace.store_dir, &spooled)
        .map_err(|source| RecordError::Spool { path: workspace.store_dir.clone(), source })?;
    let not_captured = match spooled.event {
        AgentEvent::BeforeTool {
            touches: Touches::Paths(paths) | Touches::Anything { paths, .. },
            ..
        } => resolved(workspace, &paths).into_iter().map(|path| (path, Lack::Deadline)).collect(),
        _ => Vec::new(),
    };
    let seq = match workspace.store.head() {
        // The event is kept: that nobody can tell the head just now is no reason to say otherwise.
        Err(StoreError::Busy { .. }) => Seq(0),
        head => head?.seq,
    };
    Ok(Recorded {
        seq,
        point: None,
        changes: 0,
        not_captured,
        spooled: true,
        stats: ScanStats::default(),
    })
}

/// Records what waits in the spool, for a caller that holds the lock.
pub(crate) fn drain_spool(workspace: &mut Workspace) -> Result<usize, RecordError> {
    drain_within(workspace, workspace.limits.rewind_patience, Budget::UNLIMITED)
}

/// As [`drain_spool`], for an agent that waits: what there is no time for stays in the spool.
fn drain_within(
    workspace: &mut Workspace,
    patience: Duration,
    budget: Budget,
) -> Result<usize, RecordError> {
    enum Failed {
        Spool(std::io::Error),
        Record(RecordError),
    }
    impl From<std::io::Error> for Failed {
        fn from(error: std::io::Error) -> Self {
            Self::Spool(error)
        }
    }
    let path = workspace.store_dir.clone();
    let drained =
        spool::drain(&path, patience, |spooled| match record_late(workspace, &spooled, budget) {
            Ok(()) => Ok(()),
            Err(error) => Err(Failed::Record(error)),
        });
    match drained {
        Ok(drained) => drained.ok_or(RecordError::Locked),
        Err(Failed::Spool(source)) => Err(RecordError::Spool { path, source }),
        Err(Failed::Record(error)) => Err(error),
    }
}

/// A crash may have kept an event in the spool that is in the log. To record it again does nothing,
/// except where it would make its point a second time.
fn record_late(
    workspace: &mut Workspace,
    spooled: &Spooled,
    budget: Budget,
) -> Result<(), RecordError> {
    let Spooled { time, event } = spooled;
    let described = match event {
        AgentEvent::Prompt { text, .. } => Some((PointKind::Prompt, describe(text))),
        AgentEvent::Step { name, .. } => Some((PointKind::Step, describe(name))),
        _ => None,
    };
    if let Some((kind, description)) = described {
        let is_its = |point: &Point| {
            point.session.as_ref() == Some(event.session())
                && (point.created_at, point.kind) == (*time, kind)
                && point.description == description
        };
        if workspace.store.points()?.iter().any(is_its) {
            return Ok(());
        }
    }
    record_at(workspace, event, *time, Punctuality::Late, budget).map(drop)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Punctuality {
    OnTime,
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
    let calls: Vec<Call> =
        workspace.store.live_calls()?.into_iter().filter(|call| call.session == *session).collect();
    // What these calls have named, which a scan may pass over, and whether one may write anything:
    // the event may be all that is ever heard of their end.
    let mut named = Vec::new();
    let mut anything = false;
    for call in calls {
        let is_shell = matches!(call.kind, CallKind::Shell { .. });
        anything |= is_shell && call.state == CallState::Open;
        named.extend_from_slice(call.kind.paths());
    }
    let mut names = Vec::new();
    if let AgentEvent::BeforeTool {
        touches: Touches::Paths(paths) | Touches::Anything { paths, .. },
        ..
    } = event
    {
        names = resolved(workspace, paths);
        add_missing_folders(workspace, &mut names);
    }
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
                Punctuality::OnTime if anything => {
                    Sight::of_tree(workspace, budget)?.and_paths(workspace, &new, limit)?
                }
                Punctuality::OnTime => Sight::of_paths(workspace, &new, limit)?,
            };
            sight.and_paths(workspace, &named, None)?
        }
        AgentEvent::BeforeTool { touches: Touches::Anything { .. }, .. } => {
            let sight = Sight::of_tree(workspace, budget)?;
            let sight = match punctuality {
                Punctuality::Late => sight.and_missed(workspace, &new)?,
                Punctuality::OnTime => sight.and_paths(workspace, &new, limit)?,
            };
            sight.and_paths(workspace, &named, None)?
        }
        AgentEvent::AfterTool { call, .. } => {
            let kind = workspace.store.call(session, call)?.map(|call| call.kind);
            anything |= !matches!(kind, Some(CallKind::Edit { .. }));
            named.extend(kind.iter().flat_map(|kind| kind.paths().iter().cloned()));
            let sight = if anything {
                Sight::of_tree(workspace, budget)?
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
            Sight::of_tree(workspace, budget)?.and_paths(workspace, &named, None)?
        }
    };
    let new_turn = TurnId((workspace.ambient.random)());
    let new_point = PointId((workspace.ambient.random)());
    let scanned = sight.index.is_some().then_some(time);
    commit(workspace, sight, |now| {
        let mut decision = decide(event, now, new_turn, new_point, &names, time)?;
        decision.scanned = scanned;
        if punctuality == Punctuality::Late {
            decision.come_late(event);
        }
        Ok(decision)
    })
}

impl Recorded {
    fn nothing(seq: Seq) -> Self {
        Self {
            seq,
            point: None,
            changes: 0,
            not_captured: Vec::new(),
            spooled: false,
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

/// Appends what was seen and decided, trying again as long as others come first.
fn commit(
    workspace: &mut Workspace,
    mut sight: Sight,
    mut decide: impl FnMut(&Now) -> Result<Decision, RecordError>,
) -> Result<Recorded, RecordError> {
    loop {
        let head = workspace.store.head()?;
        sight.catch_up(workspace, head)?;
        let now = Now::read(&*workspace.store)?;
        let decision = decide(&now)?;
        let buried = if sight.index.is_some() { now.buried(decision.time) } else { Vec::new() };
        let scene = decision.scene.as_ref().unwrap_or(&now.scene);
        let Authored { changes, filled_in } =
            authored(workspace, &sight, scene, head, decision.time)?;
        let seq = Seq(head.seq.0 + changes.len() as u64);
        let mut recorded = Recorded { stats: sight.stats, ..Recorded::nothing(seq) };
        recorded.changes = changes.len();
        for change in &changes {
            if let Entry::NotCaptured { lack } = change.after {
                recorded.not_captured.push((change.path.clone(), lack));
            }
        }
        let mut writes: Vec<Write> = changes.into_iter().map(Write::Change).collect();
        writes.extend(filled_in.into_iter().map(Write::ReplaceChange));
        writes.extend(buried);
        writes.extend(decision.writes);
        // A step that found everything as at the session's last point needs none of its own.
        let standing = match &decision.point {
            Some(point) if point.kind == PointKind::Step => now.point_at(seq, &point.session)?,
            _ => None,
        };
        recorded.point = standing;
        if let Some(point) = decision.point.filter(|_| standing.is_none()) {
            recorded.point = Some(point.id);
            writes.push(Write::Point(Point {
                id: point.id,
                seq: match decision.point_at {
                    PointAt::BeforeWhatWasSeen => head.seq,
                    PointAt::AfterWhatWasSeen => seq,
                },
                session: point.session,
                kind: point.kind,
                description: point.description,
                label: point.label,
                pinned: false,
                created_at: decision.time,
                message_ids: point.message.into_iter().collect(),
                git: git_state(workspace.root.path()),
            }));
        }
        let worth = !writes.is_empty() || workspace.store.last_scan()?.is_none();
        if let Some(scanned) = decision.scanned.filter(|_| worth) {
            writes.push(Write::Scanned(scanned));
        }
        if writes.is_empty() {
            sight.save_index(workspace, head);
            return Ok(recorded);
        }
        match workspace.store.commit(head, &writes) {
            Ok(head) => {
                sight.save_index(workspace, head);
                return Ok(recorded);
            }
            Err(StoreError::Moved) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// What a sight means for the log.
struct Authored {
    changes: Vec<Change>,
    /// Changes of which it is known by now what they left: the file is still the very same, and there
    /// was time to read it.
    filled_in: Vec<Change>,
}

fn authored(
    workspace: &Workspace,
    sight: &Sight,
    scene: &Scene,
    head: Head,
    time: Timestamp,
) -> Result<Authored, StoreError> {
    let mut authored = Authored { changes: Vec::new(), filled_in: Vec::new() };
    let mut seq = head.seq;
    for observed in &sight.found {
        if observed.same_file {
            let path = std::slice::from_ref(&observed.path);
            match workspace.store.latest_of(path)?.pop().flatten() {
                Some(change) if change.after == observed.before => {
                    let after = observed.after.clone();
                    authored.filled_in.push(Change { after, ..change });
                    continue;
                }
                // Somebody else was first.
                Some(change) if change.after == observed.after => continue,
                _ => {}
            }
        }
        let (author, evidence): (Author, Evidence) = scene.whose(&observed.path);
        seq = seq.next();
        authored.changes.push(Change {
            seq,
            path: observed.path.clone(),
            before: observed.before.clone(),
            after: observed.after.clone(),
            author,
            evidence,
            time,
            cancels: Vec::new(),
        });
    }
    Ok(authored)
}
