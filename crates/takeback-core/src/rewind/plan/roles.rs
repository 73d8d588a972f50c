//! What each run of changes of a path is to a plan: to be taken back, in doubt, someone else's, or
//! without effect.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use takeback_store::{
    Author, Change, Entry, Evidence, PathStretches, Seq, StoreError, Stretch, WorkPath,
};

use super::{Aim, AmbiguousPolicy, Sources, Whose};
use crate::exchange::imported::is_imported;
use crate::history::dead;

/// What a change is to a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// To be taken back.
    Take,
    /// Perhaps to be taken back.
    Ambiguous,
    /// Somebody else's.
    Other,
    /// No change of anybody: a rewind that stands, an import, a first sight, or a return to what stood
    /// there before.
    Neutral,
    /// Taken back already.
    Dead,
}

/// The roles of a path's changes.
pub(super) struct Roles {
    /// One for each stretch of the history.
    pub(super) of: Vec<Role>,
    /// Changes from before the aim's moment, by others, which a rewind took back together with those
    /// that come back now. They stay taken back. Oldest first.
    pub(super) stay_taken: Vec<Change>,
}

impl Roles {
    pub(super) fn contains(&self, role: Role) -> bool {
        self.of.contains(&role)
    }
}

pub(super) fn roles(
    history: &PathStretches,
    aim: &Aim,
    policy: AmbiguousPolicy,
    points: &BTreeSet<Seq>,
    sources: &dyn Sources,
) -> Result<Roles, StoreError> {
    roles_with(history, &returns(history, points), aim, policy, sources)
}

/// Whether something of the path may have to be taken back, whatever a look at it will show. What was
/// brought to nothing may have come back: a stash that was popped.
pub(super) fn may_be_taken(
    history: &PathStretches,
    aim: &Aim,
    sources: &dyn Sources,
) -> Result<bool, StoreError> {
    let no_returns: Vec<Range<usize>> = (0..history.stretches.len()).map(|at| at..at).collect();
    let roles = roles_with(history, &no_returns, aim, AmbiguousPolicy::Take, sources)?;
    Ok(roles.contains(Role::Take))
}

fn roles_with(
    history: &PathStretches,
    returns: &[Range<usize>],
    aim: &Aim,
    policy: AmbiguousPolicy,
    sources: &dyn Sources,
) -> Result<Roles, StoreError> {
    let reopened = Reopened::of(history, aim, sources)?;
    let target = |stretch: &Stretch| match aim {
        Aim::Without { rewind } => stretch.author == Author::Rewind { id: *rewind },
        _ => reopened.rewinds.contains(&stretch.seqs[0]),
    };
    let dead = dead(history, returns, target);
    let role = |at: usize, stretch: &Stretch| match (&stretch.author, aim) {
        _ if dead.contains(&stretch.seqs[0]) => Role::Dead,
        _ if target(stretch) || reopened.still_taken.contains(&stretch.seqs[0]) => Role::Take,
        _ if !returns[at].is_empty() => Role::Neutral,
        (Author::Rewind { .. } | Author::Import, _) => Role::Neutral,
        (author, Aim::Point { whose, .. }) if whose.includes(author) => {
            let is_sure = match policy {
                AmbiguousPolicy::Take => true,
                AmbiguousPolicy::TakeOwn if whose.includes_all(author) => true,
                AmbiguousPolicy::Leave | AmbiguousPolicy::TakeOwn => !is_in_doubt(stretch),
            };
            if is_sure { Role::Take } else { Role::Ambiguous }
        }
        (author, _) if is_imported(author) => Role::Neutral,
        // Nothing changed: it came into sight.
        _ if stretch.before == Entry::Unknown => Role::Neutral,
        _ => Role::Other,
    };
    let of = history.stretches.iter().enumerate().map(|(at, stretch)| role(at, stretch)).collect();
    Ok(Roles { of, stay_taken: reopened.stay_taken })
}

fn is_in_doubt(stretch: &Stretch) -> bool {
    match stretch.author {
        Author::Ambiguous { .. } => true,
        Author::Agent { .. } => stretch.evidence == Evidence::OpenWindow,
        _ => false,
    }
}

/// For each stretch, those before it that it takes the effect of by bringing back what stood there:
/// a `git stash`, a switch of branches, the agent's own restore. It holds nothing new, so it is no edit.
///
/// What stood there counts at points and where the author changes, and nowhere else: between those,
/// retention makes one change of several, and a plan must not depend on whether it has.
fn returns(history: &PathStretches, points: &BTreeSet<Seq>) -> Vec<Range<usize>> {
    let is_known = |entry: &Entry| !matches!(entry, Entry::Unknown | Entry::NotCaptured { .. });
    let mut stood: HashMap<&Entry, usize> = HashMap::new();
    stood.extend(Some((history.at_start(), 0)).filter(|(entry, _)| is_known(entry)));
    let mut returns: Vec<Range<usize>> = Vec::with_capacity(history.stretches.len());
    for block in blocks(history, points) {
        let last = &history.stretches[block.end - 1];
        let back_to = stood.get(&last.after).map_or(block.start, |before| *before);
        let between = &history.stretches[back_to..block.start];
        let counts = !between.is_empty() && may_return(last, between);
        let between = if counts { back_to..block.start } else { block.start..block.start };
        returns.extend(block.clone().map(|_| between.clone()));
        if is_known(&last.after) {
            stood.insert(&last.after, block.end);
        }
    }
    returns
}

