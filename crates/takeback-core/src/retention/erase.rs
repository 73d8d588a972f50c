//! What is deleted with a session in addition to its points: the rewinds that took its work back, with their
//! safety points, and the versions of its files that no kept point has. Pure: records in, writes out.
//!
//! A version stays if a kept point has it, if another agent's change begins or ends with it, or if it is
//! on disk now.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use takeback_store::{
    Author, Change, Entry, Evidence, IN_PART, Point, PointId, PointKind, RewindHeader, RewindId,
    RewindState, Seq, SessionId, WorkPath, Write,
};

/// Rewinds to delete, and their safety points.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ErasedRewinds {
    pub(super) points: BTreeSet<PointId>,
    pub(super) rewinds: BTreeSet<RewindId>,
    /// The newest of them. What remains of it explains why it cannot be undone.
    pub(super) newest: Option<RewindId>,
}

/// The rewinds that took back work of `sessions`, those whose safety points have contents of these
/// sessions that nothing else keeps, and every older one: an undo must not skip a deleted rewind.
pub(super) fn erased_rewinds(
    changes: &[Change],
    kept: &[Point],
    rewinds: &[RewindHeader],
    sessions: &[SessionId],
) -> ErasedRewinds {
    let touched = touched(changes, sessions);
    let held = UnlistedRuns::by(changes, kept, sessions);
    let goes = |rewind: &RewindHeader| {
        let safety = kept.iter().find(|point| point.id == rewind.safety_point);
        rewind.state == RewindState::Done
            && (touched.contains(&rewind.id) || safety.is_some_and(|point| held.at(point.seq)))
    };
    let Some(newest) = rewinds.iter().rposition(goes) else { return ErasedRewinds::default() };
    let done = rewinds[..=newest].iter().filter(|rewind| rewind.state == RewindState::Done);
    let mut going = ErasedRewinds { newest: Some(rewinds[newest].id), ..ErasedRewinds::default() };
    for rewind in done {
        going.points.insert(rewind.safety_point);
        going.rewinds.insert(rewind.id);
    }
    going
}

/// The rewinds that cancel a change of `sessions`, and those that cancel a change of such a rewind.
fn touched(changes: &[Change], sessions: &[SessionId]) -> HashSet<RewindId> {
    let mut theirs: HashSet<Seq> = HashSet::new();
    let mut touched = HashSet::new();
    for change in changes {
        match change.author {
            Author::Rewind { id } if change.cancels.iter().any(|seq| theirs.contains(seq)) => {
                touched.insert(id);
                theirs.insert(change.seq);
            }
            _ if is_own(change, sessions) => drop(theirs.insert(change.seq)),
            _ => {}
        }
    }
    touched
}

fn is_own(change: &Change, sessions: &[SessionId]) -> bool {
    matches!(&change.author, Author::Agent { session, .. } if sessions.contains(session))
}

/// The runs of the log in which a path has contents of a session that no listed point has.
struct UnlistedRuns {
    /// From the change that made them to the one that replaced them.
    runs: Vec<(Seq, Seq)>,
}

impl UnlistedRuns {
    fn by(changes: &[Change], kept: &[Point], sessions: &[SessionId]) -> Self {
        let listed = kept.iter().filter(|point| point.kind != PointKind::Safety);
        let listed: BTreeSet<Seq> = listed.map(|point| point.seq).collect();
        let mut runs = Vec::new();
        for own in by_path(changes).values() {
            let contents = contents_of(own, sessions);
            for pair in own.windows(2) {
                let (from, to) = (pair[0].seq, pair[1].seq);
                let is_listed = listed.range(from..to).next().is_some();
                if contents.contains(&pair[0].after) && !is_listed {
                    runs.push((from, to));
                }
            }
        }
        Self { runs }
    }

    fn at(&self, seq: Seq) -> bool {
        self.runs.iter().any(|(from, to)| (*from..*to).contains(&seq))
    }
}

