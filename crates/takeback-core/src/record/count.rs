//! How much a first scan will read, for a progress display.

use std::collections::HashSet;
use std::time::Duration;

use takeback_store::Entry;

use super::RecordError;
use crate::progress::Work;
use crate::workspace::Workspace;
use crate::worktree::budget::Budget;
use crate::worktree::index::{Index, KnownName};
use crate::worktree::scan::{Extent, ScanError, ScanRequest, scan};
use crate::worktree::scope::DistrustedRules;

/// Files to read and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Amount {
    pub(super) files: u64,
    pub(super) bytes: u64,
}

/// Lists all names, which is cheap compared with reading the files. Zero after the first scan, which
/// leaves only changed files to read, and without a progress display.
pub(super) fn to_read(workspace: &Workspace, before: &Index) -> Result<Amount, ScanError> {
    if workspace.ambient.watch.is_none() || before.least_folders() > 0 {
        return Ok(Amount::default());
    }
    let work = workspace.ambient.begin(Work::Count, 0);
    let ask = ScanRequest {
        root: &workspace.root,
        before,
        options: &workspace.scope,
        threads: workspace.limits.threads(),
        budget: Budget::starting_now(Duration::ZERO, Duration::MAX),
        counter: work.counter(),
        extent: Extent::Whole,
        kept: &HashSet::new(),
        distrusted: &DistrustedRules::default(),
        stages: &HashSet::new(),
    };
    let scan = scan(&ask, &mut |_| {})?;
    Ok(Amount { files: scan.stats.files, bytes: bytes_unread(&scan.index) })
}

/// How many bytes earlier scans had no time to read, as far as known.
pub fn bytes_left_to_read(workspace: &Workspace) -> Result<u64, RecordError> {
    let index = Index::load(&workspace.index_file(), &*workspace.store)?;
    Ok(bytes_unread(&index))
}

fn bytes_unread(index: &Index) -> u64 {
    let children = index.folders().map(|(_, folder)| folder);
    children
        .map(|folder| folder.children.iter().filter_map(|child| unread(&child.known)).sum::<u64>())
        .sum()
}

/// The size of a file whose bytes are still to be read.
fn unread(known: &KnownName) -> Option<u64> {
    match known {
        KnownName::Entry {
            entry: Entry::NotCaptured { reason }, fingerprint: Some(print), ..
        } => reason.may_be_captured_later().then_some(print.size),
        _ => None,
    }
}
