//! Agents' states: executions, branches, steps and attempts, and the trait of a place to keep them.
//!
//! A *checkpoint* is an agent's state at one step: immutable, under a typed key. Its *record* is
//! everything except the values. The checkpoints of an execution follow one another on *lines*; a
//! *branch* is a named line with a head. Rolling back or forking starts a new line at a checkpoint
//! of another one. Neither copies anything, and the old line stays.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod conversation;
mod key;

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};

pub use self::key::{
    Attempt, BranchName, CheckpointId, CheckpointKey, DocumentKey, ExecutionId, InvalidKey, LineId,
    StepIndex,
};
use crate::id::{PointId, RewindId, SessionId, Timestamp};
use crate::store::StoreError;

/// A place to keep agents' states. Any number of threads and processes may use one at once.
pub trait States: Send + Sync {
    /// Saves a checkpoint, durably.
    ///
    /// If the newest attempt of this step on the branch already has the same content (apart from
    /// the time), and the expected parent if one is given, this returns that attempt and writes
    /// nothing. Otherwise it adds a new attempt; nothing is ever overwritten. Fails with
    /// [`StateError::Conflict`] if the head of the branch is not the one in
    /// [`NewCheckpoint::expect`].
    fn save(&self, new: &NewCheckpoint<'_>) -> Result<SaveOutcome, StateError>;

    /// The record with this id. An id without an attempt means the newest one of that step on the
    /// current branch.
    fn find(&self, id: &CheckpointId) -> Result<Option<Record>, StateError>;

    /// Like [`Self::find`], with the values, which are verified.
    fn load(&self, id: &CheckpointId) -> Result<Option<Checkpoint>, StateError>;

    /// The records of an execution, sorted by step and attempt as numbers.
    fn list(&self, query: &ListQuery<'_>) -> Result<Page, StateError>;

    /// The last step on a branch (`None`: the current one) whose newest attempt succeeded; only
    /// steps before `before`, if given.
    fn last_successful(
        &self,
        execution: &ExecutionId,
        branch: Option<&BranchName>,
        before: Option<StepIndex>,
    ) -> Result<Option<Record>, StateError>;

    /// The head of a branch (`None`: the current one). Returns `None` if there is no such
    /// execution.
    fn head(
        &self,
        execution: &ExecutionId,
        branch: Option<&BranchName>,
    ) -> Result<Option<Head>, StateError>;

    /// Whether an execution has a line with this number.
    fn has_line(&self, execution: &ExecutionId, line: LineId) -> Result<bool, StateError>;

    /// All executions, the most recently saved one first.
    fn executions(&self) -> Result<Executions, StateError>;

    /// Deletes one checkpoint; returns whether it existed. Later ones on its line stay. Deleting
    /// the last checkpoint of an execution deletes the execution.
    fn delete(&self, key: &CheckpointKey) -> Result<bool, StateError>;

    /// Deletes an execution with everything that belongs to it; returns whether it existed.
    fn delete_execution(&self, execution: &ExecutionId) -> Result<bool, StateError>;

    /// Deletes the executions whose last save came from a session; returns how many.
    fn delete_of_session(&self, session: &SessionId) -> Result<usize, StateError>;

    /// Creates a branch that continues from `from`, in constant time, and makes it the current one.
    fn fork(&self, from: &CheckpointKey, name: &BranchName) -> Result<(), StateError>;

    /// Makes an existing branch the current one.
    fn switch(&self, execution: &ExecutionId, branch: &BranchName) -> Result<(), StateError>;

    /// Moves the head of a branch, in constant time. Repeating a move with the same
    /// [`HeadMove::by`] changes nothing and returns the same outcome.
    fn move_head(&self, step: &HeadMove<'_>) -> Result<MoveOutcome, StateError>;

    /// Counts one more retry of a step, durably, and returns the count. Fails with
    /// [`StateError::RetriesExhausted`] after `most` retries. A success of the step resets the
    /// count.
    fn count_retry(
        &self,
        execution: &ExecutionId,
        step: StepIndex,
        most: u32,
    ) -> Result<u32, StateError>;

    /// Records, durably, that an effect is about to happen. If it was declared before, returns the
    /// existing record and writes nothing. Of several concurrent callers exactly one gets `is_new`.
    fn declare_effect(&self, new: &NewEffect<'_>) -> Result<IntentOutcome, StateError>;

    /// Records, durably, that a declared effect has happened. The first receipt counts; later ones
    /// are ignored.
    fn confirm_effect(
        &self,
        execution: &ExecutionId,
        key: &str,
        receipt: &Value,
        time: Timestamp,
    ) -> Result<(), StateError>;

    /// Removes a declared effect that has no receipt, so that it can be declared again; returns
    /// whether it did.
    fn withdraw_effect(&self, execution: &ExecutionId, key: &str) -> Result<bool, StateError>;

    /// All effects of an execution, in the order in which they were declared.
    fn effects(&self, execution: &ExecutionId) -> Result<Vec<Effect>, StateError>;

    /// The points that checkpoints refer to. Retention must keep them.
    fn points(&self) -> Result<HashSet<PointId>, StateError>;

    /// Stores a document and replaces the one with the same key.
    fn put_document(
        &self,
        category: Category,
        key: &DocumentKey,
        document: &Value,
    ) -> Result<(), StateError>;
    /// The document with this key, if there is one.
    fn document(&self, category: Category, key: &DocumentKey) -> Result<Option<Value>, StateError>;
    /// The keys of all documents in a category, sorted.
    fn documents(&self, category: Category) -> Result<Vec<DocumentKey>, StateError>;
    /// Deletes a document; returns whether it existed.
    fn delete_document(&self, category: Category, key: &DocumentKey) -> Result<bool, StateError>;

    /// Reclaims the space of deleted data.
    fn collect(&self) -> Result<(), StateError>;

    /// Reads and verifies everything; returns one sentence for each thing that is damaged.
    fn check(&self) -> Result<Vec<String>, StateError>;
}

/// The kinds of documents. Checkpoints are not documents; they have methods of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    /// Conversations.
    Conversation,
    /// Histories.
    History,
    /// Sessions.
    Session,
    /// Settings.
    Config,
}

impl Category {
    /// All categories.
    pub const ALL: [Self; 4] = [Self::Conversation, Self::History, Self::Session, Self::Config];

    /// The name in file paths and commands.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Conversation => "conversation",
            Self::History => "history",
            Self::Session => "session",
            Self::Config => "config",
        }
    }
}

/// How a step ended, if it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Status {
    /// The step succeeded.
    #[default]
    Success,
    /// The step failed.
    Failed,
    /// The step has not ended.
    Pending,
}