fn by_path(changes: &[Change]) -> BTreeMap<&WorkPath, Vec<&Change>> {
    let mut paths: BTreeMap<&WorkPath, Vec<&Change>> = BTreeMap::new();
    for change in changes {
        paths.entry(&change.path).or_default().push(change);
    }
    paths
}

/// The entries that `sessions` left at a path.
fn contents_of<'c>(own: &[&'c Change], sessions: &[SessionId]) -> HashSet<&'c Entry> {
    let theirs = own.iter().filter(|change| is_own(change, sessions));
    let left = theirs.map(|change| &change.after);
    left.filter(|entry| matches!(entry, Entry::File { .. } | Entry::Symlink { .. })).collect()
}

/// Folds the changes of `sessions` with those of the deleted rewinds and with the person's changes in
/// between, where no kept point is between them. Updates `changes` to match the log after the writes.
pub(super) fn fold(
    changes: &mut Vec<Change>,
    kept: &BTreeSet<Seq>,
    gone: &BTreeSet<RewindId>,
    sessions: &[SessionId],
) -> Vec<Write> {
    let log = Log::read(changes, kept, gone, sessions);
    // The replacement of a change; `None`: it is dropped.
    let mut folded: BTreeMap<Seq, Option<Change>> = BTreeMap::new();
    let mut folded_into: HashMap<Seq, Option<Seq>> = HashMap::new();
    for own in by_path(changes).values() {
        let contents = contents_of(own, sessions);
        let mut at = 0;
        while at < own.len() {
            let window = log.window(&own[at..], &contents);
            if let Some(fold) = log.fold(&own[..at], window) {
                let into = fold.as_ref().map(|change| change.seq);
                for change in window {
                    folded.insert(change.seq, None);
                    folded_into.insert(change.seq, into);
                }
                if let Some(change) = fold {
                    folded.insert(change.seq, Some(change));
                }
            }
            at += window.len().max(1);
        }
    }
    for change in changes.iter().filter(|change| !change.cancels.is_empty()) {
        let mut now = match folded.get(&change.seq) {
            Some(None) => continue,
            Some(Some(fold)) => fold.clone(),
            None => change.clone(),
        };
        let become_of = |seq: &Seq| folded_into.get(seq).copied().unwrap_or(Some(*seq));
        now.cancels = now.cancels.iter().filter_map(become_of).collect();
        now.cancels.dedup();
        if now != *change {
            folded.insert(change.seq, Some(now));
        }
    }
    changes.retain_mut(|change| match folded.get(&change.seq) {
        Some(None) => false,
        Some(Some(now)) => {
            change.clone_from(now);
            true
        }
        None => true,
    });
    let write = |(seq, change): (Seq, Option<Change>)| {
        change.map_or(Write::DropChange(seq), Write::ReplaceChange)
    };
    folded.into_iter().map(write).collect()
}

/// What decides whether changes of a path can be folded.
struct Log<'a> {
    kept: &'a BTreeSet<Seq>,
    gone: &'a BTreeSet<RewindId>,
    sessions: &'a [SessionId],
    /// Taken back by a deleted rewind.
    taken_back: HashSet<Seq>,
    /// Taken back by a kept rewind: its undo needs them.
    asked_for: HashSet<Seq>,
}

impl<'a> Log<'a> {
    fn read(
        changes: &[Change],
        kept: &'a BTreeSet<Seq>,
        gone: &'a BTreeSet<RewindId>,
        sessions: &'a [SessionId],
    ) -> Self {
        let mut log =
            Self { kept, gone, sessions, taken_back: HashSet::new(), asked_for: HashSet::new() };
        for change in changes {
            let to = if log.is_gone(change) { &mut log.taken_back } else { &mut log.asked_for };
            to.extend(&change.cancels);
        }
        log
    }

