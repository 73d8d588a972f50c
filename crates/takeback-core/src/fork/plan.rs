//! What a fork consists of: the entries of the log at a point, and for each file the fingerprint by which the
//! file on disk is known to have these bytes.

use std::collections::{BTreeMap, BTreeSet};

use takeback_store::{Entry, NotCapturedReason, Seq, WorkPath};

use super::{ForkError, LeftOut, MissingReason};
use crate::tree_copy::all_entries_at;
use crate::workspace::Workspace;
use crate::worktree::OutReason;
use crate::worktree::fingerprint::{Fingerprint, stat};
use crate::worktree::index::{Index, KnownName};
use crate::worktree::root::Access;
use crate::worktree::scope::{is_internal, is_internal_name};

/// What to write.
pub(super) struct ForkPlan {
    /// Folders with their modes, parents first.
    pub(super) folders: BTreeMap<WorkPath, u32>,
    /// Links with their targets as they are in the workspace.
    pub(super) links: Vec<(WorkPath, Vec<u8>)>,
    /// Neighbours in the tree are neighbours here.
    pub(super) files: Vec<PlannedFile>,
    pub(super) missing: Vec<(WorkPath, MissingReason)>,
    pub(super) unknown: Vec<WorkPath>,
    pub(super) left_out: Vec<(WorkPath, LeftOut)>,
    /// Everything below these was copied without being covered.
    pub(super) extras: Vec<(WorkPath, OutReason)>,
    /// Covered although they are ignored.
    pub(super) precious: BTreeSet<WorkPath>,
}

/// A file to write.
pub(super) struct PlannedFile {
    pub(super) path: WorkPath,
    pub(super) source: FileSource,
}

/// Where a file's bytes come from.
pub(super) enum FileSource {
    /// The log. With a fingerprint: a file on disk that still has it has these bytes.
    Log { entry: Entry, known: Option<Fingerprint> },
    /// Whatever is on disk.
    Disk,
}

impl PlannedFile {
    /// `None`: the log does not cover it.
    pub(super) fn entry(&self) -> Option<&Entry> {
        match &self.source {
            FileSource::Log { entry, .. } => Some(entry),
            FileSource::Disk => None,
        }
    }
}

/// The plan of everything that the log covers.
pub(super) fn plan(workspace: &Workspace, seq: Seq) -> Result<ForkPlan, ForkError> {
    let entries: BTreeMap<WorkPath, Entry> =
        all_entries_at(&*workspace.store, seq)?.into_iter().collect();
    let index = workspace.index()?;
    let mut plan = ForkPlan {
        folders: BTreeMap::new(),
        links: Vec::new(),
        files: Vec::new(),
        missing: Vec::new(),
        unknown: Vec::new(),
        left_out: left_out(workspace, &index),
        extras: Vec::new(),
        precious: BTreeSet::new(),
    };
    for (path, entry) in entries {
        if is_internal(&path) || super::target::is_marker(&path) {
            continue;
        }
        plan.add(path, entry, &index);
    }
    workspace.keep_index(index);
    plan.add_parents();
    Ok(plan)
}

impl ForkPlan {
    fn add(&mut self, path: WorkPath, entry: Entry, index: &Index) {
        let known = index.known(&path);
        if matches!(known, Some(KnownName::Entry { precious: true, .. })) {
            self.precious.insert(path.clone());
        }
        match entry {
            Entry::Absent => {}
            Entry::Unknown => self.unknown.push(path),
            Entry::NotCaptured { reason } if reason.covers_folder() => {
                let reason = OutReason::of_left(reason).unwrap_or(OutReason::TooMany);
                self.left_out.push((path, LeftOut::NotCovered(reason)));
            }
            // The log has it as something that is never copied.
            Entry::NotCaptured { reason: NotCapturedReason::Special } => {
                self.left_out.push((path, LeftOut::NotCovered(OutReason::Special)));
            }
            Entry::NotCaptured { reason } => {
                self.missing.push((path, MissingReason::NotCaptured(reason)));
            }
            Entry::Dir { mode } => {
                self.folders.insert(path, mode);
            }
            Entry::Symlink { target } => self.links.push((path, target)),
            Entry::File { .. } => {
                let fingerprint = match known {
                    Some(KnownName::Entry { entry: now, fingerprint, .. })
                        if now.digest() == entry.digest() =>
                    {
                        fingerprint
                    }
                    _ => None,
                };
                let source = FileSource::Log { entry, known: fingerprint };
                self.files.push(PlannedFile { path, source });
            }
        }
    }

    /// Adds the folders that the log does not have by themselves.
    pub(super) fn add_parents(&mut self) {
        const USUAL: u32 = 0o755;
        let files = self.files.iter().map(|file| &file.path);
        let placed =
            files.chain(self.links.iter().map(|(path, _)| path)).chain(self.folders.keys());
        let above: BTreeSet<WorkPath> = placed.flat_map(WorkPath::ancestors).collect();
        for folder in above {
            self.folders.entry(folder).or_insert(USUAL);
        }
    }
}

/// What the last scan did not cover, and version control's own files.
fn left_out(workspace: &Workspace, index: &Index) -> Vec<(WorkPath, LeftOut)> {
    let mut left: Vec<(WorkPath, LeftOut)> = index
        .skipped()
        .into_iter()
        .filter(|(_, why)| *why != OutReason::Reserved)
        .map(|(path, why)| (path, LeftOut::NotCovered(why)))
        .collect();
    let repositories =
        index.folders().filter(|(path, folder)| folder.repository || path.is_empty());
    for (folder, _) in repositories {
        let Ok(opened) = workspace.root.folder(folder, Access::Read) else { continue };
        let names = crate::worktree::root::names_in(&opened).unwrap_or_default();
        for name in names.iter().filter(|name| is_internal_name(name)) {
            if let Some(path) = crate::worktree::index::below(folder, name)
                && stat(&opened, name).is_ok_and(|seen| seen.is_some())
            {
                left.push((path, LeftOut::VersionControl));
            }
        }
    }
    left.sort();
    left.dedup_by(|a, b| a.0 == b.0);
    left
}
