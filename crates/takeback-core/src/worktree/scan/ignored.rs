//! Ignored folders: small files in them are covered as long as there is room. What there is no room for,
//! and folders with too many names, are known by their fingerprints alone: that they changed is recorded.
//!
//! A name that is new there is nobody's work: most of it is output of builds, which a rewind keeps.

use std::collections::HashMap;

use takeback_store::{Entry, Lack, WorkPath};

use super::visit::Visit;
use super::{Observed, Scan, Walk, valid};
use crate::worktree::fingerprint::{Fingerprint, Stat};
use crate::worktree::index::Known;
use crate::worktree::scope::{Coverage, Inside, OutReason};

/// Something changed that is not covered.
pub(super) const UNCOVERED: Entry = Entry::NotCaptured { lack: Lack::TooLarge };

/// An ignored file, in if there is room.
pub(super) struct Candidate {
    pub(super) path: WorkPath,
    pub(super) seen: Stat,
    pub(super) before: Entry,
    /// What it was known by, if it was passed over.
    pub(super) known: Option<Fingerprint>,
    /// The ignored folder it is in; none: it is ignored itself.
    pub(super) top: Option<Vec<u8>>,
}

impl Candidate {
    /// Whether it is known to be another file than at the last scan.
    fn has_changed(&self) -> bool {
        self.known.is_some_and(|known| is_exact(known) && known != self.seen.fingerprint)
    }

    /// That it changed, although it is not covered.
    pub(super) fn noticed(&self) -> Option<Observed> {
        self.has_changed().then(|| Observed {
            path: self.path.clone(),
            before: self.before.clone(),
            after: UNCOVERED,
            same_file: false,
        })
    }
}

/// How many names are known in ignored folders.
#[derive(Default)]
pub(super) struct NameCounts(HashMap<Vec<u8>, usize>);

impl NameCounts {
    /// Whether one more name is too many.
    pub(super) fn is_full(&mut self, top: Option<&Vec<u8>>, scan: &Scan, most: usize) -> bool {
        let Some(top) = top else { return false };
        let count = self.0.entry(top.clone()).or_insert_with(|| scan.index.names_below(top));
        *count += 1;
        *count > most
    }
}

impl Known {
    /// Whether it is a folder that is only watched, as it was.
    pub(super) fn is_watched_as(&self, seen: &Stat) -> bool {
        matches!(self, Self::Skipped { why: OutReason::TooMany, fingerprint: Some(known) }
            if *known == seen.fingerprint)
    }
}

impl Walk<'_> {
    /// What something that is not covered is known by. If it is so new that it may change without a
    /// trace, it is looked at again by the next scan.
    pub(super) fn watched(&self, fingerprint: Fingerprint) -> Fingerprint {
        let inexact = Fingerprint { changed: INEXACT, ..fingerprint };
        self.racy.trust(fingerprint).unwrap_or(inexact)
    }
}

/// In the place of a change time that says nothing.
const INEXACT: i64 = i64::MIN;

fn is_exact(fingerprint: Fingerprint) -> bool {
    fingerprint.changed != INEXACT
}

impl Visit<'_, '_> {
    pub(super) fn precious(&mut self, path: Vec<u8>, seen: &Stat, before: Option<&Known>) {
        let known = match before {
            Some(Known::Skipped { fingerprint, .. }) => *fingerprint,
            _ => None,
        };
        let top = match self.rules().inside {
            Inside::Ignored { top } => Some(path[..top].to_vec()),
            Inside::Plain | Inside::Excluded => None,
        };
        let before = self.before(before);
        self.part.precious.push(Candidate { path: valid(path), seen: *seen, before, known, top });
    }

    /// Whether an ignored folder has more names than are covered. One that is new in a folder that is
    /// covered counts with what is known there.
    pub(super) fn has_too_many(&self, path: &[u8]) -> bool {
        let most = self.walk.options.ignored_folder_names;
        let is_listed = self.known.is_some_and(|folder| folder.listed);
        let known = match self.rules().inside {
            // Counted with the folder it is in: to count each again would take the square of the time.
            Inside::Ignored { .. } if !is_listed => return false,
            Inside::Ignored { top } => self.walk.before.names_below(&path[..top]),
            _ => 0,
        };
        self.walk.has_more_names(path, most.saturating_sub(known))
    }

    /// An ignored folder with too many names: only its own fingerprint is known, which moves with the
    /// names in it.
    pub(super) fn watch_from_outside(
        &mut self,
        path: Vec<u8>,
        seen: &Stat,
        before: Option<&Known>,
    ) -> Known {
        let known = match before {
            Some(Known::Skipped { fingerprint: Some(known), .. }) => Some(*known),
            _ => None,
        };
        let was = self.before(before);
        if known.is_some_and(is_exact) {
            let after = Entry::NotCaptured { lack: Lack::TooMany };
            self.differs(path, was, &after, false);
        }
        let fingerprint = Some(self.walk.watched(seen.fingerprint));
        Known::Skipped { why: OutReason::TooMany, fingerprint }
    }

    /// Whether the folder is ignored, or is in one that is, by rules that no agent wrote.
    pub(super) fn is_in_ignored(&self) -> bool {
        matches!(self.rules().inside_by_trusted, Inside::Ignored { .. })
    }

    /// Whether what is known of the folder comes from the log alone.
    pub(super) fn is_forgotten(&self) -> bool {
        self.known.is_some_and(|folder| !folder.listed)
    }

    /// Whether a known folder is one that is ignored.
    pub(super) fn is_ignored_folder(&mut self, path: &[u8]) -> bool {
        self.cover_folder(path, None) == Coverage::Precious
    }
}
