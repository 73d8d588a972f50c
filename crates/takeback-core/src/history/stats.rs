//! Who wrote how much in a range of the log, and what is left of it.
//!
//! Counts what was written, also what was rewritten or taken back later. What is left is asked of
//! [`blame`](super::blame), from the beginning of the range: older lines count for no one.

use std::collections::{BTreeMap, BTreeSet};

use takeback_store::{
    Author, Change, Entry, Evidence, Point, Seq, SessionId, Store, StoreError, TurnId, WorkPath,
};

use super::blame::{BlameError, blame_from};
use super::file_diff::Lines;
use super::prompts::Prompts;
use super::tally::{Count, spans};
use super::{PathHistory, by_path};

/// Who wrote how much.
#[derive(Debug, Clone, Default)]
pub struct Stats {
    /// All agents.
    pub agents: Contribution,
    /// You.
    pub you: Contribution,
    /// An agent or you: the evidence does not tell.
    pub unclear: Contribution,
    /// Sessions that were deleted since.
    pub unknown: Contribution,
    /// Each session, by when it first wrote.
    pub sessions: Vec<(SessionId, Contribution)>,
    /// Each model, by name; `None`: agents that did not name theirs.
    pub models: Vec<(Option<String>, Contribution)>,
    /// Each prompt that changed something, oldest first.
    pub prompts: Vec<(Point, Contribution)>,
    /// Files of which it is not known what is left: not text, too large, or lost.
    pub not_followed: Vec<WorkPath>,
}

/// How much an author wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contribution {
    /// Files and lines.
    pub count: Count,
    /// Lines that are still in the files as the log has them now.
    pub left: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Writer {
    Agent(SessionId, TurnId),
    You,
    Unclear,
    Unknown,
}

/// Counts `changes`, which must be oldest first and have the authors known now. `points`: those of the
/// range, oldest first.
pub fn stats(store: &dyn Store, changes: &[Change], points: &[Point]) -> Result<Stats, StoreError> {
    let mut tally = WriterTally::default();
    for (writer, diff) in spans(changes, writer) {
        let Some(writer) = writer else { continue };
        if diff.is_folder() || !diff.differs() {
            continue;
        }
        let lines = diff.lines(store)?.unwrap_or_default();
        tally.add(writer, diff.path, lines);
    }
    let first = changes.first().map_or(Seq(u64::MAX), |change| change.seq);
    let not_followed = tally.count_left(store, first)?;
    let mut stats = Stats { not_followed, ..Stats::default() };
    let prompts = Prompts::of(points);
    let mut turns_of: BTreeMap<usize, BTreeSet<TurnId>> = BTreeMap::new();
    for session in &tally.sessions {
        stats.sessions.push((
            session.clone(),
            tally.sum(|writer| matches!(writer, Writer::Agent(of, _) if of == session)),
        ));
    }
    let mut models: BTreeMap<Option<String>, BTreeSet<TurnId>> = BTreeMap::new();
    for writer in tally.writers.keys() {
        let Writer::Agent(_, id) = writer else { continue };
        let turn = store.turn(*id)?;
        let model = turn.as_ref().and_then(|turn| turn.model.clone());
        models.entry(model).or_default().insert(*id);
        if let Some(turn) = turn
            && let Some(at) = prompts.find(store, &turn)?
        {
            turns_of.entry(at).or_default().insert(*id);
        }
    }
    let of_turns = |turns: &BTreeSet<TurnId>| {
        tally.sum(|writer| matches!(writer, Writer::Agent(_, turn) if turns.contains(turn)))
    };
    stats.models = models.iter().map(|(model, turns)| (model.clone(), of_turns(turns))).collect();
    stats.prompts =
        turns_of.iter().map(|(at, turns)| (points[*at].clone(), of_turns(turns))).collect();
    stats.agents = tally.sum(|writer| matches!(writer, Writer::Agent(..)));
    stats.you = tally.sum(|writer| *writer == Writer::You);
    stats.unclear = tally.sum(|writer| *writer == Writer::Unclear);
    stats.unknown = tally.sum(|writer| *writer == Writer::Unknown);
    Ok(stats)
}

/// Whose change it is; `None`: a rewind's, an import's, or nothing changed.
fn writer(change: &Change) -> Option<Writer> {
    if change.before == Entry::Unknown {
        return None;
    }
    Some(match &change.author {
        Author::Rewind { .. } | Author::Import => return None,
        Author::Human => Writer::You,
        Author::Ambiguous { .. } => Writer::Unclear,
        Author::Agent { .. } if change.evidence == Evidence::OpenWindow => Writer::Unclear,
        Author::Agent { session, turn, .. } => Writer::Agent(session.clone(), *turn),
        Author::Deleted => Writer::Unknown,
    })
}

#[derive(Default)]
struct WriterTally {
    writers: BTreeMap<Writer, (Lines, BTreeSet<WorkPath>, usize)>,
    /// In the order in which they first wrote.
    sessions: Vec<SessionId>,
    paths: BTreeSet<WorkPath>,
}

impl WriterTally {
    fn add(&mut self, writer: Writer, path: WorkPath, lines: Lines) {
        if let Writer::Agent(session, _) = &writer
            && !self.sessions.contains(session)
        {
            self.sessions.push(session.clone());
        }
        let (sum, paths, _) = self.writers.entry(writer).or_default();
        *sum += lines;
        paths.insert(path.clone());
        self.paths.insert(path);
    }

    /// Counts the lines of the present files that these writers wrote at `first` or later.
    fn count_left(&mut self, store: &dyn Store, first: Seq) -> Result<Vec<WorkPath>, StoreError> {
        let mut not_followed = Vec::new();
        let since = store.changes_after(Seq(first.0.saturating_sub(1)))?;
        for PathHistory { path, changes } in by_path(since) {
            if !self.paths.contains(&path) {
                continue;
            }
            let blame = match blame_from(store, &path, changes, first) {
                Ok(blame) => blame,
                Err(BlameError::NotAFile { .. } | BlameError::NotRecorded { .. }) => continue,
                Err(BlameError::Store(error)) => return Err(error),
                Err(_) => {
                    not_followed.push(path);
                    continue;
                }
            };
            for line in &blame.lines {
                let Some(seq) = line.origin.change() else { continue };
                let change = blame.changes.get(&seq).filter(|change| change.seq >= first);
                let writer = change.and_then(writer);
                if let Some((_, _, left)) = writer.and_then(|writer| self.writers.get_mut(&writer))
                {
                    *left += 1;
                }
            }
        }
        Ok(not_followed)
    }

    fn sum(&self, is_one: impl Fn(&Writer) -> bool) -> Contribution {
        let mut written = Contribution::default();
        let mut files: BTreeSet<&WorkPath> = BTreeSet::new();
        for (_, (lines, paths, left)) in self.writers.iter().filter(|(writer, _)| is_one(writer)) {
            written.count.lines += *lines;
            files.extend(paths);
            written.left += left;
        }
        written.count.files = files.len();
        written
    }
}
