//! Who changed how much in a part of the log, as seen from a point: the agent of the point, you, others, or
//! unclear.
//!
//! What a rewind did belongs to the rewind and is in none of these counts. First sightings are no changes.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use takeback_store::{
    Author, Change, Entry, Evidence, IN_PART, Seq, SessionId, Store, StoreError, WorkPath,
};

use super::file_diff::{FileDiff, Lines};
use super::renames::{Rename, renames};
use crate::exchange::imported::import_of;
use crate::exchange::original_name;

/// Who made a change, as seen from a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Party {
    /// The session of the point, with its subagents; for a point that you made, any agent.
    Agent,
    /// You.
    You,
    /// Other sessions, and sessions that were deleted.
    Others,
    /// An agent or you: the evidence does not tell.
    Unclear,
}

/// The counts of each party.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// The session of the point.
    pub agent: Count,
    /// You.
    pub you: Count,
    /// Other sessions.
    pub others: Count,
    /// The evidence does not tell who.
    pub unclear: Count,
    /// Whether rewinds have taken back what the agent did.
    pub taken_back: TakenBack,
}

/// What one party changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Files and links; folders do not count.
    pub files: usize,
    /// Lines of text.
    pub lines: Lines,
}

/// How much of a party's work was taken back by rewinds that are in effect.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TakenBack {
    /// None of it, or there was none.
    #[default]
    No,
    /// Some changes.
    Partly,
    /// All of it.
    Yes,
}

impl Tally {
    /// Counts changes, which must be oldest first and have the authors known now
    /// ([`settle`](super::settle)). `cancelled`: as of [`cancelled`].
    pub fn of(
        changes: &[Change],
        view: &Viewpoint<'_>,
        cancelled: &Cancelled,
        store: &dyn Store,
    ) -> Result<Self, StoreError> {
        let mut tally = Self::default();
        let mut files: BTreeMap<Party, BTreeSet<WorkPath>> = BTreeMap::new();
        let spans = spans(changes, |change| view.party(change));
        for (party, diff) in spans.into_iter().filter_map(|(party, diff)| Some((party?, diff))) {
            if diff.is_folder() || !diff.differs() {
                continue;
            }
            if let Some(lines) = diff.lines(store)? {
                tally.count_mut(party).lines += lines;
            }
            files.entry(party).or_default().insert(diff.path);
        }
        for (party, files) in files {
            tally.count_mut(party).files = files.len();
        }
        tally.taken_back = taken_back(changes, view, cancelled);
        Ok(tally)
    }

    fn count_mut(&mut self, party: Party) -> &mut Count {
        match party {
            Party::Agent => &mut self.agent,
            Party::You => &mut self.you,
            Party::Others => &mut self.others,
            Party::Unclear => &mut self.unclear,
        }
    }
}

/// Whether rewinds took back what the agent of a point did. `cancelled`: as of [`cancelled`].
#[must_use]
pub fn taken_back(changes: &[Change], view: &Viewpoint<'_>, cancelled: &Cancelled) -> TakenBack {
    let own = changes.iter().filter(|change| view.party(change) == Some(Party::Agent));
    TakenBack::of(own.map(|change| match change.seq {
        seq if cancelled.contains(&seq) => TakenBack::Yes,
        seq if cancelled.is_in_part(seq) => TakenBack::Partly,
        _ => TakenBack::No,
    }))
}

impl TakenBack {
    /// From each change.
    pub(crate) fn of(changes: impl Iterator<Item = Self>) -> Self {
        let (mut some, mut all) = (false, true);
        for change in changes {
            some |= change != Self::No;
            all &= change == Self::Yes;
        }
        match (some, all) {
            (false, _) => Self::No,
            (true, false) => Self::Partly,
            (true, true) => Self::Yes,
        }
    }
}

/// From whose point of view changes are sorted into parties.
#[derive(Debug, Clone, Copy)]
pub struct Viewpoint<'a> {
    /// The session of the point; `None`: a point that you made.
    pub session: Option<&'a SessionId>,
}

impl Viewpoint<'_> {
    /// Who made a change; `None`: a rewind, an import, or nothing changed.
    #[must_use]
    pub fn party(&self, change: &Change) -> Option<Party> {
        if change.before == Entry::Unknown {
            return None;
        }
        Some(match &change.author {
            Author::Rewind { .. } | Author::Import => return None,
            Author::Human => Party::You,
            Author::Deleted => Party::Others,
            Author::Ambiguous { .. } => Party::Unclear,
            Author::Agent { .. } if change.evidence == Evidence::OpenWindow => Party::Unclear,
            Author::Agent { session, .. } if self.is_own(session) => Party::Agent,
            Author::Agent { .. } => Party::Others,
        })
    }

    fn is_own(&self, session: &SessionId) -> bool {
        let Some(own) = self.session else { return true };
        let is_import =
            || original_name(own) == Some("") && import_of(session).as_ref() == Some(own);
        session == own || session.part_of(own).is_some() || is_import()
    }
}

