//! From a request to a promise to a receipt: the order in which a rewind happens.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;
use takeback_store::{
    Author, CallId, Change, Digest, Entry, Evidence, PathStretches, PointId, PointQuery, RewindId,
    RewindKind, RewindRecord, RewindState, Seq, SessionId, StateError, Store, StoreError,
    Timestamp, WorkPath, Write,
};

use super::again::{self, effective, left_of, redoable, undoable};
use super::apply::locks::lock_all;
use super::apply::{Staged, open_stages, settle, to_apply};
use super::begin::{Begun, begin};
use super::correct::{correct, remember};
use super::helper::{Helped, Helper, NotRun, look_before};
use super::lost;
use super::opened;
use super::path_filter::PathFilter;
use super::plan::links::mark_links_elsewhere;
use super::plan::{
    Aim, AmbiguousPolicy, Plan, PlanOptions, Present, Sources, Whose, candidates, plan,
};
use super::receipt::{Receipt, StateReceipt};
use super::recover::recover_locked;
use super::safety::{self, Unsure};
use super::state_move::{Files, Rollback, StateMove, Terms};
use crate::exchange::imported::import_of;
use crate::lock::Hold;
use crate::progress::Work;
use crate::record::{RecordError, drain_spool, look_at_paths, survey};
use crate::workspace::Workspace;
use crate::worktree::index::Index;
use crate::worktree::root::{Access, names_in};
use crate::worktree::write::StageError;

/// What is to be taken back.
#[derive(Debug, Clone)]
pub struct RewindRequest {
    pub target: Target,
    /// `None`: for a point, its session and those that continue it; for one made by hand, all agents.
    pub whose: Option<Whose>,
    /// Only these paths and what is below them: globs from the root. Empty: all.
    pub paths: Vec<String>,
    pub exactness: Exactness,
    pub ambiguous: AmbiguousPolicy,
    /// Paths whose changes the person says are an agent's, as globs from the root.
    pub take: Vec<String>,
    /// The same for those that the person says are their own.
    pub mine: Vec<String>,
    pub discard: BTreeSet<WorkPath>,
    pub outside: bool,
    /// An agent's state that is to go along.
    pub rollback: Option<Rollback>,
}

impl RewindRequest {
    #[must_use]
    pub fn new(target: Target) -> Self {
        Self {
            target,
            whose: None,
            paths: Vec::new(),
            exactness: Exactness::AgentsOnly,
            ambiguous: AmbiguousPolicy::Leave,
            take: Vec::new(),
            mine: Vec::new(),
            discard: BTreeSet::new(),
            outside: false,
            rollback: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Point(PointId),
    /// No file: only the state that the request names. Its point, if it has one.
    State(Option<PointId>),
    /// The newest rewind that is not undone.
    Undo,
    /// The newest undo that is not redone, and that no rewind came after.
    Redo,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exactness {
    /// Takes back what agents did; everything else stays.
    AgentsOnly,
    /// Everything as it was, whoever changed it.
    Exact,
}

#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    #[error("there is no point {0}")]
    NoPoint(PointId),
    #[error("there is no rewind to undo")]
    NothingToUndo,
    #[error("the last rewind changed nothing, so there is nothing to undo")]
    RewoundNothing,
    #[error("there is no undo to redo")]
    NothingToRedo,
    #[error("the last rewind cannot be undone or redone: it went with a session that was deleted")]
    SessionDeleted,
    #[error("a rollback of a state must say which")]
    NoState,
    #[error("{pattern:?} is not a path or pattern")]
    Pattern { pattern: String, source: globset::Error },
    #[error("{pattern:?} has not changed since that point")]
    NotChanged { pattern: String },
    #[error("another command has the workspace locked")]
    Locked,
    #[error("something changed since the preview")]
    Changed(Box<Preview>),
    #[error("the plan of rewind {id} in the store cannot be read")]
    DamagedPlan { id: RewindId, source: serde_json::Error },
    #[error("no folder of rewind {id} can be looked at")]
    Stages { id: RewindId, source: std::io::Error },
    #[error("the rewind has been promised and cannot go on")]
    Waiting { source: StageError },
    /// All that could be done is in place; the log does not know it yet. The journal is open.
    #[error("the files are in place, but the store could not record it")]
    NotClosed { receipt: Box<Receipt>, source: StoreError },
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Stage(#[from] StageError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    State(#[from] StateError),
}

/// What a rewind would do, and the calls it would take back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preview {
    pub plan: Plan,
    pub kind: RewindKind,
    /// Changes that merely happened while a call ran, by call: they may include the user's.
    pub windows: Vec<Window>,
    /// Contents that the store is known to have lost: what needs them stays as it is.
    pub lost: BTreeSet<Digest>,
}

/// A call and what changed while it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    pub session: SessionId,
    pub call: CallId,
    pub tool: String,
    /// The command, where the call had one.
    pub command: Option<String>,
    pub paths: usize,
}

impl Preview {
    #[must_use]
    pub fn receipt(&self) -> Receipt {
        let receipt = Receipt::new(&self.plan, None);
        Receipt { point: point_of(&self.plan, self.kind), ..receipt }
    }

