//! Recording: an event comes in, changes with their authors and perhaps a point go into the log.
//!
//! Each event says what to look at: the paths of an edit, or the whole tree. What differs from the
//! log is appended with the author that [`Scene::whose`] names, in one commit with the event's own
//! traces (session, turn, call, point). Several processes record at once: whoever commits second
//! looks again at what both saw.

use std::collections::{HashMap, HashSet};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use takeback_store::{
    Author, Call, CallKind, CallState, Change, Entry, Evidence, Head, Lack, PackedBlob,
    Point, PointId, PointKind, Seq, Session, SessionId, Store, StoreError, Timestamp, Turn, TurnId,
    WorkPath, Write,
};

use crate::author::Scene;
use crate::event::{AgentEvent, Outcome, Touches};
use crate::git_state::git_state;
use crate::lock::Hold;
use crate::spool::{self, Spooled};
use crate::workspace::Workspace;
use crate::worktree::Root;
use crate::worktree::root::is_no_folder;
use crate::worktree::fingerprint::stat;
use crate::worktree::index::{Index, Known};
use crate::worktree::look::{Bytes, Looked, look};
use crate::worktree::scan::{Observed, ScanError, ScanStats, scan};
use crate::worktree::scope::OutReason;

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The head of the log after it.
    pub seq: Seq,
    /// The point it made.
    pub point: Option<PointId>,
    /// Changes appended with it.
    pub changes: usize,
    /// What stood there and could not be kept.
    pub not_captured: Vec<(WorkPath, Lack)>,
    /// The workspace was locked: the event waits in the spool.
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

/// Records an event. What it answers is durable.
pub fn record(workspace: &mut Workspace, event: &AgentEvent) -> Result<Recorded, RecordError> {
    let time = (workspace.ambient.now)();
    let Some(_lock) = workspace.lock(Hold::Shared, workspace.limits.recorder_patience)? else {
        return spool(workspace, Spooled { time, event: event.clone() });
    };
    drain_spool(workspace)?;
    record_at(workspace, event, time, Punctuality::OnTime)
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
    let mut sight = Sight::of_tree(workspace)?;
    let skipped = std::mem::take(&mut sight.skipped);
    let recorded = commit(workspace, sight, |_| Ok(Decision { scanned: Some(time), ..Decision::at(time) }))?;
    Ok(Surveyed { recorded, skipped })
}

/// Looks at these paths only and records what differs, for a caller that holds the lock.
pub(crate) fn look_at_paths(workspace: &mut Workspace, paths: &[WorkPath]) -> Result<Recorded, RecordError> {
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
    let sight = Sight::of_tree(workspace)?;
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
        AgentEvent::BeforeTool { touches: Touches::Paths(paths), .. } => {
            resolved(workspace, &paths).into_iter().map(|path| (path, Lack::Deadline)).collect()
        }
        _ => Vec::new(),
    };
    Ok(Recorded {
        seq: workspace.store.head()?.seq,
        point: None,
        changes: 0,
        not_captured,
        spooled: true,
        stats: ScanStats::default(),
    })
}

