//! Takes one run of changes out of the present entry: content, mode and kind separately.

use std::collections::HashMap;

use takeback_store::{Digest, Entry, NotCapturedReason, StoreError};

use super::{DAMAGED, Sources, UNKNOWN_BEFORE};
use crate::rewind::merge::{TextMerge, merge_text};

pub(super) enum Merged {
    Clean(Entry),
    Conflict(&'static str),
    Lacking(String),
}

/// Contents from the store, and those that merges of the same path made: a later merge may need them.
pub(super) struct Texts<'a> {
    pub(super) sources: &'a dyn Sources,
    pub(super) made: HashMap<Digest, Vec<u8>>,
}

impl Texts<'_> {
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

/// Takes the step from `theirs` to `base` out of `ours`: content, mode and kind separately.
pub(super) fn merge_entry(
    base: &Entry,
    ours: &Entry,
    theirs: &Entry,
    texts: &mut Texts<'_>,
) -> Result<Merged, StoreError> {
    let clean = |entry: &Entry| Merged::Clean(entry.clone());
    // It is as it was: the entries in between do not matter.
    if ours == theirs && theirs.is_restorable() {
        return Ok(clean(theirs));
    }
    for entry in [theirs, base] {
        match entry {
            Entry::Unknown => return Ok(Merged::Lacking(UNKNOWN_BEFORE.to_owned())),
            Entry::NotCaptured { reason } => {
                return Ok(Merged::Lacking(reason.describe().to_owned()));
            }
            _ => {}
        }
    }
    if ours.is_unreadable() {
        return Ok(Merged::Lacking(NotCapturedReason::Unreadable.describe().to_owned()));
    }
    if ours == base {
        return Ok(clean(theirs));
    }
    if base == theirs {
        return Ok(clean(ours));
    }
    match (base, ours, theirs) {
        (
            Entry::File { digest: base, mode: base_mode, .. },
            Entry::File { digest: ours, mode: our_mode, size },
            Entry::File { digest: theirs, mode: their_mode, size: their_size },
        ) => {
            let Some(mode) = pick(base_mode, our_mode, their_mode).copied() else {
                return Ok(Merged::Conflict("its mode was changed since"));
            };
            if let Some(digest) = pick(base, ours, theirs).copied() {
                let size = if digest == *ours { *size } else { *their_size };
                return Ok(clean(&Entry::File { digest, size, mode }));
            }
            let three = (texts.get(base)?, texts.get(ours)?, texts.get(theirs)?);
            let (Some(base), Some(ours), Some(theirs)) = three else {
                return Ok(Merged::Lacking(DAMAGED.to_owned()));
            };
            Ok(match merge_text(&base, &ours, &theirs) {
                TextMerge::Conflict(reason) => Merged::Conflict(reason),
                TextMerge::Clean(text) => {
                    let digest = Digest::of(&text);
                    let size = text.len() as u64;
                    texts.made.insert(digest, text);
                    Merged::Clean(Entry::File { digest, size, mode })
                }
            })
        }
        (Entry::Dir { mode: base }, Entry::Dir { mode: ours }, Entry::Dir { mode: theirs }) => {
            Ok(match pick(base, ours, theirs) {
                Some(mode) => clean(&Entry::Dir { mode: *mode }),
                None => Merged::Conflict("its mode was changed since"),
            })
        }
        (_, Entry::Absent, _) => Ok(Merged::Conflict("it was deleted since")),
        (_, _, Entry::Absent) => {
            Ok(Merged::Conflict("the agent made it, and it was changed since"))
        }
        (Entry::Absent, _, _) => Ok(Merged::Conflict("something else was put in its place since")),
        _ => Ok(Merged::Conflict("it was changed since")),
    }
}

/// The side that changed, if only one did.
fn pick<'a, T: PartialEq>(base: &T, ours: &'a T, theirs: &'a T) -> Option<&'a T> {
    if ours == base || ours == theirs {
        Some(theirs)
    } else if theirs == base {
        Some(ours)
    } else {
        None
    }
}