    /// Whether it is all or nothing, and not all of it can be done.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        let terms = self.plan.state.as_ref().map(|state| state.terms);
        terms == Some(Terms::AllOrNothing) && !self.receipt().is_whole()
    }
}

/// The point whose files a rewind brings back.
fn point_of(plan: &Plan, kind: RewindKind) -> Option<PointId> {
    let files = plan.state.as_ref().map(|state| state.files);
    match kind {
        RewindKind::Rewind { point } if files != Some(Files::Stay) => Some(point),
        _ => None,
    }
}

/// What a rewind would do now. Changes nothing but the log, which takes in what was not recorded.
pub fn preview(workspace: &mut Workspace, request: &RewindRequest) -> Result<Preview, RewindError> {
    let Some(_lock) = workspace.lock(Hold::Shared, workspace.limits.rewind_patience)? else {
        return Err(RewindError::Locked);
    };
    drain_spool(workspace)?;
    let shown = prepare(workspace, request, BTreeSet::new())?;
    let lost = lost::find(&shown.plan, &*workspace.store)?;
    if lost.is_empty() { Ok(shown) } else { prepare(workspace, request, lost) }
}

/// Does it. If `shown` is given and it would do anything else than that, it does nothing and
/// answers [`RewindError::Changed`].
pub fn rewind(
    workspace: &mut Workspace,
    request: &RewindRequest,
    shown: Option<&Preview>,
) -> Result<Receipt, RewindError> {
    rewind_by(workspace, request, shown, None).map(|(receipt, _)| receipt)
}

/// As [`rewind`], with the agent's own restore in its middle: after the promise, before the first
/// step. Whatever that does or fails to do at the paths it named, what comes out is the same.
///
/// What somebody saves at one of these paths while the helper runs cannot be told from what the
/// helper wrote: it is put back like that, and kept in the stage if the store does not have it.
pub fn rewind_with(
    workspace: &mut Workspace,
    request: &RewindRequest,
    shown: Option<&Preview>,
    helper: &mut Helper<'_>,
) -> Result<(Receipt, Helped), RewindError> {
    rewind_by(workspace, request, shown, Some(helper))
}

fn rewind_by(
    workspace: &mut Workspace,
    request: &RewindRequest,
    shown: Option<&Preview>,
    helper: Option<&mut Helper<'_>>,
) -> Result<(Receipt, Helped), RewindError> {
    let Some(_lock) = workspace.lock(Hold::Exclusive, workspace.limits.rewind_patience)? else {
        return Err(RewindError::Locked);
    };
    let done = agree_and_do(workspace, request, shown, helper);
    let problems = opened::close(workspace)?;
    done.map(|(mut receipt, helped)| {
        receipt.success &= problems.is_empty();
        receipt.errors.extend(problems);
        (receipt, helped)
    })
}