impl Status {
    /// All statuses.
    pub const ALL: [Self; 3] = [Self::Success, Self::Failed, Self::Pending];

    /// The name in files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Pending => "pending",
        }
    }

    /// The status with this name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// The JSON values that an agent saves at a step and gets back. All are `{}` by default.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    /// The agent's own state.
    pub state: Value,
    /// The context the agent works in.
    pub context: Value,
    /// Named variables.
    pub variables: Value,
    /// Anything else about the step.
    pub metadata: Value,
}

impl Default for Values {
    fn default() -> Self {
        Self { state: json!({}), context: json!({}), variables: json!({}), metadata: json!({}) }
    }
}

impl Values {
    pub(crate) const NAMES: [&'static str; 4] = ["state", "context", "variables", "metadata"];

    pub(crate) fn each(&self) -> [&Value; 4] {
        [&self.state, &self.context, &self.variables, &self.metadata]
    }
}

/// A checkpoint to save.
#[derive(Debug, Clone)]
pub struct NewCheckpoint<'a> {
    /// The execution; created by its first checkpoint.
    pub execution: &'a ExecutionId,
    /// `None`: the current one.
    pub branch: Option<&'a BranchName>,
    /// The step.
    pub step: StepIndex,
    /// `None`: the next one. A given attempt that exists with different content is
    /// [`StateError::Taken`].
    pub attempt: Option<Attempt>,
    /// The name of the step, for display.
    pub step_name: &'a str,
    /// When the step ended. Not part of the content that is compared.
    pub time: Timestamp,
    /// How the step ended.
    pub status: Status,
    /// The error of a failed step.
    pub error: Option<&'a str>,
    /// The values to save.
    pub values: &'a Values,
    /// The required head of the branch: compare and swap.
    pub expect: ExpectedHead<'a>,
    /// The point with the files that belong to it.
    pub point: Option<PointId>,
    /// The session that saves it. An execution belongs to the session that saved to it last.
    pub session: Option<&'a SessionId>,
}

