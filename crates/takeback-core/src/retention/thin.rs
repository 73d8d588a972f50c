//! Thins the log to what kept points need. Pure: changes in, writes out.
//!
//! For every kept point, the tree and the result of a rewind stay the same; only the author of a deleted
//! session's changes is lost. Changes before the oldest kept point are dropped, except the last of each
//! path, which gives its present entry. Between two kept points a path's neighbouring changes by one
//! author become one.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use takeback_store::{Author, Change, Entry, Evidence, Seq, SessionId, TurnId, WorkPath, Write};

/// `changes`: the whole log, oldest first. `kept`: the positions of the kept points; if there are none,
/// nothing before `head` is needed.
pub(super) fn thin(changes: &[Change], kept: &BTreeSet<Seq>, head: Seq) -> Vec<Write> {
    let oldest = kept.first().copied().unwrap_or(head);
    let needed = needed(changes, oldest);
    let cancelled_by = cancellers(changes);
    let mut by_path: HashMap<&WorkPath, Vec<&Change>> = HashMap::new();
    for change in changes {
        by_path.entry(&change.path).or_default().push(change);
    }
    // The replacement of a change; `None`: it is dropped. Unchanged ones are not listed.
    let mut thinned: BTreeMap<Seq, Option<Change>> = BTreeMap::new();
    let mut folded_into: HashMap<Seq, Seq> = HashMap::new();
    for own in by_path.values_mut() {
        for change in drop_detours(own, kept, &cancelled_by) {
            thinned.insert(change, None);
        }
        let (before, after) = own.split_at(own.partition_point(|change| change.seq <= oldest));
        for (at, change) in before.iter().enumerate() {
            let is_last = at + 1 == own.len();
            let thin = thin_before(change, is_last, needed.get(&change.seq).copied());
            if thin.as_ref() != Some(*change) {
                thinned.insert(change.seq, thin);
            }
        }
        let runs = runs(after, kept, &cancelled_by);
        if runs.iter().all(|run| is_transient(run, kept)) {
            thinned.extend(after.iter().map(|change| (change.seq, None)));
            continue;
        }
        for run in runs.into_iter().flat_map(foldable) {
            let [first, .., last] = run else { continue };
            let evidence =
                run.iter().map(|change| change.evidence).max_by_key(|evidence| match evidence {
                    Evidence::Named => 0,
                    Evidence::AfterEdit => 1,
                    Evidence::Window => 2,
                    Evidence::OpenWindow => 3,
                });
            let evidence = evidence.unwrap_or(last.evidence);
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

/// Removes the detours into an import and back from a path's changes, where no point is left on them. Returns
/// them.
fn drop_detours(
    own: &mut Vec<&Change>,
    kept: &BTreeSet<Seq>,
    cancelled_by: &HashMap<Seq, Vec<Seq>>,
) -> HashSet<Seq> {
    let mut dropped = HashSet::new();
    let mut at = 0_usize;
    for run in runs(own, kept, cancelled_by) {
        let ([first, ..], Some(last)) = (run, run.last()) else { continue };
        let stood = at.checked_sub(1).map_or(&Entry::Absent, |before| &own[before].after);
        let goes_nowhere = first.before == last.after && first.before == *stood;
        if last.author == Author::Import && goes_nowhere {
            dropped.extend(run.iter().map(|change| change.seq));
        }
        at += run.len();
    }
    own.retain(|change| !dropped.contains(&change.seq));
    dropped
}

/// Thins a change from before the oldest kept point. Its result is needed if it was the last of its path.
fn thin_before(change: &Change, is_last: bool, need: Option<NeededPart>) -> Option<Change> {
    let after = if is_last { change.after.clone() } else { Entry::Unknown };
    match need {
        Some(NeededPart::Whole) => return Some(change.clone()),
        Some(NeededPart::Author) => {
            return Some(Change { before: Entry::Unknown, after, ..change.clone() });
        }
        None => {}
    }
    (is_last && after != Entry::Absent).then(|| Change {
        before: Entry::Unknown,
        after,
        author: if change.author == Author::Human { Author::Human } else { Author::Deleted },
        evidence: Evidence::Named,
        cancels: Vec::new(),
        ..change.clone()
    })
}

/// What is needed of a change from before the oldest kept point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NeededPart {
    /// Its author.
    Author,
    /// All of it. A rewind took it back together with another session's change: if that one is restored,
    /// this one is not.
    Whole,
}

/// Changes up to `oldest` that later rewinds took back, and the changes that those had taken back.
fn needed(changes: &[Change], oldest: Seq) -> HashMap<Seq, NeededPart> {
    let by_seq: HashMap<Seq, &Change> = changes.iter().map(|change| (change.seq, change)).collect();
    let mut needed = HashMap::new();
    for rewind in changes.iter().filter(|change| change.seq > oldest) {
        let direct: HashSet<Seq> = rewind.cancels.iter().copied().collect();
        let mut open = rewind.cancels.clone();
        let mut seen: HashSet<Seq> = HashSet::new();
        let mut sessions: HashSet<&SessionId> = HashSet::new();
        while let Some(seq) = open.pop() {
            let Some(change) = by_seq.get(&seq).filter(|_| seen.insert(seq)) else { continue };
            sessions.extend(change.author.sessions());
            open.extend(&change.cancels);
        }
        for seq in seen.into_iter().filter(|seq| *seq <= oldest) {
            let author = &by_seq[&seq].author;
            let is_work =
                !matches!(author, Author::Rewind { .. } | Author::Deleted | Author::Import);
            let is_others = sessions.iter().any(|session| !author.sessions().contains(session));
            if is_work && is_others && direct.contains(&seq) {
                needed.insert(seq, NeededPart::Whole);
            } else {
                needed.entry(seq).or_insert(NeededPart::Author);
            }
        }
    }
    needed
}

/// For each change that was taken back, the changes that did so.
fn cancellers(changes: &[Change]) -> HashMap<Seq, Vec<Seq>> {
    let mut cancelled_by: HashMap<Seq, Vec<Seq>> = HashMap::new();
    for change in changes {
        for cancelled in &change.cancels {
            cancelled_by.entry(*cancelled).or_default().push(change.seq);
        }
    }
    cancelled_by
}

/// Cuts a path's changes into runs by one author between two points.
fn runs<'a, 'c>(
    own: &'a [&'c Change],
    kept: &BTreeSet<Seq>,
    cancelled_by: &HashMap<Seq, Vec<Seq>>,
) -> Vec<&'a [&'c Change]> {
    let continues = |a: &&Change, b: &&Change| {
        let next_point = kept.range(a.seq..).next();
        // A rewind never takes an import back, so its detours need not wait for a later point.
        let import = b.author == Author::Import;
        a.after == b.before
            && next_point.map_or(import, |point| *point >= b.seq)
            && is_same_author(&a.author, &b.author)
            && is_in_doubt(a) == is_in_doubt(b)
            // A late end of its call may still settle the author.
            && (!is_in_doubt(a) || a.author == b.author)
            && a.correction == b.correction
            && cancelled_by.get(&a.seq) == cancelled_by.get(&b.seq)
            // Only the deletion records the mode that the folder had.
            && !(b.before.is_dir() && b.after == Entry::Absent)
    };
    own.chunk_by(continues).collect()
}

