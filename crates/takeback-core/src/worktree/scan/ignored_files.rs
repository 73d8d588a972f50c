//! Ignored folders: small files in them are covered while there is room. Other files, and folders with
//! too many names, are known only by their fingerprints: that they changed is recorded.
//!
//! New names there have no author: most of them are build output, which a rewind keeps.

use std::collections::HashMap;
use std::io;

use takeback_store::{Entry, NotCapturedReason, PackedBlob, WorkPath};

use super::visit::Visit;
use super::walk::Walk;
use super::{ObservedChange, Scan, ScanError, Unreadable, is_unread, valid};
use crate::worktree::fingerprint::{Fingerprint, Stat};
use crate::worktree::index::KnownName;
use crate::worktree::look::{Bytes, LookResult, look_at};
use crate::worktree::scope::{Coverage, IgnoreState, OutReason};

/// An entry that changed and is not covered.
pub(super) const UNCOVERED: Entry = Entry::NotCaptured { reason: NotCapturedReason::TooLarge };

/// An ignored file that is covered if there is room.
pub(super) struct Candidate {
    pub(super) path: WorkPath,
    pub(super) seen: Stat,
    pub(super) before: Entry,
    /// Its known fingerprint, if it was skipped before.
    pub(super) known: Option<Fingerprint>,
    /// The ignored folder it is in; none: it is ignored itself.
    pub(super) top: Option<Vec<u8>>,
}

impl Candidate {
    /// Whether it is known to have changed since the last scan.
    fn has_changed(&self) -> bool {
        self.known.is_some_and(|known| is_exact(known) && known != self.seen.fingerprint)
    }

