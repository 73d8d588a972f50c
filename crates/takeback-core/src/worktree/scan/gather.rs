//! Combines the findings of both passes: changes, skipped names, and the new index.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use takeback_store::{Entry, PackedBlob, WorkPath};

use super::first_pass::{ChangedFolder, FirstPass};
use super::read_failures::UnreadParts;
use super::walk::{Part, VisitedFolder, Walk, visited};
use super::{ObservedChange, Scan, ScanError, hard_links, parent, valid};
use crate::worktree::index::{Child, Folder, KnownName, folder_of};
use crate::worktree::scope::{OWN_FOLDER, OutReason};

impl Walk<'_> {
    /// Combines the findings of both passes, and covers ignored files while there is room.
    pub(super) fn gather(
        &self,
        first: FirstPass,
        parts: Vec<Part>,
        sink: &mut dyn FnMut(PackedBlob),
    ) -> Result<Scan, ScanError> {
        let mut scan = Scan {
            found: Vec::new(),
            index: self.before.clone(),
            index_changed: self.before.scope != self.scope,
            skipped: Vec::new(),
            unreadable: Vec::new(),
            surfaced: HashSet::new(),
            new_in_ignored: HashSet::new(),
            judges: BTreeSet::new(),
            linked: Vec::new(),
            stats: first.stats,
        };
        scan.index.scope = self.scope;
        let visited: HashSet<Vec<u8>> = visited(&parts).map(<[u8]>::to_vec).collect();
        let mut candidates = Vec::new();
        let mut dropped: HashSet<Vec<u8>> = HashSet::new();
        let mut linked = first.linked;
        let mut unread = UnreadParts::default();
        unread.folders.extend(first.unreadable.iter().cloned());
        for part in parts {
            unread.add(part.unread);
            scan.new_in_ignored.extend(part.new_in_ignored);
            for VisitedFolder { path, changed } in part.visited {
                if let Some(folder) = changed {
                    scan.set_folder(path, folder);
                }
            }
            dropped.extend(part.dropped);
            scan.found.extend(part.found);
            scan.skipped.extend(part.skipped);
            scan.judges.extend(part.judges.into_iter().map(valid));
            candidates.extend(part.precious);
            linked.extend(part.linked);
            scan.stats.files += part.stats.files;
            scan.stats.folders += part.stats.folders;
            scan.stats.read += part.stats.read;
        }
        for path in &dropped {
            scan.index.remove_folder(path);
            scan.index_changed = true;
        }
        for path in first.lost.iter().chain(&first.foreign) {
            let is_left = !visited.contains(path) && !self.unvisited.contains(path);
            if is_left && !dropped.contains(path) {
                scan.unread(path);
            }
        }
        unread.folders.retain(|path| !dropped.contains(path) && !self.unvisited.contains(path));
        scan.add_unread(unread);
        self.note_foreign(&first.foreign, &mut scan);
        for moved in first.moved.iter().filter(|moved| !visited.contains(parent(&moved.path))) {
            note_mode(moved, &mut scan);
        }
        self.admit_candidates(candidates, &mut scan, &mut linked, sink)?;
        self.look_at_unvisited(&visited, &mut scan, sink)?;
        // A path that was visited and later found removed is removed.
        scan.found.sort_by(|a, b| {
            let is_there = |observed: &ObservedChange| observed.after != Entry::Absent;
            a.path.cmp(&b.path).then(is_there(a).cmp(&is_there(b)))
        });
        scan.found.dedup_by(|later, first| later.path == first.path);
        scan.skipped.sort();
        scan.unreadable.sort();
        scan.linked = linked.iter().map(|(_, path)| path.clone()).collect();
        if scan.index_changed || !visited.is_empty() {
            let linked = hard_links::since(self.before, self.extent, linked, &scan.found);
            scan.index_changed |= linked != self.before.linked;
            scan.index.linked = linked;
        }
        Ok(scan)
    }

    /// Another file system is mounted over known entries, which still exist below it.
    fn note_foreign(&self, foreign: &[Vec<u8>], scan: &mut Scan) {
        let hidden: HashSet<&[u8]> = foreign.iter().map(Vec::as_slice).collect();
        for path in foreign.iter().filter(|path| !hidden.contains(parent(path))) {
            let path = valid(path.clone());
            if self.is_reached(path.as_bytes()) {
                scan.skipped.push((path, OutReason::OtherFileSystem));
            }
        }
        scan.skipped.sort();
        scan.skipped.dedup();
    }
}

impl Scan {
    pub(super) fn set_folder(&mut self, path: Vec<u8>, folder: Folder) {
        self.index.set_folder(path, Arc::new(folder));
        self.index_changed = true;
    }

    /// A folder that cannot be reached: its known entries stay as they were.
    fn unread(&mut self, path: &[u8]) {
        if let Some(folder) = self.index.folder(path) {
            let unread = folder.unread();
            if unread != *folder {
                self.set_folder(path.to_vec(), unread);
            }
        }
    }

    pub(super) fn set_child(&mut self, path: &WorkPath, known: KnownName) {
        let folder = folder_of(path);
        if self.index.known(path).as_ref() == Some(&known) {
            return;
        }
        let children = &mut self.index.folder_mut(folder).children;
        match children.binary_search_by(|child| (*child.name).cmp(path.file_name())) {
            Ok(at) => children[at].known = known,
            Err(at) => children.insert(at, Child { name: path.file_name().into(), known }),
        }
        self.index_changed = true;
    }
}

/// A folder's mode is recorded in its parent, which may be unchanged.
fn note_mode(moved: &ChangedFolder, scan: &mut Scan) {
    if moved.path.is_empty() || moved.path == OWN_FOLDER {
        return;
    }
    let path = valid(moved.path.clone());
    let Some(KnownName::Entry { entry: before @ Entry::Dir { .. }, precious, .. }) =
        scan.index.known(&path)
    else {
        return;
    };
    let after = Entry::Dir { mode: moved.mode };
    if before != after {
        let entry = after.clone();
        scan.set_child(&path, KnownName::Entry { entry, fingerprint: None, precious });
        scan.found.push(ObservedChange { path, before, after, same_file: false });
    }
}