fn agree_and_do(
    workspace: &mut Workspace,
    request: &RewindRequest,
    shown: Option<&Preview>,
    mut helper: Option<&mut Helper<'_>>,
) -> Result<(Receipt, Helped), RewindError> {
    let mut lost = known_lost(shown);
    let (ready, record, may_run) = loop {
        let mut ready = match agree(workspace, request, shown, &lost)? {
            Agreed::Nothing(receipt) => return Ok((receipt, Helped::NotRun(NotRun::NothingToDo))),
            Agreed::Plan(ready) => ready,
        };
        let named = match &helper {
            None => Err(NotRun::NothingToDo),
            Some(_) if ready.plan.leaves_files() => Err(NotRun::NothingToDo),
            Some(_) if !request.paths.is_empty() => Err(NotRun::SomePaths),
            Some(helper) => look_before(workspace, &ready.plan, &helper.paths)?,
        };
        let may_run = named.map(|named| ready.plan.named = named);
        match begin(workspace, &ready)? {
            Begun::Promised(record) => break (ready, record, may_run),
            Begun::Lost(more) => {
                lost.extend(more);
                opened::close(workspace)?;
            }
        }
    };
    let helped = match (may_run, &mut helper) {
        (Ok(()), Some(helper)) => {
            let helped = match (helper.run)() {
                Ok(()) => Helped::Ran,
                Err(message) => Helped::Failed(message),
            };
            settle(&workspace.root, &*workspace.store, &ready.plan, record.id)
                .map_err(|source| RewindError::Waiting { source })?;
            helped
        }
        (Err(why), _) => Helped::NotRun(why),
        (Ok(()), None) => Helped::NotRun(NotRun::NothingToDo),
    };
    let now = record.created_at;
    Ok((finish(workspace, &ready.plan, record, now)?, helped))
}

/// What a preview found out already.
fn known_lost(shown: Option<&Preview>) -> BTreeSet<Digest> {
    shown.map(|shown| shown.lost.clone()).unwrap_or_default()
}

/// What is to be done, once it is known that it may be.
enum Agreed {
    /// Nothing to do, or refused.
    Nothing(Receipt),
    Plan(Preview),
}

fn agree(
    workspace: &mut Workspace,
    request: &RewindRequest,
    shown: Option<&Preview>,
    lost: &BTreeSet<Digest>,
) -> Result<Agreed, RewindError> {
    recover_locked(workspace)?;
    drain_spool(workspace)?;
    let ready = prepare(workspace, request, lost.clone())?;
    if shown.is_some_and(|shown| lost::differ(shown, &ready)) {
        return Err(RewindError::Changed(Box::new(ready)));
    }
    let ready = opened::open(workspace, request, ready, lost)?;
    if ready.is_refused() {
        return Ok(Agreed::Nothing(ready.receipt().refused()));
    }
    if ready.plan.does_nothing() {
        remember(&mut *workspace.store, &ready.plan.corrections)?;
        if matches!(ready.kind, RewindKind::Rewind { .. }) {
            again::note_nothing(workspace, undoable(&effective(workspace)?));
        }
        return Ok(Agreed::Nothing(ready.receipt()));
    }
    Ok(Agreed::Plan(ready))
}

/// From the promise on: does the plan, or, if it is all or nothing and somebody came in between,
/// takes back what was done of it. The journal stays open until then: whoever finds it goes on.
pub(super) fn finish(
    workspace: &mut Workspace,
    plan: &Plan,
    record: RewindRecord,
    now: Timestamp,
) -> Result<Receipt, RewindError> {
    if record.receipt.is_some() {
        let did = Receipt {
            rewind: Some(record.id),
            safety_point: Some(record.safety_point),
            state: plan.state.as_ref().map(StateMove::receipt),
            ..Receipt::default()
        };
        return turn_back(workspace, plan, record, did);
    }
    let id = record.id;
    let did = fulfil(workspace, plan, record, now)?;
    match workspace.store.rewind(id)?.filter(|record| record.state == RewindState::Open) {
        Some(record) => turn_back(workspace, plan, record, did),
        None => Ok(did),
    }
}

/// Takes back what was done of a rewind that was to be all or nothing, and closes its journal.
fn turn_back(
    workspace: &mut Workspace,
    plan: &Plan,
    mut record: RewindRecord,
    did: Receipt,
) -> Result<Receipt, RewindError> {
    let mut refused = did.refused();
    let undoes = |other: &RewindRecord| other.kind == (RewindKind::Undo { of: record.id });
    let begun = workspace.store.rewinds()?.into_iter().find(undoes);
    let undone = match begun {
        Some(undo) if undo.state == RewindState::Open => {
            let now = undo.created_at;
            match serde_json::from_str(&undo.plan) {
                Ok(planned) => Some(fulfil(workspace, &planned, undo, now)?),
                // Whoever recovers gives it up.
                Err(_) => None,
            }
        }
        Some(_) => None,
        None => Some(undo_in_part(workspace, plan)?),
    };
    if let Some(undone) = undone {
        refused.conflicts.extend(undone.conflicts);
        refused.errors.extend(undone.errors);
    }
    record.state = RewindState::Done;
    loop {
        let head = workspace.store.head()?;
        match workspace.store.commit(head, &[Write::Rewind(record.clone())]) {
            Err(StoreError::Moved) => {}
            done => {
                done?;
                return Ok(refused);
            }
        }
    }
}