/// A person decides for all. What an agent may have done counts only where nothing of anyone else's
/// goes: a `git checkout` that destroys a person's edit has to be taken back.
fn may_return(by: &Stretch, between: &[Stretch]) -> bool {
    let is_of_same = |other: &Stretch| {
        let sessions = other.author.sessions();
        !sessions.is_empty() && sessions.iter().all(|one| by.author.sessions().contains(one))
    };
    match by.author {
        Author::Human => true,
        Author::Agent { .. } | Author::Ambiguous { .. } => {
            is_in_doubt(by) && between.iter().all(is_of_same)
        }
        _ => false,
    }
}

/// Neighbouring stretches by one author, with no point between them, of which no rewind took back some
/// and not the others.
fn blocks(history: &PathStretches, points: &BTreeSet<Seq>) -> Vec<Range<usize>> {
    let stretches = &history.stretches;
    let mut cancelled_by: Vec<Vec<usize>> = vec![Vec::new(); stretches.len()];
    for (by, rewind) in stretches.iter().enumerate() {
        for seq in &rewind.cancels {
            // In the order of the log.
            let of = stretches.partition_point(|stretch| stretch.seqs[0] <= *seq);
            if let Some(of) = of.checked_sub(1).filter(|of| stretches[*of].seqs.contains(seq)) {
                cancelled_by[of].push(by);
            }
        }
    }
    cancelled_by.iter_mut().for_each(Vec::dedup);
    let goes_on = |at: usize| {
        let (one, next) = (&stretches[at - 1], &stretches[at]);
        let last = one.seqs[one.seqs.len() - 1];
        is_one_author(one, next)
            && points.range(last..next.seqs[0]).next().is_none()
            && cancelled_by[at - 1] == cancelled_by[at]
    };
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for at in 0..stretches.len() {
        match blocks.last_mut() {
            Some(block) if goes_on(at) => block.end = at + 1,
            _ => blocks.push(at..at + 1),
        }
    }
    blocks
}

fn is_one_author(a: &Stretch, b: &Stretch) -> bool {
    match (&a.author, &b.author) {
        (Author::Agent { session: one, .. }, Author::Agent { session: other, .. }) => {
            one == other && is_in_doubt(a) == is_in_doubt(b)
        }
        (Author::Rewind { .. }, _) => false,
        (one, other) => one == other,
    }
}

/// Rewinds that came after the point and took back something of the chosen sessions from before it: at
/// the point that stood, so going there takes the rewind back, as far as it concerns them.
#[derive(Default)]
struct Reopened {
    rewinds: HashSet<Seq>,
    /// What these took back of others' since the point.
    still_taken: HashSet<Seq>,
    /// The same from before the point.
    stay_taken: Vec<Change>,
}

impl Reopened {
    fn of(history: &PathStretches, aim: &Aim, sources: &dyn Sources) -> Result<Self, StoreError> {
        let mut reopened = Self::default();
        let Aim::Point { at, whose } = aim else { return Ok(reopened) };
        for stretch in history.stretches.iter().filter(|stretch| !stretch.cancels.is_empty()) {
            let (earlier, later): (Vec<Seq>, Vec<Seq>) =
                stretch.cancels.iter().copied().partition(|seq| seq <= at);
            if !concern(earlier.clone(), whose, sources)? {
                continue;
            }
            reopened.rewinds.insert(stretch.seqs[0]);
            let is_others = |stretch: &&Stretch| {
                later.contains(&stretch.seqs[0])
                    && is_work(&stretch.author, &stretch.before)
                    && !whose.includes(&stretch.author)
            };
            let others = history.stretches.iter().filter(is_others);
            reopened.still_taken.extend(others.map(|stretch| stretch.seqs[0]));
            reopened.stay_taken.extend(others_work(&history.path, earlier, whose, sources)?);
        }
        Ok(reopened)
    }
}

/// Of changes from before a point, those that stood at it and are someone else's work.
fn others_work(
    path: &WorkPath,
    mut seqs: Vec<Seq>,
    whose: &Whose,
    sources: &dyn Sources,
) -> Result<Vec<Change>, StoreError> {
    seqs.sort_unstable();
    let mut work = Vec::new();
    let mut taken_back: HashSet<Seq> = HashSet::new();
    for seq in seqs.into_iter().rev() {
        let Some(change) = sources.change(seq)? else { continue };
        if change.path != *path || taken_back.contains(&seq) {
            continue;
        }
        taken_back.extend(change.cancels.iter().copied());
        if is_work(&change.author, &change.before) && !whose.includes(&change.author) {
            work.push(change);
        }
    }
    work.reverse();
    Ok(work)
}

/// Whether someone wrote it: no rewind, no import, no first sight.
fn is_work(author: &Author, before: &Entry) -> bool {
    let is_written =
        matches!(author, Author::Human | Author::Agent { .. } | Author::Ambiguous { .. });
    is_written && *before != Entry::Unknown
}

/// Whether any of these cancelled changes was, at the bottom, by any of `whose`.
fn concern(cancelled: Vec<Seq>, whose: &Whose, sources: &dyn Sources) -> Result<bool, StoreError> {
    let mut open = cancelled;
    while let Some(seq) = open.pop() {
        // One that retention has dropped: its author is not known any more.
        let Some(change) = sources.change(seq)? else { continue };
        if whose.includes(&change.author) {
            return Ok(true);
        }
        open.extend(change.cancels);
    }
    Ok(false)
}
