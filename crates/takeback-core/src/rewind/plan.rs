//! What a rewind would do, decided from the log and the present alone.
//!
//! Pure. In: the changes since a moment, what is at their paths now, and a way to read contents. Out: a
//! [`Plan`], which the caller can show, promise, or drop.

pub mod first_seen;
mod folders;
pub(in crate::rewind) mod links;
mod path_merge;
mod renames;
pub(in crate::rewind) mod roles;
mod set_id;
pub(crate) mod stream;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use takeback_store::{
    Attribution, Author, Change, Correction, Digest, Entry, Evidence, IN_PART, PackedBlob,
    PathRuns, RewindId, Seq, StoreError, WorkPath,
};

use self::first_seen::FirstSighting;
use self::folders::{make_room, unlock_folders};
use self::links::keep_links;
use self::path_merge::{Merge, PathConflict, PathOutcome};
use self::renames::explain_renames;
use self::roles::{Role, Roles, roles};
pub(crate) use self::set_id::dropped_bits;
use self::set_id::{givable, only_bits_are_gone};
use super::conflict::{ConflictPolicy, LineConflict};
use super::merge::SAME_LINES;
use super::native::NativePath;
use super::request::{AmbiguousPolicy, ChosenChanges, RewindScope};
use super::state_move::StateMove;

/// What a rewind would do, path by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan<Steps = Vec<Step>> {
    /// By path.
    pub steps: Steps,
    /// By path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlocked: Vec<UnlockedFolder>,
    /// Folders that cannot be read and belong to the user: the rewind makes them readable before it
    /// plans again. By path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub opens: Vec<UnlockedFolder>,
    /// An agent's state that moves with the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateMove>,
    /// It only reverts what was done of a rewind that had to be all or nothing.
    #[serde(rename = "turns_back", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_revert: bool,
    /// It brings in what happened in a fork.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adopts: bool,
    /// What the agent's own restore may write before the steps are done. By path.
    #[serde(rename = "named", default, skip_serializing_if = "Vec::is_empty")]
    pub native_paths: Vec<NativePath>,
    /// Whether the whole tree was scanned for it: then its safety point knows every path.
    #[serde(rename = "surveyed", default, skip_serializing_if = "std::ops::Not::not")]
    pub is_full_scan: bool,
    /// Names first seen since the aim's moment, which stay. By path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_seen: Vec<FirstSighting>,
    /// The person's corrections of authors, to be recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrections: Vec<(Seq, Correction)>,
    /// Contents that a merge made, which no file has had yet. Not part of the promise: they are in
    /// the store before it is written.
    #[serde(skip)]
    pub merged: Vec<PackedBlob>,
}

/// A plan of the log without its steps, which may be very many: they are skipped as it is read.
pub(super) type PlanHeader = Plan<IgnoredAny>;

/// One path of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The path.
    pub path: WorkPath,
    /// What is there now.
    pub present: Entry,
    /// What happens to it.
    pub verdict: Verdict,
    /// The changes that this step cancels; of a conflict, those that it would have.
    pub cancels: Vec<Seq>,
    /// The calls that changed it since and did not name it: in order, once each.
    pub because: Vec<Arc<Attribution>>,
    /// The least certain evidence among the agent's changes that the plan takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Evidence>,
    /// The author of some of its changes is unclear; these changes stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unclear: Option<String>,
    /// Lines that another author changed since, and what becomes of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineConflict>,
    /// What a conflict about the file as a whole keeps from being here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead: Option<Entry>,
    /// Another name of the file that this becomes: a hard link.
    #[serde(rename = "one_with", default, skip_serializing_if = "Option::is_none")]
    pub hard_link_of: Option<WorkPath>,
    /// The file that is there now has another name, which the workspace does not know.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub linked_elsewhere: bool,
}

/// A folder that its owner may not write to, and that is made writable while the plan is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnlockedFolder {
    /// The folder.
    pub path: WorkPath,
    /// Its mode before, and afterwards if no step sets another.
    pub mode: u32,
}

