//! What a scan could not read: no permission, a failing disk, no free descriptor. Nothing there counts as
//! unchanged: its known entries are not captured until they can be read again.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use takeback_store::{Entry, NotCapturedReason, WorkPath};

use super::visit::{Visit, skipped_name};
use super::{ObservedChange, Scan, join, parent, valid};
use crate::worktree::index::{Child, Folder, KnownName};
use crate::worktree::scope::OutReason;

/// A folder or file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unreadable {
    /// Its path.
    pub path: WorkPath,
    /// What it is.
    pub kind: UnreadableKind,
}

/// What could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnreadableKind {
    /// One file.
    File,
    /// With this many known names below it, none of which was compared.
    Folder {
        /// Known names below it.
        known: usize,
    },
}

impl Unreadable {
    pub(super) fn file(path: WorkPath) -> Self {
        Self { path, kind: UnreadableKind::File }
    }

    /// Whether it is this path or contains it.
    #[must_use]
    pub fn covers(&self, path: &WorkPath) -> bool {
        path.is_within(self.path.as_bytes())
    }
}

/// What the second pass could not read.
#[derive(Debug, Default)]
pub(super) struct UnreadParts {
    pub(super) folders: BTreeSet<Vec<u8>>,
    /// Folders that could be listed but not searched, with the number of known names in them.
    pub(super) unsearched: BTreeMap<Vec<u8>, usize>,
    pub(super) files: Vec<WorkPath>,
    /// New names in folders that were unreadable before.
    pub(super) surfaced: Vec<WorkPath>,
}

impl UnreadParts {
    pub(super) fn add(&mut self, other: Self) {
        self.folders.extend(other.folders);
        self.unsearched.extend(other.unsearched);
        self.files.extend(other.files);
        self.surfaced.extend(other.surfaced);
    }
}

const UNREADABLE: Entry = Entry::NotCaptured { reason: NotCapturedReason::Unreadable };

impl Visit<'_, '_> {
    /// A name in a folder that may be listed but not searched.
    pub(super) fn unsearched(&mut self, name: &[u8], before: Option<&KnownName>) -> KnownName {
        let path = join(&self.task.path, name);
        let known = match before {
            Some(KnownName::Entry { entry, precious, .. }) if may_be_hidden(entry) => {
                if entry.is_dir() {
                    self.part.unread.folders.insert(path.clone());
                }
                self.record_change(path.clone(), entry.clone(), &UNREADABLE, false);
                KnownName::Entry { entry: UNREADABLE, fingerprint: None, precious: *precious }
            }
            Some(known) => known.clone(),
            None => skipped_name(OutReason::Unreachable),
        };
        let names = usize::from(matches!(known, KnownName::Entry { .. }));
        match self.task.path.is_empty() {
            true => self.part.unread.files.push(valid(path)),
            false => {
                let folder = self.task.path.clone();
                *self.part.unread.unsearched.entry(folder).or_default() += names;
            }
        }
        known
    }
}

/// Whether an entry becomes unknown when it cannot be looked at.
fn may_be_hidden(entry: &Entry) -> bool {
    matches!(entry, Entry::File { .. } | Entry::Symlink { .. } | Entry::Dir { .. })
}

impl Scan {
    pub(super) fn add_unread(&mut self, unread: UnreadParts) {
        let UnreadParts { folders, unsearched, files, surfaced } = unread;
        self.surfaced.extend(surfaced);
        let mut reported: HashSet<&[u8]> = HashSet::new();
        for path in folders.iter().filter(|path| !is_below_one(path, &folders)) {
            let known = self.hide_below(path);
            if !is_below_one(path, &unsearched) {
                reported.insert(path);
                self.report(path, known);
            }
        }
        for (path, known) in &unsearched {
            if !reported.contains(path.as_slice()) && !is_below_one(path, &folders) {
                self.report(path, *known);
            }
        }
        self.unreadable.extend(files.into_iter().map(Unreadable::file));
    }

    fn report(&mut self, path: &[u8], known: usize) {
        let kind = UnreadableKind::Folder { known };
        self.unreadable.push(Unreadable { path: valid(path.to_vec()), kind });
    }

    /// Marks everything known below a folder as not captured; returns the number of names.
    fn hide_below(&mut self, path: &[u8]) -> usize {
        let mut known = 0;
        let mut open = vec![path.to_vec()];
        while let Some(path) = open.pop() {
            let folder = self.index.folder(&path).unwrap_or_default();
            let mut children = Vec::with_capacity(folder.children.len());
            for child in &folder.children {
                let KnownName::Entry { entry, precious, .. } = &child.known else {
                    children.push(child.clone());
                    continue;
                };
                known += 1;
                let below = join(&path, &child.name);
                if self.index.has_folder(&below) {
                    open.push(below.clone());
                }
                if !may_be_hidden(entry) {
                    children.push(child.clone());
                    continue;
                }
                self.found.push(ObservedChange {
                    path: valid(below),
                    before: entry.clone(),
                    after: UNREADABLE,
                    same_file: false,
                });
                let (entry, precious) = (UNREADABLE, *precious);
                let known = KnownName::Entry { entry, fingerprint: None, precious };
                children.push(Child { name: child.name.clone(), known });
            }
            let hidden = Folder {
                listed: false,
                hidden: folder.listed || folder.hidden,
                fingerprint: None,
                children,
                ..Folder::clone(&folder)
            };
            if hidden != *folder || !self.index.has_folder(&path) {
                self.index.set_folder(path, Arc::new(hidden));
                self.index_changed = true;
            }
        }
        known
    }
}

/// Whether a parent of a path is among `folders`.
fn is_below_one(path: &[u8], folders: &impl FolderSet) -> bool {
    let mut path = path;
    while !path.is_empty() {
        path = parent(path);
        if folders.holds(path) {
            return true;
        }
    }
    false
}

trait FolderSet {
    fn holds(&self, path: &[u8]) -> bool;
}

impl FolderSet for BTreeSet<Vec<u8>> {
    fn holds(&self, path: &[u8]) -> bool {
        self.contains(path)
    }
}

impl FolderSet for BTreeMap<Vec<u8>, usize> {
    fn holds(&self, path: &[u8]) -> bool {
        self.contains_key(path)
    }
}
