//! Thins the log out to what kept points need. Pure: changes in, writes out.
//!
//! Of every kept point, what stood where and what a rewind would do come out the same. What lies
//! before the oldest of them goes, but for the last entry of each path, from which the present is
//! known. Between two of them a path's neighbouring changes by one author become one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use takeback_store::{Author, Change, Entry, Evidence, Seq, TurnId, WorkPath, Write};

/// `changes`: all of the log, oldest first. `kept`: where the points stand that are kept; if there
/// are none, nothing before `head` is needed.
pub(super) fn thin(changes: &[Change], kept: &BTreeSet<Seq>, head: Seq) -> Vec<Write> {
    let oldest = kept.first().copied().unwrap_or(head);
    let needed = needed_by_name(changes, oldest);
    let cancelled_by = cancellers(changes);
    let mut by_path: HashMap<&WorkPath, Vec<&Change>> = HashMap::new();
    for change in changes {
        by_path.entry(&change.path).or_default().push(change);
    }
    // What becomes of a change; `None`: it goes. Those that stay as they are are not in it.
    let mut thinned: BTreeMap<Seq, Option<Change>> = BTreeMap::new();
    let mut folded_into: HashMap<Seq, Seq> = HashMap::new();
    for own in by_path.values() {
        let (before, after) = own.split_at(own.partition_point(|change| change.seq <= oldest));
        for (at, change) in before.iter().enumerate() {
            let is_last = at + 1 == own.len();
            let thin = thin_before(change, is_last, needed.contains(&change.seq));
            if thin.as_ref() != Some(*change) {
                thinned.insert(change.seq, thin);
            }
        }
        let runs = runs(after, kept, &cancelled_by);
        if runs.iter().all(|run| came_to_nothing(run, kept, &cancelled_by)) {
            thinned.extend(after.iter().map(|change| (change.seq, None)));
            continue;
        }
        for run in runs {
            let [first, .., last] = run else { continue };
            let seen = run.iter().all(|change| change.evidence == Evidence::Tool);
            let evidence = if seen { Evidence::Tool } else { Evidence::Window };
            let folded = Change { before: first.before.clone(), evidence, ..(*last).clone() };
            for change in &run[..run.len() - 1] {
                thinned.insert(change.seq, None);
                folded_into.insert(change.seq, last.seq);
            }
            thinned.insert(last.seq, Some(folded));
        }
    }
    for change in changes.iter().filter(|change| !change.cancels.is_empty()) {
        let mut now = match thinned.get(&change.seq) {
            Some(None) => continue,
            Some(Some(thin)) => thin.clone(),
            None => change.clone(),
        };
        for cancelled in &mut now.cancels {
            *cancelled = folded_into.get(cancelled).copied().unwrap_or(*cancelled);
        }
        now.cancels.dedup();
        if now != *change {
            thinned.insert(change.seq, Some(now));
        }
    }
    thinned
        .into_iter()
        .map(|(seq, change)| change.map_or(Write::DropChange(seq), Write::ReplaceChange))
        .collect()
}

/// A change from before the oldest kept point. What it left is asked for if it was the last of its
/// path; who made it, if a later rewind took it back.
fn thin_before(change: &Change, is_last: bool, is_needed: bool) -> Option<Change> {
    let after = if is_last { change.after.clone() } else { Entry::Unknown };
    if is_needed {
        return Some(Change { before: Entry::Unknown, after, ..change.clone() });
    }
    (is_last && after != Entry::Absent).then(|| Change {
        before: Entry::Unknown,
        after,
        author: if change.author == Author::Human { Author::Human } else { Author::Deleted },
        evidence: Evidence::Tool,
        cancels: Vec::new(),
        ..change.clone()
    })
}

/// Changes up to `oldest` that later rewinds took back, and what these in turn had taken back: who
/// goes to a point asks whose they were.
fn needed_by_name(changes: &[Change], oldest: Seq) -> HashSet<Seq> {
    let by_seq: HashMap<Seq, &Change> = changes.iter().map(|change| (change.seq, change)).collect();
    let later = changes.iter().filter(|change| change.seq > oldest);
    let mut open: Vec<Seq> = later.flat_map(|change| change.cancels.iter().copied()).collect();
    let mut needed = HashSet::new();
    while let Some(seq) = open.pop() {
        if seq <= oldest && needed.insert(seq) {
            open.extend(by_seq.get(&seq).iter().flat_map(|change| change.cancels.iter().copied()));
        }
    }
    needed
}

/// For each change that was taken back, by which.
fn cancellers(changes: &[Change]) -> HashMap<Seq, Vec<Seq>> {
    let mut cancelled_by: HashMap<Seq, Vec<Seq>> = HashMap::new();
    for change in changes {
        for cancelled in &change.cancels {
            cancelled_by.entry(*cancelled).or_default().push(change.seq);
        }
    }
    cancelled_by
}

/// Cuts a path's changes into runs, each of which one change can stand for.
fn runs<'a, 'c>(
    own: &'a [&'c Change],
    kept: &BTreeSet<Seq>,
    cancelled_by: &HashMap<Seq, Vec<Seq>>,
) -> Vec<&'a [&'c Change]> {
    let goes_on = |a: &&Change, b: &&Change| {
        let next_point = kept.range(a.seq..).next();
        a.after == b.before
            && next_point.is_some_and(|point| *point >= b.seq)
            && is_one_hand(&a.author, &b.author)
            && cancelled_by.get(&a.seq) == cancelled_by.get(&b.seq)
            // The mode that a folder had is known from its deletion alone.
            && !(b.before.is_dir() && b.after == Entry::Absent)
    };
    let mut runs = Vec::new();
    for run in own.chunk_by(goes_on) {
        // What one turn did stays call by call: nothing between its calls has been dropped.
        if run.iter().all(|change| turn_of(change) == turn_of(run[0])) {
            runs.extend(run.chunk_by(|a, b| a.author == b.author));
        } else {
            runs.push(run);
        }
    }
    runs
}

fn turn_of(change: &Change) -> Option<TurnId> {
    match change.author {
        Author::Agent { turn, .. } => Some(turn),
        _ => None,
    }
}

fn is_one_hand(a: &Author, b: &Author) -> bool {
    match (a, b) {
        (Author::Agent { session: a, .. }, Author::Agent { session: b, .. }) => a == b,
        (Author::Rewind { .. }, _) => false,
        (a, b) => a == b,
    }
}

/// Whether a file came and went, and nobody could ask about it.
fn came_to_nothing(
    run: &[&Change],
    kept: &BTreeSet<Seq>,
    cancelled_by: &HashMap<Seq, Vec<Seq>>,
) -> bool {
    let ([first, ..], Some(last)) = (run, run.last()) else { return true };
    first.before == Entry::Absent
        && last.after == Entry::Absent
        && kept.last().is_some_and(|newest| last.seq <= *newest)
        && !cancelled_by.contains_key(&last.seq)
        && matches!(last.author, Author::Agent { .. } | Author::Human | Author::Deleted)
}