/// What a rewind does with a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "camelCase")]
pub enum Verdict {
    /// Becomes this (again).
    #[expect(missing_docs, reason = "the names say what the fields are")]
    Restore { to: Entry },
    /// Is removed: the agent made it.
    Delete,
    /// Becomes this: the agent's part taken out, other authors' parts left in.
    #[expect(missing_docs, reason = "the names say what the fields are")]
    Merge { to: Entry },
    /// Stays: the request does not include it.
    #[expect(missing_docs, reason = "the names say what the fields are")]
    Keep { reason: String },
    /// Stays: the request cannot be done here without destroying another author's work.
    #[expect(missing_docs, reason = "the names say what the fields are")]
    Conflict { reason: String },
    /// Stays: its author is unclear.
    #[expect(missing_docs, reason = "the names say what the fields are")]
    Ambiguous { reason: String },
    /// Stays: the store does not have what would be needed.
    #[expect(missing_docs, reason = "the names say what the fields are")]
    NotCaptured { reason: String },
}

impl Step {
    /// A step that takes no change back and has no cause of its own.
    #[must_use]
    pub fn new(path: WorkPath, present: Entry, verdict: Verdict) -> Self {
        Self {
            path,
            present,
            verdict,
            cancels: Vec::new(),
            because: Vec::new(),
            evidence: None,
            unclear: None,
            lines: Vec::new(),
            instead: None,
            hard_link_of: None,
            linked_elsewhere: false,
        }
    }

    /// What will be there afterwards, if that differs from now.
    #[must_use]
    pub fn goal(&self) -> Option<Entry> {
        match &self.verdict {
            Verdict::Restore { to } | Verdict::Merge { to } => Some(givable(to, &self.present)),
            Verdict::Delete => Some(Entry::Absent),
            Verdict::Keep { .. }
            | Verdict::Conflict { .. }
            | Verdict::Ambiguous { .. }
            | Verdict::NotCaptured { .. } => None,
        }
    }

    /// Whether only the log changes: the path stays as it is, and its conflict is settled.
    #[must_use]
    pub fn is_settled_as_it_is(&self) -> bool {
        self.goal().is_some_and(|goal| goal == self.present)
    }

    /// Same bytes, other permissions: set in place, so that the file stays the same file.
    #[must_use]
    pub fn is_mode_only(&self) -> bool {
        let goal = self.goal().and_then(|goal| goal.digest());
        goal.is_some() && goal == self.present.digest()
    }

    /// Whether a new file or link has to be staged first.
    #[must_use]
    pub(crate) fn needs_staging(&self) -> bool {
        matches!(self.goal(), Some(Entry::File { .. } | Entry::Symlink { .. }))
            && !self.is_mode_only()
    }

    /// The contents that the store must have to do it.
    #[must_use]
    pub(crate) fn placed(&self) -> Option<Digest> {
        if self.needs_staging() { self.goal()?.digest() } else { None }
    }

    /// The contents that the store must have to take it back.
    #[must_use]
    pub(crate) fn displaced(&self) -> Option<Digest> {
        if self.is_mode_only() { None } else { self.goal().and(self.present.digest()) }
    }
}

impl Plan {
    /// The steps that change something on disk.
    pub fn actions(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.goal().is_some())
    }

    /// Whether neither a file nor an agent's state would change.
    #[must_use]
    pub fn does_nothing(&self) -> bool {
        self.leaves_files() && !self.state.as_ref().is_some_and(StateMove::is_move)
    }

    /// Whether no file would be changed.
    #[must_use]
    pub fn leaves_files(&self) -> bool {
        self.actions().next().is_none()
    }

    /// Whether something that was requested is left.
    #[must_use]
    pub fn leaves_something(&self) -> bool {
        self.steps.iter().any(|step| {
            step.unclear.is_some()
                || !step.lines.is_empty()
                || matches!(
                    step.verdict,
                    Verdict::Conflict { .. }
                        | Verdict::Ambiguous { .. }
                        | Verdict::NotCaptured { .. }
                )
        })
    }
}

/// Where a plan leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Aim {
    /// Back to the moment `at`, for changes by `scope`.
    Point { at: Seq, scope: RewindScope },
    /// Every path as it was at the moment `at`, regardless of author.
    Exact { at: Seq },
    /// As if this rewind, undo or redo had not happened.
    Without { rewind: RewindId },
    /// As if these changes had not happened.
    WithoutChanges { chosen: ChosenChanges },
    /// Changes made elsewhere, merged into what is here. `settles`: also one that changes nothing is
    /// recorded, for what it cancels.
    Incoming { settles: bool },
}

