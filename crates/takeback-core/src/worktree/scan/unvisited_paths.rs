//! Known paths in folders that a scan does not visit: they are looked at one by one.

use std::collections::HashSet;
use std::io;

use takeback_store::{Entry, NotCapturedReason, PackedBlob, WorkPath};

use super::walk::Walk;
use super::{ObservedChange, Scan, ScanError, Unreadable, join, valid};
use crate::worktree::fingerprint::{Fingerprint, stat};
use crate::worktree::index::{Child, Folder, KnownName};
use crate::worktree::look::{Bytes, LookResult, as_known, look_at};
use crate::worktree::root::is_no_folder;
use crate::worktree::scope::may_be_derived;

/// The state of a known path in a folder that was not visited.
enum UnvisitedState {
    Unchanged,
    Changed { looked: LookResult, same_file: bool },
}

/// A path that cannot be looked at may have changed.
fn unreadable(known: &Entry) -> UnvisitedState {
    let looked = LookResult {
        entry: Entry::NotCaptured { reason: NotCapturedReason::Unreadable },
        fingerprint: None,
    };
    UnvisitedState::Changed { looked, same_file: known.is_unreadable() }
}

impl Walk<'_> {
    /// Looks at known paths in folders that were not visited: an edit named them although their folder is
    /// out of scope, or their folder no longer exists.
    pub(super) fn look_at_unvisited(
        &self,
        visited: &HashSet<Vec<u8>>,
        scan: &mut Scan,
        sink: &mut dyn FnMut(PackedBlob),
    ) -> Result<(), ScanError> {
        let (mut found, mut unread) = (Vec::new(), Vec::new());
        let told: HashSet<WorkPath> = if self.unvisited.is_empty() {
            HashSet::new()
        } else {
            scan.found.iter().map(|observed| observed.path.clone()).collect()
        };
        for path in self.unvisited.iter().filter(|path| !visited.contains(*path)) {
            let Some(folder) = self.before.folder(path) else { continue };
            let mut stay = Vec::new();
            for child in &folder.children {
                if self.is_over() {
                    return Err(ScanError::OutOfTime);
                }
                let below = valid(join(path, &child.name));
                if told.contains(&below) {
                    continue;
                }
                let KnownName::Entry { entry, fingerprint, precious } = &child.known else {
                    let is_gone = !may_be_derived(self.options, &child.name)
                        && self.is_nothing(&below).unwrap_or(false);
                    if is_gone {
                        let (before, after) = (Entry::Unknown, Entry::Absent);
                        found.push(ObservedChange { path: below, before, after, same_file: false });
                    }
                    continue;
                };
                let stray = self.look_at_unvisited_path(&below, entry, *fingerprint, sink);
                let (looked, same_file) = match stray.unwrap_or_else(|_| unreadable(entry)) {
                    UnvisitedState::Unchanged => {
                        stay.push(child.clone());
                        continue;
                    }
                    UnvisitedState::Changed { looked, same_file } => (looked, same_file),
                };
                if looked.entry != Entry::Absent {
                    let known = KnownName::Entry {
                        entry: looked.entry.clone(),
                        fingerprint: self.lasting_fingerprint(&looked),
                        precious: *precious,
                    };
                    stay.push(Child { name: child.name.clone(), known });
                }
                if looked.entry.is_unreadable() {
                    unread.push(Unreadable::file(below.clone()));
                }
                let (before, after) = (entry.clone(), looked.entry);
                let observed = ObservedChange { path: below, before, after, same_file };
                found.extend(Some(observed).filter(ObservedChange::is_a_change));
            }
            let unvisited = Folder { children: stay, ..Folder::default() };
            if unvisited.children.is_empty() {
                scan.index.remove_folder(path);
                scan.index_changed = true;
            } else if *folder != unvisited {
                scan.set_folder(path.clone(), unvisited);
            }
        }
        scan.found.extend(found);
        scan.unreadable.extend(unread);
        Ok(())
    }

    fn is_nothing(&self, path: &WorkPath) -> io::Result<bool> {
        match self.root.parent_of(path) {
            Err(error) if is_no_folder(&error) => Ok(true),
            opened => Ok(stat(&opened?, path.file_name())?.is_none()),
        }
    }

    fn look_at_unvisited_path(
        &self,
        path: &WorkPath,
        entry: &Entry,
        fingerprint: Option<Fingerprint>,
        sink: &mut dyn FnMut(PackedBlob),
    ) -> io::Result<UnvisitedState> {
        let looked = LookResult { entry: Entry::Absent, fingerprint: None };
        let nothing = UnvisitedState::Changed { looked, same_file: false };
        let folder = match self.root.parent_of(path) {
            Err(error) if is_no_folder(&error) => return Ok(nothing),
            opened => opened?,
        };
        let Some(seen) = stat(&folder, path.file_name())? else { return Ok(nothing) };
        let same_file = fingerprint == Some(seen.fingerprint);
        if same_file && !self.reads_later(entry) {
            return Ok(UnvisitedState::Unchanged);
        }
        let (known, kept) = (entry.digest(), self.kept);
        let mut bytes = Bytes::Keep { known, kept, sink, budget: self.budget };
        let mut looked = look_at(&folder, path.file_name(), &seen, &mut bytes)?;
        looked.entry = as_known(Some(entry), looked.entry);
        if looked.entry == *entry
            && matches!(entry, Entry::NotCaptured { reason } if reason.covers_folder())
        {
            return Ok(UnvisitedState::Unchanged);
        }
        Ok(UnvisitedState::Changed { looked, same_file })
    }
}