impl<'a> NewCheckpoint<'a> {
    /// The next attempt of a step that succeeded, on the current branch, of no session.
    #[must_use]
    pub fn success(
        execution: &'a ExecutionId,
        step: StepIndex,
        step_name: &'a str,
        time: Timestamp,
        values: &'a Values,
    ) -> Self {
        Self {
            execution,
            branch: None,
            step,
            attempt: None,
            step_name,
            time,
            status: Status::Success,
            error: None,
            values,
            expect: ExpectedHead::Anything,
            point: None,
            session: None,
        }
    }
}

/// The head that a branch must have for a checkpoint to be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExpectedHead<'a> {
    /// Any head.
    #[default]
    Anything,
    /// This checkpoint, which becomes the parent. `None`: there must be no checkpoint yet.
    Newest(Option<&'a CheckpointId>),
}

impl<'a> ExpectedHead<'a> {
    /// The checkpoint that must be the head, if one must.
    #[must_use]
    pub fn parent(self) -> Option<&'a CheckpointId> {
        match self {
            Self::Anything => None,
            Self::Newest(parent) => parent,
        }
    }

    /// Whether there must be no checkpoint yet.
    #[must_use]
    pub fn is_first(self) -> bool {
        self == Self::Newest(None)
    }
}

/// The result of saving a [`NewCheckpoint`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveOutcome {
    /// The saved checkpoint, or the equal one that existed.
    pub record: Record,
    /// Whether this call wrote it; false if it existed already.
    pub is_new: bool,
}

/// A checkpoint without its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Its key.
    pub key: CheckpointKey,
    /// Whether it is the newest attempt on the current branch, which its id without an attempt
    /// means.
    pub is_newest: bool,
    /// The branch it was saved to.
    pub branch: BranchName,
    /// The head of the branch before it was saved.
    pub parent: Option<(StepIndex, Attempt)>,
    /// The name of the step.
    pub step_name: String,
    /// When the step ended.
    pub time: Timestamp,
    /// How the step ended.
    pub status: Status,
    /// The error of a failed step.
    pub error: Option<String>,
    /// The point with the files that belong to it.
    pub point: Option<PointId>,
}

impl Record {
    /// The shortest id that refers to it.
    #[must_use]
    pub fn id(&self) -> CheckpointId {
        let CheckpointKey { execution, step, attempt } = &self.key;
        let attempt = (!self.is_newest).then_some(*attempt);
        CheckpointId { execution: execution.clone(), step: *step, attempt }
    }
}

/// A checkpoint with its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Everything except the values.
    pub record: Record,
    /// The values.
    pub values: Values,
}

/// Selects records of an execution.
#[derive(Debug, Clone, Copy)]
pub struct ListQuery<'a> {
    /// The execution.
    pub execution: &'a ExecutionId,
    /// Which of its records.
    pub scope: ListScope<'a>,
    /// Only records after this one.
    pub after: Option<(StepIndex, Attempt)>,
    /// The most records to return.
    pub limit: Option<usize>,
}

/// Which records a list includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListScope<'a> {
    /// The newest attempt of each step on a branch (`None`: the current one).
    Branch(Option<&'a BranchName>),
    /// Every attempt on every line, including lines that no branch is on.
    All,
}

/// A part of an execution's records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// The records, by step and attempt.
    pub records: Vec<Record>,
    /// Records that could not be read.
    pub damaged: Vec<Damage>,
    /// Whether there are more records after these.
    pub more: bool,
}

/// All executions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Executions {
    /// The executions, the most recently saved one first.
    pub executions: Vec<Execution>,
    /// Executions that could not be read.
    pub damaged: Vec<Damage>,
}

/// Stored data that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// What it is, for example a path or an id.
    pub what: String,
    /// Why it cannot be read.
    pub why: String,
}

/// One run of an agent through its steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// Its id.
    pub id: ExecutionId,
    /// All branches, the current one first.
    pub branches: Vec<BranchName>,
    /// The session that saved to it last.
    pub session: Option<SessionId>,
    /// The number of checkpoints, counting every attempt.
    pub checkpoints: u64,
    /// The head of the current branch.
    pub head: Option<Record>,
}

/// The head of a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The branch.
    pub branch: BranchName,
    /// The line it is on.
    pub line: LineId,
    /// The head itself; `None` if there is no checkpoint yet.
    pub record: Option<Record>,
}

