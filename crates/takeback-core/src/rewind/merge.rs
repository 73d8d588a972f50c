//! Takes one run of changes out of the present entry: content, mode and kind, each for itself.
//!
//! A three-way merge in which the run is what is taken back: the common ancestor is the entry *after* the run,
//! one side is the entry now, and the other side the entry *before* the run. Most runs need no merge: the entry
//! now is the one after the run, so the one before it takes its place. Contents that both sides changed are
//! merged by lines (`lines.rs`).

mod lines;
mod separate;

use std::collections::HashMap;

use takeback_store::{Digest, Entry, NotCapturedReason, PackedBlob, Store, StoreError};

pub use self::lines::{MERGE_LIMIT, Overlaps, TextMerge, merge_lines, merge_text};
pub(super) use self::lines::{MergedText, Overlap, SAME_LINES};
use super::plan::{DAMAGED, Sources, UNKNOWN_BEFORE};
use super::present::StoreSources;

pub(super) enum Merged {
    Clean(Entry),
    /// Merged by lines; some may overlap.
    Lines(Entry, MergedText),
    Conflict(&'static str),
    Lacking(String),
}

/// Takes a run of changes, which made `after` of `before`, out of the entry that is there `now`.
pub(super) fn take_out(
    before: &Entry,
    after: &Entry,
    now: &Entry,
    texts: &mut Texts<'_>,
) -> Result<Merged, StoreError> {
    let clean = |entry: &Entry| Merged::Clean(entry.clone());
    // It is as it was: the entries in between do not matter.
    if now == before && before.is_restorable() {
        return Ok(clean(before));
    }
    for entry in [before, after] {
        match entry {
            Entry::Unknown => return Ok(Merged::Lacking(UNKNOWN_BEFORE.to_owned())),
            Entry::NotCaptured { reason } => {
                return Ok(Merged::Lacking(reason.describe().to_owned()));
            }
            _ => {}
        }
    }
    if now.is_unreadable() {
        return Ok(Merged::Lacking(NotCapturedReason::Unreadable.describe().to_owned()));
    }
    if let Some(entry) = pick(before, after, now) {
        return Ok(clean(entry));
    }
    match (before, after, now) {
        (
            Entry::File { digest: before, mode: mode_before, size: size_before },
            Entry::File { digest: after, mode: mode_after, .. },
            Entry::File { digest: now, mode: mode_now, size: size_now },
        ) => {
            let Some(mode) = pick(mode_before, mode_after, mode_now).copied() else {
                return Ok(Merged::Conflict("its mode was changed since"));
            };
            if let Some(digest) = pick(before, after, now).copied() {
                let size = if digest == *now { *size_now } else { *size_before };
                return Ok(clean(&Entry::File { digest, size, mode }));
            }
            let three = (texts.get(before)?, texts.get(after)?, texts.get(now)?);
            let (Some(before), Some(after), Some(now)) = three else {
                return Ok(Merged::Lacking(DAMAGED.to_owned()));
            };
            let (base, ours, theirs) = (after, now, before);
            Ok(match merge_lines(&base, &ours, &theirs, texts.overlaps) {
                Err(reason) => Merged::Conflict(reason),
                Ok(merged) => {
                    let digest = Digest::of(&merged.text);
                    let size = merged.text.len() as u64;
                    texts.made.insert(digest, merged.text.clone());
                    Merged::Lines(Entry::File { digest, size, mode }, merged)
                }
            })
        }
        (Entry::Dir { mode: before }, Entry::Dir { mode: after }, Entry::Dir { mode: now }) => {
            Ok(match pick(before, after, now) {
                Some(mode) => clean(&Entry::Dir { mode: *mode }),
                None => Merged::Conflict("its mode was changed since"),
            })
        }
        (_, _, Entry::Absent) => Ok(Merged::Conflict("it was deleted since")),
        (Entry::Absent, _, _) => {
            Ok(Merged::Conflict("the agent made it, and it was changed since"))
        }
        (_, Entry::Absent, _) => Ok(Merged::Conflict("something else was put in its place since")),
        _ => Ok(Merged::Conflict("it was changed since")),
    }
}

/// Takes runs of changes out of an entry, the last one first. `None`: they overlap with other changes, or
/// contents are missing. Contents that a merge made are put into `made`.
pub(crate) fn without<'a>(
    store: &dyn Store,
    runs: impl DoubleEndedIterator<Item = (&'a Entry, &'a Entry)>,
    now: &Entry,
    made: &mut Vec<PackedBlob>,
) -> Result<Option<Entry>, StoreError> {
    let sources = StoreSources(store);
    let mut texts = Texts::new(&sources, Overlaps::Ours);
    let mut entry = now.clone();
    for (before, after) in runs.rev() {
        match take_out(before, after, &entry, &mut texts)? {
            Merged::Clean(merged) => entry = merged,
            Merged::Lines(merged, text) if text.overlaps.is_empty() => entry = merged,
            Merged::Lines(..) | Merged::Conflict(_) | Merged::Lacking(_) => return Ok(None),
        }
    }
    if let Some(text) = entry.digest().and_then(|digest| texts.made.remove(&digest)) {
        made.push(PackedBlob::new(text));
    }
    Ok(Some(entry))
}

/// The value without the run, unless both the run and a later change set it.
fn pick<'a, T: PartialEq>(before: &'a T, after: &T, now: &'a T) -> Option<&'a T> {
    if now == after || now == before {
        Some(before)
    } else if before == after {
        Some(now)
    } else {
        None
    }
}

/// Contents from the store, and those that merges of the same path made: a later merge may need them.
pub(super) struct Texts<'a> {
    pub(super) sources: &'a dyn Sources,
    pub(super) made: HashMap<Digest, Vec<u8>>,
    /// What becomes of lines that both sides changed.
    pub(super) overlaps: Overlaps,
}

impl<'a> Texts<'a> {
    pub(super) fn new(sources: &'a dyn Sources, overlaps: Overlaps) -> Self {
        Self { sources, made: HashMap::new(), overlaps }
    }

    /// `None`: the store has lost them.
    pub(super) fn get(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        if let Some(text) = self.made.get(digest) {
            return Ok(Some(text.clone()));
        }
        match self.sources.contents(digest) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.is_lost_contents() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
