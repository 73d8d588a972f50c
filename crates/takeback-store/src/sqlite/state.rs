//! Agents' states in the store's database. Values are stored by structure, so that equal parts are
//! stored once.
//!
//! Many threads may use one handle. Each reads on a connection of its own and never waits for a
//! writer; writers queue and share commits ([`write_queue`]). The last saved value of each
//! execution stays in memory, so saving the next one costs only the difference.

mod audit;
mod cached_head;
mod value_cache;
mod ledger;
mod lookup;
mod nodes;
mod rows;
mod save;
mod tree;
mod write_queue;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use serde_json::Value;

use self::audit::{check_step, mark};
use self::lookup::{branch_of, known, list, named, record_at};
use self::nodes::Nodes;
use self::rows::{Lineage, RowError, StepRow};
use self::save::{SaveRequest, WriteOutcome, begin, head_hasher, prepare, save};
use self::tree::{NewNodes, Pieces, SavedValue};
use self::value_cache::{SavedValues, ValueCache};
use self::write_queue::{JobError, WriteQueue, Writer, lock};
use super::schema::{self, error_at};
use super::{DATABASE, SqliteStore};
use crate::blob::Digest;
use crate::id::{PointId, SessionId, Timestamp};
use crate::state::{
    BranchName, Category, Checkpoint, CheckpointId, CheckpointKey, DocumentKey, Effect, Execution,
    ExecutionId, Executions, Head, HeadMove, IntentOutcome, LineId, ListQuery, MoveOutcome, MoveTo,
    NewCheckpoint, NewEffect, Page, Record, SaveOutcome, StateError, States, Status, StepIndex,
    Values,
};
use crate::store::StoreError;

/// Agents' states in the store in a folder. Connects when first used.
#[derive(Debug)]
pub struct SqliteStates {
    database: PathBuf,
    write_queue: WriteQueue,
    /// Open connections that are not in use.
    idle: Mutex<Vec<Connection>>,
    last: Mutex<ValueCache>,
    loaded: Mutex<Option<LoadedValues>>,
}

/// The values that were loaded last. A checkpoint is immutable, so they stay valid.
#[derive(Debug)]
struct LoadedValues {
    step: i64,
    digest: Digest,
    values: Arc<Values>,
}

impl SqliteStates {
    /// The states in the store in the folder `dir`. The store must exist when the handle is first
    /// used.
    #[must_use]
    pub fn at(dir: &Path) -> Self {
        Self {
            database: dir.join(DATABASE),
            write_queue: WriteQueue::default(),
            idle: Mutex::default(),
            last: Mutex::default(),
            loaded: Mutex::default(),
        }
    }

    /// Like [`Self::at`], but creates the store if there is none.
    pub fn create(dir: &Path) -> Result<Self, StateError> {
        let SqliteStore { db, .. } = SqliteStore::create(dir)?;
        Ok(Self { idle: Mutex::new(vec![db]), ..Self::at(dir) })
    }

    fn connect(&self) -> Result<Connection, StateError> {
        Ok(schema::open(&self.database)?)
    }

    /// Reads in one transaction: no writer waits for it or changes what it sees.
    fn read<T>(
        &self,
        doing: &'static str,
        read: impl FnOnce(&Connection) -> rows::Result<T>,
    ) -> Result<T, StateError> {
        let idle = lock(&self.idle).pop();
        let db = match idle {
            Some(db) => db,
            None => self.connect()?,
        };
        let answer = (|| {
            let moment = db.unchecked_transaction()?;
            read(&moment)
        })();
        lock(&self.idle).push(db);
        answer.map_err(|error| failure(&self.database, doing, error))
    }

