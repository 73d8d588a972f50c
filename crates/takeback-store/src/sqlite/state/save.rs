//! Saves a checkpoint. The calling thread prepares it; the thread that currently leads the write
//! queue writes it.

use rusqlite::Connection;

use super::cached_head::CachedHead;
use super::ledger;
use super::lookup::{branch_of, named, newest_on, record_at};
use super::rows::{self, BranchRow, ExecutionRow, Lineage, RowError, StepRow};
use super::tree::{self, Body, NewNodes, Pieces, SavedValue};
use super::value_cache::{MOST_SAVED, SavedValues};
use super::write_queue::Writer;
use crate::blob::Digest;
use crate::id::SessionId;
use crate::state::{
    Attempt, BranchName, CheckpointId, CheckpointKey, ExecutionId, NewCheckpoint, Record,
    SaveOutcome, StateError, Status, Values,
};

/// A checkpoint that is ready to be written: compared, cut, hashed and compressed.
pub(super) struct PreparedCheckpoint {
    step: StepRow,
    body: Body,
    nodes: NewNodes,
    sweeps: Option<i64>,
}

/// Prepares `new`, and updates `kept` from the values last saved to those of `new`.
pub(super) fn prepare(
    new: &NewCheckpoint<'_>,
    kept: &mut SavedValues,
) -> Result<PreparedCheckpoint, StateError> {
    let mut nodes = NewNodes::default();
    let mut pieces = Pieces::default();
    let mut changed = false;
    let values = new.values.each();
    for ((kept, value), name) in kept.values.iter_mut().zip(values).zip(Values::NAMES) {
        changed |= kept.update(value, &mut tree::Path::root(name), &mut nodes)?;
        kept.write(&mut pieces);
    }
    if changed {
        // An estimate: the last measurement plus what was added.
        kept.footprint = if kept.footprint == 0 || kept.footprint > MOST_SAVED / 2 {
            kept.values.iter().map(SavedValue::footprint).sum()
        } else {
            kept.footprint + 2 * nodes.bytes
        };
    }
    let mut hasher = head_hasher(new.step_name, new.status, new.error);
    pieces.digest_into(&mut hasher);
    Ok(PreparedCheckpoint {
        step: StepRow {
            id: 0,
            line: 0,
            parent: None,
            step: new.step,
            attempt: Attempt::FIRST,
            name: new.step_name.to_owned(),
            status: new.status,
            error: new.error.map(str::to_owned),
            time: new.time,
            point: new.point,
            digest: Digest(*hasher.finalize().as_bytes()),
        },
        body: pieces.into_body(),
        nodes,
        sweeps: kept.sweeps,
    })
}

/// Starts the hash that decides whether two checkpoints of a step are the same, apart from their
/// point.
pub(super) fn head_hasher(name: &str, status: Status, error: Option<&str>) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    for text in [name, status.name()] {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    match error {
        Some(error) => {
            hasher.update(&[1]);
            hasher.update(&(error.len() as u64).to_le_bytes());
            hasher.update(error.as_bytes());
        }
        None => drop(hasher.update(&[0])),
    }
    hasher
}

/// The parts of a [`NewCheckpoint`] that the transaction needs.
pub(super) struct SaveRequest {
    pub(super) execution: ExecutionId,
    pub(super) branch: Option<BranchName>,
    pub(super) attempt: Option<Attempt>,
    pub(super) parent: Option<CheckpointId>,
    /// Whether there must be no checkpoint yet.
    pub(super) is_first: bool,
    pub(super) session: Option<SessionId>,
}

/// The result of a save, and the sweep count at that time.
pub(super) struct WriteOutcome {
    pub(super) saved: SaveOutcome,
    pub(super) sweeps: i64,
}

pub(super) fn save(
    writer: &mut Writer,
    request: &SaveRequest,
    prepared: PreparedCheckpoint,
) -> rows::Result<WriteOutcome> {
    match writer.cached_head(&request.execution) {
        Some(cached_head) if can_append(cached_head, request, &prepared) => {
            let cached_head = cached_head.clone();
            append(writer, request, cached_head, prepared)
        }
        _ => save_anywhere(writer, request, prepared),
    }
}

/// Whether the cached head is enough: this is the next step of the current branch.
fn can_append(
    cached_head: &CachedHead,
    request: &SaveRequest,
    prepared: &PreparedCheckpoint,
) -> bool {
    let (_, step, attempt) = cached_head.head;
    !request.is_first
        && prepared.step.step > cached_head.last
        && prepared.sweeps.is_none_or(|then| then == cached_head.sweeps)
        && !cached_head.has_retries
        && request.attempt.is_none()
        && request.branch.as_ref().is_none_or(|branch| *branch == cached_head.branch)
        && (request.session.is_none() || request.session == cached_head.session)
        && request.parent.as_ref().is_none_or(|parent| {
            let is_meant = match parent.attempt {
                Some(wanted) => wanted == attempt,
                None => cached_head.head_is_newest,
            };
            parent.execution == request.execution && parent.step == step && is_meant
        })
}