/// How to make a plan.
#[derive(Debug, Clone)]
pub(super) struct PlanOptions {
    pub aim: Aim,
    pub ambiguous: AmbiguousPolicy,
    pub conflicts: ConflictPolicy,
    /// The positions of points in the log.
    pub points: BTreeSet<Seq>,
    /// Paths whose present bytes may be lost although they could not be saved.
    pub discard: BTreeSet<WorkPath>,
    /// Whether files outside the workspace are written.
    pub outside: bool,
    /// Conflicts that incoming changes leave open.
    pub open_lines: BTreeMap<WorkPath, Vec<LineConflict>>,
    /// Contents that the store is known to have lost.
    pub lost: BTreeSet<Digest>,
}

/// What is on disk now.
#[derive(Debug, Clone, Default)]
pub(super) struct DiskState {
    pub entries: BTreeMap<WorkPath, Entry>,
    /// The names in the folders among them.
    pub names: BTreeMap<WorkPath, Vec<WorkPath>>,
    /// The folders among them whose names could not be read.
    pub unread: BTreeSet<WorkPath>,
    /// Names that were one file at the aim's moment.
    pub linked: Vec<Vec<WorkPath>>,
    /// The modes of the folders among them that are gone.
    pub former_modes: BTreeMap<WorkPath, u32>,
}

/// Reads what a plan needs from the store.
pub(super) trait Sources {
    /// An earlier change, for what a rewind cancelled, with the author that is known now.
    fn change(&self, seq: Seq) -> Result<Option<Change>, StoreError>;
    fn contents(&self, digest: &Digest) -> Result<Vec<u8>, StoreError>;
}

/// Plans. `histories` holds every requested path that changed after the aim's moment.
pub(super) fn plan(
    histories: &[PathRuns],
    present: &DiskState,
    options: &PlanOptions,
    sources: &dyn Sources,
) -> Result<Plan, StoreError> {
    let mut plan: Plan = Plan::default();
    for history in histories {
        let now = present.entries.get(&history.path).unwrap_or(history.at_end());
        let step = match &options.aim {
            Aim::Exact { .. } => exact_step(history, now),
            _ => path_step(history, now, options, sources, &mut plan.merged)?,
        };
        plan.steps.extend(step.map(|step| guarded(step, options)));
    }
    make_room(&mut plan, present);
    plan.steps.sort_by(|a, b| a.path.cmp(&b.path));
    unlock_folders(&mut plan, present);
    keep_links(&mut plan, present);
    explain_renames(&mut plan, histories);
    if let Aim::Point { .. } = options.aim {
        plan.first_seen = first_seen::of_histories(histories, present);
    }
    Ok(plan)
}

/// Neighbouring changes of one role, as one: the entry before the first, and after the last.
struct Run<'a> {
    role: Role,
    before: &'a Entry,
    after: &'a Entry,
    seqs: Vec<Seq>,
}

fn runs<'a>(history: &'a PathRuns, roles: &[Role]) -> Vec<Run<'a>> {
    let mut runs: Vec<Run<'a>> = Vec::new();
    for (next, role) in history.runs.iter().zip(roles) {
        match runs.last_mut() {
            _ if *role == Role::Dead => {}
            Some(run) if run.role == *role => {
                run.after = &next.after;
                run.seqs.extend(&next.seqs);
            }
            _ => runs.push(Run {
                role: *role,
                before: &next.before,
                after: &next.after,
                seqs: next.seqs.clone(),
            }),
        }
    }
    runs
}