/// The parts of a run that become one change each. The calls of one turn stay separate: no point between them
/// was dropped.
fn foldable<'a, 'c>(run: &'a [&'c Change]) -> Vec<&'a [&'c Change]> {
    if run.iter().all(|change| turn_of(change) == turn_of(run[0])) {
        run.chunk_by(|a, b| a.author == b.author).collect()
    } else {
        vec![run]
    }
}

fn turn_of(change: &Change) -> Option<TurnId> {
    match change.author {
        Author::Agent { turn, .. } => Some(turn),
        _ => None,
    }
}

/// An agent's change with uncertain evidence.
fn is_in_doubt(change: &Change) -> bool {
    matches!(change.author, Author::Agent { .. }) && change.evidence == Evidence::OpenWindow
}

fn is_same_author(a: &Author, b: &Author) -> bool {
    match (a, b) {
        (Author::Agent { session: a, .. }, Author::Agent { session: b, .. }) => a == b,
        (Author::Rewind { .. }, _) => false,
        (a, b) => a == b,
    }
}

/// Whether a file was created and deleted, and no kept point or plan depends on it.
fn is_transient(run: &[&Change], kept: &BTreeSet<Seq>) -> bool {
    let ([first, ..], Some(last)) = (run, run.last()) else { return true };
    first.before == Entry::Absent
        && last.after == Entry::Absent
        && kept.last().is_some_and(|newest| last.seq <= *newest)
        && matches!(last.author, Author::Agent { .. } | Author::Human | Author::Deleted)
        && !is_in_doubt(last)
}

#[cfg(test)]
mod tests {
    use takeback_store::{RewindId, Timestamp};

    use super::*;

    /// `a` to `z` are contents, ` ` is nothing there.
    fn entry(what: char) -> Entry {
        match what {
            ' ' => Entry::Absent,
            '?' => Entry::Unknown,
            '/' => Entry::Dir { mode: 0o700 },
            what => Entry::Symlink { target: vec![what as u8] },
        }
    }

    fn agent(session: &str, turn: u64, call: &str) -> Author {
        let (session, turn, call) = (session.into(), TurnId(turn), call.into());
        Author::Agent { session, turn, call, tool: "Edit".to_owned() }
    }

