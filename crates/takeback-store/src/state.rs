//! An agent's state: executions, branches, steps and attempts, and what is asked of a place to keep
//! them in.
//!
//! A *checkpoint* is what an agent was at one step: immutable, under a typed key. Its *record* is all
//! but the values. An execution's checkpoints follow one another on *lines*; a *branch* is a named
//! line with a head. To roll back or to fork makes a new line that begins where another is left, so
//! neither copies anything, and what is left stays.

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod conversation;
pub mod key;

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

/// Where agents' states are kept. Any number of threads and processes may use one at once.
pub trait States: Send + Sync {
    /// Saves a checkpoint, durably.
    ///
    /// The content that the newest attempt of this step on the branch has already (all but the time),
    /// after the same parent if one is expected: that one is answered, and nothing is written. Other
    /// content, or a further try after it: a new attempt. Nothing is ever overwritten. If the branch
    /// does not stand where [`NewCheckpoint::expect`] says: [`StateError::Conflict`].
    fn save(&self, new: &NewCheckpoint<'_>) -> Result<SaveOutcome, StateError>;

    /// The record that an id names: without an attempt the newest of that step on the current branch.
    fn find(&self, id: &CheckpointId) -> Result<Option<Record>, StateError>;

    /// As [`Self::find`], with the values, each verified.
    fn load(&self, id: &CheckpointId) -> Result<Option<Checkpoint>, StateError>;

    /// The records of an execution, by step and attempt, as numbers.
    fn list(&self, query: &ListQuery<'_>) -> Result<Page, StateError>;

    /// The last step on a branch (`None`: the current one) whose newest attempt succeeded, before a step
    /// if one is given.
    fn last_successful(
        &self,
        execution: &ExecutionId,
        branch: Option<&BranchName>,
        before: Option<StepIndex>,
    ) -> Result<Option<Record>, StateError>;

    /// Where a branch stands (`None`: the current one). `None` if there is no such execution.
    fn head(
        &self,
        execution: &ExecutionId,
        branch: Option<&BranchName>,
    ) -> Result<Option<Head>, StateError>;

    /// Whether an execution has a line of this number.
    fn has_line(&self, execution: &ExecutionId, line: LineId) -> Result<bool, StateError>;

    /// All executions, the one last saved to first.
    fn executions(&self) -> Result<Executions, StateError>;

    /// Removes one checkpoint; whether it was there. What follows it on its line stays. An execution
    /// goes with its last checkpoint.
    fn delete(&self, key: &CheckpointKey) -> Result<bool, StateError>;

    /// Removes an execution with all that belongs to it; whether it was there.
    fn delete_execution(&self, execution: &ExecutionId) -> Result<bool, StateError>;

    /// Removes the executions that a session saved to last; how many.
    fn delete_of_session(&self, session: &SessionId) -> Result<usize, StateError>;

    /// Makes a branch that goes on from `from`, in constant time, and makes it the current one.
    fn fork(&self, from: &CheckpointKey, name: &BranchName) -> Result<(), StateError>;

    /// Makes a branch the current one.
    fn switch(&self, execution: &ExecutionId, branch: &BranchName) -> Result<(), StateError>;

    /// Moves the head of a branch, in constant time. To do the same move (by [`HeadMove::by`]) again
    /// changes nothing and answers the same.
    fn move_head(&self, step: &HeadMove<'_>) -> Result<MoveOutcome, StateError>;

    /// Counts one more retry of a step, durably, unless that would be more than `most`:
    /// [`StateError::RetriesExhausted`]. A success of the step ends the count.
    fn count_retry(
        &self,
        execution: &ExecutionId,
        step: StepIndex,
        most: u32,
    ) -> Result<u32, StateError>;

    /// Notes, durably, that an effect is about to happen. One that was noted before is answered as it
    /// stands, and nothing is written. Of several who intend the same, one is told that it is new.
    fn declare_effect(&self, new: &NewEffect<'_>) -> Result<IntentOutcome, StateError>;

    /// Notes, durably, that an intended effect has happened. Of several receipts the first stands.
    fn confirm_effect(
        &self,
        execution: &ExecutionId,
        key: &str,
        receipt: &Value,
        time: Timestamp,
    ) -> Result<(), StateError>;

    /// Removes an intention that has no receipt, so that it can be intended anew.
    fn withdraw_effect(&self, execution: &ExecutionId, key: &str) -> Result<bool, StateError>;

    /// All effects of an execution, in the order in which they were intended.
    fn effects(&self, execution: &ExecutionId) -> Result<Vec<Effect>, StateError>;

    /// The points that some checkpoint carries.
    fn points(&self) -> Result<HashSet<PointId>, StateError>;

    /// Keeps a document; takes the place of the one that had its key.
    fn put_document(
        &self,
        category: Category,
        key: &DocumentKey,
        document: &Value,
    ) -> Result<(), StateError>;
    fn document(&self, category: Category, key: &DocumentKey) -> Result<Option<Value>, StateError>;
    /// The keys of a category, sorted.
    fn documents(&self, category: Category) -> Result<Vec<DocumentKey>, StateError>;
    fn delete_document(&self, category: Category, key: &DocumentKey) -> Result<bool, StateError>;

    /// Gives back the space of what was deleted.
    fn collect(&self) -> Result<(), StateError>;

    /// Looks at everything that is kept; answers what is damaged, in words, empty if nothing is.
    fn check(&self) -> Result<Vec<String>, StateError>;
}

/// What the seeds call the kinds of things that are kept. Checkpoints have verbs of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    Conversation,
    History,
    Session,
    Config,
}

impl Category {
    pub const ALL: [Self; 4] = [Self::Conversation, Self::History, Self::Session, Self::Config];

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

/// How a step ended, if it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Status {
    #[default]
    Success,
    Failed,
    Pending,
}

impl Status {
    pub const ALL: [Self; 3] = [Self::Success, Self::Failed, Self::Pending];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Pending => "pending",
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

/// What an agent hands over at a step, and gets back. Any JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    pub state: Value,
    pub context: Value,
    pub variables: Value,
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

/// A checkpoint to be saved.
#[derive(Debug, Clone)]
pub struct NewCheckpoint<'a> {
    pub execution: &'a ExecutionId,
    /// `None`: the current one.
    pub branch: Option<&'a BranchName>,
    pub step: StepIndex,
    /// `None`: the next. Given, and taken by other content: [`StateError::Taken`].
    pub attempt: Option<Attempt>,
    pub step_name: &'a str,
    pub time: Timestamp,
    pub status: Status,
    pub error: Option<&'a str>,
    pub values: &'a Values,
    /// Where the branch must stand for this to be saved: compare and swap.
    pub expect: ExpectedHead<'a>,
    /// The files that belong to it.
    pub point: Option<PointId>,
    /// Whose it is. An execution belongs to the session that saved to it last.
    pub session: Option<&'a SessionId>,
}

/// Where a branch must stand for a checkpoint to be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExpectedHead<'a> {
    /// Wherever it stands.
    #[default]
    Anything,
    /// This one is the newest: what is saved follows it. `None`: there is none yet, and what is saved is
    /// the first.
    Newest(Option<&'a CheckpointId>),
}

impl<'a> ExpectedHead<'a> {
    /// The checkpoint that must be there.
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

/// What became of a [`NewCheckpoint`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaveOutcome {
    pub record: Record,
    /// Whether it was written, and not there already.
    pub is_new: bool,
}

/// A checkpoint without its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub key: CheckpointKey,
    /// Whether it is what its id without an attempt names: the newest attempt on the current branch.
    pub is_newest: bool,
    /// The branch it was saved to.
    pub branch: BranchName,
    /// The head before it.
    pub parent: Option<(StepIndex, Attempt)>,
    pub step_name: String,
    pub time: Timestamp,
    pub status: Status,
    pub error: Option<String>,
    pub point: Option<PointId>,
}

impl Record {
    /// The shortest id that names it.
    #[must_use]
    pub fn id(&self) -> CheckpointId {
        let CheckpointKey { execution, step, attempt } = &self.key;
        let attempt = (!self.is_newest).then_some(*attempt);
        CheckpointId { execution: execution.clone(), step: *step, attempt }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    pub record: Record,
    pub values: Values,
}

/// Which records are wanted.
#[derive(Debug, Clone, Copy)]
pub struct ListQuery<'a> {
    pub execution: &'a ExecutionId,
    pub scope: ListScope<'a>,
    /// Only what comes after this one.
    pub after: Option<(StepIndex, Attempt)>,
    pub limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListScope<'a> {
    /// The newest attempt of each step on a branch (`None`: the current one).
    Branch(Option<&'a BranchName>),
    /// Every attempt on every branch, and what was left behind.
    All,
}

/// Some of an execution's records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    pub records: Vec<Record>,
    /// What could not be read, and is named here instead.
    pub damaged: Vec<Damage>,
    /// Whether there are others after these.
    pub more: bool,
}

/// All executions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Executions {
    pub executions: Vec<Execution>,
    pub damaged: Vec<Damage>,
}

/// Something that is kept and cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    pub what: String,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    pub id: ExecutionId,
    /// The current branch first.
    pub branches: Vec<BranchName>,
    /// The session that saved to it last.
    pub session: Option<SessionId>,
    /// How many checkpoints there are, every attempt counted.
    pub checkpoints: u64,
    /// The head of the current branch.
    pub head: Option<Record>,
}