/// Writes the next step of the current branch.
fn append(
    writer: &mut Writer,
    request: &SaveRequest,
    mut cached_head: CachedHead,
    prepared: PreparedCheckpoint,
) -> rows::Result<WriteOutcome> {
    let PreparedCheckpoint { mut step, body, nodes, .. } = prepared;
    let db = &writer.db;
    rows::keep_nodes(db, nodes)?;
    let (head, head_step, head_attempt) = cached_head.head;
    step.line = cached_head.line;
    step.parent = Some(head);
    let id = rows::insert_step(db, cached_head.execution, &step, &body.packed())?;
    rows::set_head(db, cached_head.line, id)?;
    let record = Record {
        key: CheckpointKey {
            execution: request.execution.clone(),
            step: step.step,
            attempt: step.attempt,
        },
        is_newest: true,
        branch: cached_head.branch.clone(),
        parent: Some((head_step, head_attempt)),
        step_name: step.name,
        time: step.time,
        status: step.status,
        error: step.error,
        point: step.point,
    };
    cached_head.head = (id, step.step, step.attempt);
    cached_head.head_is_newest = true;
    cached_head.last = step.step;
    let sweeps = cached_head.sweeps;
    writer.cache_head(&request.execution, cached_head);
    Ok(WriteOutcome { saved: SaveOutcome { record, is_new: true }, sweeps })
}

/// Saves to any branch. All queries come before the first write, so that a refused save writes
/// nothing.
fn save_anywhere(
    writer: &mut Writer,
    request: &SaveRequest,
    prepared: PreparedCheckpoint,
) -> rows::Result<WriteOutcome> {
    writer.forget(&request.execution);
    let db = &writer.db;
    let sweeps = rows::sweeps(db)?;
    if prepared.sweeps.is_some_and(|then| then != sweeps) {
        return Err(RowError::Swept);
    }
    let target = match rows::execution(db, &request.execution)? {
        // An execution without steps has only effects: there is no parent, and its branch was not
        // chosen yet.
        Some(execution) if !rows::has_steps(db, execution.id)? => {
            if request.parent.is_some() {
                return Err(request.missing_parent(&prepared.step));
            }
            if let Some(branch) = &request.branch {
                rows::rename_branch(db, execution.branch, branch)?;
            }
            Some(SaveTarget::find(db, request, execution, &prepared.step)?)
        }
        Some(execution) => Some(SaveTarget::find(db, request, execution, &prepared.step)?),
        None if request.parent.is_some() => return Err(request.missing_parent(&prepared.step)),
        None => None,
    };
    if let Some(saved) = target.as_ref().and_then(|target| target.same.clone()) {
        return Ok(WriteOutcome { saved, sweeps });
    }
    let target = match target {
        Some(target) => target,
        None => begin(db, &request.execution, request.branch.clone())?,
    };
    let PreparedCheckpoint { mut step, body, nodes, .. } = prepared;
    rows::keep_nodes(db, nodes)?;
    step.attempt = request.attempt.unwrap_or(target.next);
    step.line = target.branch.line;
    step.parent = target.head;
    step.id = rows::insert_step(db, target.execution.id, &step, &body.packed())?;
    rows::set_head(db, step.line, step.id)?;
    if let Some(session) = &request.session {
        rows::set_session(db, &target.execution, session)?;
    }
    if step.status == Status::Success {
        ledger::forget_retries(db, target.execution.id, step.step)?;
    }
    let is_current = target.branch.id == target.execution.branch;
    let cached_head = CachedHead {
        execution: target.execution.id,
        session: request.session.clone(),
        branch: target.branch.name,
        line: step.line,
        head: (step.id, step.step, step.attempt),
        head_is_newest: target.newest.is_none_or(|newest| newest < step.attempt),
        last: rows::last_step(db, target.execution.id)?,
        has_retries: ledger::has_retries(db, target.execution.id)?,
        sweeps,
    };
    let is_newest = is_current && target.newest.is_none_or(|newest| newest < step.attempt);
    let record = rows::record(db, &request.execution, step, is_newest)?;
    if is_current {
        writer.cache_head(&request.execution, cached_head);
    }
    Ok(WriteOutcome { saved: SaveOutcome { record, is_new: true }, sweeps })
}

/// The branch that a checkpoint is saved to, and what it has for that step.
pub(super) struct SaveTarget {
    pub(super) execution: ExecutionRow,
    branch: BranchRow,
    head: Option<i64>,
    /// The newest attempt of the step on the branch.
    newest: Option<Attempt>,
    /// The next attempt number, counted over all branches.
    next: Attempt,
    /// The existing checkpoint with the same content, if there is one.
    same: Option<SaveOutcome>,
}

