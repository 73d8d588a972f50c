//! Runs of changes: neighbouring changes of one path by one author, merged.
//!
//! A plan needs from a long history only where each author's work began and ended. A change is a
//! run of its own if it creates or deletes the file, if a rewind cancelled it without its
//! neighbour, if its author is unclear, or if it brings back an earlier state of the file. Where a
//! state comes back, changes of different sessions are not merged either. Authors are the ones
//! known now.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::ops::Range;
use std::sync::Arc;

use crate::change::{Attribution, Author, Change, Evidence};
use crate::entry::Entry;
use crate::id::{CallId, Seq, SessionId};
use crate::path::WorkPath;
use crate::session::Call;

/// Consecutive changes of one path by one author. The author is a session, the user, or a set of
/// sessions that the caller asked to merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRun {
    /// The changes, oldest first; at least one.
    pub seqs: Vec<Seq>,
    /// The entry before the first change.
    pub before: Entry,
    /// The entry after the last change.
    pub after: Entry,
    /// The author of the first change. The others have the same author, or one of the merged
    /// sessions.
    pub author: Author,
    /// The evidence of the first change. A change with [`Evidence::OpenWindow`] is a run of its
    /// own.
    pub evidence: Evidence,
    /// The changes that this run cancels, as in [`Change::cancels`].
    pub cancels: Vec<Seq>,
    /// The attributions of the changes that an agent's call made without naming the path, each
    /// once, in order.
    pub inferred: Vec<Arc<Attribution>>,
}

impl ChangeRun {
    /// A single change, with the author that is known now.
    #[must_use]
    pub fn of(change: Change) -> Self {
        merge_changes(vec![change], &mut LastAttribution::default())
    }
}

/// The runs of one path after some position of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRuns {
    /// The path.
    pub path: WorkPath,
    /// Its runs, oldest first; never empty.
    pub runs: Vec<ChangeRun>,
}

impl PathRuns {
    /// The entry before the first run.
    #[must_use]
    pub fn at_start(&self) -> &Entry {
        &self.runs[0].before
    }

    /// The entry after the last run.
    #[must_use]
    pub fn at_end(&self) -> &Entry {
        &self.runs[self.runs.len() - 1].after
    }
}

/// The calls that changes name as their authors, each looked up once.
#[derive(Debug, Default)]
pub(crate) struct CallLookup(HashMap<SessionId, HashMap<CallId, Option<Call>>>);

impl CallLookup {
    /// Calls `look_up` unless the call was looked up before.
    pub(crate) fn look_up_once<E>(
        &mut self,
        session: &SessionId,
        id: &CallId,
        look_up: impl FnOnce() -> Result<Option<Call>, E>,
    ) -> Result<(), E> {
        let of_session = match self.0.get_mut(session) {
            Some(of_session) => of_session,
            None => self.0.entry(session.clone()).or_default(),
        };
        if let Slot::Vacant(slot) = of_session.entry(id.clone()) {
            slot.insert(look_up()?);
        }
        Ok(())
    }

    fn attribution(&self, change: &Change) -> Attribution {
        let call = match &change.author {
            Author::Agent { session, call, .. } => {
                self.0.get(session).and_then(|calls| calls.get(call)).and_then(Option::as_ref)
            }
            _ => None,
        };
        change.attribution(call)
    }
}

/// Groups changes (oldest first) by path and into runs. The sessions in `merged` count as one
/// author.
#[must_use]
pub(crate) fn group_runs(
    changes: Vec<Change>,
    calls: &CallLookup,
    merged: &BTreeSet<SessionId>,
) -> Vec<PathRuns> {
    let mut sessions: HashMap<SessionId, i64> = HashMap::new();
    // Most paths have one change: a vector that grows by itself would keep room for four.
    let one = || (Vec::with_capacity(1), Vec::with_capacity(1));
    let mut paths: BTreeMap<WorkPath, (Vec<ChangeOutline>, Vec<Change>)> = BTreeMap::new();
    let mark = |entry: &Entry| BuildHasherDefault::<DefaultHasher>::new().hash_one(entry);
    for mut change in changes {
        let Attribution { author, evidence } = calls.attribution(&change);
        (change.author, change.evidence) = (author, evidence);
        let author_key = match &change.author {
            Author::Agent { .. } if change.evidence == Evidence::OpenWindow => None,
            Author::Agent { session, .. } => {
                let next = sessions.len() as i64;
                let session_number = *sessions.entry(session.clone()).or_insert(next);
                Some(AuthorKey { session: session_number, is_merged: merged.contains(session) })
            }
            Author::Human => Some(HUMAN),
            _ => None,
        };
        let is_file = |entry: &Entry| matches!(entry, Entry::File { .. });
        let outline = ChangeOutline {
            seq: change.seq,
            author_key: author_key.filter(|_| is_file(&change.before) && is_file(&change.after)),
            states: [mark(&change.before), mark(&change.after)],
            cancels: change.cancels.clone(),
        };
        let (outlines, changes) = paths.entry(change.path.clone()).or_insert_with(one);
        outlines.push(outline);
        changes.push(change);
    }
    let mut last = LastAttribution::default();
    let mut runs = |outlines: &[ChangeOutline], changes: Vec<Change>| {
        let mut changes = changes.into_iter();
        let groups = groups(outlines).into_iter();
        let mut merge = |changes: Vec<Change>| merge_changes(changes, &mut last);
        groups.map(|group| merge(changes.by_ref().take(group.len()).collect())).collect()
    };
    paths
        .into_iter()
        .map(|(path, (outlines, changes))| PathRuns { path, runs: runs(&outlines, changes) })
        .collect()
}

