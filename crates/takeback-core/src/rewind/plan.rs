//! What a rewind would do, decided from the log and the present alone.
//!
//! Pure: in come the changes since a moment, what stands at their paths now, and a way to read
//! contents; out comes a [`Plan`], which the caller can show, promise, or drop.

mod folders;
mod links;
mod renames;
mod set_id;
mod three_way;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};
use takeback_store::{
    Author, Change, Digest, Entry, Evidence, PackedBlob, PathStretches, RewindId, Seq, SessionId,
    StoreError, Stretch, WorkPath,
};

use self::folders::{make_room, unlock_folders};
use self::links::keep_links;
use self::renames::tell_renames;
pub(crate) use self::set_id::dropped_bits;
use self::set_id::{givable, only_bits_are_gone};
use self::three_way::{Merged, Texts, merge_entry};
use super::helper::Named;
use super::state_move::StateMove;
use crate::exchange::imported::is_imported;
use crate::history::dead;

/// What a rewind would do, path by path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// By path.
    pub steps: Vec<Step>,
    /// By path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlocked: Vec<Unlocked>,
    /// An agent's state that goes along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<StateMove>,
    /// It only brings back what was done of a rewind that had to be all or nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub turns_back: bool,
    /// What the agent's own restore may write before the steps are done. By path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<Named>,
    /// Contents that a merge made, which no file has had yet. Not part of the promise: they are in
    /// the store before it is written.
    #[serde(skip)]
    pub merged: Vec<PackedBlob>,
}

/// One path of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub path: WorkPath,
    /// What stands there now.
    pub present: Entry,
    pub verdict: Verdict,
    /// The changes that doing this takes the effect of.
    pub cancels: Vec<Seq>,
    /// The calls that were running when it changed since, and did not name it: in order, once each.
    pub because: Vec<Cause>,
    /// Another name of the file that it is to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_with: Option<WorkPath>,
}

/// A folder that its owner may not write to, and that is made writable while the plan is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unlocked {
    pub path: WorkPath,
    /// What it has before, and afterwards if no step gives it another.
    pub mode: u32,
}

/// Somebody who changed a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    pub author: Author,
    pub evidence: Evidence,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "camelCase")]
pub enum Verdict {
    /// Becomes this (again).
    Restore { to: Entry },
    /// Is removed: the agent made it.
    Delete,
    /// Becomes this: the agent's part taken out, everybody else's left in.
    Merge { to: Entry },
    /// Stays: nobody asked to take this back.
    Keep { reason: String },
    /// Stays: what is asked cannot be done without destroying somebody else's work.
    Conflict { reason: String },
    /// Stays: it is not certain whose it is.
    Ambiguous { reason: String },
    /// Stays: the store does not have what would be needed.
    NotCaptured { reason: String },
}

impl Step {
    /// What is to stand there afterwards, if that is something else than now.
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

    /// Same bytes, other permissions: set in place, so that the file stays the same file.
    #[must_use]
    pub fn is_mode_only(&self) -> bool {
        let goal = self.goal().and_then(|goal| goal.digest());
        goal.is_some() && goal == self.present.digest()
    }

    /// Whether something has to be made beside its place and then put there.
    #[must_use]
    pub(crate) fn needs_staging(&self) -> bool {
        matches!(self.goal(), Some(Entry::File { .. } | Entry::Symlink { .. }))
            && !self.is_mode_only()
    }
}

impl Plan {
    /// The steps that change something on disk.
    pub fn actions(&self) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(|step| step.goal().is_some())
    }

    #[must_use]
    pub fn does_nothing(&self) -> bool {
        self.leaves_files() && !self.state.as_ref().is_some_and(StateMove::is_move)
    }

    /// Whether no file would be changed.
    #[must_use]
    pub fn leaves_files(&self) -> bool {
        self.actions().next().is_none()
    }

    /// Whether something that was asked for stays undone.
    #[must_use]
    pub fn leaves_something(&self) -> bool {
        self.steps.iter().any(|step| {
            matches!(
                step.verdict,
                Verdict::Conflict { .. } | Verdict::Ambiguous { .. } | Verdict::NotCaptured { .. }
            )
        })
    }
}