/// A request to move the head of a branch.
#[derive(Debug, Clone)]
pub struct HeadMove<'a> {
    /// The execution.
    pub execution: &'a ExecutionId,
    /// `None`: the current one.
    pub branch: Option<&'a BranchName>,
    /// Where to.
    pub to: MoveTo<'a>,
    /// The rewind that this move is part of; makes the move idempotent.
    pub by: Option<RewindId>,
}

/// Where a head moves to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveTo<'a> {
    /// A new line that continues from this checkpoint, which may be on any line.
    Checkpoint(&'a CheckpointKey),
    /// An existing line.
    Line(LineId),
}

/// The result of a move: the branch, the line it left and the line it is on now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveOutcome {
    /// The branch.
    pub branch: BranchName,
    /// The line it left.
    pub from: LineId,
    /// The line it is on now.
    pub to: LineId,
}

/// Something an agent is about to do that cannot be undone, such as sending mail.
#[derive(Debug, Clone)]
pub struct NewEffect<'a> {
    /// The execution, which is created if it does not exist.
    pub execution: &'a ExecutionId,
    /// The agent's own name for it. A retry of the same effect must use the same key.
    pub key: &'a str,
    /// The step that has the effect.
    pub step: Option<StepIndex>,
    /// What the agent is about to do, in its own terms.
    pub intent: &'a Value,
    /// When it was declared.
    pub time: Timestamp,
}

/// The result of declaring a [`NewEffect`].
#[derive(Debug, Clone, PartialEq)]
pub struct IntentOutcome {
    /// The effect as recorded.
    pub effect: Effect,
    /// Whether this call wrote it; false if it existed already.
    pub is_new: bool,
}

/// A declared effect.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The agent's own name for it.
    pub key: String,
    /// The step that has the effect.
    pub step: Option<StepIndex>,
    /// What the agent was about to do.
    pub intent: Value,
    /// When it was declared.
    pub intended_at: Timestamp,
    /// The receipt and when it came. `None`: whether the effect happened is not known.
    pub receipt: Option<(Value, Timestamp)>,
}

/// Why states could not do what they were asked.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the fields are")]
pub enum StateError {
    #[error("Checkpoint {id} not found")]
    NotFound { id: CheckpointId },
    #[error("there is no execution {0}")]
    NoExecution(ExecutionId),
    #[error("execution {execution} has no branch {branch}")]
    NoBranch { execution: ExecutionId, branch: BranchName },
    #[error("execution {execution} has a branch {branch} already")]
    BranchExists { execution: ExecutionId, branch: BranchName },
    #[error("execution {execution} has no line {}", line.0)]
    NoLine { execution: ExecutionId, line: LineId },
    #[error("the parent {parent} of {id} does not exist")]
    MissingParent { id: CheckpointId, parent: CheckpointId },
    #[error(
        "{id} must {}, but branch {branch} is at {}",
        parent.as_ref().map_or_else(|| "be the first".to_owned(), |parent| format!("follow {parent}")),
        head.as_ref().map_or_else(|| "its beginning".to_owned(), ToString::to_string)
    )]
    Conflict {
        id: CheckpointId,
        /// `None`: there had to be no checkpoint yet.
        parent: Option<CheckpointId>,
        branch: BranchName,
        head: Option<CheckpointId>,
    },
    #[error("{key} already exists with different content")]
    Taken { key: CheckpointKey },
    #[error("No successful checkpoint found before step {step}")]
    NoSuccessBefore { step: StepIndex },
    #[error("step {step} of execution {execution} was retried {count} times, which is the limit")]
    RetriesExhausted { execution: ExecutionId, step: StepIndex, count: u32 },
    #[error("execution {execution} never declared the effect {key:?}")]
    NoIntent { execution: ExecutionId, key: String },
    #[error("{what} is damaged: {why}")]
    Damaged { what: String, why: String },
    #[error("{what} has format {found}; this Takeback knows formats up to {known}")]
    Newer { what: String, found: u64, known: u64 },
    #[error("cannot save the value at {path}: {why}")]
    Unserialisable { path: String, why: &'static str },
    #[error("{store} do not support {what}")]
    Unsupported { what: &'static str, store: &'static str },
    #[error("Could not acquire lock for {path}")]
    Locked { path: PathBuf },
    #[error("{path} cannot be used ({doing})")]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
    #[error("not committed, because a shared transaction failed: {why}")]
    NotCommitted { why: String },
    #[error(transparent)]
    InvalidKey(#[from] InvalidKey),
    #[error(transparent)]
    Store(#[from] StoreError),
}