/// Makes one run of these changes. There must be at least one, and the authors must be the ones
/// known now.
fn merge_changes(changes: Vec<Change>, last: &mut LastAttribution) -> ChangeRun {
    let seqs = changes.iter().map(|change| change.seq).collect();
    let mut inferred = Vec::new();
    for change in &changes {
        last.add_to(&mut inferred, &change.author, change.evidence);
    }
    let after = changes[changes.len() - 1].after.clone();
    let first = changes.into_iter().next().expect("there is at least one");
    let Change { before, author, evidence, cancels, .. } = first;
    ChangeRun { seqs, before, after, author, evidence, cancels, inferred }
}

/// The last attribution that was added to a run's [`inferred`](ChangeRun::inferred). One call may have changed very
/// many paths: they share it.
#[derive(Default)]
pub(crate) struct LastAttribution(Option<Arc<Attribution>>);

impl LastAttribution {
    pub(crate) fn add_to(
        &mut self,
        inferred: &mut Vec<Arc<Attribution>>,
        author: &Author,
        evidence: Evidence,
    ) {
        // One call's changes of a path are neighbours.
        let is_same = |one: &Attribution| one.author == *author && one.evidence == evidence;
        if matches!(author, Author::Agent { .. })
            && evidence != Evidence::Named
            && !inferred.last().is_some_and(|last| is_same(last))
        {
            let shared = match self.0.take() {
                Some(last) if is_same(&last) => last,
                _ => Arc::new(Attribution { author: author.clone(), evidence }),
            };
            inferred.reserve_exact(1);
            inferred.push(Arc::clone(&shared));
            self.0 = Some(shared);
        }
    }
}

/// The author of a change, for comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AuthorKey {
    /// The number of the session.
    pub(crate) session: i64,
    /// Whether it is one of the merged sessions.
    pub(crate) is_merged: bool,
}

/// The user, who has no session.
pub(crate) const HUMAN: AuthorKey = AuthorKey { session: -1, is_merged: false };

/// The parts of a change that decide whether it is merged with its neighbours.
#[derive(Debug)]
pub(crate) struct ChangeOutline {
    pub(crate) seq: Seq,
    /// `None` if the change must be a run of its own.
    pub(crate) author_key: Option<AuthorKey>,
    /// Hashes of the entries before and after.
    pub(crate) states: [u64; 2],
    pub(crate) cancels: Vec<Seq>,
}

/// Divides the changes of one path (oldest first) into runs.
pub(crate) fn groups<'a>(
    changes: impl IntoIterator<Item = &'a ChangeOutline>,
) -> Vec<Range<usize>> {
    let changes: Vec<&ChangeOutline> = changes.into_iter().collect();
    let mut divided = vec![false; changes.len()];
    for rewind in changes.iter().filter(|change| !change.cancels.is_empty()) {
        let mut taken = vec![false; changes.len()];
        for seq in &rewind.cancels {
            if let Ok(at) = changes.binary_search_by_key(seq, |change| change.seq) {
                taken[at] = true;
            }
        }
        for at in 1..changes.len() {
            divided[at] |= taken[at] != taken[at - 1];
        }
    }
    // Which changes a return makes void depends on their sessions.
    let has_returns = divide_at_returns(&changes, &mut divided);
    let is_one_hand = |a: Option<AuthorKey>, b: Option<AuthorKey>| match (a, b) {
        (Some(a), Some(b)) => {
            a.session == b.session || (!has_returns && a.is_merged && b.is_merged)
        }
        _ => false,
    };
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (at, change) in changes.iter().enumerate() {
        match groups.last_mut() {
            Some(group)
                if is_one_hand(changes[at - 1].author_key, change.author_key) && !divided[at] =>
            {
                group.end = at + 1;
            }
            _ => groups.push(at..at + 1),
        }
    }
    groups
}

/// Divides the changes where an earlier state comes back: both the state and the change that
/// restores it must stay visible. Returns whether there is any.
fn divide_at_returns(changes: &[&ChangeOutline], divided: &mut [bool]) -> bool {
    let Some(first) = changes.first() else { return false };
    let mut has_returns = false;
    // For each state, the change before which it was current.
    let mut positions: HashMap<u64, usize> = HashMap::from([(first.states[0], 0)]);
    for (at, change) in changes.iter().enumerate() {
        if let Some(earlier) = positions.insert(change.states[1], at + 1) {
            has_returns = true;
            for border in [earlier, at, at + 1] {
                if let Some(divided) = divided.get_mut(border) {
                    *divided = true;
                }
            }
        }
    }
    has_returns
}
