//! Ignored folders: small files in them are covered as long as there is room. What there is no room for,
//! and folders with too many names, are known by their fingerprints alone: that they changed is recorded.
//!
//! A name that is new there has no author: most of it is output of builds, which a rewind keeps.

use std::collections::HashMap;
use std::io;

use takeback_store::{Entry, NotCapturedReason, PackedBlob, WorkPath};

use super::visit::Visit;
use super::walk::Walk;
use super::{ObservedChange, Scan, ScanError, Unreadable, is_unread, valid};
use crate::worktree::fingerprint::{Fingerprint, Stat};
use crate::worktree::index::Known;
use crate::worktree::look::{Bytes, Looked, look_at};
use crate::worktree::scope::{Coverage, Inside, OutReason};

/// Something changed that is not covered.
pub(super) const UNCOVERED: Entry = Entry::NotCaptured { reason: NotCapturedReason::TooLarge };

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
    pub(super) fn noticed(&self) -> Option<ObservedChange> {
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

impl Known {
    /// Whether it is a folder that is only watched, as it was.
    pub(super) fn is_watched_as(&self, seen: &Stat) -> bool {
        matches!(self, Self::Skipped { why: OutReason::TooMany, fingerprint: Some(known) }
            if *known == seen.fingerprint)
    }
}

impl Walk<'_> {
    /// Lets in ignored files as long as there is room.
    pub(super) fn let_in(
        &self,
        mut candidates: Vec<Candidate>,
        scan: &mut Scan,
        linked: &mut Vec<(u64, WorkPath)>,
        sink: &mut dyn FnMut(PackedBlob),
    ) -> Result<(), ScanError> {
        let mut used = if candidates.is_empty() { 0 } else { scan.index.precious_bytes() };
        // Files that are ignored themselves come first: a folder can be full of anything.
        candidates.sort_by(|a, b| (a.top.is_some(), &a.path).cmp(&(b.top.is_some(), &b.path)));
        let mut names = NameCounts::default();
        for candidate in candidates {
            let noticed = candidate.noticed();
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
                    let fingerprint = self.lasting(&looked);
                    scan.found.push(ObservedChange {
                        path: path.clone(),
                        before,
                        after: looked.entry.clone(),
                        same_file: false,
                    });
                    Known::Entry { entry: looked.entry, fingerprint, precious: true }
                }
                (None, Some(why)) => {
                    scan.found.extend(noticed);
                    Known::Skipped { why, fingerprint: Some(self.watched(seen.fingerprint)) }
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
    ) -> Option<Looked> {
        let mut look = || -> io::Result<Looked> {
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
                Some(Looked { entry, fingerprint: None })
            }
        }
    }

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
            let after = Entry::NotCaptured { reason: NotCapturedReason::TooMany };
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