/// Promises and does the undo of a rewind that had to be all or nothing.
fn undo_in_part(workspace: &mut Workspace, plan: &Plan) -> Result<Receipt, RewindError> {
    let request = RewindRequest::new(Target::Undo);
    let mut lost = BTreeSet::new();
    loop {
        let mut back = prepare(workspace, &request, lost.clone())?;
        // The process that made the promise may have moved the head before it was stopped.
        back.plan.state = plan.state.as_ref().map(StateMove::reversed);
        back.plan.turns_back = true;
        match begin(workspace, &back)? {
            Begun::Promised(record) => {
                let now = record.created_at;
                return finish(workspace, &back.plan, record, now);
            }
            Begun::Lost(more) => lost.extend(more),
        }
    }
}

/// Does the plan, appends what was done, closes the journal.
fn fulfil(
    workspace: &mut Workspace,
    plan: &Plan,
    mut record: RewindRecord,
    now: Timestamp,
) -> Result<Receipt, RewindError> {
    let work = workspace.ambient.begin(Work::Apply, to_apply(plan));
    let store = &mut *workspace.store;
    let mut staged = match plan.leaves_files() {
        true => None,
        false => {
            let opened = open_stages(&workspace.root, plan, record.id);
            Some(opened.map_err(|source| RewindError::Waiting { source })?)
        }
    };
    let fates = match &mut staged {
        Some(staged) => staged.apply(store, work.counter()),
        None => Vec::new(),
    };
    let mut receipt = Receipt {
        rewind: Some(record.id),
        point: point_of(plan, record.kind),
        safety_point: Some(record.safety_point),
        ..Receipt::new(plan, Some(&fates))
    };
    let strayed = staged.as_ref().map(Staged::strayed).unwrap_or_default();
    if staged.is_none() {
        receipt.errors.extend(lock_all(&workspace.root, &plan.unlocked));
        receipt.success &= receipt.errors.is_empty();
    }
    receipt.success &= strayed.is_empty();
    receipt.conflicts.extend(strayed);
    // Before the journal is closed: whoever finds it open moves the head if this did not come to it.
    if let Some(state) = &plan.state
        && (state.terms == Terms::Partly || receipt.is_whole())
    {
        let moved = state.carry_out(&*workspace.states, record.id);
        let moved = moved.unwrap_or_else(|error| StateReceipt {
            error: Some(error.to_string()),
            ..state.receipt()
        });
        receipt.success &= moved.moved || !state.is_move();
        receipt.state = Some(moved);
    }
    receipt.unconfirmed(plan, &fates);
    let terms = plan.state.as_ref().map(|state| state.terms);
    let is_moved = receipt.state.as_ref().is_some_and(|state| state.moved);
    record.state = match terms {
        Some(Terms::AllOrNothing) if !is_moved => RewindState::Open,
        _ => RewindState::Done,
    };
    loop {
        record.receipt = Some(
            serde_json::to_string(&receipt)
                .map_err(|source| RewindError::DamagedPlan { id: record.id, source })?,
        );
        let head = store.head()?;
        let mut seq = head.seq;
        let mut writes = Vec::new();
        let actions = plan.actions().zip(&fates);
        for (step, _) in actions.filter(|(_, fate)| fate.is_in_place()) {
            seq = seq.next();
            writes.push(Write::Change(Change {
                seq,
                path: step.path.clone(),
                before: step.present.clone(),
                after: step.goal().expect("an action has a goal"),
                author: Author::Rewind { id: record.id },
                evidence: Evidence::Named,
                time: now,
                changed_at: None,
                correction: None,
                cancels: step.cancels.clone(),
            }));
        }
        writes.push(Write::Rewind(record.clone()));
        match store.commit(head, &writes) {
            Ok(_) => break,
            Err(StoreError::Moved) => {}
            Err(source) => {
                return Err(RewindError::NotClosed { receipt: Box::new(receipt), source });
            }
        }
    }
    let left = staged.map(|staged| staged.clean_up(store)).unwrap_or_default();
    receipt.success &= left.problems.is_empty();
    receipt.errors.extend(left.problems);
    receipt.notes.extend(left.kept);
    Ok(receipt)
}

