//! The log in brief: neighbouring changes of a path by one hand, as one.
//!
//! What a plan needs of a long history: where each hand's work began and where it ended. Only what
//! nothing tells apart is put together: a change by which a file comes or goes stands alone, and so
//! does one that a rewind took back without its neighbour.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

use crate::change::{Author, Change, Evidence};
use crate::entry::Entry;
use crate::id::{Seq, SessionId};
use crate::path::WorkPath;

/// Changes of one path by one hand, with nobody else's between them. A hand is a session, people, or
/// all of some sessions that the reader does not tell apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    /// Oldest first, at least one.
    pub seqs: Vec<Seq>,
    /// Before the first.
    pub before: Entry,
    /// After the last.
    pub after: Entry,
    /// Of the first; the others are of the same kind, and by the same hand.
    pub author: Author,
    /// As of [`Change::cancels`].
    pub cancels: Vec<Seq>,
    /// The authors of those of them that merely happened while a call ran, once each, in order.
    pub windows: Vec<Author>,
}

/// The stretches of one path after some moment, oldest first; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathStretches {
    pub path: WorkPath,
    pub stretches: Vec<Stretch>,
}

impl PathStretches {
    /// What stood here at the moment after which the changes came.
    #[must_use]
    pub fn at_start(&self) -> &Entry {
        &self.stretches[0].before
    }

    /// What stood here after the last change.
    #[must_use]
    pub fn at_end(&self) -> &Entry {
        &self.stretches[self.stretches.len() - 1].after
    }
}

/// The changes (oldest first) by path, in brief. The sessions of `as_one` are one hand.
#[must_use]
pub fn in_brief(changes: Vec<Change>, as_one: &BTreeSet<SessionId>) -> Vec<PathStretches> {
    let mut sessions: HashMap<SessionId, i64> = HashMap::new();
    let mut paths: BTreeMap<WorkPath, (Vec<Lean>, Vec<Change>)> = BTreeMap::new();
    for change in changes {
        let hand = match &change.author {
            Author::Agent { session, .. } if as_one.contains(session) => Some(AS_ONE),
            Author::Agent { session, .. } => {
                let next = sessions.len() as i64;
                Some(*sessions.entry(session.clone()).or_insert(next))
            }
            Author::Human => Some(HUMAN),
            _ => None,
        };
        let is_file = |entry: &Entry| matches!(entry, Entry::File { .. });
        let lean = Lean {
            seq: change.seq,
            hand: hand.filter(|_| is_file(&change.before) && is_file(&change.after)),
            cancels: change.cancels.clone(),
        };
        let (leans, changes) = paths.entry(change.path.clone()).or_default();
        leans.push(lean);
        changes.push(change);
    }
    let stretches = |leans: &[Lean], changes: Vec<Change>| {
        let mut changes = changes.into_iter();
        let groups = groups(leans).into_iter();
        groups.map(|group| together(changes.by_ref().take(group.len()).collect())).collect()
    };
    paths
        .into_iter()
        .map(|(path, (leans, changes))| PathStretches {
            path,
            stretches: stretches(&leans, changes),
        })
        .collect()
}

/// These changes, at least one, as one.
fn together(changes: Vec<Change>) -> Stretch {
    let seqs = changes.iter().map(|change| change.seq).collect();
    let windows = windows(&changes);
    let after = changes[changes.len() - 1].after.clone();
    let first = changes.into_iter().next().expect("there is at least one");
    let Change { before, author, cancels, .. } = first;
    Stretch { seqs, before, after, author, cancels, windows }
}

/// As of [`Stretch::windows`].
fn windows(changes: &[Change]) -> Vec<Author> {
    let mut windows: Vec<Author> = Vec::new();
    for change in changes {
        let is_window =
            change.evidence == Evidence::Window && matches!(change.author, Author::Agent { .. });
        // One call's changes of a path are neighbours.
        if is_window && windows.last() != Some(&change.author) {
            windows.push(change.author.clone());
        }
    }
    windows
}

/// The hand of people, who are no session.
pub(crate) const HUMAN: i64 = -1;
/// The hand of the sessions that are not told apart.
pub(crate) const AS_ONE: i64 = -2;

/// What decides whether a change is put together with its neighbours.
#[derive(Debug)]
pub(crate) struct Lean {
    pub(crate) seq: Seq,
    /// Whose it is; none: it stands alone.
    pub(crate) hand: Option<i64>,
    pub(crate) cancels: Vec<Seq>,
}

/// Which neighbours among the changes of one path (oldest first) go together.
pub(crate) fn groups<'a>(changes: impl IntoIterator<Item = &'a Lean>) -> Vec<Range<usize>> {
    let changes: Vec<&Lean> = changes.into_iter().collect();
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
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (at, change) in changes.iter().enumerate() {
        match groups.last_mut() {
            Some(group)
                if change.hand.is_some() && change.hand == changes[at - 1].hand && !divided[at] =>
            {
                group.end = at + 1;
            }
            _ => groups.push(at..at + 1),
        }
    }
    groups
}