impl SaveTarget {
    /// Finds the target of a save. Fails if the checkpoint must not be saved there.
    fn find(
        db: &Connection,
        request: &SaveRequest,
        execution: ExecutionRow,
        step: &StepRow,
    ) -> rows::Result<Self> {
        let branch = branch_of(db, &request.execution, &execution, request.branch.as_ref())?;
        let attempts = rows::attempts(db, execution.id, step.step)?;
        let head = rows::head_of(db, branch.line)?;
        let parent = match &request.parent {
            Some(parent) if parent.execution == request.execution => {
                let found = parent_row(db, &execution, &branch, parent)?;
                Some((parent, found.ok_or_else(|| request.missing_parent(step))?))
            }
            Some(_) => return Err(request.missing_parent(step)),
            None => None,
        };
        let newest = match attempts.as_slice() {
            [] => None,
            attempts => newest_on(&Lineage::of(db, branch.line)?, attempts).cloned(),
        };
        let next = match attempts.first() {
            Some(last) if last.attempt == Attempt::LAST && request.attempt.is_none() => {
                let execution = request.execution.clone();
                let key = CheckpointKey { execution, step: last.step, attempt: last.attempt };
                return Err(StateError::Taken { key }.into());
            }
            last => last.map_or(Attempt::FIRST, |row| row.attempt.next()),
        };
        let mut target = Self {
            execution,
            head,
            newest: newest.as_ref().map(|row| row.attempt),
            next,
            same: None,
            branch,
        };
        let other = match request.attempt {
            Some(attempt) => attempts.into_iter().find(|row| row.attempt == attempt),
            None => newest,
        };
        if let Some(other) = other {
            let key = CheckpointKey {
                execution: request.execution.clone(),
                step: other.step,
                attempt: other.attempt,
            };
            let follows = match &parent {
                Some((_, row)) => other.parent == Some(row.id),
                None => !request.is_first || other.parent.is_none(),
            };
            if other.digest == step.digest && other.point == step.point && follows {
                let found = named(db, &target.execution, &key.id())?;
                let (row, is_newest) = found.expect("it was just read");
                let record = rows::record(db, &request.execution, row, is_newest)?;
                target.same = Some(SaveOutcome { record, is_new: false });
                return Ok(target);
            }
            if request.attempt.is_some() {
                return Err(StateError::Taken { key }.into());
            }
        }
        let is_expected = match &parent {
            Some((_, row)) => head == Some(row.id),
            None => !request.is_first || head.is_none(),
        };
        if is_expected {
            return Ok(target);
        }
        let head = match head {
            Some(head) => record_at(db, &request.execution, &target.execution, head)?,
            None => None,
        };
        Err(StateError::Conflict {
            id: request.id(step),
            parent: parent.map(|(parent, _)| parent.clone()),
            branch: target.branch.name,
            head: head.map(|head| head.key.id()),
        }
        .into())
    }
}

impl SaveRequest {
    fn id(&self, step: &StepRow) -> CheckpointId {
        let execution = self.execution.clone();
        CheckpointId { execution, step: step.step, attempt: self.attempt }
    }

    fn missing_parent(&self, step: &StepRow) -> RowError {
        let parent = self.parent.clone().expect("one was asked for");
        StateError::MissingParent { id: self.id(step), parent }.into()
    }
}

/// Finds a parent; without an attempt, the newest one on the branch that is saved to.
fn parent_row(
    db: &Connection,
    execution: &ExecutionRow,
    branch: &BranchRow,
    parent: &CheckpointId,
) -> rows::Result<Option<StepRow>> {
    let attempts = rows::attempts(db, execution.id, parent.step)?;
    if let Some(attempt) = parent.attempt {
        return Ok(attempts.into_iter().find(|row| row.attempt == attempt));
    }
    let lineage = Lineage::of(db, branch.line)?;
    Ok(newest_on(&lineage, &attempts).cloned())
}

/// Creates an execution with its first branch.
pub(super) fn begin(
    db: &Connection,
    execution: &ExecutionId,
    branch: Option<BranchName>,
) -> rows::Result<SaveTarget> {
    let id = rows::insert_execution(db, execution)?;
    let name = branch.unwrap_or_else(BranchName::main);
    let branch = rows::insert_branch(db, id, &name)?;
    let line = rows::insert_line(db, id, branch, None)?;
    rows::set_line(db, branch, line)?;
    rows::set_current(db, id, branch)?;
    Ok(SaveTarget {
        execution: ExecutionRow { id, branch, session: None },
        branch: BranchRow { id: branch, name, line },
        head: None,
        newest: None,
        next: Attempt::FIRST,
        same: None,
    })
}