// --- getting ready ------------------------------------------------------------------------------

/// Brings the log up to the present as far as the request needs it, and plans.
pub(super) fn prepare(
    workspace: &mut Workspace,
    request: &RewindRequest,
    lost: BTreeSet<Digest>,
) -> Result<Preview, RewindError> {
    if let Target::State(point) = request.target {
        let rollback = request.rollback.as_ref().ok_or(RewindError::NoState)?;
        let state = Some(StateMove::back_to(&*workspace.states, rollback)?);
        let kind = RewindKind::Rewind { point: point.unwrap_or(PointId(0)) };
        let plan = Plan { state, ..Plan::default() };
        return Ok(Preview { plan, kind, windows: Vec::new(), lost });
    }
    let (aim, kind, at) = aim_of(workspace, request)?;
    let filter = PathFilter::new(&request.paths)?;
    let partial = match (&aim, kind) {
        (Aim::Exact { .. }, RewindKind::Undo { of } | RewindKind::Redo { of }) => Some(of),
        _ => None,
    };
    let unsure = match (&aim, kind) {
        (Aim::Exact { .. }, RewindKind::Rewind { point }) => Unsure::of(workspace, point)?,
        _ => None,
    };
    let alike = alike(&*workspace.store, &aim)?;
    let histories = |workspace: &Workspace| -> Result<Vec<PathStretches>, RewindError> {
        let mut histories = workspace.store.stretches_after(at, &alike)?;
        histories.retain(|history| filter.includes(&history.path));
        if let Some(rewind) = partial {
            let touched = Author::Rewind { id: rewind };
            histories.retain(|history| history.stretches.iter().any(|one| one.author == touched));
        }
        Ok(histories)
    };
    let busy = workspace.store.sessions()?.iter().any(|session| session.open_turn.is_some())
        || !workspace.store.live_calls()?.is_empty();
    // All or nothing: whether others wrote anywhere must be known, not only where this may write.
    let is_whole = request.rollback.as_ref().is_some_and(|r| r.terms == Terms::AllOrNothing);
    let is_exact = request.exactness == Exactness::Exact;
    let is_corrected = !(request.take.is_empty() && request.mine.is_empty());
    let is_opened = !workspace.opened.folders.is_empty();
    let surveyed = is_opened
        || busy
        || is_exact
        || is_whole
        || is_corrected
        || workspace.store.last_scan()?.is_none();
    if surveyed {
        survey(workspace)?;
    }
    let seen = workspace.store.head()?;
    let session = corrected_session(workspace, kind)?;
    let mut changed = histories(workspace)?;
    let mut corrections = correct(&mut changed, request, session.as_ref())?;
    let points = workspace.store.points()?.into_iter().map(|point| point.seq).collect();
    let touched = candidates(&changed, &aim, &points, &FromStore(&*workspace.store))?;
    let mut linked = Index::linked_at(&workspace.index_file(), seen.seq, at);
    linked.retain(|names| names.iter().any(|name| touched.binary_search(name).is_ok()));
    let mut looked_at = touched.clone();
    looked_at.extend(linked.iter().flatten().cloned());
    let looked_at = with_folders(&looked_at);
    look_at_paths(workspace, &looked_at)?;
    let present = Present { linked, ..present(workspace, &looked_at, &touched)? };
    let options = PlanOptions {
        aim,
        ambiguous: request.ambiguous,
        points,
        discard: request.discard.clone(),
        outside: request.outside,
        lost,
    };
    if workspace.store.head()? != seen {
        changed = histories(workspace)?;
        corrections = correct(&mut changed, request, session.as_ref())?;
    }
    let unsure = unsure.map(|unsure| unsure.take_out(&mut changed)).unwrap_or_default();
    let mut plan = plan(&changed, &present, &options, &FromStore(&*workspace.store))?;
    plan.surveyed = surveyed;
    safety::keep(&mut plan, &unsure, &present);
    let now = workspace.store.head()?.seq;
    let linked = Index::linked_at(&workspace.index_file(), now, Seq(now.0 + 1));
    mark_links_elsewhere(&mut plan, &linked, &workspace.root);
    plan.corrections = corrections;
    opened::note_closed(workspace, &mut plan);
    plan.state = state_of(workspace, request, kind)?;
    let windows = windows(&*workspace.store, &plan)?;
    Ok(Preview { plan, kind, windows, lost: options.lost })
}

