//! Saving a checkpoint: made ready by whoever saves it, then written by whoever's turn it is.

use rusqlite::Connection;

use super::facts::Facts;
use super::last::{KeptValues, MOST_KEPT};
use super::ledger;
use super::lookup::{branch_of, named, newest_on, record_at};
use super::rows::{self, BranchRow, ExecutionRow, Lineage, RowError, StepRow};
use super::tree::{self, Body, Kept, NewNodes, Pieces};
use super::turns::Writer;
use crate::blob::Digest;
use crate::id::SessionId;
use crate::state::{
    Attempt, BranchName, CheckpointId, CheckpointKey, ExecutionId, NewCheckpoint, Record,
    SaveOutcome, StateError, Status, Values,
};

/// A checkpoint made ready to be written: compared, cut, hashed and compressed.
pub(super) struct Ready {
    step: StepRow,
    body: Body,
    nodes: NewNodes,
    sweeps: Option<i64>,
}

/// The values as they were saved last become those of `new`.
pub(super) fn make_ready(
    new: &NewCheckpoint<'_>,
    kept: &mut KeptValues,
) -> Result<Ready, StateError> {
    let mut nodes = NewNodes::default();
    let mut pieces = Pieces::default();
    let mut changed = false;
    let values = new.values.each();
    for ((kept, value), name) in kept.values.iter_mut().zip(values).zip(Values::NAMES) {
        changed |= kept.update(value, &mut tree::Path::root(name), &mut nodes)?;
        kept.write(&mut pieces);
    }
    if changed {
        // Exact enough: what was measured last time, and what came.
        kept.footprint = if kept.footprint == 0 || kept.footprint > MOST_KEPT / 2 {
            kept.values.iter().map(Kept::footprint).sum()
        } else {
            kept.footprint + 2 * nodes.bytes
        };
    }
    let mut hasher = head_hasher(new.step_name, new.status, new.error);
    pieces.digest_into(&mut hasher);
    Ok(Ready {
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

/// Of what makes two checkpoints of a step the same, but for their files.
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

/// What of a [`NewCheckpoint`] is needed in the transaction.
pub(super) struct Place {
    pub(super) execution: ExecutionId,
    pub(super) branch: Option<BranchName>,
    pub(super) attempt: Option<Attempt>,
    pub(super) parent: Option<CheckpointId>,
    /// There must be no checkpoint yet.
    pub(super) is_first: bool,
    pub(super) session: Option<SessionId>,
}

/// What saving came to, and how often nodes had been swept then.
pub(super) struct Written {
    pub(super) saved: SaveOutcome,
    pub(super) sweeps: i64,
}

pub(super) fn save(writer: &mut Writer, place: &Place, ready: Ready) -> rows::Result<Written> {
    match writer.facts(&place.execution) {
        Some(facts) if goes_on(facts, place, &ready) => {
            let facts = facts.clone();
            append(writer, place, facts, ready)
        }
        _ => save_anywhere(writer, place, ready),
    }
}

/// Whether what the writer knows is enough: the next step of the current branch.
fn goes_on(facts: &Facts, place: &Place, ready: &Ready) -> bool {
    let (_, step, attempt) = facts.head;
    !place.is_first
        && ready.step.step > facts.last
        && ready.sweeps.is_none_or(|then| then == facts.sweeps)
        && !facts.has_retries
        && place.attempt.is_none()
        && place.branch.as_ref().is_none_or(|branch| *branch == facts.branch)
        && (place.session.is_none() || place.session == facts.session)
        && place.parent.as_ref().is_none_or(|parent| {
            let is_meant = match parent.attempt {
                Some(wanted) => wanted == attempt,
                None => facts.head_is_newest,
            };
            parent.execution == place.execution && parent.step == step && is_meant
        })
}

/// Writes the next step of the current branch.
fn append(
    writer: &mut Writer,
    place: &Place,
    mut facts: Facts,
    ready: Ready,
) -> rows::Result<Written> {
    let Ready { mut step, body, nodes, .. } = ready;
    let db = &writer.db;
    rows::keep_nodes(db, nodes)?;
    let (head, head_step, head_attempt) = facts.head;
    step.line = facts.line;
    step.parent = Some(head);
    let id = rows::insert_step(db, facts.execution, &step, &body.packed())?;
    rows::set_head(db, facts.line, id)?;
    let record = Record {
        key: CheckpointKey {
            execution: place.execution.clone(),
            step: step.step,
            attempt: step.attempt,
        },
        is_newest: true,
        branch: facts.branch.clone(),
        parent: Some((head_step, head_attempt)),
        step_name: step.name,
        time: step.time,
        status: step.status,
        error: step.error,
        point: step.point,
    };
    facts.head = (id, step.step, step.attempt);
    facts.head_is_newest = true;
    facts.last = step.step;
    let sweeps = facts.sweeps;
    writer.know(&place.execution, facts);
    Ok(Written { saved: SaveOutcome { record, is_new: true }, sweeps })
}

/// Saves to any branch, whatever is there: everything is asked before anything is written.
fn save_anywhere(writer: &mut Writer, place: &Place, ready: Ready) -> rows::Result<Written> {
    writer.forget(&place.execution);
    let db = &writer.db;
    let sweeps = rows::sweeps(db)?;
    if ready.sweeps.is_some_and(|then| then != sweeps) {
        return Err(RowError::Swept);
    }
    let there = match rows::execution(db, &place.execution)? {
        // Without a step there is no parent, and no branch that somebody chose: only effects.
        Some(execution) if !rows::has_steps(db, execution.id)? => {
            if place.parent.is_some() {
                return Err(place.missing_parent(&ready.step));
            }
            if let Some(branch) = &place.branch {
                rows::rename_branch(db, execution.branch, branch)?;
            }
            Some(There::look(db, place, execution, &ready.step)?)
        }
        Some(execution) => Some(There::look(db, place, execution, &ready.step)?),
        None if place.parent.is_some() => return Err(place.missing_parent(&ready.step)),
        None => None,
    };
    if let Some(saved) = there.as_ref().and_then(|there| there.same.clone()) {
        return Ok(Written { saved, sweeps });
    }
    let there = match there {
        Some(there) => there,
        None => begin(db, &place.execution, place.branch.clone())?,
    };
    let Ready { mut step, body, nodes, .. } = ready;
    rows::keep_nodes(db, nodes)?;
    step.attempt = place.attempt.unwrap_or(there.next);
    step.line = there.branch.line;
    step.parent = there.head;
    step.id = rows::insert_step(db, there.execution.id, &step, &body.packed())?;
    rows::set_head(db, step.line, step.id)?;
    if let Some(session) = &place.session {
        rows::set_session(db, &there.execution, session)?;
    }
    if step.status == Status::Success {
        ledger::forget_retries(db, there.execution.id, step.step)?;
    }
    let is_current = there.branch.id == there.execution.branch;
    let facts = Facts {
        execution: there.execution.id,
        session: place.session.clone(),
        branch: there.branch.name,
        line: step.line,
        head: (step.id, step.step, step.attempt),
        head_is_newest: there.newest.is_none_or(|newest| newest < step.attempt),
        last: rows::last_step(db, there.execution.id)?,
        has_retries: ledger::has_retries(db, there.execution.id)?,
        sweeps,
    };
    let is_newest = is_current && there.newest.is_none_or(|newest| newest < step.attempt);
    let record = rows::record(db, &place.execution, step, is_newest)?;
    if is_current {
        writer.know(&place.execution, facts);
    }
    Ok(Written { saved: SaveOutcome { record, is_new: true }, sweeps })
}

/// What stands where a checkpoint is to be saved.
pub(super) struct There {
    pub(super) execution: ExecutionRow,
    branch: BranchRow,
    head: Option<i64>,
    /// The newest attempt of the step on the branch.
    newest: Option<Attempt>,
    /// The attempt that comes next, on whatever branch.
    next: Attempt,
    /// The very same checkpoint.
    same: Option<SaveOutcome>,
}

impl There {
    /// Refuses what must not be saved here.
    fn look(
        db: &Connection,
        place: &Place,
        execution: ExecutionRow,
        step: &StepRow,
    ) -> rows::Result<Self> {
        let branch = branch_of(db, &place.execution, &execution, place.branch.as_ref())?;
        let attempts = rows::attempts(db, execution.id, step.step)?;
        let head = rows::head_of(db, branch.line)?;
        let parent = match &place.parent {
            Some(parent) if parent.execution == place.execution => {
                let found = parent_row(db, &execution, &branch, parent)?;
                Some((parent, found.ok_or_else(|| place.missing_parent(step))?))
            }
            Some(_) => return Err(place.missing_parent(step)),
            None => None,
        };
        let newest = match attempts.as_slice() {
            [] => None,
            attempts => newest_on(&Lineage::of(db, branch.line)?, attempts).cloned(),
        };
        let next = match attempts.first() {
            Some(last) if last.attempt == Attempt::LAST && place.attempt.is_none() => {
                let execution = place.execution.clone();
                let key = CheckpointKey { execution, step: last.step, attempt: last.attempt };
                return Err(StateError::Taken { key }.into());
            }
            last => last.map_or(Attempt::FIRST, |row| row.attempt.next()),
        };
        let mut there = Self {
            execution,
            head,
            newest: newest.as_ref().map(|row| row.attempt),
            next,
            same: None,
            branch,
        };
        let other = match place.attempt {
            Some(attempt) => attempts.into_iter().find(|row| row.attempt == attempt),
            None => newest,
        };
        if let Some(other) = other {
            let key = CheckpointKey {
                execution: place.execution.clone(),
                step: other.step,
                attempt: other.attempt,
            };
            let follows = match &parent {
                Some((_, row)) => other.parent == Some(row.id),
                None => !place.is_first || other.parent.is_none(),
            };
            if other.digest == step.digest && other.point == step.point && follows {
                let found = named(db, &there.execution, &key.id())?;
                let (row, is_newest) = found.expect("it was just read");
                let record = rows::record(db, &place.execution, row, is_newest)?;
                there.same = Some(SaveOutcome { record, is_new: false });
                return Ok(there);
            }
            if place.attempt.is_some() {
                return Err(StateError::Taken { key }.into());
            }
        }
        let is_expected = match &parent {
            Some((_, row)) => head == Some(row.id),
            None => !place.is_first || head.is_none(),
        };
        if is_expected {
            return Ok(there);
        }
        let head = match head {
            Some(head) => record_at(db, &place.execution, &there.execution, head)?,
            None => None,
        };
        Err(StateError::Conflict {
            id: place.id(step),
            parent: parent.map(|(parent, _)| parent.clone()),
            branch: there.branch.name,
            head: head.map(|head| head.key.id()),
        }
        .into())
    }
}

impl Place {
    fn id(&self, step: &StepRow) -> CheckpointId {
        let execution = self.execution.clone();
        CheckpointId { execution, step: step.step, attempt: self.attempt }
    }

    fn missing_parent(&self, step: &StepRow) -> RowError {
        let parent = self.parent.clone().expect("one was asked for");
        StateError::MissingParent { id: self.id(step), parent }.into()
    }
}

/// A parent is looked for on the branch that is saved to.
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

/// Makes an execution with its first branch.
pub(super) fn begin(
    db: &Connection,
    execution: &ExecutionId,
    branch: Option<BranchName>,
) -> rows::Result<There> {
    let id = rows::insert_execution(db, execution)?;
    let name = branch.unwrap_or_else(BranchName::main);
    let branch = rows::insert_branch(db, id, &name)?;
    let line = rows::insert_line(db, id, branch, None)?;
    rows::set_line(db, branch, line)?;
    rows::set_current(db, id, branch)?;
    Ok(There {
        execution: ExecutionRow { id, branch, session: None },
        branch: BranchRow { id: branch, name, line },
        head: None,
        newest: None,
        next: Attempt::FIRST,
        same: None,
    })
}