/// The verdict for a path: the runs to be taken back are taken out of the entry that is there now.
/// `None`: the path stays, and there is nothing to report.
fn path_step(
    history: &PathRuns,
    now: &Entry,
    options: &PlanOptions,
    sources: &dyn Sources,
    merged: &mut Vec<PackedBlob>,
) -> Result<Option<Step>, StoreError> {
    let aim = &options.aim;
    let roles = roles(history, aim, options.ambiguous, &options.points, sources)?;
    let step = |verdict, cancels, unclear: bool| Step {
        cancels,
        because: causes(history, &roles.of),
        evidence: weakest(history, &roles.of),
        unclear: unclear.then(|| UNCLEAR.to_owned()),
        ..Step::new(history.path.clone(), now.clone(), verdict)
    };
    if !roles.contains(Role::Take) && !roles.contains(Role::Ambiguous) {
        let asked = matches!(aim, Aim::Point { .. }) && history.at_start() != now;
        let others = asked && roles.contains(Role::Other);
        let reason = others.then(|| kept_reason(history, &roles.of));
        return Ok(reason.map(|reason| step(Verdict::Keep { reason }, Vec::new(), false)));
    }
    let runs = runs_to_take_out(history, &roles);
    let outcome = path_merge::take_out_runs(&runs, now, options.conflicts, sources)?;
    let Merge { entry, text, mut cancels, is_mixed, in_doubt, lines, is_in_part } = match outcome {
        PathOutcome::Merged(merge) => merge,
        PathOutcome::Unclear => {
            let verdict = Verdict::Ambiguous { reason: UNCLEAR.to_owned() };
            return Ok(Some(step(verdict, Vec::new(), false)));
        }
        PathOutcome::Conflict(PathConflict { reason, lines, instead, cancels }) => {
            let reason = match aim {
                Aim::Incoming { .. } => reason_in_fork(reason).to_owned(),
                _ => reason.to_owned(),
            };
            let instead = instead.map(|(entry, text)| {
                merged.extend(text.map(|(digest, text)| PackedBlob::with_digest(digest, text)));
                entry
            });
            let step = step(Verdict::Conflict { reason }, cancels, false);
            return Ok(Some(Step { lines, instead, ..step }));
        }
        PathOutcome::Lacking(reason) => {
            return Ok(Some(step(Verdict::NotCaptured { reason }, Vec::new(), false)));
        }
    };
    // A decision that leaves the bytes as they are is recorded too, and so is its undo.
    let settles = match aim {
        Aim::Incoming { settles } => *settles,
        Aim::Without { .. } => {
            let mut taken = runs.iter().filter(|run| run.role == Role::Take);
            taken.all(|run| run.before == run.after)
        }
        _ => false,
    };
    if entry == *now && !settles {
        let unclear = || Verdict::Ambiguous { reason: UNCLEAR.to_owned() };
        return Ok(in_doubt.then(|| step(unclear(), Vec::new(), false)));
    }
    if let Some((digest, text)) = text {
        merged.push(PackedBlob::with_digest(digest, text));
    }
    // A change made elsewhere may cancel nothing here, or only part.
    let is_in_part = is_in_part || cancels.contains(&IN_PART);
    cancels.retain(|seq| *seq != IN_PART);
    cancels.sort();
    if is_in_part && !cancels.is_empty() {
        cancels.insert(0, IN_PART);
    }
    cancels.shrink_to_fit();
    let verdict = match entry {
        Entry::Absent => Verdict::Delete,
        to if is_mixed => Verdict::Merge { to },
        to => Verdict::Restore { to },
    };
    // Only their own conflicts, or only those that they leave: a change that settles has no others.
    let open = options.open_lines.get(&history.path).filter(|_| lines.is_empty());
    let lines = open.cloned().unwrap_or(lines);
    Ok(Some(Step { lines, ..step(verdict, cancels, in_doubt) }))
}

/// The runs of a path as its merge takes them out: oldest first.
fn runs_to_take_out<'a>(history: &'a PathRuns, roles: &'a Roles) -> Vec<Run<'a>> {
    // Other authors' work that a rewind took back stays taken back. It comes last because it is the oldest.
    let stays_taken = roles.stays_taken.iter().map(|run| Run {
        role: Role::Take,
        before: &run.before,
        after: &run.after,
        seqs: run.seqs.clone(),
    });
    stays_taken.chain(runs(history, &roles.of)).collect()
}

