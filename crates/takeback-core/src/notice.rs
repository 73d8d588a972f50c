//! What an agent is told with its next prompt: which of its changes were taken back, or brought back, since
//! the session's last prompt, and what the person kept of their own.
//!
//! Reads the log and writes nothing. The prompts' points mark what was told already: an operation is told
//! with the first prompt after it. A session without an earlier prompt of its own is told nothing: nothing of
//! what it did can have been taken back. Nor is the copy of a conversation, with its first prompt: whether
//! the copy still has the changes is not known.

mod text;

pub(crate) use self::text::list;

use std::collections::{BTreeSet, HashSet};

use takeback_store::{
    Author, Change, IN_PART, PointQuery, RewindId, Seq, SessionId, Store, StoreError, TurnId,
    WorkPath,
};

use crate::history::{cancelled, settle};
use crate::record::recorded_as;
use crate::rewind::Receipt;

/// What happened to a session's changes since its last prompt. By path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Notice {
    /// Files with changes that were taken back.
    taken_back: BTreeSet<WorkPath>,
    /// Files with changes that had been taken back and are there again.
    brought_back: BTreeSet<WorkPath>,
    /// Files that a rewind changed without touching the session's changes to them.
    also_changed: BTreeSet<WorkPath>,
    /// Files that keep what the person did.
    kept: BTreeSet<WorkPath>,
    /// The only prompt whose changes were taken back; `None`: there are several.
    prompt: Option<String>,
}

/// The last prompt of the session; `None`: there is none. To be read before the next prompt is recorded.
pub fn last_prompt(store: &dyn Store, session: &SessionId) -> Result<Option<Seq>, StoreError> {
    let session = recorded_as(session);
    let point = store.find_points(PointQuery::LastPromptOf(&session))?.pop();
    Ok(point.map(|point| point.seq))
}

/// What to tell `session` about the operations since `last`: one line; `None`: nothing of its was touched.
/// Without operations since then, this reads one row of an index.
pub fn notice(
    store: &dyn Store,
    session: &SessionId,
    last: Seq,
) -> Result<Option<String>, StoreError> {
    let operations = store.rewind_changes_after(last)?;
    if operations.is_empty() {
        return Ok(None);
    }
    let session = recorded_as(session);
    let notice = Notice::read(store, &session, last, &operations)?;
    Ok(notice.line())
}

/// Whether a session or one of its subagents made the change.
pub(crate) fn is_by(change: &Change, session: &SessionId) -> bool {
    match &change.author {
        Author::Agent { session: by, .. } => by == session || by.part_of(session).is_some(),
        _ => false,
    }
}

/// At most this many files are looked up one by one to learn what else they contain.
const MOST_LOOKUPS: usize = 64;

impl Notice {
    fn read(
        store: &dyn Store,
        session: &SessionId,
        last: Seq,
        operations: &[Change],
    ) -> Result<Self, StoreError> {
        let (before, now) = in_effect(store, last, operations)?;
        let mut notice = Self::default();
        let mut turns: BTreeSet<TurnId> = BTreeSet::new();
        for seq in now.difference(&before) {
            let Some(change) = change_by(store, session, *seq)? else { continue };
            if let Author::Agent { turn, .. } = change.author {
                turns.insert(turn);
            }
            notice.taken_back.insert(change.path);
        }
        for seq in before.difference(&now) {
            if let Some(change) = change_by(store, session, *seq)? {
                notice.brought_back.insert(change.path);
            }
        }
        notice.brought_back.retain(|path| !notice.taken_back.contains(path));
        let others = operations.iter().filter(|change| {
            !now.contains(&change.seq)
                && !notice.taken_back.contains(&change.path)
                && !notice.brought_back.contains(&change.path)
        });
        let others: BTreeSet<&WorkPath> = others.map(|change| &change.path).collect();
        for path in others.into_iter().take(MOST_LOOKUPS) {
            let mut changes = store.changes_of(path)?;
            changes.retain(|change| change.seq <= last && !now.contains(&change.seq));
            settle(store, &mut changes)?;
            if changes.iter().any(|change| is_by(change, session)) {
                notice.also_changed.insert(path.clone());
            }
        }
        if notice.is_empty() {
            return Ok(notice);
        }
        notice.kept = kept(store, operations, &now)?;
        if let (Some(turn), 1) = (turns.pop_first(), turns.len() + 1) {
            notice.prompt = store.turn(turn)?.map(|turn| turn.prompt);
        }
        Ok(notice)
    }

    fn is_empty(&self) -> bool {
        self.taken_back.is_empty() && self.brought_back.is_empty() && self.also_changed.is_empty()
    }
}

/// The change, if it is the session's.
fn change_by(
    store: &dyn Store,
    session: &SessionId,
    seq: Seq,
) -> Result<Option<Change>, StoreError> {
    let Some(change) = store.change(seq)? else { return Ok(None) };
    let mut change = [change];
    settle(store, &mut change)?;
    let [change] = change;
    Ok(is_by(&change, session).then_some(change))
}

/// The changes that rewinds had cancelled at `last`, and those that they have cancelled now, as far as the
/// operations since can have made a difference.
fn in_effect(
    store: &dyn Store,
    last: Seq,
    operations: &[Change],
) -> Result<(HashSet<Seq>, HashSet<Seq>), StoreError> {
    let mut rewinds = operations.to_vec();
    let mut from = last;
    // An undo cancels a rewind's change, and what that one cancelled is in effect again.
    while let Some(first) = earliest_cancelled(&rewinds)
        && first <= from
    {
        from = Seq(first.0.saturating_sub(1));
        rewinds = store.rewind_changes_after(from)?;
        if from == Seq(0) {
            break;
        }
    }
    let now = cancelled(&rewinds).all();
    rewinds.retain(|change| change.seq <= last);
    Ok((cancelled(&rewinds).all(), now))
}

fn earliest_cancelled(rewinds: &[Change]) -> Option<Seq> {
    let cancelled = rewinds.iter().flat_map(|change| &change.cancels).copied();
    cancelled.filter(|seq| *seq != IN_PART).min()
}

/// The files in which operations that are in effect kept the person's own changes.
fn kept(
    store: &dyn Store,
    operations: &[Change],
    cancelled: &HashSet<Seq>,
) -> Result<BTreeSet<WorkPath>, StoreError> {
    let mut of_operations: BTreeSet<RewindId> = BTreeSet::new();
    for change in operations.iter().filter(|change| !cancelled.contains(&change.seq)) {
        if let Author::Rewind { id } = change.author {
            of_operations.insert(id);
        }
    }
    let since = earliest_cancelled(operations);
    let mut kept = BTreeSet::new();
    for id in of_operations {
        let record = store.rewind(id)?;
        // Without a receipt, nothing is known about what was kept.
        let receipt = record.and_then(|record| record.receipt);
        let Some(receipt) = receipt.and_then(|json| serde_json::from_str::<Receipt>(&json).ok())
        else {
            continue;
        };
        let notes = [receipt.kept_files, receipt.merged_files, receipt.conflicts];
        for note in notes.into_iter().flatten().take(MOST_LOOKUPS) {
            let mut changes = store.changes_of(&note.path)?;
            changes.retain(|change| {
                since.is_none_or(|since| change.seq > since) && !cancelled.contains(&change.seq)
            });
            settle(store, &mut changes)?;
            if changes.iter().any(|change| change.author == Author::Human) {
                kept.insert(note.path);
            }
        }
    }
    Ok(kept)
}
