//! The log in brief: neighbouring changes of a path by one author, as one.
//!
//! What a plan needs of a long history: where each author's work began and where it ended. Only what
//! nothing tells apart is put together: a change by which a file comes or goes stands alone, and so
//! does one that a rewind took back without its neighbour, one whose author is in doubt, and one that
//! brings back what stood there before. Where something comes back, the sessions count, too. Authors are
//! those that are known now.

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

/// Changes of one path by one hand, with nobody else's between them. A hand is a session, people, or
/// all of some sessions that the reader does not tell apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRun {
    /// Oldest first, at least one.
    pub seqs: Vec<Seq>,
    /// Before the first.
    pub before: Entry,
    /// After the last.
    pub after: Entry,
    /// Of the first; the others are of the same kind, and by the same hand.
    pub author: Author,
    /// Of the first. [`Evidence::OpenWindow`] stands alone.
    pub evidence: Evidence,
    /// As of [`Change::cancels`].
    pub cancels: Vec<Seq>,
    /// Of those of them that an agent's call made without naming the path, once each, in order.
    pub inferred: Vec<Arc<Attribution>>,
}

/// The runs of one path after some moment, oldest first; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRuns {
    pub path: WorkPath,
    pub runs: Vec<ChangeRun>,
}

impl PathRuns {
    /// What stood here at the moment after which the changes came.
    #[must_use]
    pub fn at_start(&self) -> &Entry {
        &self.runs[0].before
    }

    /// What stood here after the last change.
    #[must_use]
    pub fn at_end(&self) -> &Entry {
        &self.runs[self.runs.len() - 1].after
    }
}

/// The calls that changes name as their authors.
#[derive(Debug, Default)]
pub struct CallLookup(HashMap<SessionId, HashMap<CallId, Option<Call>>>);

impl CallLookup {
    /// Looks a call up, once.
    pub fn learn<E>(
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

/// The changes (oldest first) by path, in brief. The sessions of `as_one` are one hand.
#[must_use]
pub fn group_runs(
    changes: Vec<Change>,
    calls: &CallLookup,
    as_one: &BTreeSet<SessionId>,
) -> Vec<PathRuns> {
    let mut sessions: HashMap<SessionId, i64> = HashMap::new();
    // Most paths have one change: a vector that grows by itself would keep room for four.
    let one = || (Vec::with_capacity(1), Vec::with_capacity(1));
    let mut paths: BTreeMap<WorkPath, (Vec<ChangeOutline>, Vec<Change>)> = BTreeMap::new();
    let mark = |entry: &Entry| BuildHasherDefault::<DefaultHasher>::new().hash_one(entry);
    for mut change in changes {
        let Attribution { author, evidence } = calls.attribution(&change);
        (change.author, change.evidence) = (author, evidence);
        let hand = match &change.author {
            Author::Agent { .. } if change.evidence == Evidence::OpenWindow => None,
            Author::Agent { session, .. } => {
                let next = sessions.len() as i64;
                let session_number = *sessions.entry(session.clone()).or_insert(next);
                Some(AuthorKey { session: session_number, is_as_one: as_one.contains(session) })
            }
            Author::Human => Some(HUMAN),
            _ => None,
        };
        let is_file = |entry: &Entry| matches!(entry, Entry::File { .. });
        let lean = ChangeOutline {
            seq: change.seq,
            hand: hand.filter(|_| is_file(&change.before) && is_file(&change.after)),
            states: [mark(&change.before), mark(&change.after)],
            cancels: change.cancels.clone(),
        };
        let (leans, changes) = paths.entry(change.path.clone()).or_insert_with(one);
        leans.push(lean);
        changes.push(change);
    }
    let mut last = LastInferred::default();
    let mut runs = |leans: &[ChangeOutline], changes: Vec<Change>| {
        let mut changes = changes.into_iter();
        let groups = groups(leans).into_iter();
        let mut join = |changes: Vec<Change>| together(changes, &mut last);
        groups.map(|group| join(changes.by_ref().take(group.len()).collect())).collect()
    };
    paths
        .into_iter()
        .map(|(path, (leans, changes))| PathRuns { path, runs: runs(&leans, changes) })
        .collect()
}

/// These changes, at least one, as one. Their authors are those that are known now.
fn together(changes: Vec<Change>, last: &mut LastInferred) -> ChangeRun {
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
pub(crate) struct LastInferred(Option<Arc<Attribution>>);

impl LastInferred {
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

/// Whose a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AuthorKey {
    /// Its number.
    pub(crate) session: i64,
    /// It is one of those that the reader does not tell apart.
    pub(crate) is_as_one: bool,
}

/// People, who are no session.
pub(crate) const HUMAN: AuthorKey = AuthorKey { session: -1, is_as_one: false };

/// What decides whether a change is put together with its neighbours.
#[derive(Debug)]
pub(crate) struct ChangeOutline {
    pub(crate) seq: Seq,
    /// Whose it is; none: it stands alone.
    pub(crate) hand: Option<AuthorKey>,
    /// Numbers of what stood there before and after; the same for the same.
    pub(crate) states: [u64; 2],
    pub(crate) cancels: Vec<Seq>,
}

/// Which neighbours among the changes of one path (oldest first) go together.
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
    // What a return takes the effect of depends on who made it.
    let has_returns = divide_at_returns(&changes, &mut divided);
    let is_one_hand = |a: Option<AuthorKey>, b: Option<AuthorKey>| match (a, b) {
        (Some(a), Some(b)) => {
            a.session == b.session || (!has_returns && a.is_as_one && b.is_as_one)
        }
        _ => false,
    };
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (at, change) in changes.iter().enumerate() {
        match groups.last_mut() {
            Some(group) if is_one_hand(changes[at - 1].hand, change.hand) && !divided[at] => {
                group.end = at + 1;
            }
            _ => groups.push(at..at + 1),
        }
    }
    groups
}

/// What stood there before and is brought back must be seen to have stood there, and the change that
/// brings it back, too. Answers whether there is any.
fn divide_at_returns(changes: &[&ChangeOutline], divided: &mut [bool]) -> bool {
    let Some(first) = changes.first() else { return false };
    let mut has_returns = false;
    // By state: before which change it stood.
    let mut stood: HashMap<u64, usize> = HashMap::from([(first.states[0], 0)]);
    for (at, change) in changes.iter().enumerate() {
        if let Some(stood) = stood.insert(change.states[1], at + 1) {
            has_returns = true;
            for border in [stood, at, at + 1] {
                if let Some(divided) = divided.get_mut(border) {
                    *divided = true;
                }
            }
        }
    }
    has_returns
}
