//! What a rewind did, checked against the disk.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize, Serializer};
use takeback_store::state::{BranchName, ExecutionId};
use takeback_store::{Evidence, PointId, RewindId, WorkPath};

use super::plan::first_seen::FirstSeen;
use super::plan::{Plan, Verdict, dropped_bits};
use super::state_move::StateMove;

/// What became of each path. In a preview: what would become of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Receipt {
    /// All that was planned is on disk, and nothing that was asked for had to be left.
    pub success: bool,
    pub rewind: Option<RewindId>,
    /// The point gone back to; none for an undo or redo.
    pub point: Option<PointId>,
    /// Goes back to before the rewind. None in a preview.
    pub safety_point: Option<PointId>,
    #[serde(serialize_with = "plain_paths")]
    pub restored_files: Vec<WorkPath>,
    #[serde(serialize_with = "plain_paths")]
    pub deleted_files: Vec<WorkPath>,
    pub merged_files: Vec<Note>,
    pub kept_files: Vec<Note>,
    /// New names in ignored folders, and names that were not covered at the point: they stay.
    #[serde(serialize_with = "folded")]
    pub first_seen: Vec<FirstSeen>,
    pub conflicts: Vec<Note>,
    pub ambiguous: Vec<Note>,
    pub not_captured: Vec<Note>,
    /// Of each path that an agent changed and that was asked for: how that is known.
    pub evidence: Vec<PathEvidence>,
    /// Of restored or merged files, what did not come back with them; where the agent's own restore
    /// left bytes that nobody knows, the place where they lie now.
    pub notes: Vec<Note>,
    pub errors: Vec<Problem>,
    /// The agent's state that went along.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateReceipt>,
}

/// What became of an agent's state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StateReceipt {
    pub execution: ExecutionId,
    pub branch: BranchName,
    /// Where the branch stands afterwards, as far as that is known.
    pub checkpoint: Option<String>,
    pub moved: bool,
    /// It was not to be moved: the agent has gone on since.
    pub stays: bool,
    pub error: Option<String>,
}

/// A path and why it was left, or what was done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub path: WorkPath,
    pub reason: String,
}

/// A path and how its author is known: the least certain of what was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathEvidence {
    pub path: WorkPath,
    pub evidence: Evidence,
}

/// A path and what went wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub path: WorkPath,
    pub error: String,
}

impl Serialize for Note {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        path_and(serializer, &self.path, "reason", self.reason.as_str())
    }
}

impl Serialize for PathEvidence {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        path_and(serializer, &self.path, "evidence", &self.evidence)
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        path_and(serializer, &self.path, "error", self.error.as_str())
    }
}

/// `filePath` is text; bytes that are not UTF-8 stand exactly in `filePathBase64`.
fn path_and<S: Serializer>(
    serializer: S,
    path: &WorkPath,
    key: &'static str,
    value: &(impl Serialize + ?Sized),
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry("filePath", &String::from_utf8_lossy(path.as_bytes()))?;
    if std::str::from_utf8(path.as_bytes()).is_err() {
        map.serialize_entry("filePathBase64", &STANDARD.encode(path.as_bytes()))?;
    }
    map.serialize_entry(key, value)?;
    map.end()
}

fn plain_paths<S: Serializer>(paths: &[WorkPath], serializer: S) -> Result<S::Ok, S::Error> {
    serializer
        .collect_seq(paths.iter().map(|path| String::from_utf8_lossy(path.as_bytes()).into_owned()))
}

fn folded<S: Serializer>(folded: &[FirstSeen], serializer: S) -> Result<S::Ok, S::Error> {
    struct Wire<'a>(&'a FirstSeen);
    impl Serialize for Wire<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            path_and(serializer, &self.0.path, "names", &self.0.names)
        }
    }
    serializer.collect_seq(folded.iter().map(Wire))
}

/// What became of one step that was to change something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fate {
    Done,
    /// Done, but the disk did not confirm it.
    Unconfirmed(String),
    /// Somebody changed it while the rewind ran.
    Conflict(String),
    Kept(String),
    Error(String),
}