/// The session that changes are an agent's of, where only the person says so: the point's, or the last
/// that began.
fn corrected_session(
    workspace: &Workspace,
    kind: RewindKind,
) -> Result<Option<SessionId>, StoreError> {
    let RewindKind::Rewind { point } = kind else { return Ok(None) };
    let point = workspace.store.find_points(PointQuery::Id(point))?.pop();
    match point.and_then(|point| point.session) {
        Some(session) => Ok(Some(session)),
        None => Ok(workspace.store.sessions()?.pop().map(|session| session.id)),
    }
}

/// The sessions that a plan for this aim does not tell apart.
fn alike(store: &dyn Store, aim: &Aim) -> Result<BTreeSet<SessionId>, StoreError> {
    match aim {
        Aim::Point { whose: Whose::Sessions(chosen), .. } => Ok(chosen.clone()),
        Aim::Point { whose: Whose::AllAgents, .. } | Aim::Exact { .. } | Aim::Without { .. } => {
            let sessions = store.sessions()?.into_iter().map(|session| session.id);
            Ok(sessions.filter(|id| import_of(id).is_none()).collect())
        }
    }
}

/// The agent's state that goes along.
fn state_of(
    workspace: &Workspace,
    request: &RewindRequest,
    kind: RewindKind,
) -> Result<Option<StateMove>, RewindError> {
    let states = &*workspace.states;
    match kind {
        RewindKind::Rewind { .. } => match &request.rollback {
            Some(rollback) => Ok(Some(StateMove::back_to(states, rollback)?)),
            None => Ok(None),
        },
        // Some paths of a rewind are not the rewind.
        RewindKind::Undo { .. } | RewindKind::Redo { .. } if !request.paths.is_empty() => Ok(None),
        RewindKind::Undo { of } | RewindKind::Redo { of } => match workspace.store.rewind(of)? {
            Some(record) => Ok(StateMove::without(states, &record)?),
            None => Ok(None),
        },
    }
}

fn aim_of(
    workspace: &Workspace,
    request: &RewindRequest,
) -> Result<(Aim, RewindKind, Seq), RewindError> {
    let store = &*workspace.store;
    let (aim, kind, at) = match request.target {
        Target::Point(id) => {
            let point = store.find_points(PointQuery::Id(id))?.pop();
            let point = point.ok_or(RewindError::NoPoint(id))?;
            let whose = match (&request.whose, &point.session) {
                (Some(Whose::AllAgents), Some(session)) => all_agents(store, session)?,
                (Some(whose), _) => whose.clone(),
                (None, Some(session)) => Whose::Sessions(continued_by(store, session)?),
                (None, None) => Whose::AllAgents,
            };
            (Aim::Point { at: point.seq, whose }, RewindKind::Rewind { point: id }, point.seq)
        }
        Target::State(_) => return Err(RewindError::NoState),
        Target::Undo => {
            let rewinds = effective(workspace)?;
            let of = left_of(undoable(&rewinds), &rewinds, RewindError::NothingToUndo)?;
            if again::did_nothing_since(workspace, of.id) {
                again::forget_nothing(workspace);
                return Err(RewindError::RewoundNothing);
            }
            (Aim::Without { rewind: of.id }, RewindKind::Undo { of: of.id }, of.began_at)
        }
        Target::Redo => {
            let rewinds = effective(workspace)?;
            let of = left_of(redoable(&rewinds), &rewinds, RewindError::NothingToRedo)?;
            (Aim::Without { rewind: of.id }, RewindKind::Redo { of: of.id }, of.began_at)
        }
    };
    match request.exactness {
        Exactness::AgentsOnly => Ok((aim, kind, at)),
        Exactness::Exact => Ok((Aim::Exact { at }, kind, at)),
    }
}