    fn is_gone(&self, change: &Change) -> bool {
        matches!(change.author, Author::Rewind { id } if self.gone.contains(&id))
    }

    fn is_own(&self, change: &Change) -> bool {
        is_own(change, self.sessions)
    }

    /// The changes at the beginning of `own` that can be folded; empty if the first is not by a deleted
    /// session.
    fn window<'o, 'c>(
        &self,
        own: &'o [&'c Change],
        contents: &HashSet<&Entry>,
    ) -> &'o [&'c Change] {
        if own.first().is_none_or(|first| !self.can_fold(first) || !self.is_own(first)) {
            return &[];
        }
        let goes_on = |pair: &[&Change]| {
            let is_between = self.kept.range(pair[0].seq..pair[1].seq).next().is_some();
            !is_between && pair[0].after == pair[1].before && self.can_fold(pair[1])
        };
        let length = 1 + own.windows(2).take_while(|pair| goes_on(pair)).count();
        let is_theirs = |change: &&&Change| self.is_own(change) || self.is_gone(change);
        let last = own[..length].iter().rposition(|change| is_theirs(&change)).unwrap_or(0);
        // The change that overwrote their contents begins with them.
        let over = usize::from(last + 1 < length && contents.contains(&own[last].after));
        &own[..=last + over]
    }

    fn can_fold(&self, change: &Change) -> bool {
        let is_foldable = match &change.author {
            Author::Human | Author::Deleted => true,
            Author::Rewind { .. } => self.is_gone(change),
            Author::Agent { .. } => self.is_own(change) || self.taken_back.contains(&change.seq),
            Author::Ambiguous { .. } | Author::Import => false,
        };
        is_foldable && !self.asked_for.contains(&change.seq)
    }

    /// Folds a window into one change, or into nothing (`Some(None)`). `None`: it cannot be folded.
    /// `earlier`: the path's changes before the window.
    #[expect(clippy::option_option, reason = "no fold, and a fold that leaves nothing")]
    fn fold(&self, earlier: &[&Change], window: &[&Change]) -> Option<Option<Change>> {
        let [first, .., last] = window else { return None };
        let inside: HashSet<Seq> = window.iter().map(|change| change.seq).collect();
        let cancels = window.iter().flat_map(|change| &change.cancels);
        let mut cancels: Vec<Seq> = cancels.filter(|seq| !inside.contains(seq)).copied().collect();
        cancels.sort_unstable();
        cancels.dedup();
        if cancels == [IN_PART] {
            cancels.clear();
        }
        let has_human = window.iter().any(|change| change.author == Author::Human);
        if !cancels.is_empty() {
            // The rewind also took back something from before the window.
            let is_rewind = self.is_gone(last) && !has_human && first.before != last.after;
            return is_rewind.then(|| {
                Some(Change { before: first.before.clone(), cancels, ..(*last).clone() })
            });
        }
        // A plan reads a change to an earlier entry as a return to it. If the person returned to it, the
        // folded change must not look like a return that undoes another session's earlier work.
        let was_there = |change: &&Change| [&change.before, &change.after].contains(&&last.after);
        if has_human && first.before != last.after && earlier.iter().any(was_there) {
            return None;
        }
        let is_known = !earlier.is_empty() || first.before == Entry::Absent;
        if first.before == last.after && is_known {
            return Some(None);
        }
        let cancelled: HashSet<Seq> =
            window.iter().flat_map(|change| &change.cancels).copied().collect();
        let is_left = |change: &&&Change| {
            !matches!(change.author, Author::Human | Author::Rewind { .. })
                && !cancelled.contains(&change.seq)
        };
        let only_human = has_human && window.iter().find(is_left).is_none();
        Some(Some(Change {
            before: first.before.clone(),
            author: if only_human { Author::Human } else { Author::Deleted },
            evidence: Evidence::Named,
            correction: None,
            cancels,
            ..(*last).clone()
        }))
    }
}