impl Fate {
    /// Whether the goal is in place, as far as anybody can see.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        matches!(self, Self::Done | Self::Unconfirmed(_))
    }
}

/// What is said of a file that is done and not confirmed by the disk.
pub const UNCONFIRMED: &str = "in place, but the disk did not confirm it";

impl Receipt {
    /// `fates`: of the plan's actions, in their order; none in a preview.
    #[must_use]
    pub fn new(plan: &Plan, fates: Option<&[Fate]>) -> Self {
        let mut receipt = Self::default();
        let mut fates = fates.map(|fates| fates.iter());
        for step in &plan.steps {
            let path = step.path.clone();
            let note = |reason: &str| Note { path: step.path.clone(), reason: reason.to_owned() };
            let fate = match (&mut fates, step.goal()) {
                (Some(fates), Some(_)) => fates.next().cloned().unwrap_or(Fate::Done),
                _ => Fate::Done,
            };
            // Said by `unconfirmed`, once it is known what became of the rest.
            let fate = if fate.is_in_place() { Fate::Done } else { fate };
            if let (Fate::Done, Some(bits)) = (&fate, dropped_bits(step)) {
                receipt.notes.push(note(&format!("comes back without its {bits}")));
            }
            if fate == Fate::Done && step.linked_elsewhere {
                receipt.notes.push(note("another hard link to it keeps the changed contents"));
            }
            if let Some(evidence) = step.evidence {
                receipt.evidence.push(PathEvidence { path: step.path.clone(), evidence });
            }
            receipt.ambiguous.extend(step.unclear.as_deref().map(note));
            match (fate, &step.verdict) {
                (Fate::Conflict(reason), _) => receipt.conflicts.push(note(&reason)),
                (Fate::Kept(reason), _) => receipt.kept_files.push(note(&reason)),
                (Fate::Error(error) | Fate::Unconfirmed(error), _) => {
                    receipt.errors.push(Problem { path, error });
                }
                (Fate::Done, Verdict::Restore { .. }) => receipt.restored_files.push(path),
                (Fate::Done, Verdict::Delete) => receipt.deleted_files.push(path),
                (Fate::Done, Verdict::Merge { .. }) => {
                    receipt.merged_files.push(note("only the agent's part is taken out"));
                }
                (Fate::Done, Verdict::Keep { reason }) => receipt.kept_files.push(note(reason)),
                (Fate::Done, Verdict::Conflict { reason }) => receipt.conflicts.push(note(reason)),
                (Fate::Done, Verdict::Ambiguous { reason }) => receipt.ambiguous.push(note(reason)),
                (Fate::Done, Verdict::NotCaptured { reason }) => {
                    receipt.not_captured.push(note(reason));
                }
            }
        }
        receipt.success = receipt.conflicts.is_empty()
            && receipt.ambiguous.is_empty()
            && receipt.not_captured.is_empty()
            && receipt.errors.is_empty();
        receipt.first_seen.clone_from(&plan.first_seen);
        receipt.state = plan.state.as_ref().map(StateMove::receipt);
        receipt
    }

    /// Says of which steps the disk did not confirm that they are done.
    pub(super) fn unconfirmed(&mut self, plan: &Plan, fates: &[Fate]) {
        for (step, fate) in plan.actions().zip(fates) {
            if let Fate::Unconfirmed(why) = fate {
                let error = format!("{UNCONFIRMED}: {why}");
                self.errors.push(Problem { path: step.path.clone(), error });
                self.success = false;
            }
        }
    }

    /// Of a plan of which nothing is done, because not all of it can be.
    #[must_use]
    pub fn refused(mut self) -> Self {
        self.restored_files.clear();
        self.deleted_files.clear();
        self.merged_files.clear();
        self.notes.clear();
        self.success = false;
        self
    }

    /// Whether every path went, or would go, where it was at the point: nobody's work is in the way.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.success && self.kept_files.is_empty()
    }

    /// Whether anything on disk is (or would be) changed.
    #[must_use]
    pub fn changed_something(&self) -> bool {
        !(self.restored_files.is_empty()
            && self.deleted_files.is_empty()
            && self.merged_files.is_empty())
            || self.state.as_ref().is_some_and(|state| state.moved)
    }
}