/// All agents, as seen from a point of `session`: if that was imported, also those it came with.
fn all_agents(store: &dyn Store, session: &SessionId) -> Result<Whose, StoreError> {
    let Some(import) = import_of(session) else { return Ok(Whose::AllAgents) };
    let here = |id: &SessionId| import_of(id).is_none_or(|other| other == import);
    let sessions = store.sessions()?.into_iter().map(|session| session.id).filter(here);
    Ok(Whose::Sessions(sessions.collect()))
}

/// A session and all that were resumed or forked from it.
pub(crate) fn continued_by(
    store: &dyn Store,
    session: &SessionId,
) -> Result<BTreeSet<SessionId>, StoreError> {
    let sessions = store.sessions()?;
    let mut chosen = BTreeSet::from([session.clone()]);
    loop {
        let more: Vec<SessionId> = sessions
            .iter()
            .filter(|s| s.parent.as_ref().is_some_and(|parent| chosen.contains(parent)))
            .map(|s| s.id.clone())
            .filter(|id| !chosen.contains(id))
            .collect();
        if more.is_empty() {
            return Ok(chosen);
        }
        chosen.extend(more);
    }
}

fn with_folders(paths: &[WorkPath]) -> Vec<WorkPath> {
    let mut folders: HashSet<WorkPath> = HashSet::new();
    for path in paths.iter().filter(|path| !path.is_outside()) {
        // Where one is in, so are those around it.
        for folder in path.ancestors() {
            if !folders.insert(folder) {
                break;
            }
        }
    }
    let mut all: Vec<WorkPath> = folders.into_iter().chain(paths.iter().cloned()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// What stands at these paths, now that the log is up to date with them.
///
/// Names are read only of folders among `touched`: no other can go.
fn present(
    workspace: &Workspace,
    paths: &[WorkPath],
    touched: &[WorkPath],
) -> Result<Present, RewindError> {
    let touched: HashSet<&WorkPath> = touched.iter().collect();
    let mut present = Present::default();
    let latest = workspace.store.latest_of(paths)?;
    for (path, latest) in paths.iter().zip(latest) {
        if let Some(Change { before: Entry::Dir { mode }, after: Entry::Absent, .. }) = latest {
            present.former_modes.insert(path.clone(), mode);
        }
        let entry = latest.map_or(Entry::Absent, |change| change.after);
        if entry.is_dir() && !path.is_outside() && touched.contains(path) {
            match workspace.root.folder(path.as_bytes(), Access::Read).and_then(names_in) {
                Ok(names) => {
                    let below = names.into_iter().filter_map(|name| {
                        WorkPath::new([path.as_bytes(), b"/", name.as_slice()].concat()).ok()
                    });
                    present.names.insert(path.clone(), below.collect());
                }
                // No permission, or somebody took it away just now: its own misfortune alone.
                Err(_) => {
                    present.unread.insert(path.clone());
                }
            }
        }
        present.entries.insert(path.clone(), entry);
    }
    Ok(present)
}

/// The calls of a plan's doings that say only when something changed, not who changed it.
pub fn windows(store: &dyn Store, plan: &Plan) -> Result<Vec<Window>, StoreError> {
    let mut windows: Vec<Window> = Vec::new();
    let mut known: HashMap<(&SessionId, &CallId), usize> = HashMap::new();
    for cause in plan.actions().flat_map(|step| &step.because) {
        let (Author::Agent { session, call, tool, .. }, Evidence::Window | Evidence::OpenWindow) =
            (&cause.author, cause.evidence)
        else {
            continue;
        };
        if let Some(at) = known.get(&(session, call)) {
            windows[*at].paths += 1;
            continue;
        }
        let command = store.call(session, call)?.and_then(|call| match call.kind {
            takeback_store::CallKind::Shell { command, .. } => command,
            takeback_store::CallKind::Edit { .. } => None,
        });
        known.insert((session, call), windows.len());
        windows.push(Window {
            session: session.clone(),
            call: call.clone(),
            tool: tool.clone(),
            command,
            paths: 1,
        });
    }
    Ok(windows)
}

struct FromStore<'a>(&'a dyn Store);

impl Sources for FromStore<'_> {
    fn change(&self, seq: Seq) -> Result<Option<Change>, StoreError> {
        let Some(mut change) = self.0.change(seq)? else { return Ok(None) };
        let known = self.0.attribution(&change)?;
        (change.author, change.evidence) = (known.author, known.evidence);
        Ok(Some(change))
    }

    fn contents(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        self.0.contents(digest)
    }
}