/// Why a change of a fork cannot be merged here.
fn reason_in_fork(reason: &'static str) -> &'static str {
    match reason {
        SAME_LINES | "binary" | "over 8 MiB" | "too many changes to compare" => reason,
        _ => "it was changed here and there",
    }
}

const UNCLEAR: &str = "it is not certain who wrote it; --ambiguous take takes it back";

fn exact_step(history: &PathRuns, now: &Entry) -> Option<Step> {
    let goal = history.at_start();
    let verdict = match goal {
        goal if goal == now => return None,
        Entry::Unknown => Verdict::NotCaptured { reason: UNKNOWN_BEFORE.to_owned() },
        Entry::NotCaptured { reason } => {
            Verdict::NotCaptured { reason: reason.describe().to_owned() }
        }
        Entry::Absent => Verdict::Delete,
        to => Verdict::Restore { to: to.clone() },
    };
    let roles = vec![Role::Take; history.runs.len()];
    Some(Step {
        cancels: history.runs.iter().flat_map(|run| &run.seqs).copied().collect(),
        because: causes(history, &roles),
        evidence: weakest(history, &roles),
        ..Step::new(history.path.clone(), now.clone(), verdict)
    })
}

/// Why saved contents cannot be restored.
pub(crate) const DAMAGED: &str = "damaged in the store";

pub(super) const UNKNOWN_BEFORE: &str = "it was not covered before, so what was there is not known";

fn causes(history: &PathRuns, roles: &[Role]) -> Vec<Arc<Attribution>> {
    let asked = |role: &Role| matches!(role, Role::Take | Role::Ambiguous | Role::Other);
    let runs = history.runs.iter().zip(roles).filter(|(_, role)| asked(role));
    let mut seen = HashSet::new();
    let known = runs.flat_map(|(run, _)| &run.inferred).filter(|known| seen.insert(*known));
    let mut causes: Vec<Arc<Attribution>> = known.cloned().collect();
    // A plan may have very many steps, and most of them one cause.
    causes.shrink_to_fit();
    causes
}

/// The least certain evidence among the agent's changes that are, or might be, taken back.
fn weakest(history: &PathRuns, roles: &[Role]) -> Option<Evidence> {
    let asked = |role: &Role| matches!(role, Role::Take | Role::Ambiguous);
    let runs = history.runs.iter().zip(roles).filter(|(_, role)| asked(role));
    let of_agents = runs.filter(|(run, _)| !run.author.sessions().is_empty());
    of_agents
        .flat_map(|(run, _)| {
            let unnamed = run.inferred.iter().map(|known| known.evidence);
            unnamed.chain([run.evidence])
        })
        .max_by_key(|evidence| match evidence {
            Evidence::Named => 0,
            Evidence::AfterEdit => 1,
            Evidence::Window => 2,
            Evidence::OpenWindow => 3,
        })
}

fn kept_reason(history: &PathRuns, roles: &[Role]) -> String {
    let mut sessions = BTreeSet::new();
    let (mut human, mut deleted) = (false, false);
    let others = history.runs.iter().zip(roles).filter(|(_, role)| **role == Role::Other);
    for (run, _) in others {
        human |= matches!(run.author, Author::Human | Author::Ambiguous { .. });
        deleted |= run.author == Author::Deleted;
        sessions.extend(run.author.sessions().iter().map(|session| session.0.clone()));
    }
    let mut who = Vec::new();
    if human || (sessions.is_empty() && !deleted) {
        who.push("you".to_owned());
    }
    if !sessions.is_empty() {
        let sessions: Vec<String> = sessions.into_iter().collect();
        who.push(format!("session {}", sessions.join(", ")));
    }
    if deleted {
        who.push("a session that was deleted".to_owned());
    }
    format!("changed by {}", who.join(" and by "))
}

/// Guards that hold regardless of the log.
fn guarded(mut step: Step, options: &PlanOptions) -> Step {
    if step.goal().is_none() {
        return step;
    }
    if step.path.is_outside() && !options.outside {
        let reason = "outside the workspace; --outside takes it back too".to_owned();
        step.verdict = Verdict::Keep { reason };
    } else if let Entry::NotCaptured { reason } = step.present
        && !options.discard.contains(&step.path)
    {
        let reason = format!(
            "its current contents could not be saved ({}); --discard PATH discards them",
            reason.describe()
        );
        step.verdict = Verdict::NotCaptured { reason };
    } else if step.placed().is_some_and(|digest| options.lost.contains(&digest)) {
        step.verdict = Verdict::NotCaptured { reason: DAMAGED.to_owned() };
    } else if step.displaced().is_some_and(|digest| options.lost.contains(&digest))
        && !options.discard.contains(&step.path)
    {
        let reason = format!("its current contents are {DAMAGED}; --discard PATH discards them");
        step.verdict = Verdict::NotCaptured { reason };
    } else if let Some(reason) = only_bits_are_gone(&step) {
        step.verdict = Verdict::Keep { reason };
        step.cancels.clear();
    }
    if step.goal().is_none() {
        // Its lines are those of a merge that is not made.
        step.lines.clear();
    }
    step
}