/// Where a branch stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub branch: BranchName,
    pub line: LineId,
    pub record: Option<Record>,
}

/// Moves the head of a branch of an execution.
#[derive(Debug, Clone)]
pub struct HeadMove<'a> {
    pub execution: &'a ExecutionId,
    /// `None`: the current one.
    pub branch: Option<&'a BranchName>,
    pub to: MoveTo<'a>,
    /// The rewind that this is part of.
    pub by: Option<RewindId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveTo<'a> {
    /// Onto a new line that goes on from this checkpoint, whatever line it is on.
    Checkpoint(&'a CheckpointKey),
    /// Onto a line that there is already.
    Line(LineId),
}

/// The branch and the lines that a move led from and to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveOutcome {
    pub branch: BranchName,
    pub from: LineId,
    pub to: LineId,
}

/// Something an agent does to the world that cannot be taken back.
#[derive(Debug, Clone)]
pub struct NewEffect<'a> {
    pub execution: &'a ExecutionId,
    /// The agent's own name for it: the same effect, tried again, has the same.
    pub key: &'a str,
    pub step: Option<StepIndex>,
    pub intent: &'a Value,
    pub time: Timestamp,
}

/// What became of a [`NewEffect`].
#[derive(Debug, Clone, PartialEq)]
pub struct IntentOutcome {
    pub effect: Effect,
    /// Whether it was written, and not there already.
    pub is_new: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    pub key: String,
    pub step: Option<StepIndex>,
    pub intent: Value,
    pub intended_at: Timestamp,
    /// `None`: nobody knows whether it happened.
    pub receipt: Option<(Value, Timestamp)>,
}