    /// Writes durably, all or nothing. `write` must not return an error after it wrote something:
    /// other jobs share its transaction.
    fn write<T: Send + 'static>(
        &self,
        doing: &'static str,
        write: impl FnOnce(&Connection) -> rows::Result<T> + Send + 'static,
    ) -> Result<T, StateError> {
        self.write_with_cache(doing, move |writer| {
            writer.forget_all();
            write(&writer.db)
        })
    }

    /// Like [`Self::write`], for a job that keeps the writer's cache up to date.
    fn write_with_cache<T: Send + 'static>(
        &self,
        doing: &'static str,
        write: impl FnOnce(&mut Writer) -> rows::Result<T> + Send + 'static,
    ) -> Result<T, StateError> {
        let database = self.database.clone();
        self.write_queue.commit(
            &|| self.connect(),
            &|error| StateError::Store(error_at(&self.database, doing, error)),
            move |writer| {
                write(writer).map_err(|error| match error {
                    RowError::Sqlite(error) => JobError::Failed(error),
                    error => JobError::Refused(failure(&database, doing, error)),
                })
            },
        )
    }

    /// The values of a step. The ones loaded last are cached.
    fn values(&self, db: &Connection, key: &CheckpointKey, row: &StepRow) -> rows::Result<Values> {
        let cached = match &*lock(&self.loaded) {
            Some(loaded) if loaded.step == row.id && loaded.digest == row.digest => {
                Some(Arc::clone(&loaded.values))
            }
            _ => None,
        };
        if let Some(values) = cached {
            return Ok(Values::clone(&values));
        }
        let (values, size) = Self::read_values(db, key, row)?;
        if size <= MOST_LOADED {
            let loaded =
                LoadedValues { step: row.id, digest: row.digest, values: Arc::new(values.clone()) };
            *lock(&self.loaded) = Some(loaded);
        }
        Ok(values)
    }

    /// Reads and verifies the values of a step. Also returns the number of bytes read.
    fn read_values(
        db: &Connection,
        key: &CheckpointKey,
        row: &StepRow,
    ) -> rows::Result<(Values, usize)> {
        let packed = rows::body_of(db, row.id)?;
        let damaged = |why: String| StateError::Damaged { what: key.to_string(), why };
        let body = tree::unpack(&packed)
            .ok_or_else(|| damaged("its values cannot be unpacked".to_owned()))?;
        let mut hasher = head_hasher(&row.name, row.status, row.error.as_deref());
        let mut nodes = Nodes::of(db)?;
        let values =
            nodes.read_ahead(&body).and_then(|()| tree::read(&body, 4, &mut hasher, &mut nodes));
        let values = values.map_err(|error| match error {
            RowError::Tree(broken) => damaged(broken.to_string()).into(),
            error => error,
        })?;
        let found = Digest(*hasher.finalize().as_bytes());
        if found != row.digest {
            let expected = row.digest;
            return Err(damaged(format!("its digest should be {expected} and is {found}")).into());
        }
        let [state, context, variables, metadata] =
            <[Value; 4]>::try_from(values).expect("four were read");
        Ok((Values { state, context, variables, metadata }, packed.len() + nodes.read))
    }
}

/// Values with more bytes than this are not cached.
const MOST_LOADED: usize = 16 << 20;

/// Converts an error of rows into the public one.
fn failure(database: &Path, doing: &'static str, error: RowError) -> StateError {
    match error {
        RowError::Sqlite(error) => StateError::Store(error_at(database, doing, error)),
        RowError::State(error) => error,
        RowError::Tree(broken) => {
            StateError::Damaged { what: "the state".to_owned(), why: broken.to_string() }
        }
        RowError::Swept => {
            StateError::NotCommitted { why: "unused state was deleted at the same time".to_owned() }
        }
    }
}

impl States for SqliteStates {
    fn save(&self, new: &NewCheckpoint<'_>) -> Result<SaveOutcome, StateError> {
        let doing = "saving a checkpoint";
        let mut kept = lock(&self.last).take(new.execution);
        loop {
            let prepared = prepare(new, &mut kept)?;
            let request = SaveRequest {
                execution: new.execution.clone(),
                branch: new.branch.cloned(),
                attempt: new.attempt,
                parent: new.expect.parent().cloned(),
                is_first: new.expect.is_first(),
                session: new.session.cloned(),
            };
            let written = self.write_with_cache(doing, move |writer| {
                match save(writer, &request, prepared) {
                    Err(RowError::Swept) => Ok(None),
                    written => written.map(Some),
                }
            })?;
            let Some(WriteOutcome { saved, sweeps }) = written else {
                kept = SavedValues::default();
                continue;
            };
            // Nodes of a save that wrote nothing have no numbers, so the values cannot be reused.
            if saved.is_new {
                kept.sweeps = Some(sweeps);
                lock(&self.last).put(new.execution, kept);
            }
            return Ok(saved);
        }
    }

    fn find(&self, id: &CheckpointId) -> Result<Option<Record>, StateError> {
        self.read("looking for a checkpoint", |db| {
            let Some(execution) = rows::execution(db, &id.execution)? else { return Ok(None) };
            match named(db, &execution, id)? {
                Some((row, is_newest)) => rows::record(db, &id.execution, row, is_newest).map(Some),
                None => Ok(None),
            }
        })
    }