    /// Changes of one path, numbered from 1: before and after, by whom, cancelling what.
    fn log(steps: &[(&str, Author, &[u64])]) -> Vec<Change> {
        (1..)
            .zip(steps)
            .map(|(seq, (step, author, cancels))| Change {
                seq: Seq(seq),
                path: WorkPath::new("p").expect("a plain path"),
                before: entry(step.chars().next().expect("a before")),
                after: entry(step.chars().nth(1).expect("an after")),
                author: author.clone(),
                evidence: Evidence::Named,
                time: Timestamp(0),
                changed_at: None,
                correction: None,
                cancels: cancels.iter().copied().map(Seq).collect(),
            })
            .collect()
    }

    /// The log after thinning: `seq:before after` of each change, with what it cancels.
    fn thinned(changes: &[Change], kept: &[u64]) -> Vec<String> {
        let head = changes.last().expect("there are some").seq;
        let mut left: BTreeMap<Seq, Change> =
            changes.iter().map(|change| (change.seq, change.clone())).collect();
        for write in thin(changes, &kept.iter().copied().map(Seq).collect(), head) {
            match write {
                Write::DropChange(seq) => drop(left.remove(&seq)),
                Write::ReplaceChange(change) => drop(left.insert(change.seq, change)),
                other => panic!("{other:?} is no thinning"),
            }
        }
        let name = |entry: &Entry| match entry {
            Entry::Absent => ' ',
            Entry::Dir { .. } => '/',
            Entry::Symlink { target } => target[0] as char,
            _ => '?',
        };
        left.values()
            .map(|change| {
                let cancels: Vec<u64> = change.cancels.iter().map(|seq| seq.0).collect();
                let steps =
                    format!("{}:{}{}", change.seq, name(&change.before), name(&change.after));
                if cancels.is_empty() { steps } else { format!("{steps} cancels {cancels:?}") }
            })
            .collect()
    }

    const ME: Author = Author::Human;

    fn rewind() -> Author {
        Author::Rewind { id: RewindId(1) }
    }

    #[test]
    fn one_author_between_two_points_becomes_one_change() {
        let s1 = |turn| agent("s", turn, "c");
        let changes = log(&[("ab", ME, &[]), ("bc", ME, &[]), ("cd", ME, &[]), ("de", ME, &[])]);
        assert_eq!(thinned(&changes, &[0, 4]), ["4:ae"]);
        assert_eq!(thinned(&changes, &[0, 2, 4]), ["2:ac", "4:ce"]);
        assert_eq!(thinned(&changes, &[0, 3]), ["3:ad", "4:de"], "after the last point all stays");
        let changes =
            log(&[("ab", s1(1), &[]), ("bc", s1(2), &[]), ("cd", agent("t", 3, "c"), &[])]);
        assert_eq!(thinned(&changes, &[0, 3]), ["2:ac", "3:cd"]);
        let changes = log(&[("ab", s1(1), &[]), ("bc", ME, &[]), ("cd", s1(2), &[])]);
        assert_eq!(thinned(&changes, &[0, 3]), ["1:ab", "2:bc", "3:cd"]);
    }

    #[test]
    fn the_calls_of_one_turn_stay() {
        let changes = log(&[
            ("ab", agent("s", 1, "c"), &[]),
            ("bc", agent("s", 1, "d"), &[]),
            ("cd", agent("s", 1, "d"), &[]),
        ]);
        assert_eq!(thinned(&changes, &[0, 3]), ["1:ab", "3:bd"]);
    }

    #[test]
    fn changes_that_were_taken_back_fold_separately() {
        let s1 = |turn| agent("s", turn, "c");
        let changes = log(&[
            ("ab", s1(1), &[]),
            ("bc", s1(2), &[]),
            ("cd", s1(3), &[]),
            ("db", rewind(), &[2, 3]),
        ]);
        assert_eq!(thinned(&changes, &[0, 3, 4]), ["1:ab", "3:bd", "4:db cancels [3]"]);
    }

    /// As [`log`], with uncertain authors.
    fn in_doubt(steps: &[(&str, Author, &[u64])]) -> Vec<Change> {
        let mut changes = log(steps);
        changes.iter_mut().for_each(|change| change.evidence = Evidence::OpenWindow);
        changes
    }

    #[test]
    fn uncertain_changes_fold_only_within_a_call() {
        let of = |turn, call| agent("s", turn, call);
        let one = in_doubt(&[("ab", of(1, "c"), &[]), ("bc", of(1, "c"), &[])]);
        assert_eq!(thinned(&one, &[0, 2]), ["2:ac"]);
        let two = in_doubt(&[("ab", of(1, "c"), &[]), ("bc", of(2, "d"), &[])]);
        assert_eq!(
            thinned(&two, &[0, 2]),
            ["1:ab", "2:bc"],
            "the end of one may still be reported"
        );
        let nothing = in_doubt(&[(" a", of(1, "c"), &[]), ("a ", of(1, "c"), &[])]);
        assert_eq!(thinned(&nothing, &[0, 2]), ["2:  "], "a plan reports it");
    }

