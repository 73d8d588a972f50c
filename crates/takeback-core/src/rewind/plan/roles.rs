//! The role of each run of changes of a path in a plan: taken back, unclear, another author's, or without
//! effect.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use takeback_store::{
    Author, Change, ChangeRun, Entry, Evidence, IN_PART, PathRuns, Seq, StoreError, WorkPath,
};

use super::{Aim, Sources};
use crate::exchange::imported::is_imported;
use crate::rewind::request::{AmbiguousPolicy, RewindScope};

/// The role of a change in a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// To be taken back.
    Take,
    /// Perhaps to be taken back.
    Ambiguous,
    /// Another author's.
    Other,
    /// No author's edit: a rewind in effect, an import, a first sighting, or a return to an earlier entry.
    Neutral,
    /// Taken back already.
    Dead,
}

/// The roles of a path's changes.
pub(super) struct Roles {
    /// One for each run of the history.
    pub(super) of: Vec<Role>,
    /// Other authors' changes before the aim's moment that a rewind took back together with what is
    /// restored now. They stay taken back. Oldest first.
    pub(super) stays_taken: Vec<EarlierRun>,
}

/// Neighbouring changes from before the aim's moment, as one.
pub(super) struct EarlierRun {
    pub(super) before: Entry,
    pub(super) after: Entry,
    pub(super) seqs: Vec<Seq>,
}

impl Roles {
    pub(super) fn contains(&self, role: Role) -> bool {
        self.of.contains(&role)
    }
}

pub(super) fn roles(
    history: &PathRuns,
    aim: &Aim,
    policy: AmbiguousPolicy,
    points: &BTreeSet<Seq>,
    sources: &dyn Sources,
) -> Result<Roles, StoreError> {
    roles_with(history, &with_returns(history, points), aim, policy, sources)
}