    /// The change, without contents.
    pub(super) fn as_change(&self) -> Option<ObservedChange> {
        self.has_changed().then(|| ObservedChange {
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

impl KnownName {
    /// Whether it is an unchanged folder of which only the fingerprint is known.
    pub(super) fn is_watched_as(&self, seen: &Stat) -> bool {
        matches!(self, Self::Skipped { why: OutReason::TooMany, fingerprint: Some(known) }
            if *known == seen.fingerprint)
    }
}

impl Walk<'_> {
    /// Covers ignored files while there is room.
    pub(super) fn admit_candidates(
        &self,
        mut candidates: Vec<Candidate>,
        scan: &mut Scan,
        linked: &mut Vec<(u64, WorkPath)>,
        sink: &mut dyn FnMut(PackedBlob),
    ) -> Result<(), ScanError> {
        let mut used = if candidates.is_empty() { 0 } else { scan.index.precious_bytes() };
        // Files that are ignored by name come first: an ignored folder can be full of anything.
        candidates.sort_by(|a, b| (a.top.is_some(), &a.path).cmp(&(b.top.is_some(), &b.path)));
        let mut names = NameCounts::default();
        for candidate in candidates {
            let as_change = candidate.as_change();
            let Candidate { path, seen, before, top, .. } = candidate;
            if self.is_over() {
                return Err(ScanError::OutOfTime);
            }
            let size = seen.fingerprint.size;
            let no_room = if size > self.options.precious_file_max {
                Some(OutReason::IgnoredFile)
            } else if used.saturating_add(size) > self.options.precious_total_max {
                Some(OutReason::OverBudget)
            } else if names.is_full(top.as_ref(), scan, self.options.ignored_folder_names) {
                Some(OutReason::TooMany)
            } else {
                None
            };
            let looked = if no_room.is_none() { self.look_again(&path, &seen, sink) } else { None };
            let known = match (looked, no_room) {
                (Some(looked), _) => {
                    used = used.saturating_add(size);
                    scan.stats.files += 1;
                    scan.stats.read += u64::from(!is_unread(&looked.entry));
                    if seen.is_linked {
                        linked.push((seen.fingerprint.inode, path.clone()));
                    }
                    if looked.entry.is_unreadable() {
                        scan.unreadable.push(Unreadable::file(path.clone()));
                    }
                    let fingerprint = self.lasting_fingerprint(&looked);
                    scan.found.push(ObservedChange {
                        path: path.clone(),
                        before,
                        after: looked.entry.clone(),
                        same_file: false,
                    });
                    KnownName::Entry { entry: looked.entry, fingerprint, precious: true }
                }
                (None, Some(why)) => {
                    scan.found.extend(as_change);
                    KnownName::Skipped { why, fingerprint: Some(self.watched(seen.fingerprint)) }
                }
                // It vanished just now.
                (None, None) => continue,
            };
            scan.set_child(&path, known);
        }
        Ok(())
    }

    fn look_again(
        &self,
        path: &WorkPath,
        seen: &Stat,
        sink: &mut dyn FnMut(PackedBlob),
    ) -> Option<LookResult> {
        let mut look = || -> io::Result<LookResult> {
            let folder = self.root.parent_of(path)?;
            let (known, kept) = (None, self.kept);
            let mut bytes = Bytes::Keep { known, kept, sink, budget: self.budget };
            look_at(folder, path.file_name(), seen, &mut bytes)
        };
        match look() {
            Ok(looked) if looked.entry == Entry::Absent => None,
            Ok(looked) => Some(looked),
            Err(_) => {
                let entry = Entry::NotCaptured { reason: NotCapturedReason::Unreadable };
                Some(LookResult { entry, fingerprint: None })
            }
        }
    }

    /// The fingerprint of an entry that is not covered. If it is so new that a change may leave no trace,
    /// the next scan looks at it again.
    pub(super) fn watched(&self, fingerprint: Fingerprint) -> Fingerprint {
        let inexact = Fingerprint { changed: INEXACT, ..fingerprint };
        self.racy.trust(fingerprint).unwrap_or(inexact)
    }
}

/// Replaces a change time that proves nothing.
const INEXACT: i64 = i64::MIN;

fn is_exact(fingerprint: Fingerprint) -> bool {
    fingerprint.changed != INEXACT
}

impl Visit<'_, '_> {
    pub(super) fn precious(&mut self, path: Vec<u8>, seen: &Stat, before: Option<&KnownName>) {
        let known = match before {
            Some(KnownName::Skipped { fingerprint, .. }) => *fingerprint,
            _ => None,
        };
        let top = match self.rules().inside {
            IgnoreState::Ignored { top } => Some(path[..top].to_vec()),
            IgnoreState::Plain | IgnoreState::Excluded => None,
        };
        let before = self.before(before);
        self.part.precious.push(Candidate { path: valid(path), seen: *seen, before, known, top });
    }

    /// Whether an ignored folder has too many names. A new folder in a covered one counts together with
    /// the names known there.
    pub(super) fn has_too_many(&self, path: &[u8]) -> bool {
        let most = self.walk.options.ignored_folder_names;
        let is_listed = self.known.is_some_and(|folder| folder.listed);
        let known = match self.rules().inside {
            // Counted with its parent: counting each folder again would take quadratic time.
            IgnoreState::Ignored { .. } if !is_listed => return false,
            IgnoreState::Ignored { top } => self.walk.before.names_below(&path[..top]),
            _ => 0,
        };
        self.walk.has_more_names(path, most.saturating_sub(known))
    }

    /// An ignored folder with too many names: only its own fingerprint is kept, which changes with the
    /// names in it.
    pub(super) fn watch_from_outside(
        &mut self,
        path: Vec<u8>,
        seen: &Stat,
        before: Option<&KnownName>,
    ) -> KnownName {
        let known = match before {
            Some(KnownName::Skipped { fingerprint: Some(known), .. }) => Some(*known),
            _ => None,
        };
        let was = self.before(before);
        if known.is_some_and(is_exact) {
            let after = Entry::NotCaptured { reason: NotCapturedReason::TooMany };
            self.record_change(path, was, &after, false);
        }
        let fingerprint = Some(self.walk.watched(seen.fingerprint));
        KnownName::Skipped { why: OutReason::TooMany, fingerprint }
    }

    /// Whether the folder is ignored, or is in one that is, by rules that no agent wrote.
    pub(super) fn is_in_ignored(&self) -> bool {
        matches!(self.rules().inside_by_trusted, IgnoreState::Ignored { .. })
    }

    /// Whether the folder is known only from the log.
    pub(super) fn is_forgotten(&self) -> bool {
        self.known.is_some_and(|folder| !folder.listed)
    }

    /// Whether a known folder is one that is ignored.
    pub(super) fn is_ignored_folder(&mut self, path: &[u8]) -> bool {
        self.cover_folder(path, None) == Coverage::Precious
    }
}
