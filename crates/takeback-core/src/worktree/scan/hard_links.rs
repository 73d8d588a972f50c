//! Hard links: which names are one file, and since when. A rewind links them again.

use std::collections::{BTreeMap, BTreeSet};

use rustix::fs::FileType;
use takeback_store::{Seq, WorkPath};

use super::walk::Part;
use super::{Extent, ObservedChange, valid};
use crate::worktree::fingerprint::Stat;
use crate::worktree::index::{Index, LinkedNames, folder_of};

/// How many former hard links are remembered; the oldest are dropped first.
const REMEMBERED: usize = 1000;

impl Part {
    pub(super) fn note_links(&mut self, seen: &Stat, path: impl FnOnce() -> Vec<u8>) {
        if seen.is_linked && seen.kind == FileType::RegularFile {
            self.linked.push((seen.fingerprint.inode, valid(path())));
        }
    }
}

/// Combines the known links with those of a scan: `names` by inode. `found`: the scan's changes, by path.
/// The names of one file are either all in the scan's extent, or none is.
pub(super) fn since(
    before: &Index,
    extent: Extent<'_>,
    names: Vec<(u64, WorkPath)>,
    found: &[ObservedChange],
) -> Vec<LinkedNames> {
    let mut by_inode: BTreeMap<u64, BTreeSet<WorkPath>> = BTreeMap::new();
    for (inode, name) in names {
        by_inode.entry(inode).or_default().insert(name);
    }
    let mut present: BTreeSet<Vec<WorkPath>> = by_inode
        .into_values()
        .filter(|names| names.len() > 1)
        .map(|names| names.into_iter().collect())
        .collect();
    let mut linked = before.linked.clone();
    for known in linked.iter_mut().filter(|known| known.until.is_none()) {
        if present.remove(&known.names) || !is_looked_at(extent, &known.names) {
            continue;
        }
        // If none of them changed, a point at this position may be from before or after.
        let changed = known
            .names
            .iter()
            .any(|name| found.binary_search_by(|seen| seen.path.cmp(name)).is_ok());
        let last = if changed { before.stamp.0 } else { before.stamp.0.saturating_sub(1) };
        known.until = Some(Seq(last));
    }
    let ended = linked.iter().filter(|known| known.until.is_some()).count();
    let mut too_many = ended.saturating_sub(REMEMBERED);
    linked.retain(|known| {
        let goes = too_many > 0 && known.until.is_some();
        too_many -= usize::from(goes);
        !goes
    });
    let new =
        present.into_iter().map(|names| LinkedNames { names, since: before.stamp, until: None });
    linked.extend(new);
    linked
}

fn is_looked_at(extent: Extent<'_>, names: &[WorkPath]) -> bool {
    match extent {
        Extent::Whole => true,
        Extent::Folders(folders) => names.iter().any(|name| folders.contains(folder_of(name))),
    }
}