/// Whether a change of the path may have to be taken back, whatever a look will show. A change that was
/// undone may be back: a popped stash.
pub(in crate::rewind) fn may_be_taken(
    history: &PathRuns,
    aim: &Aim,
    points: &BTreeSet<Seq>,
    sources: &dyn Sources,
) -> Result<bool, StoreError> {
    let blocks = with_returns(history, points);
    let no_returns = blocks.iter().map(|block| Block { back_over: 0..0, ..block.clone() });
    for blocks in [no_returns.collect(), blocks] {
        let roles = roles_with(history, &blocks, aim, AmbiguousPolicy::Take, sources)?;
        if roles.contains(Role::Take) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The sessions whose changes an aim takes back.
fn scope_of(aim: &Aim) -> &RewindScope {
    match aim {
        Aim::Point { scope, .. } => scope,
        Aim::WithoutChanges { chosen } => &chosen.scope,
        Aim::Exact { .. } | Aim::Without { .. } | Aim::Incoming { .. } => &RewindScope::AllAgents,
    }
}

/// Whether an aim takes back work like this.
fn is_asked(run: &ChangeRun, aim: &Aim) -> bool {
    match aim {
        Aim::Point { scope, .. } => scope.includes(&run.author),
        Aim::WithoutChanges { chosen } => chosen.includes(run.seqs[0], &run.author),
        Aim::Exact { .. } | Aim::Without { .. } | Aim::Incoming { .. } => false,
    }
}

fn roles_with(
    history: &PathRuns,
    blocks: &[Block],
    aim: &Aim,
    policy: AmbiguousPolicy,
    sources: &dyn Sources,
) -> Result<Roles, StoreError> {
    let effects = Effects::of(history, blocks, aim, sources)?;
    let role = |at: usize, run: &ChangeRun| match (&run.author, aim) {
        _ if effects.dead.contains(&run.seqs[0]) => Role::Dead,
        _ if effects.taken.contains(&run.seqs[0]) => Role::Take,
        _ if effects.returns.contains(&at) => Role::Neutral,
        (Author::Rewind { .. } | Author::Import, _) => Role::Neutral,
        (_, Aim::Incoming { .. }) => Role::Take,
        (author, Aim::Point { .. } | Aim::WithoutChanges { .. }) if is_asked(run, aim) => {
            let is_sure = match policy {
                AmbiguousPolicy::Take => true,
                AmbiguousPolicy::TakeOwn if scope_of(aim).includes_all(author) => true,
                AmbiguousPolicy::Leave | AmbiguousPolicy::TakeOwn => !is_in_doubt(run),
            };
            if is_sure { Role::Take } else { Role::Ambiguous }
        }
        (author, _) if is_imported(author) => Role::Neutral,
        // Nothing changed: it was seen for the first time.
        _ if run.before == Entry::Unknown => Role::Neutral,
        _ => Role::Other,
    };
    let of = history.runs.iter().enumerate().map(|(at, run)| role(at, run)).collect();
    let stays_taken = match aim {
        Aim::Point { scope, .. } => others_work(effects.in_effect_before, scope),
        _ => Vec::new(),
    };
    Ok(Roles { of, stays_taken })
}

/// The effect of later rewinds and returns on a path's changes.
#[derive(Default)]
struct Effects {
    /// The changes that a later rewind, or a return to an earlier entry, cancelled.
    dead: HashSet<Seq>,
    /// Rewinds that are taken back: they cancel nothing. And other authors' changes since the aim's
    /// moment that these rewinds took back, which stay taken back.
    taken: HashSet<Seq>,
    /// Blocks that return to an earlier entry.
    returns: HashSet<usize>,
    /// Changes that the rewinds took back and that were in effect at the aim's moment.
    in_effect_before: BTreeMap<Seq, Change>,
}

impl Effects {
    /// From the newest back: a rewind that was undone cancels nothing.
    fn of(
        history: &PathRuns,
        blocks: &[Block],
        aim: &Aim,
        sources: &dyn Sources,
    ) -> Result<Self, StoreError> {
        let mut effects = Self::default();
        for block in blocks.iter().rev() {
            let own = &history.runs[block.own.clone()];
            let (first, last) = (&own[0], &own[own.len() - 1]);
            if effects.dead.contains(&first.seqs[0]) {
                continue;
            }
            match aim {
                Aim::Without { rewind } if first.author == (Author::Rewind { id: *rewind }) => {
                    effects.taken.insert(first.seqs[0]);
                }
                Aim::Point { at, scope } if is_reopened(first, *at, scope, sources)? => {
                    effects.reopen(history, first, *at, scope);
                    let changes = in_effect_at(*at, &history.path, &first.cancels, sources)?;
                    let changes = changes.into_iter().map(|change| (change.seq, change));
                    effects.in_effect_before.extend(changes);
                }
                // A rewind that left some lines left the work that is in them; a rewind that it took
                // back is not in effect any more.
                _ if first.cancels.first() == Some(&IN_PART) => {
                    let of_rewind = |run: &&ChangeRun| {
                        matches!(run.author, Author::Rewind { .. })
                            && first.cancels.contains(&run.seqs[0])
                    };
                    let rewinds = history.runs.iter().filter(of_rewind);
                    effects.dead.extend(rewinds.map(|run| run.seqs[0]));
                }
                _ => effects.dead.extend(&first.cancels),
            }
            // A block that is taken back itself restores nothing.
            let is_taken = effects.taken.contains(&last.seqs[0])
                || matches!(aim, Aim::WithoutChanges { .. }) && is_asked(last, aim);
            if !block.back_over.is_empty() && !is_taken {
                let between = &history.runs[block.back_over.clone()];
                effects.dead.extend(between.iter().flat_map(|run| &run.seqs));
                effects.returns.extend(block.own.clone());
            }
        }
        Ok(effects)
    }

    fn reopen(&mut self, history: &PathRuns, rewind: &ChangeRun, at: Seq, scope: &RewindScope) {
        self.taken.insert(rewind.seqs[0]);
        let is_others = |run: &&ChangeRun| {
            run.seqs[0] > at
                && rewind.cancels.contains(&run.seqs[0])
                && is_work(&run.author, &run.before)
                && !scope.includes(&run.author)
        };
        let others = history.runs.iter().filter(is_others);
        self.taken.extend(others.map(|run| run.seqs[0]));
    }
}

fn is_in_doubt(run: &ChangeRun) -> bool {
    match run.author {
        Author::Ambiguous { .. } => true,
        Author::Agent { .. } => run.evidence == Evidence::OpenWindow,
        _ => false,
    }
}

/// Neighbouring runs by one author, with no point between them, of which no rewind took back some
/// and not the others.
#[derive(Debug, Clone)]
struct Block {
    own: Range<usize>,
    /// The earlier runs that it cancels by returning to an earlier entry: a `git stash`, a branch switch,
    /// the agent's own restore. It has nothing new, so it is not an edit.
    back_over: Range<usize>,
}

/// Only entries at points and where the author changes count as earlier entries: between those, retention may
/// fold changes, and a plan must not depend on whether it did.
fn with_returns(history: &PathRuns, points: &BTreeSet<Seq>) -> Vec<Block> {
    let is_known = |entry: &Entry| !matches!(entry, Entry::Unknown | Entry::NotCaptured { .. });
    let mut seen: HashMap<&Entry, usize> = HashMap::new();
    seen.extend(Some((history.at_start(), 0)).filter(|(entry, _)| is_known(entry)));
    let mut with_returns = Vec::new();
    for own in blocks(history, points) {
        let last = &history.runs[own.end - 1];
        let back_to = seen.get(&last.after).map_or(own.start, |before| *before);
        let counts = may_return(last, &history.runs[back_to..own.start]);
        let back_over = if counts { back_to..own.start } else { 0..0 };
        if is_known(&last.after) {
            seen.insert(&last.after, own.end);
        }
        with_returns.push(Block { own, back_over });
    }
    with_returns
}

/// A person may return over any author's work. A return by an agent counts only if it removes no other
/// author's work: a `git checkout` that destroys a person's edit has to be taken back.
fn may_return(by: &ChangeRun, between: &[ChangeRun]) -> bool {
    let is_of_same = |other: &ChangeRun| {
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

/// As of [`Block::own`].
fn blocks(history: &PathRuns, points: &BTreeSet<Seq>) -> Vec<Range<usize>> {
    let runs = &history.runs;
    let mut cancelled_by: Vec<Vec<usize>> = vec![Vec::new(); runs.len()];
    for (by, rewind) in runs.iter().enumerate() {
        for seq in &rewind.cancels {
            // In the order of the log.
            let of = runs.partition_point(|run| run.seqs[0] <= *seq);
            if let Some(of) = of.checked_sub(1).filter(|of| runs[*of].seqs.contains(seq)) {
                cancelled_by[of].push(by);
            }
        }
    }
    cancelled_by.iter_mut().for_each(Vec::dedup);
    let goes_on = |at: usize| {
        let (one, next) = (&runs[at - 1], &runs[at]);
        let last = one.seqs[one.seqs.len() - 1];
        is_one_author(one, next)
            && points.range(last..next.seqs[0]).next().is_none()
            && cancelled_by[at - 1] == cancelled_by[at]
    };
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for at in 0..runs.len() {
        match blocks.last_mut() {
            Some(block) if goes_on(at) => block.end = at + 1,
            _ => blocks.push(at..at + 1),
        }
    }
    blocks
}

fn is_one_author(a: &ChangeRun, b: &ChangeRun) -> bool {
    match (&a.author, &b.author) {
        (Author::Agent { session: one, .. }, Author::Agent { session: other, .. }) => {
            one == other && is_in_doubt(a) == is_in_doubt(b)
        }
        (Author::Rewind { .. }, _) => false,
        (one, other) => one == other,
    }
}

/// Whether a rewind after the point took back work of the selected sessions from before it. At the point that
/// work was in effect, so going there takes the rewind back, as far as it concerns them.
fn is_reopened(
    rewind: &ChangeRun,
    at: Seq,
    scope: &RewindScope,
    sources: &dyn Sources,
) -> Result<bool, StoreError> {
    let earlier = rewind.cancels.iter().copied().filter(|seq| *seq <= at).collect();
    concern(earlier, scope, sources)
}

/// Of the changes that a rewind took back, those up to `at` that were in effect then.
fn in_effect_at(
    at: Seq,
    path: &WorkPath,
    cancelled: &[Seq],
    sources: &dyn Sources,
) -> Result<Vec<Change>, StoreError> {
    let mut earlier: Vec<Seq> = cancelled.iter().copied().filter(|seq| *seq <= at).collect();
    earlier.sort_unstable();
    let mut taken_back: HashSet<Seq> = HashSet::new();
    let mut in_effect = Vec::new();
    for seq in earlier.into_iter().rev() {
        let Some(change) = sources.change(seq)? else { continue };
        if change.path == *path && !taken_back.contains(&seq) {
            taken_back.extend(&change.cancels);
            in_effect.push(change);
        }
    }
    Ok(in_effect)
}

/// Of changes from before the point, those by other authors. Neighbours are grouped: retention may have
/// folded them.
fn others_work(changes: BTreeMap<Seq, Change>, scope: &RewindScope) -> Vec<EarlierRun> {
    let mut runs: Vec<EarlierRun> = Vec::new();
    let mut goes_on = false;
    for (seq, Change { before, after, author, .. }) in changes {
        if !is_work(&author, &before) || scope.includes(&author) {
            goes_on = false;
            continue;
        }
        match runs.last_mut().filter(|_| goes_on) {
            Some(run) => {
                run.after = after;
                run.seqs.push(seq);
            }
            None => runs.push(EarlierRun { before, after, seqs: vec![seq] }),
        }
        goes_on = true;
    }
    runs
}

/// Whether it is an edit: no rewind, no import, no first sighting.
fn is_work(author: &Author, before: &Entry) -> bool {
    let is_written =
        matches!(author, Author::Human | Author::Agent { .. } | Author::Ambiguous { .. });
    is_written && *before != Entry::Unknown
}

/// Whether any of these cancelled changes was originally by one of the scope's sessions.
fn concern(
    cancelled: Vec<Seq>,
    scope: &RewindScope,
    sources: &dyn Sources,
) -> Result<bool, StoreError> {
    let mut open = cancelled;
    while let Some(seq) = open.pop() {
        // Retention has dropped it: its author is no longer known.
        let Some(change) = sources.change(seq)? else { continue };
        if scope.includes(&change.author) {
            return Ok(true);
        }
        open.extend(change.cancels);
    }
    Ok(false)
}