#[derive(Debug, thiserror::Error)]
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
    #[error("the parent {parent} of {id} is not there")]
    MissingParent { id: CheckpointId, parent: CheckpointId },
    #[error(
        "{id} was to {}, but branch {branch} stands at {}",
        parent.as_ref().map_or_else(|| "be the first".to_owned(), |parent| format!("follow {parent}")),
        head.as_ref().map_or_else(|| "its beginning".to_owned(), ToString::to_string)
    )]
    Conflict {
        id: CheckpointId,
        /// `None`: there was to be none.
        parent: Option<CheckpointId>,
        branch: BranchName,
        head: Option<CheckpointId>,
    },
    #[error("{key} is there already, with other content")]
    Taken { key: CheckpointKey },
    #[error("No successful checkpoint found before step {step}")]
    NoSuccessBefore { step: StepIndex },
    #[error("step {step} of execution {execution} was retried {count} times, which is the most")]
    RetriesExhausted { execution: ExecutionId, step: StepIndex, count: u32 },
    #[error("execution {execution} never intended the effect {key:?}")]
    NoIntent { execution: ExecutionId, key: String },
    #[error("{what} is damaged: {why}")]
    Damaged { what: String, why: String },
    #[error("{what} has format {found}; this Takeback knows formats up to {known}")]
    Newer { what: String, found: u64, known: u64 },
    #[error("the value at {path} cannot be kept: {why}")]
    Unserialisable { path: String, why: &'static str },
    #[error("{what} is not to be had with {store}")]
    Unsupported { what: &'static str, store: &'static str },
    #[error("Could not acquire lock for {path}")]
    Locked { path: PathBuf },
    #[error("{path} cannot be used ({doing})")]
    Io { path: PathBuf, doing: &'static str, source: io::Error },
    #[error("it was not committed with others: {why}")]
    NotCommitted { why: String },
    #[error(transparent)]
    InvalidKey(#[from] InvalidKey),
    #[error(transparent)]
    Store(#[from] StoreError),
}