    fn load(&self, id: &CheckpointId) -> Result<Option<Checkpoint>, StateError> {
        self.read("loading a checkpoint", |db| {
            let Some(execution) = rows::execution(db, &id.execution)? else { return Ok(None) };
            let Some((row, is_newest)) = named(db, &execution, id)? else { return Ok(None) };
            let record = rows::record(db, &id.execution, row.clone(), is_newest)?;
            let values = self.values(db, &record.key, &row)?;
            Ok(Some(Checkpoint { record, values }))
        })
    }

    fn list(&self, query: &ListQuery<'_>) -> Result<Page, StateError> {
        self.read("listing checkpoints", |db| list(db, query))
    }

    fn last_successful(
        &self,
        id: &ExecutionId,
        branch: Option<&BranchName>,
        before: Option<StepIndex>,
    ) -> Result<Option<Record>, StateError> {
        self.read("looking for the last success", |db| {
            let Some(execution) = rows::execution(db, id)? else { return Ok(None) };
            let branch = branch_of(db, id, &execution, branch)?;
            let lineage = Lineage::of(db, branch.line)?;
            let mut passed = None;
            let mut found = None;
            rows::each_step_before(db, execution.id, before, &mut |row| {
                if passed == Some(row.step) || !lineage.has(&row) {
                    return Ok(true);
                }
                passed = Some(row.step);
                if row.status == Status::Success {
                    found = Some(row.id);
                }
                Ok(found.is_none())
            })?;
            match found {
                Some(found) => record_at(db, id, &execution, found),
                None => Ok(None),
            }
        })
    }

    fn head(
        &self,
        id: &ExecutionId,
        branch: Option<&BranchName>,
    ) -> Result<Option<Head>, StateError> {
        self.read("looking for the head of a branch", |db| {
            let Some(execution) = rows::execution(db, id)? else { return Ok(None) };
            let branch = branch_of(db, id, &execution, branch)?;
            let record = match rows::head_of(db, branch.line)? {
                Some(head) => record_at(db, id, &execution, head)?,
                None => None,
            };
            let line = LineId(branch.line.cast_unsigned());
            Ok(Some(Head { branch: branch.name, line, record }))
        })
    }

    fn has_line(&self, id: &ExecutionId, line: LineId) -> Result<bool, StateError> {
        self.read("looking for a line", |db| match rows::execution(db, id)? {
            Some(execution) => rows::has_line(db, execution.id, line.0.cast_signed()),
            None => Ok(false),
        })
    }

    fn executions(&self) -> Result<Executions, StateError> {
        self.read("listing executions", |db| {
            let mut executions = Vec::new();
            for (row, id, session, checkpoints) in rows::executions(db)? {
                let mut branches = rows::branches(db, row.id)?;
                branches.sort_by_key(|branch| (branch.id != row.branch, branch.id));
                let head = match branches.first() {
                    Some(current) => rows::head_of(db, current.line)?,
                    None => None,
                };
                let head = match head {
                    Some(head) => record_at(db, &id, &row, head)?,
                    None => None,
                };
                let branches = branches.into_iter().map(|branch| branch.name).collect();
                executions.push(Execution { id, branches, session, checkpoints, head });
            }
            Ok(Executions { executions, damaged: Vec::new() })
        })
    }

    fn delete(&self, key: &CheckpointKey) -> Result<bool, StateError> {
        drop(lock(&self.last).take(&key.execution));
        let key = key.clone();
        self.write("deleting a checkpoint", move |db| {
            let Some(execution) = rows::execution(db, &key.execution)? else { return Ok(false) };
            let found = rows::place_of(db, execution.id, key.step, key.attempt)?;
            let Some(place) = found else { return Ok(false) };
            rows::delete_step(db, execution.id, place)?;
            if !rows::has_steps(db, execution.id)? {
                rows::delete_execution(db, execution.id)?;
            }
            Ok(true)
        })
    }

    fn delete_execution(&self, id: &ExecutionId) -> Result<bool, StateError> {
        drop(lock(&self.last).take(id));
        let id = id.clone();
        self.write("deleting an execution", move |db| {
            let Some(execution) = rows::execution(db, &id)? else { return Ok(false) };
            rows::delete_execution(db, execution.id)?;
            Ok(true)
        })
    }

    fn delete_of_session(&self, session: &SessionId) -> Result<usize, StateError> {
        let session = session.clone();
        self.write("deleting a session's executions", move |db| {
            rows::delete_of_session(db, &session)
        })
    }