    #[test]
    fn changes_of_several_authors_taken_back_together_stay() {
        let steps = |other| {
            log(&[
                ("?a", ME, &[]),
                ("ab", agent("s", 1, "c"), &[]),
                ("bc", other, &[]),
                ("ca", rewind(), &[2, 3]),
            ])
        };
        assert_eq!(thinned(&steps(ME), &[3]), ["2:??", "3:bc", "4:ca cancels [2, 3]"]);
        let other = agent("t", 1, "d");
        assert_eq!(thinned(&steps(other), &[3]), ["2:ab", "3:bc", "4:ca cancels [2, 3]"]);
        let other = Author::Ambiguous { sessions: vec!["s".into(), "t".into()] };
        assert_eq!(thinned(&steps(other), &[3]), ["2:ab", "3:??", "4:ca cancels [2, 3]"]);
    }

    #[test]
    fn before_the_oldest_point_only_the_last_entry_stays() {
        let changes = log(&[("?a", ME, &[]), ("ab", ME, &[])]);
        assert_eq!(thinned(&changes, &[2]), ["2:?b"]);
        assert_eq!(thinned(&changes, &[]), ["2:?b"]);
        assert_eq!(thinned(&changes, &[1, 2]), ["2:ab"], "the next change has the entry before it");
        let changes = log(&[("?a", ME, &[]), ("a ", ME, &[])]);
        assert_eq!(thinned(&changes, &[2]), Vec::<String>::new());
    }

    #[test]
    fn authors_of_changes_that_a_later_rewind_took_back_stay() {
        let s1 = |turn| agent("s", turn, "c");
        let changes = log(&[
            ("?a", ME, &[]),
            ("ab", s1(1), &[]),
            ("bc", s1(1), &[]),
            ("ca", rewind(), &[2, 3]),
        ]);
        assert_eq!(thinned(&changes, &[3]), ["2:??", "3:??", "4:ca cancels [2, 3]"]);
        // … and what a rewind took back that was itself taken back.
        let changes = log(&[
            ("?a", ME, &[]),
            ("ab", s1(1), &[]),
            ("ba", rewind(), &[2]),
            ("ab", rewind(), &[3]),
        ]);
        assert_eq!(thinned(&changes, &[3]), ["2:??", "3:?? cancels [2]", "4:ab cancels [3]"]);
        assert_eq!(thinned(&changes, &[4]), ["4:?b"]);
    }

    #[test]
    fn an_import_without_kept_points_leaves_no_trace() {
        let import = || Author::Import;
        let changes = log(&[
            ("?a", ME, &[]),
            ("ab", import(), &[]),
            ("bc", import(), &[]),
            ("ca", import(), &[]),
        ]);
        assert_eq!(thinned(&changes, &[0, 1, 4]), ["1:?a"]);
        assert_eq!(thinned(&changes, &[1]), ["1:?a"], "also if it is the last that happened");
        assert_eq!(
            thinned(&changes, &[0, 1, 2, 4]),
            ["1:?a", "2:ab", "4:ba"],
            "a point of it is kept"
        );
        let new = log(&[(" b", import(), &[]), ("b ", import(), &[])]);
        assert_eq!(thinned(&new, &[0, 2]), Vec::<String>::new());
    }

    #[test]
    fn a_created_and_deleted_file_leaves_no_trace_unless_a_plan_needs_it() {
        let s1 = |turn| agent("s", turn, "c");
        let one_turn = log(&[(" a", s1(1), &[]), ("a ", agent("s", 1, "d"), &[])]);
        assert_eq!(thinned(&one_turn, &[0, 2]), Vec::<String>::new());
        let changes = log(&[(" a", s1(1), &[]), ("a ", s1(2), &[])]);
        assert_eq!(thinned(&changes, &[0, 2]), Vec::<String>::new());
        assert_eq!(thinned(&changes, &[0, 1, 2]), ["1: a", "2:a "], "at one point it was there");
        assert_eq!(thinned(&changes, &[0]), ["1: a", "2:a "]);
        let unclear = || Author::Ambiguous { sessions: vec!["s".into()] };
        let changes = log(&[(" a", unclear(), &[]), ("a ", unclear(), &[])]);
        assert_eq!(thinned(&changes, &[0, 2]), ["2:  "]);
        let folder = log(&[(" /", s1(1), &[]), ("/ ", s1(2), &[])]);
        assert_eq!(thinned(&folder, &[0, 2]), ["1: /", "2:/ "], "the mode it had");
    }
}