/// Records what waits in the spool, for a caller that holds the lock.
pub(crate) fn drain_spool(workspace: &mut Workspace) -> Result<usize, RecordError> {
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
    spool::drain(&path, |spooled| {
        match record_at(workspace, &spooled.event, spooled.time, Punctuality::Late) {
            Ok(_) => Ok(()),
            Err(error) => Err(Failed::Record(error)),
        }
    })
    .map_err(|failed| match failed {
        Failed::Spool(source) => RecordError::Spool { path: path.clone(), source },
        Failed::Record(error) => error,
    })
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
) -> Result<Recorded, RecordError> {
    let session = event.session();
    let calls: Vec<Call> =
        workspace.store.live_calls()?.into_iter().filter(|call| call.session == *session).collect();
    // What these calls have named, which a scan may pass over, and whether one may write anything:
    // the event may be all that is ever heard of their end.
    let mut named = Vec::new();
    let mut anything = false;
    for call in calls {
        match call.kind {
            CallKind::Edit { paths } => named.extend(paths),
            CallKind::Shell { .. } => anything |= call.state == CallState::Open,
        }
    }
    let mut edit_paths = Vec::new();
    let sight = match event {
        AgentEvent::BeforeTool { touches: Touches::Nothing, .. } => {
            let seq = workspace.store.head()?.seq;
            return Ok(Recorded::nothing(seq));
        }
        AgentEvent::SessionStart { .. } if named.is_empty() && !anything => Sight::of_nothing(workspace)?,
        AgentEvent::BeforeTool { touches: Touches::Paths(paths), .. } => {
            edit_paths = resolved(workspace, paths);
            add_missing_folders(workspace, &mut edit_paths);
            let limit = Some(workspace.limits.edit_capture_max);
            let new: Vec<WorkPath> =
                edit_paths.iter().filter(|path| !named.contains(path)).cloned().collect();
            let sight = match punctuality {
                Punctuality::Late => Sight::of_missed(workspace, &edit_paths)?,
                Punctuality::OnTime if anything => {
                    Sight::of_tree(workspace)?.and_paths(workspace, &new, limit)?
                }
                Punctuality::OnTime => Sight::of_paths(workspace, &new, limit)?,
            };
            sight.and_paths(workspace, &named, None)?
        }
        AgentEvent::AfterTool { call, .. } => {
            let kind = workspace.store.call(session, call)?.map(|call| call.kind);
            match kind {
                Some(CallKind::Edit { paths }) => named.extend(paths),
                Some(CallKind::Shell { .. }) | None => anything = true,
            }
            let sight = if anything { Sight::of_tree(workspace)? } else { Sight::of_nothing(workspace)? };
            sight.and_paths(workspace, &named, None)?
        }
        AgentEvent::SessionStart { .. }
        | AgentEvent::Prompt { .. }
        | AgentEvent::BeforeTool { .. }
        | AgentEvent::TurnEnd { .. }
        | AgentEvent::SessionEnd { .. } => Sight::of_tree(workspace)?.and_paths(workspace, &named, None)?,
    };
    let new_turn = TurnId((workspace.ambient.random)());
    let new_point = PointId((workspace.ambient.random)());
    let scanned = sight.index.is_some().then_some(time);
    commit(workspace, sight, |now| {
        let mut decision = decide(event, now, new_turn, new_point, &edit_paths, time)?;
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

// --- what an event means -----------------------------------------------------------------------

/// Who is there, read afresh for every try of a commit.
struct Now<'s> {
    store: &'s dyn Store,
    sessions: Vec<Session>,
    scene: Scene,
}

#[derive(Clone)]
struct NewPoint {
    id: PointId,
    kind: PointKind,
    session: Option<SessionId>,
    description: String,
    label: Option<String>,
    message: Option<String>,
}

/// What a commit is to hold beside the changes that were seen.
struct Decision {
    time: Timestamp,
    scanned: Option<Timestamp>,
    /// Who might have written what was seen; `None`: as the store tells it.
    scene: Option<Scene>,
    point: Option<NewPoint>,
    point_at: PointAt,
    writes: Vec<Write>,
}

impl Decision {
    fn at(time: Timestamp) -> Self {
        let point_at = PointAt::AfterWhatWasSeen;
        Self { time, scanned: None, scene: None, point: None, point_at, writes: Vec::new() }
    }

    /// Nobody looked when it happened: what is seen now may be what the session has done since.
    fn come_late(&mut self, event: &AgentEvent) {
        self.point_at = PointAt::BeforeWhatWasSeen;
        let opens = matches!(event, AgentEvent::Prompt { .. } | AgentEvent::BeforeTool { .. });
        if let Some(scene) = self.scene.as_mut().filter(|_| opens) {
            scene.may_have_written(event.session());
        }
    }
}

/// Where a new point stands in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PointAt {
    BeforeWhatWasSeen,
    AfterWhatWasSeen,
}

fn decide(
    event: &AgentEvent,
    now: &Now<'_>,
    new_turn: TurnId,
    new_point: PointId,
    edit_paths: &[WorkPath],
    time: Timestamp,
) -> Result<Decision, StoreError> {
    let id = event.session();
    let mut decision = Decision::at(time);
    let mut scene = now.scene.clone();
    let known = now.sessions.iter().find(|session| session.id == *id);
    let mut session = known.cloned().unwrap_or_else(|| Session {
        id: id.clone(),
        agent: None,
        parent: None,
        owner: None,
        started_at: time,
        ended_at: None,
        archived_at: None,
        open_turn: None,
    });
    session.ended_at = None;
    let turn = match session.open_turn {
        Some(turn) => now.store.turn(turn)?,
        None => None,
    };
    let mut close = |call: &Call, state: CallState| {
        decision.writes.push(Write::Call(Call { state, closed_at: Some(time), ..call.clone() }));
    };
    // Whatever comes next from a session, calls of which nobody told the end are over. A prompt or
    // a new start says that they were cut off; after anything else they count as having run so far.
    for call in now.scene.calls.iter().filter(|call| call.session == *id) {
        let same = matches!(event, AgentEvent::AfterTool { call: ended, .. } if *ended == call.id);
        let background = call.state == CallState::Background;
        match event {
            AgentEvent::Prompt { .. } | AgentEvent::SessionStart { .. } if !background => {
                scene.cut_off.insert((call.session.clone(), call.id.clone()));
                close(call, CallState::CutOff);
            }
            AgentEvent::SessionEnd { .. } => close(call, CallState::CutOff),
            AgentEvent::BeforeTool { .. } | AgentEvent::TurnEnd { .. } if !background => {
                close(call, CallState::CutOff);
            }
            AgentEvent::AfterTool { .. } if !background && !same => close(call, CallState::CutOff),
            _ => {}
        }
    }
    let new_turn_of = |prompt: &str, message: Option<&String>| Turn {
        id: new_turn,
        session: id.clone(),
        message: message.cloned(),
        prompt: prompt.to_owned(),
        opened_at: time,
        closed_at: None,
    };
    let close_turn = |session: &mut Session, writes: &mut Vec<Write>| {
        session.open_turn = None;
        if let Some(turn) = &turn {
            writes.push(Write::Turn(Turn { closed_at: Some(time), ..turn.clone() }));
        }
    };
    let prompt_point = |description: String, message: Option<String>| NewPoint {
        id: new_point,
        kind: PointKind::Prompt,
        session: Some(id.clone()),
        description,
        label: None,
        message,
    };
    let mut call = None;
    match event {
        AgentEvent::SessionStart { agent, parent, owner, .. } => {
            session.agent = agent.clone().or(session.agent);
            session.parent = parent.clone().or(session.parent);
            session.owner = owner.or(session.owner);
        }
        AgentEvent::Prompt { message, text, .. } => {
            close_turn(&mut session, &mut decision.writes);
            session.open_turn = Some(new_turn);
            decision.writes.push(Write::Turn(new_turn_of(text, message.as_ref())));
            decision.point = Some(prompt_point(describe(text), message.clone()));
        }
        AgentEvent::BeforeTool { call: call_id, tool, touches, .. } => {
            if session.open_turn.is_none() {
                session.open_turn = Some(new_turn);
                decision.writes.push(Write::Turn(new_turn_of("", None)));
                decision.point = Some(prompt_point(String::new(), None));
            }
            let kind = match touches {
                Touches::Paths(_) => CallKind::Edit { paths: edit_paths.to_vec() },
                Touches::Anything { command } => CallKind::Shell { command: command.clone() },
                Touches::Nothing => CallKind::Edit { paths: Vec::new() },
            };
            call = Some(Call {
                session: id.clone(),
                id: call_id.clone(),
                turn: session.open_turn.unwrap_or(new_turn),
                tool: tool.clone(),
                kind,
                state: CallState::Open,
                opened_at: time,
                closed_at: None,
            });
        }
        AgentEvent::AfterTool { call: call_id, outcome, .. } => {
            match now.store.call(id, call_id)? {
                Some(ending) => {
                    let state = match outcome {
                        Outcome::Done => CallState::Done,
                        Outcome::Failed => CallState::Failed,
                        Outcome::Background => CallState::Background,
                    };
                    // One that was given up for lost ran after all.
                    scene.calls.retain(|c| (&c.session, &c.id) != (id, call_id));
                    scene.calls.push(Call { state: CallState::Open, ..ending.clone() });
                    let closed_at = (!state.may_write()).then_some(time);
                    call = Some(Call { state, closed_at, ..ending });
                }
                // Nobody told when it began.
                None => scene.may_have_written(id),
            }
        }
        AgentEvent::TurnEnd { .. } => close_turn(&mut session, &mut decision.writes),
        AgentEvent::SessionEnd { .. } => {
            close_turn(&mut session, &mut decision.writes);
            session.ended_at = Some(time);
        }
    }
    // The store wants a session before its turns, and a turn before its calls.
    decision.writes.insert(0, Write::Session(session));
    decision.writes.extend(call.map(Write::Call));
    decision.scene = Some(scene);
    Ok(decision)
}

/// The first 80 characters of a prompt, on one line.
#[must_use]
pub fn describe(prompt: &str) -> String {
    const MOST: usize = 80;
    prompt.trim().replace("\r\n", " ").replace(['\n', '\r'], " ").chars().take(MOST).collect()
}

// --- what was seen ------------------------------------------------------------------------------

/// What a look at the tree or at some paths showed, against a moment of the log.
struct Sight {
    /// The log as it was when the look began.
    base: Seq,
    found: Vec<Observed>,
    /// After a scan of the whole tree.
    index: Option<Index>,
    /// The index that was read from disk, to tell whether it must be written.
    was_stamped: Seq,
    skipped: Vec<(WorkPath, OutReason)>,
    stats: ScanStats,
}

impl Sight {
    fn of_nothing(workspace: &Workspace) -> Result<Self, RecordError> {
        let base = workspace.store.head()?.seq;
        Ok(Self {
            base,
            found: Vec::new(),
            index: None,
            was_stamped: base,
            skipped: Vec::new(),
            stats: ScanStats::default(),
        })
    }

    fn of_tree(workspace: &mut Workspace) -> Result<Self, RecordError> {
        let index = Index::load(&workspace.index_file(), &*workspace.store)?;
        let store = &mut workspace.store;
        let mut failed = None;
        let mut keep = |blob: PackedBlob| {
            if failed.is_none() {
                failed = store.put(blob).err();
            }
        };
        let scan = scan(&workspace.root, &index, &workspace.scope, workspace.limits.threads, &mut keep)?;
        if let Some(error) = failed {
            return Err(error.into());
        }
        Ok(Self {
            base: index.stamp,
            found: scan.found,
            was_stamped: if scan.index_changed { Seq(u64::MAX) } else { index.stamp },
            index: Some(scan.index),
            skipped: scan.skipped,
            stats: scan.stats,
        })
    }

    /// `limit`: larger files are not copied, unless the store has them already.
    fn of_paths(workspace: &mut Workspace, paths: &[WorkPath], limit: Option<u64>) -> Result<Self, RecordError> {
        Self::of_paths_since(&mut LastScan::default(), workspace, paths, limit)
    }

    fn of_paths_since(
        scan: &mut LastScan<'_>,
        workspace: &mut Workspace,
        paths: &[WorkPath],
        limit: Option<u64>,
    ) -> Result<Self, RecordError> {
        let mut sight = Self::of_nothing(workspace)?;
        let latest = workspace.store.latest_of(paths)?;
        for (path, latest) in paths.iter().zip(latest) {
            let looked = match limit {
                Some(limit) => look_within(workspace, path, limit, latest.as_ref(), scan)?,
                None => look_here(workspace, path, latest.as_ref())?,
            };
            let before = match latest {
                Some(change) => change.after,
                None => {
                    if scan.index(workspace)?.proves_absent(path) { Entry::Absent } else { Entry::Unknown }
                }
            };
            if before != looked {
                sight.found.push(Observed {
                    path: path.clone(),
                    before,
                    after: looked,
                    same_file: false,
                });
            }
        }
        Ok(sight)
    }

    /// What an edit overwrote before anybody could look.
    fn of_missed(workspace: &Workspace, paths: &[WorkPath]) -> Result<Self, RecordError> {
        let mut sight = Self::of_nothing(workspace)?;
        let latest = workspace.store.latest_of(paths)?;
        for (path, latest) in paths.iter().zip(latest) {
            sight.found.push(Observed {
                path: path.clone(),
                before: latest.map_or(Entry::Unknown, |change| change.after),
                after: Entry::NotCaptured { lack: Lack::Deadline },
                same_file: false,
            });
        }
        Ok(sight)
    }

    /// Also looks at paths that a scan may pass over.
    fn and_paths(
        mut self,
        workspace: &mut Workspace,
        paths: &[WorkPath],
        limit: Option<u64>,
    ) -> Result<Self, RecordError> {
        let seen: HashSet<&WorkPath> = self.found.iter().map(|observed| &observed.path).collect();
        let mut rest: Vec<WorkPath> =
            paths.iter().filter(|path| !seen.contains(path)).cloned().collect();
        rest.sort();
        rest.dedup();
        let mut scan = LastScan { made: self.index.as_ref(), loaded: None };
        let more = Self::of_paths_since(&mut scan, workspace, &rest, limit)?.found;
        if let Some(index) = &mut self.index {
            more.iter().for_each(|observed| index.set(&observed.path, &observed.after));
        }
        self.found.extend(more);
        Ok(self)
    }

    /// Moves the sight on to what others appended meanwhile: a path that both saw is looked at
    /// again, since only now is it certain which look came last.
    fn catch_up(&mut self, workspace: &mut Workspace, head: Head) -> Result<(), RecordError> {
        if head.seq == self.base {
            return Ok(());
        }
        let others = workspace.store.changes_after(self.base)?;
        if let Some(index) = &mut self.index {
            index.catch_up(&others);
        }
        let newest: HashMap<&WorkPath, &Change> = others.iter().map(|c| (&c.path, c)).collect();
        for observed in &mut self.found {
            if let Some(change) = newest.get(&observed.path) {
                observed.after = look_here(workspace, &observed.path, Some(change))?;
                observed.before = change.after.clone();
                observed.same_file = false;
                if let Some(index) = &mut self.index {
                    index.set(&observed.path, &observed.after);
                }
            }
        }
        self.found.retain(|observed| observed.before != observed.after);
        self.base = head.seq;
        Ok(())
    }

    /// Caches the index, now that the log holds what it shows.
    fn save_index(self, workspace: &Workspace, head: Head) {
        let Some(mut index) = self.index else { return };
        index.stamp = head.seq;
        if self.was_stamped != head.seq {
            // Only a cache: without it the next scan takes longer, and says so if the disk is full.
            drop(index.save(&workspace.index_file()));
        }
    }
}

/// What the last scan saw: the one just made, or the one on disk, read when it is first needed.
#[derive(Default)]
struct LastScan<'a> {
    made: Option<&'a Index>,
    loaded: Option<Index>,
}