    fn fork(&self, from: &CheckpointKey, name: &BranchName) -> Result<(), StateError> {
        let (from, name) = (from.clone(), name.clone());
        self.write("forking an execution", move |db| {
            let id = &from.execution;
            let execution = known(db, id)?;
            let (row, _) = named(db, &execution, &from.id())?
                .ok_or_else(|| StateError::NotFound { id: from.id() })?;
            if rows::branch_named(db, execution.id, &name)?.is_some() {
                let (execution, branch) = (id.clone(), name);
                return Err(StateError::BranchExists { execution, branch }.into());
            }
            let branch = rows::insert_branch(db, execution.id, &name)?;
            let line = rows::insert_line(db, execution.id, branch, Some(&row))?;
            rows::set_line(db, branch, line)?;
            rows::set_current(db, execution.id, branch)
        })
    }

    fn switch(&self, id: &ExecutionId, branch: &BranchName) -> Result<(), StateError> {
        let (id, branch) = (id.clone(), branch.clone());
        self.write("changing to a branch", move |db| {
            let execution = known(db, &id)?;
            let branch = branch_of(db, &id, &execution, Some(&branch))?;
            rows::set_current(db, execution.id, branch.id)
        })
    }

    fn move_head(&self, step: &HeadMove<'_>) -> Result<MoveOutcome, StateError> {
        enum MoveTarget {
            Checkpoint(CheckpointKey),
            Line(LineId),
        }
        let to = match step.to {
            MoveTo::Checkpoint(key) => MoveTarget::Checkpoint(key.clone()),
            MoveTo::Line(line) => MoveTarget::Line(line),
        };
        let (id, branch, by) = (step.execution.clone(), step.branch.cloned(), step.by);
        self.write("moving a head", move |db| {
            let execution = known(db, &id)?;
            let done = match by {
                Some(by) => rows::head_move(db, execution.id, by)?,
                None => None,
            };
            let (branch, from, to) = match done {
                Some((branch, from, to)) => (rows::branch(db, branch)?, from, to),
                None => {
                    let branch = branch_of(db, &id, &execution, branch.as_ref())?;
                    let line = match to {
                        MoveTarget::Line(line) => {
                            let to = line.0.cast_signed();
                            if !rows::has_line(db, execution.id, to)? {
                                return Err(StateError::NoLine { execution: id, line }.into());
                            }
                            to
                        }
                        MoveTarget::Checkpoint(key) => {
                            let found = match key.execution == id {
                                true => named(db, &execution, &key.id())?,
                                false => None,
                            };
                            let not_found = || StateError::NotFound { id: key.id() };
                            let (row, _) = found.ok_or_else(not_found)?;
                            rows::insert_line(db, execution.id, branch.id, Some(&row))?
                        }
                    };
                    rows::set_line(db, branch.id, line)?;
                    if let Some(by) = by {
                        let moved = (branch.id, branch.line, line);
                        rows::insert_head_move(db, execution.id, by, moved)?;
                    }
                    let from = branch.line;
                    (branch, from, line)
                }
            };
            let line = |line: i64| LineId(line.cast_unsigned());
            Ok(MoveOutcome { branch: branch.name, from: line(from), to: line(to) })
        })
    }

    fn count_retry(&self, id: &ExecutionId, step: StepIndex, most: u32) -> Result<u32, StateError> {
        let id = id.clone();
        self.write("counting a retry", move |db| {
            let execution = known(db, &id)?;
            let count = ledger::retries(db, execution.id, step)?;
            if count >= most {
                return Err(StateError::RetriesExhausted { execution: id, step, count }.into());
            }
            ledger::set_retries(db, execution.id, step, count + 1)?;
            Ok(count + 1)
        })
    }

    fn declare_effect(&self, new: &NewEffect<'_>) -> Result<IntentOutcome, StateError> {
        let id = new.execution.clone();
        let effect = Effect {
            key: new.key.to_owned(),
            step: new.step,
            intent: new.intent.clone(),
            intended_at: new.time,
            receipt: None,
        };
        let intent = ledger::json_text("intent", new.intent)?;
        self.write("noting an effect", move |db| {
            // The first step may have effects before anything is saved.
            let execution = match rows::execution(db, &id)? {
                Some(execution) => execution,
                None => begin(db, &id, None)?.execution,
            };
            if let Some(effect) = ledger::effect(db, execution.id, &effect.key)? {
                return Ok(IntentOutcome { effect, is_new: false });
            }
            ledger::insert_effect(db, execution.id, &effect, &intent)?;
            Ok(IntentOutcome { effect, is_new: true })
        })
    }