/// Where a plan leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Aim {
    /// Back to the moment `at`, as far as `whose` wrote it.
    Point { at: Seq, whose: Whose },
    /// Every path as it was at the moment `at`, whoever wrote it.
    Exact { at: Seq },
    /// As if this rewind, undo or redo had not been.
    Without { rewind: RewindId },
}

/// Whose changes are taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// All of this workspace: sessions that were imported did nothing here.
    AllAgents,
    Sessions(BTreeSet<SessionId>),
}

impl Whose {
    fn includes(&self, author: &Author) -> bool {
        match (self, author) {
            (Self::AllAgents, author) => !author.sessions().is_empty() && !is_imported(author),
            (Self::Sessions(chosen), author) => {
                author.sessions().iter().any(|s| chosen.contains(s))
            }
        }
    }

    /// Whether no other session may have written it.
    fn includes_all_of(&self, author: &Author) -> bool {
        match self {
            Self::AllAgents => true,
            Self::Sessions(chosen) => author.sessions().iter().all(|s| chosen.contains(s)),
        }
    }
}

/// What to do where it is not certain whose change it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AmbiguousPolicy {
    /// Bring back what is missing; leave the rest.
    #[default]
    Leave,
    /// Take back what no other session than the chosen ones may have written; as [`Self::Leave`] for
    /// the rest.
    TakeOwn,
    /// Take it back like an agent's.
    Take,
}

impl AmbiguousPolicy {
    fn takes(self, author: &Author, whose: &Whose) -> bool {
        match self {
            Self::Leave => false,
            Self::TakeOwn => whose.includes_all_of(author),
            Self::Take => true,
        }
    }
}

/// How a plan is to be made.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    pub aim: Aim,
    pub ambiguous: AmbiguousPolicy,
    /// Paths whose present bytes may be lost although they could not be kept.
    pub discard: BTreeSet<WorkPath>,
    /// Whether files outside the workspace are written.
    pub outside: bool,
}

/// What is on disk now.
#[derive(Debug, Clone, Default)]
pub struct Present {
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
pub trait Sources {
    /// An earlier change, for what a rewind cancelled.
    fn change(&self, seq: Seq) -> Result<Option<Change>, StoreError>;
    fn contents(&self, digest: &Digest) -> Result<Vec<u8>, StoreError>;
}

/// Plans. `histories` holds every path changed after the aim's moment that is asked for.
pub fn plan(
    histories: &[PathStretches],
    present: &Present,
    options: &PlanOptions,
    sources: &dyn Sources,
) -> Result<Plan, StoreError> {
    let mut plan = Plan::default();
    for history in histories {
        let now = present.entries.get(&history.path).unwrap_or(history.at_end());
        let step = match &options.aim {
            Aim::Exact { .. } => exact_step(history, now),
            aim => path_step(history, now, aim, options, sources, &mut plan.merged)?,
        };
        plan.steps.extend(step.map(|step| guarded(step, options)));
    }
    make_room(&mut plan, present);
    plan.steps.sort_by(|a, b| a.path.cmp(&b.path));
    unlock_folders(&mut plan, present);
    keep_links(&mut plan, present);
    tell_renames(&mut plan, histories);
    Ok(plan)
}

/// The paths a plan may touch, before anything was looked at.
pub fn candidates(
    histories: &[PathStretches],
    aim: &Aim,
    sources: &dyn Sources,
) -> Result<Vec<WorkPath>, StoreError> {
    let mut paths = Vec::new();
    for history in histories {
        let touched = match aim {
            Aim::Exact { .. } => true,
            aim => roles(history, aim, AmbiguousPolicy::Take, sources)?.contains(&Role::Take),
        };
        if touched {
            paths.push(history.path.clone());
        }
    }
    Ok(paths)
}

/// What a change is to a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// To be taken back.
    Take,
    /// Perhaps to be taken back.
    Ambiguous,
    /// Somebody else's.
    Other,
    /// No change of anybody: a rewind that stands, an import, or a first sight.
    Neutral,
    /// Taken back already.
    Dead,
}