impl LastScan<'_> {
    fn index(&mut self, workspace: &Workspace) -> Result<&Index, StoreError> {
        match self.made {
            Some(index) => Ok(index),
            None => Ok(match self.loaded.take() {
                Some(index) => self.loaded.insert(index),
                None => self.loaded.insert(Index::load(&workspace.index_file(), &*workspace.store)?),
            }),
        }
    }
}

/// Looks at a path and keeps its bytes, whatever their size.
fn look_here(workspace: &mut Workspace, path: &WorkPath, latest: Option<&Change>) -> Result<Entry, RecordError> {
    let known = latest.and_then(|change| change.after.digest());
    let store = &mut workspace.store;
    let mut failed = None;
    let mut keep = |blob: PackedBlob| {
        if failed.is_none() {
            failed = store.put(blob).err();
        }
    };
    let bytes = Bytes::Keep { known, sink: &mut keep };
    let looked = look_in_tree(&workspace.root, path, bytes)?;
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(looked.entry),
    }
}

/// As [`look_here`], but a file above `limit` is only checked against the last scan.
fn look_within(
    workspace: &mut Workspace,
    path: &WorkPath,
    limit: u64,
    latest: Option<&Change>,
    scan: &mut LastScan<'_>,
) -> Result<Entry, RecordError> {
    let failed = |source| ScanError { path: path.display(), source };
    let seen = match folder_of(&workspace.root, path) {
        Ok(folder) => stat(folder, path.file_name()).map_err(failed)?,
        Err(_) => None,
    };
    let large = seen.filter(|seen| {
        seen.kind == rustix::fs::FileType::RegularFile && seen.fingerprint.size > limit
    });
    let Some(seen) = large else { return look_here(workspace, path, latest) };
    let known = match scan.index(workspace)?.known(path) {
        Some(Known::Entry { entry, fingerprint: Some(fingerprint), .. }) => Some((entry, fingerprint)),
        _ => None,
    };
    let kept = latest.and_then(|change| match change.after {
        Entry::File { digest, size, .. } if size == seen.fingerprint.size => Some(digest),
        _ => None,
    });
    match (known, kept) {
        (Some((entry, fingerprint)), _) if *fingerprint == seen.fingerprint => Ok(entry.clone()),
        // Its bytes were kept after the last scan: only reading it tells whether it still has them.
        (None, Some(kept)) => {
            let looked = look_in_tree(&workspace.root, path, Bytes::Hash)?.entry;
            let same = looked.digest() == Some(kept);
            Ok(if same { looked } else { Entry::NotCaptured { lack: Lack::TooLarge } })
        }
        _ => Ok(Entry::NotCaptured { lack: Lack::TooLarge }),
    }
}