/// Neighbouring changes of one path with the same key (their author, for example) as one difference, by
/// path. A file that was renamed by changes with the same key is one difference, at its new path.
/// `changes`: oldest first.
pub fn spans<K: PartialEq>(changes: &[Change], key: impl Fn(&Change) -> K) -> Vec<(K, FileDiff)> {
    let changes: Vec<&Change> = changes.iter().collect();
    spans_of(&changes, key)
}

struct Span {
    /// The positions of its first and last change.
    first: usize,
    last: usize,
    diff: FileDiff,
    /// The file continues in the span of its new path.
    is_moved: bool,
}

pub(super) fn spans_of<K: PartialEq>(
    changes: &[&Change],
    key: impl Fn(&Change) -> K,
) -> Vec<(K, FileDiff)> {
    let mut spans: Vec<Span> = Vec::new();
    let mut by_path: BTreeMap<&WorkPath, Vec<usize>> = BTreeMap::new();
    let mut span_of: Vec<usize> = Vec::with_capacity(changes.len());
    for (at, change) in changes.iter().enumerate() {
        let of_path = by_path.entry(&change.path).or_default();
        let open = of_path.last().copied();
        let is_next = |span: &usize| key(changes[spans[*span].first]) == key(change);
        let span = match open.filter(is_next) {
            Some(span) => {
                spans[span].diff.after = change.after.clone();
                spans[span].last = at;
                span
            }
            None => {
                let diff = FileDiff::of_change(change);
                spans.push(Span { first: at, last: at, diff, is_moved: false });
                of_path.push(spans.len() - 1);
                spans.len() - 1
            }
        };
        span_of.push(span);
    }
    for Rename { departure, arrival } in renames(changes, &key) {
        let (old, new) = (span_of[departure], span_of[arrival]);
        // A file that has replaced another, or was replaced, is not the same any more.
        if spans[old].last == departure
            && spans[new].first == arrival
            && spans[old].diff.before != Entry::Unknown
        {
            spans[old].is_moved = true;
            let FileDiff { path, before, renamed_from, .. } = spans[old].diff.clone();
            let origin = renamed_from.unwrap_or(path);
            let diff = &mut spans[new].diff;
            diff.renamed_from =
                Some(origin).filter(|origin| before != Entry::Absent && *origin != diff.path);
            diff.before = before;
        }
    }
    let order = by_path.into_values().flatten().filter(|span| !spans[*span].is_moved);
    order.map(|span| (key(changes[spans[span].first]), spans[span].diff.clone())).collect()
}

/// The changes that rewinds in effect have cancelled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cancelled {
    whole: HashSet<Seq>,
    in_part: HashSet<Seq>,
}

impl Cancelled {
    /// Whether nothing of a change is left.
    #[must_use]
    pub fn contains(&self, seq: &Seq) -> bool {
        self.whole.contains(seq)
    }

    /// Those of which nothing or only some lines are left.
    #[must_use]
    pub fn all(mut self) -> HashSet<Seq> {
        self.whole.extend(self.in_part);
        self.whole.remove(&IN_PART);
        self.whole
    }

    /// Whether some of its lines are left, because another author had changed them too.
    #[must_use]
    pub fn is_in_part(&self, seq: Seq) -> bool {
        self.in_part.contains(&seq) && !self.whole.contains(&seq)
    }
}

/// The changes that rewinds in effect have cancelled. `rewinds`: the changes that rewinds made, oldest
/// first, up to the head of the log. A rewind that was itself cancelled cancels nothing.
#[must_use]
pub fn cancelled(rewinds: &[Change]) -> Cancelled {
    let by_rewinds: HashSet<Seq> = rewinds.iter().map(|change| change.seq).collect();
    let mut cancelled = Cancelled::default();
    for change in rewinds.iter().rev() {
        if cancelled.contains(&change.seq) {
            continue;
        }
        if change.is_in_part() {
            // A rewind that was undone as far as possible is not in effect.
            let (rewinds, work) =
                change.cancels.iter().partition::<Vec<Seq>, _>(|seq| by_rewinds.contains(seq));
            cancelled.whole.extend(rewinds);
            cancelled.in_part.extend(work);
        } else {
            cancelled.whole.extend(&change.cancels);
        }
    }
    cancelled
}