    fn confirm_effect(
        &self,
        id: &ExecutionId,
        key: &str,
        receipt: &Value,
        time: Timestamp,
    ) -> Result<(), StateError> {
        let receipt = ledger::json_text("receipt", receipt)?;
        let (id, key) = (id.clone(), key.to_owned());
        self.write("noting a receipt", move |db| {
            let is_known = match rows::execution(db, &id)? {
                Some(execution) => ledger::set_receipt(db, execution.id, &key, &receipt, time)?,
                None => false,
            };
            if is_known { Ok(()) } else { Err(StateError::NoIntent { execution: id, key }.into()) }
        })
    }

    fn withdraw_effect(&self, id: &ExecutionId, key: &str) -> Result<bool, StateError> {
        let (id, key) = (id.clone(), key.to_owned());
        self.write("withdrawing an effect", move |db| match rows::execution(db, &id)? {
            Some(execution) => ledger::delete_intent(db, execution.id, &key),
            None => Ok(false),
        })
    }

    fn effects(&self, id: &ExecutionId) -> Result<Vec<Effect>, StateError> {
        self.read("reading effects", |db| match rows::execution(db, id)? {
            Some(execution) => ledger::effects(db, execution.id),
            None => Ok(Vec::new()),
        })
    }

    fn points(&self) -> Result<HashSet<PointId>, StateError> {
        self.read("looking for points with a state", |db| {
            Ok(rows::points(db)?.into_iter().collect())
        })
    }

    fn put_document(
        &self,
        category: Category,
        key: &DocumentKey,
        document: &Value,
    ) -> Result<(), StateError> {
        let mut kept = SavedValue::default();
        let mut nodes = NewNodes::default();
        kept.update(document, &mut tree::Path::root(category.name()), &mut nodes)?;
        let mut pieces = Pieces::default();
        kept.write(&mut pieces);
        let digest = pieces.digest();
        let (body, key) = (pieces.into_body(), key.clone());
        self.write("keeping a document", move |db| {
            rows::keep_nodes(db, nodes)?;
            ledger::put_document(db, category, &key, &digest, &body.packed())
        })
    }

    fn document(&self, category: Category, key: &DocumentKey) -> Result<Option<Value>, StateError> {
        self.read("reading a document", |db| ledger::document(db, category, key))
    }

    fn documents(&self, category: Category) -> Result<Vec<DocumentKey>, StateError> {
        self.read("listing documents", |db| ledger::documents(db, category))
    }

    fn delete_document(&self, category: Category, key: &DocumentKey) -> Result<bool, StateError> {
        let key = key.clone();
        self.write("deleting a document", move |db| ledger::delete_document(db, category, &key))
    }

    fn collect(&self) -> Result<(), StateError> {
        // Mark in a read transaction, so that writers do not wait. The transaction that sweeps
        // marks what was added since.
        let mut used = HashSet::new();
        let (last, deleted) = self.read("looking for unused nodes", |db| {
            Ok((mark(db, 0, &mut used)?, rows::deleted(db)?))
        })?;
        self.write("deleting unused nodes", move |db| {
            let mut used = used;
            // The number of a deleted step may have been reused: then mark everything again.
            let last = if rows::deleted(db)? == deleted { last } else { 0 };
            mark(db, last, &mut used)?;
            rows::sweep(db, &|number| used.contains(&number))
        })?;
        let db = self.connect()?;
        rows::vacuum(&db).map_err(|error| failure(&self.database, "reclaiming space", error))
    }

    fn check(&self) -> Result<Vec<String>, StateError> {
        self.read("checking states", |db| {
            let mut damage = Vec::new();
            let mut known = HashMap::new();
            let mut steps = Vec::new();
            rows::each_step(db, &mut |step| steps.push(step))?;
            for step in steps {
                let checked =
                    step.and_then(|(execution, row)| check_step(db, execution, &row, &mut known));
                match checked {
                    Ok(wrong) => damage.extend(wrong),
                    Err(RowError::State(error)) => damage.push(error.to_string()),
                    Err(error) => return Err(error),
                }
            }
            ledger::check(db, &mut damage)?;
            Ok(damage)
        })
    }
}

impl From<StoreError> for RowError {
    fn from(error: StoreError) -> Self {
        Self::State(error.into())
    }
}
