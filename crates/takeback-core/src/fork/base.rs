//! What a fork was when it was made: an index in its store. A scan that compares the folder with it finds what
//! happened since, and reads only files whose fingerprint has changed.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use takeback_store::{Entry, NotCapturedReason, WorkPath};

use super::plan::ForkPlan;
use super::target::ForkTarget;
use super::write::Prints;
use super::{ForkError, MissingReason};
use crate::platform::clock::FILE_TIME_TICK;
use crate::tree_copy::link_into;
use crate::worktree::OutReason;
use crate::worktree::fingerprint::{Fingerprint, RacySince};
use crate::worktree::index::{Child, Folder, Index, KnownName, folder_of};
use crate::worktree::scope::{OWN_FOLDER, is_version_controls};

/// The file in the fork's store.
const FILE: &str = "base";

const LOST: Entry = Entry::NotCaptured { reason: NotCapturedReason::Damaged };

/// For each folder its fingerprint, and the names that were in it right after that.
pub(super) type FolderPrints = HashMap<Vec<u8>, (Fingerprint, Vec<Vec<u8>>)>;

/// The index of a fork that was just written.
pub(super) fn base_index(
    target: &ForkTarget,
    plan: &ForkPlan,
    prints: &Prints,
    mut folder_prints: FolderPrints,
) -> Index {
    let mut tree: BTreeMap<Vec<u8>, Vec<Child>> = BTreeMap::new();
    tree.entry(Vec::new()).or_default();
    let is_extra = |path: &WorkPath| {
        is_version_controls(path)
            || plan.extras.iter().any(|(extra, _)| path.is_within(extra.as_bytes()))
    };
    for path in plan.folders.keys().filter(|path| !is_extra(path)) {
        tree.entry(path.as_bytes().to_vec()).or_default();
    }
    let mut put = |path: &WorkPath, known: KnownName| {
        // Takeback's own folder is never an entry; the user's files in it are.
        if path.as_bytes() == OWN_FOLDER {
            return;
        }
        let child = Child { name: path.file_name().into(), known };
        tree.entry(folder_of(path).to_vec()).or_default().push(child);
    };
    let entry = |path: &WorkPath, entry: Entry, fingerprint| KnownName::Entry {
        entry,
        fingerprint,
        precious: plan.precious.contains(path),
    };
    let skipped = |why| KnownName::Skipped { why, fingerprint: None };
    for (path, mode) in plan.folders.iter().filter(|(path, _)| !is_extra(path)) {
        put(path, entry(path, Entry::Dir { mode: *mode }, None));
    }
    for (number, (path, link)) in plan.links.iter().enumerate() {
        if !is_extra(path) {
            let link = link_into(link, &target.original, target.path());
            put(path, entry(path, Entry::Symlink { target: link }, prints.links[number]));
        }
    }
    for (number, file) in plan.files.iter().enumerate() {
        match (file.entry(), prints.files[number]) {
            (Some(known), Some(print)) => {
                put(&file.path, entry(&file.path, known.clone(), Some(print)));
            }
            // The store has lost it: what it was is unknown here.
            (Some(_), None) => put(&file.path, entry(&file.path, LOST, None)),
            (None, _) => {}
        }
    }
    for (path, reason) in &plan.missing {
        if let MissingReason::NotCaptured(reason) = reason {
            put(path, entry(path, Entry::NotCaptured { reason: *reason }, None));
        }
    }
    plan.unknown.iter().for_each(|path| put(path, skipped(OutReason::IgnoredFile)));
    plan.extras.iter().for_each(|(path, why)| put(path, skipped(*why)));
    let mut index = Index::default();
    for (path, mut children) in tree {
        children.sort_by(|a, b| a.name.cmp(&b.name));
        children.dedup_by(|a, b| a.name == b.name);
        // Without a fingerprint, the next scan reads the folder's names.
        let fingerprint = folder_prints.remove(&path).and_then(|(print, names)| {
            let known = children.iter().map(|child| &*child.name);
            known.eq(names.iter().map(Vec::as_slice)).then_some(print)
        });
        let folder = Folder { listed: true, fingerprint, children, ..Folder::default() };
        index.set_folder(path, Arc::new(folder));
    }
    index
}

/// Saves the index once no later write can leave one of its fingerprints.
pub(super) fn save(index: &mut Index, store_dir: &Path) -> Result<(), ForkError> {
    let path = store_dir.join(FILE);
    let newest = index.folders().flat_map(|(_, folder)| {
        let files = folder.children.iter().filter_map(|child| child.known.fingerprint());
        files.chain(folder.fingerprint).max_by_key(|print| print.changed)
    });
    let newest = newest.max_by_key(|print| print.changed);
    let saved = index.save(&path).map_err(|source| ForkError::Unusable { path, source });
    // Two ticks at most, unless the clock was set back meanwhile.
    for _ in 0..4 {
        let is_past = |print: Fingerprint| {
            RacySince::now().trust(Fingerprint { modified: i64::MIN, ..print }).is_some()
        };
        if newest.is_none_or(is_past) {
            break;
        }
        std::thread::sleep(Duration::from_nanos(FILE_TIME_TICK.unsigned_abs() / 2));
    }
    saved
}

/// The index of a complete fork.
pub(super) fn load(store_dir: &Path) -> Result<Index, ForkError> {
    let path = store_dir.join(FILE);
    Index::read(&path).ok_or(ForkError::Damaged { path })
}