/// Looks at a path inside or outside the workspace.
pub(crate) fn look_in_tree(root: &Root, path: &WorkPath, mut bytes: Bytes<'_>) -> Result<Looked, ScanError> {
    match folder_of(root, path) {
        Ok(folder) => look(folder, path.file_name(), &mut bytes)
            .map_err(|source| ScanError { path: path.display(), source }),
        // No such folder, or a link or file in its place: nothing stands at this path.
        Err(error) if is_no_folder(&error) => Ok(Looked { entry: Entry::Absent, fingerprint: None }),
        Err(source) => Err(ScanError { path: path.display(), source }),
    }
}

fn folder_of(root: &Root, path: &WorkPath) -> std::io::Result<OwnedFd> {
    if path.is_outside() {
        use std::os::unix::ffi::OsStrExt as _;
        let path = Path::new(std::ffi::OsStr::from_bytes(path.as_bytes()));
        let folder = Root::open(path.parent().unwrap_or(path))?;
        return folder.folder(b"", crate::worktree::root::Access::Reach);
    }
    root.parent_of(path)
}

// --- into the log -------------------------------------------------------------------------------

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
        let changes = authored(workspace, &sight, scene, head, decision.time)?;
        let seq = Seq(head.seq.0 + changes.len() as u64);
        let mut recorded = Recorded { stats: sight.stats, ..Recorded::nothing(seq) };
        recorded.changes = changes.len();
        for change in &changes {
            if let Entry::NotCaptured { lack } = change.after {
                recorded.not_captured.push((change.path.clone(), lack));
            }
        }
        let mut writes: Vec<Write> = changes.into_iter().map(Write::Change).collect();
        writes.extend(buried);
        writes.extend(decision.writes);
        if let Some(point) = decision.point {
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

impl<'s> Now<'s> {
    fn read(store: &'s dyn Store) -> Result<Self, StoreError> {
        let sessions = store.sessions()?;
        let scene = Scene::read(store, &sessions)?;
        Ok(Self { store, sessions, scene })
    }

    /// Ends what died without a word, once a scan has found all that it may have left.
    fn buried(&self, time: Timestamp) -> Vec<Write> {
        let cut_off = |call: &&Call| {
            self.scene.cut_off.contains(&(call.session.clone(), call.id.clone()))
        };
        let calls: Vec<&Call> = self.scene.calls.iter().filter(cut_off).collect();
        let session_died = |session: &&Session| calls.iter().any(|call| call.session == session.id);
        let sessions = self.sessions.iter().filter(session_died).map(|session| {
            Write::Session(Session { open_turn: None, ended_at: Some(time), ..session.clone() })
        });
        let calls = calls.iter().map(|call| {
            let call = Call { state: CallState::CutOff, closed_at: Some(time), ..(*call).clone() };
            Write::Call(call)
        });
        sessions.chain(calls).collect()
    }
}

fn authored(
    workspace: &Workspace,
    sight: &Sight,
    scene: &Scene,
    head: Head,
    time: Timestamp,
) -> Result<Vec<Change>, StoreError> {
    let mut seq = head.seq;
    let mut changes = Vec::with_capacity(sight.found.len());
    for observed in &sight.found {
        let earlier = if observed.same_file {
            workspace.store.latest_of(std::slice::from_ref(&observed.path))?.pop().flatten()
        } else {
            None
        };
        let (author, evidence): (Author, Evidence) = match earlier {
            Some(change) => (change.author, change.evidence),
            None => scene.whose(&observed.path),
        };
        seq = seq.next();
        changes.push(Change {
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
    Ok(changes)
}