fn roles(
    history: &PathStretches,
    aim: &Aim,
    policy: AmbiguousPolicy,
    sources: &dyn Sources,
) -> Result<Vec<Role>, StoreError> {
    // A rewind that came after the point and took back something of theirs from before it: at the
    // point that stood, so going there takes the rewind back.
    let mut reopened = HashSet::new();
    if let Aim::Point { at, whose } = aim {
        for stretch in &history.stretches {
            let earlier = stretch.cancels.iter().copied().filter(|seq| seq <= at).collect();
            if concern(earlier, whose, sources)? {
                reopened.insert(stretch.seqs[0]);
            }
        }
    }
    let target = |stretch: &Stretch| match aim {
        Aim::Without { rewind } => stretch.author == Author::Rewind { id: *rewind },
        _ => reopened.contains(&stretch.seqs[0]),
    };
    let dead = dead(history, target);
    Ok(history
        .stretches
        .iter()
        .map(|stretch| match (&stretch.author, aim) {
            _ if dead.contains(&stretch.seqs[0]) => Role::Dead,
            _ if target(stretch) => Role::Take,
            (Author::Rewind { .. } | Author::Import, _) => Role::Neutral,
            (author, Aim::Point { whose, .. }) if whose.includes(author) => match author {
                Author::Ambiguous { .. } if !policy.takes(author, whose) => Role::Ambiguous,
                _ => Role::Take,
            },
            (author, _) if is_imported(author) => Role::Neutral,
            // Nothing changed: it came into sight.
            _ if stretch.before == Entry::Unknown => Role::Neutral,
            _ => Role::Other,
        })
        .collect())
}

/// Whether any of these cancelled changes was, at the bottom, by any of `whose`.
fn concern(cancelled: Vec<Seq>, whose: &Whose, sources: &dyn Sources) -> Result<bool, StoreError> {
    let mut open = cancelled;
    while let Some(seq) = open.pop() {
        // One that retention has dropped: nobody can tell any more.
        let Some(change) = sources.change(seq)? else { continue };
        if whose.includes(&change.author) {
            return Ok(true);
        }
        open.extend(change.cancels);
    }
    Ok(false)
}

/// Neighbouring changes of one role, as one: what stood before the first, and after the last.
struct Run<'a> {
    role: Role,
    before: &'a Entry,
    after: &'a Entry,
    seqs: Vec<Seq>,
}

fn runs<'a>(history: &'a PathStretches, roles: &[Role]) -> Vec<Run<'a>> {
    let mut runs: Vec<Run<'a>> = Vec::new();
    for (stretch, role) in history.stretches.iter().zip(roles) {
        match runs.last_mut() {
            _ if *role == Role::Dead => {}
            Some(run) if run.role == *role => {
                run.after = &stretch.after;
                run.seqs.extend(&stretch.seqs);
            }
            _ => runs.push(Run {
                role: *role,
                before: &stretch.before,
                after: &stretch.after,
                seqs: stretch.seqs.clone(),
            }),
        }
    }
    runs
}

fn path_step(
    history: &PathStretches,
    now: &Entry,
    aim: &Aim,
    options: &PlanOptions,
    sources: &dyn Sources,
    merged: &mut Vec<PackedBlob>,
) -> Result<Option<Step>, StoreError> {
    let roles = roles(history, aim, options.ambiguous, sources)?;
    let step = |verdict, cancels| {
        let present = now.clone();
        Some(Step {
            path: history.path.clone(),
            present,
            verdict,
            cancels,
            because: causes(history, &roles),
            one_with: None,
        })
    };
    if !roles.iter().any(|role| matches!(role, Role::Take | Role::Ambiguous)) {
        let asked = !matches!(aim, Aim::Without { .. }) && history.at_start() != now;
        let others = (asked && roles.contains(&Role::Other)).then(|| kept_reason(history, &roles));
        return Ok(others.and_then(|reason| step(Verdict::Keep { reason }, Vec::new())));
    }
    let mut entry = now.clone();
    let mut cancels = Vec::new();
    let mut mixed = false;
    let mut texts = Texts { sources, made: HashMap::new() };
    for run in runs(history, &roles).iter().rev() {
        match run.role {
            Role::Take => {}
            Role::Ambiguous if *run.after == Entry::Absent && entry == Entry::Absent => {}
            Role::Ambiguous => {
                let reason =
                    "it is not certain who wrote it; --ambiguous take takes it back".to_owned();
                return Ok(step(Verdict::Ambiguous { reason }, Vec::new()));
            }
            Role::Other | Role::Neutral | Role::Dead => continue,
        }
        match merge_entry(run.after, &entry, run.before, &mut texts)? {
            Merged::Clean(next) => {
                mixed |= next != *run.before;
                entry = next;
                cancels.extend(run.seqs.iter().copied());
            }
            Merged::Conflict(reason) => {
                let reason = reason.to_owned();
                return Ok(step(Verdict::Conflict { reason }, Vec::new()));
            }
            Merged::Lacking(reason) => {
                return Ok(step(Verdict::NotCaptured { reason }, Vec::new()));
            }
        }
    }
    if entry == *now {
        return Ok(None);
    }
    cancels.sort();
    if let Some((digest, text)) = entry.digest().and_then(|digest| texts.made.remove_entry(&digest))
    {
        merged.push(PackedBlob::with_digest(digest, text));
    }
    let verdict = match entry {
        Entry::Absent => Verdict::Delete,
        to if mixed => Verdict::Merge { to },
        to => Verdict::Restore { to },
    };
    Ok(step(verdict, cancels))
}

fn exact_step(history: &PathStretches, now: &Entry) -> Option<Step> {
    let goal = history.at_start();
    let verdict = match goal {
        goal if goal == now => return None,
        Entry::Unknown => Verdict::NotCaptured { reason: UNKNOWN_BEFORE.to_owned() },
        Entry::NotCaptured { lack } => Verdict::NotCaptured { reason: lack.reason().to_owned() },
        Entry::Absent => Verdict::Delete,
        to => Verdict::Restore { to: to.clone() },
    };
    let roles = vec![Role::Take; history.stretches.len()];
    Some(Step {
        path: history.path.clone(),
        present: now.clone(),
        verdict,
        cancels: history.stretches.iter().flat_map(|stretch| &stretch.seqs).copied().collect(),
        because: causes(history, &roles),
        one_with: None,
    })
}

const UNKNOWN_BEFORE: &str = "it was not covered before, so what stood there is not known";

fn causes(history: &PathStretches, roles: &[Role]) -> Vec<Cause> {
    let asked = |role: &Role| matches!(role, Role::Take | Role::Ambiguous | Role::Other);
    let stretches = history.stretches.iter().zip(roles).filter(|(_, role)| asked(role));
    let mut seen = HashSet::new();
    stretches
        .flat_map(|(stretch, _)| &stretch.windows)
        .filter(|author| seen.insert(*author))
        .map(|author| Cause { author: author.clone(), evidence: Evidence::Window })
        .collect()
}

fn kept_reason(history: &PathStretches, roles: &[Role]) -> String {
    let mut sessions = BTreeSet::new();
    let (mut human, mut deleted) = (false, false);
    let others = history.stretches.iter().zip(roles).filter(|(_, role)| **role == Role::Other);
    for (stretch, _) in others {
        human |= matches!(stretch.author, Author::Human | Author::Ambiguous { .. });
        deleted |= stretch.author == Author::Deleted;
        sessions.extend(stretch.author.sessions().iter().map(|session| session.0.clone()));
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

/// What is never done, whatever the log says.
fn guarded(mut step: Step, options: &PlanOptions) -> Step {
    if step.goal().is_none() {
        return step;
    }
    if step.path.is_outside() && !options.outside {
        let reason = "outside the workspace; --outside takes it back too".to_owned();
        step.verdict = Verdict::Keep { reason };
    } else if let Entry::NotCaptured { lack } = step.present
        && !options.discard.contains(&step.path)
    {
        let reason = format!(
            "what stands there now could not be kept ({}); --discard PATH gives it up",
            lack.reason()
        );
        step.verdict = Verdict::NotCaptured { reason };
    } else if let Some(reason) = only_bits_are_gone(&step) {
        step.verdict = Verdict::Keep { reason };
        step.cancels.clear();
    }
    step
}
